#!/bin/bash
# tunnel_test.sh - a cluster for TensorFlow's clients: tasks as a job, the tunnel to them, who is let in, how it ends.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 4 --grace-ms 5000 --backoff-ms 100
export TRAINYARD_DIR=$dir
cd "$work" || exit 1
cp "$here/knock.py" . # where another user may read it
chmod 755 "$work" && chmod 644 knock.py
knock() { python3 knock.py "$@"; }
speaks() { [ "$(knock "$1")" = speaks ]; }
tasks() { for p in $(pgrep -f "$build/trainyard-task --certificate"); do tr '\0' '\n' <"/proc/$p/environ" | grep -q "^TRAINYARD_JOB=$1\$" && echo "$p"; done; }

# --- wrong ---
refuses() { # NAME WORDS ARGUMENT... : exit code 2, or 1 from the server, and these words
    local name=$1 words=$2
    shift 2
    "$trainyard" submit "$@" >said 2>&1 && echo "  it was taken" >said
    check "$name" has "$(cat said)" "$words"
}
refuses no_number "roles with their numbers" --cluster ps
refuses role_twice "each once" --cluster worker=1,worker=2
refuses unknown_role "/tasks" --cluster boss=1,worker=1
refuses no_worker "at least 1 replica" --cluster ps=1,worker=0
refuses idle_too_long "/cluster/idle_seconds" --cluster worker=1 --idle-seconds 99999999
refuses spec_and_cluster "one of a spec and --cluster" digits-cnn --cluster worker=1
refuses port_alone "goes with --cluster" digits-cnn --port 5
post() { api POST /api/v1/jobs "$1" >/dev/null; cat body; }
check gpus_are_refused has "$(post '{"cluster": {}, "tasks": {"worker": {"gpus": 1}}}')" /tasks/worker/gpus
check data_is_a_models has "$(post '{"cluster": {}, "data": {"dataset": "digits"}}')" 'belongs to a model'
check not_with_a_command has "$(post '{"cluster": {}, "command": ["true"]}')" 'one of cluster'
check unknown_field has "$(post '{"cluster": {"idle": 5}}')" idle_seconds
check all_or_none has "$(post '{"cluster": {}, "tasks": {"worker": 5}}')" 'its 5 tasks do not fit'

# --- the tunnel ---
"$trainyard" submit --cluster ps=1,worker=2 --name wall >wall.out 2>wall.log &
tunnel=$!
pids+=("$tunnel")
check it_says_where wait_for 30 grep -q '^  grpc://127' wall.out
target=$(sed -n 's/^  grpc:..127.0.0.1:\([0-9]*\)$/\1/p' wall.out)
config=$(sed -n "s/^  TF_CONFIG='\(.*\)'$/\1/p" wall.out)
check config_begins_with_it same "$(field "$config" cluster worker 0)" "127.0.0.1:$target"
check config_has_all same "$(field "$config" cluster worker 1 | cut -d: -f1) $(field "$config" cluster ps 0 | cut -d: -f1)" "127.0.0.1 127.0.0.1"
check a_client_gets_through speaks "$target"
other=$(field "$config" cluster ps 0)
check to_every_task speaks "${other#*:}"
check it_is_a_cluster same "$(field "$(api GET /api/v1/jobs/wall)" cluster)" true
check its_spec_is_whole same "$(field "$(api GET /api/v1/jobs/wall/spec)" cluster idle_seconds)" 3600

