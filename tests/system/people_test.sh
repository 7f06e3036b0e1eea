#!/bin/bash
# people_test.sh - users, passwords and tokens: who gets in, what each role may call, what is written down.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent
admin=$token
as() { token=$1; shift; api "$@"; token=$admin; }
# sign_in USER PASSWORD [CURL OPTION...]
sign_in() {
    curl -sS -m 20 -o "$work/body" -w '%{http_code}' -c "$work/cookies" -H 'Content-Type: application/json' \
        --data-binary "{\"user\": \"$1\", \"password\": \"$2\"}" "${@:3}" "$url/api/v1/session"
}
by_cookie() { curl -sS -m 20 -o "$work/body" -w '%{http_code}' -b "$work/cookies" "$@"; }

# --- adding people ---
printf 'correct horse\n' | "$trainyard" user add ana --role member --password --dir "$dir"
check added same "$("$trainyard" user list --dir "$dir" | awk '{print $1, $2, $3, $4}')" "$(printf 'USER ROLE PASSWORD STATE\nadmin admin no -\nana member yes -')"
check no_hash_shown same "$(api GET /api/v1/users | grep -c argon)" 0
check no_text_kept same "$(grep -c 'correct horse' "$dir/control.db" "$dir/control.db-wal" | cut -d: -f2 | sort -u)" 0
check hashed has "$(grep -ao 'argon2id[^,]*,t=[0-9]*' "$dir/control.db" "$dir/control.db-wal")" "argon2id"
api POST /api/v1/users '{"name": "ana", "role": "viewer"}' >/dev/null; check taken same "$(status)" 409
api POST /api/v1/users '{"name": "../x", "role": "viewer"}' >/dev/null; check bad_name same "$(status)" 400
has_pointer() { has "$(field "$(cat "$work/body")" errors 0 pointer)" "$1"; }
check bad_name_pointer has_pointer /name
api POST /api/v1/users '{"name": "x", "role": "viewer", "password": "short"}' >/dev/null; check short_password has "$(cat "$work/body")" "the password has 5 bytes, allowed: 8 to 128"
api POST /api/v1/users '{"name": "x", "role": "viewer", "password": "PassWord123"}' >/dev/null; check common_password has "$(cat "$work/body")" "one of those that are tried first"
check common_password_pointer has_pointer /password
api POST /api/v1/users '{"name": "x", "role": "king"}' >/dev/null; check bad_role has_pointer /role
api POST /api/v1/users '{"name": "x"}' >/dev/null; check role_wanted has_pointer /role
api POST /api/v1/users '{"name": "x", "role": "viewer", "admin": true}' >/dev/null; check unknown_field has_pointer /admin
api PATCH /api/v1/users/admin '{"role": "viewer"}' >/dev/null; check first_stays_admin same "$(status)" 409
api PATCH /api/v1/users/admin '{"disabled": true}' >/dev/null; check first_stays_enabled same "$(status)" 409

# --- by password, with a cookie ---
check signs_in same "$(sign_in ana 'correct horse')" 201
csrf=$(field "$(cat "$work/body")" csrf)
check cookie_is_http_only has "$(cat "$work/cookies")" "#HttpOnly"
check cookie_works same "$(by_cookie "$url/api/v1/session")" 200
check is_ana same "$(field "$(cat "$work/body")" user)" ana
check wrong_password same "$(sign_in ana 'wrong horse!')" 401
wrong=$(field "$(cat "$work/body")" detail)
check unknown_user same "$(sign_in nobody 'wrong horse!')" 401
check tells_nothing same "$(field "$(cat "$work/body")" detail)" "$wrong"
check no_password_no_way same "$(sign_in admin '')" 401
check other_site same "$(sign_in ana 'correct horse' -H 'Origin: http://evil.example')" 403
check as_a_form same "$(curl -sS -o /dev/null -w '%{http_code}' -d '{"user": "ana", "password": "correct horse"}' "$url/api/v1/session")" 403

# --- signing in again: one session in the browser, not two ---
sign_in ana 'correct horse' >/dev/null; cp "$work/cookies" "$work/earlier"
check signs_in_again same "$(sign_in ana 'correct horse' -b "$work/earlier")" 201
check earlier_session_ends same "$(curl -sS -o /dev/null -w '%{http_code}' -b "$work/earlier" "$url/api/v1/session")" 401

