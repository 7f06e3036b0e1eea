#!/bin/bash
# destroyed_test.sh - a node is destroyed with its disk while it trains (F7, F8): the job goes on elsewhere from its last checkpoint, to
# the same numbers, each once; nothing of it hangs on what was on the node; a new machine may take the node's name.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 500 --lost-ms 2000 --grace-ms 1000 --backoff-ms 100
digits "$dir"
join_token=$("$trainyard" token create --join --dir "$dir")
# start NAME FOLDER : an agent in a session of its own, so that all of the machine can be killed
start() {
    setsid "$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$join_token" --dir "$2" --name "$1" --cpus 2 >>"$work/$1.log" 2>&1 &
    pids+=("$!")
    agents[$1]=$!
}
declare -A agents
node_is() { same "$(field "$(api GET "/api/v1/nodes/$1")" state)" "$2" >/dev/null; }
start one "$work/one"
start two "$work/two"
check both_join wait_for 20 node_is one joined
check both_are_there wait_for 20 node_is two joined

train() {
    api POST /api/v1/jobs "{\"name\": \"$1\", \"seed\": 5, \"data\": {\"dataset\": \"digits\", \"batch_size\": 50}, \"restart\": {\"max\": 3}, \"checkpoint\": {\"every_steps\": 100},
        \"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 256, \"activation\": \"relu\"}, {\"layer\": \"Dense\", \"units\": 10}]},
        \"train\": {\"steps\": 3000, \"optimizer\": {\"name\": \"Adam\", \"learning_rate\": 0.001}}}" >"$work/made"
    field "$(cat "$work/made")" number
}
points() { api GET "/api/v1/jobs/$1/metrics?names=loss&buckets=10000" >"$work/points.$1"; }
calm=$(train calm) && [ -n "$calm" ] || { cat "$work/made"; exit 1; }
check undisturbed_ends wait_for 90 is_final "$calm"
check undisturbed_succeeds is_state "$calm" succeeded

job=$(train struck)
has_checkpoint() { ls "$dir/jobs/$job/checkpoints/"model.ckpt-*.index >/dev/null 2>&1; }
check has_a_checkpoint wait_for 60 has_checkpoint
node=$(api GET "/api/v1/jobs/$job/tasks" | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["node"])')
other=$([ "$node" = one ] && echo two || echo one)
# All that runs there ends at once, and its disk is gone.
victims=()
for attempt in "$work/$node"/attempts/*/; do
    [ -e "$attempt/exit.json" ] || victims+=("$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$attempt/shim.json")")
done
kill -KILL "${agents[$node]}" # first, or it would tell of the others' end
for shim in "${victims[@]}"; do kill -KILL $(ps -o pid= --ppid "$shim") "$shim" 2>/dev/null; done
rm -rf "$work/$node"
was=$(state_of "$job")
check it_was_under_way same "$was" running
check node_is_lost wait_for 15 node_is "$node" lost
check goes_on wait_for 90 is_final "$job"
check succeeds is_state "$job" succeeded
check in_its_second_attempt same "$(field "$(api GET "/api/v1/jobs/$job")" attempt)" 2
check on_the_other_node same "$(api GET "/api/v1/jobs/$job/tasks" | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][-1]["node"])')" "$other"
points "$job"; points "$calm"
check each_point_once_and_true python3 - "$work/points.$job" "$work/points.$calm" <<'P'
import json, sys
struck, calm = ([s for s in json.load(open(path))["series"] if s["name"] == "loss"][0] for path in sys.argv[1:])
assert struck["steps"] == sorted(set(struck["steps"])) and struck["steps"][-1] == 3000, struck["steps"]
values = [dict(zip(one["steps"], one["values"])) for one in (struck, calm)]
both = values[0].keys() & values[1].keys()
assert len(both) > 1 and all(values[0][step] == values[1][step] for step in both), both
P
check same_weights cmp "$dir/jobs/$job/checkpoints/model.ckpt-3000.data-00000-of-00001" "$dir/jobs/$calm/checkpoints/model.ckpt-3000.data-00000-of-00001"
check says_why has "$(api GET "/api/v1/jobs/$job/history")" "lost"

# --- another machine under its name ---
start "$node" "$work/new"
check joins_anew wait_for 20 node_is "$node" joined
check takes_jobs_again wait_for 20 is_state "$(field "$(api POST /api/v1/jobs "{\"command\": [\"true\"], \"tasks\": {\"worker\": {\"replicas\": 2, \"cpus\": 2}}}")" number)" succeeded
