"""More programs of one client: checkpoints of the old format, levels of tracing, callables, types, words of errors."""
from client import *

NEEDS = {"worker": 1}


@check
def checkpoint_of_the_old_format(c):
    v = variable("v", [2, 3], init=tf1.ones_initializer())
    w = variable("w", [4], resource=False, init=tf1.zeros_initializer())
    old = tf1.train.Saver(write_version=tf1.train.SaverDef.V1)
    with c.session() as s:
        s.run(tf1.global_variables_initializer())
        path = old.save(s, c.path("old"), write_meta_graph=False)
        true(os.path.exists(path) and not os.path.exists(path + ".index"), path)
        s.run([v.assign(v * 7), w.assign(w + 5)])
        old.restore(s, path)
        close(s.run(v), np.ones([2, 3]))
        close(s.run(w), np.zeros([4]))
    close(tf1.train.load_checkpoint(path).get_tensor("v"), np.ones([2, 3]))


@check
def only_a_full_trace_has_statistics(c):
    x = tf1.placeholder(tf.float32, [2, 2])
    y = tf.matmul(x, x, name="mm")
    with c.session() as s:
        for level in range(4):
            meta = tf1.RunMetadata()
            s.run(y, {x: np.eye(2)}, options=tf1.RunOptions(trace_level=level), run_metadata=meta)
            equal(any(n.node_name == "mm" for d in meta.step_stats.dev_stats for n in d.node_stats), level == tf1.RunOptions.FULL_TRACE)


@check
def every_type_there_and_back(c):
    with c.session() as s:
        for t in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64,
                  tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.qint8, tf.quint8, tf.qint32):
            x = tf1.placeholder(t, [None])
            value = np.array([1, 0, 1]).astype(t.as_numpy_dtype)
            got = s.run([tf.identity(x), tf.shape(x)], {x: value})
            true([str(v) for v in got[0]] == [str(v if t.name[0] != "q" else v[0]) for v in value], f"{t.name}: {got[0]}, want {value}")
            equal(got[1], [3])


@check
def partial_runs_and_their_errors(c):
    a, b, d = (tf1.placeholder(tf.float32, [], name=n) for n in "abd")
    r1 = tf.add(a, b, name="sum")
    r2 = r1 * d
    with c.session() as s:
        h = s.partial_run_setup([r1, r2], [a, b, d])
        close(s.partial_run(h, r1, {a: 1, b: 2}), 3)
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r1), "The fetch sum:0 has already been fetched.")
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r2, {a: 1, d: 2}), "The feed a:0 has already been fed.")
        close(s.partial_run(h, r2, {d: 17}), 51)
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r2, {d: 17}), "Must run PartialRunSetup before performing partial runs")
        h = s.partial_run_setup([r1, r2], [a, b])
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r2, {a: 1, b: 2}), "You must feed a value for placeholder tensor 'd'")
        h = s.partial_run_setup([r1], [a, b])
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r1, {a: 1}), "can't be computed from the feeds that have been fed so far.")
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r1, {d: 1}), "The feed d:0 was not specified in partial_run_setup.")


@check
def devices_of_feeds_are_refused(c):
    from tensorflow.core.protobuf import config_pb2
    tf1.placeholder(tf.float32, [2], name="x") + 1
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["add:0"])
    options.feed_devices["x:0"] = "/job:worker/task:0/device:CPU:0"
    with c.session() as s:
        raises(errors.UnimplementedError, lambda: s._make_callable_from_options(options), "not yet supported when using a remote session")


if __name__ == "__main__":
    main(NEEDS)
