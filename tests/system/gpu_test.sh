#!/bin/bash
# gpu_test.sh - GPUs as NVIDIA's driver tells of them (a library in its place): offered, busy (F45), lost (F28), claimed by
# another agent (F44), of another kind, a driver that hangs; their numbers over restarts.
. "$(dirname "$0")/lib.sh"
${CC:-cc} -shared -fPIC -o "$work/nvml.so" "$here/fake_nvml.c" || { echo "skip gpu: no compiler"; exit 0; }
export TRAINYARD_NVML=$work/nvml.so FAKE_NVML=$work/gpus
tag=$$-$RANDOM # locks are the machine's
gpu() { printf 'GPU-%s-%s|%s|85899345920|%s\n' "$tag" "$1" "${2:-NVIDIA H100 80GB HBM3}" "${3:-}"; }
node() { field "$(api GET /api/v1/nodes)" items 0 "$1"; }
joined() { has "$(api GET /api/v1/nodes)" joined; }
log_has() { has "$(cat "$dir.log")" "$1"; }

# --- what is offered, and what is not ---
sleep 300 & foreign=$!; pids+=($foreign)
{ gpu a; gpu b "" "$foreign"; printf 'GPU-%s-c|lost\n' "$tag"; gpu d "NVIDIA T4"; gpu e; } >"$FAKE_NVML"
check driver_is_asked has "$("$build/trainyard-task" gpus)" "GPU-$tag-a  NVIDIA H100 80GB HBM3  80.0 GiB, 0 processes"
check driver_tells_of_lost has "$("$build/trainyard-task" gpus)" "GPU is lost"
serve yard --cpus 4 --backoff-ms 100
wait_for 10 joined
check two_are_offered same "$(node gpus)" 2
check kind same "$(node gpu_type)" "NVIDIA H100 80GB HBM3"
check busy_one_is_named log_has "gpu=GPU-$tag-b msg=\"not offered: another program uses it: process $foreign\""
check lost_one_is_named log_has "gpu=GPU-$tag-c msg=\"not offered: it does not answer: GPU is lost\""
check other_kind_is_named log_has "gpu=GPU-$tag-d msg=\"not offered: it is of another kind than the first: NVIDIA T4\""
export TRAINYARD_DIR=$dir
check too_many same "$(api POST /api/v1/jobs '{"command": ["true"], "tasks": {"worker": {"gpus": 3}}}' >/dev/null; status)" 400

