#!/bin/bash
# far_test.sh - one model over nodes with networks of their own: what they learn, who is let in, a node that is cut off
# from all others, and comes back.
#
# It looks for tasks by their command lines:
# alone
# Faults of docs/reliability.md: F17 F19.
. "$(dirname "$0")/far.sh"
serve_far
node a 11
node b 12
node c 13
node d 14
check four_nodes wait_for 20 joined 4
stay() { for _ in $(seq 30); do joined 4 || return 1; sleep 0.05; done; }
check nobody_is_suspected stay

near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 2e-5 * abs(b))' "$1" "$2" || { echo "  found $1, wanted $2"; false; }; }
loss() { field "$(api GET "/api/v1/jobs/$1/metrics?names=loss")" series 0 values -1; }
processes() { # EPOCH : the tasks of an attempt
    local p
    for p in $(pgrep -f "$build/trainyard-task train spec.json"); do
        tr '\0' '\n' <"/proc/$p/environ" | grep -qx "TRAINYARD_EPOCH=$1" && echo "$p"
    done
}

# --- three nodes ---
spec three 16 60 '{"ps": 1, "worker": 2}'
"$trainyard" submit three.json >/dev/null
check it_ends wait_for 60 is_final three
check it_succeeds is_state three succeeded
spec whole 32 60 '{"worker": 1}'
check it_learns_what_one_task_learns near "$(loss three)" "$(field "$(alone whole)" metrics loss)"
check its_tasks_were_on_three_nodes same "$(tasks_of three | awk '{print $2}' | sort -u | wc -l)" 3

# --- who else knocks ---
spec long 16 4000 '{"ps": 1, "worker": 2}'
"$trainyard" submit long.json >/dev/null
check it_runs wait_for 30 is_state long running
number=$(field "$(api GET /api/v1/jobs/long)" number)
check it_keeps_a_checkpoint wait_for 30 test -e "$dir/jobs/$number/checkpoints/checkpoint"
epoch=$(variable "$(pgrep -f "$build/trainyard-task train spec.json" | head -n 1)" TRAINYARD_EPOCH)
first=$(processes "$epoch" | head -n 1)
address=$(python3 -c 'import json, sys; c = json.loads(sys.argv[1]); print(c["cluster"]["ps"][0])' "$(variable "$first" TF_CONFIG)")
check addresses_are_the_nodes has "$address" 10.77.0.1
tasks_file=$(readlink "/proc/$first/cwd")/tasks.pem
check one_of_the_tasks_may_speak same "$(knock "$address" "$tasks_file")" speaks
check in_the_clear_nobody_may same "$(knock "$address")" refuses
check without_a_certificate_neither same "$(knock "$address" "")" refuses
check nor_with_another_one same "$(knock "$address" ours.pem ours.key)" refuses
check the_key_is_its_owners_alone same "$(stat -c %a "$tasks_file")" 400

# --- cut off ---
victim=$(tasks_of long | awk '$1 == "worker/1" {print $2}')
ip link set "to-$victim" down
is_attempt() { [ "$(attempt_of long)" = "$1" ]; }
check tried_again wait_for 60 is_attempt 2
check on_other_nodes wait_for 60 is_state long running
cut=$(processes "$epoch")
ip link set "to-$victim" up
check what_was_cut_off_is_ended wait_for 60 sh -c "! pgrep -f '$build/trainyard-task train spec.json' | xargs -I{} cat /proc/{}/environ | tr '\\0' '\\n' | grep -qx TRAINYARD_EPOCH=$epoch"
check it_had_been_there test -n "$cut"
check all_nodes_are_back wait_for 30 joined 4
check it_ends_again wait_for 120 is_final long
check it_succeeds_again is_state long succeeded
spec quiet 32 4000 '{"worker": 1}'
check as_undisturbed near "$(loss long)" "$(field "$(alone quiet)" metrics loss)"
