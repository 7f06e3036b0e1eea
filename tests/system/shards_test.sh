#!/bin/bash
# shards_test.sh - a checkpoint that several tasks write, each its own variables: one for TensorFlow and for everything
# here, taken up by other numbers of tasks; published with all of its shards or not at all, whoever is killed in it.
# Faults of docs/reliability.md: F13.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
"$trainyard" dataset make digits "$work/digits" --train 1000 --test 200 >/dev/null
# spec NAME TASKS : momentum, so that there is more than the weights
spec() {
    cat >"$1.json" <<END
{"name": "$1", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh"}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": 16}, "checkpoint": {"every_steps": 20},
 "train": {"steps": 60, "optimizer": {"name": "SGD", "learning_rate": 0.05, "momentum": 0.9}}, ${3:-} "tasks": $2}
END
}
train() { local name=$1 out=$2; shift 2; timeout 120 "$trainyard" train "$name.json" --data digits --out "$out" --threads 1 --json "$@" 2>"$out.log" | tail -n 1; }
loss() { field "$1" metrics loss; }
files() { (cd "$1/checkpoints" && ls "model.ckpt-$2".*) | tr '\n' ' '; }
all_of() { # STEP SHARDS
    for ((i = 0; i < $2; i++)); do printf 'model.ckpt-%d.data-%05d-of-%05d ' "$1" $i "$2"; done
    echo "model.ckpt-$1.index model.ckpt-$1.manifest "
}

# --- other numbers of tasks ---
spec two '{"ps": 2, "worker": 2}'
spec three '{"ps": 3, "worker": 2}'
spec none '{"worker": 2}'
spec parts '{"ps": 2, "worker": 2}' '"strategy": {"partitioner": {"name": "fixed_size_partitioner", "num_shards": 3}},'
whole=$(loss "$(train two whole)")
check a_shard_for_each_server_and_one_for_the_rest same "$(files whole 60)" "$(all_of 60 3)"
from=two
for to in three none parts two; do # each from what the one before left, as long as there are steps
    mkdir -p "$to/checkpoints"
    if [ $from = two ]; then train two three --steps 20 >/dev/null; else cp -r $from/checkpoints $to/; fi
    case $to in three) steps=30 ;; none) steps=40 ;; parts) steps=50 ;; *) steps=60 ;; esac
    last=$(train $to $to --steps $steps --resume)
    case $to in none) shards=1 ;; three) shards=4 ;; *) shards=3 ;; esac
    check "${from}_to_${to}" same "$(files $to $steps)" "$(all_of $steps $shards)"
    from=$to
done
check and_it_learned_the_same same "$(loss "$last")" "$whole"
check to_the_same_bits same_checkpoint whole/checkpoints two/checkpoints 60
check one_task_evaluates_it has "$("$trainyard" evaluate whole --data digits)" "after step 60"
check every_tensor_is_there has "$("$trainyard" checkpoint show whole/checkpoints/model.ckpt-60)" "dense/kernel/Momentum"

# --- killed while it writes ---
# group OUT FAILPOINTS WHO : two servers and a worker, of which WHO (ps0, ps1, chief) dies at the failpoints
spec group '{"ps": 2, "worker": 1}'
group() {
    local chief ps0 ps1 config
    chief=$(free_port) ps0=$(free_port) ps1=$(free_port)
    config='{"cluster": {"worker": ["127.0.0.1:'$chief'"], "ps": ["127.0.0.1:'$ps0'", "127.0.0.1:'$ps1'"]}, "task": {"type": '
    for i in 0 1; do
        env "TF_CONFIG=$config\"ps\", \"index\": $i}}" ${3:+"TRAINYARD_FAILPOINTS=$([ "$3" = ps$i ] && echo "$2")"} "$build/trainyard-task" train group.json --threads 1 >>"$1.log" 2>&1 &
        pids+=("$!")
    done
    env "TF_CONFIG=$config\"worker\", \"index\": 0}}" ${3:+"TRAINYARD_FAILPOINTS=$([ "$3" = chief ] && echo "$2")"} \
        timeout 60 "$build/trainyard-task" train group.json --data digits --out "$1" --threads 1 --resume >>"$1.log" 2>&1
}
newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' "$1/checkpoints/checkpoint"; }
check undisturbed group calm
for victim in ps0 ps1 chief; do
    # A server writes one file by that way for each checkpoint, its index; the chief first a file to be looked for, then three.
    case $victim in chief) points="task.ckpt_data=kill@2" ;; *) points="task.file_before_rename=kill@2" ;; esac
    group "$victim" "$points" "$victim"
    check "${victim}_is_killed" test $? -ne 0
    check "${victim}_nothing_but_the_one_before" same "$(newest "$victim")" 20
    check "${victim}_which_is_whole" same "$(files "$victim" 20)" "$(all_of 20 3)"
    check "${victim}_goes_on" group "$victim"
    check "${victim}_to_the_same_bits" same_checkpoint calm/checkpoints "$victim/checkpoints" 60
    check "${victim}_leaves_nothing" same "$(find "$victim/checkpoints" -name '*part-*' -o -name '*tmp*' -o -name '.seen*')" ""
done

# --- a task with a disk of its own ---
if unshare --mount true 2>/dev/null; then
    mkdir apart
    chief=$(free_port) ps=$(free_port)
    spec far '{"ps": 1, "worker": 1}'
    config='{"cluster": {"worker": ["127.0.0.1:'$chief'"], "ps": ["127.0.0.1:'$ps'"]}, "task": {"type": '
    TF_CONFIG="$config\"ps\", \"index\": 0}}" unshare --mount sh -c 'mount -t tmpfs none "$0/apart" && exec "$1" train far.json --threads 1' "$work" "$build/trainyard-task" >far.log 2>&1 &
    pids+=("$!")
    check apart_it_trains env "TF_CONFIG=$config\"worker\", \"index\": 0}}" timeout 60 "$build/trainyard-task" train far.json --data digits --out apart/far --threads 1 >>far.log 2>&1
    check then_the_first_worker_writes_all same "$(files apart/far 60)" "$(all_of 60 1)"
else
    echo "skip apart: no mount namespaces"
fi
