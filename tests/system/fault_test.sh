#!/bin/bash
# fault_test.sh - a server that stands still (F2), a network that says nothing for a while (F17, F18), a server without
# descriptors (F16): nothing is started twice, lost or doubled, and all goes on by itself.
. "$(dirname "$0")/lib.sh"

# A network in between that can be stopped: connections stay, and nothing comes through.
cat >"$work/network.py" <<'P'
import socket, sys, threading

def pass_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

host, port = sys.argv[1].rsplit(":", 1)
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
while True:
    inside, _ = door.accept()
    outside = socket.create_connection((host, int(port)))
    for ends in ((inside, outside), (outside, inside)):
        threading.Thread(target=pass_on, args=ends, daemon=True).start()
P

serve yard --no-agent --suspect-ms 1000 --lost-ms 6000 --grace-ms 1000 --backoff-ms 100
python3 "$work/network.py" "$(field "$(cat "$dir/server.json")" agents)" >"$work/door" 2>"$work/network.log" &
network=$!
pids+=("$network")
wait_for 10 test -s "$work/door"
"$trainyard" agent --server "127.0.0.1:$(cat "$work/door")" --token "$("$trainyard" token create --join --dir "$dir")" \
    --dir "$work/node" --name n1 --cpus 4 >"$work/node.log" 2>&1 &
pids+=("$!")
is_node() { has "$(api GET /api/v1/nodes)" "\"state\":\"$1\""; }
check joins wait_for 20 is_node joined

# slow NAME : a job of some ten seconds that counts
slow() {
    api POST /api/v1/jobs "{\"name\": \"$1\", \"command\": [\"sh\", \"-c\", \"for i in \$(seq 0 99); do echo \$i; sleep 0.1; done\"], \"restart\": {\"max\": 3}}" >"$work/made"
    wait_for 20 is_state "$1" running
}
attempt_of() { field "$(api GET "/api/v1/jobs/$1")" attempt; }
lines_of() { api GET "/api/v1/jobs/$1/logs?task=worker/0&stream=stdout&offset=0" | md5sum; }
whole=$(seq 0 99 | md5sum)

check stall_job_runs slow stall
kill -STOP "$pid"
sleep 7
kill -CONT "$pid"
check stall_job_ends wait_for 30 is_final stall
check stall_job_succeeds is_state stall succeeded
check stall_starts_nothing_twice same "$(attempt_of stall)" 1
check stall_loses_no_line same "$(lines_of stall)" "$whole"

check silence_job_runs slow silence
kill -STOP "$network"
check silence_is_noticed wait_for 5 is_node suspect
sleep 1
kill -CONT "$network"
check silence_ends wait_for 20 is_node joined
check silence_job_ends wait_for 30 is_final silence
check silence_starts_nothing_twice same "$(attempt_of silence)" 1
check silence_loses_no_line same "$(lines_of silence)" "$whole"

check away_job_runs slow away
for attempt in "$work"/node/attempts/*/; do
    [ -e "$attempt/exit.json" ] || first=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$attempt/shim.json")
done
check away_old_task_lives kill -0 "$first"
kill -STOP "$network"
check away_is_given_up wait_for 15 is_node lost
kill -CONT "$network"
check away_comes_back wait_for 30 is_node joined
check away_old_task_ends wait_for 10 sh -c "! kill -0 $first"
check away_job_ends wait_for 40 is_final away
check away_job_succeeds is_state away succeeded
check away_one_more_attempt same "$(attempt_of away)" 2

check crowd_job_runs slow crowd
prlimit --pid "$pid" --nofile=80:80
python3 - "$url" <<'P'
import socket, sys, time
host, port = sys.argv[1].split("//")[1].split(":")
crowd = []
for _ in range(300):
    try:
        crowd.append(socket.create_connection((host, int(port)), timeout=1))
    except OSError:
        break
time.sleep(2)
P
check crowd_leaves_the_server_up wait_for 20 curl -fsS -m 2 -o /dev/null "$url/healthz"
check crowd_job_ends wait_for 30 is_final crowd
check crowd_job_succeeds is_state crowd succeeded
check crowd_loses_no_line same "$(lines_of crowd)" "$whole"
stop TERM
