#!/bin/bash
# train_test.sh - trainyard-task train with real files: results, output, exit codes, exact resume.
# Faults of docs/reliability.md: F24 F26 F29.
set -u
build=${TRAINYARD_BUILD:-build}
task=$(realpath "$build/trainyard-task")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; cat out err 2>/dev/null | tail -n 20; failed=1; fi
}
# run ARGUMENTS... : output in out and err, exit code in $code
run() { "$task" train "$@" >out 2>err </dev/null; code=$?; }
code_is() { [ "$code" = "$1" ] || { echo "  exit code $code, wanted $1"; false; }; }
says() { grep -q -- "$1" out || { echo "  nothing like '$1' in the output"; false; }; }
complains() { grep -q -- "$1" err || { echo "  nothing like '$1' on stderr"; false; }; }
big_endian() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }

# part NAME COUNT : noise of 10x10 with labels from 0 to 4
part() {
    { printf '\0\0\10\3'; big_endian "$2"; big_endian 10; big_endian 10; head -c $((100 * $2)) /dev/urandom; } >"data/$1-images-idx3-ubyte"
    { printf '\0\0\10\1'; big_endian "$2"; head -c 1000000 /dev/urandom | tr -dc '\000-\004' | head -c "$2"; } >"data/$1-labels-idx1-ubyte"
}
mkdir data
part train 600
part t10k 130

# Convolution, dropout and Adam, in batches that do not divide the epoch.
cat >spec.json <<'END'
{"name": "noise", "seed": 3,
 "model": {"layers": [
   {"layer": "Conv2D", "filters": 8, "kernel_size": 3, "activation": "relu"}, {"layer": "MaxPooling2D"},
   {"layer": "Flatten"}, {"layer": "Dense", "units": 24, "activation": "relu"}, {"layer": "Dropout", "rate": 0.3},
   {"layer": "Dense", "units": 5}]},
 "data": {"dataset": "noise", "batch_size": 32}, "train": {"steps": 1500, "eval_every": 500},
 "checkpoint": {"every_steps": 50}}
END

# --- traced steps, for a trace viewer ---
sed 's/"checkpoint"/"trace": {"every_steps": 5}, "checkpoint"/' spec.json >traced.json
run traced.json --data data --out traced --steps 10
check train_traces_finish code_is 0
"$task" trace traced --out trace.json >out 2>err
check trace_says_what_it_wrote says '2 traced steps of traced/events.out.tfevents.* in trace.json'
check trace_is_what_viewers_read python3 -c '
import json
trace = json.load(open("trace.json"))
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
assert {e["args"]["step"] for e in events} == {"step_5", "step_10"}
assert all(e["dur"] >= 0 and e["ts"] > 1e15 and e["pid"] > 0 and e["tid"] > 0 for e in events)
assert any(e["ph"] == "M" and e["args"]["name"].endswith("CPU:0") for e in trace["traceEvents"])
conv = [e for e in events if "Conv2D" in e["name"] and e["args"]["node"].startswith("conv2d/")]
assert conv and conv[0]["args"]["outputs"] == "float[32,8,8,8]" and conv[0]["args"]["bytes"] == 65536, conv
by_step = [e for e in events if e["args"]["step"] == "step_5"]
assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in zip(by_step, by_step[1:])), "one thread, one call at a time"'
"$task" trace traced --step 10 >out 2>err
check trace_of_one_step test "$(grep -c step_5 out)" = 0
"$task" trace traced --step 7 >out 2>err
check trace_of_no_step test $? = 2
"$task" trace data >out 2>err
check trace_of_no_events complains 'no event file'

