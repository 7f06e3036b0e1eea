#!/bin/bash
# real_gpu_test.sh - what gpu_test.sh says of GPUs, on the ones of this machine (left out where there are none): offered as
# the driver names them, seen by nobody else's tasks, sampled, proven free before the next task has them, kept by a task over
# its server's death, shared by halves, F45.  Other tests' agents would claim them: alone.
# alone
. "$(dirname "$0")/lib.sh"
[ -e /dev/nvidiactl ] || { echo "skip real_gpu: this machine has no NVIDIA driver"; exit 0; }
${CC:-cc} -O1 -o "$work/use_gpu" "$here/use_gpu.c" -ldl || { echo "skip real_gpu: no compiler"; exit 0; }
node() { field "$(api GET /api/v1/nodes)" items 0 "$1"; }
joined() { has "$(api GET /api/v1/nodes)" joined; }
log_has() { has "$(cat "$dir.log")" "$1"; }
nvidia() { nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits | head -n 1; }
now_ms() { date +%s%3N; }
gpus=$(nvidia-smi -L | wc -l) uuid=$(nvidia uuid)

began=$(now_ms)
told=$("$build/trainyard-task" gpus)
echo "  asking the driver took $(($(now_ms) - began)) ms; it is of version $(nvidia driver_version): $told"
check driver_is_asked has "$told" "$uuid  $(nvidia name)  $(nvidia memory.total | awk '{printf "%.1f", $1 / 1024}') GiB, 0 processes"
began=$(now_ms)
serve yard --cpus 4 --backoff-ms 100
wait_for 20 joined
echo "  server and agent were there after $(($(now_ms) - began)) ms"
check all_are_offered same "$(node gpus)" "$gpus"
check kind same "$(node gpu_type)" "$(nvidia name)"
export TRAINYARD_DIR=$dir

# submit GPUS MIB SECONDS : a job that uses as many for so long; its number
submit() {
    printf '{"command": ["%s", "%s", "%s"], "tasks": {"worker": {"gpus": %s, "cpus": 1}}, "restart": {"max": 0}}' \
        "$work/use_gpu" "$2" "$3" "$1" >"$work/job.json"
    field "$("$trainyard" submit "$work/job.json" --json)" number
}
log_of() { "$trainyard" logs "$1"; }
has_begun() { has "$(log_of "$1")" " MiB"; }
mib_free() { log_of "$1" | sed -n 's/.*free \([0-9]*\) of.*/\1/p'; }
uses() { nvidia-smi --query-compute-apps=pid --format=csv,noheader | grep -qx " *$1 *"; }

# --- who has none sees none ---
none=$(submit 0 1 0)
check ends_where_it_has_none wait_for 20 is_final "$none"
check sees_none has "$(log_of "$none")" "no GPU for me"

