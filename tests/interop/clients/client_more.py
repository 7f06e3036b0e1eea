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
def sparse_tensors_through_a_queue(c):
    n = tf1.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    s1 = tf1.train.batch([tf.SparseTensor([[0]], [n], [3])], 2)
    with c.session() as s:
        s.run(tf1.local_variables_initializer())
        stop = tf1.train.Coordinator()
        runners = tf1.train.start_queue_runners(s, stop)
        for k in (0, 2):
            got = s.run(s1)
            equal(got.indices, [[0, 0], [1, 0]])
            equal(got.values, [k, k + 1])
            equal(got.dense_shape, [2, 3])
        raises(errors.OutOfRangeError, lambda: s.run(s1))
        stop.request_stop()
        stop.join(runners, stop_grace_period_secs=5)


@check
def devices_of_feeds_are_refused(c):
    from tensorflow.core.protobuf import config_pb2
    tf1.placeholder(tf.float32, [2], name="x") + 1
    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["add:0"])
    options.feed_devices["x:0"] = "/job:worker/task:0/device:CPU:0"
    with c.session() as s:
        raises(errors.UnimplementedError, lambda: s._make_callable_from_options(options), "not yet supported when using a remote session")


@check
def words_of_errors(c):
    f = tf1.placeholder(tf.float32)
    g, i = tf1.placeholder(tf.float32), tf1.placeholder(tf.int32)
    l, l2 = tf1.placeholder(tf.int64), tf1.placeholder(tf.int32)
    t = tf1.placeholder(tf.string)
    two = np.ones([2, 3], np.float32)
    v = variable("v", [3], resource=False)
    cases = [
        (tf.reshape(f, i), {f: two, i: [4, 2]}, "Input to reshape is a tensor with 6 values, but the requested shape has 8"),
        (tf.concat([f, g], 0), {f: two, g: np.ones([2, 4])}, "ConcatOp : Dimension 1 in both shapes must be equal: shape[0] = [2,3] vs. shape[1] = [2,4]"),
        (tf.unstack(f, num=3)[0], {f: two}, "Input shape axis 0 must equal 3, got shape [2,3]"),
        (tf.gather_nd(f, i, name="nd"), {f: two, i: [[0, 5]]}, "indices[0] = [0, 5] does not index into param shape [2,3], node name: nd"),
        (tf.scatter_nd(i, f, [3]), {i: [[5]], f: [1]}, "indices[0] = [5] does not index into shape [3]"),
        (tf.scatter_nd(i, f, [3]), {i: [[0], [1]], f: [1]}, "Dimensions [0,1) of indices[shape=[2,1]] must match dimensions [0,1) of updates[shape=[1]]"),
        (tf.tensor_scatter_nd_add(g, i, f), {i: [[0]], f: [1], g: two}, "Inner dimensions of output shape must match inner dimensions of updates shape. Output: [2,3] updates: [1]"),
        (tf.tensor_scatter_nd_add(g, i, f), {i: [[[0], [7]]], f: two[None], g: two}, "indices[0,1] = [7] does not index into shape [2,3]"),
        (tf.gather(f, i), {f: two, i: [[0, 5]]}, "indices[0,1] = 5 is not in [0, 2)"),
        (tf.gather(two, [0], axis=i), {i: 7}, "Shape must be at least rank 8 but is rank 2"),
        (tf1.setdiff1d(i, l2)[0], {i: [[1]], l2: [1]}, "x should be a 1D vector."),
        (tf.math.segment_sum(f, i), {f: two, i: [-1, 1]}, "Segment id -1 out of range [0, 2), possibly because 'segment_ids' input is not sorted."),
        (tf.math.unsorted_segment_sum(f, i, 2), {f: two, i: [1]}, "data.shape = [2,3] does not start with segment_ids.shape = [1]"),
        (tf.sparse.segment_sum(f, i, [0, 0]), {f: two, i: [0, 9]}, "Bad: indices[1] == 9 out of range [0, 2)"),
        (tf.raw_ops.MatMul(a=f, b=g), {f: two, g: [1]}, "In[0] and In[1] has different ndims: [2,3] vs. [1]"),
        (tf.raw_ops.MatMul(a=f, b=g), {f: [two], g: np.ones([2, 3, 2])}, "In[0] and In[1] ndims must be == 2: 3"),
        (tf.raw_ops.BatchMatMulV2(x=f, y=g), {f: np.ones([2, 2, 3]), g: np.ones([3, 3, 2])}, "In[0] and In[1] must have compatible batch dimensions: [2,2,3] vs. [3,3,2]"),
        (tf.linalg.solve(f, g), {f: two, g: two}, "First input (lhs) must be a square matrix."),
        (tf.raw_ops.ReluGrad(gradients=f, features=g, name="rg"), {f: [1], g: [1, 2]}, "Inputs to operation rg of type ReluGrad must have the same size and shape.  Input 0: [1] != input 1: [2]"),
        (tf.raw_ops.BiasAdd(value=f, bias=g), {f: two, g: two}, "Biases must be 1D: [2,3]"),
        (tf.where(tf.equal(f, 1), f, g), {f: two, g: [1, 2]}, "condition [2,3], then [2,3], and else [2] must be broadcastable"),
        (tf.raw_ops.ClipByValue(t=f, clip_value_min=g, clip_value_max=2.0), {f: two, g: [1]}, "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar."),
        (tf.raw_ops.LinSpace(start=f, stop=2.0, num=3), {f: two}, "start must be a scalar, not shape [2,3]"),
        (tf.io.decode_base64(t), {t: "a==="}, "Invalid character found in base64."),
        (tf.strings.substr(t, 9, 1), {t: [["a"]]}, "pos 9 out of range for string b'a' at index 0"),
        (tf.strings.regex_full_match(t, "x[z-a]y"), {t: "a"}, "Invalid pattern: x[z-a]y, error: invalid character class range: z-a"),
        (tf.fill(i, 1.0), {i: [-1]}, "Dimension -1 must be >= 0"),
        (tf1.sparse_to_dense(l, [3], 1.0), {l: [[5]]}, "indices[0] = [5] is out of bounds: need 0 <= index < [3]"),
        (tf1.sparse_to_dense(l, [3], 1.0), {l: [[2], [1]]}, "indices[1] = [1] is out of order. Many sparse ops require sorted indices."),
        (tf.sparse.to_dense(tf.SparseTensor(l, [1.0, 2.0], [3])), {l: [[1], [1]]}, "indices[1] = [1] is repeated"),
        (tf.dynamic_stitch([i], [tf.constant([1.0, 2])]), {i: [0, -1]}, "indices[1] is out of range"),
        (tf.argmax(f, 0), {f: np.zeros([0, 3])}, "Reduction axis 0 is empty in shape [0,3]"),
        (tf.transpose(tf.ones([2, 3]), i), {i: [0, 0]}, "1 is missing from"),
        (tf.einsum("ij,jk->ik", f, g), {f: two, g: two}, "of the input shaped [2,3] but got dimension 2"),
        (tf1.assign(v, f), {f: [1, 2]}, "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]"),
        (tf.linalg.det(f), {f: two}, "Input matrix must be square."),
        (tf.raw_ops.MatrixDiagPartV2(input=f, k=i, padding_value=0.0), {f: two, i: [0, 9]}, "upper_diag_index is out of bound: 9 It must be between -2 and 3"),
        (tf.raw_ops.MatrixDiagPartV2(input=f, k=i, padding_value=0.0), {f: two, i: [1, 0]}, "lower_diag_index must not be larger than upper_diag_index: 1 > 0"),
        (tf.raw_ops.MatrixSetDiagV2(input=f, diagonal=g, k=i), {f: two, g: [[1, 2]], i: [0, 1]}, "The number of diagonals provided in `diag` is not consistent with"),
        (tf.raw_ops.MatrixSetDiag(input=f, diagonal=g), {f: two, g: [1]}, "\nInput shape: [2,3]\nDiagonal shape: [1]\nExpected diagonal shape: [2]"),
        (tf.linalg.band_part(f, l, 0), {f: two, l: 5}, "num_lower must be negative or less or equal to number of rows (2) got: 5"),
        (tf.raw_ops.TridiagonalSolve(diagonals=f, rhs=g), {f: two, g: two}, "Expected diagonals to be provided as a matrix with 3 rows, got 2 rows."),
        (tf.raw_ops.DenseBincount(input=i, size=4, weights=g), {i: [1], g: [1, 2]}, "in which case it acts as all weights equal to 1. Received [2]"),
        (tf.raw_ops.SparseBincount(indices=l, values=i, dense_shape=[2], size=4, weights=g), {l: [[7]], i: [1], g: []}, "Sparse index tuple indices[0, :] = [7] is out of bounds"),
        (tf.raw_ops.SparseCountSparseOutput(indices=l, values=i, dense_shape=[2], weights=g, binary_output=False), {l: [[7]], i: [1], g: []},
         "Invalid index value at 0: dimension 0 has value 7 which is not in [0, 2) (as given by dense shape Tensor<type: int64 shape: [1] values: 2>"),
        (tf.raw_ops.LowerBound(sorted_inputs=f, values=g), {f: two, g: [1]}, "Shape must be rank 2 but is rank 1 for `values` argument"),
        (tf.unravel_index(i, [2, 2]), {i: [7]}, "index is out of bound as with dims"),
        (tf.raw_ops.NthElement(input=f, n=i), {f: two, i: -1}, "n must be non-negative but is -1"),
        (tf.signal.fft2d(tf.cast(f, tf.complex64)), {f: [1]}, "Input must have rank of at least 2 but got: [1]"),
        (tf.reduce_sum(f, i), {f: two, i: [1, -1]}, "Invalid reduction arguments: Axes contains duplicate dimension: 1"),
        (tf.argmax(f, i), {f: two, i: 7}, "Expected dimension in the range [-2, 2), but got 7"),
        (tf.argmax(f, i), {f: two, i: [1]}, "dim must be a scalar, but received tensor of shape: [1]"),
        (tf.cumsum(f, i), {f: two, i: -9}, "ScanOp: Expected scan axis in the range [-2, 2), but got -7"),
        (tf.math.cumulative_logsumexp(f, i), {f: two, i: [0]}, "ScanOp: axis must be a scalar, not [1]"),
        (tf.raw_ops.Split(axis=i, value=f, num_split=2)[0], {f: two, i: [0]}, "split_dim must be a scalar but has rank 1"),
        (tf.raw_ops.MaxPoolV2(input=f, ksize=i, strides=[1, 1, 1, 1], padding="VALID"), {f: np.ones([1, 2, 2, 1]), i: [0, 1, 1, 1]}, "Sliding window ksize must be positive."),
        (tf.raw_ops.FakeQuantWithMinMaxVars(inputs=f, min=0.0, max=g), {f: two, g: [1]}, "`max` must be rank 0 but is rank 1"),
        (tf.raw_ops.QuantizeAndDequantizeV3(input=f, input_min=g, input_max=1.0, num_bits=8), {f: two, g: 3}, "Invalid range: input_min 3 > input_max 1"),
        (tf.raw_ops.RaggedRange(starts=i, limits=[3], deltas=[1]).rt_dense_values, {i: [[0]]}, "starts must be a scalar or vector"),
        (tf.raw_ops.DenseToDenseSetOperation(set1=i, set2=l2, set_operation="union").result_values, {i: [[1]], l2: [[1], [2]]}, "Mismatched shapes [1] vs [2]"),
        (tf.raw_ops.SetSize(set_indices=l, set_values=[1, 2], set_shape=[2, 2]), {l: [[0, 0], [1, 5]]}, "indices[1] = [1,5] is out of bounds: need 0 <= index < [2,2]"),
    ]
    with c.session() as s:
        s.run(v.initializer)
        for op, feed, text in cases:
            e = raises(errors.InvalidArgumentError, lambda: s.run(op, feed), text)
            true(e.op is not None and "[[{{node " + e.op.name + "}}]]" in str(e), str(e))
        true(np.isnan(s.run(tf.linalg.cholesky(f), {f: [[1, 2], [2, 1]]})[1, 1]))
        raises(errors.NotFoundError, lambda: s.run(tf.raw_ops.RestoreV2(prefix="/no/where", tensor_names=["x"], shape_and_slices=[""], dtypes=[tf.float32])),
               "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /no/where")


