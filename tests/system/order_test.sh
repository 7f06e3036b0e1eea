#!/bin/bash
# order_test.sh - lists of jobs by a metric: order, pages that stay whole, filters, and cursors from elsewhere.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent
for i in $(seq 7); do
    api POST /api/v1/jobs "{\"name\": \"j$i\", \"project\": \"$([ $((i % 2)) = 0 ] && echo even || echo odd)\", \"command\": [\"true\"], \"tasks\": {\"worker\": {\"cpus\": 1}}}" >/dev/null
done
stop TERM
# What workers would have reported: job 7 nothing, 6 what is no number, two the same.
python3 - "$dir" <<'P'
import sqlite3, sys
with sqlite3.connect(sys.argv[1] + "/metrics.db") as db:
    for job, value in (1, 0.5), (2, 0.25), (3, 2.0), (4, 0.5), (5, -1e300), (6, None):
        db.execute("INSERT INTO series (job, role, idx, name, points_count, last_step, last_wall_us, last_value) VALUES (?, 'worker', 0, 'val/loss', 1, 1, 1, ?)", (job, value))
P
again --no-agent
list() { api GET "/api/v1/jobs?order_by=$1" >"$work/page"; python3 -c 'import json, sys; print(*(j["number"] for j in json.load(sys.stdin)["items"]))' <"$work/page"; }
next() { python3 -c 'import json, sys; print(json.load(sys.stdin)["next_cursor"])' <"$work/page"; }
check lowest_first same "$(list metrics.val/loss)" "5 2 1 4 3"
check highest_first same "$(list -metrics.val/loss)" "3 4 1 2 5"
check command_line same "$("$trainyard" jobs --order-by -metrics.val/loss --dir "$dir" | awk 'NR > 1 {print $1}' | xargs)" "3 4 1 2 5"
check filtered same "$(list 'metrics.val/loss&project=even')" "2 4"
check unknown_metric same "$(list metrics.none)" ""
check oldest_first same "$(list created_at)" "$(list -created_at | tr ' ' '\n' | tac | xargs)"
check newest_first same "$(list -created_at)" "$(api GET /api/v1/jobs | python3 -c 'import json, sys; print(*(j["number"] for j in json.load(sys.stdin)["items"]))')"
list name >/dev/null
check by_name python3 -c 'import json, sys; names = [(j["name"], j["number"]) for j in json.load(open(sys.argv[1]))["items"]]; assert names == sorted(names) and len(set(names)) > 4, names' "$work/page"
check by_name_backwards same "$(list -name)" "$(list name | tr ' ' '\n' | tac | xargs)"
for i in 2 5; do api PATCH "/api/v1/jobs/$i" '{"priority": 80}' >/dev/null; done
check by_priority same "$(list priority)" "1 3 4 6 7 2 5"
check highest_priority_first same "$(list -priority)" "5 2 7 6 4 3 1"
list metrics.none >/dev/null
check end_has_no_cursor same "$(next)" None
for order in metrics.val/loss -metrics.val/loss -name created_at priority -priority; do
    for filter in '' '&project=odd'; do
        whole=$(list "$order$filter") pages= cursor=
        for _ in $(seq 9); do
            page=$(list "$order$filter&limit=1$cursor"); next=$(next)
            pages="$pages${pages:+ }$page"
            [ "$next" = None ] && break
            cursor="&cursor=$next"
        done
        check "pages_of_${order%.*}_$filter" same "$pages" "$whole"
    done
done
list 'metrics.val/loss&limit=2' >/dev/null; cursor=$(next)
api POST /api/v1/jobs '{"name": "new", "command": ["true"], "tasks": {"worker": {"cpus": 1}}}' >/dev/null
check stays_whole same "$(list "metrics.val/loss&limit=2&cursor=$cursor")" "1 4"
for bad in loss metrics. -metrics. --metrics.loss created number ''; do
    check "refused_$bad" same "$(list "$bad" >/dev/null 2>&1; status)" 400
done
for bad in 7 x 3fe0000000000000 3fe0000000000000- 3fe0000000000000-x 7ff8000000000001-1 3FE0000000000000-1 3fe0000000000000-99999999999999999999 "$cursor-"; do
    check "cursor_refused_$bad" same "$(list "metrics.val/loss&cursor=$bad" >/dev/null 2>&1; status)" 400
done
for bad in 7 x 0:a :a 3fe0000000000000-1 99999999999999999999:a; do
    check "cursor_of_names_refused_$bad" same "$(list "name&cursor=$bad" >/dev/null 2>&1; status)" 400
done
check cursor_of_order_is_none_of_numbers same "$(api GET "/api/v1/jobs?cursor=$cursor" >/dev/null; status)" 400

# --- expressions ---
api POST /api/v1/jobs '{"name": "tagged", "tags": ["baseline", "Paper-2"], "priority": 70, "command": ["true"], "tasks": {"worker": {"cpus": 2}}}' >/dev/null
encoded() { python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$1"; }
chosen() { api GET "/api/v1/jobs?${2:-}filter=$(encoded "$1")" >"$work/page"; python3 -c 'import json, sys; print(*(j["number"] for j in json.load(sys.stdin)["items"]))' <"$work/page"; }
check metric same "$(chosen 'metrics.val/loss < 0.4')" "5 2"
check metric_that_is_not_there same "$(chosen 'metrics.val/loss = null')" "9 8 7"
check both same "$(chosen "metrics.val/loss >= 0.25 and project = 'odd'")" "3 1"
check tags same "$(chosen "tags = 'baseline' or tags ~ 'PAPER-3'")" "9"
check spec same "$(chosen 'spec.tasks.worker.cpus > 1')" "9"
check list_in_the_spec same "$(chosen "spec.command = 'true' and not name ~ 'j'")" "9 8"
check row same "$(chosen "priority = 70 and state = 'queued' and started_at = null and seconds = null and paused = false")" "9"
check time same "$(chosen "created_at > '2020-01-01' and number <= 2")" "2 1"
check with_an_order same "$(chosen "project = 'even'" 'order_by=-metrics.val/loss&')" "4 2"
check "command line" same "$("$trainyard" jobs --filter 'metrics.val/loss < 0.4' --dir "$dir" | awk 'NR > 1 {print $1}' | xargs)" "5 2"
pages= cursor=
for _ in $(seq 9); do
    page=$(chosen "name ~ 'j'" "limit=2&$cursor"); next=$(next)
    pages="$pages${pages:+ }$page"
    [ "$next" = None ] && break
    cursor="cursor=$next&"
done
check pages same "$pages" "7 6 5 4 3 2 1"
check wrong_is_told_by_its_column has "$(api GET "/api/v1/jobs?filter=$(encoded 'metrics.loss << 3')")" "column 15"
check ... same "$(status)" 400
check unknown_field has "$(api GET "/api/v1/jobs?filter=$(encoded 'priorty = 3')")" "no field 'priorty'; there are"
