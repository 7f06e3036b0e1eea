#!/bin/bash
# points_test.sh - a script reports numbers over REST: they are charts, streams and last values like any other.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 2
digits "$dir"
job=$(field "$(api POST /api/v1/jobs '{"name": "outside", "command": ["sleep", "100"]}')" number)
J=/api/v1/jobs/$job
post() { api POST "$J/metrics" "$1"; }
column() { python3 -c 'import json, sys
for s in json.loads(sys.argv[1])["series"]:
    if s["name"] == sys.argv[2] and s["task"] == sys.argv[3]: print(*s[sys.argv[4]])' "$(api GET "$J/metrics")" "$@"; }

# --- stored, at any time, whole, once ---
check "what waits takes numbers, too" has "$(post '{"points": [{"step": 0, "values": {"score": 0.5}}]}')" '"stored":1'
wait_for 20 is_state "$job" running
answer=$(post '{"points": [{"step": 1, "wall": 1760000000.25, "values": {"score": 0.75, "gap": "NaN"}},
    {"task": "worker/1", "step": 1, "values": {"score": -1}}, {"step": 2, "values": {"score": "Infinity", "gap": 7}}]}')
check "several tasks and names at once" same "$(field "$answer" stored)" 5
check "in their order" same "$(column score worker/0 values)" "0.5 0.75 Infinity"
check "not a number is kept" same "$(column gap worker/0 values)" "NaN 7"
check "each task has its own" same "$(column score worker/1 values)" "-1"
check "with its time" has "$(column score worker/0 times)" "1760000000.25"
post '{"points": [{"step": 1, "values": {"score": 0.8}}]}' >/dev/null
check "a later value replaces" same "$(column score worker/0 values)" "0.5 0.8 Infinity"
check "none is nothing" same "$(field "$(post '{"points": []}')" stored)" 0
check "the last value is the job's" same "$(field "$(api GET "$J")" last gap)" 7.0

# --- what is wrong is refused, with nothing half done ---
refused() { # WHAT, BODY, WORDS
    check "$1" has "$(post "$2")" "$3"
    check "... by 400" same "$(status)" 400
}
refused "no list" '{"point": []}' '"/point"'
refused "no step" '{"points": [{"values": {"x": 1}}]}' '"/points/0/step"'
refused "a step below 0" '{"points": [{"step": 0, "values": {"x": 1}}, {"step": -1, "values": {"x": 1}}]}' '"/points/1/step"'
refused "no number" '{"points": [{"step": 0, "values": {"x": "much"}}]}' '"/points/0/values/x"'
refused "no task" '{"points": [{"step": 0, "task": "boss/0", "values": {"x": 1}}]}' '"/points/0/task"'
refused "no index" '{"points": [{"step": 0, "task": "worker/999", "values": {"x": 1}}]}' '"/points/0/task"'
refused "an empty name" '{"points": [{"step": 0, "values": {"": 1}}]}' 'a metric'
refused "unknown fields" '{"points": [{"step": 0, "values": {"x": 1}, "stepp": 1}]}' '"/points/0/stepp"'
refused "no JSON" '{"points": [' 'no JSON'
check "nothing of these was stored" same "$(column x worker/0 values)" ""
post '{"attempt": 2, "points": [{"step": 9, "values": {"score": 9}}]}' >/dev/null
check "of another attempt" same "$(status)" 409
check "of this attempt" has "$(post '{"attempt": 1, "points": [{"step": 3, "values": {"score": 0.9}}]}')" '"stored":1'
api POST /api/v1/jobs/999/metrics '{"points": []}' >/dev/null
check "of no job" same "$(status)" 404

# --- streams have them, a crash keeps them ---
seq=$(field "$(post '{"points": [{"step": 4, "values": {"score": 1.25}}]}')" seq)
stream=$(curl -sN --max-time 2 -H "Authorization: Bearer $token" -H "Last-Event-ID: $((seq - 1))" "$url$J/events?topics=metrics" || true)
check "a stream tells them" has "$stream" '1.25'
stop KILL; again --cpus 2
check "what was answered is kept" same "$(column score worker/0 values)" "0.5 0.8 Infinity 0.9 1.25"
before=$(api GET "/api/v1/audit?limit=1")
post '{"points": [{"step": 5, "values": {"score": 1}}]}' >/dev/null
check "the audit is not filled with them" same "$(api GET "/api/v1/audit?limit=1")" "$before"

# --- many: the chart is thinned, and a spike is in it ---
body=$(python3 -c 'import json; print(json.dumps({"points": [{"step": n, "values": {"many": 1000 if n == 4321 else n % 7}} for n in range(9000)]}))')
printf '%s' "$body" >"$work/many.json"
check "thousands at once" has "$(curl -s -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d "@$work/many.json" "$url$J/metrics")" '"stored":9000'
chart=$(api GET "$J/metrics?names=many&buckets=50")
check "few columns" python3 -c 'import json, sys; s = json.loads(sys.argv[1])["series"][0]; sys.exit(not (25 < len(s["steps"]) <= 50))' "$chart"
check "the spike is seen" has "$chart" 1000
check "a part of it whole" same "$(python3 -c 'import json, sys; print(len(json.loads(sys.argv[1])["series"][0]["steps"]))' "$(api GET "$J/metrics?names=many&from=4300&to=4330")")" 31

# --- what is kept of an answer holds only until something is written ---
check "a job that is asked for again shows what was written" python3 - "$url" "$token" "$job" <<'P'
import json, sys, urllib.request
url, token, job = sys.argv[1:]
def call(method, path, body=None):
    request = urllib.request.Request(f"{url}/api/v1/jobs/{job}{path}", body and json.dumps(body).encode(), method=method,
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer), answer.headers
for step in range(100):
    call("POST", "/metrics", {"points": [{"step": 20000 + step, "values": {"again": step}}]})
    for _ in range(3):
        seen, headers = call("GET", "")
        assert seen["last"]["again"] == step and headers["ETag"], (step, seen["last"])
P

# --- small answers and events do not wait for acknowledgements (TCP_NODELAY) ---
read -r answered seen < <(python3 "$(dirname "$0")/nodelay.py" "${url#http://}" "$token" "$job")
echo "median: answered after $answered ms, seen in a stream after $seen ms"
holds() { python3 -c "import sys; sys.exit(not ($1))"; }
# A write waits for the disk, too: what that takes here is allowed for, and what it takes in a program on a slow one.
disk=$(python3 - "$work" <<'P'
import os, statistics, sys, time
took = []
for i in range(9):
    with open(os.path.join(sys.argv[1], "sync"), "wb") as file:
        file.write(bytes(4096)), file.flush()
        began = time.monotonic()
        os.fsync(file.fileno())
        took.append(1000 * (time.monotonic() - began))
print(statistics.median(took))
P
)
case $build in */slow) disk=${SLOW_DISK_MS:-150} ;; esac
check "a small write is answered at once" holds "$answered < 30 + 2 * $disk"
check "... and streamed as fast: events that wait come ten times as late" holds "$seen < 4 * $answered + 3"
