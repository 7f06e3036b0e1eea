"""data_cases.py - pipelines of tf.data and serialized Examples, with TensorFlow's own answers.

    python data_cases.py FILE.tfrecord [SEED [EXAMPLES [WITH_PIPELINES]]]

Writes Cases (case.proto) for tf-cases: each is a graph with an iterator, or with one parsing op,
and what TensorFlow gave for it, element by element, up to its end or its error.
"""

import os
import random
import struct
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_eager_execution()
Data = tf1.data.Dataset
AUTOTUNE = tf.data.AUTOTUNE
ELEMENTS = 40  # of an iterator, at most


# --- writing Cases: protobuf's wire format by hand, as case.proto has it ---

def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def piece(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def tensor(name, value):
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        proto = tf.make_tensor_proto(value, tf.string, value.shape)
    else:
        proto = tf.make_tensor_proto(value)
    return piece(1, name) + piece(2, proto.SerializeToString(deterministic=True))


def run(fetch, expect, feed=(), target=(), error=None):
    out = b"".join(piece(1, tensor(name, value)) for name, value in feed)
    out += b"".join(piece(2, name) for name in fetch)
    out += b"".join(piece(3, name) for name in target)
    out += b"".join(piece(4, tensor(n, v)) for n, v in zip(fetch, expect))
    return out + (number(5, error.error_code) + piece(6, error.message[-300:]) if error else b"")


def case(name, graph, runs):
    definition = graph.as_graph_def()
    ops = {node.op for node in definition.node}
    for function in definition.library.function:
        ops |= {node.op for node in function.node_def}
    return (piece(1, name) + piece(3, definition.SerializeToString(deterministic=True)) +
            b"".join(piece(4, r) for r in runs) + b"".join(piece(6, op) for op in sorted(ops)))


def session(graph):
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return tf1.Session(graph=graph, config=config)


def try_run(sess, fetch, feed=(), target=(), folder=None):
    """The run as bytes, and its error; what is fed as "$TMP" is `folder`."""
    fed = {name: folder if isinstance(value, str) and value == "$TMP" else value
           for name, value in feed}
    try:
        got = sess.run([*fetch, *target], feed_dict=fed)
        return run(fetch, got[:len(fetch)], feed, target), None
    except tf.errors.OpError as error:
        return run(fetch, [], feed, target, error), error


# --- pipelines ---

def ints(n=10):
    return Data.range(n)


def pairs():
    return Data.from_tensor_slices((np.arange(7, dtype=np.float32) / 3,
                                    {"t": ["a", "bb", "", "dddd", "e", "ff", "g"]}))


def ragged():
    return ints(9).map(lambda i: tf.fill([i % 4 + 1], i))


def fails_at(bad):
    factors = np.where(np.arange(8) == bad, np.inf, 2.0)
    return Data.from_tensor_slices(factors).map(lambda x: tf1.debugging.check_numerics(x, "bad"))


def dice(n):
    return ints(n).map(lambda i: tf.random.uniform([], 0, 100, tf.int64, seed=4))


def pipelines(rng):
    yield "range/down", lambda: Data.range(10, -3, -4)
    yield "range/none", lambda: Data.range(3, 3)
    for dtype in (tf.int32, tf.float32, tf.uint8, tf.float16, tf.bfloat16):
        yield f"range/{dtype.name}", lambda d=dtype: Data.range(1, 9, 3, output_type=d)
    yield "slices/nested", pairs
    yield "slices/bool", lambda: Data.from_tensor_slices(np.array([[True], [False]]))
    yield "tensors", lambda: Data.from_tensors((1, [2.0, 3.0])).repeat(2)
    yield "sparse", lambda: Data.from_tensor_slices(
        tf.sparse.SparseTensor([[0, 1], [2, 0], [2, 2]], [1, 2, 3], [4, 3])).map(tf.sparse.to_dense)
    yield "sparse/legacy", lambda: Data.from_sparse_tensor_slices(
        tf1.SparseTensor([[0, 1], [2, 0], [2, 2]], [1.0, 2, 3], [4, 3])).map(
            lambda i, v, s: (i, v, s))
    for count in (-1, 0, 1, 3):
        yield f"repeat/{count}", lambda c=count: ints(4).repeat(c)
        yield f"take/{count}", lambda c=count: ints(6).take(c)
        yield f"skip/{count}", lambda c=count: ints(6).skip(c)
    yield "repeat/empty", lambda: ints(0).repeat()
    yield "shard", lambda: ints(11).shard(3, 1)
    yield "concatenate", lambda: ints(3).concatenate(ints(2)).concatenate(ints(1))
    yield "zip", lambda: Data.zip((ints(4), (pairs(), ints(9).batch(2))))
    yield "enumerate", lambda: pairs().enumerate(5)
    for seed in range(6):
        size, n = rng.choice([1, 2, 3, 5, 8, 50]), rng.choice([0, 1, 5, 10, 20])
        again, count = rng.choice([True, False, None]), rng.choice([1, 2, 3])
        yield (f"shuffle/{size}-of-{n}-{again}-{count}",
               lambda s=seed, b=size, m=n, a=again, c=count:
               ints(m).shuffle(b, seed=s, reshuffle_each_iteration=a).repeat(c))
        yield (f"shuffle_and_repeat/{size}-of-{n}-{count}",
               lambda s=seed, b=size, m=n, c=count: ints(m).apply(
                   tf.data.experimental.shuffle_and_repeat(b, c, seed=s)))
        yield (f"repeat-shuffle-batch/{size}-of-{n}",
               lambda s=seed, b=size, m=n: ints(m + 1).repeat(3).shuffle(b, seed=s).batch(4))
    yield "shuffle_and_repeat/for-ever", lambda: ints(4).apply(
        tf.data.experimental.shuffle_and_repeat(6, None, seed=3))
    yield "random", lambda: tf1.data.experimental.RandomDataset(seed=7).take(6)
    for drop in (True, False):
        yield f"batch/{drop}", lambda d=drop: pairs().batch(3, drop_remainder=d)
        yield f"padded/{drop}", lambda d=drop: ragged().padded_batch(4, [None], drop_remainder=d)
        yield f"window/{drop}", lambda d=drop: ints(11).window(
            4, 3, 2, drop_remainder=d).flat_map(lambda w: w.batch(9))
        yield f"map_and_batch/{drop}", lambda d=drop: ints(11).apply(
            tf.data.experimental.map_and_batch(lambda i: (i, i * i), 4, drop_remainder=d))
    yield "batch/unequal", lambda: ragged().batch(2)
    yield "batch/twice-unbatch", lambda: ints(12).batch(2).batch(3).unbatch()
    yield "padded/values", lambda: ragged().map(lambda x: (x, tf.strings.as_string(x))).padded_batch(
        3, ([5], [None]), (np.int64(-1), "?"))
    yield "padded/2d", lambda: ragged().map(lambda x: tf.tile(x[None], [tf.size(x), 1])).padded_batch(
        5, [None, 6])
    yield "padded/too-small", lambda: ragged().padded_batch(4, [3])
    yield "unbatch", lambda: ragged().unbatch()
    yield "window/overlap", lambda: pairs().window(3, 1).flat_map(
        lambda a, b: Data.zip((a.batch(3), b["t"].batch(3))))
    yield "window/gap", lambda: ints(20).window(2, 5).flat_map(lambda w: w)
    yield "window/for-ever", lambda: ints(3).repeat().window(2, 2, 3).flat_map(lambda w: w.batch(2))
    yield "map/captured", lambda: (lambda c: ints(5).map(lambda i: tf.cast(i, tf.float32) * c + 1))(
        tf.constant(2.5))
    yield "map/parallel", lambda: ints(9).map(lambda i: i * 3, num_parallel_calls=4)
    yield "map/autotune", lambda: ints(9).map(lambda i: -i, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    yield "map/cond", lambda: ints(8).map(lambda i: tf.cond(i % 2 > 0, lambda: i * 10, lambda: -i))
    yield "map/while", lambda: ints(6).map(lambda i: tf.while_loop(
        lambda j, s: j < i, lambda j, s: (j + 1, s + j), [np.int64(0), np.int64(0)])[1])
    for bad in (0, 3, 7):
        yield f"map/fails-at-{bad}", lambda b=bad: fails_at(b)
        yield f"map/fails-in-batch-{bad}", lambda b=bad: fails_at(b).batch(3)
        yield f"ignore_errors/{bad}", lambda b=bad: fails_at(b).apply(tf.data.experimental.ignore_errors())
        yield f"zip/fails-at-{bad}", lambda b=bad: Data.zip((ints(6), fails_at(b)))
    yield "filter", lambda: ints(20).filter(lambda i: tf.equal(i % 3, 1))
    yield "filter/none", lambda: ints(20).filter(lambda i: i < 0)
    yield "filter/pairs", lambda: pairs().filter(lambda a, b: tf.strings.length(b["t"]) > 1)
    yield "take_while", lambda: ints(20).take_while(lambda i: i * i < 50)
    yield "scan", lambda: ints(8).scan((np.int64(1), 0.5), lambda s, i: (
        (s[0] + i, s[1] * 2), (s[0] * i, s[1])))
    yield "flat_map", lambda: ints(5).flat_map(lambda i: Data.range(i, 2 * i))
    for cycle, block in ((1, 1), (2, 1), (3, 2), (4, 5), (9, 1)):
        for parallel in (None, 2):
            yield f"interleave/{cycle}-{block}-{parallel}", lambda c=cycle, b=block, p=parallel: ints(
                7).interleave(lambda i: Data.range(i % 4 + 1).map(lambda j: i * 10 + j), c, b,
                              num_parallel_calls=p, deterministic=True)
    yield "interleave/legacy", lambda: ints(7).apply(tf.data.experimental.parallel_interleave(
        lambda i: Data.range(i, i + i % 3 + 1), cycle_length=3, block_length=2, sloppy=False))
    yield "choose", lambda: tf1.data.experimental.choose_from_datasets(
        [ints(3), ints(9).skip(5), ints(1)], Data.range(12).map(lambda i: i * 7 % 3))
    yield "choose/stop", lambda: tf.data.experimental.choose_from_datasets(
        [ints(2), ints(9)], Data.range(2).repeat(), stop_on_empty_dataset=True)
    yield "sample", lambda: tf1.data.experimental.sample_from_datasets(
        [ints(4), ints(9).skip(5)], [0.3, 0.7], seed=11)
    yield "unique", lambda: Data.from_tensor_slices([5, 2, 5, 5, 3, 2, 1]).apply(tf.data.experimental.unique())
    yield "unique/strings", lambda: Data.from_tensor_slices(["a", "b", "a", "", "b", ""]).apply(
        tf.data.experimental.unique())
    yield "cache/repeat", lambda: ints(5).map(lambda i: i + 1).cache().repeat(3)
    yield "cardinality", lambda: ints(4).apply(tf.data.experimental.assert_cardinality(4))
    yield "cardinality/more", lambda: ints(5).apply(tf.data.experimental.assert_cardinality(4))
    yield "cardinality/less", lambda: ints(3).apply(tf.data.experimental.assert_cardinality(4))
    yield "group_by_window", lambda: ints(17).apply(tf.data.experimental.group_by_window(
        lambda i: i % 3, lambda k, d: d.batch(4), 4))
    yield "bucket", lambda: ragged().apply(tf.data.experimental.bucket_by_sequence_length(
        lambda x: tf.size(x), [2, 4], [2, 3, 2]))
    yield "group_by_reducer", lambda: ints(10).apply(tf.data.experimental.group_by_reducer(
        lambda i: i % 3, tf.data.experimental.Reducer(
            lambda k: k * 100, lambda s, i: s + i, lambda s: s)))
    yield "dense_to_sparse", lambda: ragged().apply(
        tf.data.experimental.dense_to_sparse_batch(4, [6])).map(tf.sparse.to_dense)
    yield "options", lambda: ints(3).with_options(tf.data.Options()).prefetch(2)
    for size in (0, 1, 3, AUTOTUNE):
        yield f"prefetch/{size}", lambda n=size: ints(5).prefetch(n)
        yield f"prefetch/fails-{size}", lambda n=size: fails_at(3).prefetch(n).batch(2)
    yield "prefetch/for-ever", lambda: ints(3).repeat().prefetch(5).map(lambda i: i + 1)
    yield "random/map", lambda: dice(5)
    yield "random/repeat", lambda: dice(4).repeat(2)
    yield "random/prefetch", lambda: dice(4).prefetch(2).repeat(2)
    yield "random/inside", lambda: ints(3).flat_map(lambda i: dice(3))
    yield "random/reduce", lambda: ints(3).map(
        lambda i: dice(3).reduce(np.int64(0), lambda s, d: s * 100 + d))
    yield "reduce", lambda: Data.from_tensors(0).map(
        lambda _: ints(6).reduce(np.int64(5), lambda s, i: s * 2 + i))
    yield "single", lambda: Data.from_tensors(0).map(
        lambda _: tf.data.experimental.get_single_element(ints(6).skip(5)))


# Files, as the cases write them into a folder of their own before they read.
FILES = {"a": b"one\ntwo\r\n\nf\rour", "b": b"", "c": b"x\n" * 5 + b"end\n"}


def file_pipelines(path):
    """`path` makes a tensor of a file's name."""
    files = [path(name) for name in FILES]
    yield "text", lambda: tf1.data.TextLineDataset(tf.stack(files))
    yield "text/missing", lambda: tf1.data.TextLineDataset(tf.stack([files[0], path("none"), files[2]]))
    yield "records/missing", lambda: tf1.data.TFRecordDataset(tf.stack([files[1], path("none")]))
    yield "records/none", lambda: tf1.data.TFRecordDataset(tf.stack([files[0], files[1]]))
    yield "records/damaged", lambda: tf1.data.TFRecordDataset(tf.stack([files[2], files[1]]))
    for header, size, footer in ((0, 2, 0), (2, 3, 0), (2, 3, 3), (1, 1, 13), (2, 5, 1), (0, 4, 20)):
        yield f"fixed/{header}-{size}-{footer}", lambda h=header, n=size, f=footer: (
            tf1.data.FixedLengthRecordDataset(tf.stack([files[2], files[1]]), n, h, f))
    yield "cache/file", lambda: pairs().cache(path("cache")).repeat(2)
    yield "cache/file-part", lambda: pairs().cache(path("cache")).take(3)


def flat(structure):
    out = tf.nest.flatten(structure)
    assert all(isinstance(t, tf.Tensor) for t in out)
    return out


def walk(sess, fetch):
    """Runs up to the end of the sequence, or some errors."""
    runs, failures = [], 0
    while len(runs) < ELEMENTS and failures < 4:
        done, error = try_run(sess, fetch)
        runs.append(done)
        failures += error is not None
        if isinstance(error, tf.errors.OutOfRangeError):
            break
    return runs


def pipeline_case(name, build, one_shot):
    graph = tf1.Graph()
    with graph.as_default():
        tf1.set_random_seed(1)
        dataset = build()
        make = tf1.data.make_one_shot_iterator if one_shot else tf1.data.make_initializable_iterator
        iterator = make(dataset)
        fetch = [t.name for t in flat(iterator.get_next())]
        init = None if one_shot else iterator.initializer.name
    runs = []
    with session(graph) as sess:
        for _ in range(1 if one_shot else 2):
            if init:
                runs.append(try_run(sess, [], target=[init])[0])
            runs += walk(sess, fetch)
    return case(("one-shot/" if one_shot else "data/") + name, graph, runs)


def file_case(index):
    """Of the index-th pipeline over files; None when there is none."""
    graph = tf1.Graph()
    with graph.as_default():
        folder = tf1.placeholder(tf.string, [], "folder")

        def path(name):
            return tf.strings.join([folder, "/" + name])
        made = list(file_pipelines(path))
        if index >= len(made):
            return None
        name, build = made[index]
        write = [tf.io.write_file(path(n), data).name for n, data in FILES.items()]
        iterator = tf1.data.make_initializable_iterator(build())
        fetch = [t.name for t in flat(iterator.get_next())]
    feed = [("folder:0", "$TMP")]
    with session(graph) as sess, tempfile.TemporaryDirectory() as real:
        runs = [try_run(sess, [], feed, write, real)[0]]
        for _ in range(2):
            runs.append(try_run(sess, [], feed, [iterator.initializer.name], real)[0])
            runs += walk(sess, fetch)
    return case("files/" + name, graph, runs)


# --- Examples: all that is legal on the wire, wrong types and counts, and some garbage ---

def wire_list(rng, kind):
    """The bytes of a list of 0 to 4 values: packed, not packed, or (seldom) both."""
    values = range(rng.choice([0, 1, 1, 2, 2, 3, 4]))
    if kind == 1:
        return b"".join(piece(1, bytes(rng.choices(b"abc", k=rng.randrange(3)))) for _ in values)
    pack = (lambda v: struct.pack("<f", v)) if kind == 2 else varint
    data = [pack(rng.randrange(300)) for _ in values]
    if rng.random() < 0.7:
        return piece(1, b"".join(data)) if data or rng.random() < 0.5 else b""
    return b"".join(varint(1 << 3 | (5 if kind == 2 else 0)) + d for d in data)


def wire_feature(rng, kind):
    if rng.random() < 0.05:
        return b""
    return piece(kind if rng.random() < 0.97 else rng.randrange(1, 4), wire_list(rng, kind))


KEYS = {"i": 3, "f": 2, "s": 1, "j": 3, "g": 2, "t": 1}


def wire_example(rng):
    entries = [(k, v) for k, v in KEYS.items() if rng.random() < 0.9]
    rng.shuffle(entries)
    if entries and rng.random() < 0.1:
        entries.append(rng.choice(entries))
    features = b"".join(piece(1, piece(1, k) + piece(2, wire_feature(rng, v))) for k, v in entries)
    lists = b"".join(piece(1, piece(1, k) + piece(2, b"".join(
        piece(1, wire_feature(rng, v)) for _ in range(rng.randrange(4)))))
        for k, v in KEYS.items() if rng.random() < 0.9)
    out = piece(1, features) + piece(2, lists)
    if rng.random() < 0.1:
        out += piece(9, b"unknown") + number(4, 7)
    return b"\x0f" + out[:5] if rng.random() < 0.03 else out


def example_ops(rng, text, single):
    """One parsing op over the strings `text`; what its outputs are called."""
    def shape(dims):
        return rng.choice(dims)
    dense = {"i": (tf.int64, shape([[], [1], [2], [None]])),
             "f": (tf.float32, shape([[], [2], [None], [None, 2]]))}
    defaults = {"i": np.int64(-3), "f": np.float32(0.5)}
    features = {}
    for key, (dtype, dims) in dense.items():
        if dims and dims[0] is None:
            features[key] = tf.io.FixedLenSequenceFeature(dims[1:], dtype, allow_missing=True,
                                                          default_value=defaults[key])
        else:
            has = rng.random() < 0.8
            features[key] = tf.io.FixedLenFeature(
                dims, dtype, np.full(dims, defaults[key]) if has else None)
    features["s"] = tf.io.VarLenFeature(tf.string)
    features["j"] = tf.io.VarLenFeature(tf.int64)
    features["g"] = tf.io.RaggedFeature(tf.float32, row_splits_dtype=rng.choice([tf.int32, tf.int64]))
    if single:
        features.pop("g")
        return tf.io.parse_single_example(text, features)
    return tf.io.parse_example(text, features)


def sequence_ops(rng, text, single):
    context = {"i": tf.io.FixedLenFeature([], tf.int64, np.int64(-3) if rng.random() < 0.8 else None),
               "s": tf.io.VarLenFeature(tf.string),
               "g": tf.io.RaggedFeature(tf.float32)}
    lists = {"f": tf.io.FixedLenSequenceFeature(rng.choice([[], [2]]), tf.float32,
                                                allow_missing=rng.random() < 0.8),
             "t": tf.io.VarLenFeature(tf.string),
             "j": tf.io.RaggedFeature(tf.int64)}
    parse = tf.io.parse_single_sequence_example if single else tf.io.parse_sequence_example
    return parse(text, context, lists)


def older_ops(rng, text, single):
    """ParseExample and ParseSingleExample as programs of TensorFlow 1.x have them."""
    shapes = [rng.choice([[], [1], [2], [None], [None, 2]]) for _ in range(2)]
    defaults = [tf.constant(v, t, [1]) if s and s[0] is None else
                tf.constant(v, t, s if rng.random() < 0.8 else [0])
                for v, t, s in ((-3, tf.int64, shapes[0]), (0.5, tf.float32, shapes[1]))]
    for default, dims in zip(defaults, shapes):
        if default.shape.num_elements() == 0:
            default.set_shape([0])
    if single:
        return tf.raw_ops.ParseSingleExample(
            serialized=text, dense_defaults=defaults, num_sparse=2, sparse_keys=["s", "j"],
            dense_keys=["i", "f"], sparse_types=[tf.string, tf.int64], dense_shapes=shapes)
    return tf.raw_ops.ParseExample(
        serialized=text, names=tf.constant([], tf.string), sparse_keys=["s", "j"],
        dense_keys=["i", "f"], dense_defaults=defaults, sparse_types=[tf.string, tf.int64],
        dense_shapes=shapes)


def older_sequence_ops(rng, text, single):
    """The same of SequenceExamples."""
    default = tf.constant(-3, tf.int64, [] if rng.random() < 0.8 else [0])
    may_miss = ["f"] if rng.random() < 0.8 else []
    types = dict(context_sparse_types=[tf.string], context_dense_shapes=[[]],
                 feature_list_sparse_types=[tf.string], feature_list_dense_types=[tf.float32],
                 feature_list_dense_shapes=[rng.choice([[], [2]])])
    if single:
        return tf.raw_ops.ParseSingleSequenceExample(
            serialized=text, debug_name="", context_dense_defaults=[default],
            feature_list_dense_missing_assumed_empty=tf.constant(may_miss, tf.string),
            context_sparse_keys=["s"], context_dense_keys=["i"], feature_list_sparse_keys=["t"],
            feature_list_dense_keys=["f"], **types)
    return tf.raw_ops.ParseSequenceExample(
        serialized=text, debug_name=tf.constant([], tf.string), context_dense_defaults=[default],
        feature_list_dense_missing_assumed_empty=may_miss, context_sparse_keys=["s"],
        context_dense_keys=["i"], feature_list_sparse_keys=["t"], feature_list_dense_keys=["f"],
        Ncontext_sparse=1, Ncontext_dense=1, Nfeature_list_sparse=1, Nfeature_list_dense=1, **types)


def example_case(seed):
    rng = random.Random(seed)
    single = rng.random() < 0.3
    make = rng.choice([example_ops, sequence_ops, older_ops, older_sequence_ops])
    graph = tf1.Graph()
    with graph.as_default():
        text = tf1.placeholder(tf.string, [] if single else [None], "text")
        parsed = make(rng, text, single)
        fetch = sorted({t.name for t in tf.nest.flatten(parsed, expand_composites=True)
                        if "Parse" in t.op.type})
    runs = []
    with session(graph) as sess:
        for _ in range(6):
            data = [wire_example(rng) for _ in range(1 if single else rng.randrange(4))]
            value = np.array(data[0] if single else data, dtype=object)
            runs.append(try_run(sess, fetch, [("text:0", value)])[0])
    return case(f"example/{make.__name__}/{'one' if single else 'many'}/{seed}", graph, runs)


def in_child(make):
    """What `make` returns, made by a child, as damaged Examples may crash TensorFlow; None then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as out:
                out.write(make())
            os._exit(0)
        except UnicodeDecodeError:  # of a message that quotes bytes: TensorFlow cannot say it
            os._exit(1)
        finally:
            os._exit(2)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    return data if os.waitpid(child, 0)[1] == 0 else None


def main(path, seed=1, examples=60, with_pipelines=True):
    count = 0
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(examples):
            data = in_child(lambda: example_case(seed * 1000 + i))
            if data:
                writer.write(data)
                count += 1
            else:
                print(f"left out example {seed * 1000 + i}: TensorFlow crashed")
        for name, build in pipelines(random.Random(seed)) if with_pipelines else ():
            for one_shot in (False, True):
                try:
                    writer.write(pipeline_case(name, build, one_shot))
                    count += 1
                except (ValueError, TypeError) as problem:
                    print(f"left out {name}: {str(problem)[:300]}")
        for data in iter(map(file_case, range(1000)).__next__, None) if with_pipelines else ():
            writer.write(data)
            count += 1
    print(count, "cases")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
