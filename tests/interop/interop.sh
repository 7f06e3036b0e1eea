#!/bin/bash
# interop.sh - files of TensorFlow read by us, ours read by TensorFlow and TensorBoard.
#
# $BUILD holds the programs; recorded files and strict checkers are taken from $TRAINYARD_SHARED or
# ../shared when they are there.  TensorFlow is installed into $BUILD/interop-venv once; whatever is
# missing is left out with one line.
set -u
BUILD=${BUILD:-build}
shared=${TRAINYARD_SHARED:-../shared}/tf-files
venv=$BUILD/interop-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
tiers=()

# check NAME COMMAND... - one line for a command's answer
check() {
    local name=$1
    shift
    if answer=$("$@" 2>&1); then
        echo "ok $name"
    else
        echo "FAIL $name: $(tail -n 1 <<<"$answer")"
        failed=1
    fi
}

if [ -d "$shared" ]; then
    "$BUILD/tf-read" "$shared" || failed=1
else
    echo "skip interop/read: no recorded files of TensorFlow here"
fi

"$BUILD/tf-write" "$work" || exit 1
cat >"$work/spec.json" <<'SPEC'
{"model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
 "train": {"steps": 20, "eval_every": 10}, "checkpoint": {"every_steps": 10}, "trace": {"every_steps": 5}}
SPEC
check interop/train bash -c "'$BUILD/trainyard' dataset make digits '$work/digits' --train 500 --test 100 &&
    '$BUILD/trainyard-task' train '$work/spec.json' --data '$work/digits' --out '$work/trained'"
sed 's/"train"/"tasks": {"ps": 2, "worker": 1}, "strategy": {"partitioner": {"name": "fixed_size_partitioner", "num_shards": 3}}, "train"/' \
    "$work/spec.json" >"$work/parts.json"
check interop/train-in-parts "$BUILD/trainyard-task" train "$work/parts.json" --data "$work/digits" --out "$work/parts"

tests/interop/rest.sh "$BUILD" || failed=1

# install - TensorFlow into the folder of its own; prints why when it cannot
install() {
    command -v python3 >/dev/null || { echo "no python3"; return 1; }
    [ "$venv/stamp" -nt tests/interop/requirements.txt ] && return 0
    python3 -m venv "$venv" >"$work/log" 2>&1 || { echo "python3 -m venv does not work"; return 1; }
    "$venv/bin/pip" install -q --disable-pip-version-check -r tests/interop/requirements.txt >"$work/log" 2>&1 ||
        { echo "TensorFlow cannot be installed: $(tail -n 1 "$work/log")"; return 1; }
    touch "$venv/stamp"
}
if ! why=$(install); then
    echo "skip interop/tensorflow: $why"
    exit $failed
fi
"$venv/bin/python" tests/interop/read_ours.py "$work" 2>"$work/log" || { failed=1; tail -n 5 "$work/log"; }
check tensorflow/signatures "$venv/bin/python" tests/interop/signatures.py "$BUILD/tf-cases"
check tensorflow/kernel-types bash -c "'$BUILD/kernel-types' >'$work/types' &&
    '$venv/bin/python' -W ignore tests/interop/kernel_types.py '$work/types'"
check tensorflow/data-cases bash -c "'$venv/bin/python' -W ignore tests/interop/data_cases.py '$work/data.tfrecord' &&
    '$BUILD/tf-cases' '$work/data.tfrecord'"
check keras/models bash -c "'$venv/bin/python' -W ignore tests/interop/keras_models.py '$work/models' && mkdir '$work/keras-saved' &&
    '$BUILD/keras-vectors' --save '$work/keras-saved' '$work'/models/*"
check keras/load "$venv/bin/python" -W ignore tests/interop/keras_load.py "$work/keras-saved" "$work"/models/*
check tensorflow/saved-models "$venv/bin/python" -W ignore tests/interop/saved_models.py "$BUILD/trainyard-task" "$work/saved"
# Programs of TensorFlow's clients; those that take longer, and clusters of both kinds: make prove.
for name in session_basics error_codes sharing control_flow queues saver summaries tracing input_pipelines \
    monitored_session placement client_more; do
    check "clients/$name" tests/interop/clients.sh "$venv/bin/python" "$BUILD" "$name"
done
check tensorflow/collectives "$venv/bin/python" -W ignore tests/interop/collectives.py "$BUILD" oo ot too
mkdir -p "$work/arrays" "$work/onnx"
tests/interop/scripts.sh "$venv/bin/python" || failed=1
tests/interop/tunnel.sh "$venv/bin/python" || failed=1
check numpy/arrays "$venv/bin/python" -W ignore tests/interop/arrays.py "$BUILD/trainyard-task" "$work/arrays"
check onnx/models "$venv/bin/python" -W ignore tests/interop/onnx_models.py "$BUILD/onnx-write" "$BUILD/trainyard-task" "$work/onnx" "$shared/keras/models"
tests/interop/ops_fuzz.sh "$venv/bin/python" "$BUILD" 1 500 || failed=1
DRAWN=$work/drawn tests/interop/ops_fuzz.sh "$venv/bin/python" "$BUILD" 1 150 "" programs_generate.py || failed=1
"$BUILD/tf-cases" --ops >"$work/ops"
spec=${TRAINYARD_SHARED:-../shared}/spec/tensorflow.md
[ -e "$spec" ] && tiers=(--spec "$spec")
check tensorflow/ops-covered "$venv/bin/python" -W ignore tests/interop/ops_generate.py \
    --cover "$work/ops" --drawn "$work/drawn" "${tiers[@]}"

strict=$shared/check
if [ ! -d "$strict" ]; then
    echo "skip interop/strict: the strict checkers are not here"
    exit $failed
fi
for name in types big slices; do
    check "strict/$name" "$venv/bin/python" "$strict/check_checkpoint.py" "$work/$name"
done
check strict/published "$venv/bin/python" "$strict/check_checkpoint.py" "$work/published/model.ckpt-300" --latest --expect "$work/published.json"
check strict/trained-checkpoint "$venv/bin/python" "$strict/check_checkpoint.py" "$work/trained/checkpoints/model.ckpt-20" --latest
check strict/checkpoint-in-shards "$venv/bin/python" "$strict/check_checkpoint.py" "$work/parts/checkpoints/model.ckpt-20" --latest
for name in plain gzip zlib; do
    check "strict/$name.tfrecord" "$venv/bin/python" "$strict/check_tfrecord.py" "$work/$name.tfrecord" --expect "$work/$name.tfrecord.json"
done
for name in scalars restart; do
    check "strict/$name" "$venv/bin/python" "$strict/check_events.py" "$work/$name" --expect "$work/$name.json"
    check "strict/$name-tensorboard" "$venv/bin/python" "$strict/check_tensorboard.py" "$work/$name"
done
check interop/export "$BUILD/trainyard-task" export "$work/trained" "$work/exported" --format saved_model
check strict/exported "$venv/bin/python" "$strict/check_savedmodel.py" "$work/exported"
check strict/trained-events "$venv/bin/python" "$strict/check_events.py" "$work/trained"
check strict/trained-tensorboard "$venv/bin/python" "$strict/check_tensorboard.py" "$work/trained"
exit $failed
