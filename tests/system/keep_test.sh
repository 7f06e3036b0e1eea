#!/bin/bash
# keep_test.sh - logs and points of old jobs are removed when the server is told so, and what tells of them stays.
source "$(dirname "$0")/lib.sh"
serve yard --cpus 2
new() { field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "echo said; sleep 1"]}')" number; }
old=$(new) young=$(new)
for job in "$old" "$young"; do
    api POST "/api/v1/jobs/$job/metrics" '{"points": [{"step": 1, "values": {"loss": 0.5}}, {"step": 2, "values": {"loss": 0.25}}]}' >/dev/null
    wait_for 20 is_state "$job" succeeded
done
said() { api GET "/api/v1/jobs/$1/logs"; }
points() { api GET "/api/v1/jobs/$1/metrics" | python3 -c 'import json, sys; print(*(len(s["steps"]) for s in json.load(sys.stdin)["series"]))'; }
there() { has "$(said "$1")" '"text":"said"'; }
check "they have logs" wait_for 10 there "$old"
check "... and points" same "$(points "$old") $(points "$young")" "2 2"
stop TERM
# Ten days go by for one of them.
python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: db.execute("UPDATE jobs SET ended_us = ended_us - 864000000000 WHERE number = ?", (sys.argv[2],))' "$dir/control.db" "$old"
again --cpus 2
sleep 1
check "nothing goes by itself" there "$old"
stop TERM
again --cpus 2 --keep-days 7
gone() { ! there "$1" >/dev/null; }
check "what is old goes" wait_for 20 gone "$old"
check "... its points, too" same "$(points "$old")" 0
check "its last values stay" same "$(field "$(api GET "/api/v1/jobs/$old")" last loss)" 0.25
check "its history says so" has "$(api GET "/api/v1/jobs/$old/history")" "were removed, 7 days after it ended"
check "what is young stays" there "$young"
check "... with its points" same "$(points "$young")" 2
check "the log says what was done" grep -q 'jobs=1 days=7' "$work/yard.log"
stop TERM
check "the databases are whole" "$trainyard" db check --dir "$dir"
check "a number that is none is refused" has "$("$trainyard" serve --dir "$work/other" --keep-days -1 2>&1)" "--keep-days is -1"
