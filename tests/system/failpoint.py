"""failpoint.py - small lives of a yard, in each of which one process is killed at one failpoint and started again.

usage: failpoint.py BUILD WORK DATASET LIVES [AT ONCE]    (LIVES: all, or NAME@N,NAME@N,... or a number: as many drawn by SEED)

A life: a server, an agent in a process of its own, a model that trains, one that trains over a parameter server and two workers, a program with files,
points and an artifact, and one that is cancelled while it runs.  Afterwards all have ended as they should, what is stored is what the tasks wrote and what an undisturbed life has, nothing is left of any
process or file, and while it went on the state that was shown was never wrong for longer than 5 seconds.
"""
import concurrent.futures, hashlib, json, os, random, shutil, signal, sqlite3, struct, subprocess, sys, threading, time
import urllib.error, urllib.request
from events import fields, records
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from free_port import free_port

build, work, dataset, wanted = sys.argv[1:5]
at_once = int(sys.argv[5]) if len(sys.argv) > 5 else 2
here = os.path.dirname(os.path.abspath(__file__))
trainyard = f"{build}/trainyard"
TRUE_WITHIN = 5  # seconds
STEPS, EVERY = 240, 30
STEPS_OF = {"model": STEPS, "group": STEPS // 2}
LEARNS = ("loss", "accuracy", "val_loss", "val_accuracy")  # of a model; its other series are of speed
ROLES = {"control": "server", "metrics": "server", "server": "server", "store": "server"}  # else the part before the dot
OFTEN = ("control.", "metrics.", "server.before_send", "server.command_before_send", "server.met", "agent.before_ship", "agent.before_report",
         "agent.before_mirror", "shim.record_before_rename", "task.before_events", "task.ckpt_before_rename", "task.step")  # passed many times in a life
COPIES = ("agent.before_mirror", "agent.after_mirror", "server.on_checkpoint", "store.checkpoint_")  # where the node does not see the server's folder
said = threading.Lock()

MODEL = {"name": "model", "seed": 5, "restart": {"max": 5}, "checkpoint": {"every_steps": EVERY}, "data": {"dataset": "digits", "batch_size": 20},
         "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 24, "activation": "relu"}, {"layer": "Dropout", "rate": 0.2},
                              {"layer": "Dense", "units": 10}]}, "train": {"optimizer": "Adam", "steps": STEPS, "eval_every": EVERY}}
GROUP = {**MODEL, "name": "group", "tasks": {"ps": 1, "worker": 2}, "train": {"optimizer": "Adam", "steps": STEPS_OF["group"], "eval_every": EVERY}}
PROGRAM = """
import os, sys, time
from events_write import *
print("begins", flush=True)
file = opened()
for step in range(60):
    record(file, event(step, v1(b"loss", 1 / (1 + step))))
    time.sleep(0.005)
open(os.path.join(os.environ["TRAINYARD_OUT"], "artifacts", "result.bin"), "wb").write(bytes(range(256)) * 300)
print("ends", flush=True)
"""
FILES = {"main.py": PROGRAM.encode(), "events_write.py": open(f"{here}/events_write.py", "rb").read()}
HASHES = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
COMMAND = {"name": "program", "restart": {"max": 5}, "command": ["python3", "main.py"], "files": HASHES}
ENDLESS = {"name": "endless", "restart": {"max": 5}, "command": ["sleep", "600"]}
ENDS = {"model": 5, "group": 5, "program": 5, "endless": 7}  # succeeded, cancelled


def names():
    """All failpoints, as a program lists them."""
    answer = subprocess.run([trainyard, "version"], env={**os.environ, "TRAINYARD_FAILPOINTS": "?"}, capture_output=True, text=True)
    return answer.stderr.split("NAME is one of ")[1].split()


def single(value):
    """The bits of a single precision number, however many digits it was printed with."""
    return None if value is None else struct.pack("<f", value)


def read_json(path):
    try:
        return json.load(open(path))
    except (OSError, ValueError):
        return {}


class Wrong(Exception):
    pass


