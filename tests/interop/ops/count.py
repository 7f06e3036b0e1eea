"""count.py - rows about numbers counted and places found."""

import numpy as np
import tensorflow as tf

from .frame import REAL, Row


FEW = "int32 int64 float32 float64"


def bins(s, shape):
    """Numbers, mostly fit to count, and what each counts for."""
    index = s.index_type()
    weights = s.values(shape if s.flag() else (0,), -3, 3)
    return s.ints(shape, -1 if s.rng.random() < 0.1 else 0, 6, index), weights, index


def bincount(s):
    shape = s.shape(1, 2, 6)
    values, weights, _ = bins(s, shape)
    return {"arr": values.astype(np.int32), "size": s.scalar(s.int(0, 8)), "weights": weights}


def dense_bincount(s):
    values, weights, index = bins(s, s.shape(1, 2, 6))
    return {"input": values, "size": s.scalar(s.int(0, 8), index), "weights": weights,
            "binary_output": s.flag()}


def sparse_places(s, shape, count):
    cells = int(np.prod(shape))
    chosen = np.sort(s.rng.choice(cells, size=min(count, cells), replace=False))
    return np.stack(np.unravel_index(chosen, shape), -1).astype(np.int64).reshape(-1, len(shape))


def sparse_bincount(s):
    shape = s.shape(1, 2, 6, least=1)
    places = sparse_places(s, shape, s.int(1, 6))
    values, weights, index = bins(s, (len(places),))
    return {"indices": places, "values": values, "dense_shape": np.array(shape, np.int64),
            "size": s.scalar(s.int(0, 8), index), "weights": weights, "binary_output": s.flag()}


def splits(s, count):
    inner = np.sort(s.ints((s.int(0, 4),), 0, count, "int64"))
    return np.concatenate([[0], inner, [count]]).astype(np.int64)


def ragged_bincount(s):
    count = s.int(0, 8)
    values, weights, index = bins(s, (count,))
    return {"splits": splits(s, count), "values": values, "size": s.scalar(s.int(0, 8), index),
            "weights": weights, "binary_output": s.flag()}


def limits(s):
    return {"minlength": s.pick(-1, 0, 4, 9), "maxlength": s.pick(-1, 0, 3, 8),
            "binary_output": s.flag()}


def dense_counts(s):
    values, weights, _ = bins(s, s.shape(1, 2, 6))
    return {"values": np.abs(values), "weights": weights, **limits(s)}


def sparse_counts(s):
    shape = s.shape(1, 2, 6, least=1)
    places = sparse_places(s, shape, s.int(1, 6))
    values, weights, _ = bins(s, (len(places),))
    return {"indices": places, "values": np.abs(values),
            "dense_shape": np.array(shape, np.int64), "weights": weights, **limits(s)}


def ragged_counts(s):
    count = s.int(0, 8)
    values, weights, _ = bins(s, (count,))
    return {"splits": splits(s, count), "values": np.abs(values), "weights": weights,
            **limits(s)}


def bucketize(s):
    bounds = sorted(float(np.float32(x)) for x in s.rng.uniform(-4, 4, s.int(0, 5)))
    return {"input": s.values(s.shape()), "boundaries": bounds}


def histogram(s):
    """No whole number lies between two bins: TensorFlow's way of dividing puts some of those into
    the lower one."""
    low = s.int(-5, 2)
    return {"values": s.values(s.shape(), -6, 6),
            "value_range": np.array([low, low + s.int(0, 6)], s.type.as_numpy_dtype),
            "nbins": s.scalar(s.pick(0, 1, 7, 11, 13)), "dtype": tf.as_dtype(s.index_type())}


def bound(s):
    rows = s.int(1, 3)
    inputs = np.sort(s.values((rows, s.int(0, 6)), -5, 5), -1)
    return {"sorted_inputs": inputs, "values": s.values((rows, s.int(0, 5)), -6, 6),
            "out_type": tf.as_dtype(s.index_type())}


def nth(s):
    shape = s.shape(1, 3, 6, least=1)
    return {"input": s.values(shape, -6, 6), "n": s.scalar(s.int(0, shape[-1])),
            "reverse": s.flag()}


def unravel(s):
    dims = s.ints((s.int(1, 4),), 1, 4, s.type)
    shape = s.shape(0, 1)
    return {"indices": s.ints(shape, 0, int(np.prod(dims)) - 1, s.type), "dims": dims}


def unique_axis(s):
    shape = s.shape(1, 3, 4)
    axis = [] if len(shape) == 1 and s.flag() else [s.axis(len(shape))]
    return {"x": s.values(shape, -1, 1) if s.type not in (tf.string, tf.bool) else
            s.values(shape), "axis": np.array(axis, np.int64),
            "out_idx": tf.as_dtype(s.index_type())}


def cross(s):
    shape = s.shape(0, 3) + (3,)
    return {"a": s.values(shape, -3, 3), "b": s.values(shape, -3, 3)}


ROWS = [
    Row("Bincount", FEW, bincount, "few"),
    Row("DenseBincount", FEW, dense_bincount, "few"),
    Row("SparseBincount", FEW, sparse_bincount, "few"),
    Row("RaggedBincount", FEW, ragged_bincount, "few"),
    Row("DenseCountSparseOutput", FEW, dense_counts, "few"),
    Row("SparseCountSparseOutput", FEW, sparse_counts, "few"),
    Row("RaggedCountSparseOutput", FEW, ragged_counts, "few"),
    Row("Bucketize", FEW, bucketize),
    Row("HistogramFixedWidth", FEW, histogram),
    Row("LowerBound", REAL, bound),
    Row("UpperBound", REAL, bound),
    Row("NthElement", REAL, nth),
    Row("UnravelIndex", "int32 int64", unravel),
    Row("UniqueV2", REAL + " bool string", unique_axis, constant=("axis",)),
    Row("UniqueWithCountsV2", REAL + " bool string", unique_axis, constant=("axis",)),
    Row("Cross", REAL, cross, "sum"),
]
