#!/bin/bash
# check.sh - every fuzz target, S seconds (or RUNS inputs) each, from its seeds and what earlier runs found.
#
# SEED makes a run that can be repeated, from the seeds alone; without it every run goes new ways.
# $BUILD holds the programs and the grown corpora; F picks one target.  A crash leaves its input in
# $BUILD/crash-NAME-*, and `$BUILD/fuzz_NAME FILE` shows it again.
set -u
BUILD=${BUILD:-build/fuzz}
limit=(-max_total_time="${S:-20}")
[ -n "${RUNS:-}" ] && limit=(-runs="$RUNS")
[ -n "${SEED:-}" ] && limit+=(-seed="$SEED")
failed=0
# Real graphs, where TensorFlow's recorded cases are beside the clone.
cases=${TRAINYARD_SHARED:-../shared}/tf-cases
if [ -d "$cases" ] && [ ! -d build/fuzz/graphs ] && [ -x build/tf-cases ]; then
    mkdir -p build/fuzz/graphs
    build/tf-cases --graphs build/fuzz/graphs "$cases"/*.tfrecord
    find build/fuzz/graphs -type f -size +40 -delete
fi
for source in tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_} name=${name%.c}
    [ -n "${F:-}" ] && [ "$F" != "$name" ] && continue
    grown=$BUILD/corpus/$name
    [ -n "${SEED:-}" ] && grown=$BUILD/corpus-$SEED/$name && rm -rf "$grown"
    mkdir -p "$grown"
    seeds=("tests/fuzz/corpus/$name")
    [ "$name" = graph ] && [ -d build/fuzz/graphs ] && seeds+=(build/fuzz/graphs)
    if "$BUILD/fuzz_$name" "${limit[@]}" -timeout=20 -rss_limit_mb=2048 -max_len=20000 -print_final_stats=1 \
        -artifact_prefix="$BUILD/crash-$name-" "$grown" "${seeds[@]}" >"$BUILD/$name.log" 2>&1; then
        echo "ok fuzz_$name"
        sed -n 's/^stat::number_of_executed_units: *\(.*\)/     \1 inputs/p' "$BUILD/$name.log"
    else
        echo "FAIL fuzz_$name: $(grep -m 1 -E 'ERROR|runtime error|SUMMARY' "$BUILD/$name.log")"
        tail -n 30 "$BUILD/$name.log"
        failed=1
    fi
done
exit $failed
