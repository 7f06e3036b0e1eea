#!/bin/bash
# slurm_test.sh - a real Slurm brings nodes when jobs wait for them, and gets them back.
# Faults of docs/reliability.md: F36.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/slurm.sh"

why=$(slurm_missing)
[ -z "$why" ] || { echo "skip slurm: $why"; exit 0; }
slurm_start 2 || { echo "FAIL slurm: it does not start: $(tail -n 5 "$slurm"/*.out "$slurm"/*.log)"; failed=1; exit 1; }

mkdir "$work/pilots"
cat >"$work/engine.json" <<END
{"engine": "slurm", "agent": "$trainyard", "folder": "$work/pilots", "poll_seconds": 1,
 "queues": {"default": {"max": 2, "idle_seconds": 2, "join_seconds": 30, "cpus": 2, "memory_bytes": 1073741824, "labels": {"from": "slurm"}}}}
END
engine=(--no-agent --agents-port "$(free_port)" --engine-config "$work/engine.json" --backoff-ms 3000)
serve yard "${engine[@]}"
check_config() { # NAME JSON TEXT
    echo "$2" >"$work/bad.json"
    check "$1" has "$("$trainyard" serve --dir "$work/other" --port 0 --agents-port 1 --engine-config "$work/bad.json" 2>&1)" "$3"
}
check_config unknown_field '{"engine": "slurm", "queues": {"default": {"cpus": 1, "memory_bytes": 1048576, "maxx": 1}}}' "/queues/default/maxx: there is no such field"
check_config limit '{"engine": "slurm", "queues": {"default": {"cpus": 1, "memory_bytes": 1048576, "max": 5000}}}' "/queues/default/max: is 5000; it must be from 1 to 1000"

check needs_a_port has "$("$trainyard" serve --dir "$work/other" --port 0 --engine-config "$work/engine.json" 2>&1)" "needs --agents-port with a number"

job() { field "$(api POST /api/v1/jobs "$1")" id; }
node_state() { api GET /api/v1/nodes | python3 -c 'import json, sys; print(" ".join(n["name"] + ":" + n["state"] for n in json.load(sys.stdin)["items"]))'; }
explains() { has "$(api GET "/api/v1/jobs/$1/explain")" "$2" >/dev/null; }
running() { [ "$(slurm_jobs RUNNING)" = "$1" ]; }
waiting() { [ "$(slurm_jobs PENDING)" = "$1" ]; }

# A queue with no node: a pilot comes, the job runs, the pilot goes.
check nothing_at_first running 0
id=$(job '{"command": ["sh", "-c", "echo on $SLURM_JOB_NAME; sleep 1"], "tasks": {"worker": {"node_labels": {"from": "slurm"}}}}')
check succeeds wait_for 30 is_state "$id" succeeded
check ran_there same "$(field "$(api GET "/api/v1/jobs/$id")" nodes)" '["slurm-default-1"]'
check released wait_for 20 running 0
check lost_at_once wait_for 5 sh -c "curl -sS -H 'Authorization: Bearer $token' $url/api/v1/nodes | grep -q '\"state\":\"lost\"'"
check folder_is_gone wait_for 5 sh -c "! ls -d $work/pilots/slurm-default-1.*"

# The engine has no room: explain says what is waited for; a cancelled job needs no pilot any more.
hog=$(sbatch --parsable --exclusive -N2 --output=/dev/null --wrap "sleep 300")
wait_for 10 running 1
id=$(job '{"command": ["true"]}')
check explained wait_for 15 explains "$id" '"ENGINE"'
check in_slurms_words wait_for 10 explains "$id" "PENDING (Resources)"
check one_pilot waiting 1
api POST "/api/v1/jobs/$id:cancel" '{}' >/dev/null
check pilot_is_cancelled wait_for 15 waiting 0
scancel "$hog"
check hog_gone wait_for 15 slurm_is_idle 2

# What no node could hold is refused; what two nodes can is not, and gets both of them.
check too_large has "$(api POST /api/v1/jobs '{"command": ["true"], "tasks": {"worker": {"cpus": 3}}}')" "3.000 CPUs on one node asked"
id=$(job '{"command": ["sleep", "60"], "tasks": {"worker": {"replicas": 2, "cpus": 2}}, "restart": {"max": 2}}')
check gang_runs wait_for 30 is_state "$id" running

