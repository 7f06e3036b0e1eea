#!/bin/bash
# kill9_server_test.sh - kill -9 of the server while a job trains: the task runs on, nothing is lost or doubled in
# the database, and a stream goes on after the number that its client saw last.
# Faults of docs/reliability.md: F1 F22 F34.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 2
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
steps=5000
job=$(api POST /api/v1/jobs '{"name": "long", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 256, "activation": "relu"},
    {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 500}, "checkpoint": {"every_steps": 200},
    "train": {"optimizer": {"name": "Adam", "learning_rate": 0.001}, "metrics": ["accuracy"], "loss": "sparse_categorical_crossentropy", "steps": '$steps'}}')
id=$(field "$job" id)
check runs wait_for 30 is_state "$id" running
reports() { has "$(api GET "/api/v1/jobs/$id/metrics?names=loss")" '"steps":[' && ! has "$(cat "$work/body")" '"series":[]'; }
check reports wait_for 30 reports

# A client that keeps its number over three deaths of the server, and writes down every point it is told.
cat >"$work/follow.py" <<PY
import json, sys, time
sys.path.insert(0, "$here")
from ws import WebSocket, Closed
host, port = "${url#http://}".split(":")
seq, points, state_seq, resumed, gaps, state = 0, [], 0, 0, 0, ""
end = time.monotonic() + 120
while time.monotonic() < end and state not in ("succeeded", "failed", "cancelled"):
    try:
        ws = WebSocket(host, int(port), headers={"Authorization": "Bearer $token"}, timeout=5)
        ws.send({"op": "subscribe", "id": 1, "topic": "job.metrics", "job": "$id", "after_seq": seq})
        ws.send({"op": "subscribe", "id": 2, "topic": "job.state", "job": "$id", "after_seq": state_seq})
        resumed += 1
        done = False
        while time.monotonic() < end and not done:
            message = ws.json(5)
            if message["op"] == "gap":
                gaps += 1
            if message["op"] not in ("batch", "snapshot", "gap"):
                continue
            if message["id"] == 1:
                seq = message["seq"]
                for event in message.get("events", []):
                    points += [(p["name"], p["step"], p["value"]) for p in event["data"]["points"]]
            else:
                state_seq = message["seq"]
                for event in message.get("events", []):
                    state = event["data"]["state"]
            if state in ("succeeded", "failed", "cancelled"):
                # All that was reported before the end is there once nothing comes for a moment.
                while True:
                    message = ws.json(2)
                    if message["op"] == "batch" and message["id"] == 1:
                        for event in message["events"]:
                            points += [(p["name"], p["step"], p["value"]) for p in event["data"]["points"]]
    except (OSError, Closed):
        if state not in ("succeeded", "failed", "cancelled"):
            time.sleep(0.2)
print(json.dumps({"points": points, "resumed": resumed, "gaps": gaps, "state": state}))
PY
python3 "$work/follow.py" >"$work/followed" &
follower=$!
pids+=("$follower")
task=$(field "$(api GET "/api/v1/jobs/$id/attempts")" items 0 tasks 0 pid)
for round in 1 2 3; do
    sleep 1
    stop KILL
    check "task_lives_$round" kill -0 "$task"
    sleep 0.7
    again --cpus 2
    check "answers_$round" has "$(api GET "/api/v1/jobs/$id")" '"attempt":1'
done
check ends wait_for 90 is_final "$id"
job=$(api GET "/api/v1/jobs/$id")
check succeeded same "$(field "$job" state)" succeeded
check one_attempt same "$(field "$job" attempt)" 1
check same_task same "$(field "$(api GET "/api/v1/jobs/$id/attempts")" items 0 tasks 0 pid)" "$task"
wait "$follower"

api GET "/api/v1/jobs/$id/metrics?buckets=10000" >"$work/metrics"
python3 - "$work/metrics" "$work/followed" "$dir" <<'PY' >"$work/result"
import json, sys
series = {s["name"]: dict(zip(s["steps"], s["values"])) for s in json.load(open(sys.argv[1]))["series"]}
told = json.load(open(sys.argv[2]))
def check(name, good, why=""):
    print(f"{'ok' if good else 'FAIL'} {name}{'' if good else ': ' + str(why)}")
check("stream_resumed", told["resumed"] >= 4, told["resumed"])
check("stream_without_gap", told["gaps"] == 0, told["gaps"])
check("stream_saw_the_end", told["state"] == "succeeded", told["state"])
for name in ("loss", "accuracy"):
    seen = [(step, value) for n, step, value in told["points"] if n == name]
    steps = [step for step, _ in seen]
    check(f"{name}_no_point_twice", len(steps) == len(set(steps)), len(steps) - len(set(steps)))
    check(f"{name}_no_point_lost", dict(seen) == series[name], sorted(set(series[name]) ^ set(steps))[:10])
    check(f"{name}_in_order", steps == sorted(steps))
PY
cat "$work/result"
grep -q '^FAIL' "$work/result" && failed=1

stop TERM
