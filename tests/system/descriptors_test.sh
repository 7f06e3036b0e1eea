#!/bin/bash
# descriptors_test.sh - server and agent after many jobs, requests, streams and websockets: as many descriptors and threads as
# before (I9).  What the databases keep open for readers is bounded, not constant.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 4000 --grace-ms 1000
"$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$("$trainyard" token create --join --dir "$dir")" \
    --dir "$work/node" --name n1 --cpus 8 >"$work/node.log" 2>&1 &
agent=$!
pids+=("$agent")
joined() { has "$(api GET /api/v1/nodes)" '"state":"joined"'; }
check descriptors_agent_joins wait_for 20 joined

# load JOBS [streams] : runs as many short jobs, while others ask, and follow and break off
cat >"$work/load.py" <<'P'
import json, socket, sys, threading, time, urllib.error, urllib.request
sys.path.insert(0, sys.argv[4])
import ws
url, token, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
host, port = url.split("//")[1].split(":")
ended, failed = threading.Event(), []

def call(path, body=None):
    request = urllib.request.Request(url + path, body and json.dumps(body).encode(),
                                     {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=20))

def asks():
    while not ended.is_set():
        for path in ("/api/v1/jobs", "/api/v1/nodes", "/api/v1/jobs/1/metrics", "/api/v1/jobs/1/logs?follow=0"):
            try:
                call(path)
            except (urllib.error.HTTPError, ValueError):
                pass
            time.sleep(0.02)

def watches(break_off):
    """Websockets: one is closed as it should be, the next goes without a word."""
    while not ended.is_set():
        connection = ws.WebSocket(host, int(port), headers={"Authorization": "Bearer " + token})
        connection.send({"op": "subscribe", "id": 1, "topic": "jobs"})
        time.sleep(0.02)
        if not break_off:
            connection.send(b"\x03\xe8", opcode=8)
        connection.socket.close()

def follows():
    """Server-sent events, broken off."""
    while not ended.is_set():
        connection = socket.create_connection((host, int(port)), timeout=10)
        connection.sendall(f"GET /api/v1/jobs/1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n".encode())
        if b" 200 " not in connection.recv(100):
            raise ValueError("no events")
        connection.close()
        time.sleep(0.02)

def guarded(work, *arguments):
    try:
        work(*arguments)
    except Exception as error:
        failed.append(f"{work.__name__}: {error!r}")

run = {"command": ["sh", "-c", "echo here; exit 0"]}
call("/api/v1/jobs", run) # that the others ask for
streams = ((watches, False), (watches, True), (follows,)) if sys.argv[5:] else ()
others = [threading.Thread(target=guarded, args=what) for what in ((asks,), (asks,), *streams)]
for one in others: one.start()
for _ in range(jobs):
    call("/api/v1/jobs", run)
until = time.monotonic() + 100
while time.monotonic() < until and any(job["state"] != "succeeded" for job in call("/api/v1/jobs?limit=1000")["items"]):
    time.sleep(0.2)
ended.set()
for one in others: one.join()
failed += [f"job {job['number']}: {job['state']}" for job in call("/api/v1/jobs?limit=1000")["items"] if job["state"] != "succeeded"]
print(*failed[:5], sep="\n")
sys.exit(bool(failed))
P
load() { python3 "$work/load.py" "$url" "$token" "$1" "$here" "${@:2}"; }
# open_of PID : descriptors of no database
open_of() { ls -l "/proc/$1/fd" | grep '>' | grep -vc '\.db\(-wal\|-shm\)\?$'; }
databases_of() { ls -l "/proc/$1/fd" | grep -c '\.db\(-wal\|-shm\)\?$'; }
threads_of() { ls "/proc/$1/task" | wc -l; }
# back_to COUNT COMMAND... : the command prints as much again, or up to two more
back_to() { local count=$1; shift; [ "$("$@")" -le $((count + 2)) ]; }
show() { ls -l "/proc/$1/fd" | sed 's/.*-> //;s/:\[.*//' | sort | uniq -c; false; }

check descriptors_warm load 30
sleep 1
server_open=$(open_of "$pid") server_threads=$(threads_of "$pid") agent_open=$(open_of "$agent") agent_threads=$(threads_of "$agent")
check descriptors_load load 200 streams
# Those that went without a word are noticed by the second sign of life that they do not get, each 15 s.
check descriptors_of_the_server wait_for 45 back_to "$server_open" open_of "$pid"
check threads_of_the_server wait_for 20 back_to "$server_threads" threads_of "$pid"
check descriptors_of_the_agent wait_for 20 back_to "$agent_open" open_of "$agent"
check threads_of_the_agent wait_for 20 back_to "$agent_threads" threads_of "$agent"
check descriptors_of_databases test "$(databases_of "$pid")" -le 210 # 32 readers of either and the writer, three files each, and their reserves
[ $failed -eq 0 ] || show "$pid"
stop TERM