# --- one's own password: other sessions end, this one goes on ---
sign_in ana 'correct horse' >/dev/null; cp "$work/cookies" "$work/old"
sign_in ana 'correct horse' >/dev/null; csrf=$(field "$(cat "$work/body")" csrf)
change() { by_cookie -X PUT -H "X-CSRF: $csrf" -H 'Content-Type: application/json' --data-binary "$1" -c "$work/cookies" "$url/api/v1/session/password"; }
check old_password_wanted same "$(change '{"old": "not this one", "new": "battery staple"}')" 401
check changes_password same "$(change '{"old": "correct horse", "new": "battery staple"}')" 200
check goes_on same "$(by_cookie "$url/api/v1/session")" 200
check others_end same "$(curl -sS -o /dev/null -w '%{http_code}' -b "$work/old" "$url/api/v1/session")" 401
check new_password same "$(sign_in ana 'battery staple')" 201
check old_password same "$(sign_in ana 'correct horse')" 401

# --- who came in, and who was refused ---
as_val() { curl -sS -m 20 -o "$work/body" -w '%{http_code}' -H "Authorization: Bearer $val" "$@"; }
printf 'vals long password\n' | "$trainyard" user add val --role viewer --password --dir "$dir"
val=$(curl -sS -m 20 -H 'Content-Type: application/json' -d '{"user": "val", "password": "vals long password"}' "$url/api/v1/session/token" -H 'Sec-Fetch-Site: none' | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
check viewer_denied same "$(as_val "$url/api/v1/users")" 403
check viewer_denied_a_change same "$(as_val -X PUT -d '{}' "$url/api/v1/queues/mine")" 403
sign_in 'not-a-user-but-secret' 'wrong horse!' >/dev/null
entries=$(api GET '/api/v1/audit?limit=200' | python3 -c '
import json, sys
for entry in json.load(sys.stdin)["items"]:
    print(entry["user"] or "-", entry["way"], entry["method"], entry["path"], entry["status"])')
check sign_in_noted has "$entries" "ana session POST /api/v1/session 201"
check token_by_password_noted has "$entries" "val token POST /api/v1/session/token 201"
check wrong_password_noted has "$entries" "ana nothing POST /api/v1/session 401"
check unknown_user_noted has "$entries" "- nothing POST /api/v1/session 401"
check denial_noted has "$entries" "val token GET /api/v1/users 403"
check denied_change_noted has "$entries" "val token PUT /api/v1/queues/mine 403"
check no_claim_kept same "$(grep -c 'not-a-user-but-secret' "$dir/control.db" "$dir/control.db-wal" | cut -d: -f2 | sort -u)" 0
sleep 1
for i in $(seq 20); do as_val "$url/api/v1/users" >/dev/null; done
count=$(api GET '/api/v1/audit?limit=200&user=val' | python3 -c 'import json, sys; print(sum(e["status"] == 403 for e in json.load(sys.stdin)["items"]))')
check denials_are_bounded test "$count" -ge 3 -a "$count" -le 12

# --- guessing ---
api POST /api/v1/users '{"name": "eve", "role": "viewer", "password": "eves password"}' >/dev/null
for i in 1 2 3 4 5; do sign_in eve "guess number $i" >/dev/null; done
check guesses_bounded same "$(sign_in eve 'eves password' -D "$work/head")" 429
check says_when has "$(cat "$work/head")" "Retry-After"
check others_not_bounded same "$(sign_in ana 'battery staple')" 201

# --- tokens: no more than their user, nor than what made them ---
printf 'battery staple' | "$trainyard" login "$url" --user ana >"$work/said"
check cli_signs_in has "$(cat "$work/said")" "signed in to $url as ana"
check cli_is_ana has "$("$trainyard" user list 2>&1)" "needs the role admin; yours is member"
ana=$("$trainyard" token create --name mine)
weak=$("$trainyard" token create --role viewer --days 2 --name weak)
check token_role same "$(field "$(as "$weak" GET /api/v1/session)" role)" viewer
as "$weak" POST /api/v1/tokens '{"role": "member"}' >/dev/null; check no_more_than_itself same "$(status)" 403
as "$weak" POST /api/v1/tokens '{"days": 3}' >/dev/null; check no_longer_than_itself same "$(status)" 403
as "$weak" POST /api/v1/tokens '{"days": 1}' >/dev/null; check shorter_is_fine same "$(status)" 201
as "$ana" POST /api/v1/tokens '{"role": "admin"}' >/dev/null; check no_more_than_user same "$(status)" 403
as "$ana" POST /api/v1/tokens '{"kind": "join"}' >/dev/null; check join_for_admins same "$(status)" 403
check own_tokens has "$("$trainyard" token list)" weak
as "$ana" GET '/api/v1/tokens?user=admin' >/dev/null; check not_others_tokens same "$(status)" 403
id_of() { python3 -c 'import json,sys; print([t["id"] for t in json.loads(sys.argv[1])["items"] if t["name"] == sys.argv[2]][0])' "$@"; }
theirs=$(id_of "$(api GET /api/v1/tokens)" "command line")
as "$ana" DELETE "/api/v1/tokens/$theirs" >/dev/null; check not_anothers_token same "$(status)" 404
check admin_sees_anothers has "$("$trainyard" token list --user ana --dir "$dir")" weak
"$trainyard" token revoke "$(id_of "$(as "$ana" GET /api/v1/tokens)" weak)"
as "$weak" GET /api/v1/session >/dev/null; check revoked same "$(status)" 401

# --- a link of another user ---
curl -sS -o /dev/null -c "$work/cookies" "$("$trainyard" user link ana --dir "$dir")"
by_cookie "$url/api/v1/session" >/dev/null; check link_is_anas same "$(field "$(cat "$work/body")" user)" ana

# --- every route, for every role: from the server's own description ---
api POST /api/v1/users '{"name": "vic", "role": "viewer", "password": "a password"}' >/dev/null
viewer=$(field "$(curl -sS -H 'Content-Type: application/json' -d '{"user": "vic", "password": "a password"}' "$url/api/v1/session/token")" token)
api GET /api/v1/openapi.json >"$work/api.json"
check each_route_each_role same "$(python3 - "$work/api.json" "$url" "viewer=$viewer" "member=$ana" "admin=$admin" <<'P'
import json, re, sys, urllib.error, urllib.request
document, url, tokens = json.load(open(sys.argv[1])), sys.argv[2], dict(t.split("=", 1) for t in sys.argv[3:])
rank = {"none": -1, "viewer": 0, "member": 1, "admin": 2}
calls = 0
def call(method, path, token):
    request = urllib.request.Request(url + re.sub(r"{\w+}", "999999", path), method=method.upper(), headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code
for path, methods in document["paths"].items():
    for method, operation in methods.items():
        wanted = operation.get("x-role")
        for role, token in [(None, None), *tokens.items()]:
            got = call(method, path, token)
            calls += 1
            if not wanted: good = got not in (401, 403) or path.startswith(("/login", "/api/v1/session"))
            elif role is None: good = got == 401
            elif rank[role] < rank[wanted]: good = got == 403
            else: good = got not in (401, 403) and got < 500
            if not good: print(method, path, role, got)
print("all" if calls > 200 else calls)
P
)" all

# --- rights in single projects: pia has none but in apples, where she is a member, and looks at plums ---
"$trainyard" user add pia --role none --dir "$dir"
"$trainyard" member set apples pia member --dir "$dir"
"$trainyard" member set plums pia viewer --dir "$dir"
curl -sS -o /dev/null -c "$work/cookies" "$("$trainyard" user link pia --dir "$dir")"
csrf=$(by_cookie "$url/api/v1/session" >/dev/null; field "$(cat "$work/body")" csrf)
by_cookie -X POST -H "X-CSRF: $csrf" "$url/api/v1/tokens" >/dev/null
pia=$(field "$(cat "$work/body")" token)
check her_projects same "$(field "$(as "$pia" GET /api/v1/session)" projects)" '{"apples": "member", "plums": "viewer"}'
job_in() { printf '{"name": "j", "project": "%s", "command": ["true"], "tasks": {"worker": {"cpus": 1}}%s}' "$1" "${2:-}"; }
pears=$(field "$(api POST /api/v1/jobs "$(job_in pears)")" number)
plums=$(field "$(api POST /api/v1/jobs "$(job_in plums)")" number)
as "$pia" POST /api/v1/jobs "$(job_in pears)" >/dev/null; check not_into_foreign same "$(status)" 403
check not_into_foreign_says has "$(cat "$work/body")" '"pointer":"/project"'
as "$pia" POST /api/v1/jobs "$(job_in plums)" >/dev/null; check not_where_she_looks same "$(status)" 403
apples=$(field "$(as "$pia" POST /api/v1/jobs "$(job_in apples)")" number)
check into_her_own same "$(status)" 201
newer=$(field "$(api POST /api/v1/jobs "$(job_in pears)")" number)
numbers() { python3 -c 'import json,sys; print(*sorted(j["number"] for j in json.loads(sys.argv[1])["items"]))' "$1"; }
check list_has_hers same "$(numbers "$(as "$pia" GET /api/v1/jobs)")" "$plums $apples"
check list_of_admin same "$(numbers "$(api GET /api/v1/jobs)")" "$pears $plums $apples $newer"
check list_by_project same "$(numbers "$(as "$pia" GET '/api/v1/jobs?project=pears')")" ""
check name_is_hers same "$(field "$(as "$pia" GET /api/v1/jobs/j)" number)" "$apples"
as "$pia" GET "/api/v1/jobs/$pears" >"$work/foreign"; as "$pia" GET /api/v1/jobs/99999 >"$work/none"
check foreign_is_as_none same "$(sed "s/\b$pears\b/N/g; s/req_[^\"]*//" "$work/foreign")" "$(sed 's/99999/N/g; s/req_[^"]*//' "$work/none")"
as "$pia" POST /api/v1/jobs "$(job_in apples ", \"after\": [$pears]")" >/dev/null; check after_foreign has "$(cat "$work/body")" "there is no job '$pears'"
as "$pia" PATCH "/api/v1/jobs/$apples" '{"project": "pears"}' >/dev/null; check not_moved_to_foreign same "$(status)" 403
printf 'the secret' | "$trainyard" secret set KEY --dir "$dir"
as "$pia" POST /api/v1/jobs "$(job_in apples ', "secrets": {"KEY": "env"}')" >/dev/null; check no_secrets same "$(status)" 403
check quota_of_hers same "$(api PUT /api/v1/projects/pears '{"weight": 5}' >/dev/null; api PUT /api/v1/projects/apples '{"weight": 6}' >/dev/null; field "$(as "$pia" GET /api/v1/projects)" items | grep -o '"weight": .')" '"weight": 6'
as "$pia" GET /api/v1/projects/apples/members >/dev/null; check members_for_admins same "$(status)" 403

# What she follows: all jobs, and is told of hers.
printf '{"op": "subscribe", "id": 2, "topic": "job.events", "job": %s}\n{"op": "subscribe", "id": 1, "topic": "job.state", "after_seq": 0}\n' "$pears" |
    python3 "$here/ws.py" "${url#http://}" "$pia" --until '"number":'"$apples" --seconds 5 >"$work/followed"
check follows_her_own same "$(grep -o '"number": *[0-9]*' "$work/followed" | sort -u)" "$(printf '"number":%s\n' $plums $apples | sort)"
check follows_no_foreign has "$(cat "$work/followed")" "there is no job $pears"

# each_route TOKEN OWN SEEN FOREIGN...: each route with a job of a project where TOKEN is a member's, one where it is a viewer's, and others; "all" when each answers so.
each_route() { python3 - "$work/api.json" "$url" "$@" <<'P'
import json, sys, urllib.error, urllib.request
document, (url, token, own, seen, *foreign) = json.load(open(sys.argv[1])), sys.argv[2:]
calls = 0
def call(method, path):
    request = urllib.request.Request(url + path, method=method.upper(), headers={"Authorization": f"Bearer {token}"})
    try:
        return urllib.request.urlopen(request, timeout=3).status
    except urllib.error.HTTPError as error:
        return error.code
for path, methods in document["paths"].items():
    for method, operation in methods.items():
        role, single = operation.get("x-role"), operation.get("x-role-in") == "project"
        if "/jobs/{id}" in path or "/arrays/{id}" in path:
            assert single, path
            for job in (own, seen, *foreign):
                got = call(method, path.replace("{id}", job) + ("?path=x" if path.endswith("content") else ""))
                calls += 1
                if job in foreign: good = got == 404
                elif job == own or role == "viewer": good = got not in (401, 403) and got < 500
                else: good = got == 403 or (got == 404 and "arrays" in path) # none of these is an array
                if not good: print(method, path, job, got)
        elif role in ("viewer", "member", "admin") and not single:
            got = call(method, path.replace("{name}", "999").replace("{id}", "999"))
            calls += 1
            if got != 403: print(method, path, got)
print("all" if calls > 70 else calls)
P
}
check each_route_each_project same "$(each_route "$pia" "$apples" "$plums" "$pears")" all

# A token of one project, of an administrator: there it may what it may, elsewhere nothing.
one=$("$trainyard" token create --dir "$dir" --name one --role member --project apples)
check one_is_of_apples same "$(field "$(as "$one" GET /api/v1/session)" projects)" '{"apples": "member"}'
check one_is_nobody_elsewhere same "$(field "$(as "$one" GET /api/v1/session)" role)" none
check one_is_listed has "$("$trainyard" token list --dir "$dir")" "apples"
check one_each_route same "$(each_route "$one" "$apples" "$apples" "$plums" "$pears")" all
check one_sees_its_jobs same "$(numbers "$(as "$one" GET /api/v1/jobs)")" "$(numbers "$(api GET '/api/v1/jobs?project=apples')")"
check one_sees_no_others same "$(numbers "$(as "$one" GET '/api/v1/jobs?project=pears')")" ""
check one_sees_its_project same "$(field "$(as "$one" GET /api/v1/projects)" items | grep -o '"name": "[a-z]*"')" '"name": "apples"'
as "$one" POST /api/v1/jobs "$(job_in pears)" >/dev/null; check one_not_into_pears same "$(status)" 403
as "$one" POST /api/v1/tokens '{}' >"$work/made"; check one_makes_its_like same "$(field "$(as "$(field "$(cat "$work/made")" token)" GET /api/v1/session)" projects)" '{"apples": "member"}'
as "$one" POST /api/v1/tokens '{"project": "pears"}' >/dev/null; check one_makes_none_elsewhere has_pointer /project
as "$one" POST /api/v1/tokens '{"role": "admin"}' >/dev/null; check one_makes_none_higher has_pointer /role
as "$one" DELETE "/api/v1/tokens/$theirs" >/dev/null; check one_ends_no_other same "$(status)" 403
as "$one" PUT /api/v1/session/password '{"new": "a way in for ever"}' >/dev/null; check one_sets_no_first_password same "$(status)" 403
printf '{"op": "subscribe", "id": 2, "topic": "job.events", "job": %s}\n{"op": "subscribe", "id": 1, "topic": "job.state", "after_seq": 0}\n' "$pears" |
    python3 "$here/ws.py" "${url#http://}" "$one" --until '"number":'"$apples" --seconds 5 >"$work/followed"
check one_follows_its_own has "$(cat "$work/followed")" '"number":'"$apples"
check one_follows_no_other same "$(grep -c "\"number\": *\($pears\|$plums\)\b" "$work/followed")" 0
as "$pia" POST /api/v1/tokens '{"project": "pears"}' >/dev/null; check none_for_where_she_is_none has_pointer /project
as "$pia" POST /api/v1/tokens '{"project": "plums", "role": "member"}' >/dev/null; check no_more_than_she_is_there has_pointer /role
api POST /api/v1/tokens '{"project": "a/b"}' >/dev/null; check no_such_project_name has_pointer /project
api POST /api/v1/tokens '{"project": "apples", "kind": "join"}' >/dev/null; check nodes_are_of_no_project has_pointer /project

