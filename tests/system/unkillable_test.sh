#!/bin/bash
# unkillable_test.sh - a task that KILL does not end (F11): its room is not given to others, and its node is drained.  The
# process sleeps in the kernel, as one does whose disk does not answer: here in a cgroup that is frozen (cgroup v1).
. "$(dirname "$0")/lib.sh"
freezer=/sys/fs/cgroup/freezer/trainyard-test-$$
mkdir "$freezer" 2>/dev/null || { echo "skip unkillable: no cgroup v1 that can be frozen"; exit 0; }
thaw() { echo THAWED >"$freezer/freezer.state"; }
trap 'thaw 2>/dev/null; finish_all' EXIT
finish_all() { local tries=50; while ! rmdir "$freezer" 2>/dev/null && ((tries-- > 0)); do sleep 0.1; done; finish; }

serve yard --cpus 2 --grace-ms 500 --unkillable-ms 1500 --backoff-ms 100
job=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "tasks": {"worker": {"cpus": 2}}}')" id)
check unkillable_runs wait_for 20 is_state "$job" running
task=$(sed -n 's/.*"task_pid": *\([0-9]*\).*/\1/p' "$dir"/agent/attempts/*/shim.json)
echo "$task" >"$freezer/cgroup.procs"
echo FROZEN >"$freezer/freezer.state"
is_frozen() { grep -q '^State:.D' "/proc/$task/status"; }
check unkillable_sleeps_in_the_kernel wait_for 5 is_frozen
waits=$(field "$(api POST /api/v1/jobs '{"command": ["true"]}')" id)
"$trainyard" cancel "$job" --dir "$dir" >/dev/null
drained() { has "$(api GET /api/v1/nodes)" '"state":"draining"'; }
sleep 1
check unkillable_is_not_drained_at_once same "$(drained >/dev/null && echo drained)" ""
check unkillable_drains_the_node wait_for 10 drained
check unkillable_is_named has "$(api GET "/api/v1/jobs/$job")" "worker:0 cannot be killed: its node"
check unkillable_is_still_there kill -0 "$task"
check unkillable_keeps_its_room same "$(state_of "$job") $(state_of "$waits")" "stopping queued"
thaw
check unkillable_ends_after_all wait_for 10 is_state "$job" cancelled
check unkillable_node_stays_drained same "$(state_of "$waits")" queued
node=$(field "$(api GET /api/v1/nodes)" items 0 name)
"$trainyard" drain --undo "$node" --dir "$dir" >/dev/null
check unkillable_node_is_taken_back wait_for 10 is_state "$waits" succeeded
stop TERM
