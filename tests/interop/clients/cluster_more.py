"""More programs over a cluster: partial runs, callables, partitioned variables, sharded savers, iterators, tables, traces, limits."""
import json

from client import *
from tensorflow.core.protobuf import config_pb2

NEEDS = {"ps": 2, "worker": 2}


@check
def partial_run_over_tasks(c):
    a, b, d = (tf1.placeholder(tf.float32, [], name=n) for n in "abd")
    with tf1.device("/job:worker/task:1"):
        r1 = a + b
    with tf1.device("/job:ps/task:1"):
        r2 = r1 * d
    with c.session() as s:
        for k in range(3):
            h = s.partial_run_setup([r1, r2], [a, b, d])
            close(s.partial_run(h, r1, {a: 1, b: 2 + k}), 3 + k)
            close(s.partial_run(h, r2, {d: 17}), 17 * (3 + k))
        h = s.partial_run_setup([r1, r2], [a, b, d])
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, r2, {a: 1, b: 2}))


@check
def callable_over_tasks(c):
    x, z = tf1.placeholder(tf.float32, [2], name="x"), tf1.placeholder(tf.float32, [2], name="z")
    with tf1.device("/job:ps/task:1"):
        y = tf.add(x, z, name="y")
    with tf1.device("/job:worker/task:1"):
        d = tf.multiply(y, 2.0, name="d")
    with c.session() as s:
        f = s._make_callable_from_options(config_pb2.CallableOptions(feed=["x:0", "z:0"], fetch=["d:0", "y:0"]))
        for k in range(3):
            got = f(np.array([1, 2], np.float32), np.array([3, k], np.float32))
            close(got[0], [8, 2 * (2 + k)])
            close(got[1], [4, 2 + k])
        raises(errors.NotFoundError, lambda: s._make_callable_from_options(config_pb2.CallableOptions(fetch=["nowhere:0"])))


@check
def what_has_no_device_is_at_the_client_s_task(c):
    for job, task in (("worker", 0), ("worker", 1), ("ps", 1)):
        with tf.Graph().as_default():
            x = tf1.placeholder(tf.float32, [])
            v = variable(c.unique(), [], True)
            free = tf.add(x, v, name="free")
            with tf1.device("/job:worker"):
                any_worker = tf.multiply(free, 2.0, name="any_worker")
            with tf1.device("/job:ps"):
                any_ps = tf.multiply(free, 3.0, name="any_ps")
            meta = tf1.RunMetadata()
            with c.session(target=c.master(job, task)) as s:
                s.run(v.initializer)
                s.run([any_worker, any_ps], {x: 1}, options=tf1.RunOptions(output_partition_graphs=True), run_metadata=meta)
            at = {n.name: n.device.split("/device:")[0] for g in meta.partition_graphs for n in g.node}
            home = f"/job:{job}/replica:0/task:{task}"
            equal(at["free"], home)
            equal(at[v.op.name], home)
            equal(at["any_worker"], home if job == "worker" else "/job:worker/replica:0/task:0")
            equal(at["any_ps"], home if job == "ps" else "/job:ps/replica:0/task:0")


@check
def connected_callable(c):
    x = tf1.placeholder(tf.float32, [2], name="x")
    with tf1.device("/job:ps/task:1"):
        mid = tf.identity(x, name="mid")
        tf.add(x, 1.0, name="w")
    with tf1.device("/job:worker/task:1"):
        tf.multiply(mid, 3.0, name="z")
    value = np.array([1, 2], np.float32)

    def make(s, start, to):
        options = config_pb2.CallableOptions(feed=["x:0"], fetch=["z:0"])
        options.tensor_connection.add(from_tensor=start, to_tensor=to)
        return s._make_callable_from_options(options)
    with c.session() as s:
        close(make(s, "w:0", "mid:0")(value)[0], [6, 9])
        raises(errors.InvalidArgumentError, lambda: make(s, "w:0", "x:0"), 'Endpoint "x:0" fed more than once.')
        raises(errors.InvalidArgumentError, lambda: make(s, "z:0", "mid:0"), 'between nodes "mid" and "z" would create a cycle')
        raises(errors.InvalidArgumentError, lambda: make(s, "nope:0", "mid:0"), "Requested tensor connection from unknown node")
        raises(errors.NotFoundError, lambda: make(s, "w:0", "nope:0"))


