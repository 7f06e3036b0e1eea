#!/usr/bin/env python3
"""platform.py BUILD - what the platform costs around the training.

Prints a line of JSON for each figure: memory of an idle server, a point query over REST (one client, kept
open), the time from submit to the first step's loss in the stream, 50 of 10,000 runs, newest first and by a metric, points
that a script reports, a chart of a million of them in 800 buckets (POINTS=N: of so many), and how many submits a second are
put on disk.  Starts a server of its own in a temporary folder and stops it by its process id.
"""
import http.client, json, os, shutil, signal, sqlite3, statistics, subprocess, sys, tempfile, time

build = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else "build")
trainyard = os.path.join(build, "trainyard")
folder = tempfile.mkdtemp(prefix="trainyard-bench-")
yard = os.path.join(folder, "yard")


def figure(name, value, unit):
    print(json.dumps({"case": name, "value": round(value, 3), "unit": unit}), flush=True)


def run(*words):
    return subprocess.run([trainyard, *words], check=True, capture_output=True, text=True).stdout


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


server = subprocess.Popen([trainyard, "serve", "--dir", yard, "--port", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
try:
    started = time.monotonic()
    address = server.stdout.readline().split()[1].removeprefix("http://")
    figure("server ready", 1000 * (time.monotonic() - started), "ms")
    time.sleep(1)
    figure("server idle, resident", resident_mib(server.pid), "MiB")

    digits = os.path.join(folder, "digits")
    run("dataset", "make", "digits", digits, "--train", "2000", "--test", "200")
    run("dataset", "add", "digits", "--from", digits, "--dir", yard)
    headers = {"Authorization": "Bearer " + run("token", "create", "--dir", yard).strip()}
    rest = http.client.HTTPConnection(address, timeout=30)

    def call(method, path, body=None):
        rest.request(method, path, body, {**headers, "Content-Type": "application/json"})
        answer = rest.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)

    spec = {"example": "digits-mlp", "name": "bench", "train": {"steps": 50}}
    waits = []
    for _ in range(5):
        submitted = time.monotonic()
        job = call("POST", "/api/v1/jobs", json.dumps(spec))
        stream = http.client.HTTPConnection(address, timeout=60)
        stream.request("GET", f"/api/v1/jobs/{job['number']}/events?topics=metrics", headers={**headers, "Last-Event-ID": "0"})
        answer = stream.getresponse()
        while b'"loss"' not in answer.readline():
            pass
        waits.append(1000 * (time.monotonic() - submitted))
        stream.close()
        while call("GET", f"/api/v1/jobs/{job['number']}")["state"] not in ("succeeded", "failed", "cancelled"):
            time.sleep(0.05)
    figure("submit to the first loss in the stream, median of 5", statistics.median(waits), "ms")

    times = []
    for _ in range(2000):
        asked = time.perf_counter()
        call("GET", "/api/v1/jobs/1")
        times.append(1e6 * (time.perf_counter() - asked))
    figure("REST point query, one client in Python, median", statistics.median(times), "us")
    figure("server after that, resident", resident_mib(server.pid), "MiB")
    server.send_signal(signal.SIGTERM)
    server.wait(20)

    # 9,995 more runs like the five, each with four metrics.
    with sqlite3.connect(os.path.join(yard, "control.db")) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(jobs)")]
        columns = ", ".join({"number": "n", "id": "'job_' || n", "idempotency_key": "NULL"}.get(name, name) for name in names)
        db.execute(f"WITH RECURSIVE r (n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM r WHERE n < 10000)"
                   f" INSERT INTO jobs ({', '.join(names)}) SELECT {columns} FROM r, jobs WHERE number = 5")
    with sqlite3.connect(os.path.join(yard, "metrics.db")) as db:
        db.execute("WITH RECURSIVE r (n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM r WHERE n < 10000), m (name) AS (VALUES"
                   " ('loss'), ('accuracy'), ('val_loss'), ('val_accuracy')) INSERT INTO series (job, role, idx, name, points_count,"
                   " last_step, last_wall_us, last_value) SELECT n, 'worker', 0, name, 50, 49, 1, (n * 7919) % 10007 / 1e4 FROM r, m")
    server = subprocess.Popen([trainyard, "serve", "--dir", yard, "--port", "0", "--no-agent"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    address = server.stdout.readline().split()[1].removeprefix("http://")
    rest = http.client.HTTPConnection(address, timeout=30)
    for name, order in (("newest first", ""), ("by a metric", "&order_by=metrics.loss")):
        times = []
        for _ in range(200):
            asked = time.perf_counter()
            assert len(call("GET", "/api/v1/jobs?limit=50" + order)["items"]) == 50
            times.append(1e3 * (time.perf_counter() - asked))
        times.sort()
        figure(f"50 of 10,000 runs {name}, median", times[100], "ms")
        figure(f"50 of 10,000 runs {name}, p99", times[197], "ms")
    # Points over REST, a million of them in batches, and one by one from several connections.
    points = int(os.environ.get("POINTS", "1000000"))
    asked, taken = time.perf_counter(), 0
    for first in range(0, points, 10000):
        body = json.dumps({"points": [{"step": n, "values": {"many": n * 7919 % 10007 / 1e4}} for n in range(first, first + 10000)]})
        sent = time.perf_counter()
        call("POST", "/api/v1/jobs/1/metrics", body)
        taken += time.perf_counter() - sent
    figure(f"{points:,} points over REST in batches of 10,000", points / taken, "1/s")
    times = []
    for _ in range(50):
        asked = time.perf_counter()
        series = call("GET", "/api/v1/jobs/1/metrics?names=many&buckets=800")["series"][0]
        times.append(1e3 * (time.perf_counter() - asked))
        assert 500 < len(series["steps"]) <= 800 and max(series["max"]) == 1.0006 and min(series["min"]) == 0
    times.sort()
    figure(f"chart of {points:,} points in 800 buckets, median", times[25], "ms")
    figure(f"chart of {points:,} points in 800 buckets, p99", times[48], "ms")
    token = headers["Authorization"].split()[1]
    point = os.path.join(folder, "point.json")
    with open(point, "w") as file:
        file.write('{"points": [{"step": @@@@@@@@, "values": {"single": 0.25}}]}')

    def load(connections, what, method, path, *file):
        subprocess.run([os.path.join(build, "bench/load"), address, token, str(connections), "5", what, method, path, *file], check=True)

    for connections in (1, 16, 64):
        load(connections, "points one by one over REST", "POST", "/api/v1/jobs/2/metrics", point)
    for connections in (1, 16):
        load(connections, "REST point query", "GET", "/api/v1/jobs/1")
    server.send_signal(signal.SIGTERM)
    server.wait(20)

    # Jobs that nothing can start are put on disk and answered; each group of connections fills commits together.
    server = subprocess.Popen([trainyard, "serve", "--dir", yard, "--port", "0", "--no-agent"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    address = server.stdout.readline().split()[1].removeprefix("http://")
    spec = os.path.join(folder, "spec.json")
    with open(spec, "w") as file:
        json.dump({"example": "digits-mlp", "name": "load"}, file)
    token = headers["Authorization"].split()[1]
    for connections in (1, 16, 64):
        subprocess.run([os.path.join(build, "bench/submits"), address, token, str(connections), "5", spec], check=True)
finally:
    server.send_signal(signal.SIGTERM)
    server.wait(20)
    shutil.rmtree(folder, ignore_errors=True)