# --- results and output ---
run spec.json --data data --out whole --json --threads 1
check train_finishes code_is 0
check train_says_how_it_starts says '"event": "start", "name": "noise", "steps": 1500, "batch_size": 32, "examples": 600'
check train_ends_with_an_end_object test "$(tail -n 1 out | grep -c '"event": "end", "step": 1500, "reason": "finished".*"examples_per_second": [0-9.e+]*, "metrics": {"loss": [0-9.e-]*, "accuracy": [0-9.e-]*, "val_loss": [0-9.e-]*, "val_accuracy": [0-9.e-]*}}$')" = 1
check train_json_is_json python3 -c 'import json; [json.loads(l) for l in open("out")]'
check train_evaluates_every_500 test "$(grep -c '"event": "evaluation"' out)" = 3
check train_learns_the_noise python3 -c '
import json
losses = [json.loads(l) for l in open("out") if "\"step\"," in l or "\"event\": \"step\"" in l]
assert losses[-1]["loss"] < 0.9 * losses[0]["loss"], losses'
check train_keeps_three_checkpoints test "$(ls whole/checkpoints/*.index | wc -l)" = 3
check train_writes_an_event_file test "$(ls whole/events.out.tfevents.* | wc -l)" = 1

# --- a part held out of training: evaluations are of it, and the test part is not looked at ---
sed 's/"batch_size": 32/"batch_size": 32, "validation": 100/' spec.json >held.json
run held.json --data data --steps 60
check train_holds_out code_is 0
check train_holds_out_examples says '500 examples of noise'
check train_tells_validation says 'step 60: validation loss [0-9.]*  validation accuracy [0-9.]*'
check train_leaves_the_test_part_alone test "$(grep -c 'test loss' out)" = 0
grep 'validation loss' out >held.out
cp -r data other-test
{ printf '\0\0\10\1'; big_endian 130; head -c 130 /dev/zero; } >other-test/t10k-labels-idx1-ubyte
run held.json --data other-test --steps 60
check train_says_the_same_whatever_the_test_part says "$(cat held.out)"
sed 's/"validation": 100/"validation": 600/' held.json >all.json
run all.json --data data
check train_holds_out_too_much code_is 2
check train_holds_out_too_much_says complains '/data/validation: .*600 examples held out of 600'

run spec.json --data data --out lines --steps 20
check train_prints_plain_lines says 'step 20/20  loss [0-9.]*  accuracy [0-9.]*  [0-9,]* examples/s'
check train_prints_the_evaluation says 'step 20: test loss [0-9.]*  test accuracy [0-9.]*'

run spec.json --data data --out again --threads 1 --steps 1500
same_state() { cmp "$1/checkpoints/model.ckpt-1500.data-00000-of-00001" "$2/checkpoints/model.ckpt-1500.data-00000-of-00001"; }
check train_repeats_bit_for_bit same_state whole again

# --- killed at any moment and resumed, again and again, it ends with the same bits ---
kills=0
for i in $(seq 60); do
    "$task" train spec.json --data data --out killed --resume --threads 1 --json >out 2>err &
    pid=$!
    sleep 0.$((RANDOM % 4))$((RANDOM % 10))
    if [ $i -lt 60 ] && kill -9 $pid 2>/dev/null; then
        wait $pid 2>/dev/null; code=$?
        [ $code = 137 ] && kills=$((kills + 1))
    else
        wait $pid; code=$?
    fi
    [ $code = 0 ] && break
    [ $code = 137 ] || break
done
[ $code = 0 ] || { run spec.json --data data --out killed --resume --threads 1 --json; }
check killed_run_finishes code_is 0
echo "  killed $kills times"
check killed_run_ends_with_the_same_bits same_state whole killed