@check
def names_of_nodes_of_functions(c):
    x = tf1.placeholder(tf.int32, [])

    @tf.function
    def inner(a):
        return tf.raw_ops.FloorDiv(x=a, y=0, name="ratio")

    @tf.function
    def outer(a):
        with tf.name_scope("around"):
            return inner(a) + 1
    with c.session() as s:
        for y in (inner(x), outer(x)):
            raises(errors.InvalidArgumentError, lambda: s.run(y, {x: 1}), "division by zero", "{{node ratio}}")


@check
def words_of_errors_of_state(c):
    name, queue = c.unique("q"), tf.queue.FIFOQueue
    first = queue(3, [tf.float32], shapes=[[2]], shared_name=name)
    shuffled = [tf.queue.RandomShuffleQueue(3, least, [tf.float32], seed=seed, shared_name=name + "s")
                for least, seed in ((1, 1), (2, 1), (1, 2))]
    v, w = variable(c.unique(), [3], resource=False), variable(c.unique(), [3])
    three, handle = tf1.placeholder_with_default([1.0, 2.0], None), first.queue_ref
    raw = tf.raw_ops
    cases = [
        (queue(3, [tf.int32], shapes=[[2]], shared_name=name).size(),
         f"Shared queue '{name}' has component types float but requested component types were int32"),
        (queue(3, [tf.float32], shapes=[[3]], shared_name=name).size(),
         f"Shared queue '{name}' has component shapes [[2]] but requested component shapes were [[3]]"),
        (tf.queue.RandomShuffleQueue(3, 1, [tf.float32], shapes=[[2]], shared_name=name).size(), "Expected FIFOQueue, found RandomShuffleQueueV2"),
        (shuffled[1].size(), f"'{name}s' has min_after_dequeue 1 but requested min_after_dequeue was 2."),
        (shuffled[2].size(), f"'{name}s' has random seeds (87654321, 1) but requested seeds are (87654321, 2)."),
        (raw.QueueEnqueueV2(handle=handle, components=[1]), "Signature mismatch, have: resource, int32-> expected: resource, float->"),
        (raw.QueueDequeueV2(handle=handle, component_types=[tf.int64]), "Signature mismatch, have: resource->int64 expected: resource->float"),
        (raw.QueueDequeueManyV2(handle=handle, n=1, component_types=[tf.int64]),
         "Signature mismatch, have: resource, int32->int64 expected: resource, int32->float"),
        (raw.QueueEnqueueManyV2(handle=handle, components=[tf1.placeholder_with_default(np.ones([2, 3], np.float32), None)]),
         "Shape mismatch in tuple component 0. Expected [2,2], got [2,3]"),
        (raw.AssignVariableOp(resource=w.handle, value=three, validate_shape=True),
         "Trying to assign to variable with tensor with wrong shape. Expected [3] got [2]"),
        (raw.AssignAddVariableOp(resource=w.handle, value=three), "Cannot update variable with shape [3] using a Tensor with shape [2], shapes must be equal."),
        (tf1.assign_add(v, three), "Parameters and update must be the same size"),
    ]
    with c.session() as s:
        s.run([v.initializer, w.initializer, first.size(), shuffled[0].size()])
        for op, text in cases:
            raises(errors.InvalidArgumentError, lambda: s.run(op), text + "\n\t [[{{node ")
        raises(errors.NotFoundError, lambda: s.run(tf.io.read_file(c.path("missing"))), c.path("missing") + "; No such file or directory")
        raises(errors.FailedPreconditionError, lambda: s.run(tf.io.read_file(c.dir)), c.dir + "; Is a directory")
        names = tf.queue.FIFOQueue(2, tf.string, shared_name=name + "n")
        s.run(names.enqueue(c.path("missing")))
        raises(errors.NotFoundError, lambda: s.run(tf1.TextLineReader().read(names)), c.path("missing") + "; No such file or directory")
        raises(errors.InvalidArgumentError, lambda: s.run(tf1.IdentityReader(name="reads").restore_state(tf.constant('a"\n'))),
               "Could not parse state for IdentityReader 'reads': a\\\"\\")
        s.run(raw.DestroyResourceOp(resource=w.handle))
        raises(errors.NotFoundError, lambda: s.run(raw.DestroyResourceOp(resource=w.handle, ignore_lookup_error=False)), "/<unknown> does not exist.")
        raises(errors.InternalError, lambda: s.run(raw.ResourceApplyGradientDescent(var=w.handle, alpha=1.0, delta=tf.ones([3]))), "Invalid variable reference.")


