#!/bin/bash
# elastic_test.sh - workers that are killed while the others go on: what is learned is, to the bit, what all would have learned,
# over parameter servers and around rings.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F46.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/together.sh"

newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' "$1/checkpoints/checkpoint"; }
for how in ps ring; do
    case $how in
        ps) strategy bend '{"elastic": true}' '{"ps": 1, "worker": 3}' 1000000; strategy steady '{}' '{"ps": 1, "worker": 3}' 1000000 ;;
        ring) strategy bend '{"mode": "allreduce", "elastic": true}' '{"worker": 3}' 1000000; strategy steady '{"mode": "allreduce"}' '{"worker": 3}' 1000000 ;;
    esac
    { timeout 120 "$trainyard" train bend.json --data digits --out "$how.bend" --threads 1 >bend.end 2>&1; } &
    wait_for 20 test -e "$how.bend/checkpoints/checkpoint"
    for victim in 1 2; do
        kill -KILL "$(one_of bend worker $victim)"
        check "elastic_${how}_worker_${victim}_comes_back" wait_for 40 grep -q "worker $victim is back" bend.end
    done
    kill -TERM "$(pgrep -f "^[^ ]*trainyard-task train bend.json --data" | head -n 1)"
    wait $!
    steps=$(newest "$how.bend")
    run_spec steady "$how.steady" --steps "$steps" >/dev/null
    check "${how}_elastic_same_bits_after_kills" same_bits "$how.steady" "$how.bend" "$steps"
done

# Of a ring nothing is lost with a worker: the others go on for good, as long as there are enough.
strategy steady '{"mode": "allreduce"}' '{"worker": 3}' 600
run_spec steady three >/dev/null
for least in 1 3; do
    strategy bend "{\"mode\": \"allreduce\", \"elastic\": {\"min_workers\": $least}}" '{"worker": 3}' 600
    sed -i 's/"seed"/"restart": {"max": 0}, "seed"/' bend.json
    { run_spec bend "never.$least" >bend.end; } &
    wait_for 20 test -e "never.$least/checkpoints/checkpoint"
    kill -KILL "$(one_of bend worker 2)"
    wait $!
    case $least in
        1) check ring_goes_on_without_it same_bits three never.1 600 ;;
        3) check ring_of_too_few_ends has "$(cat bend.end)" "2 of 3 workers are there, needed: 3" ;;
    esac
done
