#!/bin/bash
# together_yard_test.sh - a server starts the tasks of one model, and starts them again; who waits for whom is told.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F46.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/together.sh"

task_of() { for p in $(pgrep -f "^$build/trainyard-task train spec.json"); do tr '\0' '\n' <"/proc/$p/environ" | tr '\n' ' ' | grep -q "TRAINYARD_ROLE=$1 TRAINYARD_INDEX=$2" && echo "$p"; done | head -n 1; }
slow_down() { # PID : stopped four fifths of the time, until it is ended
    exec timeout 40 python3 -c 'import os, signal, sys, time
while True:
    os.kill(int(sys.argv[1]), signal.SIGSTOP); time.sleep(.024)
    os.kill(int(sys.argv[1]), signal.SIGCONT); time.sleep(.006)' "$1" 2>/dev/null
}
speed_up() { # PID : as it was before
    kill $slowing
    wait $slowing
    kill -CONT "$1"
}

# --- a server starts them ---
serve yard --cpus 8 --grace-ms 5000 --backoff-ms 100
export TRAINYARD_DIR=$dir
"$trainyard" dataset add digits --from "$work/digits" >/dev/null
spec job 16 1500 '{"ps": 1, "worker": 2}'
"$trainyard" submit job.json >/dev/null
wait_for 30 sh -c "ls '$dir'/jobs/*/checkpoints/checkpoint"
victim=$(task_of ps 0)
check a_ps_runs test -n "$victim"
kill -KILL "$victim"
check job_ends wait_for 60 is_final job
check job_succeeds is_state job succeeded
check tried_again same "$(field "$(api GET /api/v1/jobs/job)" attempt)" 2
spec quiet 16 1500 '{"ps": 1, "worker": 2}'
check same_as_undisturbed near "$(field "$(api GET '/api/v1/jobs/job/metrics?names=loss')" series 0 values -1)" "$(loss "$(run_spec quiet q1)")"
strategy alone '{"mode": "async"}' '{"ps": 1, "worker": 2}' 6000
"$trainyard" submit alone.json >/dev/null
wait_for 30 is_state alone running
wait_for 30 sh -c "ls '$dir'/jobs/*/checkpoints/checkpoint"
sleep 1
kill -KILL "$(task_of worker 1)"
check a_worker_comes_back_alone wait_for 60 is_final alone
check its_job_succeeds is_state alone succeeded
check in_its_first_attempt same "$(field "$(api GET /api/v1/jobs/alone)" attempt)" 1
spec stopped 16 1000000 '{"ps": 1, "worker": 2}'
"$trainyard" submit stopped.json >/dev/null
wait_for 30 is_state stopped running
# a slow parameter server : both workers wait for it, more than one waits for its part of the batch of the other
slow=$(task_of ps 0)
slow_down "$slow" &
slowing=$!
says_who_waits() { "$trainyard" top stopped >top && grep -q '^worker:0 .* ps:0 ' top && grep -q '^worker:1 .* ps:0 ' top; }
check top_says_who_waits_for_whom wait_for 20 says_who_waits
speed_up "$slow"
# a slow worker : who is late is an event of the job, with numbers
slow=$(task_of worker 1)
slow_down "$slow" &
slowing=$!
says_who_is_late() { curl -s -m 1 -H "Authorization: Bearer $token" "$url/api/v1/jobs/stopped/events" | grep -q 'worker:1 is a straggler: its share of a step takes'; }
check straggler_is_an_event wait_for 30 says_who_is_late
speed_up "$slow"
follow() { # SECONDS : where the time of its steps goes, a line each time it is told
    curl -sN -m "$1" -H "Authorization: Bearer $token" -H 'Accept: application/x-ndjson' "$url/api/v1/jobs/stopped/events?topics=timeline"
}
check times_come_as_they_are_told python3 -c '
import json, sys
events = [e for e in map(json.loads, sys.stdin.read().splitlines()) if e]
steps = [e["data"]["step"] for e in events]
assert len(steps) >= 2 and steps == sorted(set(steps)), steps
for data in (e["data"] for e in events):
    tasks = {t["task"]: t for t in data["tasks"]}
    assert set(tasks) == {"ps:0", "worker:0", "worker:1"}, tasks
    assert all(0 < t["send_us"] < t["us"] and 0 <= t["receive_us"] <= t["wait_us"] <= t["us"] for t in tasks.values()), tasks
    assert {f["task"] for f in tasks["ps:0"]["from"] if f["bytes"] > 0} == {"worker:0", "worker:1"}, tasks
    rounds = {a["task"]: a["recent_us"] for a in data["arrivals"]}
    assert len(rounds["worker:0"]) == len(rounds["worker:1"]) == 31 and min(rounds["worker:0"]) > 0, rounds
' < <(follow 6)
"$trainyard" cancel stopped >/dev/null
check cancel_ends wait_for 20 is_final stopped
check cancelled is_state stopped cancelled
number=$(field "$(api GET /api/v1/jobs/stopped)" number)
check cancel_leaves_a_checkpoint test -e "$dir/jobs/$number/checkpoints/checkpoint"
check nothing_is_left wait_for 10 sh -c "! pgrep -f '$build/trainyard-task train spec.jso[n]'"