# --- asked to stop ---
"$task" train spec.json --data data --out stopped --steps 1000000 --threads 1 --epoch 5 >out 2>err &
pid=$!
until [ -s stopped/checkpoints/checkpoint ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid; wait $pid; code=$?
check stopped_run_exits_with_3 code_is 3
newest=$(sed -n 's/^model_checkpoint_path: ".*ckpt-\([0-9]*\)"$/\1/p' stopped/checkpoints/checkpoint)
run spec.json --data data --out stopped --steps $((newest + 10)) --threads 1 --epoch 6 --resume --json
check stopped_run_goes_on says "\"resumed_from\": $newest"
run spec.json --data data --out other --checkpoints stopped/checkpoints --threads 1 --epoch 5 --resume
check older_attempt_is_fenced code_is 2
check older_attempt_is_told complains 'fenced'
run spec.json --data data --out interrupted --steps 5 --threads 1
"$task" train spec.json --data data --out interrupted --steps 1000000 --threads 1 >out 2>err &
pid=$!; sleep 0.5; kill -INT $pid; wait $pid; code=$?
check interrupted_run_exits_with_3 code_is 3
check interrupted_run_says_how_to_go_on says 'go on with: trainyard train spec.json --data data --out interrupted --resume'

# --- what a user may get wrong ---
wrong() { # wrong NAME TEXT ARGUMENTS... : exit 2 and the text
    local name=$1 text=$2; shift 2
    run "$@"
    check "$name" eval 'code_is 2 && complains "$text"'
}
wrong no_spec 'which spec' --resume
wrong unknown_option 'unknown argument "--stepz"' spec.json --stepz 5
wrong no_value '--steps wants a value' spec.json --steps
wrong bad_number '--steps is "many"' spec.json --steps many
wrong no_such_spec 'no file "nonesuch", and no example of that name (examples: ' nonesuch --data data
wrong no_such_file 'dir/x.json' dir/x.json --data data
wrong no_such_data 'nowhere' spec.json --data nowhere --out w1
check error_file_is_left grep -q '"code": "NOT_FOUND", "text": ".*nowhere' w1/error.json
sed 's/"units": 24/"unitz": 24/' spec.json >typo.json
mkdir w2
wrong typo_in_the_spec '/model/layers/3/unitz: typo.json: unknown field "unitz"; did you mean "units"' typo.json --data data --out w2
check typo_is_in_the_error_file grep -q '"pointer": "/model/layers/3/unitz"' w2/error.json
sed 's/"units": 5/"units": 4/' spec.json >small.json
wrong too_few_outputs '/model/layers/5: .*at least the 5 classes' small.json --data data --out w3
mkdir torn; cp data/* torn; truncate -s 1000 torn/train-images-idx3-ubyte
wrong torn_data 'torn/train-images-idx3-ubyte: .*byte 1000' spec.json --data torn --out w4
rm torn/train-images-idx3-ubyte
wrong missing_file 'torn/train-images-idx3-ubyte' spec.json --data torn --out w5
sed 's/"steps": 1500/"steps": 1500, "optimizer": {"name": "SGD", "learning_rate": 1e6}/; s/"relu"/"linear"/' spec.json >wild.json
sed 's/"name": "noise"/"name": "noise", "tasks": {"worker": {"memory_bytes": 60000}}/' spec.json >cramped.json
wrong no_room_for_a_step '/tasks/worker/memory_bytes: .*a training step needs at least [0-9]* bytes, the limit is 60000: [0-9]* for variables, .* the largest are .*conv2d.* float\[32,8,8,8\] 65536' cramped.json --data data --out w7
wrong diverging 'the loss is .* after step [0-9]*: training has diverged (the learning rate 1e+06 may be too high; .*check_numerics' wild.json --data data --out w6
sed 's/"steps": 1500/"steps": 1500, "check_numerics": true/' wild.json >watched.json
wrong diverging_at_an_op 'step [0-9]*: training has diverged (the learning rate 1e+06 may be too high), in layer .[a-z0-9_]*.: node .*/.* infinite of .* its inputs: .* from ' watched.json --data data --out w8
check diverging_is_in_the_error_file grep -q '"pointer": "/train/check_numerics"' w8/error.json
sed 's/"units": 24/"units": 25/' spec.json >wider.json
wrong other_model 'is of another model: its "dense/kernel" is' wider.json --data data --out whole --resume
touch file
wrong out_is_a_file 'file' spec.json --data data --out file/run
if [ "$(id -u)" != 0 ]; then
    mkdir shut; chmod 555 shut
    wrong read_only_folder 'Permission denied' spec.json --data data --out shut/run
fi
if mkdir full && mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
    wrong full_disk 'No space left on device' spec.json --data data --out full
    umount full
else
    echo 'skip full_disk: no right to mount'
fi

# --- a step that may use less memory computes again what it does not keep: the same bits ---
python3 - <<'END'
import json
layers = [{"layer": "Flatten"}]
for i in range(6):
    layers += [{"layer": "Dense", "units": 64, "activation": "tanh"}, {"layer": "Dropout", "rate": 0.2}]
spec = {"name": "deep", "seed": 5, "model": {"layers": layers + [{"layer": "Dense", "units": 5}]},
        "data": {"dataset": "noise", "batch_size": 200}, "train": {"steps": 20, "optimizer": "SGD"}}
json.dump(spec, open("deep.json", "w"))
for name, limit in ("tight", 200000), ("less", 0):
    spec["tasks"] = {"worker": {"memory_bytes": limit}}
    json.dump(spec, open(name + ".json", "w"))
END
run deep.json --data data --out deep --threads 1
check deep_is_trained code_is 0
run tight.json --data data --out tight --threads 1
check too_tight_is_refused complains 'a training step needs at least [0-9]* bytes, the limit is 200000'
least=$(sed -n 's/.*a training step needs at least \([0-9]*\) bytes.*/\1/p' err)
sed "s/\"memory_bytes\": 0/\"memory_bytes\": $least/" less.json >least.json
run least.json --data data --out least --threads 1
check it_fits_when_what_is_cheap_is_computed_again code_is 0
check and_the_checkpoint_is_the_same cmp deep/checkpoints/model.ckpt-20.data-00000-of-00001 least/checkpoints/model.ckpt-20.data-00000-of-00001
check because_some_nodes_ran_again grep -q 'dropout.*/again' least/events.out.tfevents.*
check which_nothing_else_does bash -c '! grep -q /again deep/events.out.tfevents.*'

# --- damage to the newest checkpoint ---
cp -r whole damaged
printf X | dd of=damaged/checkpoints/model.ckpt-1500.data-00000-of-00001 bs=1 seek=50 conv=notrunc 2>/dev/null
run spec.json --data data --out damaged --resume --threads 1
check damaged_checkpoint_is_told says 'passed over damaged/checkpoints/model.ckpt-1500'
check damaged_checkpoint_is_passed_over same_state whole damaged
# A model of many parts: residual, batch norm, recurrence, attention, a schedule, metrics that are sums.
cat >parts.json <<'END'
{"name": "parts", "seed": 5, "model": {"layers": [
   {"layer": "Conv2D", "filters": 8, "kernel_size": 3, "padding": "same", "name": "stem", "kernel_regularizer": {"name": "L2", "l2": 0.001}},
   {"layer": "BatchNormalization", "momentum": 0.9}, {"layer": "ReLU", "name": "first"},
   {"layer": "SeparableConv2D", "filters": 8, "kernel_size": 3, "padding": "same"}, {"layer": "Add", "inputs": ["separable_conv2d", "first"]},
   {"layer": "Reshape", "target_shape": [10, -1]}, {"layer": "LSTM", "units": 6, "return_sequences": true, "dropout": 0.1},
   {"layer": "MultiHeadAttention", "num_heads": 2, "key_dim": 4, "use_causal_mask": true}, {"layer": "LayerNormalization"},
   {"layer": "GlobalAveragePooling1D"}, {"layer": "Dense", "units": 5, "activation": "softmax"}]},
 "data": {"dataset": "noise", "batch_size": 32},
 "train": {"steps": 40, "eval_every": 20, "metrics": ["accuracy", "AUC"],
   "optimizer": {"name": "AdamW", "global_clipnorm": 1.0, "use_ema": true, "learning_rate": {"name": "CosineDecay", "initial_learning_rate": 0.001, "decay_steps": 40}}},
 "checkpoint": {"every_steps": 20}}
END
run parts.json --data data --out parts --threads 1 --json
check "a model of many parts trains" code_is 0
check "... and tells all its metrics" says '"val_auc": 0.'
run parts.json --data data --out halves --threads 1 --steps 20 --json
run parts.json --data data --out halves --threads 1 --resume --json
check "... and resumes" code_is 0
last() { tail -n 1 "$1" | grep -o '"metrics".*'; }
cp out resumed
run parts.json --data data --out whole --threads 1 --json
check "... bit for bit" test "$(last out)" = "$(last resumed)"
"$task" classes >classes.md
check "the page of classes is true" cmp -s classes.md "$here/../../docs/classes.md"

exit $failed
