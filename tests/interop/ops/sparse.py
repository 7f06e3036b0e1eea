"""sparse.py - sparse tensors: indices, values and a shape."""

import numpy as np
import tensorflow as tf

from .frame import ANY, COMPLEX, NUMBER, REAL, Row

SUMMED = "float32 float64 int8 int16 int32 int64 complex64 complex128"  # SparseAdd's


def places(s, shape, count=None, kind="int64", odd=("order", "twice", "outside")):
    """Indices in order, each once; now and then out of order, twice, or outside: as far as
    TensorFlow's kernel is defined there."""
    total = int(np.prod(shape, dtype=np.int64))
    count = min(s.int(0, 6) if count is None else count, total)
    flat = np.sort(s.rng.permutation(total)[:count]) if total else np.zeros(0, np.int64)
    index = np.stack(np.unravel_index(flat, shape), -1) if shape else np.zeros((count, 0))
    index = index.reshape(count, len(shape)).astype(tf.as_dtype(kind).as_numpy_dtype)
    how = s.pick(*odd) if odd and s.rng.random() < 0.1 else None
    if how == "order" and count > 1:
        index = index[::-1].copy()
    elif how == "twice" and count > 1:
        index[1] = index[0]
    elif how == "outside" and index.size:
        index.reshape(-1)[s.int(0, index.size - 1)] = s.pick(-1, 9)
    return index


def sparse(s, prefix, shape, names=("indices", "values", "shape"), count=None, dtype=None,
           odd=("order", "twice", "outside")):
    index = places(s, shape, count, odd=odd)
    return {prefix + names[0]: index, prefix + names[1]: s.values((len(index),), dtype=dtype),
            prefix + names[2]: s.vector(shape, "int64")}


def one(prefix, names=("indices", "values", "shape"), low=1, high=3):
    return lambda s: sparse(s, prefix, s.shape(low, high, 4), names)


def to_dense(s):
    shape = s.shape(0, 3, 5)
    kind = s.index_type()
    index = places(s, shape, kind=kind)
    if len(shape) == 1 and s.flag():
        index = index[:, 0]
    values = () if s.rng.random() < 0.2 else (len(index),)
    return {"sparse_indices": index, "output_shape": s.vector(shape, kind),
            "sparse_values": s.values(values), "default_value": s.values(()),
            "validate_indices": s.rng.random() < 0.8}


def add(s):
    shape = s.shape(1, 3, 4)
    real = {"complex64": "float32", "complex128": "float64"}.get(s.type.name, s.type.name)
    return {**sparse(s, "a_", shape), **sparse(s, "b_", shape),
            "thresh": s.values((), 0, 2, real) if s.flag() else s.scalar(0, real)}


def add_grad(s):
    shape = s.shape(1, 3, 4, 1)
    total = int(np.prod(shape))
    flat = [np.sort(s.rng.permutation(total)[:s.int(0, min(5, total))]) for _ in range(2)]
    both = np.union1d(*flat).astype(np.int64)
    index = (lambda f: np.stack(np.unravel_index(f.astype(np.int64), shape), -1).astype(np.int64))
    return {"backprop_val_grad": s.values(both.shape), "a_indices": index(flat[0]),
            "b_indices": index(flat[1]), "sum_indices": index(both)}


def concat(s):
    shape = list(s.shape(1, 3, 4))
    axis, parts = s.axis(len(shape)), []
    for _ in range(s.int(2, 4)):
        own = list(shape)
        own[axis] = s.int(0, 4)
        parts.append(sparse(s, "", tuple(own)))
    return {"indices": [p["indices"] for p in parts], "values": [p["values"] for p in parts],
            "shapes": [p["shape"] for p in parts], "concat_dim": axis}


def split(s):
    shape = s.shape(1, 3, 5)
    axis = s.int(0, len(shape) - 1)
    return {"split_dim": s.scalar(axis, "int64"), **sparse(s, "", shape),
            "num_split": s.int(1, max(1, shape[axis]) + (s.rng.random() < 0.1))}


def dense_cwise(s):
    shape = s.shape(1, 3, 4)
    dense = [d if s.rng.random() < 0.7 else 1 for d in shape]
    return {**sparse(s, "sp_", shape), "dense": s.values(tuple(dense[s.int(0, 1):]))}


