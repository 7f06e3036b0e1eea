#!/bin/bash
# anew_far_test.sh - two nodes that do not see the server's folder are lost at once, each with a worker: both workers are placed anew on a
# third such node, fetch there what they need, and the training ends as if nothing had been.
# Faults of docs/reliability.md: F48.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 1000 --lost-ms 5000 --grace-ms 1000 --backoff-ms 100
digits "$dir"
join_token=$("$trainyard" token create --join --dir "$dir")
. "$here/anew.sh"
start one 4 --no-shared-folder
for name in two three four; do start $name 1 --no-shared-folder; done

# Two of the first node's processors are taken while tasks are placed, the parameter server has the others.
filler=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "tasks": {"worker": {"replicas": 1, "cpus": 2}}}')" number)
check nodes_are_full wait_for 20 is_state "$filler" running
train far '{"mode": "async"}' '{"ps": {"replicas": 1, "cpus": 2}, "worker": 3}' 20000 1024
check trains wait_for 60 is_behind far 50
check server_is_on_one task_is far ps 0 node one
api POST "/api/v1/jobs/$filler:cancel" '{}' >/dev/null
check there_is_room wait_for 20 is_final "$filler"
lost=(1 2)
for i in "${lost[@]}"; do destroy "$(task_of far worker "$i" node)"; done
for i in "${lost[@]}"; do
    check "worker_${i}_is_placed_anew" wait_for 30 task_is far worker "$i" node one
    check "worker_${i}_runs" wait_for 20 task_is far worker "$i" state running
done
for i in "${lost[@]}"; do check "worker_${i}_takes_part_again" wait_for 60 said far "worker $i is back"; done
check is_running is_state far running
check ends wait_for 120 is_final far
check succeeds is_state far succeeded
check in_its_first_attempt same "$(field "$(api GET /api/v1/jobs/far)" attempt)" 1
check costs_two_restarts same "$(field "$(api GET /api/v1/jobs/far)" restarts)" 2
check all_steps same "$(step_of far)" 20000
check has_learnt python3 -c 'import json, sys; sys.exit(not (json.loads(sys.argv[1])["last"]["val_accuracy"] > 0.8))' "$(api GET /api/v1/jobs/far)"
check last_checkpoint_is_at_the_server has "$(api GET /api/v1/jobs/far/checkpoints/20000)" "model.ckpt-20000.index"
check nothing_is_left wait_for 20 sh -c "! ls '$work/one/attempts' | grep -q ."
stop TERM
check nothing_is_wrong "$trainyard" db check --dir "$dir"