class Life:
    def __init__(self, lives, name="", at=1):
        self.title = f"{name}@{at}" if name else "undisturbed"
        self.folder = f"{lives}/{self.title}"
        self.struck = f"{self.folder}/struck"
        self.name, self.at = name, at
        self.copies = name.startswith(COPIES)
        self.role = ROLES.get(name.split(".")[0], name.split(".")[0])
        self.yard, self.node = f"{self.folder}/yard", f"{self.folder}/node"
        self.processes, self.wrong_since, self.deaths = {}, {}, 0
        self.port, self.agents_port = free_port(), free_port()
        os.makedirs(self.folder)
        self.log = open(f"{self.folder}/log", "ab")

    # --- processes ---

    def environment(self, role):
        armed = f"{self.name}=kill@{self.at},{self.struck}"
        mine = self.name and (role == "server") == (self.role == "server")
        return {**os.environ, "TRAINYARD_FAILPOINTS": armed} if mine else None

    def start(self, role):
        if role == "server":
            words = ["serve", "--dir", self.yard, "--port", str(self.port), "--no-agent", "--agents-port", str(self.agents_port),
                     "--backoff-ms", "50", "--grace-ms", "2000"]
        else:
            words = ["agent", "--server", f"127.0.0.1:{self.agents_port}", "--token", self.join, "--dir", self.node, "--name", "n", "--cpus", "6"]
            words += ["--no-shared-folder"] if self.copies else []
        self.processes[role] = subprocess.Popen([trainyard, *words], stdout=self.log, stderr=self.log, env=self.environment(role))

    def tend(self):
        """Starts again what has been struck; nobody else may die."""
        for role, process in list(self.processes.items()):
            status = process.poll()
            if status is None:
                continue
            if status != -signal.SIGKILL or role != self.role or not os.path.exists(self.struck) or self.deaths:
                raise Wrong(f"the {role} ended with {status}")
            self.deaths += 1
            self.start(role)

    def mine(self):
        """Processes that live for this yard, by command line, environment or current folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                text = open(f"/proc/{pid}/cmdline").read() + open(f"/proc/{pid}/environ").read() + os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if int(pid) != os.getpid() and self.folder in text:
                found.append((int(pid), text.split("\0")[0]))
        return found

    # --- requests ---

    def call(self, method, path, body=None, headers={}):
        """(status, answer); None when nobody answers."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1{path}", method=method, data=data,
                                         headers={"Authorization": f"Bearer {self.token}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read() or b"{}")
        except (OSError, ValueError):  # refused, broken off, half an answer
            return None

    def insist(self, *arguments, seconds=30):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.tend()
            answer = self.call(*arguments)
            if answer and (answer[0] < 300 or answer[0] == 409):  # 409: the first answer was lost
                return answer[1]
            if answer and answer[0] < 500:
                raise Wrong(f"{arguments[:2]} was answered {answer}")
            time.sleep(0.03)
        raise Wrong(f"{arguments[:2]} was not answered for {seconds} s")

    # --- what is true, and what is shown ---

    def truths(self):
        """{job's number: states that may be shown} by what the shims wrote, where that leaves no choice."""
        seen, attempts = {}, f"{self.node}/attempts"
        for name in os.listdir(attempts) if os.path.isdir(attempts) else []:
            start, shim, end = (read_json(f"{attempts}/{name}/{file}.json") for file in ("start", "shim", "exit"))
            if not start or "." in name:
                continue
            state = None
            if end:
                if end["code"] == 0 and not end["signal"]:
                    state = ("succeeded",)
            elif shim.get("task_pid") and os.path.exists(f"/proc/{shim['task_pid']}") and os.path.exists(f"/proc/{shim['pid']}"):
                state = ("running", "stopping")
            seen.setdefault(start["job_id"], []).append((start.get("tasks", 1), state))
        # Of several tasks all must be there, and say the same.
        return {job: tasks[0][1] for job, tasks in seen.items() if tasks[0][1] and len(tasks) == tasks[0][0] and len(set(tasks)) == 1}

    def look(self):
        """Compares both; returns the jobs that are shown."""
        before = self.truths()
        answer = self.call("GET", "/jobs?limit=10")
        now = time.monotonic()
        shown = {job["number"]: job["state"] for job in answer[1]["items"]} if answer and answer[0] == 200 else {}
        for number, states in before.items():
            if shown.get(number) in states or self.truths().get(number) != states:
                self.wrong_since.pop(number, None)
            elif now - self.wrong_since.setdefault(number, now) > TRUE_WITHIN:
                raise Wrong(f"job {number} is shown as {shown.get(number)} for {TRUE_WITHIN} s, it is {states[0]}")
        return shown

    # --- the life ---

    def live(self, template):
        shutil.copytree(template["yard"], self.yard)
        self.token, self.join = template["token"], template["join"]
        begun = time.monotonic()
        self.start("server")
        self.start("agent")
        for name, data in FILES.items():
            self.insist("PUT", f"/files/{HASHES[name]}", data)
        jobs = [self.insist("POST", "/jobs", spec, {"Idempotency-Key": spec["name"]}) for spec in (ENDLESS, MODEL, GROUP, COMMAND)]
        cancelled, shown = False, {}
        while len([s for s in shown.values() if s in ("succeeded", "failed", "cancelled")]) < len(jobs):
            self.tend()
            shown = self.look()
            if not cancelled and shown.get(jobs[0]["number"]) == "running":
                self.insist("POST", f"/jobs/{jobs[0]['id']}:cancel", {})
                cancelled = True
            if time.monotonic() - begun > 90:
                raise Wrong(f"the jobs have not ended: {shown}")
            time.sleep(0.03)
        attempts = f"{self.node}/attempts"
        until = time.monotonic() + 10
        while os.listdir(attempts) and time.monotonic() < until:
            self.tend()
            time.sleep(0.03)
        if os.listdir(attempts):
            raise Wrong(f"left on the node: {os.listdir(attempts)}")
        self.tend()
        for role in ("agent", "server"):
            self.processes[role].send_signal(signal.SIGTERM)
            status = self.processes[role].wait(timeout=20)
            if status:
                raise Wrong(f"the {role} ended with {status} when it was told to")
        if self.mine():
            raise Wrong(f"still running: {self.mine()}")
        self.seconds = time.monotonic() - begun

    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        for pid, _ in self.mine():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.log.close()

    # --- what is left of it ---

    def written(self, number):
        """{(series, step, task): bits} that the event files of all attempts add up to."""
        points, kept = {}, f"{self.yard}/jobs/{number}/events"
        for attempt in sorted(os.listdir(kept), key=lambda name: int(name.split("-")[0])) if os.path.isdir(kept) else []:
            task = attempt.split("-", 1)[1]
            for folder, _, files in os.walk(f"{kept}/{attempt}"):
                for file in files:
                    for record in records(f"{folder}/{file}"):
                        step, values = 0, []
                        for field, value in fields(record):
                            if field == 2:
                                step = value
                            elif field == 5:
                                values += [dict(fields(v)) for n, v in fields(value) if n == 1]
                            elif field == 7 and dict(fields(value)).get(1) == 1:  # it starts from this step
                                points = {key: bits for key, bits in points.items() if key[1] <= step or key[2] != task}
                        for value in values:
                            if 2 in value:
                                points[value[1].decode(), step, task] = value[2]
        return points

    def found(self):
        """Everything that two lives must agree on; raises Wrong for what is wrong in itself."""
        check = subprocess.run([trainyard, "db", "check", "--dir", self.yard], capture_output=True, text=True)
        if check.returncode:
            raise Wrong(f"db check: {check.stdout}{check.stderr}")
        control, metrics = (sqlite3.connect(f"{self.yard}/{name}.db") for name in ("control", "metrics"))
        jobs = control.execute("select number, name, state, restarts from jobs order by number").fetchall()
        if sorted(job[1] for job in jobs) != sorted(ENDS):
            raise Wrong(f"the jobs are {jobs}")
        result = {}
        for number, name, state, restarts in jobs:
            if state != ENDS[name]:
                raise Wrong(f"{name} ended as {state}: {control.execute('select text from jobs where number = ?', [number]).fetchall()}")
            if restarts > (self.role in ("shim", "task")):
                raise Wrong(f"{name} was started again {restarts} times")
            rows = metrics.execute("select name, step, role || '-' || idx, value from points join series on series.id = points.series where name not glob 'hw/*' and job = ?", [number]).fetchall()
            stored = {(series, step, task): single(value) for series, step, task, value in rows}
            written = self.written(number)
            if len(stored) != len(rows) or (stored != written and not self.copies):  # then the event files are nowhere
                odd = [(key, stored.get(key), written.get(key)) for key in sorted({*stored, *written}) if stored.get(key) != written.get(key)]
                raise Wrong(f"{name}: {len(rows)} points are stored, {len(written)} were written: {odd[:5]}")
            result[name] = {key: bits for key, bits in stored.items() if name == "program" or key[0] in LEARNS}
            result[name, "stdout"] = name == "program" and b"".join(row[0] for row in metrics.execute(
                "select bytes from chunks where log = (select max(id) from logs where job = ? and name = 'stdout') order by start", [number]))
        folder_of = {name: f"{self.yard}/jobs/{number}" for number, name, _, _ in jobs}
        for name in STEPS_OF:
            folder = f"{folder_of[name]}/checkpoints"
            listed = sorted(file for file in os.listdir(folder) if file not in ("epoch", "lock"))
            result[name, "checkpoints"] = listed
            for file in listed:
                if file.startswith(f"model.ckpt-{STEPS_OF[name]}.") and not file.endswith(".manifest"):  # which says by which attempt
                    result[name, file] = open(f"{folder}/{file}", "rb").read()
        below = f"{folder_of['program']}/artifacts"
        result["artifacts"] = sorted((path[len(below):], file, open(f"{path}/{file}", "rb").read())
                                     for path, _, files in os.walk(below) for file in files)
        return result


def compare(model, other):
    """What `other` has that the undisturbed life does not have, or the other way round."""
    for key in {*model, *other}:
        left, right = model.get(key), other.get(key)
        if key in STEPS_OF:
            # Losses are told by the clock: those of the same step are equal, and there are no others of the evaluations.
            both = left.keys() & right.keys()
            sure = [{k: v for k, v in points.items() if k[0].startswith("val_") or k[1] == STEPS_OF[key]} for points in (left, right)]
            if sure[0] != sure[1] or any(left[k] != right[k] for k in both):
                raise Wrong(f"points differ: {[(k, sure[0].get(k), sure[1].get(k)) for k in {*sure[0], *sure[1]} if sure[0].get(k) != sure[1].get(k)][:5]}"
                            f"{[k for k in both if left[k] != right[k]][:5]}")
        elif left != right:
            raise Wrong(f"{key} differs: {str(left)[:300]} and {str(right)[:300]}")


def make_template(lives):
    life = Life(lives, "", 0)
    life.folder, life.yard = f"{lives}/template", f"{lives}/template/yard"
    os.makedirs(life.folder)
    life.start("server")
    until = time.monotonic() + 20
    while not os.path.exists(f"{life.yard}/server.json") and time.monotonic() < until:
        time.sleep(0.02)
    run = lambda *words: subprocess.run([trainyard, *words, "--dir", life.yard], check=True, capture_output=True, text=True).stdout.strip()
    token, join = run("token", "create"), run("token", "create", "--join")
    run("dataset", "add", "digits", "--from", dataset)
    life.processes["server"].send_signal(signal.SIGTERM)
    life.processes["server"].wait(timeout=20)
    shutil.rmtree(f"{lives}/undisturbed")
    return {"yard": life.yard, "token": token, "join": join}


def one(lives, template, model, name, at):
    life = Life(lives, name, at)
    why = None
    try:
        life.live(template)
        if name and at == 1 and not os.path.exists(life.struck):
            raise Wrong("nobody passed it")
        result = life.found()
        if model:
            compare(model, result)
    except (Wrong, subprocess.TimeoutExpired, OSError, sqlite3.Error) as e:
        why = f"{type(e).__name__}: {e}"
    life.kill()
    with said:
        if why:
            print(f"FAIL failpoint_{life.title}: {why}\n  its log:\n", "".join("    " + line for line in open(f"{life.folder}/log", errors="replace").readlines()[-40:]), sep="", flush=True)
        else:
            hit = "" if os.path.exists(life.struck) or not name else ", not passed so often"
            print(f"ok failpoint_{life.title}  ({life.seconds:.1f} s{hit})", flush=True)
    if not why:
        shutil.rmtree(life.folder, ignore_errors=True)  # a database that is closed just now takes its -wal with it
        return result
    return None


def main():
    every = [(name, 1) for name in names()]
    if wanted == "all":
        chosen = every + [(name, at) for name, _ in every if name.startswith(OFTEN) for at in (2, 3, 7)]
    elif wanted.isdigit():
        seed = int(os.environ.get("SEED") or random.randrange(1000000))
        chosen = random.Random(seed).sample(every, int(wanted))
        print(f"  drawn with SEED={seed} of {len(every)}: {', '.join(name for name, _ in chosen)}")
    else:
        chosen = [(name, int(at or 1)) for name, _, at in (word.partition("@") for word in wanted.split(","))]
    lives = f"{work}/lives"
    os.makedirs(lives)
    template = make_template(lives)
    model = one(lives, template, None, "", 1)
    if not model:
        return 1
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda choice: one(lives, template, model, *choice), chosen))
    print(f"{len(results)} lives over {len({name for name, _ in chosen})} failpoints, {results.count(None)} failed", flush=True)
    return 1 if None in results else 0


sys.exit(main())