def dense_add(s):
    shape = s.shape(1, 4, 4)
    index = s.index_type()
    return {"a_indices": places(s, shape, kind=index),
            "a_values": None, "a_shape": s.vector(shape, index), "b": s.values(shape)}


def dense_add_filled(s):
    arguments = dense_add(s)
    arguments["a_values"] = s.values((len(arguments["a_indices"]),))
    return arguments


def fill_rows(s):
    shape = s.shape(1, 3, 5)
    if s.rng.random() < 0.7 and len(shape) < 2:
        shape += (3,)
    return {**sparse(s, "", shape, ("indices", "values", "dense_shape")),
            "default_value": s.values(())}


def fill_rows_grad(s):
    count, values = s.int(0, 5), s.int(0, 7)
    index = s.rng.permutation(values)[:count] if values else np.zeros(0)
    return {"reverse_index_map": index.astype(np.int64), "grad_values": s.values((values,))}


def reduce(s):
    shape = s.shape(1, 4, 4)
    axes = s.rng.permutation(len(shape))[:s.int(0, len(shape))]
    axes = [a - len(shape) if s.flag() else a for a in axes]
    return {**sparse(s, "input_", shape), "keep_dims": s.flag(),
            "reduction_axes": s.scalar(axes[0]) if len(axes) == 1 and s.flag() else
            s.vector(axes)}


def reorder(s):
    arguments = one("input_")(s)
    order = s.rng.permutation(len(arguments["input_indices"]))
    arguments["input_indices"] = arguments["input_indices"][order]
    return arguments


def reshape(s):
    shape = s.shape(1, 3, 4)
    total, target, rest = int(np.prod(shape)), [], int(np.prod(shape))
    for divisor in (2, 3):
        if rest and rest % divisor == 0 and s.flag():
            target.append(divisor)
            rest //= divisor
    target.append(-1 if s.flag() and total else rest)
    return {"input_indices": places(s, shape), "input_shape": s.vector(shape, "int64"),
            "new_shape": s.vector(target, "int64")}


def slice_args(s):
    shape = s.shape(1, 3, 5)
    return {**sparse(s, "", shape, count=s.int(0, 9)),
            "start": s.vector([s.int(0, d) for d in shape], "int64"),
            "size": s.vector([s.int(0, d + 1) for d in shape], "int64")}


def slice_grad(s):
    shape = s.shape(1, 3, 5, 1)
    index = places(s, shape, s.int(1, 8))
    start = np.array([s.int(0, d - 1) for d in shape], np.int64)
    kept = index[(index >= start).all(1)]
    return {"backprop_val_grad": s.values((len(kept),)), "input_indices": index,
            "input_start": start, "output_indices": kept - start}


def softmax(s):
    shape = s.shape(2, 3, 4)
    arguments = sparse(s, "sp_", shape, odd=())
    arguments["sp_values"] = s.values(arguments["sp_values"].shape, -4, 4)
    return arguments


def both(s):
    shape = s.shape(1, 3, 4)
    return {**sparse(s, "a_", shape), **sparse(s, "b_", shape)}


def mat_mul(s):
    m, k, n = s.int(1, 4), s.int(1, 4), s.int(1, 4)
    adjoint_a, adjoint_b = s.flag(), s.flag()
    a = (k, m) if adjoint_a else (m, k)
    index = places(s, a, kind=s.index_type())
    return {"a_indices": index, "a_values": s.values((len(index),), -3, 3),
            "a_shape": s.vector(a, "int64"),
            "b": s.values((n, k) if adjoint_b else (k, n), -3, 3), "adjoint_a": adjoint_a,
            "adjoint_b": adjoint_b}


def edit_distance(s):
    lead = s.shape(1, 2, 3)
    part = (lambda name: sparse(s, name + "_", lead + (s.int(1, 4),), count=s.int(0, 8),
                                odd=()))
    return {**part("hypothesis"), **part("truth"), "normalize": s.flag()}


def cross_parts(s):
    """Columns with the same rows: some sparse, some dense; integers or words."""
    rows = s.int(1, 3)
    kind = (lambda: s.pick("int64", "string"))
    columns = [sparse(s, "", (rows, s.int(1, 3)), dtype=kind(), odd=("order", "twice")) for _ in range(s.int(1, 3))]
    return {"indices": [c["indices"] for c in columns], "values": [c["values"] for c in columns],
            "shapes": [c["shape"] for c in columns],
            "dense_inputs": [s.values((rows, s.int(1, 2)), dtype=kind())
                             for _ in range(s.int(0, 2))]}


