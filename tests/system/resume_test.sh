#!/bin/bash
# resume_test.sh - `trainyard train` killed with -9 at random moments and while it writes a checkpoint (KILLS=10), resumed
# until it is done: losses and last checkpoint are those of the run that nobody disturbed.  SEED=N replays.
# Faults of docs/reliability.md: F7 F13.
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-10} seed=${SEED:-$(($(date +%s) % 1000000))}
RANDOM=$((seed % 32768))
cd "$work" || exit 1
"$trainyard" dataset make digits digits.made --train 2000 --test 500 >/dev/null || { echo "FAIL digits: no dataset"; failed=1; exit 1; }

# Batches that do not divide the 2000 examples, checkpoints that do not divide the epoch's 66 steps.
steps=$((500 + 50 * kills))
cat >spec.json <<END
{"name": "resumed", "seed": $seed, "model": {"layers": [
   {"layer": "Conv2D", "filters": 6, "kernel_size": 5, "activation": "relu"}, {"layer": "MaxPooling2D"}, {"layer": "Flatten"},
   {"layer": "Dense", "units": 64, "activation": "relu"}, {"layer": "Dropout", "rate": 0.3}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": 30}, "train": {"steps": $steps, "eval_every": 250, "optimizer": "Adam"},
 "checkpoint": {"every_steps": 23}}
END
train() { # train FOLDER [OPTION...] : in the background; its pid is in $task
    local out=$1
    shift
    "$trainyard" train spec.json --data digits.made --out "$out" --threads 1 --json "$@" >>"$out.lines" 2>>"$out.log" &
    task=$!
    pids+=("$task")
}

started=$(date +%s%N)
train whole
wait "$task"
check unbroken_run_finishes same $? 0
took_ms=$((($(date +%s%N) - started) / 1000000))

same_bits() {
    local part
    for part in .data-00000-of-00001 .index; do
        cmp "whole/checkpoints/model.ckpt-$steps$part" "broken/checkpoints/model.ckpt-$steps$part" || return 1
    done
}

killed=0 in_checkpoint=0 rounds=0
while ((killed < kills && rounds++ < kills * 3)); do
    train broken --resume
    if ((RANDOM % 2)); then # while a checkpoint is written: its folder is there
        python3 - "$task" <<'PY'
import os, sys, time
pid, until = int(sys.argv[1]), time.monotonic() + 2
while time.monotonic() < until and os.path.exists(f"/proc/{pid}"):
    try:
        if any(name.startswith(".model.ckpt-") for name in os.listdir("broken/checkpoints")):
            os.kill(pid, 9)
            break
    except OSError:
        pass
PY
        moment=checkpoint
    else
        sleep "$(python3 -c "print(0.02 + $((RANDOM % 1000)) / 1000 * $took_ms / 1000 / ($kills / 2 + 1))")"
        moment=any
    fi
    kill -9 "$task" 2>/dev/null
    wait "$task" 2>/dev/null
    code=$?
    if [ $code = 0 ]; then # done before it was killed often enough: once more from the start
        same_bits || { echo "FAIL same_checkpoint of an earlier life"; failed=1; }
        rm -rf broken
        continue
    fi
    ((killed++))
    [ $moment = checkpoint ] && [ -n "$(ls -A broken/checkpoints 2>/dev/null | grep '^\.model')" ] && ((in_checkpoint++))
done
train broken --resume
wait "$task"
check broken_run_finishes same $? 0
echo "  killed $killed times, $in_checkpoint of them with half a checkpoint on disk"
check it_was_killed_often same "$killed" "$kills"

check no_half_checkpoint_is_left same "$(find broken -name '*.tmp')" ""
check same_checkpoint same_bits
PYTHONPATH=$here python3 - <<'PY' >result
import glob
from events import scalars
def values(folder):
    """Every number that a run told, by name and step; and whether it ever told two for one step."""
    found, twice = {}, []
    for path in sorted(glob.glob(f"{folder}/events.out.tfevents.*")):
        for name, step, value in scalars(path):
            if "loss" in name or "accuracy" in name:
                if found.setdefault((name, step), value) != value:
                    twice.append((name, step, found[name, step], value))
    return found, twice
whole, _ = values("whole")
broken, twice = values("broken")
both = whole.keys() & broken.keys()
differ = [(key, whole[key], broken[key]) for key in both if whole[key] != broken[key]]
evaluated = {key for key in whole if key[0] == "val_loss"}
print("ok steps_done_again_give_the_same" if not twice else f"FAIL steps_done_again_give_the_same: {twice[:5]}")
print("ok same_losses" if len(both) > 20 and not differ else f"FAIL same_losses: {len(both)} compared, {differ[:5]}")
print(f"  {len(both)} numbers compared")
print("ok every_evaluation_is_there" if evaluated <= broken.keys() else f"FAIL every_evaluation_is_there: {sorted(evaluated - broken.keys())}")
PY
cat result
grep -q '^FAIL' result && failed=1
[ $failed -eq 0 ] || echo "  replay with: SEED=$seed KILLS=$kills make system T=resume"

# In bfloat16 too: resumed after 140 steps, the last checkpoint has the bits of the run that was not stopped, and what it
# has learnt is worth what float32 has learnt in as many steps.
sed 's/"train": {/"train": {"precision": "bfloat16", /' spec.json >bf16.json
ends() { # ends SPEC FOLDER STEPS [OPTION...] : trains, and prints the accuracy at the end
    "$trainyard" train "$1" --data digits.made --out "$2" --steps "$3" --threads 1 --json "${@:4}" 2>>"$2.log" |
        python3 -c 'import json, sys; print(json.loads(sys.stdin.readlines()[-1])["metrics"]["val_accuracy"])'
}
whole=$(ends bf16.json bf16.whole 300)
ends bf16.json bf16.broken 140 >/dev/null
resumed=$(ends bf16.json bf16.broken 300 --resume)
float=$(ends spec.json float 300)
check bf16_resumed_learns_the_same same "$resumed" "$whole"
check bf16_resumed_has_the_same_bits cmp bf16.{whole,broken}/checkpoints/model.ckpt-300.data-00000-of-00001
check bf16_learns_as_float python3 -c "import sys; sys.exit(not (float('$whole') > 0.6 and abs(float('$whole') - float('$float')) < 0.04))"
check bf16_is_not_float sh -c '! cmp -s bf16.whole/checkpoints/model.ckpt-300.data-00000-of-00001 float/checkpoints/model.ckpt-300.data-00000-of-00001'
