#!/bin/bash
# together_test.sh - one model over several tasks: what one task with the whole batch learns, to the rounding of sums,
# and always with the same bits; tasks that are killed; a server that starts them, and starts them again.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F46.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/together.sh"

# --- exactness ---
spec alone 48 40 '{"worker": 1}'
spec served 16 40 '{"ps": 2, "worker": 3}'
spec equals 24 40 '{"worker": 2}'
alone=$(run_spec alone a1)
served=$(run_spec served s1)
check three_workers_and_two_ps near "$(loss "$served")" "$(loss "$alone")"
check two_workers_alone near "$(loss "$(run_spec equals e1)")" "$(loss "$alone")"
run_spec served s2 --steps 20 >/dev/null
check resumed near "$(loss "$(run_spec served s2 --resume)")" "$(loss "$served")"
check resumed_bit_for_bit same_bits s1 s2 40
check evaluates_in_one_task has "$("$trainyard" evaluate s1 --data digits)" "after step 40"
check both_ps_have_variables test "$(strings s1/events.out.tfevents.* | grep -o '/job:ps/replica:0/task:[01]' | sort -u | wc -l)" = 2

# --- workers that do not wait for each other, or are not waited for; gradients in 16 bits ---
ends_below() { python3 -c 'import sys; sys.exit(float(sys.argv[1]) > float(sys.argv[2]))' "$(field "$1" metrics val_loss)" "$2" || { echo "  found $1"; false; }; }
strategy apart '{"mode": "async"}' '{"ps": 2, "worker": 3}' 120
check they_learn_apart ends_below "$(run_spec apart p1)" 1.6
check apart_it_goes_on ends_below "$(run_spec apart p1 --steps 240 --resume)" 1.4
strategy some '{"backup_workers": 1}' '{"ps": 1, "worker": 3}' 120
check they_learn_from_those_that_come_first ends_below "$(run_spec some b1)" 1.6
check late_ones_are_counted has "$(strings b1/events.out.tfevents.* | sort -u)" late_batches
strategy slow '{"backup_workers": 1}' '{"ps": 1, "worker": 3}' 1000000
{ run_spec slow b2 >slow.end; } &
wait_for 20 test -e b2/checkpoints/checkpoint
slow=$(for p in $(pgrep -f "trainyard-task train slow.json"); do tr '\0' '\n' <"/proc/$p/environ" | grep -q '^TF_CONFIG=.*"type": "worker", "index": 2' && echo "$p"; done)
kill -STOP "$slow"
newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' b2/checkpoints/checkpoint; }
from=$(newest)
goes_on() { [ "$(newest)" -gt $((from + 60)) ]; }
check one_that_stands_still_is_not_waited_for wait_for 12 goes_on
kill -CONT "$slow"
from=$(newest)
check it_comes_back wait_for 20 goes_on
kill -TERM "$(pgrep -f "^[^ ]*trainyard-task train slow.json --data" | head -n 1)"
wait $!
check it_ends_when_told has "$(cat slow.end)" "--resume"
strategy narrow '{"compress": "bfloat16"}' '{"ps": 2, "worker": 3}' 40
narrow=$(run_spec narrow n1)
check narrow_gradients_learn_much_the_same python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not 0 < abs(a - b) < 0.01 * b)' "$(loss "$narrow")" "$(loss "$alone")"
run_spec narrow n2 >/dev/null
check and_always_the_same same_bits n1 n2 40

strategy ring '{"mode": "allreduce"}' '{"worker": 3}' 40
ring=$(run_spec ring r1)
check workers_among_themselves near "$(loss "$ring")" "$(loss "$alone")"
run_spec ring r2 --steps 20 >/dev/null
check among_themselves_resumed near "$(loss "$(run_spec ring r2 --resume)")" "$(loss "$ring")"
check among_themselves_bit_for_bit same_bits r1 r2 40
check what_the_first_has_is_saved has "$("$trainyard" evaluate r1 --data digits)" "after step 40"

