#!/bin/bash
# full_shim.sh - the part of shim_test.sh that needs a mount namespace of its own: the disk is full when a task ends.  How it
# ended is on disk all the same, as the room for that was taken before the task began; where it was not kept, once there is some.
# Faults of docs/reliability.md: F15.
. "$(dirname "$0")/lib.sh"
mkdir "$work/disk"
mount -t tmpfs -o size=1m none "$work/disk" 2>/dev/null || { echo "skip full_shim: no right to mount"; exit 0; }
trap 'umount -l "$work/disk"; finish' EXIT

start() { # start NAME COMMAND... : a task that may end once $work/NAME.go is there
    dir=$work/disk/$1
    mkdir "$dir"
    "$build/trainyard-shim" --folder "$dir" --cookie "full-$$-$1" -- sh -c "$2; while [ ! -e '$work/$1.go' ]; do sleep 0.05; done; exit 5" \
        </dev/null 2>"$work/shim.log"
}
of() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" "$dir/$2.json"; }
fill() { dd if=/dev/zero of="$work/disk/filler" bs=4k 2>/dev/null; }
full() { ! (echo x >"$work/disk/probe") 2>/dev/null || { rm -f "$work/disk/probe"; false; }; }
gone() { ! kill -0 "$1" 2>/dev/null; }

start kept true
fill
check full_shim_is_full full
touch "$work/kept.go"
check full_shim_end_is_told wait_for 10 test -e "$dir/exit.json"
check full_shim_end_is_right same "$(of code exit) $(of signal exit) $(ls "$dir" | grep -c tmp)" "5 0 0"
check full_shim_is_full_still full
rm "$work/disk/filler"

# Its task has given away what was kept: the shim waits for room, and can be spoken to.
start waits ': >exit.json.tmp; echo up'
wait_for 5 grep -q up "$dir/stdout.log"
fill
touch "$work/waits.go"
check full_shim_task_ends wait_for 5 gone "$(of task_pid shim)"
sleep 1.5
ask() { (cd "$dir" && python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("control.sock")
s.sendall((sys.argv[1] + "\n").encode()); print(s.recv(200).decode().strip())' "$1"); }
check full_shim_answers has "$(ask STATUS)" '"state": "ending"'
check full_shim_waits test ! -e "$dir/exit.json"
rm "$work/disk/filler"
check full_shim_end_is_told_later wait_for 10 test -e "$dir/exit.json"
check full_shim_late_end_is_right same "$(of code exit)" 5

# Somebody has had enough of it.
start killed ': >exit.json.tmp; echo up'
wait_for 5 grep -q up "$dir/stdout.log"
fill
touch "$work/killed.go"
wait_for 5 gone "$(of task_pid shim)"
sleep 0.3
check full_shim_obeys same "$(ask KILL)" OK
check full_shim_goes wait_for 5 gone "$(of pid shim)"
rm "$work/disk/filler"

# Without that room no task begins.
mkdir "$work/disk/none"
fill
rmdir "$work/disk/none"
start none "touch '$work/none.ran'"; status=$?
check full_shim_starts_nothing same "$status $(ls "$work/none.ran" 2>/dev/null)" "1 "
check full_shim_says_why has "$(cat "$work/shim.log")" "No space left on device"
