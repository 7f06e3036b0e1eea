"""matrix.py - products and solutions of matrices."""

import numpy as np
import tensorflow as tf

from .frame import Row


def mat_mul(s):
    m, k, n = s.int(0, 5) if s.rng.random() < 0.1 else s.int(1, 6), s.int(1, 6), s.int(1, 6)
    ta, tb = s.flag(), s.flag()
    return {"a": s.values((k, m) if ta else (m, k), -3, 3),
            "b": s.values((n, k) if tb else (k, n), -3, 3),
            "transpose_a": ta, "transpose_b": tb}


def einsum(s):
    """One of the usual equations, sizes at random; ... is broadcast."""
    equation = s.pick("ab,bc->ac", "ab,cb->ac", "abc,acd->abd", "abcd,aecd->acbe", "ab->ba", "aa->a", "ab->", "abc->b",
                      "a,b->ab", "ab,cd->bd", "...ab,...bc->...ac", "a...b,...bc->c...a", "...ab->...", "aab,b->ab",
                      "ab,ab->", "a->aa")
    sizes = {label: s.int(1, 4) for label in "abcde"}
    dots = s.shape(0, 2, 3)
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            if part == ".":
                shape += [1 if s.rng.random() < 0.3 else d for d in dots]
            else:
                shape.append(sizes[part])
        inputs.append(s.values(tuple(shape), -2, 2))
    return {"inputs": inputs, "equation": equation}


def batch_mat_mul(broadcast):
    def make(s):
        m, k, n = s.int(1, 5), s.int(1, 5), s.int(1, 5)
        ax, ay = s.flag(), s.flag()
        left, right = s.broadcast_pair() if broadcast else (s.shape(0, 3, 3),) * 2
        left, right = left[-3:], right[-3:]
        return {"x": s.values(left + ((k, m) if ax else (m, k)), -3, 3),
                "y": s.values(right + ((n, k) if ay else (k, n)), -3, 3),
                "adj_x": ax, "adj_y": ay}
    return make


MIXED = "bfloat16 float32 float64 int8 uint8 int16 int32 int64 complex64 complex128"


def mixed_mat_mul(s):
    """Bytes may be signed on one side alone, and make int32."""
    arguments = batch_mat_mul(True)(s)
    if s.type.size > 1:
        return {**arguments, "Tout": s.type}
    for name in ("x", "y"):
        arguments[name] = s.values(arguments[name].shape, -3, 3, s.pick("int8", "uint8"))
    return {**arguments, "Tout": tf.int32}


def sparse_mat_mul(s):
    arguments = mat_mul(s)
    for name in ("a", "b"):
        arguments[name] = s.values(arguments[name].shape, -3, 3, s.pick("float32", "bfloat16"))
        arguments[name][s.rng.random(arguments[name].shape) < 0.4] = 0
    return {**arguments, "a_is_sparse": s.flag(), "b_is_sparse": s.flag()}


def well_conditioned(s, lead, n):
    """Far from matrices that cannot be inverted."""
    noise = s.values(lead + (n, n), -1, 1).astype(np.complex128)
    whole = noise + (n + 1) * np.eye(n)
    return (whole if s.type.is_complex else whole.real).astype(s.type.as_numpy_dtype)


def one_matrix(**attrs):
    def make(s):
        own = {name: s.flag() for name in attrs}
        return {"input": well_conditioned(s, s.shape(0, 2, 3), s.int(1, 4)), **own}
    return make


def positive_matrix(s):
    a = well_conditioned(s, s.shape(0, 2, 3), s.int(1, 4)).astype(np.complex128)
    a = a @ np.conj(np.swapaxes(a, -1, -2))
    return {"input": (a if s.type.is_complex else a.real).astype(s.type.as_numpy_dtype)}


def solve(triangular):
    def make(s):
        lead, n, m = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 3)
        return {"matrix": well_conditioned(s, lead, n), "rhs": s.values(lead + (n, m), -2, 2),
                "adjoint": s.flag(), **({"lower": s.flag()} if triangular else {})}
    return make


ROWS = [
    Row("MatMul", "half bfloat16 float32 float64 int32 int64 complex64 complex128", mat_mul,
        "sum"),
    Row("BatchMatMul", "half bfloat16 float32 float64 int32 int64 complex64 complex128",
        batch_mat_mul(False), "sum"),
    Row("BatchMatMulV2", "half bfloat16 float32 float64 int16 int32 int64 complex64 complex128",
        batch_mat_mul(True), "sum"),
    Row("BatchMatMulV3", MIXED, mixed_mat_mul, "sum"),
    Row("SparseMatMul", "float32", sparse_mat_mul, "sum"),
    Row("Einsum", "half bfloat16 float32 float64 int32 int64 complex64 complex128", einsum, "sum"),
    *(Row(op, "float32 float64 complex64 complex128", one_matrix(), "loose")
      for op in ("MatrixDeterminant", "LogMatrixDeterminant")),
    Row("MatrixInverse", "float32 float64 complex64 complex128", one_matrix(adjoint=True),
        "loose"),
    Row("MatrixSolve", "float32 float64 complex64 complex128", solve(False), "loose"),
    Row("MatrixTriangularSolve", "float32 float64 complex64 complex128", solve(True), "loose"),
    Row("Cholesky", "float32 float64 complex64 complex128", positive_matrix, "loose"),
]
