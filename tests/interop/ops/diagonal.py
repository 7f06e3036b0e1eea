"""diagonal.py - diagonals and bands."""

import numpy as np

from .frame import NUMBER, Row

ALIGN = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def band_part(s):
    shape = s.shape(2, 4)
    dtype = s.index_type()
    return {"input": s.values(shape), "num_lower": s.scalar(s.int(-1, shape[-2]), dtype),
            "num_upper": s.scalar(s.int(-1, shape[-1]), dtype)}


def diagonal_range(s, rows, columns):
    ends = sorted(s.int(-rows + 1, columns - 1) for _ in range(2))
    if s.flag():
        return ends[0], ends[0], s.scalar(ends[0])
    return ends[0], ends[1], np.array(ends, np.int32)


def band_shape(lead, rows, columns, low, high):
    length = min(rows + min(high, 0), columns - max(low, 0))
    return lead + ((high - low + 1,) if low != high else ()) + (length,)


def matrix_diag(version):
    def make(s):
        lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
        low, high, k = diagonal_range(s, rows, columns)
        return {"diagonal": s.values(band_shape(lead, rows, columns, low, high)), "k": k,
                "num_rows": s.scalar(rows), "num_cols": s.scalar(columns),
                "padding_value": s.values(()),
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def matrix_diag_part(version):
    def make(s):
        shape = s.shape(0, 2, 3) + (s.int(1, 4), s.int(1, 4))
        _, _, k = diagonal_range(s, *shape[-2:])
        return {"input": s.values(shape), "k": k, "padding_value": s.values(()),
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def matrix_set_diag(version):
    def make(s):
        lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
        low, high, k = diagonal_range(s, rows, columns)
        return {"input": s.values(lead + (rows, columns)),
                "diagonal": s.values(band_shape(lead, rows, columns, low, high)), "k": k,
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def set_diag(s):
    lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
    return {"input": s.values(lead + (rows, columns)),
            "diagonal": s.values(lead + (min(rows, columns),))}


ROWS = [
    Row("MatrixBandPart", NUMBER + " bool", band_part),
    Row("MatrixDiag", NUMBER + " bool", lambda s: {"diagonal": s.values(s.shape(1, 3))}),
    Row("MatrixDiagPart", NUMBER + " bool", lambda s: {"input": s.values(s.shape(2, 4))}),
    Row("MatrixSetDiag", NUMBER + " bool", set_diag),
    # TensorFlow's gradients of the second versions have the third's alignment: not as they run.
    *(Row(f"MatrixDiagV{v}", NUMBER + " bool", matrix_diag(v), gradient=v > 2) for v in (2, 3)),
    *(Row(f"MatrixDiagPartV{v}", NUMBER + " bool", matrix_diag_part(v), gradient=v > 2)
      for v in (2, 3)),
    *(Row(f"MatrixSetDiagV{v}", NUMBER + " bool", matrix_set_diag(v), gradient=v > 2)
      for v in (2, 3)),
    Row("Diag", "half float32 float64 int32 int64 complex64 complex128",
        lambda s: {"diagonal": s.values(s.shape(1, 2))}),
    Row("DiagPart", "half float32 float64 int32 int64 complex64 complex128",
        lambda s: {"input": s.values(s.shape(1, 2) * 2)}),
]
