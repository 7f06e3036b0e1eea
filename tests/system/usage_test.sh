#!/bin/bash
# usage_test.sh - what tasks use of their machine: sampled by the agent, beside the metrics, by REST and as a topic.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 4
export TRAINYARD_DIR=$dir
hardware() { api GET "/api/v1/jobs/$1/hardware${2:-}"; }
samples() { [ "$(field "$(hardware "$1")" series 0 steps | tr ',' '\n' | wc -l)" -ge "$2" ]; }

# --- one that burns a core, holds memory, writes to the disk and sends to itself; it counts for itself what it burns ---
cat >"$work/burn.py" <<'END'
import os, socket, sys, threading, time
door = socket.create_server(("127.0.0.1", 0))
out = socket.create_connection(door.getsockname())
end, _ = door.accept()
def take():
    while end.recv(1 << 20):
        pass
threading.Thread(target=take, daemon=True).start()
held = bytearray(os.urandom(1 << 20) * 200)
since = time.time()
while True:
    wall, used = time.time(), time.process_time()
    while time.time() < wall + 1:
        pass
    with open("written", "wb") as file:
        file.write(held[:8 << 20])
        os.fsync(file.fileno())
    out.sendall(held[:4 << 20])
    print("sent", time.time() - wall, flush=True)
    print("cores", round((time.process_time() - used) / (time.time() - wall), 2), flush=True)
END
job=$(field "$(api POST /api/v1/jobs "$(python3 -c 'import json, sys; print(json.dumps({"command": ["python3", "-c", open(sys.argv[1]).read()]}))' "$work/burn.py")")" number)
check samples_come wait_for 20 samples "$job" 3
hardware "$job" >"$work/hardware.json"
"$trainyard" logs "$job" >"$work/log"
python3 - "$work/hardware.json" "$work/log" "$(date +%s)" >"$work/verdict" <<'END'
import json, sys
series = {one["name"]: one for one in json.load(open(sys.argv[1]))["series"]}
said = [float(line.split()[1]) for line in open(sys.argv[2]) if line.startswith("cores")]
cpu = series["hw/cpu"]["values"]
mean, own = sum(cpu) / len(cpu), sum(said) / len(said)
print("one_core", own * 0.7 < mean < min(own * 1.4, 1.2), mean, own)  # a busy machine gives it less than one
memory = series["hw/memory"]["values"][-1]
print("resident", 200 << 20 < memory < 500 << 20, memory)
steps = series["hw/cpu"]["steps"]
print("seconds", 0 <= int(sys.argv[3]) - steps[-1] < 60 and steps == sorted(set(steps)), steps)
print("task", {one["task"] for one in series.values()} == {"worker/0"})
print("disk", "hw/disk_write" not in series or max(series["hw/disk_write"]["values"]) >= 0)
took = [float(line.split()[1]) for line in open(sys.argv[2]) if line.startswith("sent")]
sent, received = (series["hw/network_" + way]["values"] for way in ("send", "receive"))
mean, own = sum(sent) / len(sent), (4 << 20) / (sum(took) / len(took))
print("network", own * 0.5 < mean < own * 1.5 and abs(sum(received) / sum(sent) - 1) < 0.01, sent, received, own)
print("gpus", "hw/gpu" not in series)
END
for what in one_core resident seconds task disk network gpus; do check "$what" has "$(grep "^$what " "$work/verdict")" True; done
grep -v True "$work/verdict" >&2

# --- apart from what the job reports itself ---
check metrics_are_the_jobs_own same "$(field "$(api GET "/api/v1/jobs/$job/metrics")" series)" "[]"
check no_step_comes_of_it same "$(field "$(api GET "/api/v1/jobs/$job")" step)" null
check topic_has_it has "$(curl -sN --max-time 8 -H "Authorization: Bearer $token" "$url/api/v1/jobs/$job/events?topics=hw")" '"topic":"job.hw"'
check names_choose same "$(field "$(hardware "$job" '?names=hw/cpu')" series 0 name)" "hw/cpu"

# --- it goes on when the agent is another ---
before=$(field "$(hardware "$job")" series 0 steps)
kill -KILL "$pid"; wait "$pid" 2>/dev/null
again --cpus 4
more() { [ "$(field "$(hardware "$job")" series 0 steps | tr ',' '\n' | wc -l)" -gt "$(tr ',' '\n' <<<"$before" | wc -l)" ]; }
check goes_on_after_a_restart wait_for 20 more
check all_of_it_is_plausible python3 -c 'import json, sys
for one in json.load(sys.stdin)["series"]:
    assert one["name"] != "hw/cpu" or max(one["values"]) < 1.5, one' <<<"$(hardware "$job")"
"$trainyard" kill "$job" >/dev/null; wait_for 10 is_final "$job"
