"""segment.py - rows that belong together."""

import numpy as np

from .frame import FLOAT, NUMBER, REAL, Row


def sorted_ids(s, count):
    return np.sort(s.ints((count,), 0, 4, s.index_type()))


def segment(s):
    shape = s.shape(1, 3)
    return {"data": s.values(shape), "segment_ids": sorted_ids(s, shape[0])}


def unsorted_segment(s):
    shape = s.shape(1, 4)
    depth = s.int(1, len(shape))
    return {"data": s.values(shape), "segment_ids": s.ints(shape[:depth], -1, 4, s.index_type()),
            "num_segments": s.scalar(5, s.index_type())}


def sparse_segment(s):
    shape = s.shape(1, 3, least=1)
    count = s.int(1, 6)
    return {"data": s.values(shape), "indices": s.ints((count,), 0, shape[0] - 1),
            "segment_ids": np.sort(s.ints((count,), 0, 3))}


def sparse_segment_number(s):
    return {**sparse_segment(s), "num_segments": s.scalar(s.int(4, 6), s.index_type())}


ROWS = [
    Row("SegmentSum", NUMBER, segment, "sum"),
    Row("SegmentMean", NUMBER, segment, "sum"),
    Row("UnsortedSegmentSum", NUMBER, unsorted_segment, "sum"),
    *(Row(f"Segment{k}", REAL, segment, "sum") for k in ("Max", "Min")),
    Row("SegmentProd", NUMBER, segment, "sum"),
    *(Row(f"UnsortedSegment{k}", REAL, unsorted_segment, "sum") for k in ("Max", "Min")),
    Row("UnsortedSegmentProd", NUMBER, unsorted_segment, "sum"),
    Row("SparseSegmentSumWithNumSegments", REAL, sparse_segment_number, "sum"),
    *(Row(f"SparseSegment{k}WithNumSegments", FLOAT, sparse_segment_number, "sum")
      for k in ("Mean", "SqrtN")),
    Row("SparseSegmentSum", REAL, sparse_segment, "sum"),
    Row("SparseSegmentMean", FLOAT, sparse_segment, "sum"),
    Row("SparseSegmentSqrtN", FLOAT, sparse_segment, "sum"),
]
