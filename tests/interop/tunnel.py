"""The README's notebook drives a cluster's tasks through its tunnel, with TensorFlow itself; a session that is used keeps the job.

tunnel.py TRAINYARD README      with TRAINYARD_DIR set; prints "ok NAME" and "FAIL NAME"
"""
import contextlib, io, json, os, re, subprocess, sys, time

import tensorflow.compat.v1 as tf  # takes its time: before the job, which ends when nobody uses it

IDLE = 8
trainyard, readme = sys.argv[1:]
failed = False


def check(name, good, *found):
    global failed
    failed = failed or not good
    print("ok" if good else "FAIL", name, *(() if good else found), flush=True)


def state():
    return json.loads(subprocess.run([trainyard, "jobs", "--json"], capture_output=True, text=True, timeout=60).stdout)["items"][0]["state"]


tunnel = subprocess.Popen([trainyard, "submit", "--cluster", "ps=1,worker=2", "--idle-seconds", str(IDLE)], stdout=subprocess.PIPE, text=True)
said = ""
while "TF_CONFIG" not in said:
    line = tunnel.stdout.readline()
    if not line:
        sys.exit(f"FAIL it_says_where: {said}")
    said += line
target = re.search(r"grpc://127\.0\.0\.1:(\d+)", said)[1]
cluster = json.loads(re.search(r"TF_CONFIG='(.*)'", said)[1])["cluster"]

cell = re.search(r"```python\n(.*?)```", open(readme).read(), re.S)[1].replace("PORT", target)
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    exec(cell, {})
w, b = map(float, printed.getvalue().split())
check("a_notebook_learns", abs(w - 2) < 0.1 and abs(b - 1) < 0.1, w, b)

# At another task, without the first worker: its limit is reached, but not that of all.
with tf.Graph().as_default(), tf.Session(f"grpc://{cluster['worker'][1]}", config=tf.ConfigProto(device_filters=["/job:worker/task:1"])) as session:
    v = tf.Variable(0.0)
    session.run(v.initializer)
    begin = time.time()
    while time.time() - begin < 1.5 * IDLE:
        session.run(v.assign_add(1.0).op)
        time.sleep(0.5)
    check("a_session_that_is_used_keeps_it", session.run(v) > 10 and state() == "running", state())
check("then_it_ends", tunnel.wait(timeout=IDLE + 60) == 0)
check("it_has_succeeded", state() == "succeeded", state())
sys.exit(failed)
