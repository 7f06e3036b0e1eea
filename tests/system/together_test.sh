#!/bin/bash
# together_test.sh - one model over several tasks: what one task with the whole batch learns, to the rounding of sums,
# and always with the same bits; and specs and clusters that cannot be.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F46.
. "$(dirname "$0")/lib.sh"

. "$(dirname "$0")/together.sh"

# --- how long they take to find each other: some tasks are not there yet when others look for them ---
spec quick 16 20 '{"ps": 1, "worker": 2}'
least=60000
for i in 1 2 3; do
    since=$(date +%s%3N)
    run_spec quick "quick$i" >/dev/null
    took=$(($(date +%s%3N) - since))
    [ $took -lt $least ] && least=$took
done
check tasks_find_each_other_at_once test $least -lt 4000

# --- exactness ---
spec alone 48 40 '{"worker": 1}'
spec served 16 40 '{"ps": 2, "worker": 3}'
spec equals 24 40 '{"worker": 2}'
alone=$(run_spec alone a1)
served=$(run_spec served s1)
check three_workers_and_two_ps near "$(loss "$served")" "$(loss "$alone")"
check two_workers_alone near "$(loss "$(run_spec equals e1)")" "$(loss "$alone")"
run_spec served s2 --steps 20 >/dev/null
check resumed near "$(loss "$(run_spec served s2 --resume)")" "$(loss "$served")"
check resumed_bit_for_bit same_bits s1 s2 40
check evaluates_in_one_task has "$("$trainyard" evaluate s1 --data digits)" "after step 40"
check both_ps_have_variables test "$(strings s1/events.out.tfevents.* | grep -o '/job:ps/replica:0/task:[01]' | sort -u | wc -l)" = 2

# --- workers that do not wait for each other, or are not waited for; gradients in 16 bits ---
ends_below() { python3 -c 'import sys; sys.exit(float(sys.argv[1]) > float(sys.argv[2]))' "$(field "$1" metrics val_loss)" "$2" || { echo "  found $1"; false; }; }
strategy apart '{"mode": "async"}' '{"ps": 2, "worker": 3}' 120
check they_learn_apart ends_below "$(run_spec apart p1)" 1.6
check apart_it_goes_on ends_below "$(run_spec apart p1 --steps 240 --resume)" 1.4
strategy some '{"backup_workers": 1}' '{"ps": 1, "worker": 3}' 120
check they_learn_from_those_that_come_first ends_below "$(run_spec some b1)" 1.6
check late_ones_are_counted has "$(strings b1/events.out.tfevents.* | sort -u)" late_batches
strategy slow '{"backup_workers": 1}' '{"ps": 1, "worker": 3}' 1000000
{ run_spec slow b2 >slow.end; } &
wait_for 20 test -e b2/checkpoints/checkpoint
slow=$(for p in $(pgrep -f "trainyard-task train slow.json"); do tr '\0' '\n' <"/proc/$p/environ" | grep -q '^TF_CONFIG=.*"type": "worker", "index": 2' && echo "$p"; done)
kill -STOP "$slow"
newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' b2/checkpoints/checkpoint; }
from=$(newest)
goes_on() { [ "$(newest)" -gt $((from + 60)) ]; }
check one_that_stands_still_is_not_waited_for wait_for 12 goes_on
kill -CONT "$slow"
from=$(newest)
check it_comes_back wait_for 20 goes_on
kill -TERM "$(pgrep -f "^[^ ]*trainyard-task train slow.json --data" | head -n 1)"
wait $!
check it_ends_when_told has "$(cat slow.end)" "--resume"
strategy narrow '{"compress": "bfloat16"}' '{"ps": 2, "worker": 3}' 40
narrow=$(run_spec narrow n1)
check narrow_gradients_learn_much_the_same python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not 0 < abs(a - b) < 0.01 * b)' "$(loss "$narrow")" "$(loss "$alone")"
run_spec narrow n2 >/dev/null
check and_always_the_same same_bits n1 n2 40

strategy ring '{"mode": "allreduce"}' '{"worker": 3}' 40
ring=$(run_spec ring r1)
check workers_among_themselves near "$(loss "$ring")" "$(loss "$alone")"
run_spec ring r2 --steps 20 >/dev/null
check among_themselves_resumed near "$(loss "$(run_spec ring r2 --resume)")" "$(loss "$ring")"
check among_themselves_bit_for_bit same_bits r1 r2 40
check what_the_first_has_is_saved has "$("$trainyard" evaluate r1 --data digits)" "after step 40"

strategy stages '{"mode": "pipeline"}' '{"worker": 3}' 40
sed -i 's/"batch_size": 16/"batch_size": 48/' stages.json
check a_pipeline near "$(loss "$(run_spec stages g1)")" "$(loss "$alone")"
run_spec stages g2 --steps 20 >/dev/null
run_spec stages g2 --resume >/dev/null
check pipeline_bit_for_bit same_bits g1 g2 40
check stages_evaluate_in_one_task has "$("$trainyard" evaluate g1 --data digits)" "after step 40"
spec pinned 48 40 '{"worker": 2}, "placement": {"pins": {"dense_1": "/job:worker/task:1"}}'
check pinned_layers near "$(loss "$(run_spec pinned i1)")" "$(loss "$alone")"

# --- wrong ---
spec long 16 1000000 '{"ps": 1, "worker": 2}'
sed 's/"ps": 1/"chief": 1/' long.json >chief.json
check chief_is_refused has "$(run_spec chief c1)" "/tasks/chief"
strategy pipe '{"mode": "pipeline"}' '{"ps": 1, "worker": 2}' 10
check pipeline_has_no_ps has "$(run_spec pipe c2)" "/tasks/ps"
strategy ring '{"mode": "allreduce"}' '{"ps": 1, "worker": 2}' 10
check allreduce_has_no_ps has "$(run_spec ring c2)" "/tasks/ps"
strategy all '{"backup_workers": 2}' '{"worker": 2}' 10
check all_in_backup_is_refused has "$(run_spec all c3)" "/strategy/backup_workers"
far=$(TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1", "10.9.9.9:2"], "ps": ["127.0.0.1:3"]}, "task": {"type": "worker", "index": 0}}' run_spec long far)
check another_machine_needs_a_certificate has "$far" "10.9.9.9"
few=$(TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}' run_spec long few)
check other_numbers_are_refused has "$few" "the spec has 2"
