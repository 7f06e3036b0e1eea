#!/bin/bash
# life_test.sh - jobs from submit to end over REST, with a real agent, shim and task.
# Faults of docs/reliability.md: F25 F31 F33.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 2 --grace-ms 5000
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
mlp() { # mlp STEPS [MORE...] : a spec
    echo '{"name": "small", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 32, "activation": "relu"},
        {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
        "train": {"optimizer": {"name": "Adam", "learning_rate": 0.001}, "metrics": ["accuracy"], "loss": "sparse_categorical_crossentropy", "steps": '"$1"'}'"${2:+, $2}"'}'
}
check node_joins wait_for 10 has "$(api GET /api/v1/nodes)" joined

# --- submitting ---
check plan has "$(api POST '/api/v1/jobs?dry_run=plan' "$(mlp 300)")" "would start now"
check plan_is_no_job same "$(field "$(api GET /api/v1/jobs)" items)" "[]"
job=$(api POST /api/v1/jobs "$(mlp 300)" -H "Idempotency-Key: k1" -D "$work/head")
check created same "$(status)" 201
id=$(field "$job" id)
check location grep -qi "^Location: /api/v1/jobs/$id" "$work/head"
check same_key_same_job same "$(field "$(api POST /api/v1/jobs "$(mlp 300)" -H "Idempotency-Key: k1")" id)" "$id"
api POST /api/v1/jobs "$(mlp 301)" -H "Idempotency-Key: k1" >/dev/null
check same_key_other_body same "$(status)" 422
for _ in $(seq 20); do api POST /api/v1/jobs "$(mlp 5)" -H "Idempotency-Key: k2" >>"$work/many" & done
wait $(jobs -p | grep -v "^$pid$") 2>/dev/null
check one_key_one_job same "$(grep -o '"id":"job_[^"]*"' "$work/many" | sort -u | wc -l)" 1

# --- the end of it ---
check succeeds wait_for 60 is_final "$id"
job=$(api GET "/api/v1/jobs/$id")
check state same "$(field "$job" state)" succeeded
check all_steps same "$(field "$job" step) $(field "$job" steps)" "300 300"
check by_number same "$(field "$(api GET "/api/v1/jobs/$(field "$job" number)")" id)" "$id"
metrics=$(api GET "/api/v1/jobs/$id/metrics?names=loss&task=worker/0")
check loss_series python3 -c '
import json, sys
series = json.loads(sys.argv[1])["series"]
assert len(series) == 1 and series[0]["name"] == "loss", series
steps, values = series[0]["steps"], series[0]["values"]
assert steps[-1] == 300 and steps == sorted(set(steps)), steps
assert values[-1] < values[0], (values[0], values[-1])' "$metrics"
check buckets same "$(python3 -c 'import json, sys; print(len(json.loads(sys.argv[1])["series"][0]["steps"]) <= 10)' "$(api GET "/api/v1/jobs/$id/metrics?names=loss&buckets=10")")" True
check graph python3 -c '
import json, sys
nodes = json.load(open(sys.argv[1]))["nodes"]
names = {node["name"] for node in nodes}
assert len(nodes) > 20
assert any(node["op"] == "MatMul" and "CPU:0" in node["device"] for node in nodes)
for node in nodes:
    for text in node["inputs"]:
        assert text.lstrip("^").split(":")[0] in names, text' <(api GET "/api/v1/jobs/$id/graph")
check placement has "$(api GET "/api/v1/jobs/$id/placement")" '"op":"MatMul"'
check attempts has "$(api GET "/api/v1/jobs/$id/attempts")" '"exit_code":0'
check history has "$(api GET "/api/v1/jobs/$id/history")" '"state":"succeeded"'
check checkpoints has "$(api GET "/api/v1/jobs/$id/checkpoints")" '"step":300'
check spec same "$(field "$(api GET "/api/v1/jobs/$id/spec")" train steps)" 300
check logs_json has "$(api GET "/api/v1/jobs/$id/logs")" '"logs":['
api GET "/api/v1/jobs/$id/logs" '' -H 'Accept: text/plain' >/dev/null
check logs_text same "$(status)" 200
check explain_ended has "$(api GET "/api/v1/jobs/$id/explain")" '"code":'
check events_end has "$(timeout 3 curl -sN -H "Authorization: Bearer $token" "$url/api/v1/jobs/$id/events?topics=state,metrics,logs,placement&after=0-0-0-0")" '"state":"succeeded"'
check ndjson same "$(timeout 2 curl -sN -H "Authorization: Bearer $token" -H 'Accept: application/x-ndjson' "$url/api/v1/jobs/$id/events?topics=metrics&after=0" | python3 -c '
import json, sys
print(max(point["step"] for line in sys.stdin for point in json.loads(line)["data"]["points"]))')" 300

# --- cancel and kill ---
long=$(field "$(api POST /api/v1/jobs "$(mlp 10000000)")" id)
check runs wait_for 30 is_state "$long" running
wait_for 20 sh -c "[ \"\$(curl -s -H 'Authorization: Bearer $token' $url/api/v1/jobs/$long/metrics?names=loss)\" != '' ]"
sleep 1
api POST "/api/v1/jobs/$long:cancel" '{}' >/dev/null
check cancel_taken same "$(status)" 202
check cancelled wait_for 20 is_state "$long" cancelled
check cancel_writes_checkpoint has "$(api GET "/api/v1/jobs/$long/checkpoints")" '"step":'
api POST "/api/v1/jobs/$long:cancel" '{}' >/dev/null
check cancel_again same "$(status)" 202
api POST "/api/v1/jobs/$id:cancel" '{}' >/dev/null
check cancel_too_late same "$(status)" 409
long=$(field "$(api POST /api/v1/jobs "$(mlp 10000000)")" id)
check runs_too wait_for 30 is_state "$long" running
api POST "/api/v1/jobs/$long:kill" '{}' >/dev/null
check killed wait_for 10 is_state "$long" cancelled

# --- waiting, and why ---
first=$(field "$(api POST /api/v1/jobs "$(mlp 10000000 '"tasks": {"worker": {"replicas": 1, "cpus": 2}}')")" id)
check takes_all wait_for 30 is_state "$first" running
second=$(field "$(api POST /api/v1/jobs "$(mlp 5)")" id)
sleep 1
why=$(api GET "/api/v1/jobs/$second/explain")
check waits_for_room same "$(field "$why" code)" RESOURCES
check names_the_holder has "$why" '"blockers":[{'
api POST /api/v1/jobs "$(mlp 5 '"tasks": {"worker": {"replicas": 1, "gpus": 4}}')" >/dev/null
check never_fits same "$(status)" 400
check never_fits_says has "$(cat "$work/body")" '"pointer":"/tasks/worker/gpus"'
api POST "/api/v1/jobs/$first:kill" '{}' >/dev/null
check second_runs wait_for 30 is_final "$second"
check second_succeeds is_state "$second" succeeded

# --- the job's own fault is not tried again ---
cp -r "$dir/datasets/digits" "$dir/datasets/broken"
for file in "$dir"/datasets/broken/train-images*; do head -c 1000 "$file" >"$file.cut"; mv "$file.cut" "$file"; done
bad=$(field "$(api POST /api/v1/jobs "$(mlp 50 | sed 's/"dataset": "digits"/"dataset": "broken"/')")" id)
check bad_data_ends wait_for 40 is_final "$bad"
check bad_data_fails is_state "$bad" failed
check bad_data_is_named has "$(api GET "/api/v1/jobs/$bad")" train-images
check tried_once same "$(field "$(api GET "/api/v1/jobs/$bad")" attempt)" 1

# --- the command line says the same ---
export TRAINYARD_DIR=$dir
check cli_jobs has "$("$trainyard" jobs)" succeeded
check cli_show has "$("$trainyard" show 1)" "state        succeeded"
check cli_logs has "$("$trainyard" logs 1)" "300 steps"
check cli_nodes has "$("$trainyard" nodes)" joined
check cli_explain has "$("$trainyard" explain "$bad")" "trainyard logs"
check cli_submit_watch has "$(mlp 40 | "$trainyard" submit - --watch)" "succeeded  step 40"
"$trainyard" watch "$bad" >/dev/null
check cli_watch_failed same "$?" 1
check cli_submit_wrong has "$("$trainyard" submit - 2>&1 <<<'{"example": "digits-cnn", "x": 1}')" "/x"
long=$(mlp 10000000 | "$trainyard" submit - --json | sed 's/.*"number":\([0-9]*\).*/\1/')
wait_for 30 is_state "$long" running
check cli_cancel has "$("$trainyard" cancel "$long")" "job $long is"
"$trainyard" watch "$long" >/dev/null
check cli_watch_cancelled same "$?" 4
check cli_train has "$("$trainyard" train --help 2>&1)" "SPEC"
