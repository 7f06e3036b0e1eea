#!/bin/bash
# nodes_test.sh - drain and top: nodes that take nothing new, and what runs, as a person at a terminal sees it.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2
export TRAINYARD_DIR=$dir
joined() { has "$("$trainyard" nodes)" joined; }
wait_for 10 joined
node=$(field "$(api GET /api/v1/nodes)" items 0 name)

# --- top ---
check top_has_the_node has "$("$trainyard" top)" "$node"
check top_without_jobs has "$("$trainyard" top)" "0 running, 0 queued"
first=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "300"], "name": "rests"}')" number)
wait_for 20 is_state "$first" running
"$trainyard" top >"$work/top"
check top_counts has "$(cat "$work/top")" "1 running, 0 queued"
check top_has_the_job same "$(awk '$2 == "rests" {print $1, $3, $4, $NF}' "$work/top")" "$first admin running $node"
check top_draws_on_a_terminal has "$(timeout 4 script -qec "'$trainyard' top" /dev/null | tr -d '\033')" "[2J"

# --- drain ---
check drains same "$("$trainyard" drain "$node")" "$node takes nothing new"
second=$(field "$(api POST /api/v1/jobs '{"command": ["true"], "name": "waits"}')" number)
check it_is_shown has "$("$trainyard" nodes)" drain
sleep 1
check nothing_starts is_state "$second" queued
check what_runs_runs_on is_state "$first" running
check says_why has "$("$trainyard" explain "$second")" drain
check top_counts_who_waits has "$("$trainyard" top --once)" "1 running, 1 queued"
check top_says_why has "$("$trainyard" top "$second")" drain
check undone same "$("$trainyard" drain "$node" --undo)" "$node takes jobs again"
check it_starts wait_for 20 is_state "$second" succeeded
check unknown_node has "$("$trainyard" drain "$node" no-such-node 2>&1)" "no-such-node"
check unknown_node_fails sh -c "! '$trainyard' drain no-such-node 2>/dev/null"
check needs_a_node has "$("$trainyard" drain 2>&1)" "usage: trainyard drain NODE"
api POST "/api/v1/jobs/$first:cancel" '{}' >/dev/null
