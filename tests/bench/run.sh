#!/bin/bash
# run.sh BUILD - trains the benchmark's cases, several rounds in turns, and prints the medians.
#
#   CASES=mlp,...  THREADS=1,2  ROUNDS=5  SECS=1     what to run
#   PRECISION=bfloat16                               ours, in bfloat16
#   PEERS=FOLDER   a folder for the other frameworks' virtual environment: they are run in turns with ours by
#                  $TRAINYARD_SHARED/bench/peer_best.sh, where that is there
#
# BUILD/bench/results.json holds every run: an array of the lines that the program printed.
set -eu
build=${1:-build}
cases=${CASES:-softmax_reg,mlp,cnn1024_sgd,cnn1024_adam,cnn512_sgd,cnn512_adam,resnet20,lstm,gpt}
threads=${THREADS:-1,2}
rounds=${ROUNDS:-5}
secs=${SECS:-1}
peer_best=${TRAINYARD_SHARED:-../shared}/bench/peer_best.sh
lines=$build/bench/results.lines
results=$build/bench/results.json
: >"$lines"

to_json() {
    { echo '['; sed '$!s/$/,/' "$lines"; echo ']'; } >"$results"
    echo "every run: $results"
}

if [ -n "${PEERS:-}" ]; then
    if [ ! -x "$peer_best" ]; then
        echo "the other frameworks cannot be run: there is no $peer_best"
        exit 1
    fi
    rm -f "$PEERS/final.jsonl"
    CASES=$cases THREADS=$threads ROUNDS=$rounds SECS=$secs \
        OURS="$PWD/$build/bench/cases {case} {threads} {secs}" "$peer_best" "$PEERS"
    cp "$PEERS/final.jsonl" "$lines"
    echo "share of what products in the first cache reach, medians of ours (Winograd's algorithm multiplies less than is counted):"
    for case in ${cases//,/ }; do
        for t in ${threads//,/ }; do
            grep "\"case\": \"$case\", .*\"threads\": $t,.*of_peak" "$lines" | sed 's/.*"of_peak": \([0-9.]*\).*/\1/' | sort -n |
                awk -v c="$case" -v t="$t" '{ line[NR] = $1 } END { if (NR) printf "%-14s %7d %7.0f%%\n", c, t, 100 * line[int((NR + 1) / 2)] }'
        done
    done
    to_json
    exit 0
fi

for ((round = 0; round < rounds; round++)); do
    for case in ${cases//,/ }; do
        for t in ${threads//,/ }; do
            OMP_NUM_THREADS=$t "$build/bench/cases" "$case" "$t" "$secs" ${PRECISION:-} >>"$lines"
        done
    done
done

printf '%-14s %7s %14s %12s %10s %8s %8s\n' case threads examples/s 'step us' GFLOP/s 'of peak' 'RSS MB'
for case in ${cases//,/ }; do
    for t in ${threads//,/ }; do
        grep "\"case\": \"$case\", .*\"threads\": $t," "$lines" |
            sed 's/.*"ex_per_s": \([0-9.]*\).*"step_us": \([0-9.]*\), "p10.*"gflops": \([0-9.]*\), "of_peak": \([0-9.]*\).*"maxrss_mb": \([0-9]*\).*/\1 \2 \3 \4 \5/' |
            sort -n | awk -v c="$case" -v t="$t" '{ line[NR] = $0 } END {
                split(line[int((NR + 1) / 2)], v)
                printf "%-14s %7d %14.0f %12.1f %10.1f %7.0f%% %8d\n", c, t, v[1], v[2], v[3], 100 * v[4], v[5] }'
    done
done
to_json
echo "other frameworks: left out; make bench PEERS=FOLDER runs them too (it installs 7 GB there)"
