#!/bin/bash
# ops_fuzz.sh PYTHON BUILD SEED COUNT [OP,OP]: random graphs of one operation each, ours against
# TensorFlow's answers.  PYTHON has TensorFlow; prints what differs and the totals.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=$1 build=$2 seed=${3:-1} count=${4:-1000} only=${5:-}
"$python" -c 'import tensorflow' 2>/dev/null || { echo "skip  ops_fuzz: $python has no TensorFlow"; exit 0; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$python" "$here/ops_generate.py" "$folder/cases.tfrecord" --seed "$seed" --count "$count" --only "$only" \
    2> "$folder/stderr" || { cat "$folder/stderr"; exit 1; }
grep '^not built' "$folder/stderr"
timeout 600 "$build/tf-cases" "$folder/cases.tfrecord"
