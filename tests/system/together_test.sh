#!/bin/bash
# together_test.sh - one model over several tasks: what one task with the whole batch learns, to the rounding of sums,
# and always with the same bits; tasks that are killed; a server that starts them, and starts them again.
#
# It looks for tasks by their command lines:
# alone
. "$(dirname "$0")/lib.sh"

cd "$work" || exit 1
"$trainyard" dataset make digits "$work/digits" >/dev/null
# spec NAME BATCH STEPS TASKS : smooth, so that sums that round otherwise stay near each other
spec() {
    cat >"$1.json" <<END
{"name": "$1", "seed": 5, "model": {"layers": [
   {"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh", "kernel_regularizer": {"name": "L2", "l2": 0.001}}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": $2}, "checkpoint": {"every_steps": 20},
 "train": {"steps": $3, "optimizer": {"name": "SGD", "learning_rate": 0.05, "momentum": 0.9}}, "tasks": $4}
END
}
# run_spec SPEC OUT [OPTION...] : its last line
run_spec() { local name=$1 out=$2; shift 2; timeout 120 "$trainyard" train "$name.json" --data digits --out "$out" --threads 1 --json "$@" 2>"$out.log" | tail -n 1; }
loss() { field "$1" metrics loss; }
near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 2e-5 * abs(b))' "$1" "$2" || { echo "  found $1, wanted $2"; false; }; }
same_bits() { cmp "$1/checkpoints/model.ckpt-$3.data-00000-of-00001" "$2/checkpoints/model.ckpt-$3.data-00000-of-00001"; }

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

# --- tasks that are lost ---
spec long 16 1000000 '{"ps": 1, "worker": 2}'
task_of() { # ROLE INDEX : the process that has it
    local p
    for p in $(pgrep -f "trainyard-task train long.json"); do
        tr '\0' '\n' <"/proc/$p/environ" | grep -q "^TF_CONFIG=.*\"type\": \"$1\", \"index\": $2" && echo "$p" && return
    done
    false
}
for victim in "worker 1" "ps 0"; do
    # shellcheck disable=SC2086
    { run_spec long "long" >long.end; } &
    wait_for 20 test -e long/checkpoints/checkpoint
    # shellcheck disable=SC2086
    kill -KILL "$(task_of $victim)"
    wait $!
    check "lost_${victim/ /_}_is_named" has "$(cat long.end)" "/job:${victim% *}/replica:0/task:${victim#* }"
    check "lost_${victim/ /_}_is_unavailable" has "$(cat long.end)" UNAVAILABLE
    check "lost_${victim/ /_}_leaves_none" wait_for 10 sh -c '! pgrep -f "trainyard-task train long.jso[n]"'
    rm -rf long
done

# --- wrong ---
sed 's/"ps": 1/"chief": 1/' long.json >chief.json
check chief_is_refused has "$(run_spec chief c1)" "/tasks/chief"
sed 's/"tasks"/"strategy": {"mode": "async"}, "tasks"/' long.json >async.json
check async_is_refused has "$(run_spec async c2)" "/strategy/mode"
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
spec stopped 16 1000000 '{"ps": 1, "worker": 2}'
"$trainyard" submit stopped.json >/dev/null
wait_for 30 is_state stopped running
sleep 1
"$trainyard" cancel stopped >/dev/null
check cancel_ends wait_for 20 is_final stopped
check cancelled is_state stopped cancelled
number=$(field "$(api GET /api/v1/jobs/stopped)" number)
check cancel_leaves_a_checkpoint test -e "$dir/jobs/$number/checkpoints/checkpoint"
check nothing_is_left wait_for 10 sh -c "! pgrep -f '$build/trainyard-task train spec.jso[n]'"
