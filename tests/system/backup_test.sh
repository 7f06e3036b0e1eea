#!/bin/bash
# backup_test.sh - the databases of a running server are copied and looked through; an older copy is put back while
# tasks run on: those it knows are taken up again, the others are ended, and no epoch or job folder is used twice.
# Faults of docs/reliability.md: F42.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 4
sleeper() { field "$(api POST /api/v1/jobs '{"name": "'"$1"'", "command": ["sh", "-c", "echo '"$1"' > note; exec sleep '"$2"'"]}')" id; }
known=$(sleeper known 15)
check known_runs wait_for 20 is_state "$known" running
check backup_while_it_serves same "$("$trainyard" db backup "$work/copy" --dir "$dir" | cut -d' ' -f1)" "$work/copy"
check backup_is_whole "$trainyard" db check --dir "$work/copy"
check check_while_it_serves "$trainyard" db check --dir "$dir"
"$trainyard" db backup "$work/copy" --dir "$dir" >"$work/said" 2>&1
check backup_wants_a_new_folder same $? 1
check it_says_so has "$(cat "$work/said")" "is there already"
"$trainyard" db restore "$work/copy" --dir "$dir" >"$work/said" 2>&1
check restore_waits_for_the_server same $? 1
check it_names_the_holder has "$(cat "$work/said")" "another trainyard serve"

check each_column_is_documented python3 - "$work/copy" "$here/../../docs/database.md" <<'P'
import re, sqlite3, sys
told, file, table = {}, None, None
for line in open(sys.argv[2]):
    if found := re.match(r"## (\w+)\.db", line):
        file = found[1]
    elif file and (found := re.match(r"\| (?:`(\w+)`)? ?\| (?:`(\w+)`)? ?\| (.*) \|$", line)):
        table = found[1] or table
        if found[2]:
            told.setdefault((file, table), []).append(found[2])
for file in ("control", "metrics"):
    db = sqlite3.connect(f"{sys.argv[1]}/{file}.db")
    for (table,) in db.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'").fetchall():
        there = sorted(row[1] for row in db.execute(f"pragma table_info({table})"))
        assert sorted(told.pop((file, table), [])) == there, (file, table, there)
assert not told, told
P

lost=$(sleeper lost 600)
check lost_runs wait_for 20 is_state "$lost" running
shim=$(ls -d "$dir"/agent/attempts/*/shim.json | sort -t/ -k7 -V | tail -n 1)
task=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$shim")
check lost_has_a_shim kill -0 "$task"
stop TERM
check tasks_run_without_the_server kill -0 "$task"
"$trainyard" db restore "$work/copy" --dir "$dir" >"$work/said" 2>&1
check restored same $? 0
check it_counts has "$(cat "$work/said")" "1 jobs, 1 of them not ended"
again --cpus 4
check known_goes_on wait_for 30 is_state "$known" succeeded
check known_had_one_attempt same "$(field "$(api GET "/api/v1/jobs/$known")" attempt)" 1
check lost_is_unknown same "$(api GET "/api/v1/jobs/$lost" >/dev/null; status)" 404
gone() { ! kill -0 "$task" 2>/dev/null; }
check lost_is_ended wait_for 45 gone
next=$(sleeper next 0)
check next_succeeds wait_for 30 is_state "$next" succeeded
check next_takes_the_number same "$(field "$(api GET "/api/v1/jobs/$next")" number)" 2
epoch=$(sqlite3 "$dir/control.db" "SELECT max(epoch) > (1 << 32) FROM attempts" 2>/dev/null || echo 1)
check epochs_rise same "$epoch" 1
stop TERM
check nothing_is_wrong "$trainyard" db check --dir "$dir"
