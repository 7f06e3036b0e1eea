#!/bin/bash
# exhausted_test.sh - a server that gets no more memory, then no more threads and processes (F16): it answers, says so where it
# cannot do what is asked, and goes on as soon as there is some; no job is lost.  Descriptors: fault_test.sh.
. "$(dirname "$0")/lib.sh"

# Root has as many processes as he likes: then the server is somebody else's.
as_user=()
if [ "$(id -u)" = 0 ]; then
    uid=$((40000 + $$ % 20000))
    as_user=(setpriv "--reuid=$uid" "--regid=$uid" --clear-groups)
    mkdir "$work/bin"
    cp "$build/trainyard" "$build/trainyard-shim" "$build/trainyard-task" "$work/bin"
    chmod 755 "$work" "$work/bin"
    "${as_user[@]}" "$work/bin/trainyard" --version >/dev/null 2>&1 || { echo "skip exhausted: no right to run as another user"; exit 0; }
    mkdir -m 755 "$work/home"
    chown "$uid" "$work/home"
    trainyard() { "${as_user[@]}" "$work/bin/trainyard" "$@"; }
    printf '#!/bin/sh\nexec %s %s "$@"\n' "${as_user[*]}" "$work/bin/trainyard" >"$work/trainyard"
    chmod 755 "$work/trainyard"
    trainyard=$work/trainyard
else
    mkdir "$work/home"
fi
limit() { "${as_user[@]}" prlimit --pid "$pid" "--$1=$2:"; }
free_again() { limit "$1" "$("${as_user[@]}" prlimit --pid "$pid" "--$1" --noheadings -o HARD | tr -d ' ')"; }
of_server() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$pid/status"; }
# storm : 160 requests of all kinds from 16 clients; "STATUS COUNT" of what came, one a line
storm() { python3 - "$url" "$token" <<'END_OF_STORM'
import collections, json, sys, threading, urllib.error, urllib.request
url, token = sys.argv[1:]
counts = collections.Counter()
lock = threading.Lock()

def client(number):
    for i in range(10):
        body = json.dumps({"command": ["true"], "name": f"storm-{number}-{i}"}).encode() if number % 4 == 0 else None
        path = "/api/v1/jobs" if body else ("/api/v1/jobs?limit=1000", "/api/v1/openapi.json", "/metrics")[number % 4 - 1]
        request = urllib.request.Request(url + path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        try:
            answer = urllib.request.urlopen(request, timeout=20)
        except urllib.error.HTTPError as error:
            answer = error
        except OSError as error:
            answer = None
        what = "none" if answer is None else str(answer.status)
        if what == "503" and answer.headers["Retry-After"] != "1":
            what = "503 without Retry-After"
        if answer:
            answer.read()
        with lock:
            counts[what] += 1

threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for what in sorted(counts): print(what, counts[what])
END_OF_STORM
}
dir=$work/home/yard
"$trainyard" serve --dir "$dir" --port 0 --cpus 4 --backoff-ms 200 >"$work/yard.out" 2>"$work/yard.log" &
pid=$!
pids+=("$pid")
wait_for 20 grep -q '^ready' "$work/yard.out" || { echo "FAIL serve: $(tail -n 5 "$work/yard.log")"; failed=1; exit 1; }
url=$(awk '{print $2}' "$work/yard.out")
token=$("$trainyard" token create --dir "$dir")

# --- memory ---
job=$(field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; sleep 0.5; done"]}')" id)
wait_for 10 is_state "$job" running
limit data $((($(of_server VmData) + 8192) * 1024))
check no_memory_says_so same "$(storm)" "503 160"
api GET /api/v1/jobs >/dev/null
check no_memory_is_named has "$(cat "$work/body")" "the server has no memory for more requests"
check no_memory_server_lives same "$(curl -sS -m 5 -o /dev/null -w '%{http_code}' "$url/healthz")" 200
free_again data
is_taken() { api GET /api/v1/jobs >/dev/null; [ "$(status)" = 200 ]; }
check memory_again wait_for 2 is_taken
check memory_again_storm same "$(storm)" "$(printf '200 120\n201 40')"
check no_memory_job_ends wait_for 20 is_state "$job" succeeded
lines() { "$trainyard" logs "$job" --dir "$dir" | grep -c '^line'; }
check no_memory_loses_no_line same "$(lines)" 10
all_ended() { [ "$(api GET "/api/v1/jobs?limit=1000" | grep -o '"state": *"succeeded"' | wc -l)" = "$1" ]; }
check memory_again_jobs_run wait_for 20 all_ended 41

# --- threads and processes ---
taken() { ps -L -o lwp= -u "${uid:-$(id -u)}" | wc -l; }
limit nproc "$(taken)"
job=$(field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "echo here"]}')" id)
check no_threads_answers same "$(storm)" "$(printf '200 120\n201 40')"
told() { has "$(api GET "/api/v1/jobs/$job/attempts")" "Resource temporarily unavailable"; }
check no_threads_is_named wait_for 10 told
free_again nproc
check threads_again_job_ends wait_for 60 is_state "$job" succeeded
check threads_again_jobs_run wait_for 20 all_ended 82
check exhausted_same_server kill -0 "$pid"
stop TERM
