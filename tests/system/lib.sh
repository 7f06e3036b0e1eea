# lib.sh - for tests with real processes: a folder, servers on free ports, waiting, checking.
#
# A test sources it and prints "ok NAME", "FAIL NAME", "skip NAME: why".  Everything that was started is ended
# by its pid, and the folder removed, when the test ends; the servers' logs are shown when something failed.
set -u
build=$(realpath "${TRAINYARD_BUILD:-build}")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
trainyard=$build/trainyard
work=$(mktemp -d "${TMPDIR:-/tmp}/ty-system.XXXXXX")
failed=0
pids=()
unset TRAINYARD_URL TRAINYARD_TOKEN TRAINYARD_DIR
export XDG_CONFIG_HOME=$work/config

finish() {
    local pid tries
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do
        tries=100
        while kill -0 "$pid" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done
        kill -9 "$pid" 2>/dev/null
    done
    # Tasks run on without their server: end those of our own folders, by the pid their shim wrote.
    local shim
    for shim in "$work"/*/agent/attempts/*/shim.json "$work"/*/attempts/*/shim.json "$work"/pilots/*/attempts/*/shim.json; do
        [ -e "$shim" ] && [ ! -e "${shim%/*}/exit.json" ] && kill -9 -- "-$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$shim")" 2>/dev/null
    done
    [ $failed -eq 0 ] || for log in "$work"/*.log; do echo "== ${log##*/}"; tail -n 40 "$log"; done
    rm -rf "$work"
    exit $failed
}
trap finish EXIT

# wait_for SECONDS COMMAND... : polls until it succeeds
wait_for() {
    local tries=$(($1 * 20)); shift
    while ! "$@" >/dev/null 2>&1; do
        ((tries-- > 0)) || return 1
        sleep 0.05
    done
}

# check NAME COMMAND... : one result
check() {
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; failed=1; fi
}
same() { [ "$1" = "$2" ] || { echo "  found '$1', wanted '$2'"; false; }; }
has() { case $1 in *"$2"*) ;; *) echo "  '$2' is not in: $1"; false ;; esac; }

# same_checkpoint FOLDER FOLDER STEP : the same bits, in as many shards
same_checkpoint() {
    local file
    for file in "$1/model.ckpt-$3.index" "$1/model.ckpt-$3.data-"*; do cmp "$file" "$2/${file##*/}" || return; done
}

# field JSON NAME... : a member of an object, by path
field() { python3 -c '
import json, sys
value = json.loads(sys.argv[1])
for name in sys.argv[2:]:
    value = value[int(name) if isinstance(value, list) else name]
print(value if isinstance(value, str) else json.dumps(value))' "$@"; }

free_port() { "$here/../free_port.py"; }

# serve NAME [OPTION...] : starts a server on $work/NAME; sets dir, pid, url, link, token
serve() {
    dir=$work/$1; shift
    local log=$work/${dir##*/}.log out=$work/${dir##*/}.out
    : >"$out"
    "$trainyard" serve --dir "$dir" --port "$(free_port)" "$@" >"$out" 2>>"$log" &
    pid=$!
    pids+=("$pid")
    wait_for 20 grep -q '^ready' "$out" || { echo "FAIL serve: $(tail -n 5 "$log")"; failed=1; exit 1; }
    url=$(awk '{print $2}' "$out")
    link=$(awk '{print $NF}' "$out")
    token=$("$trainyard" token create --dir "$dir")
}

# again [OPTION...] : the same folder and port, after the server has gone; old tokens stay good
again() {
    local port=${url##*:} log=$work/${dir##*/}.log out=$work/${dir##*/}.out
    : >"$out"
    "$trainyard" serve --dir "$dir" --port "$port" "$@" >"$out" 2>>"$log" &
    pid=$!
    pids+=("$pid")
    wait_for 20 grep -q '^ready' "$out" || { echo "FAIL serve again: $(tail -n 5 "$log")"; failed=1; exit 1; }
}

# stop SIGNAL : ends the server and waits
stop() {
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null
}

# api METHOD PATH [BODY] [CURL OPTION...] : the body of the answer; its status is in $work/status
api() {
    local method=$1 path=$2 body=()
    shift 2
    [ $# -gt 0 ] && [ -n "$1" ] && body=(--data-binary "$1")
    [ $# -gt 0 ] && shift
    curl -sS -m 20 -X "$method" -H "Authorization: Bearer $token" -o "$work/body" -w '%{http_code}' "${body[@]}" "$@" "$url$path" >"$work/status"
    cat "$work/body"
}
status() { cat "$work/status"; }

# digits FOLDER : a small dataset "digits" in a server's folder, made once per test
digits() {
    [ -d "$work/digits.made" ] || "$trainyard" dataset make digits "$work/digits.made" --train 2000 --test 500 >/dev/null || return 1
    "$trainyard" dataset add digits --from "$work/digits.made" --dir "$1" >/dev/null
}

state_of() { field "$(api GET "/api/v1/jobs/$1")" state; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
is_final() { case $(state_of "$1") in succeeded | failed | cancelled) ;; *) false ;; esac; }
