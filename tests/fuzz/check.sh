#!/bin/bash
# check.sh - every fuzz target, S seconds or RUNS inputs each (given both, what comes first), from its
# seeds and what earlier runs found.
#
# SEED makes a run that can be repeated, from the seeds alone and without what comparisons see (it
# differs from run to run); without it every run goes new ways.
# $BUILD holds the programs and the grown corpora; F picks one target.  A crash leaves its input in
# $BUILD/crash-NAME-*, and `$BUILD/fuzz_NAME FILE` shows it again.  RUNS and the numbers printed do
# not count the inputs that a run begins with, those of earlier ones.
set -u
BUILD=${BUILD:-build/fuzz}
# An input frees all it took: there is no need to keep much of it from being used again.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=32}
failed=0
# Real graphs, where TensorFlow's recorded cases are beside the clone.
cases=${TRAINYARD_SHARED:-../shared}/tf-cases
if [ -d "$cases" ] && [ ! -d build/fuzz/graphs ] && [ -x build/tf-cases ]; then
    mkdir -p build/fuzz/graphs
    build/tf-cases --graphs build/fuzz/graphs "$cases"/*.tfrecord
    find build/fuzz/graphs -type f -size +40 -delete
fi

fuzz() { # target
    local name=$1 log=$BUILD/$1.log grown=$BUILD/corpus/$1 seeds options all first
    [ -n "${SEED:-}" ] && grown=$BUILD/corpus-$SEED/$name && rm -rf "$grown"
    mkdir -p "$grown"
    seeds=("$grown" "tests/fuzz/corpus/$name")
    [ "$name" = graph ] && [ -d build/fuzz/graphs ] && seeds+=(build/fuzz/graphs)
    [ -z "${RUNS:-}" ] && options=(-max_total_time="${S:-20}")
    # It begins with the empty input and all that there are.
    [ -n "${RUNS:-}" ] && options=(-runs=$((RUNS + 1 + $(find "${seeds[@]}" -type f | wc -l)))
                                   -max_total_time="${S:-0}")
    [ -n "${SEED:-}" ] && options+=(-seed="$SEED" -use_cmp=0)
    # What threads keep looks like a leak of each input's, and is searched for a long time; at the end it is looked for all the same.
    case $name in http | http2 | socket | websocket) options+=(-detect_leaks=0) ;; esac
    # Over so many graphs, finding out which of them has the rarest features takes longer than running them.
    [ "$name" = graph ] && options+=(-entropic=0)
    if "$BUILD/fuzz_$name" "${options[@]}" -timeout="${TIMEOUT:-20}" -rss_limit_mb=2048 -max_len=20000 -print_final_stats=1 \
        -artifact_prefix="$BUILD/crash-$name-" "${seeds[@]}" >"$log" 2>&1; then
        all=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        first=$(sed -n 's/^#\([0-9]*\)[[:space:]]*INITED.*/\1/p' "$log")
        printf 'ok fuzz_%s\n     %d inputs\n' "$name" $((all - ${first:-0}))
    else
        echo "FAIL fuzz_$name: $(grep -m 1 -E 'ERROR|runtime error|SUMMARY' "$log")"
        tail -n 30 "$log"
        return 1
    fi
}

# As many at a time as there are processors; what each says is shown as a whole.
running=0
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
for source in tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_} name=${name%.c}
    [ -n "${F:-}" ] && [ "$F" != "$name" ] && continue
    if [ $running -ge "$(nproc)" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$name" >"$said/$name" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
cat "$said"/*
exit $failed
