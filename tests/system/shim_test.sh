#!/bin/bash
# shim_test.sh - trainyard-shim with real processes: exit codes, signals, stray children, floods.
# Faults of docs/reliability.md: F5 F10 F16 F27 F30 F38 F46 F49.
set -u
build=${TRAINYARD_BUILD:-build}
shim=$(realpath "$build/trainyard-shim")
cgroup=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# wait_for SECONDS COMMAND... : polls until it succeeds
wait_for() {
    local tries=$(($1 * 20)); shift
    while ! "$@" 2>/dev/null; do
        ((tries-- > 0)) || return 1
        sleep 0.05
    done
}
# start NAME [OPTION...] -- COMMAND... : runs a task in a folder of its own
start() {
    dir=$work/$1; shift
    mkdir -p "$dir"
    "$shim" --folder "$dir" --cookie "c-$$-${dir##*/}" $cgroup "$@" </dev/null >>"$dir/shim.log" 2>&1
}
ended() { wait_for "${1:-10}" test -e "$dir/exit.json"; }
field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/${2:-exit.json}"; }
ask() { # one command to the shim's socket
    (cd "$dir" && python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("control.sock")
s.sendall((sys.argv[1] + "\n").encode()); print(s.recv(200).decode().strip())' "$1")
}
check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; cat "$dir"/*.json "$dir/shim.log"; failed=1; fi
}
same() { [ "$1" = "$2" ] || { echo "  found '$1', wanted '$2'"; false; }; }
gone() { ! kill -0 "$1" 2>/dev/null; }

start code -- sh -c 'echo out; echo err >&2; exit 3'; status=$?
check shim_returns_at_once same $status 0
ended
check shim_code same "$(field code) $(field signal) $(field oom) $(field error)" "3 0 false "
check shim_output same "$(cat "$dir/stdout.log") $(cat "$dir/stderr.log")" "out err"
check shim_identity same "$(field boot_id shim.json)" "$(cat /proc/sys/kernel/random/boot_id)"
check shim_clean same "$(ls "$dir" | tr '\n' ' ')" "exit.json shim.json shim.lock shim.log stderr.log stdout.log "

"$shim" --folder "$dir" --cookie again -- touch "$dir/twice" 2>>"$dir/shim.log"; status=$?
check shim_runs_a_folder_once same "$status $(ls "$dir/twice" 2>/dev/null)" "3 "

# Another shim has the folder and has not said so yet: the second waits for its word, or its death.
for other in writes dies; do
    dir=$work/$other; mkdir -p "$dir"
    (cd "$dir" && exec python3 -c '
import fcntl, sys, time
lock = open("shim.lock", "w"); fcntl.flock(lock, fcntl.LOCK_EX); open("held", "w").close(); time.sleep(0.6)
if sys.argv[1] == "writes":
    open("written", "w").close(); open("shim.json", "w").write("{}\n"); time.sleep(1)' $other) 2>>"$dir/shim.log" &
    wait_for 5 test -e "$dir/held"
    start $other -- sh -c 'echo x >ran'; status=$?
    [ $other = dies ] && ended
    check "shim_waits_for_one_that_$other" same "$status $(ls "$dir/written" "$dir/ran" 2>/dev/null | sed 's:.*/::')" \
        "$([ $other = writes ] && echo "3 written" || echo "0 ran")"
    wait $!
done

start signal -- sh -c 'kill -SEGV $$'
ended
check shim_signal same "$(field code) $(field signal)" "-1 11"

# Folders of its own, where the machine gives them.
if "$shim" --private probe; then
    mkdir -p "$work/yard/jobs/7"; echo key >"$work/yard/key"; echo named >"$work/named"
    start own --private task --hide "$work/yard" --show "$work/yard/jobs/7" --show "$work/own" --named "$work/named" -- \
        sh -c "ls -A '$work/yard'; cat '$work/named'; echo x >/tmp/a; cat /var/tmp/a tmp/a; touch '$work/yard/jobs/7/kept'"
    ended
    check shim_hides_and_shows same "$(cat "$dir/stdout.log" | tr '\n' ' ')$(ls "$work/yard/jobs/7") $(cat "$work/yard/key" "$dir/tmp/a" | tr '\n' ' ')" "jobs named x x kept key x "
    check shim_leaves_no_mount same "$(grep -c "$work" /proc/self/mountinfo)" 0
else
    echo "skip shim_private: this machine gives no mount namespaces"
fi
start tmpdir --private tmp -- sh -c 'echo $TMPDIR'
ended
check shim_tmpdir same "$(cat "$dir/stdout.log") $(stat -c %a "$dir/tmp")" "$dir/tmp 1777"

# A task that falls is started again where it was, as often as was said; the last end counts.
start again --restarts 2 -- sh -c 'echo x >>tries; [ "$(wc -l <tries)" = 2 ] && exit 0; kill -KILL $$'
ended
check shim_starts_again same "$(wc -l <"$dir/tries") $(field code) $(field signal) $(grep -c 'by signal 9; it is started again' "$dir/stderr.log")" "2 0 0 1"
start often --restarts 1 -- sh -c 'echo x >>tries; exit 5'
ended
check shim_starts_again_so_often_only same "$(wc -l <"$dir/tries") $(field code)" "2 5"
for code in 0 2 3; do
    start "own$code" --restarts 1 -- sh -c "echo x >>tries; exit $code"
    ended
    check "shim_leaves_code_${code}_alone" same "$(wc -l <"$dir/tries")" 1
done
start told --restarts 5 -- sh -c 'echo x >>tries; trap "" TERM; while :; do sleep 0.1; done'
wait_for 5 test -e "$dir/tries"
ask KILL >/dev/null
ended
check shim_killed_is_not_started_again same "$(wc -l <"$dir/tries") $(field killed)" "1 true"
start resting --restarts 5 -- sh -c 'echo x >>tries; exit 1'
wait_for 5 sh -c "[ \"\$(wc -l <'$dir/tries')\" = 2 ]"
ask TERM >/dev/null
ended 5
check shim_told_while_it_rests same "$(wc -l <"$dir/tries") $(field terminated)" "2 true"

start removed -- sleep 1000
removed=$(field task_pid shim.json) removed_shim=$(field pid shim.json)
kill -0 "$removed"; was_there=$?
rm -rf "$dir"
check shim_without_a_folder_ends same "$was_there $(wait_for 10 gone "$removed"; wait_for 10 gone "$removed_shim"; echo $?)" "0 0"

start absent -- /no/such/program
ended
check shim_exec_failed same "$(field code) $(field error)" "127 cannot run /no/such/program: No such file or directory"

start busy -- sh -c 'sleep 100 & exec sleep 100'
"$shim" --folder "$dir" --cookie again -- true 2>>"$dir/shim.log"; status=$?
check shim_one_at_a_time same "$status" 3
check shim_status same "$(ask STATUS | cut -d, -f1)" '{"state": "running"'
check shim_term_answer same "$(ask TERM)" OK
ended
check shim_term same "$(field signal) $(field terminated) $(field killed)" "15 true false"

start grace -- sh -c 'trap "echo saved; exit 3" TERM; echo ready; while :; do sleep 0.05; done'
wait_for 5 grep -q ready "$dir/stdout.log"
ask TERM >/dev/null
ended
check shim_term_handled same "$(field code) $(tail -n 1 "$dir/stdout.log")" "3 saved"

# However the processes are found: by their cgroup, where there is one, or by walking /proc.
for way in group walk; do
[ $way = walk ] && cgroup="--cgroup none"

# A child that left the process group, the session and its parent dies with the task.
start stray-$way -- bash -c 'trap "" TERM
    (setsid bash -c "trap \"\" TERM; echo \$\$ >stray.pid; sleep 1000; :" &) ; (setsid setsid sleep 1001 &)
    while [ ! -s stray.pid ]; do sleep 0.02; done; echo up; sleep 1002'
wait_for 5 grep -q up "$dir/stdout.log"
stray=$(cat "$dir/stray.pid")
check shim_stray_lives_$way kill -0 "$stray"
check shim_kill_answer_$way same "$(ask KILL)" OK
ended
check shim_kill_$way same "$(field signal) $(field killed)" "9 true"
check shim_stray_dies_$way gone "$stray"

start orphan-$way -- bash -c '(setsid sleep 1003 & echo $! >orphan.pid); exit 0'
ended
check shim_orphan_dies_with_the_first_$way same "$(field code) $(gone "$(cat "$dir/orphan.pid")" && echo gone)" "0 gone"

start bomb-$way -- bash -c 'f() { while :; do (setsid sleep 5 &) ; done; }; f & f & sleep 0.5; exit 7'
ended 20
check shim_forks_without_end_$way same "$(field code)" 7
done
cgroup=

start flood --log-limit 1000000 -- sh -c 'head -c 30000000 /dev/zero | tr "\0" x; echo; echo the last line'
ended 20
size=$(stat -c %s "$dir/stdout.log")
check shim_flood_capped test "$size" -gt 1000000 -a "$size" -lt 1100000
check shim_flood_marker grep -aq '^\[trainyard: [0-9]* bytes dropped\]$' "$dir/stdout.log"
check shim_flood_tail same "$(tail -n 1 "$dir/stdout.log")" "the last line"

start memory --memory 50000000 -- python3 -c 'import time; x = bytearray(150000000); time.sleep(100)'
ended 20
check shim_memory same "$(field signal) $(field oom)" "9 true"

# A full disk.
if unshare -m true 2>/dev/null; then
    TRAINYARD_BUILD=$build unshare -m "${0%/*}/full_shim.sh" || failed=1
else
    echo "skip full_shim: no right to mount"
fi

# Nothing open but standard input and output; only the environment that was given.
exec 77</dev/null
start clean -- sh -c 'ls /proc/self/fd | tr "\n" " "; grep -c . /proc/self/limits >/dev/null; ulimit -c'
exec 77<&-
ended
check shim_descriptors same "$(tr '\n' ' ' <"$dir/stdout.log")" "0 1 2 3 0 " # 3: of ls itself

# The shim dies: so does the task's first process, which nobody would hear of.
start widow -- sh -c 'echo $$ >task.pid; exec sleep 1004'
wait_for 5 test -s "$dir/task.pid"
task=$(cat "$dir/task.pid")
kill -9 "$(field pid shim.json)"
check shim_dies_and_task_with_it wait_for 5 gone "$task"

# The same while the task is being started, at sixty moments.
survivors=$(python3 - "$build/trainyard-shim" "$work" <<'END'
import json, os, signal, subprocess, sys, time
shim, work = sys.argv[1:]
pids = []
for i in range(60):
    folder = f"{work}/early-{i}"
    os.mkdir(folder)
    starter = subprocess.Popen([shim, "--folder", folder, "--cookie", f"early-{i}", "--", "sleep", "1005"],
                               env={"EARLY": work, "PATH": os.environ["PATH"]})
    while not os.path.exists(f"{folder}/control.sock"):
        pass
    pid = json.load(open(f"{folder}/shim.json"))["pid"]
    until = time.perf_counter() + i * 20e-6
    while time.perf_counter() < until:
        pass
    os.kill(pid, signal.SIGKILL)
    starter.wait()
def living():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"EARLY={work}\0" in open(f"/proc/{pid}/environ").read():
                yield int(pid)
        except OSError:
            pass
until = time.monotonic() + 5
while list(living()) and time.monotonic() < until:
    time.sleep(0.05)
left = list(living())
for pid in left:
    os.kill(pid, signal.SIGKILL)
print(len(left))
END
)
check shim_dies_early_and_task_with_it same "$survivors" 0

check shim_leaves_no_cgroup test -z "$(find /sys/fs/cgroup -maxdepth 3 -name "trainyard-c-$$-[^w]*" 2>/dev/null)"
rmdir $(find /sys/fs/cgroup -maxdepth 3 -name "trainyard-c-$$-widow" 2>/dev/null) 2>/dev/null
exit $failed
