#!/bin/bash
# queue_test.sh - queues, quotas, priorities and preemption, with real jobs.
source "$(dirname "$0")/lib.sh"

serve queues
digits "$dir"
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'
cpus=$(field "$(api GET /api/v1/nodes)" items 0 cpus)

# spec NAME STEPS [FIELDS] : a job that takes all CPUs
spec() {
    echo '{"name":"'"$1"'","model":{"layers":[{"layer":"Flatten"},{"layer":"Dense","units":10}]},
        "data":{"dataset":"digits","batch_size":20},"train":{"loss":"sparse_categorical_crossentropy","steps":'"$2"'},
        "checkpoint":{"every_steps":200},"tasks":{"worker":{"cpus":'"$cpus"'}}'"${3:-}"'}'
}

# --- what is there, and what is refused ---
check "there is a default queue" same "$(field "$(api GET /api/v1/queues)" items 0 name)" default
api PUT /api/v1/queues/urgent '{"priority": 90, "preempt": true}' >/dev/null
check "an admin makes a queue" same "$(status)" 200
check "unsaid fields have defaults" same "$(field "$(api PUT /api/v1/queues/urgent '{}')" weight)" 100
has_text=$(api PUT /api/v1/queues/urgent '{"priority": 101}')
check "a wrong value is refused" same "$(status)" 400
check "... by its name and limit" has "$has_text" "from 0 to 100"
body=$(api POST /api/v1/jobs "$(spec lost 10 ',"queue":"urgnt"')")
check "an unknown queue is refused" same "$(status)" 400
check "... with those that there are" has "$body" "default, urgent"

# --- preemption ---
low=$(field "$(api POST /api/v1/jobs "$(spec low 2000000)")" number)
check "a job of low rank runs" wait_for 30 is_state "$low" running
sleep 1
high=$(field "$(api POST /api/v1/jobs "$(spec high 300 ',"queue":"urgent"')")" number)
check "one of a queue that preempts gets its room" wait_for 60 is_state "$high" succeeded
check "the other runs again" wait_for 30 is_state "$low" running
again=$(api GET "/api/v1/jobs/$low")
check "that cost it no restart" same "$(field "$again" restarts)" 0
check "... and is counted" same "$(field "$again" preemptions)" 1
check "it went on from its checkpoint" has "$("$trainyard" logs "$low" --dir "$dir" 2>&1; api GET "/api/v1/jobs/$low/attempts")" '"attempt":2'

# --- priority and quota of jobs that wait ---
first=$(field "$(api POST /api/v1/jobs "$(spec first 300 ',"project":"a"')")" number)
second=$(field "$(api POST /api/v1/jobs "$(spec second 300 ',"project":"a"')")" number)
check "a queued job gets another priority" same "$(field "$(api PATCH "/api/v1/jobs/$second" '{"priority": 80}')" priority)" 80
has_text=$("$trainyard" priority "$second" 81 --dir "$dir")
check "... by the command line, too" same "$has_text" "job $second has priority 81"
api PATCH "/api/v1/jobs/$low" '{"priority": 80}' >/dev/null
check "one that runs does not" same "$(status)" 409
check "the one ahead is counted" same "$(field "$(api GET "/api/v1/jobs/$first/explain")" ahead)" 1
why=$(api GET "/api/v1/jobs/$first/explain")
check "what would start it now is found out" has "$(field "$why" changes 0)" "urgent"
check "... and told" has "$why" "In queue urgent in place of default, jobs of lower rank would make room for it"
check "... on the command line, too" has "$("$trainyard" explain "$second" --dir "$dir")" "If job $low ended, it would start now on"
check "nobody knows when a job without a limit ends" has "$why" '"starts_in_seconds":null'
# --- what would happen ---
spec late 10 ',"queue":"urgent"' >"$work/late.json"
plan=$(api POST /api/v1/plan '{"spec": '"$(cat "$work/late.json")"'}')
check "a plan says whom a job would stop" same "$(field "$plan" stopped 0 job)" "$low"
check "... and what it takes to start" same "$(field "$plan" code)" PREEMPTING
check "a dry run says the same" has "$(api POST '/api/v1/jobs?dry_run=plan' "$(cat "$work/late.json")")" "Would stop job $low"
plan=$("$trainyard" plan --add '{"name": "more", "cpus": '"$cpus"', "memory_bytes": 100000000000}' --dir "$dir")
check "a node more would let a job start sooner" has "$plan" "Would let job $second start sooner"
plan=$("$trainyard" plan "$work/late.json" --add '{"name": "more", "cpus": '"$cpus"', "memory_bytes": 100000000000}' --dir "$dir")
check "... and a job that is submitted then start there" has "$plan" "worker/0 on more"
api POST /api/v1/plan '{"nodes": [{"name": "nobody", "drain": true}]}' >/dev/null
check "a node that is not there is named" has "$(cat "$work/body")" "there is no node 'nobody'"
api POST /api/v1/plan '{"nodes": [{"name": "x"}]}' >/dev/null
check "a change that is none is refused" same "$(status)" 400
check "nothing of it was done" same "$(field "$(api GET "/api/v1/jobs?state=queued")" items | grep -o '"number"' | wc -l)" 2
api PUT /api/v1/projects/a '{"quota": {"cpus": 0}}' >/dev/null
"$trainyard" cancel "$low" --dir "$dir" >/dev/null
wait_for 60 is_state "$low" cancelled
check "a quota keeps jobs waiting" same "$(field "$(api GET "/api/v1/jobs/$second/explain")" code)" QUOTA
stop KILL; again
check "... after a crash of the server, too" wait_for 20 has "$(api GET "/api/v1/jobs/$second/explain")" QUOTA
"$trainyard" project a --cpus -1 --dir "$dir" >/dev/null
check "without it they run" wait_for 60 is_state "$first" succeeded
check "the one of higher priority ran first" python3 -c "
import json, sys
a, b = (json.loads(x)['started_at'] for x in sys.argv[1:])
sys.exit(not a < b)" "$(api GET "/api/v1/jobs/$second")" "$(api GET "/api/v1/jobs/$first")"
seconds=$(field "$(api GET /api/v1/projects)" items 0 cpu_seconds)
check "what projects use is counted" python3 -c "import sys; sys.exit(not float(sys.argv[1]) > 0)" "$seconds"
