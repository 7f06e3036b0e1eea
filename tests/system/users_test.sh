#!/bin/bash
# users_test.sh - tasks with users of their own: what is theirs, and what they cannot reach.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || { echo "skip users: only root can start tasks as other users"; exit 0; }
setpriv --reuid 61201 --clear-groups test -x "$build/trainyard-task" || { echo "skip users: others cannot run $build/trainyard-task"; exit 0; }
chmod 711 "$work"

# --- ranges that are refused ---
for range in 0-5 5-5 x 9-1 61200 61200-61300x 1-4000000000 65530-65540; do
    check "refused_$range" has "$("$trainyard" serve --dir "$work/none" --port 0 --task-user "$range" 2>&1)" "--task-user is"
done
mkdir "$work/own" && chown 61250 "$work/own"
check not_root has "$(setpriv --reuid 61250 --clear-groups "$trainyard" serve --dir "$work/own/yard" --port 0 --task-user 61200-61299 2>&1)" "only root"

serve yard --cpus 4 --task-user 61200-61299 --grace-ms 1000 --backoff-ms 100
export TRAINYARD_DIR=$dir
wait_for 10 has "$(api GET /api/v1/nodes)" joined
check said_once same "$(grep -c 'tasks run as users 61201 to 61299' "$work/yard.log")" 1
printf 'the-key-of-all' | "$trainyard" secret set KEY

# --- as whom ---
who=$("$trainyard" run --workdir / -- sh -c 'id -u; id -g; id -G; grep NoNewPrivs /proc/self/status; grep CapEff /proc/self/status')
user=$(head -1 <<<"$who")
check in_range test "$user" -gt 61200 -a "$user" -le 61299
check group same "$(sed -n '2,3p' <<<"$who")" "$(printf '%s\n%s 61200' "$user" "$user")"
check no_new_privileges has "$who" "$(printf 'NoNewPrivs:\t1')"
check no_capabilities has "$who" "0000000000000000"
cat >"$work/doors.py" <<'P'
import ctypes, os, threading
call = ctypes.CDLL(None, use_errno=True).syscall
def asks(number, *words):
    ctypes.set_errno(0)
    call(number, *words)
    return os.strerror(ctypes.get_errno()) if ctypes.get_errno() else "done"
NEW_USER = 0x10000000
x86 = os.uname().machine == "x86_64"
print("unshare", asks(272 if x86 else 97, NEW_USER))
print("clone", asks(56 if x86 else 220, NEW_USER | 17, 0, 0, 0, 0))
print("io_uring", asks(425, 1, 0))
print("keys", asks(250 if x86 else 219, 0, -3, 1))
thread = threading.Thread(target=print, args=("a thread runs",))
thread.start()
thread.join()
print("a child ends with", os.system("exit 3") >> 8)
P
check doors_are_shut same "$(cd "$work" && "$trainyard" run --file doors.py -- python3 doors.py)" "$(printf '%s\n' \
    'unshare Operation not permitted' 'clone Operation not permitted' 'io_uring Function not implemented' 'keys Operation not permitted' \
    'a thread runs' 'a child ends with 3')"
echo 'open("made", "w").write("x"); print(open("main.py").read()[:4])' >"$work/main.py"
check own_files same "$(cd "$work" && "$trainyard" run --file main.py -- sh -c 'python3 main.py; stat -c "%u %a" . made "$HOME"')" \
    "$(n=$((user + 2)); printf 'open\n%s 700\n%s 600\n%s 700' $n $n $n)"
check dev_stdout same "$("$trainyard" run --workdir / -- sh -c 'echo seen >/dev/stdout')" seen

