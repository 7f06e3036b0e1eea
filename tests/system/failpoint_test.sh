#!/bin/bash
# failpoint_test.sh - kill -9 at failpoints: before and after commits and sends of server, agent, shim and task
# (LIVES=8 of them drawn, or "all", or NAME@N,...; SEED=N draws the same again).
# Faults of docs/reliability.md: F1 F4 F5.
. "$(dirname "$0")/lib.sh"

"$trainyard" dataset make digits "$work/digits.made" --train 200 --test 100 >/dev/null 2>&1 || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
python3 "$here/failpoint.py" "$build" "$work" "$work/digits.made" "${LIVES:-8}" "${LIVES_AT_ONCE:-2}" >"$work/said" 2>&1 || failed=1
cat "$work/said"
