#!/bin/bash
# pause_test.sh - jobs are paused, resumed, restarted, cloned, archived and removed, with real processes.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 2 --grace-ms 5000
digits "$dir"
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'
at() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }
rests() { [ "$(at "$1" state) $(at "$1" code)" = "queued PAUSED" ]; }

# --- a model: the losses are those of a run that nobody disturbed ---
spec='{"name": "rests", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "seed": 3,
    "data": {"dataset": "digits", "batch_size": 20}, "train": {"loss": "sparse_categorical_crossentropy", "steps": 50000},
    "checkpoint": {"every_steps": 500}, "tasks": {"worker": {"cpus": 2}}}'
job=$(field "$(api POST /api/v1/jobs "$spec")" number)
stepped() { [ "$(at "$job" step)" -gt 600 ]; }
wait_for 30 stepped
says=$("$trainyard" pause "$job" --dir "$dir")
check "a running job is told to pause" same "$says" "job $job is stopping, paused"
check "it leaves its node" wait_for 20 rests "$job"
check "it says why it waits" has "$(api GET "/api/v1/jobs/$job/explain")" '"code":"PAUSED"'
ids() { python3 -c 'import json, sys; print(*[j["number"] for j in json.loads(sys.argv[1])["items"]])' "$(api GET "/api/v1/jobs$1")"; }
check "the list says so" has "$("$trainyard" jobs --dir "$dir")" "paused"
check "lists of what is paused have it" same "$(ids '?state=paused')" "$job"
check "... with other states, too" same "$(ids '?state=running,paused')" "$job"
check "lists of what runs do not" same "$(ids '?state=running')" ""
other=$(field "$(api POST /api/v1/jobs '{"command": ["true"], "tasks": {"worker": {"cpus": 2}}}')" number)
check "others get its room" wait_for 20 is_state "$other" succeeded
stop KILL; again --cpus 2 --grace-ms 5000
sleep 1
check "it rests after a crash of the server, too" rests "$job"
check "to pause it again is nothing new" same "$(field "$(api POST "/api/v1/jobs/$job:pause" '{}')" state)" queued
api POST "/api/v1/jobs/$job:resume" '{}' >/dev/null
runs_or_has_run() { case $(state_of "$1") in running | succeeded) ;; *) false ;; esac; }
check "resumed it runs again" wait_for 20 runs_or_has_run "$job"
check "... and ends" wait_for 120 is_state "$job" succeeded
check "it cost no restart" same "$(at "$job" restarts) $(at "$job" attempt)" "0 2"
api POST "/api/v1/jobs/$job:pause" '{}' >/dev/null
check "what has ended is not paused" same "$(status)" 409

# --- clones ---
copy=$("$trainyard" clone "$job" --dir "$dir" | grep -o '[0-9]*' | head -1)
check "a clone runs" wait_for 120 is_state "$copy" succeeded
losses() { echo "$(field "$(api GET "/api/v1/jobs/$1")" last loss) $(field "$(api GET "/api/v1/jobs/$1")" last val_loss)"; }
check "a run has losses" has "$(losses "$job")" .
check "... to the same loss, undisturbed" same "$(losses "$copy")" "$(losses "$job")"
other=$(field "$(api POST "/api/v1/jobs/$job:clone" '{"seed": 4, "train": {"steps": 5}, "name": "other"}')" number)
check "a clone may differ" has "$(api GET "/api/v1/jobs/$other/spec")" '"seed": 4'
again_() { api POST "/api/v1/jobs/$1:clone" "{\"seed\": $2, \"name\": \"once-more\", \"train\": {\"steps\": 5}}" -H "Idempotency-Key: copy"; }
one=$(field "$(again_ "$job" 5)" number)
check "a clone that is asked for again is one" same "$(field "$(again_ "$job" 5)" number)" "$one"
again_ "$job" 6 >/dev/null
check "... of the same values" same "$(status)" 422
again_ "$copy" 5 >/dev/null
check "... and the same job" same "$(status)" 422
wait_for 60 is_state "$one" succeeded
check "what is wrong in it is refused" has "$(api POST "/api/v1/jobs/$job:clone" '{"train": {"stepz": 5}}')" '"/train/stepz"'
wait_for 60 is_state "$other" succeeded