# --- two at once: users of their own, neither sees the other's, nor the server's ---
"$trainyard" run --detach --name first --workdir / --secret KEY -- sh -c 'echo $TRAINYARD_OUT; id -u; cat $KEY_FILE; echo; echo mine >$TRAINYARD_OUT/artifacts/a; sleep 300' >/dev/null
wait_for 10 sh -c "'$trainyard' logs first | grep -q '\*\*\*'"
out=$("$trainyard" logs first | head -1)
cat >"$work/look.sh" <<'S'
id -u
for path in "$1" "$1/artifacts/a" "${1%/out}/secrets/KEY" "${1%/out}/work" "${1%/out}/start.json" "${1%/out}/stdout.log" "$2/control.db" "$2/metrics.db" \
    "$2/secret.key" "$2/server.json" "$2/agent/node.json" "$2/jobs" "$2" "$2/agent/attempts" "$(ls -d "$2"/jobs/*/ 2>/dev/null)"; do
    [ -n "$path" ] || continue
    if cat "$path" >/dev/null 2>&1 || ls "$path/" >/dev/null 2>&1 || touch "$path/x" 2>/dev/null; then echo "reached $path"; fi
done
kill -0 "$3" 2>/dev/null && echo "may signal"
cat "/proc/$3/environ" >/dev/null 2>&1 && echo "sees environment"
python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])' "$2/control.sock" 2>/dev/null && echo "speaks to the server"
python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])' "${1%/out}/control.sock" 2>/dev/null && echo "speaks to a shim"
true
S
chmod 644 "$work/look.sh"
task=$(sed -n 's/.*"task_pid": \([0-9]*\).*/\1/p' "${out%/out}/shim.json")
seen=$("$trainyard" run --workdir / -- sh "$work/look.sh" "$out" "$dir" "$task")
check another_user test "$seen" != "$("$trainyard" logs first | sed -n 2p)"
check reaches_nothing same "$(tail -n +2 <<<"$seen")" ""
check attempt_is_private same "$(stat -c '%u %a' "${out%/out}" "$out" "${out%/out}/secrets")" "$(n=$("$trainyard" logs first | sed -n 2p); printf '0 710\n%s 700\n%s 700' "$n" "$n")"

# --- its /tmp is its own, and the yard is not there at all ---
echo of-the-machine >"$work/shared"
"$trainyard" run --detach --name scratch --workdir / -- sh -c 'echo mine >/tmp/scratch; echo $TRAINYARD_OUT; sleep 300' >/dev/null
wait_for 10 sh -c "'$trainyard' logs scratch | grep -q out"
held=$("$trainyard" logs scratch | head -1)
check tmp_is_its_own same "$("$trainyard" run --workdir / -- sh -c 'echo $(ls /tmp/scratch /var/tmp/scratch 2>/dev/null); echo here >/tmp/x; cat /var/tmp/x')" "$(printf '\nhere')"
check tmp_is_in_its_folder same "$(cat "${held%/out}/tmp/scratch") $(ls /tmp/scratch 2>/dev/null)" "mine "
check yard_is_not_there same "$("$trainyard" run --workdir / -- sh -c 'for f in "$@"; do [ -e "$f" ] && echo "$f"; done; echo looked' look "$dir/control.db" "$dir/secret.key" "$held")" looked
check named_is_there same "$("$trainyard" run --workdir / -- cat "$work/shared")" of-the-machine
check shm_is_its_own same "$("$trainyard" run --workdir / -- sh -c 'echo x >/dev/shm/ty-users-test; ls /dev/shm'; ls /dev/shm/ty-users-test 2>/dev/null)" ty-users-test
check node_says_so has "$(api GET /api/v1/nodes)" '"folders":"private"'
shim=$(sed -n 's/.*"pid": \([0-9]*\), "start.*/\1/p' "${held%/out}/shim.json")
kill -9 "$shim"
"$trainyard" kill scratch >/dev/null
check tmp_goes wait_for 10 sh -c '[ ! -e "$1" ]' sh "${held%/out}"

"$trainyard" kill first >/dev/null
check killed wait_for 10 is_state first cancelled
check nothing_runs sh -c '! kill -0 "$1" 2>/dev/null' sh "$task"
check folder_goes wait_for 10 sh -c '[ ! -e "$1" ]' sh "${out%/out}"
check artifact_kept same "$(api GET '/api/v1/jobs/first/artifacts/content?path=a')" mine
number=$(field "$(api GET /api/v1/jobs/first)" number)
check job_folder_taken_back same "$(stat -c '%u:%g %a' "$dir/jobs/$number")" "0:0 700"

