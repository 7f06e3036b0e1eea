"""ragged.py - rows about rows of different lengths."""

import numpy as np
import tensorflow as tf

from .frame import NUMBER, Row


def splits(s, rows, dtype):
    """Splits of `rows` rows and how many parts they split."""
    lengths = s.ints((rows,), 0, 3, "int64")
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype), int(lengths.sum())


def nest(s, levels, dtype):
    rows, found = s.int(1, 4), []
    for _ in range(levels):
        one, rows = splits(s, rows, dtype)
        found.append(one)
    return found, rows


def ragged_range(s):
    rows = s.int(1, 4)
    part = lambda low, high: s.values((rows,) if s.flag() else (), low, high)
    deltas = part(1, 3) if s.flag() else part(-2, 2)
    return {"starts": part(-4, 4), "limits": part(-4, 9), "deltas": deltas,
            "Tsplits": tf.as_dtype(s.index_type())}


def to_sparse(s):
    dtype = np.dtype(s.index_type())
    found, rows = nest(s, s.int(1, 3), dtype)
    return {"rt_nested_splits": found, "rt_dense_values": s.values((rows,) + s.shape(0, 2, 3))}


def gather(s):
    dtype = np.dtype(s.index_type())
    found, rows = nest(s, s.int(1, 3), dtype)
    shape = s.shape(1, 2, 3, least=1)
    return {"params_nested_splits": found,
            "params_dense_values": s.values((rows,) + s.shape(0, 2, 3)),
            "indices": s.ints(shape, 0, len(found[0]) - 2, s.index_type()),
            "OUTPUT_RAGGED_RANK": len(found) + len(shape) - 1}


def to_tensor(s):
    dtype = np.dtype(s.index_type())
    levels = s.int(1, 3)
    found, rows = nest(s, levels, dtype)
    inner = s.shape(0, 1, 3, least=1)
    rank = levels + 1 + len(inner)
    types = ["ROW_SPLITS"] * levels
    if s.flag():
        ids = [np.repeat(np.arange(len(x) - 1), np.diff(x)).astype(dtype) for x in found]
        found = [np.array(len(found[0]) - 1, dtype)] + ids
        types = ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * levels
    shape = np.array(-1) if s.flag() else np.array(
        [s.pick(-1, 2, 3) for _ in range(levels + 1)] + [s.pick(-1, d) for d in inner])
    fill = inner if s.flag() else ()
    return {"shape": shape.astype(s.index_type()).reshape(() if shape.ndim == 0 else (rank,)),
            "values": s.values((rows,) + inner), "default_value": s.values(fill),
            "row_partition_tensors": found, "row_partition_types": types}


ROWS = [
    Row("RaggedRange", "int32 int64 float32 float64", ragged_range, "few"),
    Row("RaggedTensorToSparse", NUMBER + " string bool", to_sparse),
    Row("RaggedGather", NUMBER + " string bool", gather),
    # Partitions of more values than there are: it reads behind them.
    Row("RaggedTensorToTensor", NUMBER + " string bool", to_tensor, spoil=False),
]