@check
def partial_run_with_a_feed_too_few(c):
    a, b = tf1.placeholder(tf.float32, [], name="a"), tf1.placeholder(tf.float32, [], name="b")
    with tf1.device("/job:worker/task:1"):
        y = a + b
    with c.session() as s:
        h = s.partial_run_setup([y], [a])
        raises(errors.InvalidArgumentError, lambda: s.partial_run(h, y, {a: 1}), "You must feed a value for placeholder tensor 'b'")


@check
def lists_and_optionals_cross_tasks(c):
    x = tf1.placeholder(tf.float32, [2])
    raw = tf.raw_ops
    with tf1.device("/job:ps/task:0"):
        some = raw.EmptyTensorList(element_shape=[2], max_num_elements=5, element_dtype=tf.float32)
        some = raw.TensorListPushBack(input_handle=some, tensor=x)
        few = raw.TensorListReserve(element_shape=tf.constant(-1), num_elements=3, element_dtype=tf.string)
        few = raw.TensorListSetItem(input_handle=few, index=1, item=["a", "bc"])
        maybe = raw.OptionalFromValue(components=[x, tf.constant("text")])
    with tf1.device("/job:worker/task:1"):
        some = raw.TensorListPushBack(input_handle=some, tensor=x * 2)
        text = raw.TensorListGetItem(input_handle=few, index=1, element_shape=tf.constant(-1), element_dtype=tf.string)
        count = raw.TensorListLength(input_handle=few)
        value = raw.OptionalGetValue(optional=maybe, output_types=[tf.float32, tf.string], output_shapes=[[2], []])
    with tf1.device("/job:worker/task:0"):
        stacked = raw.TensorListStack(input_handle=some, element_shape=[2], element_dtype=tf.float32)
    with c.session() as s:
        for k in range(3):
            got = s.run([stacked, text, count, value], {x: [1, k]})
            close(got[0], [[1, k], [2, 2 * k]])
            equal(got[1], np.array([b"a", b"bc"], object))
            equal(got[2], 3)
            close(got[3][0], [1, k])


@check
def gradient_of_a_functional_loop_over_tasks(c):
    with control_flow(True):
        x, n = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.int32, [])

        def body(i, y):
            with tf1.device("/job:ps/task:0"):
                z = y * x
            with tf1.device("/job:worker/task:1"):
                return i + 1, z + y
        with tf1.device("/job:worker/task:0"):
            _, y = tf1.while_loop(lambda i, _: i < n, body, [0, x])
            g = tf.gradients(y, x)[0]
        with c.session() as s:
            for k in (0, 1, 4):  # x (x + 1)^k
                got = s.run([y, g], {x: 2, n: k})
                close(got, [2 * 3.0 ** k, 3.0 ** k + 2 * k * 3.0 ** (k - 1)])


@check
def gradient_of_a_branch_in_a_loop_over_tasks(c):
    with control_flow(False):
        x, n = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.int32, [])

        def body(i, y):
            with tf1.device("/job:worker/task:1"):
                return i + 1, tf1.cond(tf.equal(i % 2, 0), lambda: y + 1, lambda: y * x)
        with tf1.device("/job:worker/task:0"):
            _, y = tf1.while_loop(lambda i, _: i < n, body, [0, x])
        g = tf1.gradients(y, x)[0]
        with c.session() as s:
            for k, want in ((0, [2, 1]), (1, [3, 1]), (3, [7, 5])):  # x, x + 1, (x + 1) x + 1
                close(s.run([y, g], {x: 2, n: k}), want)


@check
def an_error_beside_what_waits_on_other_tasks(c):
    x = tf1.placeholder(tf.float32, [])
    with tf1.device("/job:worker/task:0"):
        bad = tf.debugging.check_numerics(x, "no number", name="bad")
    with tf1.device("/job:ps/task:1"):
        far = bad * 2
    with tf1.device("/job:worker/task:1"):
        farther = far + bad
    with c.session() as s:
        for _ in range(5):
            raises(errors.InvalidArgumentError, lambda: s.run(farther, {x: np.nan}), "no number : Tensor had NaN values")
            close(s.run(farther, {x: 1}), 3)


