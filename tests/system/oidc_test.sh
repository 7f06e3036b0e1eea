#!/bin/bash
# oidc_test.sh - people sign in by another provider (OpenID Connect), and nobody else does.
source "$(dirname "$0")/lib.sh"

python3 "$(dirname "$0")/oidc_provider.py" >"$work/port" 2>"$work/provider.log" &
pids+=($!)
wait_for 20 [ -s "$work/port" ]
issuer=http://127.0.0.1:$(cat "$work/port")
echo "provider secret" >"$work/secret"
become() { curl -sS "$issuer/become?sub=$1&name=$2&wrong=${3:-}" >/dev/null; }
# A browser: follows all the redirects, with cookies of its own.
browse() { curl -sSL -m 30 -c "$work/jar.$1" -b "$work/jar.$1" -o "$work/body" -w '%{http_code}' "$url/oidc/login"; }
who() { curl -sS -b "$work/jar.$1" "$url/api/v1/session"; }
signed_in() { rm -f "$work/jar.$1"; browse "$1" >/dev/null; field "$(who "$1")" user 2>/dev/null; }

serve plain --no-agent
check "without a provider there is none" same "$(curl -sS "$url/oidc")" '{"issuer":null}'
check "... and none to go to" same "$(curl -sS -o /dev/null -w '%{http_code}' "$url/oidc/login")" 404
stop TERM

# --- an admin adds users: they come in by their names, and only once as whom they are ---
options=(--no-agent --oidc-issuer "$issuer/" --oidc-client yard --oidc-secret "$work/secret")
serve yard "${options[@]}"
check "the page knows the provider" same "$(curl -sS "$url/oidc")" "{\"issuer\":\"$issuer\"}"
become 1 ana
check "whom nobody added stays outside" same "$(browse ana)" 401
check "... and is told what to do" has "$(cat "$work/body")" "trainyard user add ana"
"$trainyard" user add ana --role member --dir "$dir"
check "whom an admin added comes in" same "$(signed_in ana)" ana
check "... with his role" same "$(field "$(who ana)" role)" member
check "... and again" same "$(signed_in ana)" ana
become 2 ana
check "another of that name does not" same "$(signed_in other)" ""
check "... and is told so" has "$(browse other; cat "$work/body")" "is that of another user"
become 1 renamed
check "who is called otherwise there is the same here" same "$(signed_in ana)" ana
become 3 admin
check "nobody becomes the operator" same "$(signed_in other)" ""
printf 'a long password\n' | "$trainyard" user add bob --role admin --password --dir "$dir"
become 4 bob
check "nor one who has a password" same "$(signed_in other)" ""
curl -sS -o /dev/null -X PATCH -H "Authorization: Bearer $token" -d '{"disabled": true}' "$url/api/v1/users/ana"
become 1 ana
check "who is disabled does not come in" same "$(signed_in ana)" ""
curl -sS -o /dev/null -X PATCH -H "Authorization: Bearer $token" -d '{"disabled": false}' "$url/api/v1/users/ana"
check "the audit has who came in" has "$(api GET '/api/v1/audit?user=ana')" '"path":"/oidc/callback","status":303'
check "... and who did not" has "$(api GET '/api/v1/audit?limit=200')" '"path":"/oidc/callback","status":401'

# --- what is wrong with the provider's answer ---
while read -r wrong words; do
    become 1 ana "$wrong"
    check "$wrong: not signed in" same "$(signed_in other)" ""
    check "... as it says" has "$(cat "$work/body")" "$words"
done <<'W'
denied not &lt;today>
issuer of another issuer
audience for somebody else
party for somebody else
old has run out
nonce not of this sign-in
nobody does not say who
nameless does not tell
nonsense it is no token
notoken it is no token
fault gave no answer that helps
W

# --- what is wrong with the way back ---
become 1 ana
rm -f "$work/jar.a"
back=$(curl -sS -c "$work/jar.a" -o /dev/null -w '%{redirect_url}' "$url/oidc/login")
back=$(curl -sS -o /dev/null -w '%{redirect_url}' "$back")
code_() { curl -sS -o "$work/body" -w '%{http_code}' "$@"; }
check "another browser than the one that began" same "$(code_ "$back")" 401
check "... is told so" has "$(cat "$work/body")" "was not begun here"
check "another state" same "$(code_ -b "$work/jar.a" "${back/state=/state=x}")" 401
check "no cookie of ours" same "$(code_ -H "Cookie: trainyard-oidc=AAAA" "$back")" 401
check "the one that began" same "$(code_ -b "$work/jar.a" -c "$work/jar.a" "$back")" 303
check "a code is used once" same "$(code_ -H "Cookie: trainyard-oidc=$(awk '/trainyard-oidc/ {print $7}' "$work/jar.a")" "$back")" 401
stop TERM

# --- whoever the provider knows comes in, as the operator has chosen ---
serve open "${options[@]}" --oidc-role viewer --oidc-claim sub
become eva@example.com x
check "whom nobody knows is added" same "$(signed_in eva)" eva
check "... with that role" same "$(field "$(who eva)" role)" viewer
become "$(python3 -c 'print("%3Cscript%3E")')" x
check "but not under any name" has "$(signed_in other; cat "$work/body")" "cannot be the name of a user"
stop TERM

# --- options that cannot be ---
refused() { check "$1" has "$(timeout 20 "$trainyard" serve --dir "$work/none" --port 0 --no-agent "${@:3}" 2>&1)" "$2"; }
refused "plain HTTP elsewhere" "must begin with https://" --oidc-issuer http://id.example.com --oidc-client c
refused "no client" "needs --oidc-client" --oidc-issuer https://id.example.com
refused "no secret" "cannot be read" --oidc-issuer https://id.example.com --oidc-client c --oidc-secret "$work/nowhere"
refused "no role" "--oidc-role is 'boss'" --oidc-issuer https://id.example.com --oidc-client c --oidc-role boss
serve away --no-agent --oidc-issuer http://127.0.0.1:1 --oidc-client c
check "a provider that is away is told" same "$(code_ "$url/oidc/login")" 503
check "... with what to do" has "$(cat "$work/body")" "Try again"
stop TERM
serve slow --no-agent --oidc-issuer "$issuer/hang" --oidc-client c
for i in 1 2 3 4 5 6 7 8 9; do curl -sS -o /dev/null -w '%{http_code}\n' "$url/oidc/login" >"$work/slow.$i" & slow[i]=$!; done
sleep 1
before=$(date +%s%N)
check "while a provider hangs others work" has "$(api POST /api/v1/jobs '{"command": ["true"]}')" '"number":1'
check "... at once" test $((($(date +%s%N) - before) / 1000000)) -lt 3000
wait "${slow[@]}"
check "three wait for it, others are told to come again" same "$(sort "$work"/slow.? | uniq -c | xargs)" "6 429 3 503"
