"""gather.py - gathering, scattering, partitions and order."""

import numpy as np
import tensorflow as tf

from .frame import ANY, NUMBER, REAL, Row


def gather_v2(s):
    shape = s.shape(1, 4, 5, 1)
    batch = s.int(0, min(2, len(shape) - 1))
    axis = s.int(batch, len(shape) - 1)
    indices = shape[:batch] + s.shape(0, 2)
    return {"params": s.values(shape), "batch_dims": batch, "axis": s.scalar(axis, s.index_type()),
            "indices": s.ints(indices, 0, shape[axis] - 1, s.index_type())}


def gather(s):
    shape = s.shape(1, 4, 5, 1)
    return {"params": s.values(shape),
            "indices": s.ints(s.shape(0, 2), 0, shape[0] - 1, s.index_type())}


def nd_indices(s, shape, depth, lead):
    dtype = s.index_type()
    columns = [s.ints(lead, 0, max(d - 1, 0), dtype) for d in shape[:depth]]
    return (np.stack(columns, -1) if columns
            else np.zeros(lead + (0,), tf.as_dtype(dtype).as_numpy_dtype))


def gather_nd(s):
    shape = s.shape(1, 4, 5, 1)
    depth = s.int(0, len(shape))
    return {"params": s.values(shape), "indices": nd_indices(s, shape, depth, s.shape(0, 2))}


def scatter_nd(s):
    shape = s.shape(1, 4, 5, 1)
    depth, lead = s.int(1, len(shape)), s.shape(1, 2)
    indices = nd_indices(s, shape, depth, lead)
    return {"indices": indices, "updates": s.values(lead + shape[depth:]),
            "shape": np.array(shape, indices.dtype)}


def tensor_scatter(s):
    arguments = scatter_nd(s)
    shape = tuple(arguments.pop("shape"))
    return {"tensor": s.values(shape), **arguments}


def dynamic_partition(s):
    shape = s.shape(1, 4)
    depth = s.int(1, len(shape))
    return {"data": s.values(shape), "partitions": s.ints(shape[:depth], 0, 2),
            "num_partitions": 3}


def dynamic_stitch(s):
    tail, count = s.shape(0, 2), s.int(1, 3)
    shapes = [s.shape(0, 2, 3) for _ in range(count)]
    total = sum(int(np.prod(x, dtype=np.int64)) for x in shapes)
    order, at, indices = s.rng.permutation(max(total, 1)), 0, []
    for shape in shapes:
        size = int(np.prod(shape, dtype=np.int64))
        indices.append(order[at:at + size].reshape(shape).astype(np.int32))
        at += size
    return {"indices": indices, "data": [s.values(x + tail) for x in shapes]}


def top_k(s):
    s.tame = True  # where NaN comes hangs on the steps of the algorithm
    shape = s.shape(1, 3, 7)
    return {"input": s.values(shape), "k": s.scalar(s.int(0, shape[-1])), "sorted": True}


def in_top_k_v1(s):
    arguments = in_top_k(s)
    arguments["k"] = int(arguments["k"])
    return arguments


def in_top_k(s):
    rows, classes = s.int(1, 5), s.int(1, 6)
    dtype = s.index_type()
    s.type = tf.float32
    return {"predictions": s.values((rows, classes)),
            "targets": s.ints((rows,), 0, classes - 1, dtype),
            "k": s.scalar(s.int(0, classes), dtype)}


ROWS = [
    Row("TensorScatterUpdate", ANY, tensor_scatter),
    *(Row(f"TensorScatter{k}", NUMBER, tensor_scatter, "sum") for k in ("Add", "Sub")),
    *(Row(f"TensorScatter{k}", REAL, tensor_scatter, "sum") for k in ("Max", "Min")),
    Row("Gather", ANY, gather),
    Row("GatherV2", ANY, gather_v2),
    Row("GatherNd", ANY, gather_nd),
    Row("ScatterNd", ANY, scatter_nd, "sum"),
    Row("DynamicPartition", ANY, dynamic_partition),
    Row("DynamicStitch", ANY, dynamic_stitch),
    Row("Unique", REAL + " bool string", lambda s: {"x": s.values(s.shape(1, 1, 9))}),
    Row("UniqueWithCounts", REAL + " bool string",
        lambda s: {"x": s.values(s.shape(1, 1, 9))}),
    Row("ListDiff", REAL + " string", lambda s: {"x": s.values(s.shape(1, 1, 9)),
                                                 "y": s.values(s.shape(1, 1, 9))}),
    Row("TopKV2", REAL, top_k),
    Row("InTopK", "float32", in_top_k_v1),
    Row("InTopKV2", "float32", in_top_k),
]
