#!/bin/bash
# webhook_test.sh - a URL is told of the states of jobs, signed, again after a failure, and nobody is called who must not be.
# Faults of docs/reliability.md: F41.
. "$(dirname "$0")/lib.sh"
serve yard --webhooks-anywhere
mkdir "$work/far"; echo 200 >"$work/far/answer"; : >"$work/far/received"
python3 "$here/webhook.py" "$work/far" >"$work/far/port" 2>"$work/far.log" &
pids+=($!)
wait_for 10 test -s "$work/far/port"
far=http://127.0.0.1:$(cat "$work/far/port")
received() { wc -l <"$work/far/received"; }
at_least() { [ "$(received)" -ge "$1" ]; }
job() { printf '{"name": "%s", "project": "%s", "command": ["%s"], "tasks": {"worker": {"cpus": 1}}}' "$@"; }

# --- made, with a secret that is shown once ---
made=$(api POST /api/v1/webhooks "{\"project\": \"apples\", \"url\": \"$far/hook\", \"states\": [\"running\", \"succeeded\", \"failed\"]}")
check made same "$(status)" 201
id=$(field "$made" id); secret=$(field "$made" secret)
check secret_shown has "$secret" whsec_
check secret_once same "$(api GET "/api/v1/webhooks/$id" | grep -c secret)" 0
check secret_sealed same "$(grep -c "$secret" "$dir/control.db" "$dir/control.db-wal" | cut -d: -f2 | sort -u)" 0

# --- told, of what it asked for ---
api POST /api/v1/jobs "$(job a apples true)" >/dev/null
api POST /api/v1/jobs "$(job b pears true)" >/dev/null
check told wait_for 20 at_least 2
check what_it_was_told same "$(python3 - "$work/far/received" "$secret" <<'P'
import hashlib, hmac, json, sys, time
for line in open(sys.argv[1]):
    call = json.loads(line)
    when, mac = (part.split("=", 1)[1] for part in call["signature"].split(","))
    good = hmac.new(sys.argv[2].encode(), f"{when}.{call['body']}".encode(), hashlib.sha256).hexdigest() == mac and abs(time.time() - int(when)) < 60
    body = json.loads(call["body"])
    print(call["path"], call["event"], call["delivery"] == str(body["id"]), good, body["type"], body["job"]["name"], body["job"]["project"], body["job"]["from"], body["job"]["state"])
P
)" "/hook job.state True True job.state a apples starting running
/hook job.state True True job.state a apples stopping succeeded"
log() { api GET "/api/v1/webhooks/$id/deliveries$1"; }
all_delivered() { [ "$(log '' | grep -o '"state":"[a-z]*"' | sort | uniq -c | tr -d ' ')" = "$1\"state\":\"delivered\"" ]; }
check log_has_both wait_for 5 all_delivered 2
check log_has_status same "$(field "$(log '')" items 0 status)" 200

# --- a failure is written down and tried again ---
echo 503 >"$work/far/answer"
delivery=$(field "$(api POST "/api/v1/webhooks/$id:test")" id)
tried() { [ "$(field "$(log '?limit=1')" items 0 tries)" -ge "$1" ]; }
check tried wait_for 10 tried 1
check failure_in_log same "$(python3 -c 'import json,sys; d = json.loads(sys.argv[1])["items"][0]; print(d["type"], d["state"], d["status"], d["error"], d["next_at"] > d["tried_at"])' "$(log '?limit=1')")" "test waiting 503 answered 503 True"
stop KILL; again --webhooks-anywhere; echo 302 >"$work/far/answer" # what waits is not lost
check tried_again wait_for 15 tried 2
check redirect_is_no_success same "$(field "$(log '?limit=1')" items 0 error)" "answered 302"
check redirect_not_followed same "$(grep -c redirected "$work/far/received")" 0
echo 204 >"$work/far/answer"
check redelivered same "$(api POST "/api/v1/webhooks/$id/deliveries/$delivery:redeliver" >/dev/null; status)" 202
check comes_through wait_for 10 all_delivered 3
first=$(log '?limit=2')
check log_pages same "$(field "$(log "?limit=2&cursor=$(field "$first" next_cursor)")" next_cursor)" null

