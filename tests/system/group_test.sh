#!/bin/bash
# group_test.sh - a program in several tasks: they find each other, end together, are tried again together; and
# nothing of a program is lost or doubled when server, shim or task are killed.
# Faults of docs/reliability.md: F1 F5 F6 F7 F8 F14.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 8 --grace-ms 1000 --backoff-ms 100
export TRAINYARD_DIR=$dir
check node_joins wait_for 10 has "$(api GET /api/v1/nodes)" joined
mkdir "$work/here" && cd "$work/here" || exit 1
cp "$here/events_write.py" "$here/meet.py" .

# --- they meet: each worker adds its number over the address that it was told ---
out=$("$trainyard" run --workers 3 -- python3 meet.py | sort)
check all_reduce same "$out" "$(printf 'worker/%d | rank %d of 3: sum 6\n' 0 0 1 1 2 2)"
config=$("$trainyard" run --workers 2 --ps 1 -- sh -c '[ $TRAINYARD_ROLE = ps ] && exec sleep 1000; echo "$TF_CONFIG"' | grep 'worker/1')
check tf_config python3 - "${config#*| }" <<'P'
import json, sys
config = json.loads(sys.argv[1])
cluster = config["cluster"]
assert len(cluster["worker"]) == 2 and len(cluster["ps"]) == 1, cluster
assert len({a for role in cluster.values() for a in role}) == 3, cluster
assert config["task"] == {"type": "worker", "index": 1}, config
P
check ps_ends_with_the_workers same "$(field "$(api GET /api/v1/jobs?limit=1)" items 0 state)" succeeded
check ps_has_no_rank same "$("$trainyard" run --workers 1 --ps 1 -- sh -c 'echo "$TRAINYARD_ROLE ${RANK-none}"; [ $TRAINYARD_ROLE = worker ] || exec sleep 1000; sleep 0.5' | sort | tr '\n' ' ')" \
    "ps/0 | ps none worker/0 | worker 0 "

# --- one falls, all are tried again ---
out=$("$trainyard" run --name falls --workers 2 -- sh -c 'echo "$RANK in $TRAINYARD_ATTEMPT"; [ "$RANK$TRAINYARD_ATTEMPT" = 11 ] && { sleep 0.3; kill -KILL $$; }; [ $TRAINYARD_ATTEMPT = 1 ] && exec sleep 1000; exit 0' 2>/dev/null | sort)
check whole_group_again same "$out" "$(printf 'worker/%d | %d in %d\n' 0 0 1 0 0 2 1 1 1 1 1 2)"
check whole_group_twice same "$(field "$(api GET /api/v1/jobs/falls)" attempt)" 2
"$trainyard" run --name served --workers 1 --ps 1 -- sh -c '[ $TRAINYARD_ROLE$TRAINYARD_ATTEMPT = ps1 ] && { sleep 0.3; kill -KILL $$; }; [ $TRAINYARD_ROLE$TRAINYARD_ATTEMPT = worker2 ] || exec sleep 1000' >/dev/null 2>&1
check ps_falls_group_again same "$?" 0
check ps_falls_group_twice same "$(field "$(api GET /api/v1/jobs/served)" attempt)" 2
"$trainyard" run --name wrong --workers 2 -- sh -c '[ $RANK = 1 ] && exit 5; exec sleep 1000' 2>/dev/null
check own_error_ends_all same "$?" 5
check own_error_is_not_tried_again same "$(field "$(api GET /api/v1/jobs/wrong)" attempt)" 1

# --- the server is killed while a program writes: every line and every point is there, once ---
slow='import events_write as e, time
file = e.opened()
for step in range(150):
    print(step, flush=True)
    e.record(file, e.event(step, e.v1(b"loss", step)))
    time.sleep(0.02)'
"$trainyard" run --detach --name slow -- python3 -c "$slow" >/dev/null
wait_for 20 is_state slow running
for _ in 1 2 3; do
    sleep 0.5
    stop KILL
    again --cpus 8 --grace-ms 1000 --backoff-ms 100
done
check slow_ends wait_for 40 is_final slow
check slow_succeeds is_state slow succeeded
check one_attempt same "$(field "$(api GET /api/v1/jobs/slow)" attempt)" 1
check every_line_once same "$(api GET '/api/v1/jobs/slow/logs?task=worker/0&stream=stdout&offset=0' | md5sum)" "$(seq 0 149 | md5sum)"
check every_point_once python3 - "$(api GET /api/v1/jobs/slow/metrics)" <<'P'
import json, sys
series, = json.loads(sys.argv[1])["series"]
assert series["steps"] == list(range(150)) and series["values"] == series["steps"], series
P

# --- the shim is killed: the program goes with it, and the job is tried again ---
"$trainyard" run --detach --name orphan -- sh -c 'echo "$TRAINYARD_ATTEMPT"; [ $TRAINYARD_ATTEMPT = 2 ] && exit 0; exec sleep 4712' >/dev/null
wait_for 20 is_state orphan running
shim=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$dir"/agent/attempts/*/shim.json | head -n 1)
kill -KILL "$shim"
check orphan_ends wait_for 20 is_final orphan
check orphan_tried_again same "$(field "$(api GET /api/v1/jobs/orphan)" attempt)" 2
check no_orphan sh -c '! pgrep -f "sleep 471[2]"'
