"""kill.py - kills a yard's processes at random moments, restarts what a person would, and checks that nothing is lost.

usage: kill.py BUILD WORK DATASET WHERE KILLS SEED    (WHERE: embedded | remote | copies | together | elastic)

With "copies" the agent does not see the server's folder. With "together" every job is one model over a parameter server and two workers, the first of which is chief and master;
with "elastic" over those, or three workers in a ring, of whom all but the first may fall while the others go on.

The choices follow from the seed; the moments within a process do not, so a replay may need several goes.
"""
import glob, json, os, random, signal, sqlite3, struct, subprocess, sys, time
import urllib.error, urllib.request
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from free_port import free_port

build, work, dataset, where = sys.argv[1:5]
kills, seed = int(sys.argv[5]), int(sys.argv[6])
chance = random.Random(f"{seed} {where}")
remote, together = where in ("remote", "copies"), where in ("together", "elastic")
cpus, living_jobs = ("6", 2) if together else ("3", 4)
folder, node = f"{work}/{where}", f"{work}/{where}-node"
attempts = f"{node}/attempts" if remote else f"{folder}/agent/attempts"
log = open(f"{work}/{where}.log", "ab")
trainyard = f"{build}/trainyard"
bad = 0


def check(name, good, why=""):
    global bad
    bad += not good
    print(f"{'ok' if good else 'FAIL'} {where}_{name}" + ("" if good else f": {why}"), flush=True)


def single(value):
    """The bits of a single precision number, however many digits it was printed with."""
    return None if value is None else struct.pack("f", value)


# --- specs: kinds of job, each small, each with everything that a checkpoint must hold ---

GROUPS = {"together": {"tasks": {"ps": 1, "worker": 2}},
          "elastic": {"tasks": {"ps": 1, "worker": 2}, "strategy": {"elastic": True}},
          "ring": {"tasks": {"worker": 3}, "strategy": {"mode": "allreduce", "elastic": True}}}


def spec(kind):
    layers = {
        "dense": [{"layer": "Flatten"}, {"layer": "Dense", "units": 48, "activation": "relu"}, {"layer": "Dropout", "rate": 0.2},
                  {"layer": "Dense", "units": 10}],
        "conv": [{"layer": "Conv2D", "filters": 4, "kernel_size": 3, "activation": "relu"}, {"layer": "MaxPooling2D"},
                 {"layer": "Flatten"}, {"layer": "Dense", "units": 10}],
        "plain": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}],
        "group": [{"layer": "Flatten"}, {"layer": "Dense", "units": 24, "activation": "relu"}, {"layer": "Dense", "units": 10}],
    }["group" if kind in GROUPS else kind]
    steps, every, batch = {"dense": (1500, 60, 30), "conv": (400, 25, 32), "plain": (3000, 150, 20)}.get(kind, (400, 40, 15))
    optimizer = "Adam" if kind != "plain" else {"name": "SGD", "learning_rate": 0.05, "momentum": 0.9}
    return {"name": kind, "seed": len(kind), "model": {"layers": layers}, "data": {"dataset": "digits", "batch_size": batch},
            "train": {"optimizer": optimizer, "steps": steps}, "checkpoint": {"every_steps": every}, "restart": {"max": 100},
            **GROUPS.get(kind, {"tasks": {"worker": 1}})}


def unbroken(kind):
    """The run that no one disturbs: its losses by step, and the bytes of its last checkpoint."""
    path, out = f"{work}/{kind}.json", f"{work}/unbroken-{kind}"
    if not os.path.exists(out):
        json.dump(spec(kind), open(path, "w"))
        with open(f"{path}l", "w") as lines:
            subprocess.run([f"{build}/trainyard-task", "train", path, "--data", dataset, "--out", out, "--threads", "1", "--json"],
                           check=True, stdout=lines)
    return checkpoint_bytes(f"{out}/checkpoints", spec(kind)["train"]["steps"]), json.loads(open(f"{path}l").readlines()[-1])["metrics"]


def checkpoint_bytes(path, step):
    return [open(file, "rb").read() for file in sorted(glob.glob(f"{path}/model.ckpt-{step}.[di]*"))]


# --- the yard's processes ---

