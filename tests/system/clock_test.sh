#!/bin/bash
# clock_test.sh - the wall clock of server and agent jumps (F23): no node is given up, no attempt lost or doubled, and what
# waits waits as long as it should.
. "$(dirname "$0")/lib.sh"
${CC:-cc} -shared -fPIC -o "$work/clock.so" "$here/fake_clock.c" || { echo "skip clock: no compiler"; exit 0; }
hour=3600 year=31557600
echo 0 >"$work/clock"
jump() { echo "$1" >"$work/clock.next"; mv "$work/clock.next" "$work/clock"; }
! grep -qE "__(asan|tsan)_init" "$trainyard" || { echo "skip clock: a sanitizer has to be loaded first"; exit 0; }
export FAKE_CLOCK=$work/clock
LD_PRELOAD=$work/clock.so serve yard --cpus 4 --suspect-ms 1000 --lost-ms 4000 --backoff-ms 1000
export TRAINYARD_DIR=$dir
part() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }
attempt_is() { [ "$(part "$1" attempt)" = "$2" ]; }
year_now() { api GET "/api/v1/jobs/$1" | sed -n 's/.*"created_at": *"\([0-9]*\)-.*/\1/p'; }
run() { field "$(api POST /api/v1/jobs "$1")" number; }

long=$(run '{"command": ["sh", "-c", "i=0; while [ $i -lt 6000 ]; do echo $i; sleep 0.1; i=$((i+1)); done"], "tasks": {"worker": {"cpus": 1}}}')
wait_for 10 is_state "$long" running
real=$(year_now "$long")
for by in $hour -$year $year; do
    jump $by
    # Longer than a node may be silent.
    short=$(run '{"command": ["true"], "tasks": {"worker": {"cpus": 1}}}')
    check "clock_jumps_${by}_jobs_run" wait_for 10 is_state "$short" succeeded
    sleep 1.5
    check "clock_jumps_${by}_node_stays" has "$(api GET /api/v1/nodes)" '"joined"'
    [ $by != $year ] || check clock_really_jumped test "$(year_now "$short")" -gt "$real"
    check "clock_jumps_${by}_let_in" same "$(status)" 200
done
check clock_jumps_no_attempt_lost same "$(part "$long" state) $(part "$long" attempt) $(part "$long" restarts)" "running 1 0"

# What waits a second before it is tried again waits no year, and not no time.
crash=$(run '{"command": ["sh", "-c", "kill -SEGV $$"], "tasks": {"worker": {"cpus": 1}}, "restart": {"max": 1}}')
wait_for 10 attempt_is "$crash" 1
jump -$year
check clock_jumps_retry_comes wait_for 10 is_state "$crash" failed
check clock_jumps_retry_is_one same "$(part "$crash" attempt)" 2

# A time limit is of time that has gone by.
limit=$(run '{"command": ["sleep", "60"], "tasks": {"worker": {"cpus": 1}}, "stop": {"max_seconds": 8}}')
wait_for 10 is_state "$limit" running
jump $year
sleep 1
check clock_jumps_limit_not_early same "$(part "$limit" state)" running
check clock_jumps_limit_comes wait_for 20 is_final "$limit"

# A server that starts again in another year adopts what runs.
stop KILL
jump -$hour
LD_PRELOAD=$work/clock.so again --cpus 4 --suspect-ms 1000 --lost-ms 4000
sleep 2
check clock_jumps_adopts same "$(part "$long" state) $(part "$long" attempt)" "running 1"
"$trainyard" kill "$long" >/dev/null
check clock_jumps_ends wait_for 10 is_final "$long"
