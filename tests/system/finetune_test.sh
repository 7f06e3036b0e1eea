#!/bin/bash
# finetune_test.sh - how a training starts and ends: from another's weights, with frozen layers; early stopping, a target,
# best checkpoints, all of it the same after kill -9; a job of the server from another job's checkpoint.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
"$trainyard" dataset make digits digits.made --train 600 --test 200 >/dev/null || { echo "FAIL digits: no dataset"; failed=1; exit 1; }

# spec NAME LAYERS TRAIN [MORE] : NAME.json
spec() {
    cat >"$1.json" <<JSON
{"name": "$1", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, $2]}, "data": {"dataset": "digits", "batch_size": 30}, "train": {$3}${4:+, $4}}
JSON
}
run() { # run SPEC OUT [OPTION...] : what it says is in $said
    local spec=$1 out=$2
    shift 2
    said=$("$trainyard" train "$spec.json" --data digits.made --out "$out" --threads 1 "$@" 2>&1)
}
frozen='{"layer": "Dense", "units": 24, "activation": "relu", "name": "hidden", "trainable": false}, {"layer": "BatchNormalization", "trainable": false}'
body=${frozen//, \"trainable\": false/}
head='{"layer": "Dense", "units": 10, "name": "head"}'

spec first "$body, $head" '"steps": 60'
run first first
check trains same $? 0

same_tensors() { "$trainyard" checkpoint diff "$@" >/dev/null; }

# Everything fits: the first loss is about the last of the other; what is frozen keeps its bits, the rest learns.
spec tuned "$frozen, $head" '"steps": 40, "init": {"file": "first"}'
run tuned tuned
check starts_from_a_run has "$said" "started from first: 8 of 8 variables"
check frozen_keeps_its_bits same_tensors first/checkpoints/model.ckpt-60 tuned/checkpoints/model.ckpt-40 'hidden/kernel' 'hidden/bias' 'batch_normalization/gamma' \
    'batch_normalization/beta' 'batch_normalization/moving_mean' 'batch_normalization/moving_variance'
same_tensors first/checkpoints/model.ckpt-60 tuned/checkpoints/model.ckpt-40 head/kernel
check the_head_learns same $? 1

# Another head: refused by name, or taken as far as it fits.
spec other "$frozen, {\"layer\": \"Dense\", \"units\": 16, \"name\": \"extra\"}, $head" '"steps": 5, "init": {"file": "first/checkpoints/model.ckpt-60"}'
run other other
check does_not_fit same $? 2
check says_what_is_missing has "$said" '"extra/kernel" is not there'
check says_what_does_not_fit has "$said" '"head/kernel" is float [24,10] there, float [16,10] in the model'
sed -i 's/"init": {/"init": {"strict": false, /' other.json
run other other
check takes_what_fits has "$said" "7 of 10 variables, not taken"
run first more --init none.weights.h5
check no_such_file has "$said" "none.weights.h5"
spec jobs "$head" '"steps": 5, "init": {"job": 3}'
run jobs jobs
check a_job_needs_its_server has "$said" "checkpoints of job 3 are on its server"

# A text with other tokens: refused, unless all the same is wanted.
for name in one two; do
    mkdir "$name.text"
    for i in $(seq 40); do printf 'the %s line %s\n' "$name" $((i % 7)); done >"$name.text/a.txt"
    cat >"$name.json" <<JSON
{"model": {"layers": [{"layer": "Embedding", "input_dim": 24, "output_dim": 4}, {"layer": "Dense", "units": 24}]},
 "data": {"dataset": "$name", "sequence_length": 4, "batch_size": 8}, "train": {"steps": 2}}
JSON
done
"$trainyard" train one.json --data one.text --out one >/dev/null 2>&1
check trains_a_text same $? 0
sed -i 's|"steps": 2|"steps": 2, "init": {"file": "one"}|' one.json two.json
said=$("$trainyard" train one.json --data one.text 2>&1)
check goes_on_with_its_tokens has "$said" "started from one"
said=$("$trainyard" train two.json --data two.text 2>&1)
check other_tokens same $? 2
check says_that_tokens_differ has "$said" 'was trained on a text with other tokens than dataset "two" has (17 there, 18 here)'
sed -i 's/"init": {/"init": {"strict": false, /' two.json
said=$("$trainyard" train two.json --data two.text 2>&1)
check takes_other_tokens_all_the_same has "$said" "started from one"

# Early stopping with best checkpoints; the same when it is killed and resumed.
spec early "$body, $head" '"steps": 100000, "eval_every": 7' '"checkpoint": {"every_steps": 5, "keep_latest": 2, "keep_best": {"metric": "val_accuracy", "count": 2}},
 "stop": {"early": {"metric": "val_loss", "patience": 6, "min_delta": 0.001}}'
run early early
check early_stops same $? 0
check early_says_why grep -q 'no improvement of val_loss for 6 evaluations; best [0-9.]* at step [0-9]* (/stop/early)' <<<"$said"
last=$(sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' early/checkpoints/checkpoint)
best=$(sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' early/checkpoints/best)
check best_is_kept [ -e "early/checkpoints/$best.index" ]
check best_is_usable has "$("$trainyard" evaluate early/checkpoints/best --data digits.made 2>&1)" "after step ${best##*-}"
check two_latest_two_best test "$(ls early/checkpoints/*.index | wc -l)" -le 4
killed=0
for _ in 1 2 3 4 5 6; do # each time as soon as it has got on by a checkpoint
    before=$(cat broken/checkpoints/checkpoint 2>/dev/null)
    "$trainyard" train early.json --data digits.made --out broken --threads 1 --resume --json >>broken.lines 2>>broken.log &
    task=$!
    pids+=("$task")
    for _ in $(seq 1000); do
        [ "$(cat broken/checkpoints/checkpoint 2>/dev/null)" = "$before" ] || break
        sleep 0.005
    done
    kill -9 "$task" 2>/dev/null && ((killed++))
    wait "$task" 2>/dev/null
done
run early broken --resume
check killed_often test "$killed" -ge 1
check same_end same "$(sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' broken/checkpoints/checkpoint)" "$last"
check same_best same "$(sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' broken/checkpoints/best)" "$best"
check same_state cmp "early/checkpoints/$last.data-00000-of-00001" "broken/checkpoints/$last.data-00000-of-00001"
run early broken --resume
check over_is_over has "$said" "no improvement of val_loss for 6 evaluations"

# Targets, of evaluations and of steps.
spec target "$body, $head" '"steps": 100000, "eval_every": 7' '"stop": {"target": {"metric": "loss", "max": 0.9}}'
run target target
check target_of_steps grep -q 'target of /stop/target is reached: loss is 0.[0-9]*, wanted: at most 0.9' <<<"$said"
sed -i 's/"metric": "loss", "max": 0.9/"metric": "val_accuracy", "min": 0.5/' target.json
run target target
check target_of_evaluations has "$said" "wanted: at least 0.5"

# On the server: from a job's checkpoint.
serve server
digits "$dir"
submit() { field "$(api POST /api/v1/jobs "$1")" number 2>/dev/null; }
one=$(submit "$(sed 's/"steps": 60/"steps": 30/; s/"train": {/"checkpoint": {"every_steps": 10}, "train": {/' first.json)")
wait_for 60 is_final "$one"
check first_job same "$(state_of "$one")" succeeded
check says_why_it_ended has "$(api GET "/api/v1/jobs/$one")" "all steps done"
two=$(submit "$(sed "s/\"file\": \"first\"/\"job\": $one, \"step\": 20/" tuned.json)")
wait_for 60 is_final "$two"
check second_job same "$(state_of "$two")" succeeded
check frozen_there_too same_tensors "$dir/jobs/$one/checkpoints/model.ckpt-20" "$dir/jobs/$two/checkpoints/model.ckpt-40" hidden/kernel
has "$(api POST /api/v1/jobs "$(sed 's/"file": "first"/"job": 77/' tuned.json)")" "no job '77'"
check unknown_job same "$(status)" 400
has "$(api POST /api/v1/jobs "$(sed "s/\"file\": \"first\"/\"job\": $one, \"step\": 21/" tuned.json)")" "no checkpoint of that step"
check unknown_step same "$(status)" 400
