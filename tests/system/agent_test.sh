#!/bin/bash
# agent_test.sh - a node of its own process, over gRPC: it joins with a token, trains, and is not let in without.
# Faults of docs/reliability.md: F40.
. "$(dirname "$0")/lib.sh"

serve yard --no-agent
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
agents=$(field "$(cat "$dir/server.json")" agents)
"$trainyard" agent --server "$agents" --token ty_wrong --dir "$work/stranger" >"$work/stranger.log" 2>&1 &
stranger=$!
pids+=("$stranger")
check stranger_leaves wait_for 20 sh -c "! kill -0 $stranger"
check stranger_is_told_why grep -qi token "$work/stranger.log"
check no_node same "$(field "$(api GET /api/v1/nodes)" items)" "[]"

join=$("$trainyard" token create --join --dir "$dir")
"$trainyard" agent --server "$agents" --token "$join" --dir "$work/node" --name n1 --cpus 1 >"$work/node.log" 2>&1 &
pids+=("$!")
joined() { has "$(api GET /api/v1/nodes)" '"state":"joined"'; }
check joins wait_for 20 joined
id=$(field "$(api POST /api/v1/jobs '{"example": "digits-cnn", "train": {"steps": 20}}')" id)
check succeeds wait_for 60 is_final "$id"
job=$(api GET "/api/v1/jobs/$id")
check state same "$(field "$job" state)" succeeded
check ran_there same "$(field "$job" nodes)" '["n1"]'
check drain has "$(api POST /api/v1/nodes/n1:drain '{}')" '"draining":true'
stop TERM
