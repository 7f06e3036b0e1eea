"""array.py - shapes, joins and pieces."""

import numpy as np
import tensorflow as tf

from .frame import ANY, NUMBER, REAL, Row, unary


def reshape(s):
    shape = s.shape(0, 4, 4, 1)
    total = int(np.prod(shape, dtype=np.int64))
    target, rest = [], total
    for divisor in (2, 3, 4):
        if rest % divisor == 0 and s.flag():
            target.append(divisor)
            rest //= divisor
    target.append(-1 if s.flag() else rest)
    s.rng.shuffle(target)
    return {"tensor": s.values(shape),
            "shape": np.array(target, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def squeeze(s):
    shape = tuple(1 if s.flag() else d for d in s.shape(0, 5))
    ones = [i for i, d in enumerate(shape) if d == 1]
    dims = [i - (len(shape) if s.flag() else 0) for i in ones if s.flag()]
    return {"input": s.values(shape), "axis": dims}


def expand_dims(s):
    shape = s.shape()
    return {"input": s.values(shape), "axis": s.scalar(s.axis(len(shape) + 1), s.index_type())}


def pack(s):
    shape = s.shape(0, 3)
    return {"values": [s.values(shape) for _ in range(s.int(1, 4))],
            "axis": s.axis(len(shape) + 1)}


def unpack(s):
    shape = s.shape(1, 4, 4, 1)
    axis = s.axis(len(shape))
    return {"value": s.values(shape), "num": shape[axis], "axis": axis}


def concat(s):
    shape = s.shape(1, 4)
    axis = s.axis(len(shape))
    parts = []
    for _ in range(s.int(2, 4)):
        own = list(shape)
        own[axis] = s.int(0, 4)
        parts.append(s.values(tuple(own)))
    return {"values": parts, "axis": s.scalar(axis, s.index_type())}


def concat_v1(s):
    arguments = concat(s)
    return {"concat_dim": arguments["axis"].astype(np.int32), "values": arguments["values"]}


def split(s):
    shape = list(s.shape(1, 4))
    axis, parts = s.axis(len(shape)), s.int(1, 4)
    shape[axis] = parts * s.int(0, 3)
    return {"axis": s.scalar(axis), "value": s.values(tuple(shape)), "num_split": parts}


def split_v(s):
    shape = list(s.shape(1, 4))
    axis = s.axis(len(shape))
    sizes = [s.int(0, 3) for _ in range(s.int(1, 4))]
    shape[axis] = sum(sizes)
    if s.flag():
        sizes[s.int(0, len(sizes) - 1)] = -1
    return {"value": s.values(tuple(shape)),
            "size_splits": np.array(sizes, tf.as_dtype(s.index_type()).as_numpy_dtype),
            "axis": s.scalar(axis), "num_split": len(sizes)}


def slice_args(s):
    shape = s.shape(0, 5)
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    begin = [s.int(0, d) for d in shape]
    size = [s.pick(-1, s.int(0, d - b)) for d, b in zip(shape, begin)]
    return {"input": s.values(shape), "begin": np.array(begin, dtype),
            "size": np.array(size, dtype)}


def strided_spec(s, shape):
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    count = s.int(0, min(5, len(shape) + 1))
    begin = [s.int(-6, 6) for _ in range(count)]
    end = [s.int(-6, 6) for _ in range(count)]
    strides = [s.pick(1, 1, 2, 3, -1, -2) for _ in range(count)]
    mask = (lambda: s.int(0, 2 ** count - 1) if s.rng.random() < 0.4 else 0)
    ellipsis = 2 ** s.int(0, count - 1) if count and s.rng.random() < 0.3 else 0
    return {"begin": np.array(begin, dtype), "end": np.array(end, dtype),
            "strides": np.array(strides, dtype), "begin_mask": mask(), "end_mask": mask(),
            "ellipsis_mask": ellipsis, "new_axis_mask": mask(), "shrink_axis_mask": mask()}


def strided_slice(s):
    shape = s.shape(1, 4)
    return {"input": s.values(shape), **strided_spec(s, shape)}


def transpose(s):
    shape = s.shape(0, 5)
    order = s.rng.permutation(len(shape))
    return {"x": s.values(shape),
            "perm": np.array(order, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def tile(s):
    shape = s.shape(0, 4)
    return {"input": s.values(shape), "multiples": s.ints((len(shape),), 0, 3, s.index_type())}


def pad(s):
    shape = s.shape(0, 4)
    return {"input": s.values(shape), "paddings": s.ints((len(shape), 2), 0, 3, s.index_type())}


def pad_v2(s):
    return {**pad(s), "constant_values": s.values(())}


def mirror_pad(s):
    shape = s.shape(0, 4, 5, 1)
    mode = s.pick("REFLECT", "SYMMETRIC")
    less = mode == "REFLECT"
    pads = np.array([[s.int(0, d - less), s.int(0, d - less)] for d in shape],
                    tf.as_dtype(s.index_type()).as_numpy_dtype).reshape(len(shape), 2)
    return {"input": s.values(shape), "paddings": pads, "mode": mode}


def reverse_v2(s):
    shape = s.shape(0, 5)
    axes = [int(a) for a in s.rng.permutation(len(shape))[:s.int(0, len(shape))]]
    axes = [a - (len(shape) if s.flag() else 0) for a in axes]
    return {"tensor": s.values(shape),
            "axis": np.array(axes, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def reverse_sequence(s):
    shape = s.shape(2, 4)
    seq, batch = (int(a) for a in s.rng.permutation(len(shape))[:2])
    return {"input": s.values(shape), "seq_dim": seq, "batch_dim": batch,
            "seq_lengths": s.ints((shape[batch],), 0, shape[seq], s.index_type())}


def fill(s):
    return {"dims": np.array(s.shape(), tf.as_dtype(s.index_type()).as_numpy_dtype),
            "value": s.values(())}


def broadcast_to(s):
    a, b = s.broadcast_pair()
    target = np.broadcast_shapes(a, b)
    return {"input": s.values(a),
            "shape": np.array(target, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def one_hot(s):
    shape = s.shape(0, 3)
    return {"indices": s.ints(shape, -1, 5, s.index_type()),
            "depth": s.scalar(s.int(0, 6)), "on_value": s.values(()),
            "off_value": s.values(()), "axis": s.int(-1, len(shape))}


def space_to_depth(s):
    block = s.int(2, 3)
    return {"input": s.values((s.int(1, 2), block * s.int(1, 2), block * s.int(1, 2),
                               s.int(1, 3))), "block_size": block}


def depth_to_space(s):
    block = s.int(2, 3)
    return {"input": s.values((s.int(1, 2), s.int(1, 3), s.int(1, 3),
                               block * block * s.int(1, 2))), "block_size": block}


def space_to_batch(inverse, nd):
    def make(s):
        count = s.int(1, 3) if nd else 2
        sizes = [s.int(1, 3) for _ in range(count)] if nd else [2, 2]
        tail = s.shape(0, 2, 3) if nd else (s.int(1, 3),)
        space, pads = [], []
        for size in sizes:
            a, b = s.int(0, 2), s.int(0, 2)
            if inverse:
                least = -(-(a + b) // size)
                space.append(least + s.int(0, 2))
            else:
                length = s.int(1, 5)
                b += -(length + a + b) % size
                space.append(length)
            pads.append([a, b])
        blocks = int(np.prod(sizes))
        batch = s.int(1, 2) * (blocks if inverse else 1)
        pads = np.array(pads, tf.as_dtype(s.index_type()).as_numpy_dtype)
        arguments = {"input": s.values((batch, *space, *tail)),
                     "crops" if inverse else "paddings": pads}
        if nd:
            arguments["block_shape"] = np.array(sizes, np.int32)
        else:
            arguments["block_size"] = 2
        return arguments
    return make


def roll(s):
    shape = s.shape(1, 4)
    count = s.int(1, 3)
    return {"input": s.values(shape), "shift": s.ints((count,), -7, 7, s.index_type()),
            "axis": s.ints((count,), -len(shape), len(shape) - 1, s.index_type())}


def image_patches(s):
    return {"images": s.values((s.int(1, 2), s.int(2, 6), s.int(2, 6), s.int(1, 3))),
            "ksizes": [1, s.int(1, 3), s.int(1, 3), 1],
            "strides": [1, s.int(1, 3), s.int(1, 3), 1],
            "rates": [1, s.int(1, 2), s.int(1, 2), 1], "padding": s.pick("SAME", "VALID")}


ROWS = [
    Row("Reshape", ANY, reshape),
    Row("Squeeze", ANY, squeeze),
    Row("ExpandDims", ANY, expand_dims),
    Row("Pack", ANY, pack),
    Row("Unpack", ANY, unpack),
    Row("ConcatV2", ANY, concat),
    Row("Concat", ANY, concat_v1),
    Row("Split", ANY, split),
    Row("SplitV", ANY, split_v),
    Row("Slice", ANY, slice_args),
    Row("StridedSlice", ANY, strided_slice),
    Row("Transpose", ANY, transpose),
    Row("Tile", ANY, tile),
    Row("Pad", ANY, pad),
    Row("PadV2", ANY, pad_v2),
    Row("MirrorPad", ANY, mirror_pad),
    Row("ReverseV2", ANY, reverse_v2),
    Row("ReverseSequence", ANY, reverse_sequence),
    Row("Fill", ANY, fill),
    Row("BroadcastTo", ANY, broadcast_to, "sum"),
    Row("OneHot", ANY, one_hot),
    Row("Where", NUMBER + " bool", lambda s: {"condition": s.values(s.shape(1, 4))}),
    Row("ZerosLike", ANY, unary()),
    Row("OnesLike", NUMBER + " bool", unary()),
    Row("SpaceToDepth", ANY, space_to_depth),
    Row("DepthToSpace", ANY, depth_to_space),
    Row("SpaceToBatch", REAL, space_to_batch(False, False)),
    Row("SpaceToBatchND", REAL, space_to_batch(False, True), constant=("block_shape",)),
    Row("BatchToSpace", REAL, space_to_batch(True, False)),
    Row("BatchToSpaceND", REAL, space_to_batch(True, True), constant=("block_shape",)),
    Row("Roll", NUMBER + " bool string", roll),
    Row("ExtractImagePatches", NUMBER, image_patches, "exact"),
    Row("EnsureShape", ANY, lambda s: {"input": s.values((2, 3)),
                                       "shape": s.pick([2, 3], [None, 3], [2, 2], None)}),
]