pilots() { api GET /metrics | grep -F "trainyard_pilots{queue=\"default\",state=\"$1\"} " | awk '{print $NF}'; }
both_joined() { [ "$(pilots joined)" = 2 ]; }
check counted wait_for 5 both_joined

# A restart of the server finds its pilots again.
stop TERM
check tasks_keep_their_pilots running 2
again "${engine[@]}"
check runs_on wait_for 20 is_state "$id" running
check no_more_pilots same "$(slurm_jobs PENDING,RUNNING)" 2

# The controller dies: nothing is decided until it is back, and nothing is asked for twice.
sleep 6 # it saves its state every 5 s: jobs that it was killed over before are forgotten, and submitted again
kill -9 "$slurmctld"
waits=$(job '{"command": ["true"]}')
check says_that_slurm_is_silent wait_for 40 explains "$waits" "Slurm cannot be asked"
check still_runs is_state "$id" running
slurmctld
answers() { squeue --noheader >/dev/null 2>&1; }
check controller_is_back wait_for 20 answers
spoken() { explains "$waits" '"code"' && ! explains "$waits" "cannot be asked"; }
check heard_again wait_for 20 spoken
check no_pilot_is_doubled same "$(slurm_jobs PENDING,RUNNING)" 2
api POST "/api/v1/jobs/$waits:cancel" '{}' >/dev/null

# A pilot that is ended by others: its tasks are given up at once, and tried again on a new one.
attempt() { [ "$(field "$(api GET "/api/v1/jobs/$id")" attempt)" = "$1" ] && is_state "$id" running; }
scancel --full "$(squeue --noheader --format=%i --states=RUNNING | head -n 1)"
check tried_again wait_for 40 attempt 2

# A machine that fails: Slurm says so, and the job goes on elsewhere or waits.
kill -9 "$slurmd"
check node_fails wait_for 40 sh -c "curl -sS -H 'Authorization: Bearer $token' $url/api/v1/nodes | grep -q lost"
slurmd n2
check third_attempt wait_for 60 attempt 3

api POST "/api/v1/jobs/$id:kill" '{}' >/dev/null
check ends wait_for 20 is_final "$id"

# A pilot that Slurm ends: its tasks are told first, and what they say then arrives.
id=$(job '{"command": ["sh", "-c", "trap \"echo saved; exit 0\" TERM; echo begun; while :; do sleep 0.2; done"], "tasks": {"worker": {"node_labels": {"from": "slurm"}}}}')
logged() { has "$(api GET "/api/v1/jobs/$id/logs")" "$1" >/dev/null; }
check runs_to_be_ended wait_for 40 logged begun
where=$(field "$(api GET "/api/v1/jobs/$id")" nodes 0)
scancel --signal=TERM --batch "$(squeue --noheader --format='%i %j' --states=RUNNING | sed -n "s/ .*-$where\$//p")"
check was_told wait_for 20 logged saved
api POST "/api/v1/jobs/$id:kill" '{}' >/dev/null
check is_over wait_for 20 is_final "$id"

# An agent that dies leaves nothing behind, though linuxproc does not see what has left its session.
id=$(job '{"command": ["sleep", "7654.25"], "tasks": {"worker": {"node_labels": {"from": "slurm"}}}}')
sleeps() { pgrep -f '^sleep 7654.25$' >/dev/null; }
check sleeps wait_for 40 sleeps
where=$(field "$(api GET "/api/v1/jobs/$id")" nodes 0) # on a failed machine an agent may still be knocking
kill -9 "$(pgrep -f "$work/pilots/$where\..* --name $where( |\$)")"
gone() { ! sleeps; }
check task_is_gone wait_for 20 gone
check its_folder_too wait_for 20 sh -c "! ls -d $work/pilots/slurm-default-*.* | grep -v '^$'"
api POST "/api/v1/jobs/$id:kill" '{}' >/dev/null
check is_killed wait_for 20 is_final "$id"

# The end: pilots without tasks go with the server.
stop TERM
check none_left wait_for 10 running 0