# --- a task gets its own, by name ---
echo '{"command": ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 600"], "tasks": {"worker": {"gpus": 1, "cpus": 1}}}' >"$work/one.json"
first=$(field "$("$trainyard" submit "$work/one.json" --json)" number)
second=$(field "$("$trainyard" submit "$work/one.json" --json)" number)
wait_for 20 sh -c "'$trainyard' logs $first | grep -q GPU- && '$trainyard' logs $second | grep -q GPU-"
check each_has_its_own same "$(printf '%s\n' "$("$trainyard" logs "$first")" "$("$trainyard" logs "$second")" | sort)" "$(printf 'GPU-%s-a\nGPU-%s-e' "$tag" "$tag")"
mine=$("$trainyard" logs "$first")
{ gpu a "" "|1073741824|40"; gpu b "" "$foreign"; gpu d "NVIDIA T4"; gpu e "" "|1073741824|40"; } >"$FAKE_NVML"
use_is() { python3 -c 'import json, sys
last = {one["name"]: one["values"][-1] for one in json.load(sys.stdin)["series"]}
sys.exit(abs(last["hw/gpu"] - 0.4) > 1e-6 or abs(last["hw/gpu_memory"] - 2**30) > 1000)' <<<"$(api GET "/api/v1/jobs/$first/hardware")"; }
check its_use_is_sampled wait_for 20 use_is

# --- another agent on the machine ---
mkdir "$work/other"
yard=$dir server=$pid
TRAINYARD_DIR= serve other --cpus 4
wait_for 10 joined
check claimed_ones_are_not_offered same "$(node gpus) $(node gpu_type)" "1 NVIDIA T4"
check claim_is_named log_has "another agent of this machine has claimed it"
stop TERM
dir=$yard pid=$server url=http://$(field "$(cat "$yard/server.json")" http) token=$(TRAINYARD_DIR= "$trainyard" token create --dir "$yard")

# --- numbers stay while tasks hold them, also when the driver tells of others now ---
kill -KILL "$pid"; wait "$pid" 2>/dev/null
{ gpu e; gpu a; gpu f; } >"$FAKE_NVML"
again --cpus 4 --backoff-ms 100
has_gpus() { [ "$(node gpus) $(node gpus_used)" = "$1 $2" ]; }
check new_one_is_offered_behind_them wait_for 10 has_gpus 3 2
"$trainyard" cancel "$first" >/dev/null; wait_for 20 is_final "$first"
third=$(field "$("$trainyard" submit "$work/one.json" --json)" number)
wait_for 20 sh -c "'$trainyard' logs $third | grep -q GPU-"
check freed_one_goes_on same "$("$trainyard" logs "$third")" "$mine"

# --- lost while a task uses it; one that others used comes free ---
attempt_is() { [ "$(field "$(api GET "/api/v1/jobs/$1")" attempt)" = "$2" ]; }
{ printf 'GPU-%s-e|lost\n' "$tag"; gpu a; gpu f "" "$foreign"; } >"$FAKE_NVML"
check lost_one_ends_its_task wait_for 20 is_state "$second" queued
check lost_one_is_told has "$(api GET "/api/v1/jobs/$second/tasks?attempt=1")" "GPU GPU-$tag-e is lost: GPU is lost"
check lost_one_is_not_given_again has_gpus 3 3
{ printf 'GPU-%s-e|lost\n' "$tag"; gpu a; gpu f; } >"$FAKE_NVML"
check free_one_is_offered_again wait_for 20 attempt_is "$second" 2
wait_for 10 sh -c "'$trainyard' logs $second | grep -q GPU-$tag-f"
check tried_again_on_another has "$("$trainyard" logs "$second")" "GPU-$tag-f"

# --- a task's end is told when its GPU has no process any more ---
{ gpu e; gpu a; gpu f "" "$foreign"; } >"$FAKE_NVML"
"$trainyard" kill "$second" >/dev/null
sleep 2
check gpu_with_a_process_is_not_free is_state "$second" stopping
kill -KILL "$pid"; wait "$pid" 2>/dev/null
again --cpus 4 --backoff-ms 100
wait_for 10 joined
sleep 2
check not_for_a_new_agent_either is_state "$second" stopping
{ gpu e; gpu a; gpu f; } >"$FAKE_NVML"
check gpu_is_free_once_proven wait_for 10 is_state "$second" cancelled
check lost_one_came_back wait_for 20 has_gpus 3 1
"$trainyard" cancel "$third" >/dev/null; wait_for 20 is_final "$third"
stop TERM
{ gpu e; gpu a "" "$foreign"; gpu f; } >"$FAKE_NVML"
again --cpus 4
wait_for 10 joined
check looked_at_anew same "$(node gpus)" 2
check now_busy log_has "gpu=GPU-$tag-a msg=\"not offered: another program uses it"
stop TERM

# --- a driver that hangs, and none ---
echo hang >"$FAKE_NVML"
began=$(date +%s)
again --cpus 4
check hanging_driver_stops_nobody test $(($(date +%s) - began)) -lt 15
wait_for 10 joined
check no_gpu_then same "$(node gpus)" 0
check hanging_is_named log_has "NVIDIA's driver did not answer in 10 s"
stop TERM
rm "$FAKE_NVML"
again --cpus 4
wait_for 10 joined
check no_driver same "$(node gpus)" 0
check no_driver_is_named log_has "Driver Not Loaded"
stop TERM
rm -f "/run/lock/trainyard-GPU-$tag-"*.lock "/tmp/trainyard-GPU-$tag-"*.lock
