#!/bin/bash
# kubernetes_test.sh - pods bring nodes when jobs wait for them: against an API that checks what it is sent by the
# schemas of the official client, and by the manifests' own Role.
# Faults of docs/reliability.md: F37.
. "$(dirname "$0")/lib.sh"

# The client, pinned, once for a build folder.
venv=$build/kubernetes-venv
if [ ! -e "$venv/stamp" ]; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check kubernetes==31.0.0 && touch "$venv/stamp"; } >"$work/pip.out" 2>&1 ||
        { echo "skip kubernetes: its client cannot be installed: $(tail -n 1 "$work/pip.out")"; exit 0; }
fi
mkdir "$work/api" "$work/pilots"
"$venv/bin/python" "$here/kubernetes_api.py" "$here/../../deploy/kubernetes/trainyard.yaml" secret-of-the-pod "$work/api" >"$work/api.log" 2>&1 &
pids+=("$!")
wait_for 20 test -s "$work/api/port" || { echo "FAIL manifests: $(cat "$work/api.log")"; failed=1; exit 1; }
echo "ok manifests"
api_url=http://127.0.0.1:$(cat "$work/api/port")
fake() { curl -sS -m 10 "$api_url/fake/$1"; }

echo secret-of-the-pod >"$work/token"
engine_config() { # IMAGE-FIELD : the rest is the same
    cat <<END
{"engine": "kubernetes", "agent": "$trainyard", "folder": "$work/pilots", "poll_seconds": 1, "url": "$api_url", "namespace": "trainyard",
 "token_file": "$work/token", "claim": "trainyard", "claim_path": "/var/lib/trainyard" $1,
 "queues": {"default": {"max": 2, "idle_seconds": 2, "join_seconds": 30, "cpus": 2, "memory_bytes": 1073741824, "node_selector": {"disk": "ssd"}, "time_minutes": 60}}}
END
}
engine_config '' >"$work/bad.json"
check image_is_missing has "$("$trainyard" serve --dir "$work/other" --port 0 --agents-port 1 --engine-config "$work/bad.json" 2>&1)" "/image: is missing"
engine_config ', "image": "trainyard:1"' | sed 's,http://127.0.0.1,http://10.0.0.1,' >"$work/bad.json"
check unencrypted has "$("$trainyard" serve --dir "$work/other" --port 0 --agents-port 1 --engine-config "$work/bad.json" 2>&1)" "/url: must begin with https://"
engine_config ', "image": "trainyard:1"' >"$work/engine.json"
engine=(--cpus 1 --agents-port "$(free_port)" --engine-config "$work/engine.json" --backoff-ms 200)
serve yard "${engine[@]}"

wait_for 10 has "$(api GET /api/v1/nodes)" joined
plan=$(api POST '/api/v1/jobs?dry_run=plan' '{"command": ["true"], "tasks": {"worker": {"cpus": 2}}}')
check planned same "$(status)" 200
check plan_says_who has "$plan" '"code":"ENGINE"'
api POST '/api/v1/jobs?dry_run=plan' '{"command": ["true"], "tasks": {"worker": {"cpus": 3}}}' >/dev/null
check too_large same "$(status)" 400

job() { field "$(api POST /api/v1/jobs "$1")" id; }
pods() { [ "$(field "$(fake all)" pods | tr , '\n' | grep -c trainyard-)" = "$1" ]; }
explains() { has "$(api GET "/api/v1/jobs/$1/explain")" "$2" >/dev/null; }

id=$(job '{"command": ["sh", "-c", "sleep 1"], "tasks": {"worker": {"cpus": 2}}}')
check succeeds wait_for 30 is_state "$id" succeeded
check ran_there same "$(field "$(api GET "/api/v1/jobs/$id")" nodes)" '["kubernetes-default-1"]'
check released wait_for 20 pods 0
check secret_goes_with_it same "$(field "$(fake all)" secrets)" "[]"

fake "full?is=true" >/dev/null
id=$(job '{"command": ["sleep", "60"], "tasks": {"worker": {"replicas": 2, "cpus": 2}}, "restart": {"max": 2}}')
check explained wait_for 15 explains "$id" "Pending (Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.)"
fake "full?is=false" >/dev/null
check gang_runs wait_for 30 is_state "$id" running

# The API is away for a while: nothing is lost, nothing is doubled.
fake "broken?is=true" >/dev/null
told() { grep -q "etcd has no leader" "$work/yard.log"; }
check api_is_away wait_for 10 told
check still_runs is_state "$id" running
fake "broken?is=false" >/dev/null

stop TERM
check pods_with_tasks_stay pods 2
again "${engine[@]}"
check runs_on wait_for 20 is_state "$id" running
check no_more_pods pods 2

attempt() { [ "$(field "$(api GET "/api/v1/jobs/$id")" attempt)" = "$1" ] && is_state "$id" running; }
fake "evict?pod=$(field "$(fake all)" pods 0)" >/dev/null
check tried_again wait_for 40 attempt 2
api POST "/api/v1/jobs/$id:kill" '{}' >/dev/null
check ends wait_for 20 is_final "$id"

# The token is replaced by one that is no good: said to whom it concerns.
check idle wait_for 20 pods 0
echo wrong >"$work/token"
id=$(job '{"command": ["true"], "tasks": {"worker": {"cpus": 2}}}')
check refused_and_said wait_for 15 explains "$id" "Kubernetes cannot be asked: GET /api/v1/namespaces/trainyard/pods"
stop TERM
check none_left pods 0
check nothing_was_refused_but_that same "$(grep -cE '^4(0[^1]|[1-9])' "$work/api.log")" 0
