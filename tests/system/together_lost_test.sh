#!/bin/bash
# together_lost_test.sh - tasks of one model that are killed: the others say which, or wait for it to come back.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F46.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/together.sh"

# --- tasks that are lost ---
spec long 16 1000000 '{"ps": 1, "worker": 2}'
task_of() { # ROLE INDEX : the process that has it
    local p
    for p in $(pgrep -f "trainyard-task train long.json"); do
        tr '\0' '\n' <"/proc/$p/environ" | grep -q "^TF_CONFIG=.*\"type\": \"$1\", \"index\": $2" && echo "$p" && return
    done
    false
}
for case in "worker 1" "ps 0" "worker 1 async" "worker 1 backup" "ps 0 backup" "worker 1 allreduce" "worker 1 pipeline"; do
    read -r role index how <<<"$case"
    victim="$role $index"
    spec long 16 1000000 '{"ps": 1, "worker": 2}'
    case ${how:-} in
        async) strategy long '{"mode": "async"}' '{"ps": 1, "worker": 2}' 1000000 ;;
        allreduce | pipeline) strategy long "{\"mode\": \"$how\"}" '{"worker": 2}' 1000000 ;;
        backup) strategy long '{"backup_workers": 1}' '{"ps": 1, "worker": 2}' 1000000 ;;
    esac
    sed -i 's/"seed"/"restart": {"max": 0}, "seed"/' long.json
    # shellcheck disable=SC2086
    { run_spec long "long" >long.end; } &
    wait_for 60 test -e long/checkpoints/checkpoint
    # shellcheck disable=SC2086
    wait_for 20 task_of $victim
    # shellcheck disable=SC2086
    kill -KILL "$(task_of $victim | head -n 1)"
    wait $!
    name=lost_${role}_${index}${how:+_$how}
    check "${name}_is_named" has "$(cat long.end)" "/job:$role/replica:0/task:$index"
    check "${name}_is_unavailable" has "$(cat long.end)" UNAVAILABLE
    check "${name}_leaves_none" wait_for 10 sh -c '! pgrep -f "trainyard-task train long.jso[n]"'
    rm -rf long
done

# --- workers that come back ---
for how in '{"mode": "async"}' '{"backup_workers": 1}'; do
    name=$(grep -o 'async\|backup' <<<"$how")
    strategy long "$how" '{"ps": 1, "worker": 3}' 1000000
    { timeout 120 "$trainyard" train long.json --data digits --out "back" --threads 1 >long.end 2>&1; } &
    wait_for 20 test -e back/checkpoints/checkpoint
    kill -KILL "$(task_of worker 1)" "$(task_of worker 2)"
    check "lost_workers_come_back_$name" wait_for 30 sh -c 'grep -q "worker 1 is back" long.end && grep -q "worker 2 is back" long.end'
    kill -KILL "$(task_of worker 2)"
    check "and_again_$name" wait_for 30 sh -c '[ "$(grep -o "worker 2 is back" long.end | wc -l)" = 2 ]'
    kill -TERM "$(pgrep -f "^[^ ]*trainyard-task train long.json --data" | head -n 1)"
    wait $!
    check "all_end_$name" wait_for 10 sh -c '! pgrep -f "trainyard-task train long.jso[n]"'
    rm -rf back
done