# --- the archive ---
check "a job is archived" same "$("$trainyard" archive "$other" --dir "$dir")" "job $other is succeeded, archived"
check "lists leave it out" same "$(ids '?name=other')" ""
check "unless asked" same "$(ids '?archived=true')" "$other"
check "it is there as before" same "$(at "$other" archived)" true
"$trainyard" archive "$other" --undo --dir "$dir" >/dev/null
check "and comes back" same "$(ids '?name=other')" "$other"
last=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "100"]}')" number)
api POST "/api/v1/jobs/$last:archive" '{}' >/dev/null
check "one that has not ended is not archived" same "$(status)" 409
wait_for 20 is_state "$last" running
api POST "/api/v1/jobs/$last:pause" '{}' >/dev/null
check "a program rests, too" wait_for 20 rests "$last"
"$trainyard" cancel "$last" --dir "$dir" >/dev/null
check "and is cancelled while it does" is_state "$last" cancelled

# --- restarted: a new attempt goes on from the checkpoint ---
long='{"name": "long", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "seed": 3,
    "data": {"dataset": "digits", "batch_size": 20}, "train": {"loss": "sparse_categorical_crossentropy", "steps": 2000000},
    "checkpoint": {"every_steps": 500}, "tasks": {"worker": {"cpus": 2}}}'
job=$(field "$(api POST /api/v1/jobs "$long")" number)
wait_for 30 stepped
check "a job is restarted" same "$("$trainyard" restart "$job" --dir "$dir")" "job $job is stopping"
second() { [ "$(at "$job" attempt) $(at "$job" state)" = "2 running" ]; }
check "a second attempt runs" wait_for 30 second
check "... not from the beginning" wait_for 20 has "$(api GET "/api/v1/jobs/$job/history")" "goes on from its checkpoint"
check "it costs no restart" same "$(at "$job" restarts)" 0
check "its tasks are those of the second" same "$(field "$(api GET "/api/v1/jobs/$job/tasks")" attempt)" 2
check "and those of the first are known" same "$(field "$(api GET "/api/v1/jobs/$job/tasks?attempt=1")" items 0 state)" exited
api GET "/api/v1/jobs/$job/tasks?attempt=7" >/dev/null; check "of a seventh nobody knows" same "$(status)" 404
api DELETE "/api/v1/jobs/$job" >/dev/null; check "what runs is not removed" same "$(status)" 409
"$trainyard" cancel "$job" --dir "$dir" >/dev/null
wait_for 20 is_final "$job"
api POST "/api/v1/jobs/$job:restart" >/dev/null; check "what has ended is not restarted" same "$(status)" 409

# --- removed: nobody finds it, and what it left is gone ---
check "it left checkpoints" test -d "$dir/jobs/$job/checkpoints"
tag=$(curl -sS -m 10 -D - -o /dev/null -H "Authorization: Bearer $token" "$url/api/v1/jobs/$job" | tr -d '\r' | sed -n 's/^ETag: //p')
api DELETE "/api/v1/jobs/$job" "" -H 'If-Match: "1"' >/dev/null; check "an old ETag removes nothing" same "$(status)" 412
api DELETE "/api/v1/jobs/$job" "" -H "If-Match: $tag" >/dev/null; check "the one that it has removes it" same "$(status)" 204
api GET "/api/v1/jobs/$job" >/dev/null; check "it is not found" same "$(status)" 404
check "nor by its name" same "$(ids '?name=long')" ""
check "nor in the archive" same "$(ids '?name=long&archived=true')" ""
check "its folder is gone" wait_for 10 test ! -e "$dir/jobs/$job"
left() { [ "$(sqlite3 "$dir/metrics.db" "SELECT count(*) FROM series WHERE job = $job")" = 0 ]; }
check "its metrics are gone" wait_for 10 left
check "the command line removes as well" same "$("$trainyard" remove "$other" --dir "$dir")" "job $other is removed"
check "what is not there is not removed" has "$("$trainyard" remove "$other" --dir "$dir" 2>&1)" "there is no job"
next=$(field "$(api POST /api/v1/jobs '{"command": ["true"]}')" number)
check "numbers are not given twice" test "$next" -gt "$job"
wait_for 20 is_state "$next" succeeded
stop TERM
check "the databases agree" "$trainyard" db check --dir "$dir"
