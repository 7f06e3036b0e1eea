#!/bin/bash
# secret_test.sh - secrets: told to tasks that name them, and seen nowhere else.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 4 --grace-ms 1000 --backoff-ms 100
export TRAINYARD_DIR=$dir
wait_for 10 has "$(api GET /api/v1/nodes)" joined
value="s3cret-$RANDOM-$RANDOM-$RANDOM"

# --- set, list, remove ---
check none_yet same "$("$trainyard" secret list | wc -l)" 1
printf '%s\n' "$value" | "$trainyard" secret set TOKEN
check set same "$?" 0
printf 'file-%s' "$value" | "$trainyard" secret set KEY
check listed has "$("$trainyard" secret list)" TOKEN
check key_file same "$(stat -c '%a %s' "$dir/secret.key")" "600 32"
check too_short has "$(printf abc | "$trainyard" secret set SHORT 2>&1)" "has 3 bytes, allowed: 4 to 65536"
check too_long has "$(head -c 70000 /dev/zero | tr '\0' x | "$trainyard" secret set LONG 2>&1)" "allowed: 4 to 65536"
check no_text has "$(printf 'ab\377cd' | "$trainyard" secret set BINARY 2>&1)" "no UTF-8 text"
check bad_name has "$(printf abcdef | "$trainyard" secret set 1A 2>&1)" "cannot name a secret"
for body in '' '[]' '{}' '{"value": 5}' '{"value": "abcd", "other": 1}'; do
    api PUT /api/v1/secrets/A "$body" >/dev/null
    check "refused_$body" same "$(status)" 400
done
api PUT /api/v1/secrets/SHORT '{"value": "abc"}' >/dev/null
check short_pointer has "$(cat "$work/body")" /value
list=$(api GET /api/v1/secrets)
check rest_lists same "$(field "$list" items 1 name)" TOKEN
api GET /api/v1/secrets/TOKEN >/dev/null
check never_shown same "$(status)" 405
reader=$(curl -sS -o /dev/null -w '%{http_code}' "$url/api/v1/secrets")
check for_those_signed_in same "$reader" 401

# --- told: in a file of its owner's alone, and as a variable where the job says so ---
check in_env has "$("$trainyard" run --secret TOKEN=env -- sh -c '[ "$TOKEN" = "$(cat "$TOKEN_FILE")" ] && echo ${#TOKEN}')" "${#value}"
check in_file same "$("$trainyard" run --secret TOKEN -- sh -c 'stat -c %a "$TOKEN_FILE" "$TRAINYARD_SECRETS"; echo "${TOKEN-none}"; sha256sum <"$TOKEN_FILE"')" \
    "$(printf '400\n700\nnone\n%s' "$(printf %s "$value" | sha256sum)")"
check only_what_is_named same "$("$trainyard" run --secret TOKEN -- sh -c 'ls "$TRAINYARD_SECRETS"')" TOKEN
check unknown has "$("$trainyard" run --secret NOBODY -- true 2>&1)" "/secrets/NOBODY"

# --- masked: in output, in errors, in pieces, in what ends a program ---
"$trainyard" run --name shows --secret TOKEN=env --secret KEY -- sh -c 'echo "a $TOKEN b"; cat "$KEY_FILE"; echo "err $TOKEN" >&2
    for c in $(echo "$TOKEN" | fold -w1); do printf %s "$c"; sleep 0.02; done; echo; env | grep ^TOKEN=; head -c 200000 /dev/zero | tr "\0" x; printf "%s" "$TOKEN"' >"$work/shown" 2>"$work/shown.err"
