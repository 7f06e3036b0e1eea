#!/bin/bash
# slow_link_test.sh - a slow link between server and agent, which also stands still each way and is cut (F20): all is slower, and
# nothing wrong, lost or doubled.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 3000 --lost-ms 20000 --grace-ms 1000 --backoff-ms 100
mkfifo "$work/link"
python3 "$here/proxy.py" "$(field "$(cat "$dir/server.json")" agents | sed 's/.*://')" <>"$work/link" >"$work/link.port" 2>"$work/link.log" &
pids+=("$!")
wait_for 10 test -s "$work/link.port"
say() { echo "$1" >"$work/link"; }
say "delay 150"
"$trainyard" agent --server "127.0.0.1:$(cat "$work/link.port")" --token "$("$trainyard" token create --join --dir "$dir")" \
    --dir "$work/node" --name far --cpus 4 >"$work/far.log" 2>&1 &
pids+=("$!")
node_is() { has "$(api GET /api/v1/nodes)" "\"state\":\"$1\"" >/dev/null; }
check joins_over_a_slow_link wait_for 20 node_is joined

# Four programs at once that count.
jobs=()
for i in 1 2 3 4; do
    api POST /api/v1/jobs "{\"name\": \"count$i\", \"command\": [\"sh\", \"-c\", \"for i in \$(seq 0 119); do echo \$i; sleep 0.1; done\"], \"restart\": {\"max\": 3}}" >/dev/null
    jobs+=("count$i")
done
all_are() { for one in "${jobs[@]}"; do is_state "$one" "$1" || return 1; done; }
check start_over_a_slow_link wait_for 20 all_are running
for way in out in both; do say "stall $way"; sleep 1; say flow; sleep 0.5; done
say reset; sleep 1; say reset
check still_run all_are running
say "delay 400"
check all_end wait_for 60 all_are succeeded
whole=$(seq 0 119 | md5sum)
for one in "${jobs[@]}"; do
    check "started_once_$one" same "$(field "$(api GET "/api/v1/jobs/$one")" attempt)" 1
    lines_are_whole() { [ "$(api GET "/api/v1/jobs/$one/logs?task=worker/0&stream=stdout&offset=0" | md5sum)" = "$whole" ]; }
    check "each_line_once_$one" wait_for 20 lines_are_whole
done
api POST /api/v1/jobs '{"name": "long", "command": ["sleep", "100"]}' >/dev/null
check starts_over_a_slower_link wait_for 20 is_state long running
say "stall in"
"$trainyard" cancel long --dir "$dir" >/dev/null
sleep 1
say flow
check a_cancel_arrives wait_for 20 is_state long cancelled
