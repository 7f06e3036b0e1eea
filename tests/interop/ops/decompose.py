"""decompose.py - rows about matrices factored, their eigenvalues, functions of them, bands."""

import numpy as np
import tensorflow as tf

from .frame import COMPLEX, Row, Step, Story

LONG = "float32 float64"
ALL = LONG + " " + COMPLEX


def matrix(s, square=False, most=5):
    shape = s.shape(0, 1, 3)
    m, n = s.int(1, most), s.int(1, most)
    return s.values(shape + (m, m if square else n), -3, 3)


def regular(s):
    """A square matrix that is far from singular."""
    a = matrix(s, True)
    return (a + 7 * np.eye(a.shape[-1])).astype(a.dtype)


def hermitian(s):
    a = matrix(s, True)
    return ((a + np.conj(np.swapaxes(a, -1, -2))) / 2).astype(a.dtype)


def qr(s):
    return {"input": matrix(s), "full_matrices": s.rng.random() < 0.3}


def svd(s):
    return {"input": matrix(s), "compute_uv": s.rng.random() < 0.7,
            "full_matrices": s.rng.random() < 0.2}


def eigen(s):
    return {"input": hermitian(s), "compute_v": s.rng.random() < 0.7}


def eig(s):
    a = matrix(s, True)
    wide = a.dtype in (np.float64, np.complex128)
    return {"input": a, "Tout": tf.complex128 if wide else tf.complex64,
            "compute_v": s.rng.random() < 0.7}


def lu(s):
    return {"input": matrix(s, True), "output_idx_type": tf.as_dtype(s.index_type())}


def least(s):
    a = matrix(s)
    b = s.values(a.shape[:-1] + (s.int(1, 3),), -3, 3)
    return {"matrix": a, "rhs": b, "l2_regularizer": np.array(s.pick(0.0, 0.5), np.float64),
            "fast": s.rng.random() < 0.7}


def banded(s):
    left, right = s.broadcast_pair()
    n, k, m = s.int(1, 5), s.int(1, 5), s.int(1, 3)
    a = s.values(left[-2:] + (min(n, k), n), -1, 1)
    lower = s.flag()
    a[..., 0 if lower else -1, :] += 3
    return {"matrix": a, "rhs": s.values(right[-2:] + (n, m), -3, 3), "lower": lower,
            "adjoint": s.flag()}


def tridiagonal(s):
    shape, n, m = s.shape(0, 1, 3), s.int(1, 5), s.int(1, 3)
    pivots = s.flag()
    a = s.values(shape + (3, n), -2, 2)
    if not pivots:
        a[..., 1, :] += 6
    return {"diagonals": a, "rhs": s.values(shape + (n, m), -3, 3), "partial_pivoting": pivots}


def tridiagonal_product(s):
    shape, n, m = s.shape(0, 1, 3), s.int(1, 5), s.int(1, 3)
    row = lambda: s.values(shape + (1, n), -3, 3)
    return {"superdiag": row(), "maindiag": row(), "subdiag": row(),
            "rhs": s.values(shape + (n, m), -3, 3)}


def cholesky_grad(s):
    a = np.tril(regular(s)).astype(s.type.as_numpy_dtype)
    return {"l": a, "grad": s.values(a.shape, -3, 3)}


def singular_parts(s):
    """What does not hang on when the steps end, as the complex number of length one does by which
    a pair of vectors is multiplied."""
    a = matrix(s)
    values, left, right = tf.raw_ops.Svd(input=a)
    again = tf.matmul(left * tf.cast(values, a.dtype)[..., None, :], right, adjoint_b=True)
    return [Step([values, again, tf.matmul(left, left, adjoint_a=True),
                  tf.matmul(right, right, adjoint_a=True)])]


def angled(arguments):
    return (1, 2) if arguments["input"].dtype.kind == "c" else no_vectors(arguments)


def no_vectors(arguments):
    """Vectors that nobody asked for: a scalar of whatever stood in the memory."""
    asked = arguments.get("compute_uv", arguments.get("compute_v"))
    return () if asked else (1, 2)


def eigen_parts(s):
    """What does not hang on when the steps end, as the order of the values does and by which
    number of length one a vector is multiplied: sums of powers, lengths, the matrix again."""
    a = matrix(s, True, 4)
    wide = tf.complex128 if a.dtype in (np.float64, np.complex128) else tf.complex64
    values, vectors = tf.raw_ops.Eig(input=a, Tout=wide)
    again = tf.matmul(vectors * values[..., None, :], tf.linalg.inv(vectors))
    return [Step([*(tf.reduce_sum(values**power, -1) for power in (1, 2, 3)),
                  tf.reduce_sum(tf.abs(vectors)**2, -2), again])]


ROWS = [
    Row("Qr", "half " + ALL, qr, "loose"),
    Row("Svd", ALL, svd, "loose", vague=angled),
    Story("SvdParts", "Svd", singular_parts, ALL, "loose"),
    Row("SelfAdjointEigV2", ALL, eigen, "loose", vague=no_vectors),
    Row("Eig", ALL, eig, "loose", vague=lambda arguments: (0, 1)),
    Story("EigParts", "Eig", eigen_parts, ALL, "rough"),
    Row("Lu", ALL, lu, "loose"),
    Row("MatrixLogarithm", COMPLEX, lambda s: {"input": regular(s)}, "loose"),
    Row("MatrixSquareRoot", ALL, lambda s: {"input": regular(s)}, "loose"),
    Row("MatrixSolveLs", ALL, least, "loose"),
    Row("BandedTriangularSolve", ALL, banded, "loose"),
    Row("TridiagonalSolve", ALL, tridiagonal, "loose"),
    Row("TridiagonalMatMul", ALL, tridiagonal_product, "sum"),
    Row("CholeskyGrad", LONG, cholesky_grad, "loose"),
]