@check
def cluster_of_the_session_itself(c):
    x = tf.constant(1.0)
    raises(errors.InvalidArgumentError, lambda: c.session(cluster_def=c.spec.as_cluster_def()).run(x), "This is currently not allowed. Job: worker, task index: 0")
    other = tf.train.ClusterSpec({"other": [c.cluster["ps"][0]]}).as_cluster_def()
    raises(errors.InvalidArgumentError, lambda: c.session(cluster_def=other).run(x), "is not included in the provided cluster_def")


@check
def partitioned_variable_and_sharded_saver(c):
    with tf1.device(tf1.train.replica_device_setter(cluster=c.spec, worker_device="/job:worker/task:1")):
        scope = c.unique("part")
        with tf1.variable_scope(scope, partitioner=tf1.fixed_size_partitioner(2)):
            v = tf1.get_variable("v", [10, 4], initializer=tf1.random_uniform_initializer(seed=3), use_resource=False)
            w = tf1.get_variable("w", [6], initializer=tf1.ones_initializer(), use_resource=True)
        e = tf1.nn.embedding_lookup(v, [0, 9, 4], partition_strategy="div")
        loss = tf.reduce_sum(tf.square(e)) + tf.reduce_sum(tf.square(tf.convert_to_tensor(w)))
        train = tf1.train.AdagradOptimizer(0.1).minimize(loss)
    saver = tf1.train.Saver(sharded=True)
    path = c.path(c.unique("ck"))
    with c.session() as s:
        s.run(tf1.global_variables_initializer())
        before = s.run(loss)
        for _ in range(5):
            s.run(train)
        after = s.run([loss, e])
        true(after[0] < before)
        p = saver.save(s, path, global_step=5)
        s.run(tf1.global_variables_initializer())
        saver.restore(s, p)
        close(s.run(loss), after[0])
    r = tf1.train.load_checkpoint(p)
    full = r.get_tensor(scope + "/v")
    equal(full.shape, (10, 4))


@check
def initializable_iterator_on_another_task(c):
    n = tf1.placeholder(tf.int64, [])
    with tf1.device("/job:worker/task:1"):
        it = tf1.data.make_initializable_iterator(tf.data.Dataset.range(n).map(lambda x: x * 2).batch(3).prefetch(2))
        nxt = it.get_next()
    with tf1.device("/job:ps/task:0"):
        y = tf.reduce_sum(nxt)
    with c.session() as s:
        for k in (7, 4):
            s.run(it.initializer, {n: k})
            got = []
            while True:
                try:
                    got.append(s.run(y))
                except errors.OutOfRangeError:
                    break
            equal(sum(got), k * (k - 1))


@check
def iterator_by_handle(c):
    h = tf1.placeholder(tf.string, [])
    with tf1.device("/job:worker/task:0"):
        a = tf1.data.make_initializable_iterator(tf.data.Dataset.range(3))
        b = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(10, 13))
        it = tf1.data.Iterator.from_string_handle(h, tf1.data.get_output_types(b), tf1.data.get_output_shapes(b))
        y = it.get_next()
        ha, hb = a.string_handle(), b.string_handle()
    with c.session() as s:
        s.run(a.initializer)
        ta, tb = s.run([ha, hb])
        equal([s.run(y, {h: t}) for t in (ta, tb, ta, tb)], [0, 10, 1, 11])


@check
def tables_on_ps(c):
    with tf1.device("/job:ps/task:1"):
        t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2], tf.string, tf.int64), -1, name=c.unique("t"))
        m = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.5, name=c.unique("m"))
    k = tf1.placeholder(tf.string, [None])
    with tf1.device("/job:worker/task:1"):
        k2 = tf.strings.join([k])
    y, z = t.lookup(k2), m.lookup(k2)
    put = m.insert(k2, tf.cast(y, tf.float32))
    with c.session() as s:
        s.run(tf1.tables_initializer())
        equal(s.run(y, {k: ["b", "x", "a"]}), [2, -1, 1])
        s.run(put, {k: ["a", "b"]})
        close(s.run(z, {k: ["b", "x"]}), [2, 0.5])


