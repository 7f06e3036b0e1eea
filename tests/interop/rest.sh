#!/bin/bash
# rest.sh BUILD - Schemathesis against a server: requests drawn from its own OpenAPI document, and around it.
#
# No answer is a fault of the server, none has another status, type or shape than the document says, what it
# allows is accepted and what it does not is refused.  Streams, which do not end, are left out.
build=$(realpath "$1")
venv=$build/rest-venv
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/ty-rest.XXXXXX")
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$work"' EXIT
if [ ! "$venv/stamp" -nt "$here/rest_requirements.txt" ]; then
    python3 -m venv "$venv" >"$work/log" 2>&1 && "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/rest_requirements.txt" >"$work/log" 2>&1 ||
        { echo "skip rest/openapi: Schemathesis cannot be installed: $(tail -n 1 "$work/log")"; exit 0; }
    touch "$venv/stamp"
fi
"$build/trainyard" serve --dir "$work/yard" --port 0 --no-agent >"$work/out" 2>"$work/serve.log" &
server=$!
for _ in $(seq 200); do grep -q '^ready' "$work/out" && break; sleep 0.1; done
url=$(awk '{ print $2 }' "$work/out")
token=$("$build/trainyard" token create --dir "$work/yard")
cp "$here/rest.toml" "$work/schemathesis.toml"
(cd "$work" && timeout 400 "$venv/bin/schemathesis" run "$url/api/v1/openapi.json" -H "Authorization: Bearer $token" --phases examples,coverage,fuzzing \
    --exclude-path-regex '/events$|/stream$' -n "${N:-5}" --generation-deterministic --continue-on-failure --request-timeout 20 >log 2>&1)
status=$?
lives=ends
kill -0 "$server" 2>/dev/null && lives=lives
if [ "$status $lives" = "0 lives" ]; then
    echo "ok rest/openapi"
    sed -n 's/^  \([0-9]* generated.*\)/     \1/p' "$work/log"
else
    echo "FAIL rest/openapi: Schemathesis ended with $status, the server $lives: $(grep -E '^(_{2,} |- |\[[0-9]+\])' "$work/log" | head -n 6 | tr -s '_\n' ' ')"
    grep -v '^$' "$work/log" | head -n 150
    tail -n 5 "$work/serve.log"
    exit 1
fi