@check
def words_of_what_is_not_there(c):
    from tensorflow.core.protobuf import config_pb2
    x = tf1.placeholder(tf.float32, [2], name="x")
    tf.add(x, 1.0, name="y")
    with c.session() as s:
        def make(**k):
            return s._make_callable_from_options(config_pb2.CallableOptions(**k))
        raises(errors.NotFoundError, lambda: make(feed=["no:0"], fetch=["y:0"]), "FeedInputs: unable to find feed output no:0")
        raises(errors.InvalidArgumentError, lambda: make(feed=["x:7"], fetch=["y:0"]), "FeedInputs: x:7 should have output index < 1")
        raises(errors.NotFoundError, lambda: make(fetch=["no:0"]), "FetchOutputs node no:0: not found")
        raises(errors.NotFoundError, lambda: make(target=["no"]), "PruneForTargets: Some target nodes not found: no ")
        for shape, text in (([None, 2], " and shape [?,2]"), (None, ""), ([], "")):
            lacking = tf1.placeholder(tf.int32, shape)
            raises(errors.InvalidArgumentError, lambda: s.run(lacking + 1),
                   f"You must feed a value for placeholder tensor '{lacking.op.name}' with dtype int32{text}\n")
        tf.raw_ops.NcclAllReduce(input=x, reduction="sum", num_devices=1, shared_name="n", name="z")
        raises(errors.InvalidArgumentError, lambda: s.run("z:0", {x: [1, 2]}), "No OpKernel was registered to support Op 'NcclAllReduce' used by {{node z}} with these attrs: [",
               "T=DT_FLOAT", 'reduction="sum"', "]\nRegistered devices: [CPU]\nRegistered kernels:\n  <no registered kernels>\n\n\t [[z]]")


if __name__ == "__main__":
    main(NEEDS)