port, agents_port = free_port(), free_port()
processes = {}


def start_server():
    words = [trainyard, "serve", "--dir", folder, "--port", str(port), "--backoff-ms", "50", "--grace-ms", "3000"]
    words += ["--no-agent", "--agents-port", str(agents_port)] if remote else ["--cpus", cpus, "--agents-port", "-1"]
    processes["server"] = subprocess.Popen(words, stdout=log, stderr=log)


def start_agent():
    processes["agent"] = subprocess.Popen([trainyard, "agent", "--server", f"127.0.0.1:{agents_port}", "--token", join_token,
                                           "--dir", node, "--name", "afar", "--cpus", "3", *(["--no-shared-folder"] if where == "copies" else [])],
                                          stdout=log, stderr=log)


def end(name, number):
    process = processes.pop(name)
    process.send_signal(number)
    return process.wait(timeout=30)


def call(method, path, body=None, headers={}):
    """(status, answer); None when nobody answers."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1{path}", method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Authorization": f"Bearer {token}", **headers})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)
    except (OSError, ValueError):  # refused, broken off, half an answer
        return None


def insist(*arguments, seconds=40):
    """Asks until somebody answers, as a client with an idempotency key may."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if processes["server"].poll() is not None:
            start_server()
        answer = call(*arguments)
        if answer and answer[0] < 500:
            return answer
        time.sleep(0.05)
    raise SystemExit(f"FAIL {where}_answers: {arguments[:2]} was not answered for {seconds} s ({answer})")


def shims():
    """(pid of the shim, pid of its task, "ROLE-INDEX") of all that run on the node."""
    found = []
    for name in os.listdir(attempts) if os.path.isdir(attempts) else []:
        try:
            if not os.path.exists(f"{attempts}/{name}/exit.json"):
                shim = json.load(open(f"{attempts}/{name}/shim.json"))
                found.append((shim["pid"], shim.get("task_pid", 0), name.split("-", 1)[1]))
        except (OSError, ValueError):
            pass
    return sorted(found)


def of_this_yard():
    """Processes that live for this test's yard: by their command line or their folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline").read()
        except OSError:
            continue
        if int(pid) != os.getpid() and "trainyard" in words and (f"{folder}/" in words + "/" or f"{node}/" in words + "/") and "kill.py" not in words:
            found.append((int(pid), words.replace("\0", " ")))
    return found


# --- what is done to it ---

jobs = {}  # key -> {kind, id, cancelled}


def submit():
    key = f"key-{len(jobs)}"
    kind = chance.choice({"together": ["together"], "elastic": ["elastic", "ring"]}.get(where, ["dense", "dense", "conv", "plain"]))
    jobs[key] = {"kind": kind, "cancelled": False}
    body = spec(jobs[key]["kind"])
    if chance.random() < 0.15 and where != "elastic":  # where a worker's own starts count as well
        body["restart"]["max"] = chance.choice([0, 1])
    jobs[key]["max"] = body["restart"]["max"]
    return key, body


def send(key, body):
    answer = insist("POST", "/jobs", body, {"Idempotency-Key": key})
    if answer[0] not in (200, 201):
        raise SystemExit(f"FAIL {where}_submit: {answer}")
    jobs[key]["id"] = answer[1]["id"]


def alive():
    listed = insist("GET", "/jobs?state=queued,allocated,starting,running,stopping&limit=100")
    if listed[0] != 200:
        raise SystemExit(f"FAIL {where}_list: {listed}")
    return [job["id"] for job in listed[1]["items"]]


def at_checkpoint():
    """Waits until some job writes a checkpoint; up to 2 seconds."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        for job in os.listdir(f"{folder}/jobs") if os.path.isdir(f"{folder}/jobs") else []:
            try:
                if any(name.startswith(".model.ckpt-") for name in os.listdir(f"{folder}/jobs/{job}/checkpoints")):
                    return
            except OSError:
                pass
        time.sleep(0.0005)


def strike(target):
    """Kills it, and says what it was; None when there is no such process now."""
    if target in ("server", "agent"):
        end(target, signal.SIGKILL)
        return target
    running = shims()
    if not running:
        return None
    chosen = chance.choice(running)
    pid = chosen[target == "task"]
    try:
        if pid <= 0 or "trainyard-" not in open(f"/proc/{pid}/cmdline").read():
            return None
        os.kill(pid, signal.SIGKILL)
        return f"{target} {chosen[2]}" if together else target
    except OSError:
        return None