# --- who is let in ---
number=$(field "$(api GET /api/v1/jobs/wall)" number)
pass=$(api POST "/api/v1/jobs/$number:tunnel")
python3 - "$pass" <<'END'
import json, sys
answer = json.loads(sys.argv[1])
open("pass.pem", "w").write(answer["certificate"] + answer["key"])
print(next(t["address"] for t in answer["tasks"] if t["role"] == "ps").rsplit(":", 1)[1], file=open("port", "w"))
END
check with_a_pass_to_a_task same "$(knock "$(cat port)" pass.pem)" speaks
check without_one_not same "$(knock "$(cat port)" "")" refuses
check nor_in_the_clear same "$(knock "$(cat port)")" refuses
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.pem -subj /CN=tasks.trainyard -days 2 2>/dev/null
check nor_with_anothers same "$(knock "$(cat port)" other.pem other.key)" refuses
check a_pass_ends_soon sh -c 'test $(( $(date -d "$(openssl x509 -in pass.pem -noout -enddate | cut -d= -f2)" +%s) - $(date +%s) )) -le 600'
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups /usr/bin/python3 -c 0 2>/dev/null; then
    check another_user_is_not same "$(setpriv --reuid 65534 --clear-groups /usr/bin/python3 "$work/knock.py" "$target")" refuses
    check and_the_log_says_so has "$(cat wall.log)" "a connection of user 65534 was refused"
    "$trainyard" tunnel wall --any-user --json >any.out 2>any.log &
    any=$!
    pids+=("$any")
    wait_for 20 grep -q target any.out
    any_port=$(field "$(cat any.out)" target)
    check but_where_all_are_let_in same "$(setpriv --reuid 65534 --clear-groups /usr/bin/python3 "$work/knock.py" "${any_port##*:}")" speaks
    kill "$any"
    wait "$any"
    check a_tunnel_ends_when_told same "$?" 0
else
    echo "skip another_user: needs root"
fi
api POST /api/v1/users '{"name": "vic", "role": "viewer", "password": "a password"}' >/dev/null
vic=$(field "$(curl -sS -H 'Content-Type: application/json' -d '{"user": "vic", "password": "a password"}' "$url/api/v1/session/token")" token)
check viewers_look_only has "$(TRAINYARD_DIR='' TRAINYARD_URL=$url TRAINYARD_TOKEN=$vic "$trainyard" tunnel wall 2>&1)" "needs the role member"

# --- what happens to it ---
kill -KILL "$(tasks "$number" | head -n 1)"
again_with() { [ "$(field "$(api GET /api/v1/jobs/wall)" attempt)" = "$1" ] && is_state wall running; }
check one_falls_all_start_again wait_for 30 again_with 2
check the_same_tunnel_finds_them wait_for 20 speaks "$target"
stop TERM
again --cpus 4 --grace-ms 5000 --backoff-ms 100
check a_new_server_knows_them wait_for 20 speaks "$target"
"$trainyard" pause wall >/dev/null
check pause wait_for 20 is_state wall queued
check it_is_not_there same "$(knock "$target")" refuses
check it_says_why has "$(cat wall.log)" "queued"
"$trainyard" resume wall >/dev/null
check resume wait_for 20 is_state wall running
check and_is_there_again wait_for 20 speaks "$target"
"$trainyard" cancel wall >/dev/null
check cancel wait_for 20 is_state wall cancelled
wait "$tunnel"
check the_tunnel_ends_with_it same "$?" 4
check says_how has "$(cat wall.log)" "job $number has ended: cancelled"
check nothing_is_left same "$(tasks "$number")" ""

# --- left alone ---
"$trainyard" submit --cluster worker=1,ps=1 --name lone --idle-seconds 1 >lone.out 2>lone.log &
lone=$!
pids+=("$lone")
check nobody_needs_it wait_for 20 is_state lone succeeded
wait "$lone"
check its_tunnel_ends same "$?" 0
check it_says_so has "$("$trainyard" logs lone)" "no client has used it for 1 s"
check ended_is_ended has "$("$trainyard" tunnel lone 2>&1)" "has ended (succeeded)"
"$trainyard" run --detach --name prog -- sleep 100 >/dev/null
check a_program_is_none has "$("$trainyard" tunnel prog 2>&1)" "runs a program"
"$trainyard" kill prog >/dev/null
