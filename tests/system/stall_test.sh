#!/bin/bash
# stall_test.sh - tasks that hang (F9): the watchdog of stop.stall_seconds ends them, and they are tried again.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 4 --backoff-ms 100
digits "$dir"
export TRAINYARD_DIR=$dir
attempt_is() { [ "$(field "$(api GET "/api/v1/jobs/$1")" attempt)" = "$2" ]; }
steps() { [ "$(field "$(api GET "/api/v1/jobs/$1")" step)" -ge "$2" ]; }
task_of() { sed -n 's/.*"task_pid": *\([0-9]*\).*/\1/p' "$dir"/agent/attempts/*/shim.json; }

# --- a training whose process stands still ---
job=$(field "$(api POST /api/v1/jobs '{"example": "digits-mlp", "name": "hangs", "train": {"steps": 2000000},
    "checkpoint": {"every_steps": 50}, "stop": {"stall_seconds": 2}, "restart": {"max": 2}}')" number)
wait_for 20 steps "$job" 100
kill -STOP "$(task_of)"
wait_for 20 attempt_is "$job" 2
check hanging_training_is_tried_again attempt_is "$job" 2
check last_step_is_named has "$(api GET "/api/v1/jobs/$job/tasks?attempt=1")" "it hangs: no step for 2 s (stop.stall_seconds); the last was step "
sleep 5 # longer than it may stall
check going_on_is_no_stall attempt_is "$job" 2
"$trainyard" kill "$job" >/dev/null; wait_for 10 is_final "$job"

# --- a program: lines count as well ---
job=$(field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; echo now; sleep 60"],
    "stop": {"stall_seconds": 2}, "restart": {"max": 0}}')" number)
wait_for 20 is_final "$job"
check hanging_program_is_named has "$(api GET "/api/v1/jobs/$job")" "it hangs: nothing was written for 2 s (stop.stall_seconds)"
check lines_are_no_stall has "$("$trainyard" logs "$job")" now
