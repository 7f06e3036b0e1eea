#!/bin/bash
# full_disk.sh - the part of newuser_test.sh that needs a mount namespace of its own: the disk of a yard is full for a
# while.  The job pauses and goes on by itself; the server answers what needs no room, and says why it cannot take more.
# Faults of docs/reliability.md: F15.
. "$(dirname "$0")/lib.sh"
mkdir "$work/disk"
mount -t tmpfs -o size=48m none "$work/disk" 2>/dev/null || { echo "skip full_disk: no right to mount"; exit 0; }
trap 'umount -l "$work/disk"; finish' EXIT

serve disk/yard --cpus 3
digits "$dir"
export TRAINYARD_DIR=$dir
cat >"$work/spec.json" <<'END'
{"name": "full", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 128, "activation": "relu"},
 {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
 "checkpoint": {"every_steps": 100}, "train": {"steps": 9000}}
END
other=$(field "$("$trainyard" submit "$work/spec.json" --name other --steps 1000000 --json)" id)
wait_for 30 is_state "$other" running
program=$(field "$(api POST /api/v1/jobs '{"command": ["sh", "-c", "echo up; while :; do echo on; sleep 0.2; done"]}')" id)
wait_for 30 is_state "$program" running
api POST /api/v1/users '{"name": "ana", "role": "member", "password": "a long password"}' >/dev/null
id=$(field "$("$trainyard" submit "$work/spec.json" --json)" id)
has_checkpoint() { has "$(api GET "/api/v1/jobs/$id/checkpoints")" '"step":'; }
check full_disk_job_runs wait_for 30 has_checkpoint
pid_of_task=$(field "$(api GET "/api/v1/jobs/$id/attempts")" items 0 tasks 0 pid)
fill() { dd if=/dev/zero of="$work/disk/filler" bs=4k oflag=append conv=notrunc 2>/dev/null; }
kill -STOP "$pid_of_task" # else a fast machine is done first
fill
kill -CONT "$pid_of_task"
for _ in {1..60}; do fill; sleep 0.05; done # a checkpoint that is removed makes room for the next
api POST /api/v1/jobs '{"example": "digits-mlp"}' >/dev/null
check full_disk_submit_status same "$(status)" 507
check full_disk_submit_says has "$(cat "$work/body")" "disk full"
check full_disk_submit_says_what_to_do has "$(cat "$work/body")" "Free some space"
check full_disk_cli has "$("$trainyard" submit digits-mlp 2>&1)" "disk full"
check full_disk_answers_reads has "$("$trainyard" jobs)" running
check full_disk_metrics has "$(api GET "/api/v1/jobs/$id/metrics?names=loss")" '"steps":['
check full_disk_task_waits kill -0 "$pid_of_task"
free() { df -k --output=avail "$work/disk" | tail -n 1 | tr -d ' '; }
sign_in() { curl -sS -m 20 -o "$work/body" -w '%{http_code}' -H 'Content-Type: application/json' -H 'Sec-Fetch-Site: none' "$@"; }
check full_disk_sign_in same "$(sign_in -d '{"user": "ana", "password": "a long password"}' "$url/api/v1/session")" 201
check full_disk_token same "$(sign_in -d '{"user": "ana", "password": "a long password", "days": 1}' "$url/api/v1/session/token")" 201
check full_disk_token_is_good has "$(curl -sS -H "Authorization: Bearer $(field "$(cat "$work/body")" token)" "$url/api/v1/session")" '"ana"'
check full_disk_cancel_is_taken "$trainyard" cancel "$other" "$program"
fill
check full_disk_cancelled wait_for 20 is_state "$other" cancelled
check full_disk_program_cancelled wait_for 20 is_state "$program" cancelled
check full_disk_removes has "$("$trainyard" remove "$other" 2>&1)" removed
# What the ended jobs had goes when nobody reads it any more, so for a while there is some room again.
is_full() { fill; sleep 1; [ "$(free)" -lt 1000 ]; }
check full_disk_is_full_still wait_for 10 is_full
check full_disk_submit_is_refused_still has "$("$trainyard" submit digits-mlp 2>&1)" "disk full"
check full_disk_many_changes python3 - "$url" "$token" <<'END' # more than what is kept has room for at once
import json, sys, urllib.request
url, token = sys.argv[1:]
for i in range(1000):
    urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/users/ana", json.dumps({"role": ("viewer", "member")[i % 2]}).encode(), method="PATCH",
                           headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"}), timeout=20).read()
END
fill
dd if=/dev/zero of="$work/disk/filler2" bs=512 2>/dev/null # what was still free in parts of pages
sleep 3
rm "$work"/disk/filler*
check full_disk_job_ends wait_for 60 is_final "$id"
job=$(api GET "/api/v1/jobs/$id")
check full_disk_job_succeeds same "$(field "$job" state) $(field "$job" step) $(field "$job" attempt)" "succeeded 9000 1"
check full_disk_told_in_the_log has "$("$trainyard" logs "$id")" "no room on the disk"
check full_disk_takes_jobs_again has "$("$trainyard" submit digits-mlp --steps 20 --watch)" succeeded
loss() { python3 -c '
import json, sys
series = json.load(sys.stdin)["series"][0]
assert series["steps"] == sorted(set(series["steps"]))
print(series["steps"][-1], series["values"][-1])' < <(api GET "/api/v1/jobs/$1/metrics?names=val_loss"); }
again_id=$(field "$("$trainyard" submit "$work/spec.json" --json)" id)
wait_for 60 is_final "$again_id"
check full_disk_same_result same "$(loss "$id")" "$(loss "$again_id")"
# What was used is kept again.
fill
check full_disk_again same "$(sign_in -d '{"user": "ana", "password": "a long password"}' "$url/api/v1/session")" 201
rm "$work"/disk/filler*
stop TERM