def one_round():
    """One kill at a moment of some kind; returns what was killed, or None."""
    targets = ["server", "shim", "task", "task"] + (["agent", "agent"] if remote else ["server"])
    target = chance.choice(targets)
    moment = chance.choice(["any", "any", "checkpoint", "checkpoint", "start", "stop", "submit", "both"])
    pause, wait, down = chance.random() * 0.02, chance.random() * 0.8, chance.choice([0, 0.05, 0.5])
    living = alive()
    while len(living) < living_jobs:
        send(*submit())
        living.append("new")
    if moment == "any" or moment == "both":
        time.sleep(wait)
    elif moment == "checkpoint":
        at_checkpoint()
    elif moment == "start":
        send(*submit())
        time.sleep(pause)
    elif moment == "stop":
        mine = [job for job in jobs.values() if job.get("id") in living]
        if mine and chance.random() < 0.5:
            job = chance.choice(mine)
            job["cancelled"] = True  # even when the answer is lost
            job["told"] = insist("POST", f"/jobs/{job['id']}:cancel", {})[0]
            time.sleep(pause)
    elif moment == "submit":  # the request goes out, and the server dies at once
        key, body = submit()
        child = subprocess.Popen(["curl", "-s", "-o", "/dev/null", "-m", "5", "-H", f"Authorization: Bearer {token}",
                                  "-H", f"Idempotency-Key: {key}", "-d", json.dumps(body), f"http://127.0.0.1:{port}/api/v1/jobs"])
        time.sleep(pause)
        end("server", signal.SIGKILL)
        child.wait()
        start_server()
        send(key, body)
        return "server"
    struck = strike(target)
    if moment == "both" and remote:
        strike("agent" if target == "server" else "server")
    time.sleep(down if struck else 0)
    if "server" not in processes:
        start_server()
    if remote and "agent" not in processes:
        start_agent()
    return struck


# --- the run ---

start_server()
until = time.monotonic() + 20
while not os.path.exists(f"{folder}/server.json") and time.monotonic() < until:
    time.sleep(0.02)
token = subprocess.run([trainyard, "token", "create", "--dir", folder], check=True, capture_output=True, text=True).stdout.strip()
subprocess.run([trainyard, "dataset", "add", "digits", "--from", dataset, "--dir", folder], check=True, stdout=log)
if remote:
    join_token = subprocess.run([trainyard, "token", "create", "--join", "--dir", folder], check=True, capture_output=True, text=True).stdout.strip()
    start_agent()

struck = []
rounds = 0
while len(struck) < kills and rounds < 20 * kills:
    rounds += 1
    target = one_round()
    if target:
        struck.append(target)
check("kills", len(struck) == kills, f"{len(struck)} in {rounds} rounds")
print("  killed:", ", ".join(f"{name} {struck.count(name)} times" for name in sorted(set(struck))), f"; {len(jobs)} jobs")

until = time.monotonic() + 60 + kills
while alive() and time.monotonic() < until:
    time.sleep(0.2)
left = alive()
check("all_jobs_end", not left, [insist("GET", f"/jobs/{job}")[1] for job in left])

# What has ended is forgotten by the node, and nothing runs any more.
until = time.monotonic() + 15
while (shims() or os.listdir(attempts)) and time.monotonic() < until:
    time.sleep(0.1)
check("node_is_clean", not os.listdir(attempts), os.listdir(attempts))

series = {}
for key, job in jobs.items():
    status, job["now"] = insist("GET", f"/jobs/{job['id']}")
    if status == 200:
        job["series"] = insist("GET", f"/jobs/{job['id']}/metrics?buckets=10000")[1]["series"]
check("server_ends_on_term", end("server", signal.SIGTERM) == 0, "exit code")
if remote:
    check("agent_ends_on_term", end("agent", signal.SIGTERM) == 0, "exit code")
check("no_process_is_left", not of_this_yard(), of_this_yard())

