#!/bin/bash
# prove.sh [PART...] - the full counts, part by part.  Results and times go to docs/proof.md.
#
# What has passed is remembered under build/prove for the commit that last changed more than docs, so a
# run that was broken off goes on where it was: parts that passed are not run again, and fuzzing goes
# on behind the last FUZZ_CHUNK inputs.  The longest part comes last.
set -u
cd "$(dirname "$0")/.."
FUZZ_RUNS=${FUZZ_RUNS:-1000000}
FUZZ_CHUNK=${FUZZ_CHUNK:-100000}
if [ -n "$(git status --porcelain --untracked-files=no -- . ':!docs')" ]; then
    echo "prove: there are changes that were not committed; a proof is of a commit"
    exit 1
fi
commit=$(git log -1 --format=%h -- . ':!docs')
done_folder=build/prove/$commit
mkdir -p "$done_folder"
report=docs/proof.md
[ -s "$report" ] || printf '# Proof\n\nThe full counts, as `make prove` ran them.\n\n| date | commit | part | command | time | result |\n|---|---|---|---|---|---|\n' >"$report"
wanted=("$@")
failed=0

is_wanted() { # name
    local name
    [ ${#wanted[@]} -eq 0 ] && return 0
    for name in "${wanted[@]}"; do [ "$name" = "$1" ] && return 0; done
    return 1
}

part() { # name, command...
    local name=$1 log=$done_folder/$1.log spent=0 start=$SECONDS result
    shift
    is_wanted "$name" || return
    if [ -e "$done_folder/$name" ]; then
        echo "  done  $name: $(cat "$done_folder/$name")"
        return
    fi
    echo "  run   $name: $*"
    [ -e "$done_folder/$name.spent" ] && spent=$(cat "$done_folder/$name.spent")
    if "$@" >"$log" 2>&1; then
        result=$(tail -n 1 "$log")
        spent=$((spent + SECONDS - start))
        echo "$result" >"$done_folder/$name"
        echo "  ok    $name: $result ($spent s)"
    else
        result="FAILED: $(tail -n 1 "$log")"
        spent=$((spent + SECONDS - start))
        echo "  FAIL  $name: see $log"
        tail -n 20 "$log" | sed 's/^/        /'
        failed=1
    fi
    printf '| %s | %s | %s | `%s` | %d:%02d:%02d | %s |\n' "$(date -u +%F)" "$commit" "$name" "$*" $((spent / 3600)) \
        $((spent / 60 % 60)) $((spent % 60)) "$(echo "$result" | tr '|' '/')" >>"$report"
}

# FUZZ_RUNS inputs of one target.  What it did is noted after each chunk, with the time it took.
fuzz() { # target
    local runs=0 spent=0 start=$SECONDS noted=$done_folder/fuzz-$1 out more
    [ -e "$noted.runs" ] && runs=$(cat "$noted.runs") && spent=$(cat "$noted.spent")
    make --no-print-directory CC=clang-14 SAN=fuzz BUILD=build/fuzz "build/fuzz/fuzz_$1" || return 1
    while more=$((FUZZ_RUNS - runs)) && [ "$more" -gt 0 ]; do
        [ "$more" -gt "$FUZZ_CHUNK" ] && more=$FUZZ_CHUNK
        out=$(F=$1 RUNS=$more tests/fuzz/check.sh)
        more=$?
        echo "$out"
        [ $more -eq 0 ] || return 1
        more=$(echo "$out" | sed -n 's/^ *\([0-9]*\) inputs$/\1/p')
        [ "${more:-0}" -gt 0 ] || return 1
        runs=$((runs + more))
        echo "$runs" >"$noted.runs"
        echo $((spent + SECONDS - start)) >"$noted.spent"
    done
    echo "$runs inputs, 0 findings"
}

planted() {
    make --no-print-directory sim && python3 tests/sim/planted.py
}

sim() { # worlds, options
    make --no-print-directory sim && build/sim --seeds "$@"
}

# All recorded cases but those of errors, cut over three tasks in so many ways.
cut_cases() { # ways
    local way folder=${TRAINYARD_SHARED:-../shared}/tf-cases files=()
    for file in "$folder"/local-*.tfrecord; do [ "${file##*/}" = local-errors.tfrecord ] || files+=("$file"); done
    for ((way = 1; way <= $1; way++)); do
        build/tf-cases --tasks 3 --seed $way --threads 1 "${files[@]}" || return 1
    done
}

flood() { # jobs
    local folder status
    folder=$(mktemp -d)
    make --no-print-directory build/bench/flood && build/bench/flood "$folder" "$1"
    status=$?
    rm -rf "$folder"
    return $status
}

trace() {
    make --no-print-directory build/bench/trace && build/bench/trace
}

# Graphs made by chance, each cut over three tasks: in one process, and a quarter of them over gRPC.
cut_graphs() { # graphs
    make --no-print-directory build/tests/unit/runtime/cluster_random_test && TRIALS=$1 build/tests/unit/runtime/cluster_random_test
}

# All programs of TensorFlow's clients, also against clusters of its servers and ours.
clients() { # folder of a build
    local names=() file shared=${TRAINYARD_SHARED:-../shared}/tf-clients python=build/interop-venv/bin/python
    for file in $(grep -l '^NEEDS' "$shared"/*.py); do
        grep -q '^OPTIONAL = True' "$file" || names+=("$(basename "$file" .py)")
    done
    for file in tests/interop/clients/*.py; do names+=("$(basename "$file" .py)"); done
    tests/interop/clients.sh $python "$1" --mixed "${names[@]}"
}

upgrade() {
    make --no-print-directory all && tests/upgrade.sh
}

# What a server says when it ends, of memory that was lost, is only in its log.
clients_checked() {
    local logs said
    logs=$(mktemp -d)
    make --no-print-directory SAN=address all && SECONDS_EACH=600 LOGS=$logs clients build/address
    said=$?
    grep -rhE -A 12 'Sanitizer: |runtime error: ' "$logs" && said=1
    rm -rf "$logs"
    return $said
}

# Over the tasks of one model, on MNIST where it is.
kills_together() {
    local mnist=${TRAINYARD_SHARED:-../shared}/data/mnist
    [ -d "$mnist" ] && export DATASET=$PWD/$mnist
    WHERE=together make system T=kill_test KILLS=400 TIMEOUT=7200
}

# Runs of few kills: in a long one a later kill wakes up what an earlier one has left standing still.
kills_short() { # runs
    local where seed failed=0 log
    log=$(mktemp)
    make --no-print-directory all || return 1
    for where in embedded remote copies together elastic; do
        for ((seed = 1; seed <= $1; seed++)); do
            WHERE=$where KILLS=$((2 + seed % 3 * 2)) SEED=$seed TRAINYARD_BUILD=build tests/system/kill_test.sh >"$log" 2>&1 && continue
            failed=$((failed + 1))
            cat "$log"
        done
    done
    rm "$log"
    echo "$(($1 * 5)) runs of one to three kills, $failed failed"
    return $((failed > 0))
}

part check make check
part clients clients build
part clients-checked clients_checked
part collectives build/interop-venv/bin/python -W ignore tests/interop/collectives.py build
for source in tests/fuzz/fuzz_*.c; do
    target=${source##*/fuzz_} target=${target%.c}
    [ "$target" = graph ] || part "fuzz-$target" fuzz "$target"
done
part ops tests/interop/ops_fuzz.sh build/interop-venv/bin/python build 1 20000
part programs tests/interop/ops_fuzz.sh build/interop-venv/bin/python build 1 10000 "" programs_generate.py
part tasks cut_cases 20
part cut-graphs cut_graphs 5000
part sim sim 1000000
part sim-sqlite sim 20000 --sqlite
part planted planted
part trace trace
part flood flood 1000000
part resume make system T=resume KILLS=100 TIMEOUT=3600
part upgrade upgrade
part failpoints make system T=failpoint_test LIVES=all TIMEOUT=3600
part partitions env WAYS=all make system T=partition_test
part kills make system T=kill_test KILLS=500 TIMEOUT=7200
part kills-together kills_together
part kills-short kills_short 40
part fuzz-graph fuzz graph
exit $failed
