"""sparse.py - sparse tensors."""

import numpy as np
import tensorflow as tf

from .frame import ANY, Row


def sparse_to_dense(s):
    shape = s.shape(1, 3, 5, 1)
    places = sorted(set(tuple(s.int(0, d - 1) for d in shape) for _ in range(s.int(0, 5))))
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    return {"sparse_indices": np.array(places, dtype).reshape(len(places), len(shape)),
            "output_shape": np.array(shape, dtype), "sparse_values": s.values((len(places),)),
            "default_value": s.values(())}


ROWS = [
    Row("SparseToDense", ANY, sparse_to_dense),
]