# A role that is taken away ends what it opened.
curl -sSN -m 20 -H "Authorization: Bearer $pia" "$url/api/v1/jobs/$apples/events" >"$work/stream" 2>&1 &
follower=$!
wait_for 5 test -s "$work/stream"
"$trainyard" member remove apples pia --dir "$dir"
check stream_ends wait_for 5 sh -c "! kill -0 $follower 2>/dev/null"
as "$pia" GET "/api/v1/jobs/$apples" >/dev/null; check no_longer_hers same "$(status)" 404

# --- changes on condition that all is as it was seen ---
tag() { curl -sS -m 10 -D - -o /dev/null -H "Authorization: Bearer $token" "$url/api/v1/$1" | tr -d '\r' | sed -n 's/^ETag: //p'; }
hook=$(field "$(api POST /api/v1/webhooks '{"project": "apples", "url": "https://hooks.example/x"}')" id)
api PUT /api/v1/queues/nights '{"weight": 3}' >/dev/null
for one in 'users/ana|PATCH|{"role": "viewer"}|{"role": "member"}' 'queues/nights|PUT|{"weight": 4}|{"weight": 5}' 'projects/apples|PUT|{"weight": 7}|{"weight": 8}' "webhooks/$hook|PATCH|{\"disabled\": true}|{\"disabled\": false}"; do
    IFS='|' read -r path method first second <<<"$one"
    seen=$(tag "$path")
    check "tag_stays_$path" same "$(tag "$path")" "$seen"
    api "$method" "/api/v1/$path" "$first" -H "If-Match: $seen" >/dev/null; check "as_seen_$path" same "$(status)" 200
    api "$method" "/api/v1/$path" "$second" -H "If-Match: $seen" >/dev/null; check "no_longer_as_seen_$path" same "$(status)" 412
    check "says_what_it_is_$path" has "$(field "$(cat "$work/body")" detail)" "its ETag is $(tag "$path") now"
    api "$method" "/api/v1/$path" "$second" -H "If-Match: *" >/dev/null; check "whatever_it_is_$path" same "$(status)" 200
done
api PUT /api/v1/queues/never '{"weight": 4}' -H 'If-Match: *' >/dev/null; check not_made_by_a_change same "$(status)" 412
check was_not_made same "$(api GET /api/v1/queues/never >/dev/null; status)" 404
api DELETE "/api/v1/webhooks/$hook" '' -H 'If-Match: "0"' >/dev/null; check not_removed_unseen same "$(status)" 412
api DELETE "/api/v1/webhooks/$hook" '' -H "If-Match: $(tag "webhooks/$hook")" >/dev/null; check removed_as_seen same "$(status)" 204
api DELETE /api/v1/secrets/KEY '' -H 'If-Match: "0"' >/dev/null; check condition_is_never_ignored same "$(status)" 400

# --- disabled: everything of his ends ---
"$trainyard" user set ana --disable --dir "$dir"
as "$ana" GET /api/v1/session >/dev/null; check disabled_token same "$(status)" 401
check disabled_password same "$(sign_in ana 'battery staple')" 401
api POST /api/v1/users/ana:link >/dev/null; check disabled_link same "$(status)" 409
"$trainyard" user set ana --enable --role viewer --dir "$dir"
check enabled_again same "$(sign_in ana 'battery staple')" 201
check other_role same "$(field "$(cat "$work/body")" role)" viewer

# --- the audit ---
audit=$("$trainyard" audit --dir "$dir" --limit 200)
check audit_of_users has "$audit" "PATCH"
check audit_of_user has "$("$trainyard" audit --user ana --dir "$dir")" "/api/v1/session/password"
check audit_of_socket has "$audit" "socket"
reads=$(grep " GET " <<<"$audit" | grep -v " 40[13]$\|/login" | sed 1q)
check audit_has_no_reads same "$reads" ""
first=$(api GET '/api/v1/audit?limit=3')
second=$(api GET "/api/v1/audit?limit=3&cursor=$(field "$first" next_cursor)")
check audit_pages test "$(field "$first" items 2 seq)" -gt "$(field "$second" items 0 seq)"
check audit_stays has "$(python3 -c 'import sqlite3,sys; sqlite3.connect(sys.argv[1]).execute("DELETE FROM audit")' "$dir/control.db" 2>&1)" "the audit is never deleted"

# --- a session that nobody uses ends; tokens say when they were used ---
stop TERM; again --no-agent
check used_token_says_when has "$(api GET /api/v1/tokens | python3 -c 'import json, sys; print([bool(t["used_at"]) for t in json.load(sys.stdin)["items"] if t["kind"] == "api"])')" True
check session_before same "$(sign_in ana 'battery staple')" 201
check session_is_good same "$(by_cookie "$url/api/v1/session")" 200
age() { python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10)
db.execute("UPDATE tokens SET created_us = created_us - ?1, used_us = max(0, used_us - ?1) WHERE kind = 1", (int(sys.argv[2]) * 3600 * 1000000,))
db.commit()' "$dir/control.db" "$1"; }
age 11
check eleven_hours_are_well same "$(by_cookie "$url/api/v1/session")" 200
age 13
check thirteen_are_not same "$(by_cookie "$url/api/v1/session")" 401
check says_how_long has "$(cat "$work/body")" "not used for 12 hours"
stop TERM
