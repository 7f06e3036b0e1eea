#!/bin/bash
# ops_fuzz.sh PYTHON BUILD SEED COUNT [NAME,NAME [GENERATOR]]: random graphs, ours against TensorFlow's answers.
#
# PYTHON has TensorFlow.  Each graph runs as it is and optimised.  Prints what differs, a line for each
# family and the total; exits 1 if anything differs.  Names are families, rows or ops of ops/; with
# programs_generate.py as GENERATOR, which draws programs of several runs, families of programs/.
# KEEP=FOLDER keeps the cases there if anything differs; to DRAWN=FILE go the ops that they have.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=$1 build=$2 seed=${3:-1} count=${4:-1000} only=${5:-} generator=${6:-ops_generate.py}
label=${generator%%_*}
"$python" -c 'import tensorflow' 2>/dev/null || { echo "skip $label: $python has no TensorFlow"; exit 0; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$python" -W ignore "$here/$generator" "$folder" --seed "$seed" --count "$count" --only "$only" \
    2> "$folder/stderr" || { tail -n 20 "$folder/stderr"; exit 1; }
grep -a '^not built' "$folder/stderr"
[ -n "${DRAWN:-}" ] && sed -n 's/^ops: //p' "$folder/stderr" | tr ' ' '\n' >> "$DRAWN"
graphs=0 failed=0
for file in "$folder"/*.tfrecord; do
    family=$(basename "$file" .tfrecord)
    for how in "" "--no-optimise"; do
        timeout 1800 "$build/tf-cases" --threads 1 $how "$file" > "$folder/out" 2> "$folder/stderr"
        read -r good _ bad _ skipped _ < <(tail -n 1 "$folder/out" | tr -d ',')
        if [ "${bad:-1}-${skipped:-1}" = 0-0 ]; then
            echo "ok $label/$family${how:+ $how}: $good graphs"
        else
            echo "FAIL $label/$family${how:+ $how}: ${bad:-some} differ, ${skipped:-some} cannot run, of $((${good:-0} + ${bad:-0} + ${skipped:-0}))"
            grep -a -v '^[0-9]* passed' "$folder/out" | head -n 100 | sed 's/^/  /'
            failed=1
        fi
    done
    graphs=$((graphs + ${good:-0} + ${bad:-0} + ${skipped:-0}))
done
echo "$graphs graphs, seed $seed: $([ $failed = 0 ] && echo all as TensorFlow || echo some differ)"
[ $failed = 1 ] && [ -n "${KEEP:-}" ] && mkdir -p "$KEEP" && cp "$folder"/*.tfrecord "$KEEP"
exit $failed
