"""collectives.py BUILD - collectives of TensorFlow's clients on our tasks, alone and among TensorFlow's servers.

Reduce, gather and broadcast in both forms, over two and three tasks of all mixtures, in one graph and in a graph for
each worker (with masters of their own, which must meet in the same step).  Every answer is NumPy's.
"""
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import collective_ops as co

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from free_port import free_port

v1 = tf.compat.v1
LEADER = "/job:worker/replica:0/task:0"
passed, failed = 0, []
keys = itertools.count(1)


class Cluster:
    """Workers of these kinds: "t" TensorFlow's server in this process, "o" ours."""

    def __init__(self, kinds, build, job="worker", *options):
        self.size = len(kinds)
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(self.size)]
        cluster = {job: self.addresses}
        config = v1.ConfigProto()
        config.experimental.collective_group_leader = LEADER
        self.processes, self.servers = [], []
        for task, kind in enumerate(kinds):
            if kind == "t":  # in-process servers are never stopped: TensorFlow cannot
                self.servers.append(tf.distribute.Server(cluster, "worker", task, config=config))
            else:
                self.processes.append(subprocess.Popen(
                    [f"{build}/trainyard-task", "--insecure", "--cluster", json.dumps(cluster), "--job", job,
                     "--task", str(task), *options], stdout=subprocess.DEVNULL))
        for address in self.addresses:
            self.wait(address)

    @staticmethod
    def wait(address):
        end = time.monotonic() + 20
        host, port = address.split(":")
        while time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"nobody listens at {address}")

    def session(self, task=0, alone=False):
        config = v1.ConfigProto(operation_timeout_in_ms=60000)
        if alone:
            config.device_filters.append(f"/job:worker/task:{task}")
        return v1.Session("grpc://" + self.addresses[task], config=config)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def group_key(cluster):
    return cluster.size  # a group never changes


def everywhere(cluster, make):
    """make(task) at each task, in one graph."""
    out = []
    for task in range(cluster.size):
        with tf.device(f"/job:worker/task:{task}/cpu:0"):
            out.append(make(task))
    return out


def run_all(cluster, make, times=2):
    with tf.Graph().as_default():
        out = everywhere(cluster, make)
        with cluster.session() as session:
            return [session.run(out) for _ in range(times)]


def values(task, shape, dtype):
    rng = np.random.default_rng([task, *shape])
    return rng.integers(1, 5, shape).astype(dtype)


def same(got, want):
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=2e-2 if
                               got.dtype in (np.float16, tf.bfloat16.as_numpy_dtype) else 1e-6)
    assert got.shape == want.shape, (got.shape, want.shape)


MERGES = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}


def reductions(c):
    for n, (dtype, shape, merge) in enumerate(itertools.product(
            ("float32", "float64", "int32", "int64", "float16"), ((), (1,), (3,), (7, 5), (100,), (0, 4)), MERGES)):
        final = "Div" if merge == "Add" and n % 2 and shape != (0, 4) else "Id"
        all_values = [values(t, shape, dtype) for t in range(c.size)]
        want = all_values[0]
        for v in all_values[1:]:
            want = MERGES[merge](want, v)
        if final == "Div":
            want = want // c.size if dtype.startswith("int") else want / c.size
        key = next(keys)
        if shape == (0, 4):  # TensorFlow's have no chunk for it
            continue
        for got in run_all(c, lambda t: co.all_reduce(tf.constant(all_values[t]), c.size, group_key(c), key, merge, final), 1):
            for g in got:
                same(g, want)


def reductions_v2(c):
    """From 4 MB a chunk on there are several rings, if so asked."""
    for count, rings in ((5, -1), (1000, 0), (5 << 20, 2)):
        key = next(keys)

        def make(t):
            x = tf.reshape(tf.range(count, dtype=tf.float32) % 7 + t, [-1, 5])
            return tf.raw_ops.CollectiveReduceV2(
                input=x, group_size=c.size, group_key=group_key(c), instance_key=key, ordering_token=[],
                merge_op="Add", final_op="Id", max_subdivs_per_device=rings)
        each = (np.arange(count, dtype=np.float32) % 7).reshape([-1, 5])
        for got in run_all(c, make, 1):
            for g in got:
                same(g, each * c.size + sum(range(c.size)))


def gathers(c):
    for shape in ((1,), (3,), (2, 5), (4000, 2)):
        for form in (1, 2):
            key = next(keys)
            all_values = [values(t, shape, "int64") for t in range(c.size)]

            def make(t):
                x = tf.constant(all_values[t])
                if form == 1:
                    return co.all_gather(x, c.size, group_key(c), key)
                return co.all_gather_v2(x, c.size, group_key(c), key)
            for got in run_all(c, make):
                for g in got:
                    same(g, np.concatenate(all_values))


