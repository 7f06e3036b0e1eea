"""examples.py - tf.Examples parsed by a dataset, and ragged tensors in and out of variants."""

import numpy as np
import tensorflow as tf

from programs.program import v1

KEYS = ["a", "b", "aa", "Z", "m", "zz", "_"]
NUMPY = {tf.float32: "float32", tf.int64: "int64", tf.string: object}


def values(p, dtype, count):
    if dtype == tf.string:
        return [p.string() for _ in range(count)]
    if dtype == tf.int64:
        return [p.int(-9, 9) for _ in range(count)]
    return [p.int(-40, 40) / 8 for _ in range(count)]


def feature(p):
    """How one key is read, its type, and how many values suit it (None: any number)."""
    dtype = p.pick(tf.float32, tf.int64, tf.string)
    kind = p.int(0, 4)
    if kind == 0:
        return tf.io.VarLenFeature(dtype), dtype, None
    if kind == 1:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=p.pick(tf.int32, tf.int64)), dtype, None
    if kind == 2:
        default = values(p, dtype, 1)[0] if p.flag() else None
        return tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True, default_value=default), dtype, None
    shape = p.pick([], [1], [2], [2, 1])
    count = int(np.prod(shape))
    default = np.array(values(p, dtype, count), NUMPY[dtype]).reshape(shape) if p.flag() else None
    return tf.io.FixedLenFeature(shape, dtype, default), dtype, count


def example(p, features):
    made = tf.train.Example()
    for key, (_, dtype, count) in features.items():
        if p.chance(0.2):
            continue
        if p.chance(0.05):
            dtype = tf.int64
        found = values(p, dtype, p.int(0, 3) if count is None or p.chance(0.05) else count)
        kind = {tf.float32: "float_list", tf.int64: "int64_list", tf.string: "bytes_list"}[dtype]
        getattr(made.features.feature[key], kind).value.extend(found)
    return made.SerializeToString(deterministic=True)


def parsed(p):
    names = p.rng.permutation(KEYS)[:p.int(1, 5)]
    features = {str(name): feature(p) for name in names}
    data = [example(p, features) for _ in range(p.int(1, 6))]
    if p.chance(0.1):
        data[-1] = b"\x0a\x05broken"
    spec = {key: one[0] for key, one in features.items()}
    dataset = v1.data.Dataset.from_tensor_slices(np.array(data, object)).batch(p.int(1, 3))
    parse = tf.data.experimental.parse_example_dataset(spec, num_parallel_calls=p.pick(1, 2))
    iterator = v1.data.make_initializable_iterator(dataset.apply(parse))
    fetch = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    p.run(target=[iterator.initializer])
    for _ in range(8):
        if p.run(fetch) is None:
            break


def ragged_tensor(p, levels):
    """Nested lists of up to 3, `levels` deep below the outermost."""
    if levels < 0:
        return p.int(-9, 9)
    return [ragged_tensor(p, levels - 1) for _ in range(p.int(0, 3))]


def variants(p):
    levels = p.int(1, 3)
    whole = tf.ragged.constant(ragged_tensor(p, levels), ragged_rank=levels, dtype=p.pick(tf.int32, tf.float32),
                               row_splits_dtype=p.pick(tf.int32, tf.int64))
    batched = p.flag()
    encoded = whole._to_variant(batched_input=batched)
    fetch = [tf.shape(encoded)]
    want = levels + (p.int(-1, 1) if p.chance(0.15) else 0)
    back = tf.RaggedTensor._from_variant(
        encoded, whole.dtype if p.chance(0.9) else tf.int64, output_ragged_rank=max(want, 1),
        input_ragged_rank=max(want, 1) - (1 if batched else 0) if p.flag() else None,
        row_splits_dtype=whole.row_splits.dtype)
    fetch += tf.nest.flatten(back, expand_composites=True)
    p.run(fetch)
    if batched:
        rows = v1.data.Dataset.from_tensor_slices(whole).batch(p.int(1, 3))
        iterator = v1.data.make_initializable_iterator(rows)
        fetch = tf.nest.flatten(iterator.get_next(), expand_composites=True)
        p.run(target=[iterator.initializer])
        for _ in range(5):
            if p.run(fetch) is None:
                break
