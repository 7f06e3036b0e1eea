#!/bin/bash
# checkpoint_test.sh - trainyard checkpoint show, export and diff, on checkpoints that a training wrote and on damaged ones.
# Faults of docs/reliability.md: F24.
set -u
build=$(realpath "${TRAINYARD_BUILD:-build}")
shared=$(realpath -m "${TRAINYARD_SHARED:-../shared}")/tf-files/checkpoints
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; tail -n 20 out err; failed=1; fi
}
run() { "$build/trainyard" checkpoint "$@" >out 2>err </dev/null; code=$?; }
code_is() { [ "$code" = "$1" ] || { echo "  exit code $code, wanted $1"; false; }; }
says() { grep -q -- "$1" out || { echo "  nothing like '$1' in the output"; false; }; }
complains() { grep -q -- "$1" err || { echo "  nothing like '$1' on stderr"; false; }; }
wrong() { # wrong NAME PATTERN ARGUMENT...
    local name=$1 pattern=$2; shift 2
    run "$@"
    check "$name" complains "$pattern"
    check "${name}_is_refused" code_is 2
}

cat >spec.json <<'END'
{"name": "two", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
 "train": {"steps": 20, "optimizer": "Adam"}, "checkpoint": {"every_steps": 10, "keep_latest": 2}}
END
"$build/trainyard" dataset make digits digits --train 500 --test 100 >out 2>err &&
    "$build/trainyard-task" train spec.json --data digits --out run >>out 2>>err
check trained test $? = 0

# --- show ---
run show run
check show_takes_the_folder_of_a_run code_is 0
check show_tells_the_newest says '^run/checkpoints/model.ckpt-20: TensorFlow checkpoint (V2), step 20$'
check show_lists_names_types_shapes says '^dense/kernel  *float  *\[784,10\]  *31360 '
check show_counts says 'tensors, [0-9]* elements, [0-9]* bytes$'
run show run/checkpoints/model.ckpt-10 dense/bias --json
check show_json python3 -c '
import json
shown = json.load(open("out"))
assert shown["step"] == 10 and shown["count"] == 1, shown
row = shown["tensors"][0]
assert row["name"] == "dense/bias" and row["dtype"] == "float" and row["shape"] == [10] and row["bytes"] == 40, row
assert row["min"] <= row["mean"] <= row["max"] and row["nans"] == 0 and row["infinities"] == 0, row'
run show run --tensor 'dense/*' --no-values
check show_of_a_pattern test "$(grep -c '^dense/' out)" -ge 2
check show_of_a_pattern_alone test "$(grep -c '^global_step' out)" = 0
wrong show_of_no_tensor 'has no tensor "dense/kernal"; did you mean dense/kernel?' show run dense/kernal
wrong show_of_nothing 'there is no checkpoint .nowhere.' show nowhere
mkdir empty
wrong show_of_an_empty_folder 'empty is a folder without a checkpoint' show empty
wrong show_of_a_spec 'holds no tensors that can be read' show spec.json
wrong show_without_a_path 'which checkpoint?' show
wrong show_with_a_wrong_option 'unknown argument "--jsn"; did you mean --json?' show run --jsn
wrong no_such_verb 'checkpoint has no verb "list"' list run

# --- export, and diff of what was exported ---
for ending in safetensors npz; do
    run export run "all.$ending"
    check "export_$ending" code_is 0
    run diff run "all.$ending"
    check "export_${ending}_is_the_same" code_is 0
    check "export_${ending}_has_all" says "^\([0-9]*\) of \1 tensors are the same$"
done
run export run kernel.npy dense/kernel
check export_npy code_is 0
check export_npy_is_numpys python3 -c '
data = open("kernel.npy", "rb").read()
assert data[:8] == b"\x93NUMPY\x01\x00" and len(data) == 128 + 31360, len(data)
assert eval(data[10:128]) == {"descr": "<f4", "fortran_order": False, "shape": (784, 10)}'
check export_npz_is_a_zip python3 -c '
import zipfile
z = zipfile.ZipFile("all.npz")
assert z.testzip() is None and "dense/kernel.npy" in z.namelist()
assert z.read("dense/kernel.npy") == open("kernel.npy", "rb").read()'
wrong export_over_a_file 'kernel.npy is there already (--force replaces it)' export run kernel.npy dense/bias
run export run kernel.npy dense/bias --force
check export_by_force code_is 0
wrong export_of_many_to_npy 'an .npy file holds one tensor, these are' export run many.npy
wrong export_to_what 'the ending of "x.pt" does not tell the format' export run x.pt
wrong export_to_nowhere 'cannot create none/x.npz' export run none/x.npz
check export_leaves_nothing_behind test -z "$(ls | grep -E 'many|tmp')"

# --- weights and models by `trainyard export` ---
for ending in safetensors npz; do
    "$build/trainyard" export run "weights.$ending" >out 2>err
    check "weights_as_$ending" says '2 weights, those of the optimizer left out'
    run diff run "weights.$ending" dense/kernel dense/bias
    check "weights_as_${ending}_are_the_same" says '^2 of 2 tensors are the same$'
