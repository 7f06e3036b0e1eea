"""graph.py - graphs of several rows: what one computes is what others are given."""

import numpy as np
import tensorflow as tf

from . import array, diagonal, gather, math, matrix, nn, reduce, segment
from .frame import Source, Step, Story

# Answers of the others are exact or rounded once, so that both jump at the same places.
SMOOTH = ("few", "sum", "loose")
# Inputs that may be any number: the rest are places, shapes and axes.
NUMBERS = ("x", "y", "t", "e", "input", "inputs", "tensor", "value", "values", "params", "data",
           "features", "images", "a", "b", "diagonal", "updates", "bias", "gradients", "z")
# Ops whose answers move as their inputs do: they may be given what is not exact.
CONTINUOUS = set("""Add AddV2 Sub Mul Neg Abs Square SquaredDifference Maximum Minimum Tanh Sigmoid
    Sin Cos Exp Erf Relu Relu6 Elu Selu Softplus Softsign LeakyRelu Softmax LogSoftmax Sum Mean Max
    Min AddN MatMul BatchMatMul BatchMatMulV2 Einsum Reshape Squeeze ExpandDims Pack ConcatV2 Slice
    StridedSlice Transpose Tile Pad MirrorPad ReverseV2 GatherV2 GatherNd SegmentSum BiasAdd
    UnsortedSegmentSum MatrixBandPart BroadcastTo Cumsum L2Loss Select SelectV2 ClipByValue
    MatrixDiag MatrixDiagPart ScatterNd Roll""".split())
LEFT_OUT = {"Empty", "Pow", "Cumprod", "Prod", "Expm1", "Cosh", "Sinh", "Polygamma", "Zeta",
            "MatrixDeterminant", "LogMatrixDeterminant", "Lgamma", "Digamma", "Placeholder"}
ROWS_USED = [row for module in (math, array, gather, reduce, matrix, nn, segment, diagonal)
             for row in module.ROWS if row.op not in LEFT_OUT and row.kind != "loose"]


class Grown:
    """A graph that grows node by node; which of its tensors are not exact."""

    def __init__(self, source):
        self.s, self.feed, self.tensors, self.rough = source, {}, [], set()

    def leaf(self, array):
        if self.s.rng.random() < 0.4:
            return tf.constant(array)
        known = array.shape if self.s.flag() else None
        tensor = tf.compat.v1.placeholder(tf.as_dtype(array.dtype), known)
        self.feed[tensor] = array
        return tensor

    def adapted(self, shape, dtype, exact):
        """Some tensor of that type, brought into that shape; None if there is none."""
        found = [t for t in self.tensors if t.dtype == dtype and
                 not (exact and t.ref() in self.rough)]
        if not found:
            return None, False
        tensor = self.s.pick(*found)
        rough = tensor.ref() in self.rough
        if tensor.shape.is_fully_defined() and tuple(tensor.shape) == tuple(shape):
            return tensor, rough
        count = int(np.prod(shape, dtype=np.int64))
        flat = tf.reshape(tensor, [-1])
        # Begins again when it is too short; nothing in it is a mistake of this program.
        flat = tf.concat([flat, tf.ones([1], dtype)], 0)
        places = tf.math.floormod(tf.range(count), tf.size(flat))
        return tf.reshape(tf.gather(flat, places), shape), rough

    def input(self, name, value, row):
        """The array itself, or something that was computed, in its place."""
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            parts = [self.input(name, part, row) for part in value]
            return [t for t, _ in parts], any(rough for _, rough in parts)
        if not isinstance(value, np.ndarray):
            return value, False
        dtype = tf.as_dtype(value.dtype)
        if name in NUMBERS and self.s.rng.random() < 0.8:
            tensor, rough = self.adapted(value.shape, dtype, row.op not in CONTINUOUS)
            if tensor is not None:
                return tensor, rough
        return self.leaf(value), False

    def add(self, row):
        source = Source(row, self.s.rng)
        source.tame = True
        types = {t.dtype.base_dtype for t in self.tensors} & {tf.as_dtype(t) for t in row.types}
        if not types:
            return
        source.type = self.s.pick(*sorted(types, key=lambda t: t.name))
        arguments, rough = {}, row.kind in SMOOTH or source.type.size < 4
        for name, value in row.make(source).items():
            arguments[name], is_rough = self.input(name, value, row)
            rough |= is_rough
        result = getattr(tf.raw_ops, row.op)(**arguments)
        while isinstance(result, (list, tuple)):
            result = result[0]
        new = [t for t in result.op.outputs if t.dtype.size or t.dtype == tf.string]
        self.tensors += new
        if rough:
            self.rough |= {t.ref() for t in new}


def grown(s):
    graph = Grown(s)
    s.tame = True
    for dtype in {s.type, s.pick(tf.float32, tf.float64, tf.int32, tf.bool, tf.int64)}:
        for _ in range(2):
            graph.tensors.append(graph.leaf(s.values(s.shape(0, 3, 4, 1), dtype=dtype)))
    first = len(graph.tensors)
    for _ in range(s.int(3, 15)):
        try:
            graph.add(s.pick(*ROWS_USED))
        except (ValueError, TypeError, NotImplementedError, tf.errors.OpError):
            pass  # not a node after all
    made = graph.tensors[first:]
    if not made:
        return grown(s)
    fetch = [t for t in made[:-1] if s.rng.random() < 0.3] + [made[-1]]
    return [Step(fetch, graph.feed)]


ROWS = [Story("Grown", "", grown, "float32 float32 float64 int32 half", "loose", weight=40)]
