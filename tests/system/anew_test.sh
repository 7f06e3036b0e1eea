#!/bin/bash
# anew_test.sh - a node is lost with a worker that the others go on without: that worker alone is placed anew on another node, and takes
# part again; where none has room the job goes on without it and says so. Over a parameter server, and around a ring.
# Faults of docs/reliability.md: F48.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 500 --lost-ms 2000 --grace-ms 1000 --backoff-ms 100
digits "$dir"
join_token=$("$trainyard" token create --join --dir "$dir")
. "$here/anew.sh"
start one 2
start two 1
start three 1
check three_nodes node_is three joined

export TRAINYARD_DIR=$dir

for how in async ring; do
    case $how in
        async) train $how '{"mode": "async"}' '{"ps": 1, "worker": 2}' 1000000 ;;
        ring) train $how '{"mode": "allreduce", "elastic": {"min_workers": 1}}' '{"worker": 3}' 1000000 ;;
    esac
    check ${how}_runs wait_for 60 is_state $how running
    check ${how}_trains wait_for 60 is_behind $how 100
    # A node with nothing but one worker on it, which is not the first.
    index=$(for i in 1 2; do [ "$(task_of $how worker $i node 2>/dev/null)" != one ] && task_of $how worker $i node >/dev/null 2>&1 && echo $i; done | head -n 1)
    node=$(task_of $how worker "$index" node)
    check "${how}_has_such_a_node" test -n "$index"
    # The other nodes are full.
    filler=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "tasks": {"worker": {"replicas": 1, "cpus": 1}}}')" number)
    check ${how}_nodes_are_full wait_for 20 is_state "$filler" running
    destroy "$node"
    check ${how}_node_is_lost wait_for 15 node_is "$node" lost
    check ${how}_task_is_away wait_for 10 task_is $how worker "$index" away True
    check ${how}_explain_says_so explains $how code TASK_AWAY
    check ${how}_explain_says_why explains $how text "worker:$index, which was lost on $node. Of that task: Waiting"
    check ${how}_words_say_so has "$("$trainyard" explain $how)" "runs without worker:$index"
    check ${how}_top_says_so has "$("$trainyard" top $how)" "runs without worker:$index"
    step=$(step_of $how)
    check ${how}_goes_on_without_it wait_for 40 is_behind $how $((step + 50))
    check ${how}_is_running is_state $how running
    api POST "/api/v1/jobs/$filler:cancel" '{}' >/dev/null
    check ${how}_is_placed_anew wait_for 20 task_is $how worker "$index" state running
    check ${how}_elsewhere same "$(task_of $how worker "$index" node)" one
    check ${how}_takes_part_again wait_for 60 said $how "worker $index is back"
    check ${how}_explains_nothing wait_for 5 explains $how code NOT_WAITING
    step=$(step_of $how)
    check ${how}_goes_on_with_it wait_for 40 is_behind $how $((step + 50))
    # The machine was not gone, or is back: what is left of the task there is nobody's.
    start "$node" 1
    check ${how}_the_old_node_is_back node_is "$node" joined
    check ${how}_the_old_one_leaves_nothing wait_for 20 sh -c "! ls '$work/$node/attempts' | grep -q ."
    check ${how}_still_runs is_state $how running
    api POST "/api/v1/jobs/$how:cancel" '{}' >/dev/null
    check ${how}_ends wait_for 30 is_final $how
    check ${how}_in_its_first_attempt same "$(field "$(api GET /api/v1/jobs/$how)" attempt)" 1
    check ${how}_costs_a_restart same "$(field "$(api GET /api/v1/jobs/$how)" restarts)" 1
    check ${how}_history_says_it python3 - <(api GET "/api/v1/jobs/$how/history?limit=1000") "worker:$index" <<'P'
import json, sys
notes = [(e["reason"], e["text"]) for e in json.load(open(sys.argv[1]))["items"] if e["type"] == "job.note"]
reasons = [reason for reason, text in notes if sys.argv[2] in text]
assert reasons[:2] == ["TASK_AWAY", "PLACED_ANEW"], notes
P
    check ${how}_each_point_once python3 - <(api GET "/api/v1/jobs/$how/metrics?names=loss&buckets=10000") <<'P'
import json, sys
steps = [s for s in json.load(open(sys.argv[1]))["series"] if s["name"] == "loss"][0]["steps"]
assert len(steps) > 20 and steps == sorted(set(steps)), steps
P
    check ${how}_each_checkpoint_once python3 - "$(api GET "/api/v1/jobs/$how/checkpoints")" <<'P'
import json, sys
steps = [c["step"] for c in json.loads(sys.argv[1])["items"]]
assert steps and len(steps) == len(set(steps)), steps
P
done
stop TERM
check nothing_is_wrong "$trainyard" db check --dir "$dir"
