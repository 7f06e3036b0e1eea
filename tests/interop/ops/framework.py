"""framework.py - what passes values on, tells shapes, checks and prints."""

import numpy as np
import tensorflow as tf

from .frame import ANY, COMPLEX, FLOAT, INTEGER, NUMBER, Row, unary
from .gather import dynamic_stitch

WIDTHS = {1: "int8 uint8", 2: "half bfloat16 int16 uint16", 4: "float32 int32 uint32",
          8: "float64 int64 uint64 complex64", 16: "complex128"}


def bitcast(s):
    """To a type as wide, narrower (a dimension more) or wider (the last one goes)."""
    target = tf.as_dtype(s.pick(*" ".join(WIDTHS.values()).split()))
    shape = s.shape(0, 3)
    if target.size > s.type.size and s.rng.random() < 0.9:
        shape += (target.size // s.type.size,)
    return {"input": s.values(shape), "type": target}


def mixed(s, low=1, high=4):
    """Tensors of several types."""
    return [s.values(s.shape(0, 3, 4), dtype=s.pick(*ANY.split())) for _ in range(s.int(low, high))]


def shapes_of(name):
    def make(s):
        return {name: s.values(s.shape(0, 8, 2)), "out_type": tf.as_dtype(s.index_type())}
    return make


def shape_n(s):
    return {"input": [s.values(s.shape()) for _ in range(s.int(1, 3))],
            "out_type": tf.as_dtype(s.index_type())}


def two_shapes(s):
    a, b = s.broadcast_pair()
    if s.rng.random() < 0.1:
        a = s.shape()
    return {"s0": s.vector(a, s.type), "s1": s.vector(b, s.type)}


def permutation(s):
    order = s.rng.permutation(s.int(0, 8))
    if s.rng.random() < 0.2 and order.size:
        order[0] = s.pick(order[-1], -1, order.size)
    return {"x": s.vector(order, s.type)}


def concat_offset(s):
    shape = list(s.shape(1, 4))
    axis, parts = s.axis(len(shape)), []
    for _ in range(s.int(2, 4)):
        own = list(shape)
        own[axis] = s.int(0, 4)
        if s.rng.random() < 0.05:
            own[0] += 1
        parts.append(s.vector(own, s.type))
    return {"concat_dim": s.scalar(axis), "shape": parts}


def accumulate(s):
    shape = s.shape()
    return {"inputs": [s.values(shape) for _ in range(s.int(1, 4))], "shape": list(shape)}


def print_args(s):
    return {"input": s.values(s.shape()), "data": mixed(s), "message": "m", "first_n": s.int(-1, 2),
            "summarize": s.int(-1, 4)}


def fingerprint(s):
    method = b"farmhash64" if s.rng.random() < 0.9 else b"other"
    return {"data": s.values(s.shape(0, 3)), "method": s.string(method)}


def with_default(s):
    shape = s.shape(0, 3)
    known = [d if s.flag() else None for d in shape]
    return {"input": s.values(shape), "shape": s.pick(known, None, list(shape))}


def placeholder(s):
    return {"dtype": s.type, "shape": list(s.shape())}


def constant(s):
    return {"value": tf.make_tensor_proto(s.values(s.shape())), "dtype": s.type}


ROWS = [
    *(Row(op, ANY, unary("input")) for op in ("Identity", "StopGradient", "GuaranteeConst")),
    Row("PreventGradient", ANY, lambda s: {"input": s.values(s.shape()), "message": "no"}),
    Row("Snapshot", NUMBER + " bool", unary("input")),
    Row("IdentityN", ANY, lambda s: {"input": mixed(s)}),
    Row("Bitcast", FLOAT + " " + INTEGER + " " + COMPLEX, bitcast),
    Row("Const", ANY, constant),
    Row("Placeholder", ANY, placeholder),
    Row("PlaceholderWithDefault", ANY, with_default),
    Row("NoOp", "float32", lambda s: {}),
    Row("ControlTrigger", "float32", lambda s: {}),
    Row("Shape", ANY, shapes_of("input")),
    Row("Size", ANY, shapes_of("input")),
    Row("ShapeN", ANY, shape_n),
    Row("Rank", ANY, lambda s: {"input": s.values(s.shape(0, 8, 2))}),
    Row("BroadcastArgs", "int32 int64", two_shapes, spoil=False),
    Row("BroadcastGradientArgs", "int32 int64", two_shapes, spoil=False),
    Row("InvertPermutation", "int32 int64", permutation),
    Row("ConcatOffset", "int32 int64", concat_offset),
    Row("ParallelDynamicStitch", ANY, dynamic_stitch),
    Row("AccumulateNV2", NUMBER, accumulate, "few"),
    Row("CheckNumerics", FLOAT, lambda s: {"tensor": s.values(s.shape()), "message": "here"}),
    Row("Assert", "bool", lambda s: {"condition": np.array(s.rng.random() < 0.6), "data": mixed(s),
                                     "summarize": s.int(-1, 4)}),
    Row("Print", ANY, print_args),
    Row("PrintV2", "string", lambda s: {"input": s.text((), b"a", b"", b"x\n"),
                                        "output_stream": "stderr", "end": s.pick("\n", "")}),
    Row("ToBool", ANY, lambda s: {"input": s.values(s.shape(0, 2))}),
    Row("Fingerprint", ANY, fingerprint),
]
