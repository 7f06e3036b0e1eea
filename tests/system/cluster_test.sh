#!/bin/bash
# cluster_test.sh - a task that is started by hand: what it is told, what it refuses, how it ends; and, where
# TensorFlow's client programs and TensorFlow itself are at hand, the client that drives it.
. "$(dirname "$0")/lib.sh"
task=$build/trainyard-task
refuses() { # NAME WORDS COMMAND... : exit code 2 and these words
    local name=$1 words=$2 code=0
    shift 2
    timeout 20 "$@" >"$work/said" 2>&1 || code=$?
    check "$name" same "$code" 2
    check "${name}_says" has "$(head -n 1 "$work/said")" "$words"
}
port=$(free_port)
echo '{"worker": ["127.0.0.1:'"$port"'"]}' >"$work/cluster.json"

refuses no_insecure "say --insecure" "$task" --cluster "$work/cluster.json" --job worker --task 0
refuses no_cluster "--cluster is missing" "$task" --insecure --job worker --task 0
refuses no_file "nowhere.json" "$task" --insecure --cluster "$work/nowhere.json" --job worker --task 0
refuses no_task "--job and --task are missing" "$task" --insecure --cluster "$work/cluster.json"
refuses another_job "worker of 1 task" "$task" --insecure --cluster "$work/cluster.json" --job ps --task 0
refuses another_task "worker of 1 task" "$task" --insecure --cluster "$work/cluster.json" --job worker --task 1
refuses no_address 'is no host:port' "$task" --insecure --cluster '{"worker": ["here"]}' --job worker --task 0
refuses no_port 'is no host:port' "$task" --insecure --cluster '{"worker": ["127.0.0.1:99999"]}' --job worker --task 0
refuses no_job "no name of a job" "$task" --insecure --cluster '{"a b": ["127.0.0.1:1"]}' --job worker --task 0
refuses one_address_twice 'task 0 of job "ps" has the address of task 1 of job "worker", 127.0.0.1:2: each needs a port of its own' \
    "$task" --insecure --cluster '{"worker": ["127.0.0.1:1", "127.0.0.1:2"], "ps": ["127.0.0.1:2"]}' --job worker --task 0
refuses no_json "line 1" "$task" --insecure --cluster '{"worker": [' --job worker --task 0

start() {
    "$task" --insecure --cluster "$work/cluster.json" --job worker --task 0 >"$work/task.out" 2>"$work/task.log" &
    pid=$!
    pids+=("$pid")
    wait_for 20 grep -q "^ready: grpc://127.0.0.1:$port" "$work/task.out"
}
check it_serves start
code=0
timeout 20 "$task" --insecure --cluster "$work/cluster.json" --job worker --task 0 >"$work/said" 2>&1 || code=$?
check two_tasks_on_one_port same "$code" 2
check it_names_the_port has "$(cat "$work/said")" "cannot listen on 127.0.0.1:$port"
TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:'"$(free_port)"'"]}, "task": {"type": "worker", "index": 0}}' \
    "$task" --insecure >"$work/config.out" 2>&1 &
config=$!
pids+=("$config")
check it_reads_TF_CONFIG wait_for 20 grep -q "^ready" "$work/config.out"
kill "$config"
stop TERM
check it_ends_when_told same "$(tail -n 3 "$work/task.log")" ""