def cross(s):
    parts, hashed = cross_parts(s), s.flag()
    internal = "int64" if hashed else "string"
    if not hashed:  # words only
        for name in ("values", "dense_inputs"):
            parts[name] = [s.values(v.shape, dtype="string") for v in parts[name]]
    return {**parts, "hashed_output": hashed, "num_buckets": s.pick(0, 7, 1000),
            "hash_key": s.pick(956888297470, 1), "internal_type": tf.as_dtype(internal),
            "out_type": tf.as_dtype("int64" if hashed else "string")}


def cross_v2(s):
    parts = cross_parts(s)
    for name in ("values", "dense_inputs"):
        parts[name] = [s.values(v.shape, dtype="string") for v in parts[name]]
    return {**parts, "sep": s.string(s.pick(b"_X_", b""))}


def cross_hashed(s):
    parts = cross_parts(s)  # dense integers are read from where they point at
    parts["dense_inputs"] = [s.values(v.shape, dtype="string") for v in parts["dense_inputs"]]
    return {**parts, "num_buckets": s.scalar(s.pick(0, 7, 1000), "int64"),
            "strong_hash": np.array(s.flag()), "salt": s.vector([s.int(0, 9), s.int(0, 9)], "int64")}


def serialized(s):
    """What SerializeManySparse makes of one, from TensorFlow."""
    arguments = sparse(s, "sparse_", (s.int(1, 3), s.int(1, 4)))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        try:
            return session.run(tf.raw_ops.SerializeManySparse(**arguments))
        except tf.errors.OpError:
            return np.array([[b"a", b"b", b"c"]], object)


def deserialize(s):
    rows = serialized(s)
    if s.flag() and len(rows):
        rows = rows[0]
    return {"serialized_sparse": rows, "dtype": s.type if s.rng.random() < 0.9 else tf.int32}


def deserialize_many(s):
    return {"serialized_sparse": serialized(s), "dtype": s.type}


ROWS = [
    Row("SparseToDense", ANY, to_dense),
    Row("SparseAdd", SUMMED, add, "few"),
    Row("SparseAddGrad", SUMMED, add_grad),
    Row("SparseConcat", ANY, concat),
    Row("SparseSplit", ANY, split),
    Row("SparseCross", "int64", cross, spoil=False),
    Row("SparseCrossV2", "string", cross_v2, spoil=False),
    Row("SparseCrossHashed", "int64", cross_hashed, spoil=False),
    *(Row(f"SparseDenseCwise{k}", REAL, dense_cwise, "few") for k in ("Add", "Mul", "Div")),
    Row("SparseTensorDenseAdd", NUMBER, dense_add_filled, "few"),
    Row("SparseTensorDenseMatMul", "bfloat16 half float32 float64 int32 " + COMPLEX, mat_mul, "sum"),
    Row("SparseFillEmptyRows", ANY, fill_rows),
    Row("SparseFillEmptyRowsGrad", NUMBER, fill_rows_grad, "sum"),
    Row("SparseReduceSum", NUMBER, reduce, "sum"),
    Row("SparseReduceSumSparse", NUMBER, reduce, "sum"),
    Row("SparseReduceMax", REAL, reduce),
    Row("SparseReduceMaxSparse", REAL, reduce),
    Row("SparseReorder", ANY, reorder, spoil=False),
    Row("SparseReshape", "int64", reshape),
    Row("SparseSlice", ANY, slice_args),
    Row("SparseSliceGrad", NUMBER, slice_grad),
    Row("SparseSoftmax", "half float32 float64", softmax, "loose", spoil=False),
    Row("SparseSparseMaximum", REAL, both, "round"),
    Row("SparseSparseMinimum", REAL, both, "round"),
    Row("EditDistance", ANY, edit_distance, "few", spoil=False),
    Row("SerializeSparse", ANY, one("sparse_")),
    Row("SerializeManySparse", ANY, one("sparse_", low=2)),
    Row("DeserializeSparse", ANY, deserialize),
    Row("DeserializeManySparse", ANY, deserialize_many),
]
