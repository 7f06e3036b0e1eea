#!/bin/bash
# full_disk.sh - the part of newuser_test.sh that needs a mount namespace of its own: the disk of a yard is full for a
# while.  The job pauses and goes on by itself; the server answers what needs no room, and says why it cannot take more.
. "$(dirname "$0")/lib.sh"
mkdir "$work/disk"
mount -t tmpfs -o size=24m none "$work/disk" 2>/dev/null || { echo "skip full_disk: no right to mount"; exit 0; }
trap 'umount -l "$work/disk"; finish' EXIT

serve disk/yard --cpus 2
digits "$dir"
export TRAINYARD_DIR=$dir
cat >"$work/spec.json" <<'END'
{"name": "full", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 128, "activation": "relu"},
 {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
 "checkpoint": {"every_steps": 100}, "train": {"steps": 3000}}
END
id=$(field "$("$trainyard" submit "$work/spec.json" --json)" id)
has_checkpoint() { has "$(api GET "/api/v1/jobs/$id/checkpoints")" '"step":'; }
check full_disk_job_runs wait_for 30 has_checkpoint
dd if=/dev/zero of="$work/disk/filler" bs=4k 2>/dev/null
pid_of_task=$(field "$(api GET "/api/v1/jobs/$id/attempts")" items 0 tasks 0 pid)
sleep 3
api POST /api/v1/jobs '{"example": "digits-mlp"}' >/dev/null
check full_disk_submit_status same "$(status)" 507
check full_disk_submit_says has "$(cat "$work/body")" "disk full"
check full_disk_submit_says_what_to_do has "$(cat "$work/body")" "Free some space"
check full_disk_cli has "$("$trainyard" submit digits-mlp 2>&1)" "disk full"
check full_disk_answers_reads has "$("$trainyard" jobs)" running
check full_disk_metrics has "$(api GET "/api/v1/jobs/$id/metrics?names=loss")" '"steps":['
check full_disk_task_waits kill -0 "$pid_of_task"
dd if=/dev/zero of="$work/disk/filler2" bs=512 2>/dev/null # what was still free in parts of pages
sleep 3
rm "$work"/disk/filler*
check full_disk_job_ends wait_for 60 is_final "$id"
job=$(api GET "/api/v1/jobs/$id")
check full_disk_job_succeeds same "$(field "$job" state) $(field "$job" step) $(field "$job" attempt)" "succeeded 3000 1"
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
stop TERM