control = sqlite3.connect(f"{folder}/control.db")
metrics = sqlite3.connect(f"{folder}/metrics.db")
for name, db in (("control", control), ("metrics", metrics)):
    result = db.execute("pragma integrity_check").fetchall()
    check(f"{name}_db_is_whole", result == [("ok",)], result)
keys = control.execute("select idempotency_key, id from jobs").fetchall()
check("each_submit_is_one_job", sorted(keys) == sorted((key, job["id"]) for key, job in jobs.items()), keys)

SUCCEEDED, FAILED, CANCELLED = 5, 6, 7
wrong = []
for key, job in jobs.items():
    number, state, restarts, attempt, text = control.execute(
        "select number, state, restarts, attempt, text from jobs where id = ?", [job["id"]]).fetchone()
    job["number"], job["state"] = number, state
    made = control.execute("select count(*), sum(ended_us = 0) from attempts where job = ?", [number]).fetchone()
    allowed = {SUCCEEDED}
    if job["cancelled"]:
        allowed |= {CANCELLED}
    if job["max"] < 100 and restarts == job["max"]:
        allowed |= {FAILED}
    if state not in allowed or restarts > job["max"] or attempt > job["max"] + 1 or made[0] != attempt or made[1]:
        wrong.append((number, job["kind"], state, text, f"restarts {restarts} of {job['max']}, attempt {attempt}, made {made}"))
check("right_end_within_the_budget", not wrong, wrong)
if not any(job["state"] == SUCCEEDED for job in jobs.values()):
    check("some_succeeded", False, "none")

count, first, last = control.execute("select count(*), min(seq), max(seq) from events").fetchone()
check("events_without_gap", first == 1 and last == count, (count, first, last))
wrong = []
for (number,) in control.execute("select number from jobs"):
    state = None
    for seq, kind, came, to in control.execute(
            "select seq, kind, state_from, state from events where job = ? and kind in ('job.submitted', 'job.state') order by seq", [number]):
        if kind == 'job.state' and came != state:
            wrong.append((number, seq, came, state))
        state = to
    if state != control.execute("select state from jobs where number = ?", [number]).fetchone()[0]:
        wrong.append((number, "last", state))
check("each_state_follows_from_the_one_before", not wrong, wrong)

wrong, differ, compared = [], [], 0
for job in jobs.values():
    kept, last = unbroken(job["kind"])
    steps = spec(job["kind"])["train"]["steps"]
    by_name = {}
    for s in job.get("series", []):
        if s["steps"] != sorted(set(s["steps"])) or s["name"] in by_name:
            wrong.append((job["number"], s["name"], "steps"))
        by_name[s["name"]] = dict(zip(s["steps"], map(single, s["values"])))
    stored = {}
    for name, step, value in metrics.execute("select name, step, value from points join series on series.id = points.series where name not glob 'hw/*' and job = ?",
                                             [job["number"]]):
        if step in stored.setdefault(name, {}) or not 0 < step <= steps:
            wrong.append((job["number"], name, step))
        stored[name][step] = single(value)
    for name, values in stored.items():
        if values != by_name.get(name):
            wrong.append((job["number"], name, "REST says otherwise"))
    job["stored"] = stored
    if job["state"] != SUCCEEDED:
        continue
    for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
        if stored.get(name, {}).get(steps) != single(last[name]):
            differ.append((job["number"], name, stored.get(name, {}).get(steps), last[name]))
    if checkpoint_bytes(f"{folder}/jobs/{job['number']}/checkpoints", steps) != kept:
        differ.append((job["number"], job["kind"], "checkpoint"))
    compared += 1
# Every loss at every step, whoever reported it: two jobs of a kind agree wherever both have a point.
for kind in {job["kind"] for job in jobs.values()}:
    seen = {}
    for job in jobs.values():
        for step, value in job["stored"].get("loss", {}).items() if job["kind"] == kind else []:
            if seen.setdefault(step, value) != value:
                differ.append((job["number"], kind, step, value, seen[step]))
check("series_rise_and_repeat_nothing", not wrong, wrong[:10])
check("same_bits_as_the_unbroken_run", not differ, differ[:10])
print(f"  {compared} checkpoints compared byte for byte")
sys.exit(bad > 0)
