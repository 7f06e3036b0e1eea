#!/bin/bash
# after_test.sh - jobs that come after others.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 4 --backoff-ms 100 --grace-ms 1000
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'

# runs SCRIPT [AFTER] : the number of a job that is this shell script
runs() { field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "'"$1"'"], "after": ['"${2:-}"']}')" number; }
explain() { api GET "/api/v1/jobs/$1/explain"; }

first=$(runs "while ! test -e $work/go; do sleep 0.1; done")
second=$(runs true "$first")
third=$(runs true "$first, $second")
check "a job waits for the one it comes after" has "$(explain "$second")" '"code":"DEPENDENCY"'
wait_for 20 is_state "$first" running
check "... and says for which" has "$(explain "$third")" "comes after job $first (running) and 1 more"
check "it is shown, too" same "$(field "$(api GET "/api/v1/jobs/$third")" after)" "[$first, $second]"
check "what names nobody is refused" has "$(api POST /api/v1/jobs '{"command": ["true"], "after": [1, "nobody"]}')" '"/after/1"'
sleep 0.5
check "nothing has started" same "$(field "$(api GET "/api/v1/jobs/$second")" attempt)" 0
stop KILL; again --cpus 4 --backoff-ms 100 --grace-ms 1000
check "after a crash of the server they wait, too" has "$(explain "$third")" '"code":"DEPENDENCY"'
touch "$work/go"
check "when it has succeeded they start" wait_for 20 is_state "$third" succeeded
check "in their order" python3 -c "
import json, sys
a, b, c = (json.loads(x) for x in sys.argv[1:])
sys.exit(not a['ended_at'] <= b['started_at'] <= b['ended_at'] <= c['started_at'])" \
    "$(api GET "/api/v1/jobs/$first")" "$(api GET "/api/v1/jobs/$second")" "$(api GET "/api/v1/jobs/$third")"

rm "$work/go"
bad=$(runs "while ! test -e $work/go; do sleep 0.1; done; exit 5")
next=$(runs true "$bad")
last=$("$trainyard" run --detach --after "$next,$third" --dir "$dir" -- true | grep -o '[0-9]*' | head -1)
touch "$work/go"
check "when one fails, the next does" wait_for 20 is_state "$next" failed
check "... without an attempt" same "$(field "$(api GET "/api/v1/jobs/$next")" attempt)" 0
check "... and says why" has "$(explain "$next")" "it was to come after job $bad, which has failed"
check "... and so on" is_state "$last" failed
check "a job after a failed one is refused" has "$(api POST /api/v1/jobs '{"command": ["true"], "after": ['"$bad"']}')" "one that comes after it would never start"
key=$(api POST /api/v1/jobs '{"command": ["true"], "after": ['"$first"']}' -H "Idempotency-Key: k")
check "the same request again is the same job" same "$(field "$(api POST /api/v1/jobs '{"command": ["true"], "after": ['"$first"']}' -H "Idempotency-Key: k")" number)" "$(field "$key" number)"
