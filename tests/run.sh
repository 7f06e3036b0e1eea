#!/bin/bash
# run.sh [--timeout S] PROGRAM... - runs test programs one after the other and adds up.
#
# A program is a cmocka program, or anything that prints "ok NAME", "FAIL NAME", "skip NAME: why"
# lines and exits 0 when all is well.  Its output is shown only when it fails; skips are always shown.
# The last line is "N passed, N failed, N skipped"; appended to $TEST_TOTALS too when that is set.
set -u
# Threads that wait sleep early: on a machine that others use, spinning would take the tests' time.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-1000}
limit=180
[ "${1:-}" = --timeout ] && { limit=$2; shift 2; }
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    start=$(date +%s%N)
    timeout --kill-after=5 "$limit" "$program" >"$log" 2>&1
    status=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    p=$(grep -aEc '^\[       OK \]|^ok ' "$log")
    f=$(grep -aEc '^\[  FAILED  \] [a-z0-9_]+$|^FAIL ' "$log")
    s=$(grep -aEc '^\[  SKIPPED \] [a-z0-9_]+$|^skip ' "$log")
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if [ $status -eq 0 ] && [ "$f" -eq 0 ]; then
        printf '  ok    %-50s %4d tests %6d ms\n' "${program#*/}" "$p" "$ms"
    else
        case $status in 124 | 137) why="over $limit s" ;; *) why="exit $status" ;; esac
        printf '  FAIL  %-50s %s\n' "${program#*/}" "$why"
        sed 's/^/        /' "$log" | tail -n 80
        [ "$(wc -l <"$log")" -gt 80 ] && grep -aE '^FAIL |^\[  FAILED' "$log" | head -n 20 | sed 's/^/        /'
    fi
    grep -aE '^skip ' "$log" | sed 's/^/        /'
done
echo "$passed passed, $failed failed, $skipped skipped"
[ -n "${TEST_TOTALS:-}" ] && echo "$passed $failed $skipped" >>"$TEST_TOTALS"
[ "$failed" -eq 0 ]
