#!/bin/bash
# slow_disk_test.sh - a disk on which each fsync takes its time (tests/slow_disk.c), for server, agent, shim and task; both
# are killed at the moments that this makes long: jobs run once, end as they should, and nothing is left.
# Faults of docs/reliability.md: F49.
. "$(dirname "$0")/lib.sh"
plain=${build%/slow}
[ -x "$plain/slow/trainyard" ] || { echo "FAIL slow: make slow"; failed=1; exit 1; }
build=$work/bin trainyard=$work/bin/trainyard
mkdir "$build"
for program in trainyard trainyard-shim trainyard-task; do
    ln "$plain/slow/$program" "$build/" 2>/dev/null || cp "$plain/slow/$program" "$build/" || { echo "FAIL slow: no room"; failed=1; exit 1; }
done
echo 150-250 >"$build/disk_ms" # of shims and tasks; agent and server are ...
export SLOW_DISK_MS=80         # ... sooner there again than what they started

serve yard --no-agent --backoff-ms 100 --grace-ms 10000
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
join=$("$trainyard" token create --join --dir "$dir") agents=$(field "$(cat "$dir/server.json")" agents)
attempts=$work/node/attempts
agent() {
    "$trainyard" agent --server "$agents" --token "$join" --dir "$work/node" --name n1 --cpus 4 >>"$work/node.log" 2>&1 &
    agent=$!
    pids+=("$agent")
}
agent_dies() { kill -9 "$agent"; wait "$agent" 2>/dev/null; }
server_again() { again --no-agent --agents-port "${agents##*:}" --backoff-ms 100 --grace-ms 10000; }
joined() { has "$(api GET /api/v1/nodes)" '"state":"joined"'; }
part() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }
there() { compgen -G "$attempts/$1" >/dev/null; }
gone() { ! there "$1"; }
soon() { local tries=4000; until "$@"; do ((tries-- > 0)) || return 1; sleep 0.002; done; }
agent
check joins wait_for 20 joined

# submit KEY BODY : its number, however often the server dies meanwhile
submit() {
    local answer
    until answer=$(api POST /api/v1/jobs "$2" -H "Idempotency-Key: $1" 2>/dev/null) && [[ $(status) = 20? ]]; do sleep 0.1; done
    field "$answer" number
}

# --- one job from its submit to its end ---
spec='{"name": "slow", "seed": 3, "restart": {"max": 0}, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 64, "activation": "relu"},
    {"layer": "Dropout", "rate": 0.2}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 50},
    "checkpoint": {"every_steps": 1500}, "train": {"steps": 4500, "eval_every": 1500}}'
(submit slow "$spec" >/dev/null) &
submitter=$!
sleep 0.05
stop KILL # before it was answered, most likely
server_again
wait $submitter
job=$(submit slow "$spec")
check submitted_once same "$(field "$(api GET /api/v1/jobs)" items | grep -o '"name": "slow"' | wc -l)" 1

check shim_begins soon there '*-0/shim.lock'
agent_dies # the shim has said nothing yet
check shim_is_slow gone '*-0/shim.json'
agent
check runs_once wait_for 20 is_state "$job" running
stop KILL
check checkpoint_comes wait_for 20 test -e "$dir/jobs/$job/checkpoints/checkpoint"
server_again
check comes_back wait_for 10 joined
agent_dies
agent
check exit_comes wait_for 60 there '*-0/exit.json*'
check succeeds wait_for 60 is_state "$job" succeeded
check in_one_attempt same "$(part "$job" attempt)" 1
echo "$spec" >"$work/spec.json"
SLOW_DISK_MS=0 "$build/trainyard-task" train "$work/spec.json" --data "$work/digits.made" --out "$work/whole" --threads 1 >"$work/whole.log" 2>&1
check same_bits_on_a_slow_disk same_checkpoint "$dir/jobs/$job/checkpoints" "$work/whole/checkpoints" 4500

# --- stopped while its shim was on its way, by an agent that has just come ---
job=$(submit stopped '{"name": "stopped", "command": ["sh", "-c", "echo $$ >'"$work"'/ran; exec sleep 100"], "restart": {"max": 0}}')
check shim_begins_again soon there '*-0/shim.lock'
agent_dies
api POST "/api/v1/jobs/$job:cancel" '{}' >/dev/null
check cancel_is_taken has "$(status)" 20
agent
check cancelled wait_for 10 is_state "$job" cancelled
check node_is_left_clean wait_for 10 gone '*'
check nothing_runs_on same "$([ -e "$work/ran" ] && kill -0 "$(cat "$work/ran")" 2>/dev/null && echo runs)" ""

# --- asked to stop when the shim has said who it is, and does not listen yet ---
job=$(submit asked '{"name": "asked", "command": ["sh", "-c", "trap \"exit 3\" TERM; while :; do sleep 0.05; done"], "restart": {"max": 0}}')
check shim_speaks soon there '*-0/shim.json'
agent_dies
agent
api POST "/api/v1/jobs/$job:cancel" '{}' >/dev/null
check asked_in_time wait_for 8 is_state "$job" cancelled # the grace has 10 s

check nothing_is_wrong has "$("$trainyard" db check --dir "$dir")" "nothing is wrong"
kill "$agent"; wait "$agent"
check agent_ends same "$?" 0
stop TERM
check no_process_is_left same "$(pgrep -f "$work/node/attempts|$work/bin/trainyard-(shim|task)")" ""
