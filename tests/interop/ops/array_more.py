"""array_more.py - rows about arrays moved, changed and summed up in unusual ways."""

import numpy as np

from .frame import ANY, FLOAT, NUMBER, Row


def in_place(s):
    shape = s.shape(1, 3, least=1)
    rows = s.rng.permutation(shape[0])[:s.int(0, shape[0])].astype(np.int32)
    return {"x": s.values(shape, -5, 5), "i": rows,
            "v": s.values(rows.shape + shape[1:], -5, 5)}


def transpose(s):
    shape = s.shape(0, 4, 4)
    return {"x": s.values(shape),
            "perm": s.rng.permutation(len(shape)).astype(s.index_type())}


def reverse(s):
    shape = s.shape(0, 4, 4)
    return {"tensor": s.values(shape), "dims": s.values((len(shape),), dtype="bool")}


def formats(s):
    source, target = s.pick(("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NDHWC", "NCDHW"),
                            ("HWNC", "CNWH"))
    return {"src_format": source, "dst_format": target}


def dim_map(s):
    both = formats(s)
    size = len(both["src_format"])
    return {"x": s.ints(s.shape(0, 2), -size, size - 1, s.type), **both}


def permute(s):
    both = formats(s)
    size = len(both["src_format"]) - (2 if s.flag() else 0)
    return {"x": s.values((size,) + s.pick((), (2,)), -9, 9), **both}


def norm(s):
    shape = s.shape(0, 4, 4)
    rank = len(shape)
    axes = [int(a) - (rank if s.flag() else 0) for a in s.rng.permutation(rank)[:s.int(0, rank)]]
    return {"input": s.values(shape, -3, 3), "axis": np.array(axes, s.index_type()),
            "keep_dims": s.flag()}


def logsumexp(s):
    shape = s.shape(1, 4)
    return {"x": s.values(shape, -5, 5), "axis": s.scalar(s.axis(len(shape)), s.index_type()),
            "exclusive": s.flag(), "reverse": s.flag()}


def bias(s):
    shape = s.shape(2, 4, 4)
    return {"value": s.values(shape, -5, 5), "bias": s.values(shape[-1:], -5, 5)}


ROWS = [
    Row("InplaceUpdate", "int32 int64 float32 float64", in_place),
    Row("InplaceAdd", "int32 int64 float32 float64", in_place, "round"),
    Row("InplaceSub", "int32 int64 float32 float64", in_place, "round"),
    Row("DeepCopy", "int32 int64 float32 float64 bool", lambda s: {"x": s.values(s.shape())}),
    Row("ConjugateTranspose", ANY, transpose),
    Row("Reverse", ANY, reverse),
    Row("DataFormatDimMap", "int32 int64", dim_map),
    Row("DataFormatVecPermute", "int32 int64", permute),
    Row("EuclideanNorm", FLOAT + " complex64 complex128", norm, "loose"),
    Row("CumulativeLogsumexp", FLOAT, logsumexp, "loose"),
    Row("BiasAddV1", NUMBER, bias, "round"),
    Row("CheckNumericsV2", FLOAT, lambda s: {"tensor": s.values(s.shape()), "message": "m"}),
]
