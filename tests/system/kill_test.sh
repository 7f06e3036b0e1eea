#!/bin/bash
# kill_test.sh - kill -9 of server, agent, shims and tasks at random moments (KILLS=12), first with the server's own
# agent, then with one in a process of its own, with one that does not see the server's folder, then where every job is
# several tasks, and where these may fall alone; afterwards nothing is lost, doubled or different.  SEED=N replays;
# DATASET=FOLDER trains on other images of digits.
# Faults of docs/reliability.md: F1 F4 F6 F7 F46.
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-12} seed=${SEED:-$(($(date +%s) % 1000000))}
dataset=${DATASET:-$work/digits.made}
[ -n "${DATASET:-}" ] || "$trainyard" dataset make digits "$work/digits.made" --train 2000 --test 500 >/dev/null || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
for where in ${WHERE:-embedded remote copies together elastic}; do
    count=$(((kills + 1) / 2))
    [[ $where = @(together|elastic|copies) ]] && [ -z "${WHERE:-}" ] && count=$(((kills + 3) / 4))
    python3 "$here/kill.py" "$build" "$work" "$dataset" "$where" "$count" "$seed" >"$work/said" 2>&1 || failed=1
    cat "$work/said"
    pids+=($(pgrep -f "$work/$where" || true))
done
[ $failed -eq 0 ] || echo "  replay with: SEED=$seed KILLS=$kills${WHERE:+ WHERE=$WHERE} make system T=kill_test"