@check
def an_error_of_a_table_names_its_node(c):
    path = c.path(c.unique("words"))
    with open(path, "w") as f:
        f.write("x\ny\n")
    for device in ("/job:worker/task:0", "/job:ps/task:1"):
        with tf1.device(device):
            t = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1), -1, name=c.unique("t"))
            v = t.lookup(tf.constant(["x"]))
        with c.session() as s:
            e = raises(errors.InvalidArgumentError, lambda: s.run(t._init_op), "Invalid number of columns in")
            true(e.op is not None and e.op.name == t._init_op.name, f"{e.op}")
            raises(errors.FailedPreconditionError, lambda: s.run(v), "Table not initialized.")


@check
def trace_of_a_cluster(c):
    x = tf1.placeholder(tf.float32, [100, 100])
    with tf1.device("/job:worker/task:1"):
        y = tf.matmul(x, x, name="mm")
    with tf1.device("/job:ps/task:0"):
        z = tf.reduce_sum(y, name="sum")
    meta = tf1.RunMetadata()
    with c.session() as s:
        s.run(z, {x: np.ones([100, 100])}, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True), run_metadata=meta)
    nodes = {n.node_name.split(":")[0]: d.device for d in meta.step_stats.dev_stats for n in d.node_stats}
    true(nodes.get("mm", "").startswith("/job:worker/replica:0/task:1"), str(sorted(nodes.items())))
    true(nodes.get("sum", "").startswith("/job:ps/replica:0/task:0"), str(nodes))
    true(len(meta.partition_graphs) >= 3, len(meta.partition_graphs))
    from tensorflow.python.client import timeline
    trace = json.loads(timeline.Timeline(meta.step_stats).generate_chrome_trace_format(show_memory=True))["traceEvents"]
    rows = {e["pid"]: e["args"]["name"] for e in trace if e["name"] == "process_name"}
    where = {e["args"]["name"]: rows[e["pid"]] for e in trace if e.get("ph") == "X"}
    true("/job:worker/replica:0/task:1" in where.get("mm", ""), str(where))
    true("/job:ps/replica:0/task:0" in where.get("sum", ""), str(where))


@check
def dead_fetch(c):
    with control_flow(False):
        x, p = tf1.placeholder(tf.float32, []), tf1.placeholder(tf.bool, [])
        with tf1.device("/job:ps/task:0"):
            a, b = tf.raw_ops.Switch(data=x, pred=p)
        with tf1.device("/job:worker/task:1"):
            y = tf.identity(b)
        with c.session() as s:
            close(s.run(y, {x: 1, p: True}), 1)
            raises(errors.InternalError, lambda: s.run(y, {x: 1, p: False}), "was not valid")


@check
def references_are_read_after_updates(c):
    """On another task, in a step and in each turn of a loop."""
    x = tf1.placeholder(tf.float32, [2])
    raw = tf.raw_ops
    with control_flow(False):
        with tf1.device("/job:worker/task:1"):
            slow = x + tf.linalg.matmul(tf.fill([200, 200], x[0]), tf.zeros([200, 200]))[0, 0]
        with tf1.device("/job:ps/task:0"):
            v = raw.VariableV2(shape=[2], dtype=tf.float32, shared_name=c.unique("v"))
            first = raw.Assign(ref=v, value=slow)
        with tf1.device("/job:ps/task:1"), tf1.control_dependencies([first.op]):
            one = raw.Neg(x=v)
        with tf1.device("/job:ps/task:0"), tf1.control_dependencies([one]):
            second = raw.AssignAdd(ref=v, value=x)
        with tf1.device("/job:ps/task:1"), tf1.control_dependencies([second.op]):
            two = raw.Neg(x=v)

        def turn(i, total):
            with tf1.device("/job:ps/task:0"), tf1.control_dependencies([total]):
                more = raw.AssignAdd(ref=v, value=x)
            with tf1.device("/job:worker/task:1"), tf1.control_dependencies([more.op]):
                return i + 1, total + raw.Neg(x=v)
        with tf1.control_dependencies([two]):
            start = tf.constant(0)
        total = tf1.while_loop(lambda i, _: i < 3, turn, [start, tf.zeros([2])], parallel_iterations=1)[1]
    with c.session() as s:
        s.run(raw.Assign(ref=v, value=[0.0, 0.0]).op)
        for k in range(1, 8):
            got = s.run([one, two, total], {x: [k, k]})
            for value, times in zip(got, (-1, -2, -12)):
                close(value, [times * k] * 2)


