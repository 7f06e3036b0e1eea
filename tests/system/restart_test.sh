#!/bin/bash
# restart_test.sh - after which faults a job is tried again, and on which nodes.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 4 --backoff-ms 100 --grace-ms 1000
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'

# runs RESTART SCRIPT : the number of a job that is this shell script
runs() { field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "'"$2"'"], "restart": '"$1"'}')" number; }

# --- which faults ---
job=$(runs '{"max": 3}' 'exit 3')
check "its own error is not tried again" wait_for 20 is_state "$job" failed
check "... not once" same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" 1
job=$(runs '{"max": 3, "on": ["user"]}' 'test $TRAINYARD_ATTEMPT = 3')
check "unless the spec says so" wait_for 20 is_state "$job" succeeded
check "... in its third attempt" same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" 3
job=$(runs '{"max": 3, "never_on": ["crash"]}' 'kill -9 $$')
check "a fault that the spec takes away is not, either" wait_for 20 is_state "$job" failed
check "... and it is said why" has "$(api GET "/api/v1/jobs/$job/explain")" 'no restart on \"crash\"'
check "the spec is shown with all of it" has "$(api GET "/api/v1/jobs/$job/spec")" '"on": ["stopped", "memory", "lost", "start"], "exclude_bad_nodes": false'
body=$(api POST /api/v1/jobs '{"command": ["true"], "restart": {"on": ["bad luck"]}}')
check "an unknown fault is refused" has "$body" 'unknown fault \"bad luck\"'

# --- too much memory (F27) ---
beside=$(runs '{"max": 0}' 'sleep 3')
job=$(field "$(api POST /api/v1/jobs '{"command": ["python3", "-c", "import time; held = bytearray(300 << 20); time.sleep(100)"],
    "tasks": {"worker": {"cpus": 1, "memory_bytes": 67108864}}, "restart": {"max": 1}}')" number)
check too_much_memory_ends_it wait_for 20 is_state "$job" failed
check too_much_memory_is_named has "$(api GET "/api/v1/jobs/$job")" "it used more than the 67108864 bytes of memory that it asked for"
check too_much_memory_is_tried_so_often same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" 2
check too_much_memory_costs_no_other wait_for 10 is_state "$beside" succeeded

# --- which nodes ---
job=$(runs '{"max": 9, "exclude_bad_nodes": 2}' 'kill -9 $$')
waits_for() { has "$(api GET "/api/v1/jobs/$job/explain")" "\"code\":\"$1\""; }
check "a node that failed it twice is passed over" wait_for 20 waits_for EXCLUDED
check "... after two attempts" same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" 2
stop KILL; again --cpus 4 --backoff-ms 100 --grace-ms 1000
check "... after a crash of the server, too" wait_for 20 waits_for EXCLUDED
check "others go there" wait_for 20 is_state "$(runs '{}' true)" succeeded
"$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$("$trainyard" token create --dir "$dir" --join)" --dir "$work/second" --name second --cpus 2 >"$work/second.log" 2>&1 &
pids+=($!)
attempts() { same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" "$1"; }
check "it goes to a node that comes" wait_for 20 attempts 4
check "... and passes over that one, too" wait_for 20 waits_for EXCLUDED
check "... as is said" has "$(api GET "/api/v1/jobs/$job/explain")" "and 1 more, where it has failed 2 times"
