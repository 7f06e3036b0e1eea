#!/bin/bash
# prove.sh - the full counts, part by part: each part that passes is remembered under build/prove for
# this commit, so that a run that was broken off goes on where it was.  Results go to docs/proof.md.
set -u
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short HEAD)
done_folder=build/prove/$commit
mkdir -p "$done_folder"
report=docs/proof.md
[ -s "$report" ] || printf '# Proof\n\nThe full counts, as `make prove` ran them.\n\n| date | commit | part | result |\n|---|---|---|---|\n' >"$report"
failed=0

part() { # name, command...
    local name=$1
    shift
    if [ -e "$done_folder/$name" ]; then
        echo "  done  $name: $(cat "$done_folder/$name")"
        return
    fi
    echo "  run   $name: $*"
    if "$@" >"$done_folder/$name.log" 2>&1; then
        tail -n 1 "$done_folder/$name.log" >"$done_folder/$name"
        echo "  ok    $name: $(cat "$done_folder/$name")"
    else
        echo "  FAIL  $name: see $done_folder/$name.log"
        tail -n 20 "$done_folder/$name.log" | sed 's/^/        /'
        failed=1
    fi
    printf '| %s | %s | %s | %s |\n' "$(date -u +%F)" "$commit" "$name" \
        "$(tail -n 1 "$done_folder/$name.log" | tr '|' '/')" >>"$report"
}

part check make check
for source in tests/fuzz/fuzz_*.c; do
    name=${source##*/fuzz_}
    part "fuzz-${name%.c}" make fuzz F="${name%.c}" RUNS=1000000
done
part sim make sim-check SEEDS=1000000
part kills make system T=kill_test KILLS=500 TIMEOUT=7200
part resume make system T=resume KILLS=100 TIMEOUT=3600
exit $failed