@check
def critical_sections(c):
    """In two sessions at once: none of them reads what the other is about to change."""
    with tf1.device("/job:ps/task:1"):
        v = variable(c.unique("counted"), [])
        section = tf.CriticalSection(shared_name=c.unique("section"))

    def add():
        now = v.read_value()
        with tf1.control_dependencies([now]):
            return v.assign(now + 1, read_value=True)
    steps = [section.execute(add) for _ in range(3)]
    with c.session() as s:
        s.run(v.initializer)
    sessions = [c.session(), c.session()]

    def work(s):
        for _ in range(10):
            s.run(steps)
    threads([lambda s=s: work(s) for s in sessions])
    equal(sessions[0].run(v.read_value()), 60)
    for s in sessions:
        s.close()


@check
def limits_and_closing(c):
    with tf1.device("/job:ps/task:1"):
        q = tf.queue.FIFOQueue(2, tf.float32, shapes=[[]], shared_name=c.unique("q"))
    with tf1.device("/job:worker/task:1"):
        y = q.dequeue() + 1
    with c.session(operation_timeout_in_ms=600) as s:
        for options in (None, tf1.RunOptions(timeout_in_ms=200)):
            raises(errors.DeadlineExceededError, lambda: s.run(y, options=options), "Deadline Exceeded")
    s = c.session()
    seen = []

    def wait():
        try:
            s.run(y)
        except errors.OpError as e:
            seen.append(e)
    ts = [threading.Thread(target=wait, daemon=True) for _ in range(5)]
    for t in ts:
        t.start()
    time.sleep(0.5)
    at = time.time()
    s.close()
    for t in ts:
        t.join(10)
    true(len(seen) == 5 and all(isinstance(e, errors.CancelledError) for e in seen), str(seen))
    true(time.time() - at < 5, f"{time.time() - at} s")
    with c.session() as s:
        s.run(q.enqueue(5.0))
        close(s.run(y), 6)


@check
def tensor_array_over_tasks(c):
    n = tf1.placeholder(tf.int32, [])
    with control_flow(False), tf1.device("/job:worker/task:1"):
        ta = tf.TensorArray(tf.float32, size=n, dynamic_size=True)

        def body(i, ta):
            with tf1.device("/job:ps/task:0"):
                v = tf.cast(i * i, tf.float32)
            return i + 1, ta.write(i, v)
        _, ta = tf1.while_loop(lambda i, _: i < n, body, [0, ta])
        y = ta.stack()
    with c.session() as s:
        close(s.run(y, {n: 5}), [0, 1, 4, 9, 16])


@check
def isolated_sessions(c):
    with tf1.device("/job:ps/task:0"):
        v = variable(c.unique(), [], False)
    add = tf1.assign_add(v, 1.0)
    with c.session(isolate_session_state=True) as a, c.session(isolate_session_state=True) as b:
        a.run(v.initializer)
        raises(errors.FailedPreconditionError, lambda: b.run(v))
        b.run(v.initializer)
        a.run(add)
        equal([a.run(v), b.run(v)], [1, 0])


@check
def reset_over_tasks(c):
    name = c.unique("box").replace("_", ".")
    with tf1.container(name), tf1.device("/job:ps/task:1"):
        v = variable(c.unique(), [], False)
    s = c.session()
    s.run(v.initializer)
    tf1.Session.reset(c.target, [name])
    with c.session() as s2:
        raises(errors.FailedPreconditionError, lambda: s2.run(v))
    raises(errors.AbortedError, lambda: s.run(v))


@check
def compressed_transfers(c):
    x = tf1.placeholder(tf.float32, [3])
    with tf1.device("/job:ps/task:0"):
        y = tf.identity(x)
    with tf1.device("/job:worker/task:1"):
        z = y * 1
    o = tf1.GraphOptions(enable_bfloat16_sendrecv=True)
    with c.session(graph_options=o) as s:
        close(s.run(z, {x: [1.0, 2.5, -3.0]}), [1, 2.5, -3])


@check
def many_blocked_steps(c):
    with tf1.device("/job:ps/task:0"):
        q = tf.queue.FIFOQueue(2000, tf.float32, shapes=[[]], shared_name=c.unique("q"))
    with tf1.device("/job:worker/task:1"):
        y = q.dequeue() + 1
    fill = q.enqueue_many([tf.ones([300])])
    got = []
    with c.session() as s:
        def one():
            got.append(s.run(y))
        ts = [threading.Thread(target=one, daemon=True) for _ in range(300)]
        for t in ts:
            t.start()
        time.sleep(1)
        s.run(fill)
        for t in ts:
            t.join(30)
    equal(len(got), 300)