strategy stages '{"mode": "pipeline"}' '{"worker": 3}' 40
sed -i 's/"batch_size": 16/"batch_size": 48/' stages.json
check a_pipeline near "$(loss "$(run_spec stages g1)")" "$(loss "$alone")"
run_spec stages g2 --steps 20 >/dev/null
run_spec stages g2 --resume >/dev/null
check pipeline_bit_for_bit same_bits g1 g2 40
check stages_evaluate_in_one_task has "$("$trainyard" evaluate g1 --data digits)" "after step 40"
spec pinned 48 40 '{"worker": 2}, "placement": {"pins": {"dense_1": "/job:worker/task:1"}}'
check pinned_layers near "$(loss "$(run_spec pinned i1)")" "$(loss "$alone")"

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

# --- wrong ---
spec long 16 1000000 '{"ps": 1, "worker": 2}'
sed 's/"ps": 1/"chief": 1/' long.json >chief.json
check chief_is_refused has "$(run_spec chief c1)" "/tasks/chief"
strategy pipe '{"mode": "pipeline"}' '{"ps": 1, "worker": 2}' 10
check pipeline_has_no_ps has "$(run_spec pipe c2)" "/tasks/ps"
strategy ring '{"mode": "allreduce"}' '{"ps": 1, "worker": 2}' 10
check allreduce_has_no_ps has "$(run_spec ring c2)" "/tasks/ps"
strategy all '{"backup_workers": 2}' '{"worker": 2}' 10
check all_in_backup_is_refused has "$(run_spec all c3)" "/strategy/backup_workers"
far=$(TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1", "10.9.9.9:2"], "ps": ["127.0.0.1:3"]}, "task": {"type": "worker", "index": 0}}' run_spec long far)
check another_machine_needs_a_certificate has "$far" "10.9.9.9"
few=$(TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}' run_spec long few)
check other_numbers_are_refused has "$few" "the spec has 2"

# --- a server starts them ---
serve yard --cpus 8 --grace-ms 5000 --backoff-ms 100
export TRAINYARD_DIR=$dir
"$trainyard" dataset add digits --from "$work/digits" >/dev/null
spec job 16 1500 '{"ps": 1, "worker": 2}'
"$trainyard" submit job.json >/dev/null
wait_for 30 sh -c "ls '$dir'/jobs/*/checkpoints/checkpoint"
victim=$(for p in $(pgrep -f "$build/trainyard-task train spec.json"); do tr '\0' '\n' <"/proc/$p/environ" | grep -q TRAINYARD_ROLE=ps && echo "$p"; done | head -n 1)
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
victim() { for p in $(pgrep -f "^$build/trainyard-task train spec.json"); do tr '\0' '\n' <"/proc/$p/environ" | tr '\n' ' ' | grep -q 'TRAINYARD_ROLE=worker TRAINYARD_INDEX=1' && echo "$p"; done | head -n 1; }
wait_for 30 sh -c "ls '$dir'/jobs/*/checkpoints/checkpoint"
sleep 1
kill -KILL "$(victim)"
check a_worker_comes_back_alone wait_for 60 is_final alone
check its_job_succeeds is_state alone succeeded
check in_its_first_attempt same "$(field "$(api GET /api/v1/jobs/alone)" attempt)" 1
spec stopped 16 1000000 '{"ps": 1, "worker": 2}'
"$trainyard" submit stopped.json >/dev/null
wait_for 30 is_state stopped running
says_who_waits() { "$trainyard" top stopped | grep -q '^worker:1 .* ps:0 '; }
check top_says_who_waits_for_whom wait_for 20 says_who_waits
# stopped four fifths of the time : who is late is an event of the job, with numbers
slow=$(for p in $(pgrep -f "^$build/trainyard-task train spec.json"); do tr '\0' '\n' <"/proc/$p/environ" | tr '\n' ' ' | grep -q 'TRAINYARD_ROLE=worker TRAINYARD_INDEX=1' && echo "$p"; done | head -n 1)
timeout 40 python3 -c 'import os, signal, sys, time
while True:
    os.kill(int(sys.argv[1]), signal.SIGSTOP); time.sleep(.024)
    os.kill(int(sys.argv[1]), signal.SIGCONT); time.sleep(.006)' "$slow" 2>/dev/null &
slowing=$!
says_who_is_late() { curl -s -m 1 -H "Authorization: Bearer $token" "$url/api/v1/jobs/stopped/events" | grep -q 'worker:1 is a straggler: its share of a step takes'; }
check straggler_is_an_event wait_for 30 says_who_is_late
kill $slowing
wait $slowing
kill -CONT "$slow"
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
