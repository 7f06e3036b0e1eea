# together.sh - for tests of one model over several tasks that are started here: specs, runs, and what came of them.
cd "$work" || exit 1
"$trainyard" dataset make digits "$work/digits" >/dev/null
# spec NAME BATCH STEPS TASKS : smooth, so that sums that round otherwise stay near each other
spec() {
    cat >"$1.json" <<END
{"name": "$1", "seed": 5, "model": {"layers": [
   {"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh", "kernel_regularizer": {"name": "L2", "l2": 0.001}}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": $2}, "checkpoint": {"every_steps": 20},
 "train": {"steps": $3, "optimizer": {"name": "SGD", "learning_rate": 0.05, "momentum": 0.9}}, "tasks": $4}
END
}
# run_spec SPEC OUT [OPTION...] : its last line
run_spec() { local name=$1 out=$2; shift 2; timeout 120 "$trainyard" train "$name.json" --data digits --out "$out" --threads 1 --json "$@" 2>"$out.log" | tail -n 1; }
loss() { field "$1" metrics loss; }
near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 2e-5 * abs(b))' "$1" "$2" || { echo "  found $1, wanted $2"; false; }; }
same_bits() { same_checkpoint "$1/checkpoints" "$2/checkpoints" "$3"; }
strategy() { spec "$1" 16 "$4" "$3"; sed -i "s/\"tasks\"/\"strategy\": $2, \"tasks\"/" "$1.json"; }
# one_of SPEC ROLE INDEX : the process that has this task of it
one_of() {
    local p
    for p in $(pgrep -f "trainyard-task train $1.json"); do
        tr '\0' '\n' <"/proc/$p/environ" | grep -q "^TF_CONFIG=.*\"type\": \"$2\", \"index\": $3" && echo "$p" && return
    done
    false
}
