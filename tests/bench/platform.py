#!/usr/bin/env python3
"""platform.py BUILD [PART...] - what the platform costs around the training, a line of JSON for each figure.

Parts: idle (start, memory, sizes), first (from submit to the first loss), runs (50 of 10,000), points (over REST, charts),
queries, live (from a point to websocket clients), submits, jobs (programs), huge.  Starts servers of its own in a temporary folder and stops
them by their process ids.

POINTS=N        the chart is of so many points (1,000,000)
HUGE=FOLDER     part huge: a chart of 100,000,000, in a database that is made there once, which takes minutes and 4 GB
"""
import glob, http.client, json, os, shutil, signal, sqlite3, statistics, subprocess, sys, tempfile, time

build = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "build")
trainyard = os.path.join(build, "trainyard")
system = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../system")
folder = tempfile.mkdtemp(prefix="trainyard-bench-")
yard = os.path.join(folder, "yard")
FINAL = ("succeeded", "failed", "cancelled")


def figure(name, value, unit):
    print(json.dumps({"case": name, "value": round(value, 3), "unit": unit}), flush=True)


def run(*words):
    return subprocess.run([trainyard, *words], check=True, capture_output=True, text=True).stdout


class Server:
    def __init__(self, *options, folder=yard):
        started = time.monotonic()
        self.folder = folder
        self.process = subprocess.Popen([trainyard, "serve", "--dir", folder, "--port", "0", "--token-rate", "0", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().split()[1].removeprefix("http://")
        self.rest = http.client.HTTPConnection(self.address, timeout=30)
        self.token = ""
        self.call("GET", "/readyz")
        self.first_answer_ms = 1000 * (time.monotonic() - started)

    def __enter__(self):
        self.token = run("token", "create", "--dir", self.folder).strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    def headers(self):
        return {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"} if self.token else {}

    def call(self, method, path, body=None):
        """`body` is text, or what is to be made into text first."""
        self.rest.request(method, path, body if isinstance(body, str) or not body else json.dumps(body), self.headers())
        answer = self.rest.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def times(self, count, path, check=lambda answer: True):
        """The median and the 99th percentile of a query, in ms, this client included."""
        took = []
        for _ in range(count):
            asked = time.perf_counter()
            answer = self.call("GET", path)
            took.append(1e3 * (time.perf_counter() - asked))
            assert check(answer), answer
        took.sort()
        return took[count // 2], took[count * 99 // 100]

    def load(self, connections, what, method, path, *file):
        subprocess.run([os.path.join(build, "bench/load"), self.address, self.token, str(connections), "5", what, method, path,
                        *file], check=True)

    def live(self, job, clients, deaf, rate, seconds):
        subprocess.run([os.path.join(build, "bench/live"), self.address, self.token,
                        *map(str, (job, clients, deaf, rate, seconds, self.process.pid))], check=True)

    def end_of(self, job):
        while self.call("GET", f"/api/v1/jobs/{job}")["state"] not in FINAL:
            time.sleep(0.02)


def idle():
    stripped = os.path.join(folder, "program")
    subprocess.run(["strip", "-o", stripped, trainyard], check=True)
    figure("program trainyard with the page in it, stripped", os.path.getsize(stripped) / 1e6, "MB")
    for path in glob.glob(os.path.join(build, "*.deb")):
        figure("package " + os.path.basename(path), os.path.getsize(path) / 1e6, "MB")
    starts = []
    for _ in range(5):
        with Server() as server:
            starts.append(server.first_answer_ms)
            time.sleep(1)
            resident = server.resident_mib()
    figure("first answer after the start, median of 5", statistics.median(starts), "ms")
    figure("first answer after the start, the most of 5", max(starts), "ms")
    figure("server idle, resident", resident, "MiB")


def first():
    """Jobs 1 to 5 of the folder, which others build upon."""
    digits = os.path.join(folder, "digits")
    run("dataset", "make", "digits", digits, "--train", "2000", "--test", "200")
    run("dataset", "add", "digits", "--from", digits, "--dir", yard)
    waits = []
    with Server() as server:
        for _ in range(5):
            submitted = time.monotonic()
            job = server.call("POST", "/api/v1/jobs", {"example": "digits-mlp", "name": "bench", "train": {"steps": 50}})
            stream = http.client.HTTPConnection(server.address, timeout=60)
            stream.request("GET", f"/api/v1/jobs/{job['number']}/events?topics=metrics",
                           headers={**server.headers(), "Last-Event-ID": "0"})
            answer = stream.getresponse()
            while b'"loss"' not in answer.readline():
                pass
            waits.append(1000 * (time.monotonic() - submitted))
            stream.close()
            server.end_of(job["number"])
    figure("submit to the first loss in the stream, median of 5", statistics.median(waits), "ms")


def runs():
    """9,995 more runs like the five, each with four metrics."""
    first_jobs()
    with sqlite3.connect(os.path.join(yard, "control.db")) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(jobs)")]
        columns = ", ".join({"number": "n", "id": "'job_' || n", "idempotency_key": "NULL"}.get(name, name) for name in names)
        db.execute(f"WITH RECURSIVE r (n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM r WHERE n < 10000)"
                   f" INSERT INTO jobs ({', '.join(names)}) SELECT {columns} FROM r, jobs WHERE number = 5")
    with sqlite3.connect(os.path.join(yard, "metrics.db")) as db:
        db.execute("WITH RECURSIVE r (n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM r WHERE n < 10000), m (name) AS (VALUES"
                   " ('loss'), ('accuracy'), ('val_loss'), ('val_accuracy')) INSERT INTO series (job, role, idx, name, points_count,"
                   " last_step, last_wall_us, last_value) SELECT n, 'worker', 0, name, 50, 49, 1, (n * 7919) % 10007 / 1e4 FROM r, m")
    with Server("--no-agent") as server:
        for name, order in (("newest first", ""), ("by a metric", "&order_by=metrics.loss")):
            median, p99 = server.times(300, "/api/v1/jobs?limit=50" + order, lambda answer: len(answer["items"]) == 50)
            figure(f"50 of 10,000 runs {name}, median", median, "ms")
            figure(f"50 of 10,000 runs {name}, p99", p99, "ms")


def chart(server, job, points):
    def whole(answer):
        series = answer["series"][0]
        return 400 < len(series["steps"]) <= 800 and max(series["max"]) == 1.0006 and min(series["min"]) == 0

    median, p99 = server.times(100, f"/api/v1/jobs/{job}/metrics?names=many&buckets=800", whole)
    figure(f"chart of {points:,} points in 800 buckets, median", median, "ms")
    figure(f"chart of {points:,} points in 800 buckets, p99", p99, "ms")


def points():
    """A million of them in batches, and one by one from several connections."""
    first_jobs()
    count, taken = int(os.environ.get("POINTS", "1000000")), 0
    with Server("--no-agent") as server:
        for start in range(0, count, 10000):
            body = json.dumps({"points": [{"step": n, "values": {"many": n * 7919 % 10007 / 1e4}} for n in range(start, start + 10000)]})
            sent = time.perf_counter()
            server.call("POST", "/api/v1/jobs/1/metrics", body)
            taken += time.perf_counter() - sent
        figure(f"{count:,} points over REST in batches of 10,000", count / taken, "1/s")
        chart(server, 1, count)
        point = os.path.join(folder, "point.json")
        with open(point, "w") as file:
            file.write('{"points": [{"step": @@@@@@@@, "values": {"single": 0.25}}]}')
        for connections in (1, 16, 64):
            server.load(connections, "points one by one over REST", "POST", "/api/v1/jobs/2/metrics", point)


def queries():
    first_jobs()
    with Server("--no-agent") as server:
        median, _ = server.times(2000, "/api/v1/jobs/1")
        figure("REST point query, one client in Python, median", 1000 * median, "us")
        for connections in (1, 4, 16, 64):
            server.load(connections, "REST point query", "GET", "/api/v1/jobs/1")


WRITER = """import sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, {!r})
import events_write as w
file = w.opened()
for step in range(400):
    w.record(file, w.event(step, w.v1(b"loss", 1 / (step + 1))))
    time.sleep(0.025)
"""


def live():
    with Server() as server:
        job = server.call("POST", "/api/v1/jobs", {"name": "writer", "command": ["python3", "-c", WRITER.format(system)]})
        server.live(job["number"], 1, 0, 0, 10)
        server.end_of(job["number"])
        server.live(job["number"], 1, 0, 20, 10)
        server.live(job["number"], 1000, 50, 20, 20)


def submits():
    """Jobs that nothing can start are put on disk and answered; connections fill commits together."""
    first_jobs()
    spec = os.path.join(folder, "spec.json")
    with open(spec, "w") as file:
        json.dump({"example": "digits-mlp", "name": "load"}, file)
    with Server("--no-agent") as server:
        for connections in (1, 16, 64):
            server.load(connections, "submits", "POST", "/api/v1/jobs", spec)


def array(server, spec, count):
    """So many jobs of one spec: the number of the first."""
    spec = {**spec, "array": {"/notes": [str(n) for n in range(count)]}}
    return server.call("POST", "/api/v1/jobs", spec)["number"]


def ended(place, first, count):
    with sqlite3.connect(os.path.join(place, "control.db"), timeout=20) as db:
        return db.execute("SELECT count(*), min(created_us), max(ended_us) FROM jobs WHERE number >= ? AND number < ?"
                          " AND ended_us > 0", (first, first + count)).fetchone()


def jobs():
    """Programs: to the first line, very many short ones, and from one that ends to the next."""
    place = os.path.join(folder, "programs")  # where none of the thousands that were submitted for nobody waits
    with Server("--cpus", "8", folder=place) as server:
        waits = []
        for _ in range(50):
            submitted = time.monotonic()
            job = server.call("POST", "/api/v1/jobs", {"command": ["echo", "first line"]})["number"]
            stream = http.client.HTTPConnection(server.address, timeout=60)
            stream.request("GET", f"/api/v1/jobs/{job}/events?topics=logs", headers={**server.headers(), "Last-Event-ID": "0"})
            answer = stream.getresponse()
            while b"first line" not in answer.readline():
                pass
            waits.append(1000 * (time.monotonic() - submitted))
            stream.close()
            server.end_of(job)
        waits.sort()
        figure("submit to the first line of a program in the stream, median of 50", waits[25], "ms")
        figure("submit to the first line of a program in the stream, p98", waits[48], "ms")
        count = 1000
        first = array(server, {"command": ["true"]}, count)
        while ended(place, first, count)[0] < count:
            time.sleep(0.1)
        _, begin, end = ended(place, first, count)
        figure(f"{count:,} short jobs on 8 CPUs, from submit to the last end", count / (end - begin) * 1e6, "1/s")
    # One place; the next job's line against the last one's end, by the clock of the machine.
    with Server("--cpus", "1", folder=place) as server:
        first = array(server, {"command": ["date", "+%s%N"]}, 1000)
        array(server, {"command": ["date", "+%s%N"]}, 100)
        while ended(place, first, 1100)[0] < 100:
            time.sleep(0.1)
        with sqlite3.connect(os.path.join(place, "control.db"), timeout=20) as db:
            rows = db.execute("SELECT job, ended_us FROM tasks WHERE job >= ? AND ended_us > 0 ORDER BY ended_us LIMIT 100",
                              (first,)).fetchall()
        lines = [int(server.call("GET", f"/api/v1/jobs/{job}/logs?task=worker/0&stream=stdout&offset=0").split()[0]) / 1000 for job, _ in rows]
        gaps = sorted((line - end) / 1000 for line, (_, end) in zip(lines[1:], rows))
        figure("a slot freed to the next program's line, 1,000 waiting, median of 99", gaps[49], "ms")
        figure("a slot freed to the next program's line, 1,000 waiting, p98", gaps[96], "ms")


def huge():
    where = os.environ.get("HUGE")
    if not where:
        print("chart of 100,000,000 points: left out; HUGE=FOLDER makes them there", file=sys.stderr)
        return
    count, done = 100_000_000, os.path.join(where, "done")
    if not os.path.exists(done):
        with Server("--no-agent", folder=where):
            run("run", "--detach", "--dir", where, "--", "true")
        subprocess.run([os.path.join(build, "bench/points"), where, "1", "many", str(count)], check=True)
        open(done, "w").close()
    with Server("--no-agent", folder=where) as server:
        figure(f"first answer after the start, over {count:,} points", server.first_answer_ms, "ms")
        chart(server, 1, count)


def first_jobs():
    if not os.path.exists(os.path.join(yard, "datasets")):
        first()


PARTS = (idle, first, runs, points, queries, live, submits, jobs, huge)
try:
    for part in PARTS:
        if not sys.argv[2:] or part.__name__ in sys.argv[2:]:
            part()
finally:
    shutil.rmtree(folder, ignore_errors=True)
