"""reduce.py - along axes."""

import numpy as np
import tensorflow as tf

from .frame import FLOAT, NUMBER, REAL, Row


def reduce_args(s):
    shape = s.shape(0, 5, 4)
    rank = len(shape)
    axes = list(s.rng.permutation(rank)[:s.int(0, rank)])
    axes = [int(a) - (rank if s.flag() else 0) for a in axes]
    if len(axes) == 1 and s.flag():
        indices = s.scalar(axes[0], s.index_type())
    else:
        indices = np.array(axes, tf.as_dtype(s.index_type()).as_numpy_dtype)
    return {"input": s.values(shape), "axis": indices, "keep_dims": s.flag()}


def factors(s):
    """Of 16 bits, products of which no part overflows: TensorFlow multiplies in 16 bits, in
    another order, and what overflowed on the way stays so."""
    arguments = reduce_args(s)
    if s.type in (tf.half, tf.bfloat16):
        arguments["input"] = s.values(arguments["input"].shape, -1, 1)
    return arguments


def logical_reduce(s):
    arguments = reduce_args(s)
    arguments["input"] = s.values(arguments["input"].shape, dtype="bool")
    return arguments


def arg_extreme(s):
    shape = s.shape(1, 4, 5)
    return {"input": s.values(shape), "dimension": s.scalar(s.axis(len(shape)), s.index_type()),
            "output_type": tf.as_dtype(s.index_type())}


def cumulative(s):
    shape = s.shape(1, 4)
    return {"x": s.values(shape), "axis": s.scalar(s.axis(len(shape)), s.index_type()),
            "exclusive": s.flag(), "reverse": s.flag()}


ROWS = [
    *(Row(op, NUMBER, reduce_args, "sum") for op in ("Sum", "Mean")),
    Row("Prod", NUMBER, factors, "sum"),
    *(Row(op, REAL, reduce_args, "round") for op in ("Max", "Min")),
    Row("All", "bool", logical_reduce),
    Row("Any", "bool", logical_reduce),
    Row("ArgMax", REAL + " bool", arg_extreme),
    Row("ArgMin", REAL + " bool", arg_extreme),
    Row("L2Loss", FLOAT, lambda s: {"t": s.values(s.shape())}, "sum"),
    Row("Cumsum", NUMBER, cumulative, "sum"),
    Row("Cumprod", NUMBER, cumulative, "sum"),
]
