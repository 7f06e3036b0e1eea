# anew.sh - for the tests in which a node is lost with one task of a training: agents that can be destroyed, trainings, questions.
#
# After `serve` and `digits`; $join_token is one that agents join with.
declare -A agents

# start NAME CPUS [OPTION...] : an agent in a session of its own, so that all of the machine can be killed
start() {
    setsid "$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$join_token" --dir "$work/$1" --name "$1" --cpus "$2" "${@:3}" >>"$work/$1.log" 2>&1 &
    agents[$1]=$!
    pids+=("$!")
    wait_for 20 node_is "$1" joined
}
node_is() { same "$(field "$(api GET "/api/v1/nodes/$1")" state)" "$2" >/dev/null; }
# destroy NAME : all that runs there ends at once, and nobody tells
destroy() {
    local attempt shim victims=()
    for attempt in "$work/$1"/attempts/*/; do
        [ -e "$attempt/exit.json" ] || victims+=("$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$attempt/shim.json")")
    done
    kill -KILL "${agents[$1]}"
    for shim in "${victims[@]}"; do kill -KILL $(ps -o pid= --ppid "$shim") "$shim" 2>/dev/null; done
}

# train NAME STRATEGY TASKS STEPS [UNITS]
train() {
    api POST /api/v1/jobs "{\"name\": \"$1\", \"seed\": 5, \"data\": {\"dataset\": \"digits\", \"batch_size\": 20}, \"restart\": {\"max\": 3}, \"checkpoint\": {\"every_steps\": 200},
        \"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": ${5:-64}, \"activation\": \"relu\"}, {\"layer\": \"Dense\", \"units\": 10}]},
        \"strategy\": $2, \"tasks\": $3, \"train\": {\"steps\": $4, \"optimizer\": {\"name\": \"SGD\", \"learning_rate\": 0.01}}}" >"$work/made"
    [ "$(status)" = 201 ] || cat "$work/made"
}
task_of() { # JOB ROLE INDEX FIELD
    api GET "/api/v1/jobs/$1/tasks" | python3 -c '
import json, sys
role, index, name = sys.argv[1:]
print([t for t in json.load(sys.stdin)["items"] if t["task"] == role + "/" + index][0][name])' "$2" "$3" "$4"
}
task_is() { [ "$(task_of "$1" "$2" "$3" "$4")" = "$5" ]; }
explains() { has "$(field "$(api GET "/api/v1/jobs/$1/explain")" "$2")" "$3" >/dev/null; }
step_of() { field "$(api GET "/api/v1/jobs/$1")" step; }
is_behind() { [ "$(step_of "$1")" -gt "$2" ]; }
said() { api GET "/api/v1/jobs/$1/history?limit=1000" | grep -q "$2"; }