done
"$build/trainyard" export run model.onnx >out 2>err
check model_as_onnx says 'opset 17, [0-9]* bytes'
check model_as_onnx_has_its_weights python3 -c '
import struct, zipfile
model, arrays = open("model.onnx", "rb").read(), zipfile.ZipFile("weights.npz")
for name in ("dense/kernel", "dense/bias"):
    assert arrays.read(name + ".npy")[128:] in model, name
for word in (b"MatMul", b"images", b"predictions", b"batch", b"trainyard"):
    assert word in model, word'
"$build/trainyard" export run model.onnx >out 2>err
check onnx_is_not_written_over complains 'model.onnx is there already'

# --- diff ---
run diff run/checkpoints/model.ckpt-10 run/checkpoints/model.ckpt-20
check diff_of_two_steps code_is 1
check diff_tells_how_much says '  dense/kernel: [0-9]* of 7840 elements differ, at most by [0-9.e-]* ([0-9.e-]* of the larger); [0-9]* have the same bits'
run diff run/checkpoints/model.ckpt-10 run/checkpoints/model.ckpt-20 dense/kernel --tolerance 100
check diff_within_a_tolerance code_is 0
run diff run all.npz dense/bias --json
check diff_json python3 -c '
import json
diff = json.load(open("out"))
assert diff == {"different": False, "tensors": [{"name": "dense/bias", "verdict": "same", "elements": 10, "same_bits": 10,
                "differ": 0, "max_absolute": 0, "max_relative": 0}]}, diff'
run export run bias.npz dense/bias
run diff run bias.npz
check diff_with_less code_is 1
check diff_names_what_is_missing says '  dense/kernel: only in run'
wrong diff_of_one 'which two checkpoints?' diff run
wrong diff_with_no_number '--tolerance is "few", allowed: a number from 0' diff run run --tolerance few
wrong diff_with_nothing 'there is no checkpoint' diff run nowhere

# --- damage ---
head -c 300 all.safetensors >cut.safetensors
wrong cut_safetensors 'cut.safetensors: at byte 0: a header of [0-9]* bytes in a file of 300' show cut.safetensors
head -c 2000 all.npz >cut.npz
wrong cut_npz 'cut.npz' show cut.npz
head -c 1000 kernel.npy | head -c 150 >cut.npy
wrong cut_npy 'cut.npy: ends at byte 150' show cut.npy
cp run/checkpoints/model.ckpt-20.* .
printf 'x' | dd of=model.ckpt-20.data-00000-of-00001 bs=1 seek=100 conv=notrunc 2>/dev/null
run show model.ckpt-20
check flipped_bytes_are_damage code_is 2
check flipped_bytes_are_told says 'cannot be read: DATA_LOSS: .* its checksum is'
check flipped_bytes_spare_the_others says '; 1 cannot be read$'
wrong flipped_bytes_are_not_exported 'its checksum is' export model.ckpt-20 out.npz
check nothing_is_left_of_it test ! -e out.npz

if [ ! -d "$shared" ]; then
    echo "skip recorded: no recorded files beside this clone ($shared)"
    exit $failed
fi
for index in "$shared"/*/*.index; do
    name=$(basename "$(dirname "$index")")
    case $name in damaged-*) continue ;; esac
    run show "$index"
    check "recorded_$name" code_is 0
done
run show "$shared/keras-mlp-adam/ckpt-3"
check recorded_objects_have_names says '^optimizer/_trainable_variables/0/.ATTRIBUTES/VARIABLE_VALUE .*  = sequential/dense/kernel$'
run show "$shared/v1-table/old.ckpt"
check recorded_v1-table code_is 0
for name in cnn lstm transformer; do
    model=$shared/../keras/models/$name
    run diff "$model/model.keras" "$model/model.weights.h5"
    check "recorded_keras_$name" code_is 0
    check "recorded_keras_${name}_has_weights" says '^\([1-9][0-9]*\) of \1 tensors are the same$'
done
damaged() { # damaged NAME PATTERN: in the output or on stderr, and the code of an error
    run show "$shared/damaged-$1/m"
    cat err >>out
    check "damaged_$1" says "$2"
    check "damaged_$1_is_an_error" code_is 2
}
damaged data-flipped-bit 'DATA_LOSS: .* its checksum is'
damaged data-missing 'NOT_FOUND: .*data-00000-of-00001: No such file'
damaged data-truncated 'OUT_OF_RANGE: .*Read less bytes than requested'
damaged index-bad-magic 'm.index is damaged: not an sstable'
damaged index-empty 'm.index is damaged: file is too short'
damaged index-flipped-bit 'm.index is damaged: block checksum mismatch'
damaged index-missing 'there is no checkpoint'
damaged index-truncated 'm.index is damaged'
exit $failed
