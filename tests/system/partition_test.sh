#!/bin/bash
# partition_test.sh - a group that is cut off from its server alone trains on, and yet never publishes again once another
# attempt of its job has begun, nor is it let in there; with WAYS=all tasks that are cut off from each other as well, one way and both.
# Faults of docs/reliability.md: F17 F19.
. "$(dirname "$0")/far.sh"
serve_far
declare -A number=([a]=11 [b]=12 [c]=13 [d]=14 [e]=15 [f]=16)
for name in a b c d e f; do node $name "${number[$name]}"; done
check six_nodes wait_for 20 joined 6

# What is sent to a wrong machine is lost, and nobody is told: FROM, TO are nodes, or "yard" for the server's.
at() { if [ "$1" = yard ]; then shift; "$@"; else inside "$@"; fi; }
lose() { at "$1" ip neigh replace "$(address_of "$2")" lladdr 02:00:00:00:00:01 dev "$(port_of "$1")" nud permanent; } # FROM TO
heal() { at "$1" ip neigh del "$(address_of "$2")" dev "$(port_of "$1")"; }
address_of() { if [ "$1" = yard ]; then echo 10.77.0.1; else echo "10.77.0.${number[$1]}"; fi; }
port_of() { if [ "$1" = yard ]; then echo yard; else echo eth0; fi; }
is_attempt() { [ "$(attempt_of "$1")" = "$2" ]; }
node_of() { tasks_of "$1" | awk -v task="$2" '$1 == task {print $2}'; } # JOB TASK
folder_of() { echo "$work/$(node_of "$1" "$2")/attempts"/*-"${2/\//-}"; } # of an attempt's task on its node
pid_of() { field "$(cat "$1/shim.json")" task_pid; }
ps_address() { python3 -c 'import json, sys; print(json.loads(sys.argv[1])["cluster"]["ps"][0])' "$(variable "$(pid_of "$1")" TF_CONFIG)"; }
checkpoints() { echo "$dir/jobs/$(field "$(api GET "/api/v1/jobs/$1")" number)/checkpoints"; }
newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' "$(checkpoints "$1")/checkpoint"; }
same_as_undisturbed() { # JOB : its last checkpoint, to the byte
    local steps
    steps=$(newest "$1")
    sed -i "s/\"steps\": [0-9]*/\"steps\": $steps/" "$1.json"
    alone "$1" >/dev/null
    same_checkpoint "$(checkpoints "$1")" "$1.alone/checkpoints" "$steps"
}

# --- a group without its server: one node does not reach it, one is not reached, one neither ---
spec cut 16 1000000 '{"ps": 1, "worker": 2}'
"$trainyard" submit cut.json >/dev/null
wait_for 30 test -e "$(checkpoints cut)/checkpoint"
chief=$(folder_of cut worker/0) ps=$(folder_of cut ps/0) worker=$(folder_of cut worker/1)
old_epoch=$(variable "$(pid_of "$chief")" TRAINYARD_EPOCH)
cp "$ps/tasks.pem" old.pem
was=("$(node_of cut worker/0)" "$(node_of cut worker/1)" "$(node_of cut ps/0)")
at_cut=$(newest cut)
# At once, or the server ends the attempt, and asks for another on other nodes, in between.
lose "${was[0]}" yard
lose yard "${was[1]}"
lose "${was[2]}" yard
lose yard "${was[2]}"
trains_on() { [ "$(newest cut)" -gt $((at_cut + 100)) ]; }
check it_trains_on_without_its_server wait_for 20 trains_on
check another_attempt_begins wait_for 30 is_attempt cut 2
check it_runs wait_for 30 is_state cut running
claimed() { [ "$(cat "$(checkpoints cut)/epoch")" -gt "$old_epoch" ]; }
check it_claims_the_folder wait_for 20 claimed
check the_old_one_is_refused wait_for 20 grep -q "fenced: attempt with epoch $old_epoch" "$chief/error.json" "$chief/stderr.log"
later_ones() { # the epochs of those that were published since
    python3 - "$(checkpoints cut)" "$at" <<'END'
import glob, json, re, sys
folder, at = sys.argv[1], int(sys.argv[2])
epochs = set()
for name in glob.glob(folder + "/*.manifest"):
    try:
        if int(re.search(r"-(\d+)\.", name)[1]) > at: epochs.add(json.load(open(name))["epoch"])
    except FileNotFoundError: pass # it trains on, and keeps the newest
print(sorted(epochs))
END
}
at=$(newest cut)
goes_on() { [ "$(newest cut)" -gt $((at + 200)) ]; }
check the_new_one_goes_on wait_for 20 goes_on
check only_the_new_one_publishes same "$(later_ones)" "[$(cat "$(checkpoints cut)/epoch")]"
now=$(folder_of cut ps/0)
check its_certificate_is_another_one test -n "$(cmp "$now/tasks.pem" old.pem)"
check the_new_ones_speak same "$(knock "$(ps_address "$now")" "$now/tasks.pem")" speaks
check the_old_ones_are_not_let_in same "$(knock "$(ps_address "$now")" old.pem)" refuses
heal "${was[0]}" yard
heal yard "${was[1]}"
heal "${was[2]}" yard
heal yard "${was[2]}"
check all_nodes_are_back wait_for 30 joined 6
is_gone() { [ ! -e "$chief" ] && [ ! -e "$ps" ] && [ ! -e "$worker" ]; }
check nothing_of_the_old_one_is_left wait_for 30 is_gone
"$trainyard" cancel cut >/dev/null
check it_ends wait_for 20 is_final cut
check same_bits_after_a_fence same_as_undisturbed cut
[ "${WAYS:-}" = all ] || exit

# --- tasks that do not reach each other: what was sent one way, and both ---
spec one 16 1000000 '{"ps": 1, "worker": 2}'
spec both 16 1000000 '{"ps": 1, "worker": 2}'
for job in one both; do "$trainyard" submit $job.json >/dev/null; done
for job in one both; do check "${job}_trains" wait_for 30 test -e "$(checkpoints $job)/checkpoint"; done
lose "$(node_of one worker/1)" "$(node_of one ps/0)"
lose "$(node_of both worker/0)" "$(node_of both worker/1)"
lose "$(node_of both worker/1)" "$(node_of both worker/0)"
pairs=("$(node_of one worker/1) $(node_of one ps/0)" "$(node_of both worker/0) $(node_of both worker/1)" "$(node_of both worker/1) $(node_of both worker/0)")
start=$SECONDS
for job in one both; do check "${job}_is_tried_again" wait_for 60 is_attempt $job 2; done
echo "  noticed after $((SECONDS - start)) s"
why() { api GET "/api/v1/jobs/$1/attempts" | python3 -c 'import json, sys; print(min(json.load(sys.stdin)["items"], key=lambda a: a["attempt"]))'; }
check one_says_who has "$(why one)" "cannot reach $(address_of "${pairs[0]%% *}"):"
check one_says_whom has "$(why one)" "From /job:ps/replica:0/task:0:"
check both_says_whom has "$(why both)" "From /job:worker/replica:0/task:1:"
# shellcheck disable=SC2086
for pair in "${pairs[@]}"; do heal $pair; done
for job in one both; do
    at=$(newest $job)
    on() { [ "$(newest $job)" -gt $((at + 100)) ]; }
    check "${job}_goes_on" wait_for 60 on
    "$trainyard" cancel $job >/dev/null
done
for job in one both; do check "${job}_ends" wait_for 20 is_final $job; done
