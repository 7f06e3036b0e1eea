#!/bin/bash
# upgrade.sh - builds earlier commits beside this one, and has their programs replaced by ours while jobs run: the first
# that had servers, agents and jobs, and the last with an older schema of control.db.  Where the history does not reach so
# far (a shallow clone) that is said, and is no proof.
# Faults of docs/reliability.md: F34 F35.
set -u
cd "$(dirname "$0")/.."
build=${TRAINYARD_BUILD:-build}
first=040d99a
newest=$(find db/migrate -name 'control-*.sql' | sort | tail -n 1)
before=$(git log -1 --format=%h --diff-filter=A -- "$newest")~1
passed=0 failed=0 missing=0

upgrade() { # name, commit
    local tree=build/upgrade/$1 said=build/upgrade/$1.said
    if ! git cat-file -e "$2^{commit}" 2>/dev/null; then
        echo "skip upgrade_from_$1: this clone has no history of $2"
        missing=$((missing + 1))
        return
    fi
    mkdir -p build/upgrade
    [ -d "$tree" ] || git worktree add --detach "$tree" "$2" >/dev/null || exit 1
    git -C "$tree" checkout -q --detach "$2" || exit 1
    echo "  building $1: $(git -C "$tree" log -1 --format='%h of %cs, %s')"
    make --no-print-directory -C "$tree" -j"$(nproc)" build/trainyard build/trainyard-task build/trainyard-shim >"$said" 2>&1 ||
        { echo "FAIL upgrade_from_$1: it does not build"; tail -n 20 "$said"; failed=$((failed + 1)); return; }
    TRAINYARD_BUILD=$build tests/system/upgrade.sh "$tree/build" "$1" >"$said" 2>&1
    cat "$said"
    passed=$((passed + $(grep -c '^ok' "$said"))) failed=$((failed + $(grep -c '^FAIL' "$said")))
}

upgrade first "$first"
upgrade before "$before"
echo "$passed passed, $failed failed, $missing versions missing"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