# --- one that has them, what it uses; the next waits for it ---
first=$(submit "$gpus" 4096 600)
check gets_its_own wait_for 30 has_begun "$first"
check sees_its_own has "$(log_of "$first")" "has $gpus of $(nvidia name)"
use_is() { python3 -c 'import json, sys
last = {one["name"]: one["values"][-1] for one in json.load(sys.stdin)["series"]}
print("  sampled:", {name: value for name, value in last.items() if "gpu" in name}, file=sys.stderr)
sys.exit(not (last["hw/gpu"] > 0.5 and last["hw/gpu_memory"] >= 4 * 2**30))' <<<"$(api GET "/api/v1/jobs/$first/hardware")"; }
check its_use_is_sampled wait_for 30 use_is
use_is
second=$(submit "$gpus" 4096 600)
sleep 1
check next_waits is_state "$second" queued
echo "  $("$trainyard" explain "$second" | head -n 3)"
check next_is_told_why has "$("$trainyard" explain "$second")" GPU

# --- killed from outside: proven free before the next has it ---
victim=$(log_of "$first" | sed -n 's/^pid \([0-9]*\) .*/\1/p')
check driver_names_the_task uses "$victim"
began=$(now_ms)
kill -KILL "$victim"
check next_begins wait_for 30 has_begun "$second"
echo "  from a killed task to the next one's memory: $(($(now_ms) - began)) ms"
check killed_one_failed is_state "$first" failed
check its_memory_was_free_again test "$(mib_free "$second")" -gt $(($(nvidia memory.total) - 2048))

# --- a task keeps its GPU when server and agent die, and is not counted as somebody else's ---
task=$(log_of "$second" | sed -n 's/^pid \([0-9]*\) .*/\1/p')
kill -KILL "$pid"; wait "$pid" 2>/dev/null
again --cpus 4 --backoff-ms 100
wait_for 20 joined
check goes_on_over_a_kill uses "$task"
holds() { [ "$(node gpus) $(node gpus_used)" = "$gpus $gpus" ] && is_state "$second" running; }
check still_holds_it wait_for 20 holds
began=$(now_ms)
"$trainyard" cancel "$second" >/dev/null
check cancelled wait_for 30 is_state "$second" cancelled
echo "  from cancel to proven free: $(($(now_ms) - began)) ms"
check no_process_then test -z "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader)"

# --- two share one ---
halves=("$(submit 0.5 1024 600)" "$(submit 0.5 1024 600)")
both_begun() { has_begun "${halves[0]}" && has_begun "${halves[1]}"; }
check two_share_one wait_for 30 both_begun
check they_share_it same "$(nvidia-smi --query-compute-apps=gpu_uuid --format=csv,noheader | sort | uniq -c | awk '{print $1}')" 2
for half in "${halves[@]}"; do "$trainyard" cancel "$half" >/dev/null; done
for half in "${halves[@]}"; do wait_for 30 is_final "$half"; done

# --- F45: one that others use, from when nobody has it ---
"$work/use_gpu" 64 600 >"$work/foreign.log" & foreign=$!; pids+=($foreign)
wait_for 30 grep -q MiB "$work/foreign.log"
held() { [ "$(node gpus_used)" = "$gpus" ]; }
check used_by_others_is_seen wait_for 15 held
third=$(submit "$gpus" 64 0)
sleep 2
check used_by_others_is_not_given is_state "$third" queued
echo "  $("$trainyard" explain "$third" | head -n 3)"
kill "$foreign"; wait "$foreign" 2>/dev/null
began=$(now_ms)
check given_once_it_is_free wait_for 30 is_state "$third" succeeded
echo "  from the other program's end to the job's: $(($(now_ms) - began)) ms"

# --- a PyTorch program as it is ---
if ! python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "skip real_gpu, PyTorch's program: its Python does not see CUDA"
else
    cat >"$work/train.py" <<'PY'
import time, torch
from torch.utils.tensorboard import SummaryWriter
import os
torch.manual_seed(1)
writer = SummaryWriter(os.environ["TRAINYARD_OUT"])
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(4096, 1024, device="cuda")
y = x.mean(1, keepdim=True)
began, step = time.time(), 0
while step < 200 or time.time() - began < 12:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        writer.add_scalar("loss", loss.item(), step)
    step += 1
writer.close()
print("trained on", torch.cuda.get_device_name())
PY
    printf '{"command": ["%s", "%s"], "tasks": {"worker": {"gpus": 1, "cpus": 1}}}' "$(command -v python3)" "$work/train.py" >"$work/job.json"
    fourth=$(field "$("$trainyard" submit "$work/job.json" --json)" number)
    check pytorch_trains wait_for 90 is_state "$fourth" succeeded
    log_of "$fourth" | tail -n 3
    check pytorch_had_the_gpu has "$(log_of "$fourth")" "trained on $(nvidia name)"
    check its_curve_is_there has "$(api GET "/api/v1/jobs/$fourth/metrics")" loss
    echo "  its use: $(api GET "/api/v1/jobs/$fourth/hardware" | head -c 600)"
fi
stop TERM