# --- what an attempt leaves is there for the next, whoever that is ---
"$trainyard" run --name twice --workdir / -- sh -c 'cd $TRAINYARD_CHECKPOINTS; [ -e kept ] && exec cat kept; echo from the first >kept; mkdir -p deep/er; kill -SEGV $$' >"$work/said" 2>&1
check checkpoints_kept has "$(cat "$work/said")" "from the first"

# --- the tasks of one job are one user, and share its checkpoints ---
both=$("$trainyard" run --workers 2 --workdir / -- sh -c 'echo $RANK >$TRAINYARD_CHECKPOINTS/rank-$RANK
    while [ "$(ls $TRAINYARD_CHECKPOINTS | wc -l)" -lt 2 ]; do sleep 0.05; done; echo user $(id -u)' 2>/dev/null)
check tasks_of_a_job same "$(grep -o 'user [0-9]*' <<<"$both" | sort | uniq -c | awk '{print $1}')" 2

# --- a server that is killed finds its tasks again, and they stay whose they are ---
"$trainyard" run --detach --name outlives --workdir / -- sh -c 'id -u; trap "id -u; exit 0" TERM; while :; do sleep 0.05; done' >/dev/null
wait_for 10 sh -c "'$trainyard' logs outlives | grep -q '^6'"
stop KILL
again --cpus 4 --task-user 61200-61299 --grace-ms 1000 --backoff-ms 100
check adopted wait_for 10 is_state outlives running
before=$("$trainyard" logs outlives)
check others_differ test "$("$trainyard" run --workdir / -- id -u)" != "$before"
"$trainyard" cancel outlives >/dev/null
check adopted_ends wait_for 10 is_final outlives
check adopted_user same "$("$trainyard" logs outlives | grep -o '6[0-9]*$')" "$(printf '%s\n%s' "$before" "$before")"

# --- a model ---
digits "$dir"
chmod -R go= "$dir/datasets/digits" # as if made by a server with a strict umask
cat >"$work/model.json" <<'S'
{"name": "model", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits"},
 "train": {"steps": 30}, "checkpoint": {"every_steps": 10}}
S
"$trainyard" submit "$work/model.json" --watch >"$work/said" 2>&1
check model_trains has "$(cat "$work/said")" succeeded
check model_checkpoints test "$(field "$(api GET /api/v1/jobs/model/checkpoints)" items | grep -c step)" -ge 1
check dataset_shared same "$(stat -c '%u %g %a' "$dir/datasets/digits" "$dir/datasets/digits/dataset.json")" "$(printf '0 61200 750\n0 61200 640')"

# --- a server where its tasks cannot come: said, not guessed ---
mkdir -m 700 "$work/closed"
TRAINYARD_DIR= serve closed/yard --cpus 1 --task-user 61200-61299 --backoff-ms 100
check closed has "$("$trainyard" run --dir "$dir" --workdir / -- true 2>&1)" "$work/closed has mode 700"

# --- a machine that gives no namespaces: said, and the task runs with a folder for its temporary files ---
setpriv --bounding-set=-sys_admin "$trainyard" serve --dir "$work/plain" --port 0 --cpus 1 --task-user 61200-61299 >"$work/plain.out" 2>"$work/plain.log" &
pids+=("$!")
wait_for 20 grep -q '^ready' "$work/plain.out"
said=$("$trainyard" run --dir "$work/plain" --workdir / -- sh -c 'echo $TMPDIR; echo x >$TMPDIR/a && echo written' 2>&1)
check refused_is_told has "$said" "no view of their own"
check refused_has_tmpdir has "$said" "-worker-0/tmp"
check refused_runs has "$said" written
check refused_in_the_log has "$(cat "$work/plain.log")" "gives them no view of their own"
