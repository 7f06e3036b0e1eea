#!/bin/bash
# run.sh BUILD - trains the benchmark's cases, several rounds in turns, and prints the medians.
#
#   CASES=mlp,...  THREADS=1,2  ROUNDS=5  SECS=1     what to run
#   PEERS=FOLDER   a folder for the other frameworks' virtual environment: they are run in turns with ours by
#                  $TRAINYARD_SHARED/bench/peer_best.sh, where that is there
#
# BUILD/bench/results.json holds every run: an array of the lines that the program printed.
set -eu
build=${1:-build}
cases=${CASES:-softmax_reg,mlp,cnn512_adam}
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
    to_json
    exit 0
fi

for ((round = 0; round < rounds; round++)); do
    for case in ${cases//,/ }; do
        for t in ${threads//,/ }; do
            OMP_NUM_THREADS=$t "$build/bench/cases" "$case" "$t" "$secs" >>"$lines"
        done
    done
done

printf '%-14s %7s %14s %12s %10s %8s\n' case threads examples/s 'step us' GFLOP/s 'RSS MB'
for case in ${cases//,/ }; do
    for t in ${threads//,/ }; do
        grep "\"case\": \"$case\", .*\"threads\": $t," "$lines" |
            sed 's/.*"ex_per_s": \([0-9.]*\).*"step_us": \([0-9.]*\), "p10.*"gflops": \([0-9.]*\).*"maxrss_mb": \([0-9]*\).*/\1 \2 \3 \4/' |
            sort -n | awk -v c="$case" -v t="$t" '{ line[NR] = $0 } END {
                split(line[int((NR + 1) / 2)], v)
                printf "%-14s %7d %14.0f %12.1f %10.1f %8d\n", c, t, v[1], v[2], v[3], v[4] }'
    done
done
to_json
echo "other frameworks: left out; make bench PEERS=FOLDER runs them too (it installs 7 GB there)"
