#!/bin/bash
# edit_test.sh - what a job that waits asks for is changed.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 2 --grace-ms 1000
digits "$dir"
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'
at() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }

hog=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "tasks": {"worker": {"cpus": 2}}}')" number)
wait_for 20 is_state "$hog" running
job=$(field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "exit 3"], "name": "first", "tasks": {"worker": {"cpus": 2}}}')" number)
body=$(api PATCH "/api/v1/jobs/$job" '{"command": ["sh", "-c", "test $A = 1"], "env": {"A": "1"}, "name": "second", "restart": {"max": 2}, "tasks": {"worker": {"cpus": 1}}}')
check "a job that waits is edited" same "$(status) $(field "$body" name)" "200 second"
check "... all of it" has "$(api GET "/api/v1/jobs/$job/spec")" '"cpus": 1'
says=$("$trainyard" edit "$job" --set '{"priority": 70, "notes": "x"}' --dir "$dir")
check "... by the command line, too" same "$says $(at "$job" priority)" "job $job is edited 70"
check "what is wrong is refused" has "$(api PATCH "/api/v1/jobs/$job" '{"tasks": {"worker": {"cpus": 3}}}')" "the largest has 2"
check "... and what it comes after stays" has "$(api PATCH "/api/v1/jobs/$job" '{"after": ['"$hog"']}')" '"/after"'
check "an array it cannot become" has "$(api PATCH "/api/v1/jobs/$job" '{"array": {"/seed": [1]}}')" '"/array"'
# Two who look at the same job: the second must look again.
etag() { curl -sS -D - -o "$work/body" -H "Authorization: Bearer $token" "$url/api/v1/jobs/$job" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p'; }
seen=$(etag)
patch() { api PATCH "/api/v1/jobs/$job" "$1" -H "If-Match: $2"; }
check "a job has an ETag" has "$seen" '"'
patch '{"notes": "first"}' "$seen" >/dev/null
check "what nobody has changed is changed" same "$(status)" 200
check "what was is told" has "$(patch '{"notes": "second"}' "$seen")" "has changed since"
check "... by 412" same "$(status)" 412
patch '{"priority": 71}' "$seen" >/dev/null
check "... for its priority, too" same "$(status) $(at "$job" priority)" "412 70"
patch '{"priority": 71}' "$(etag)" >/dev/null
check "... unless one has looked again" same "$(status) $(at "$job" priority)" "200 71"
patch '{"priority": 70}' '*' >/dev/null
check "any is good" same "$(status)" 200
patch '{"priority": 70}' 'W/"1"' >/dev/null
check "what is no ETag of a job is refused" same "$(status)" 400
api PUT /api/v1/secrets/S '{"value": "a secret"}' -H 'If-Match: "1"' >/dev/null
check "a condition that nobody looks at is refused" same "$(status)" 400
seen=$(etag)
for i in 1 2 3 4 5 6; do curl -sS -o /dev/null -w '%{http_code}\n' -X PATCH -H "Authorization: Bearer $token" -H "If-Match: $seen" -d "{\"notes\": \"n$i\"}" "$url/api/v1/jobs/$job" >"$work/at.$i" & at[i]=$!; done
wait "${at[@]}"
check "of many at once one is first" same "$(sort "$work"/at.? | uniq -c | xargs)" "1 200 5 412"

api PATCH "/api/v1/jobs/$hog" '{"notes": "y"}' >/dev/null
check "one that runs is not edited" same "$(status)" 409
stop KILL; again --cpus 2 --grace-ms 1000
check "it is so after a crash of the server" has "$(api GET "/api/v1/jobs/$job/spec")" '"name": "second"'
"$trainyard" kill "$hog" --dir "$dir" >/dev/null
check "it runs as it was edited" wait_for 20 is_state "$job" succeeded

# --- one that has run: its checkpoint stays good ---
job=$(field "$(api POST /api/v1/jobs '{"model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 20},
    "train": {"loss": "sparse_categorical_crossentropy", "steps": 200000}, "checkpoint": {"every_steps": 500}}')" number)
wait_for 20 is_state "$job" running
sleep 1
api POST "/api/v1/jobs/$job:pause" '{}' >/dev/null
wait_for 20 is_state "$job" queued
check "what its checkpoint is of stays" has "$(api PATCH "/api/v1/jobs/$job" '{"train": {"steps": 5}}')" "train of job $job cannot change any more, as it has run: clone it"
api PATCH "/api/v1/jobs/$job" '{"stop": {"max_steps": 1}, "tasks": {"worker": {"cpus": 2}}}' >/dev/null
check "how it runs may change" same "$(status)" 200
api POST "/api/v1/jobs/$job:resume" '{}' >/dev/null
check "... and it does" wait_for 30 is_state "$job" succeeded
check "... on" same "$(at "$job" attempt)" 2
