#!/usr/bin/env python3
"""cluster/main.py BUILD [PEERS] - what training over several tasks costs, TensorFlow's servers beside ours.

Both kinds of servers are driven by the same stock TensorFlow client, which PEERS, a virtual environment, has; they run
one after the other on loopback.  Without PEERS nothing is measured.  BUILD/bench/cluster.json keeps every figure.
"""
import json
import os
import select
import socket
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from free_port import free_port

PARAMETERS = (3200, 3125)
SIZES = (1, 1024, 262144, 16777216)
KINDS = ("trainyard", "tensorflow")
ME = os.path.abspath(__file__)


def emit(**row):
    print(json.dumps({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}), flush=True)


def median(call, seconds, least=5):
    for _ in range(3):
        call()
    taken, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(taken) < least:
        at = time.perf_counter()
        call()
        taken.append(time.perf_counter() - at)
    taken.sort()
    return taken[len(taken) // 2], taken[len(taken) // 10]


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024


# --- servers ---


class Cluster:
    """Tasks on loopback: `jobs` says how many of each, `kind` whose they are."""

    def __init__(self, build, kind, **jobs):
        self.spec = {job: [f"127.0.0.1:{free_port()}" for _ in range(n)] for job, n in jobs.items()}
        self.tasks = {}
        for job, addresses in self.spec.items():
            for index in range(len(addresses)):
                self.tasks[job, index] = self.start(build, kind, job, index)
        for _, addresses in self.spec.items():
            for address in addresses:
                self.wait_for(address)

    def start(self, build, kind, job, index):
        spec = json.dumps(self.spec)
        ours = [os.path.join(build, "trainyard-task"), "--insecure", "--cluster", spec, "--job", job, "--task", str(index)]
        command = ours if kind == "trainyard" else [sys.executable, ME, "--serve", spec, job, str(index)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait_for(self, address):
        host, port = address.split(":")
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def target(self, job, index=0):
        return "grpc://" + self.spec[job][index]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for task in self.tasks.values():
            task.kill()
            task.wait()


def serve(spec, job, index):
    import tensorflow as tf

    server = tf.compat.v1.train.Server(tf.compat.v1.train.ClusterSpec(json.loads(spec)), job_name=job, task_index=int(index))
    sys.stdin.read()
    del server
    os._exit(0)


# --- cases; each with TensorFlow's client ---


def plain_config(tf1):
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def empty_steps(tf, build, kind):
    import numpy as np

    tf1 = tf.compat.v1
    with Cluster(build, kind, worker=1) as cluster, tf.Graph().as_default() as graph:
        time.sleep(0.5)
        emit(what="idle task", server=kind, rss_mb=resident(cluster.tasks["worker", 0].pid)[0])
        nothing = tf.no_op()
        fed = tf1.placeholder(tf.float32, ())
        added = fed + 1.0
        large = tf1.placeholder(tf.float32, (100, 784))
        taken = tf.group(tf.identity(large))
        batch = np.zeros((100, 784), "f")
        with tf1.Session(cluster.target("worker"), graph=graph) as session:
            for call, run in (
                ("run(no_op)", lambda: session.run(nothing)),
                ("run(add), 1 feed, 1 fetch", lambda: session.run(added, {fed: 1.0})),
                ("run(identity), 100x784 fed", lambda: session.run(taken, {large: batch})),
            ):
                middle, low = median(run, 1)
                emit(what="empty step", server=kind, call=call, us=middle * 1e6, us_p10=low * 1e6)


def transfers(tf, build, kind):
    """Steps on a worker that read a variable of a parameter server."""
    tf1 = tf.compat.v1
    with Cluster(build, kind, ps=1, worker=1) as cluster:
        for count in SIZES:
            with tf.Graph().as_default() as graph:
                with tf.device("/job:ps/task:0"):
                    there = tf1.get_variable(f"v{count}", initializer=tf.zeros([count]), use_resource=False)
                    near = tf.group(tf.identity(there))
                with tf.device("/job:worker/task:0"):
                    read = tf.group(tf.identity(there))
                with tf1.Session(cluster.target("worker"), graph=graph, config=plain_config(tf1)) as session:
                    session.run(tf1.global_variables_initializer())
                    without, _ = median(lambda: session.run(near), 0.5)
                    middle, low = median(lambda: session.run(read), 2 if count > 1e6 else 1)
            emit(what="transfer", server=kind, bytes=4 * count, us=middle * 1e6, us_p10=low * 1e6,
                 us_without=without * 1e6, GBps=4 * count / middle / 1e9, GBps_p10=4 * count / low / 1e9)
        for (job, _), task in cluster.tasks.items():
            emit(what="after 64 MB transfers", server=kind, job=job, peak_mb=resident(task.pid)[1])


def raw_tcp():
    """The same 64 MB by send and recv, from one process to another, memory to memory."""
    size = 4 * SIZES[-1]
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        peer, _ = listener.accept()
        content = bytearray(size)
        while peer.recv(1):
            peer.sendall(content)
        os._exit(0)
    with socket.create_connection(listener.getsockname()) as peer:
        into = memoryview(bytearray(size))

        def copy():
            peer.send(b"?")
            got = 0
            while got < size:
                got += peer.recv_into(into[got:])

        middle, low = median(copy, 1.5)
    os.waitpid(child, 0)
    emit(what="raw TCP", bytes=size, GBps=size / middle / 1e9, GBps_p10=size / low / 1e9)


def train(spec, index, mode, seconds):
    """One worker of the parameter-server case: trains while its peer does, and says how fast."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    spec, index = json.loads(spec), int(index)
    with tf.Graph().as_default() as graph:
        with tf1.device(tf1.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=tf1.train.ClusterSpec(spec))):
            weights = tf1.get_variable("w", initializer=tf.zeros(PARAMETERS), use_resource=False)
            step = tf1.train.get_or_create_global_step()
            inputs = tf1.get_variable(f"x{index}", initializer=tf.ones([8, PARAMETERS[0]]), trainable=False,
                                      collections=[tf1.GraphKeys.LOCAL_VARIABLES])
            loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - 1.0))
            optimizer, hooks = tf1.train.GradientDescentOptimizer(0.01), []
            if mode == "sync":
                optimizer = tf1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
                hooks = [optimizer.make_session_run_hook(index == 0)]
            minimize = optimizer.minimize(loss, global_step=step)
        with tf1.train.MonitoredTrainingSession("grpc://" + spec["worker"][index], is_chief=index == 0, hooks=hooks,
                                                log_step_count_steps=None, save_checkpoint_secs=None, save_summaries_steps=None) as session:
            for _ in range(5):
                session.run(minimize)
            print("ready", flush=True)
            # In sync mode the other may still wait for gradients of this one.
            while not select.select([sys.stdin], [], [], 0)[0]:
                session.run(minimize)
            sys.stdin.readline()
            count, start = int(float(seconds) * 10), time.perf_counter()
            for _ in range(count):
                session.run(minimize)
            print(json.dumps({"steps_per_s": count / (time.perf_counter() - start)}), flush=True)
            # On until it is killed: the other is measured still, and in sync mode waits for this one's gradients, of
            # which some may have been dropped as stale.
            while True:
                session.run(minimize)


def parameter_server(build, kind, mode):
    with Cluster(build, kind, ps=1, worker=2) as cluster:
        command = [sys.executable, ME, "--train", json.dumps(cluster.spec)]
        workers = [subprocess.Popen([*command, str(i), mode, "8"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True) for i in range(2)]
        ready = [w.stdout.readline() for w in workers]
        for worker in workers:
            if all(ready):
                worker.stdin.write("go\n")
                worker.stdin.flush()
        rates = [json.loads(w.stdout.readline() or "{}").get("steps_per_s", 0.0) for w in workers]
        rss = {job: resident(cluster.tasks[job, 0].pid)[1] for job in ("ps", "worker")}
        for worker in workers:
            worker.kill()
            worker.wait()
    emit(what="parameter server", server=kind, mode=mode, worker_steps_per_s=sum(rates), ps_peak_mb=rss["ps"], worker_peak_mb=rss["worker"])


def measure(build, cases):
    import tensorflow as tf

    for case in cases:
        for kind in KINDS:
            if case == "empty":
                empty_steps(tf, build, kind)
            elif case == "transfer":
                raw_tcp()
                transfers(tf, build, kind)
            else:
                parameter_server(build, kind, case)


# --- the table ---


def find(rows, key, best=min, **wanted):
    values = [r[key] for r in rows if key in r and all(r.get(k) == v for k, v in wanted.items())]
    return best(values) if values else None


def table(rows):
    """Rows of name, ours, TensorFlow's, goal (of ours, or a ratio to TensorFlow's), whether less is better."""
    def both(key, **wanted):
        return [find(rows, key, server=kind, **wanted) for kind in KINDS]

    raw = find(rows, "GBps", max, what="raw TCP")
    out = [(f"{call}, us", *both("us", what="empty step", call=call), goal, True)
           for call, goal in (("run(no_op)", 200), ("run(add), 1 feed, 1 fetch", None), ("run(identity), 100x784 fed", None))]
    out += [(f"step with a transfer of {name}, us", *both("us", what="transfer", bytes=size), goal, True)
            for name, size, goal in (("4 B", 4, 300), ("4 KB", 4096, None), ("1 MB", 1 << 20, None), ("64 MB", 64 << 20, None))]
    if raw:
        rates = both("GBps", what="transfer", bytes=64 << 20)
        out.append((f"64 MB, of raw TCP's {raw:.3g} GB/s", *(r and r / raw for r in rates), 0.8, False))
    for mode, peer in (("async", 10.7), ("sync", 15.9)):
        ours, theirs = both("worker_steps_per_s", what="parameter server", mode=mode)
        out.append((f"parameter server, {mode}, worker steps/s", ours, theirs, 3 * (theirs or peer), False))
        out.append((f"its memory, {mode}, MB", *both("ps_peak_mb", what="parameter server", mode=mode), 150, True))
    out.append(("idle task, MB", *both("rss_mb", what="idle task"), 20, True))
    return out


def show(rows):
    print(f"{'cluster':42} {'Trainyard':>10} {'TensorFlow':>10} {'ratio':>7} {'goal':>6}")
    for name, ours, theirs, goal, less in table(rows):
        if ours is None:
            continue
        ratio = (theirs / ours if less else ours / theirs) if theirs and ours else None
        met = goal is None or (ours <= goal if less else ours >= goal)
        print(f"{name:42} {ours:10.4g} {f'{theirs:10.4g}' if theirs else '-':>10} {f'{ratio:6.1f}x' if ratio else '-':>7} "
              f"{f'{goal:6.3g}' if goal else '-':>6}{'' if met else '  missed'}")


def main():
    mode = sys.argv[1:2]
    if mode == ["--serve"]:
        return serve(*sys.argv[2:5])
    if mode == ["--train"]:
        return train(*sys.argv[2:6])
    if mode == ["--measure"]:
        return measure(sys.argv[2], sys.argv[3:])
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    python = os.path.join(sys.argv[2], "bin", "python") if len(sys.argv) > 2 else None
    cases = sys.argv[3:] or ["empty", "transfer", "async", "sync"]
    if not python or not os.path.exists(python) or subprocess.run([python, "-c", "import tensorflow"], capture_output=True).returncode:
        print("cluster: left out, as it needs a stock TensorFlow client: PEERS=FOLDER with one")
        return None
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    out = subprocess.run([python, ME, "--measure", build, *cases], stdout=subprocess.PIPE, text=True, timeout=1200)
    rows = [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]
    show(rows)
    os.makedirs(os.path.join(build, "bench"), exist_ok=True)
    with open(os.path.join(build, "bench", "cluster.json"), "w") as kept:
        json.dump({"rows": rows, "load": os.getloadavg()[0]}, kept, indent=1)
    return out.returncode


if __name__ == "__main__":
    sys.exit(main())
