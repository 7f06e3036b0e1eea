#!/bin/bash
# ops_fuzz.sh PYTHON BUILD SEED COUNT [NAME,NAME]: random graphs, ours against TensorFlow's answers.
#
# PYTHON has TensorFlow.  Each graph runs as it is and optimised.  Prints what differs, a line for each
# family and the totals; exits 1 if anything differs.  Names are families, rows or ops of ops/.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=$1 build=$2 seed=${3:-1} count=${4:-1000} only=${5:-}
"$python" -c 'import tensorflow' 2>/dev/null || { echo "skip ops_fuzz: $python has no TensorFlow"; exit 0; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$python" "$here/ops_generate.py" "$folder" --seed "$seed" --count "$count" --only "$only" \
    2> "$folder/stderr" || { cat "$folder/stderr"; exit 1; }
grep '^not built' "$folder/stderr"
graphs=0 failed=0
for file in "$folder"/*.tfrecord; do
    for how in "" "--no-optimise"; do
        timeout 900 "$build/tf-cases" --threads 1 $how "$file" > "$folder/out" 2> "$folder/stderr"
        grep -av '^[0-9]* passed' "$folder/out"
        read -r good _ bad _ skipped _ < <(tail -n 1 "$folder/out" | tr -d ',')
        echo "$(basename "$file" .tfrecord)${how:+ $how}: $(tail -n 1 "$folder/out")"
        [ "${bad:-1}-${skipped:-1}" = 0-0 ] || failed=1
        [ -n "$how" ] || graphs=$((graphs + good + bad + skipped))
    done
done
echo "$graphs graphs, seed $seed: $([ $failed = 0 ] && echo as TensorFlow || echo some differ)"
exit $failed
