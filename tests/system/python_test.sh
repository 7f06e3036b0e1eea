#!/bin/bash
# python_test.sh - the Python client, out of its wheel, against a server: submit, follow, refuse, go on after a restart.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2 --backoff-ms 100
wait_for 10 has "$(api GET /api/v1/nodes)" joined
wheel=$(python3 "$here/../../python/wheel.py" 1.2.3 "$work/wheel")
check wheel_name same "${wheel##*/}" trainyard-1.2.3-py3-none-any.whl
python3 "$here/../../python/wheel.py" 1.2.3 "$work/again" >/dev/null
check wheel_is_the_same cmp "$wheel" "$work/again/${wheel##*/}"
if python3 -m pip --version >/dev/null 2>&1; then
    check wheel_installs python3 -m pip install -q --no-index --no-deps --target "$work/site" "$wheel" 2>/dev/null
else
    echo "skip wheel_installs: no pip"
fi
export PYTHONPATH=$wheel TRAINYARD_URL=$url TRAINYARD_TOKEN=$token
check client same "$(python3 - <<'P' 2>&1
import trainyard
yard = trainyard.Client()
program = {"name": "hello", "command": ["sh", "-c", "sleep 0.5; echo from the task"], "tasks": {"worker": {"cpus": 1}}}
job = yard.submit(program)
lines = []
assert job.watch(lines.append) == "succeeded", lines
assert lines[-1].startswith(f"job {job.number} succeeded"), lines
assert "from the task" in job.logs(), job.logs()
assert job.spec()["name"] == "hello" and yard.job("hello").number == job.number
assert "succeeded" in repr(yard.job(job.number))
try:
    yard.submit({**program, "priority": 101})
    raise AssertionError("a priority of 101 was taken")
except trainyard.Problem as problem:
    assert problem.status == 400 and problem.pointers == ["/priority"] and problem.request_id, vars(problem)
try:
    trainyard.Client(yard.url, "ty_wrong").nodes()
    raise AssertionError("a wrong token was taken")
except trainyard.Problem as problem:
    assert problem.status == 401
before = len(list(yard.jobs()))
assert yard.plan(program)["text"] and len(list(yard.jobs())) == before
again = job.clone({"name": "twice"})
assert again.wait() == "succeeded" and again.number != job.number
failing = yard.submit({**program, "name": "fails", "command": ["false"], "restart": {"max": 0}})
assert failing.wait() == "failed" and failing.explain()
assert [j.name for j in yard.jobs(state="failed")] == ["fails"]
made = [yard.submit({**program, "name": f"n{i}", "after": [failing.number - 1]}).number for i in range(101)]
assert sorted(j.number for j in yard.jobs(q="n") if j.name[1:].isdigit()) == made, "pages"
for number in made: yard.job(number).kill()
print("good")
P
)" good
# A server that is killed and comes back: the same iteration goes on.
python3 -c '
import trainyard
yard = trainyard.Client()
job = yard.submit({"name": "outlives", "command": ["sleep", "4"], "tasks": {"worker": {"cpus": 1}}})
print(job.wait())' >"$work/said" 2>&1 &
follower=$!
wait_for 10 is_state outlives running
stop KILL
again --cpus 2 --backoff-ms 100
wait "$follower"
check goes_on_after_a_restart same "$(cat "$work/said")" succeeded
