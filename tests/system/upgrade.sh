#!/bin/bash
# upgrade.sh OLD NAME - the programs of folder OLD, of an earlier commit, are replaced by this build's while jobs run (F34, F35):
# first the server, then the agent; the tasks, their shims and what they have written stay.  Run by tests/upgrade.sh.
old=$(realpath "$1")
. "$(dirname "$0")/lib.sh"
new=$trainyard
named=$2
"$new" dataset make digits "$work/digits.made" --train 2000 --test 500 >/dev/null 2>&1 || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
spec() { echo '{"name": "'"$1"'", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 200, "activation": "relu"}, {"layer": "Dense", "units": 10}]},
    "data": {"dataset": "digits", "batch_size": 100}, "checkpoint": {"every_steps": 1000}, "train": {"steps": '"$2"'}}'; }
part() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }
runs() { [ "$(part "$1" state)" = running ] && [ "$(part "$1" step)" -gt 0 ]; }
points() { api GET "/api/v1/jobs/$1/metrics?buckets=10000" | python3 -c '
import json, sys
series = {s["name"]: dict(zip(s["steps"], s["values"])) for s in json.load(sys.stdin)["series"]}
loss = series["loss"]
assert list(loss) == sorted(loss), loss
print(max(loss), "%.9g" % loss[max(loss)])'; }
has_node() { has "$(api GET /api/v1/nodes)" "\"state\":\"$1\""; }

# --- server and agent in one process; then the programs are replaced ---
for how in TERM KILL; do
    trainyard=$old/trainyard
    serve "$how" --cpus 2
    cp -r "$work/digits.made" "$dir/datasets/digits" 2>/dev/null || { mkdir -p "$dir/datasets" && cp -r "$work/digits.made" "$dir/datasets/digits"; }
    id=$(field "$(api POST /api/v1/jobs "$(spec long 8000)")" id)
    check "${named}_${how}_job_runs" wait_for 30 runs "$id"
    shim=$(cat "$dir"/agent/attempts/*/shim.json)
    pid_before=$(field "$shim" task_pid)
    stop "$how"
    check "${named}_${how}_task_lives_without_server" kill -0 "$pid_before"
    trainyard=$new
    again --cpus 2
    check "${named}_${how}_is_shown_to_run" wait_for 5 is_state "$id" running
    check "${named}_${how}_task_is_the_same" kill -0 "$pid_before"
    check "${named}_${how}_job_ends" wait_for 90 is_final "$id"
    check "${named}_${how}_job_is_whole" same "$(part "$id" state) $(part "$id" step) $(part "$id" attempt)" "succeeded 8000 1"
    check "${named}_${how}_last_point" has "$(points "$id")" "8000 "
    next=$(field "$(api POST /api/v1/jobs "$(spec next 8000)")" id)
    check "${named}_${how}_new_job_ends" wait_for 90 is_state "$next" succeeded
    check "${named}_${how}_folder_is_sound" has "$("$new" db check --dir "$dir" 2>&1)" "nothing is wrong"
    check "${named}_${how}_older_copy_is_kept" test -n "$(find "$dir" -name '*.schema-*')"
    stop TERM
done
"$old/trainyard" serve --dir "$dir" --port 0 >"$work/back.log" 2>&1
check "${named}_back_is_refused" has "$(cat "$work/back.log")" "use a newer trainyard"

# --- an agent in a process of its own: first the server is replaced, under the old agent; then the agent, over the old shim ---
trainyard=$old/trainyard
port=$(free_port)
serve far --no-agent --agents-port "$port"
mkdir -p "$dir/datasets" && cp -r "$work/digits.made" "$dir/datasets/digits"
join=$("$trainyard" token create --join --dir "$dir")
lend() { # PROGRAM
    "$1" agent --server "127.0.0.1:$port" --token "$join" --dir "$work/node" --name afar --cpus 2 >>"$work/node.log" 2>&1 &
    agent=$!
    pids+=("$agent")
}
lend "$old/trainyard"
id=$(field "$(api POST /api/v1/jobs "$(spec long 200000)")" id)
check "${named}_far_job_runs" wait_for 30 runs "$id"
pid_before=$(field "$(cat "$work"/node/attempts/*/shim.json)" task_pid)
stop KILL
trainyard=$new
again --no-agent --agents-port "$port"
if [ "$named" = first ]; then # of before certificates: it needs this version and a new token, and its tasks run on meanwhile
    check first_far_old_agent_is_kept_out wait_for 10 grep -q 'what="sync" code=UNAVAILABLE' "$work/node.log"
    join=$("$trainyard" token create --join --dir "$dir")
else
    check "${named}_far_old_agent_is_let_in" wait_for 10 has_node joined
    check "${named}_far_is_shown_to_run" wait_for 10 is_state "$id" running
    short=$(field "$(api POST /api/v1/jobs "$(spec short 200)")" id)
    check "${named}_far_old_agent_ends_new_jobs" wait_for 20 is_final "$short"
    check "${named}_far_old_agent_runs_new_jobs" is_state "$short" succeeded
fi
kill -KILL "$agent"
check "${named}_far_task_lives_without_agent" kill -0 "$pid_before"
lend "$new"
check "${named}_far_old_shim_is_adopted" wait_for 10 has "$(sleep 1; tail -n 3 "$work/node.log")" "tasks=1 msg=joined"
check "${named}_far_task_is_the_same" kill -0 "$pid_before"
stop_it() { api POST "/api/v1/jobs/$id:cancel" '{}' >/dev/null; }
check "${named}_far_old_shim_obeys" stop_it
check "${named}_far_job_ends" wait_for 30 is_state "$id" cancelled
check "${named}_far_one_attempt" same "$(part "$id" attempt)" 1
check "${named}_far_checkpoint_was_told" has "$(api GET "/api/v1/jobs/$id/checkpoints")" '"step":'
check "${named}_far_folder_is_empty" wait_for 10 test -z "$(sleep 1; ls "$work/node/attempts")"