# --- one that hangs holds up neither another nor the server's end ---
echo hang >"$work/far/answer"
count=$(received)
api POST "/api/v1/webhooks/$id:test" >/dev/null
check hangs wait_for 10 at_least $((count + 1))
echo 200 >"$work/far/answer"
other=$(field "$(api POST /api/v1/webhooks "{\"project\": \"pears\", \"url\": \"$far/other\"}")" id)
api POST "/api/v1/webhooks/$other:test" >/dev/null
check other_comes wait_for 5 grep -q /other "$work/far/received"
api PATCH "/api/v1/webhooks/$other" '{"disabled": true}' >/dev/null
count=$(received)
api POST /api/v1/jobs "$(job c pears true)" >/dev/null
c=$(field "$(cat "$work/body")" number)
wait_for 20 is_final "$c"
check disabled_is_not_told same "$(received)" "$count"
check removed same "$(api DELETE "/api/v1/webhooks/$other" >/dev/null; status)" 204
check gone same "$(api GET "/api/v1/webhooks/$other" >/dev/null; status)" 404
before=$(date +%s); stop TERM
check ends_at_once test $(($(date +%s) - before)) -le 5

# --- refused ---
again
refused() { api POST /api/v1/webhooks "$1" >/dev/null; [ "$(status)" = 400 ] && has "$(cat "$work/body")" "\"pointer\":\"$2\"" && has "$(cat "$work/body")" "$3"; }
check plain_http refused '{"project": "p", "url": "http://example.com/"}' /url "allowed: https"
check loopback refused '{"project": "p", "url": "https://127.0.0.1/"}' /url "no public address"
check loopback_in_other_words refused '{"project": "p", "url": "https://0x7f.1/"}' /url "no public address"
check loopback6 refused '{"project": "p", "url": "https://[::1]/"}' /url "no public address"
check metadata refused '{"project": "p", "url": "https://169.254.169.254/latest"}' /url "no public address"
check with_password refused '{"project": "p", "url": "https://a:b@example.com/"}' /url "no user, password"
check other_scheme refused '{"project": "p", "url": "file:///etc/passwd"}' /url ""
check newline refused '{"project": "p", "url": "https://example.com/ x"}' /url "byte 21"
check unknown_state refused '{"project": "p", "url": "https://example.com/", "states": ["done"]}' /states/0 "done"
check no_states refused '{"project": "p", "url": "https://example.com/", "states": []}' /states "at least one"
check unknown_field refused '{"project": "p", "url": "https://example.com/", "secret": "x"}' /secret ""
check no_url refused '{"project": "p"}' /url ""
# A webhook of before, and a name that means this machine: refused when it is connected to.
inward=$(field "$(api POST /api/v1/webhooks '{"project": "p", "url": "https://localhost:1/"}')" id)
api POST "/api/v1/webhooks/$inward:test" >/dev/null
was_refused() { has "$(api GET "/api/v1/webhooks/$inward/deliveries")" "its address is not public"; }
check name_of_loopback wait_for 10 was_refused

# --- by the command line ---
hook() { "$trainyard" webhook "$@" --dir "$dir" 2>&1; }
said=$(hook add https://localhost:1/x --project q --states failed,succeeded)
check cli_adds has "$said" "its secret, shown this once: whsec_"
mine=$(echo "$said" | grep -o '[0-9]*' | head -1)
check cli_lists has "$(hook list)" "succeeded,failed"
check cli_changes has "$(hook change "$mine" --disable && hook list)" "disabled"
hook change "$mine" --enable --states failed >/dev/null
check cli_enables same "$(hook list | grep -c disabled)" 0
check cli_tests has "$(hook test "$mine")" "is sent something"
logged() { has "$(hook log "$mine")" "its address is not public"; }
check cli_shows_its_log wait_for 10 logged
delivery=$(hook log "$mine" | awk 'NR == 2 { print $1 }')
check cli_tells_again has "$(hook again "$mine" "$delivery")" "is told once more"
check cli_removes has "$(hook remove "$mine")" "is removed"
check cli_gone has "$(hook log "$mine")" "no webhook"
check cli_wrong has "$(hook log x)" "an ID is a number"

# --- rights: for who manages the project ---
"$trainyard" user add pia --role none --dir "$dir"
"$trainyard" member set apples pia admin --dir "$dir"
"$trainyard" member set pears pia viewer --dir "$dir"
curl -sS -o /dev/null -c "$work/cookies" "$("$trainyard" user link pia --dir "$dir")"
pia() { local method=$1 path=$2; shift 2; curl -sS -o "$work/body" -w '%{http_code}' -b "$work/cookies" -H "X-CSRF: $csrf" -H 'Content-Type: application/json' -X "$method" "$@" "$url$path"; }
csrf=; pia GET /api/v1/session >/dev/null; csrf=$(field "$(cat "$work/body")" csrf)
pears=$(field "$(api POST /api/v1/webhooks '{"project": "pears", "url": "https://example.com/"}')" id)
check hers same "$(pia GET "/api/v1/webhooks/$id/deliveries")" 200
check makes_hers same "$(pia POST /api/v1/webhooks -d '{"project": "apples", "url": "https://example.com/x"}')" 201
check not_where_she_looks same "$(pia POST /api/v1/webhooks -d '{"project": "pears", "url": "https://example.com/"}')" 403
check not_one_she_sees same "$(pia DELETE "/api/v1/webhooks/$pears")" 403
check foreign_is_none same "$(pia GET "/api/v1/webhooks/$inward")" 404
check lists_hers same "$(pia GET /api/v1/webhooks >/dev/null; grep -o '"project":"[a-z]*"' "$work/body" | sort | uniq -c | tr -d ' ')" '2"project":"apples"'