def broadcasts(c):
    for source in range(c.size):
        for form in (1, 2):
            for dtype in ("float32", "int32", "bool"):
                key = next(keys)
                value = values(source, (4, 3), "int32").astype(dtype)

                def make(t):
                    if t == source and form == 1:
                        return co.broadcast_send(tf.constant(value), value.shape, tf.as_dtype(dtype), c.size, group_key(c), key)
                    if t == source:
                        return co.broadcast_send_v2(tf.constant(value), c.size, group_key(c), key)
                    if form == 1:
                        return co.broadcast_recv(value.shape, tf.as_dtype(dtype), c.size, group_key(c), key)
                    return co.broadcast_recv_v2(value.shape, tf.as_dtype(dtype), c.size, group_key(c), key)
                for got in run_all(c, make):
                    for g in got:
                        same(g, value)


def a_graph_for_each_worker(c):
    """Each has a client of its own, and they meet in the same steps."""
    key, steps = next(keys), 5
    out, errors = [None] * c.size, []

    def work(task):
        try:
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}/cpu:0"):
                x = v1.placeholder(tf.float32, [6])
                y = co.all_reduce(x, c.size, group_key(c), key, "Add", "Id")
                with c.session(task, alone=True) as session:
                    out[task] = [session.run(y, {x: np.full(6, (task + 1) * 10 ** k)}) for k in range(steps)]
        except Exception as error:  # noqa: BLE001
            errors.append(f"task {task}: {error}")
    threads = [threading.Thread(target=work, args=[t]) for t in range(c.size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    for got in out:
        for k in range(steps):
            same(got[k], np.full(6, sum(range(1, c.size + 1)) * 10.0 ** k, np.float32))


def in_a_loop(c):
    """An instance in each iteration of one loop over all tasks."""
    key = next(keys)

    def body(i, *xs):
        out = []
        for task, x in enumerate(xs):
            with tf.device(f"/job:worker/task:{task}/cpu:0"):
                out.append(co.all_reduce(x, c.size, group_key(c), key, "Add", "Id"))
        return [i + 1] + out
    with tf.Graph().as_default():
        start = everywhere(c, lambda t: tf.constant([1.0, 2.0]) * (t + 1))
        v1.disable_control_flow_v2()
        out = v1.while_loop(lambda i, *_: i < 3, body, [tf.constant(0), *start])[1:]
        with c.session() as session:
            got = session.run(out)
    first = sum(np.array([1.0, 2.0]) * (t + 1) for t in range(c.size))
    for g in got:
        same(g, (first * c.size * c.size).astype(np.float32))


def members_that_do_not_agree(c):
    """An error, and the cluster goes on."""
    key = 1000 + next(keys)
    try:
        run_all(c, lambda t: co.all_reduce(tf.constant([1.0]), c.size + t, key, key, "Add", "Id"))
    except tf.errors.InternalError as error:
        assert "group_size" in str(error), error
    else:
        raise AssertionError("no error")


def leaders(build):
    """The leader of a cluster that has neither chief nor worker, and one that is named."""
    for options in ((), ("--collective-leader", "/job:trainer/replica:0/task:1")):
        cluster = Cluster("oo", build, "trainer", *options)
        try:
            with tf.Graph().as_default():
                out = []
                for task in range(2):
                    with tf.device(f"/job:trainer/task:{task}/cpu:0"):
                        out.append(co.all_reduce(tf.constant([1.0 + task]), 2, 2, 1, "Add", "Id"))
                with cluster.session() as session:
                    for g in session.run(out):
                        same(g, np.array([3.0], np.float32))
        finally:
            cluster.stop()


CHECKS = [reductions, reductions_v2, gathers, broadcasts, in_a_loop, a_graph_for_each_worker]


def main():
    global passed
    build = sys.argv[1]
    mixtures = sys.argv[2:] or ["oo", "ot", "to", "ooo", "oto", "too", "tot"]
    for kinds in mixtures:
        cluster = Cluster(kinds, build)
        try:
            for check in CHECKS + ([members_that_do_not_agree] if kinds == "oo" else []):
                try:
                    check(cluster)
                    passed += 1
                except Exception as error:  # noqa: BLE001
                    failed.append(f"{kinds}: {check.__name__}: {type(error).__name__}: {str(error)[:600]}")
                    print("FAIL", failed[-1], flush=True)
        finally:
            cluster.stop()
        print(f"{kinds}: done", flush=True)
    try:
        leaders(build)
        passed += 1
    except Exception as error:  # noqa: BLE001
        failed.append(f"leaders: {type(error).__name__}: {str(error)[:600]}")
        print("FAIL", failed[-1], flush=True)
    print(f"{passed} passed, {len(failed)} failed")
    sys.stdout.flush()
    os._exit(1 if failed else 0)


main()
