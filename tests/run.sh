#!/bin/bash
# run.sh [--timeout S] [--at-once N] PROGRAM... - runs test programs and adds up.
#
# A program is a cmocka program, or anything that prints "ok NAME", "FAIL NAME", "skip NAME: why"
# lines and exits 0 when all is well.  Its output is shown only when it fails; skips are always shown.
# With --at-once so many run beside each other, for tests that mostly wait; one with a line "# alone"
# runs by itself, before the others.
# At the end what failed is listed once more, in a line or few for each program.
# The last line is "N passed, N failed, N skipped"; appended to $TEST_TOTALS too when that is set.
set -u
# Threads that wait sleep early: on a machine that others use, spinning would take the tests' time.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}
limit=180 at_once=1
while :; do
    case ${1:-} in
        --timeout) limit=$2; shift 2 ;;
        --at-once) at_once=$2; shift 2 ;;
        *) break ;;
    esac
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# run NUMBER PROGRAM : what is to be said in NUMBER.said, "passed failed skipped" in NUMBER.counts
run() {
    local log=$folder/$1.log program=$2 start status ms p f s why
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "$program" >"$log" 2>&1
    status=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    p=$(grep -aEc '^\[       OK \]|^ok ' "$log")
    f=$(($(grep -aE '^\[  FAILED  \] [a-z0-9_]+$' "$log" | sort -u | wc -l) + $(grep -aEc '^FAIL ' "$log")))
    s=$(($(grep -aE '^\[  SKIPPED \] [a-z0-9_]+$' "$log" | sort -u | wc -l) + $(grep -aEc '^skip ' "$log")))
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    case $status in 124 | 137) why="over $limit s" ;; *) why="exit $status" ;; esac
    {
        if [ $status -eq 0 ] && [ "$f" -eq 0 ]; then
            printf '  ok    %-50s %4d tests %6d ms\n' "${program#*/}" "$p" "$ms"
        else
            printf '  FAIL  %-50s %s\n' "${program#*/}" "$why"
            sed 's/^/        /' "$log" | tail -n 80
            [ "$(wc -l <"$log")" -gt 80 ] && grep -aE '^FAIL |^\[  FAILED' "$log" | head -n 20 | sed 's/^/        /'
        fi
        grep -aE '^skip ' "$log" | sed 's/^/        /'
    } >"$folder/$1.said"
    if [ $status -ne 0 ] || [ "$f" -ne 0 ]; then
        printf '  failed: %s (%s)\n' "${program#*/}" "$why"
        grep -aE '^FAIL |^\[  FAILED  \] [a-z0-9_]+$' "$log" | cut -c -300 | head -n 5 | sed 's/^/          /'
    fi >"$folder/$1.failed"
    echo "$p $f $s" >"$folder/$1.counts"
    rm -f "$log"
    cat "$folder/$1.said"
}

alone=() together=()
for program in "$@"; do
    if [ "$at_once" -gt 1 ] && ! grep -aqx '# alone' "$program"; then together+=("$program"); else alone+=("$program"); fi
done
number=0
for program in "${alone[@]}"; do
    number=$((number + 1))
    run $number "$program"
done
running=0
for program in "${together[@]}"; do
    if [ $running -ge "$at_once" ]; then
        wait -n
        running=$((running - 1))
    fi
    number=$((number + 1))
    run $number "$program" &
    running=$((running + 1))
done
wait
cat /dev/null "$folder"/*.failed
read -r passed failed skipped <<<"$(cat /dev/null "$folder"/*.counts | awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')"
echo "$passed passed, $failed failed, $skipped skipped"
[ -n "${TEST_TOTALS:-}" ] && echo "$passed $failed $skipped" >>"$TEST_TOTALS"
[ "$failed" -eq 0 ]