check masked has "$(cat "$work/shown")" "a *** b"
check masked_file has "$(cat "$work/shown")" "***"
check masked_error has "$(cat "$work/shown.err")" "err ***"
check masked_env has "$(cat "$work/shown")" "TOKEN=***"
check masked_at_a_border has "$(tail -c 20 "$work/shown")" "xxx***"
check masked_all same "$(grep -c -- "$value" "$work/shown" "$work/shown.err")" "$(printf '%s:0\n%s:0' "$work/shown" "$work/shown.err")"
"$trainyard" run --name last --secret TOKEN=env -- sh -c 'echo "cannot log in with $TOKEN" >&2; exit 3' 2>/dev/null
check last_words has "$(api GET /api/v1/jobs/last)" 'cannot log in with ***'
check logs has "$("$trainyard" logs shows)" "a *** b"

# --- nowhere on disk, in no spec, in no command line, while it runs and when it has ended ---
"$trainyard" run --detach --name runs --secret TOKEN=env --secret KEY -- sh -c 'echo $TOKEN; cat $KEY_FILE; sleep 300' >/dev/null
wait_for 10 is_state runs running
wait_for 5 grep -rq '\*\*\*' "$dir/agent/attempts" --include=stdout.log
check on_disk same "$(grep -rla -- "$value" "$dir" "$work"/*.log | sed 's|.*/||' | sort | tr '\n' ' ')" "KEY TOKEN "
check in_no_spec sh -c "! '$trainyard' show runs | grep -q -- '$value'"
check spec_names_it has "$(api GET /api/v1/jobs/runs/spec)" '"secrets": {"TOKEN": "env", "KEY": "file"}'
printf %s "$value" >"$work/value"
check in_no_command_line sh -c '! cat /proc/[0-9]*/cmdline 2>/dev/null | grep -aqf "$1"' sh "$work/value"
"$trainyard" kill runs >/dev/null
wait_for 10 is_final runs
check gone_with_the_task same "$(grep -rla -- "$value" "$dir")" ""

# --- another value for what starts from now on; also after the server came back ---
"$trainyard" run --detach --name again --secret TOKEN -- sh -c 'cat $TOKEN_FILE | sha256sum >$TRAINYARD_OUT/artifacts/sum; [ $TRAINYARD_ATTEMPT = 2 ] || { while [ ! -e '"$work"'/go ]; do sleep 0.05; done; kill -SEGV $$; }' >/dev/null
wait_for 10 is_state again running
printf 'another-value' | "$trainyard" secret set TOKEN
stop KILL
again --cpus 4 --grace-ms 1000 --backoff-ms 100
touch "$work/go"
check rotated wait_for 20 is_state again succeeded
check rotated_value same "$(api GET '/api/v1/jobs/again/artifacts/content?path=sum')" "$(printf another-value | sha256sum)"

# --- removed: refused at once, and what waits fails with the reason ---
"$trainyard" run --detach --name holds --cpus 4 -- sleep 300 >/dev/null
wait_for 10 is_state holds running
"$trainyard" run --detach --name waits --secret TOKEN -- true >/dev/null
"$trainyard" secret remove TOKEN
check removed same "$?" 0
"$trainyard" secret remove TOKEN 2>"$work/said"
check removed_once has "$(cat "$work/said")" "there is no secret 'TOKEN'"
"$trainyard" kill holds >/dev/null
check waits_fails wait_for 20 is_state waits failed
check waits_says has "$(api GET /api/v1/jobs/waits)" "there is no secret 'TOKEN'"
check tried_once same "$(field "$(api GET /api/v1/jobs/waits)" attempt)" 1

# --- to another machine's agent, too ---
serve far --no-agent
"$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$("$trainyard" token create --join --dir "$dir")" --dir "$work/node" >/dev/null 2>"$work/node.log" &
pids+=($!)
wait_for 10 has "$(api GET /api/v1/nodes)" joined
printf %s "$value" | "$trainyard" secret set FAR --dir "$dir"
check far_away same "$("$trainyard" run --dir "$dir" --workdir / --secret FAR=env -- sh -c 'echo "<$FAR>"; sha256sum <$FAR_FILE')" "$(printf '<***>\n%s' "$(printf %s "$value" | sha256sum)")"
check far_on_disk same "$(grep -rla -- "$value" "$dir" "$work/node" "$work/node.log")" ""