@check
def control_dependencies_over_tasks(c):
    with tf1.device("/job:ps/task:0"):
        v = variable(c.unique(), [], True)
    with tf1.device("/job:worker/task:1"):
        w = variable(c.unique(), [], True)
    with tf1.control_dependencies([tf1.assign(v, 3.0)]):
        with tf1.control_dependencies([tf1.assign(w, v.read_value() + 1.0)]):
            with tf1.device("/job:ps/task:1"):
                y = w.read_value() * 10
    with c.session() as s:
        s.run([v.initializer, w.initializer])
        for _ in range(5):
            close(s.run(y), 40)


@check
def options_that_change_nothing(c):
    x = tf1.placeholder(tf.float32, [])
    y = x + 1
    for o in (dict(graph_options=tf1.GraphOptions(enable_recv_scheduling=True)),
              dict(graph_options=tf1.GraphOptions(place_pruned_graph=False, infer_shapes=True)),
              dict(graph_options=tf1.GraphOptions(optimizer_options=tf1.OptimizerOptions(opt_level=tf1.OptimizerOptions.L0))),
              dict(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1), dict(log_device_placement=True),
              dict(device_count={"CPU": 1}), dict(allow_soft_placement=True),
              dict(experimental=tf1.ConfigProto.Experimental(collective_group_leader="/job:worker/replica:0/task:0"))):
        with c.session(**o) as s:
            close(s.run(y, {x: 1}), 2)
    for o in (dict(use_per_session_threads=True),):
        raises(errors.InvalidArgumentError, lambda: c.session(**o).run(y, {x: 1}))


@check
def functions_called_on_other_tasks(c):
    from tensorflow.python.framework import function
    from tensorflow.python.ops import functional_ops

    @function.Defun(tf.float32, tf.resource)
    def scaled(x, v):
        return x * tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)

    @function.Defun(tf.float32)
    def double(x):
        return x * 2.0

    def call(target, args, f, on="/job:worker/task:0"):
        with tf1.device(on):
            return functional_ops.remote_call(args=args, Tout=[tf.float32], f=f, target=target)[0]
    x = tf1.placeholder(tf.float32, [])
    with tf1.device("/job:ps/task:1"):
        v = tf1.get_variable(c.unique("v"), initializer=5.0, use_resource=True)
    # From the client's task: among TensorFlow's servers ours cannot call another by itself.
    far = [call(t, [x], double) for t in ("/job:worker/replica:0/task:1/device:CPU:0", "/job:ps/task:1", "/job:ps/task:0/cpu:0", "/cpu:0", "")]
    near = call("/job:ps/replica:0/task:1/device:CPU:0", [x, v.handle], scaled)
    with c.session() as s:
        s.run(v.initializer)
        for k in range(3):
            close(s.run(far, {x: k}), [2 * k] * len(far))
            close(s.run(near, {x: k}), 5 * k)
        raises(errors.InvalidArgumentError, lambda: s.run(call("/job:worker/task:9", [x], double), {x: 1}),
               "Could not find worker with target: /job:worker/replica:0/task:9/device:CPU:0 Available workers: ")
        raises(errors.InvalidArgumentError, lambda: s.run(call("nonsense", [x], double), {x: 1}),
               "Could not parse nonsense into a device specification.")
        raises(errors.InternalError, lambda: s.run(functional_ops.remote_call(args=[x], Tout=[tf.int32], f=double, target=""), {x: 1}),
               "Output 0 of type float does not match declared output type int32 for node {{node RemoteCall")


@check
def variable_read_on_worker(c):
    with tf1.device("/job:ps/task:1"):
        v = variable(c.unique(), [2, 2], True, tf1.ones_initializer())
    with tf1.device("/job:worker/task:1"):
        h = v.handle
        y = tf1.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) * 2
    with c.session() as s:
        s.run(v.initializer)
        close(s.run(y), [[2, 2], [2, 2]])


if __name__ == "__main__":
    main(NEEDS)
