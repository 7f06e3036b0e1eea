#!/bin/bash
# python_client_test.sh - the Python client: a job watched, a program run, what is refused; a server that dies and
# comes back while a job is followed; the wheel.
. "$(dirname "$0")/lib.sh"
client=$(realpath "$here/../../python")
export PYTHONPATH=$client PYTHONDONTWRITEBYTECODE=1

serve yard --cpus 4
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
python3 "$here/python_client.py" "$url" "$token" "$dir" "$work" || { echo "FAIL python_client: it broke off"; failed=1; }

# Followed over the death of the server: every point once.
job=$(field "$(api POST /api/v1/jobs '{"example": "digits-mlp", "train": {"steps": 12000, "eval_every": 12000}}')" number)
cat >"$work/follow.py" <<'PY'
import sys
import trainyard
steps = []
job = trainyard.Client(sys.argv[1], sys.argv[2]).job(int(sys.argv[3]))
for event in job.events(topics=("state", "metrics")):
    if event.topic == "job.metrics":
        steps += [point["step"] for point in event.data["points"] if point["name"] == "loss"]
        print("step", steps[-1], flush=True)
print(job.state, len(steps) == len(set(steps)), steps == sorted(steps), steps[-1], flush=True)
PY
python3 "$work/follow.py" "$url" "$token" "$job" >"$work/followed" 2>"$work/follow.log" &
follower=$!
pids+=("$follower")
check it_follows wait_for 30 grep -q step "$work/followed"
stop KILL
sleep 1
again --cpus 4
wait "$follower"
check it_saw_the_end_once same "$(tail -n 1 "$work/followed")" "succeeded True True 12000"

cp -r "$client" "$work/source"
unset PYTHONPATH
if python3 -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/pip" -q wheel --no-deps -w "$work" "$work/source" >"$work/wheel.log" 2>&1; then
    "$work/venv/bin/pip" -q install --no-index "$work"/trainyard-*.whl >"$work/wheel.log" 2>&1
    check the_wheel_is_typed test -e "$(echo "$work"/venv/lib/python3*/site-packages/trainyard/py.typed)"
    check the_wheel_runs same "$(cd "$work" && "$work/venv/bin/python" -c 'import trainyard; print(trainyard.__version__)')" 0.1.0
else
    echo "skip the_wheel: its build tools could not be had: $(tail -n 1 "$work/wheel.log" 2>/dev/null | cut -c1-80)"
fi
