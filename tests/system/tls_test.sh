#!/bin/bash
# tls_test.sh - agents whose certificates an operator makes: both sides show some of one authority, and nobody else gets in.
# Faults of docs/reliability.md: F40.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || { echo "skip tls: no openssl to make certificates with"; exit 0; }

authority() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -out "$work/$1.pem" \
        -subj "/CN=$1" -days 2 2>/dev/null
}
certificate() { # NAME AUTHORITY
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/$1.key" -out "$work/$1.csr" \
        -subj "/CN=$1" 2>/dev/null
    openssl x509 -req -in "$work/$1.csr" -CA "$work/$2.pem" -CAkey "$work/$2.key" -CAcreateserial -days 2 \
        -extfile <(echo subjectAltName=IP:127.0.0.1) -out "$work/$1.pem" 2>/dev/null
}
authority ours && authority others && certificate server ours && certificate node ours && certificate stranger others ||
    { echo "FAIL certificates: openssl made none"; failed=1; exit 1; }

# What cannot work is said at once.
refused() { "$trainyard" serve --dir "$work/no" --port 0 "$@" 2>&1; }
check key_needs_certificate has "$(refused --agents-key "$work/server.key")" "belong together"
check no_such_file has "$(refused --agents-cert "$work/none" --agents-key "$work/server.key")" "cannot read '$work/none'"
check no_certificate has "$(refused --agents-cert "$work/server.key" --agents-key "$work/server.key")" "is no PEM file with a CERTIFICATE"
check no_pair has "$(refused --agents-cert "$work/server.pem" --agents-key "$work/node.key")" "no pair"
check authority_alone has "$(refused --agents-ca "$work/ours.pem")" "needs --agents-cert"
check agent_needs_ca has "$("$trainyard" agent --server 127.0.0.1:1 --dir "$work/no" --cert "$work/node.pem" --key "$work/node.key" 2>&1)" \
    "--cert needs --ca"

serve yard --no-agent --agents-host 0.0.0.0 --agents-cert "$work/server.pem" --agents-key "$work/server.key" --agents-ca "$work/ours.pem"
port=$(field "$(cat "$dir/server.json")" agents)
port=${port##*:}
join=$("$trainyard" token create --join --dir "$dir")
agent() { # NAME OPTION...
    local name=$1
    shift
    "$trainyard" agent --server "127.0.0.1:$port" --token "$join" --dir "$work/$name.node" --name "$name" --cpus 1 "$@" >"$work/$name.log" 2>&1 &
    pids+=("$!")
}
agent plain
agent silent --ca "$work/ours.pem"
agent foreign --ca "$work/ours.pem" --cert "$work/stranger.pem" --key "$work/stranger.key"
agent fooled --ca "$work/others.pem" --cert "$work/node.pem" --key "$work/node.key"
agent good --ca "$work/ours.pem" --cert "$work/node.pem" --key "$work/node.key"
joined() { has "$(api GET /api/v1/nodes)" '"state":"joined"'; }
check joins wait_for 20 joined
id=$(field "$(api POST /api/v1/jobs '{"command": ["true"]}')" id)
check runs wait_for 30 is_final "$id"
check succeeds same "$(field "$(api GET "/api/v1/jobs/$id")" state)" succeeded
nodes=$(api GET /api/v1/nodes)
check nobody_else same "$(python3 -c 'import json, sys; print(*[n["name"] for n in json.loads(sys.argv[1])["items"]])' "$nodes")" good
check plain_is_told wait_for 10 grep -q 'does not say which server it is of' "$work/plain.log"
for name in silent foreign fooled; do
    check "${name}_is_told" wait_for 10 grep -q 'level=warn' "$work/$name.log"
done
stop TERM
