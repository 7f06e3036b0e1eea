#!/bin/bash
# serve_test.sh - starting where something is in the way: each failure says what, and what to do.
# Faults of docs/reliability.md: F3.
. "$(dirname "$0")/lib.sh"

serve yard --no-agent
port=${url##*:}
check says_where has "$(cat "$dir/server.json")" "127.0.0.1:$port"

refused() { # refused NAME TEXT ARGUMENT... : must fail within 10 s with the text on stderr
    local name=$1 text=$2 answer status
    shift 2
    answer=$(timeout 10 "$trainyard" "$@" 2>&1 >/dev/null)
    status=$?
    check "$name" test "$status" -ne 0 -a "$status" -ne 124
    check "${name}_says" has "$answer" "$text"
}
refused second_server "$pid" serve --dir "$dir" --port 0
refused busy_port "port $port" serve --dir "$work/other" --port "$port"
refused busy_port_help "--port" serve --dir "$work/other" --port "$port"
refused no_folder "--dir is missing" serve
refused wrong_option "there is no option --prot" serve --dir "$work/x" --prot 1
refused wrong_number "whole number" serve --dir "$work/x" --port x
refused port_too_high "65535" serve --dir "$work/x" --port 70000
refused open_to_all "--insecure-i-know" serve --dir "$work/x" --host 0.0.0.0
refused folder_is_a_file "$work/file" serve --dir "$work/file/yard" --port 0
: >"$work/file"
refused folder_in_a_file "file" serve --dir "$work/file" --port 0
refused unknown_verb "no verb" dance
refused no_server "no server runs" jobs --dir "$work/nowhere"
refused which_server "which server" jobs
TRAINYARD_URL=http://127.0.0.1:1 refused nobody_answers "does not answer" jobs
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 "$work/readonly"
    refused read_only "readonly" serve --dir "$work/readonly" --port 0
elif mkdir "$work/readonly" && mount -t tmpfs -o ro,size=1m none "$work/readonly" 2>/dev/null; then
    refused read_only "readonly" serve --dir "$work/readonly" --port 0
    umount "$work/readonly"
else
    echo "skip read_only: root writes everywhere, and mounting is not allowed"
fi

# A token can be made while no server runs, and is good afterwards; kill -9 leaves nothing in the way.
stop KILL
offline=$("$trainyard" token create --dir "$dir" 2>&1)
check token_without_server has "$offline" ty_
again --no-agent
token=$offline
api GET /api/v1/jobs >/dev/null
check token_is_good same "$(status)" 200
check login_link has "$("$trainyard" login --dir "$dir")" "$url/login?code=ty_"
echo "$token" | "$trainyard" login "$url" >/dev/null
check login_is_kept has "$("$trainyard" jobs)" JOB
check login_is_private same "$(stat -c %a "$XDG_CONFIG_HOME/trainyard/login")" 600
stop TERM
