"""summary.py - what TensorBoard shows, as bytes."""

import numpy as np
import tensorflow as tf

from .frame import ANY, REAL, Row


def scalar(s):
    shape = s.shape(0, 2, 3)
    return {"tags": s.text(shape, b"loss", b"a/b", b""), "values": s.values(shape)}


def tag(s):
    return s.text((), b"tag", b"a/b", b"")


def histogram(s):
    values = s.values(s.shape(0, 3))
    if s.rng.random() < 0.9 and s.type.is_floating:  # what is not finite is refused
        values = np.nan_to_num(values)
    return {"tag": tag(s), "values": values}


def image(s):
    channels = s.pick(1, 3, 4, 2) if s.rng.random() < 0.9 else 5
    shape = (s.int(0, 4), s.int(1, 4), s.int(1, 4), channels)
    low, high = s.pick((0, 1), (-2, 3), (0, 255), (0, 0))
    values = s.values(shape, low, high)
    if s.type.is_floating and s.rng.random() < 0.2 and values.size:
        values.reshape(-1)[0] = s.pick(np.nan, np.inf)
    return {"tag": tag(s), "tensor": values, "max_images": s.int(1, 4)}


def audio(s):
    shape = (s.int(0, 3), s.int(0, 9)) + ((s.int(1, 2),) if s.flag() else ())
    return {"tag": tag(s), "tensor": s.values(shape, -1.5, 1.5), "max_outputs": s.int(1, 4),
            "sample_rate": np.array(s.pick(44100.0, 8000.0, 0.0), np.float32)}


def merge(s):
    parts = []
    for _ in range(s.int(1, 3)):
        shape = s.shape(0, 1, 3)
        values = np.empty(int(np.prod(shape)), object)
        values[:] = [tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(
            tag=s.pick("a", "b", "c", "d", "e", "f") + str(s.int(0, 99)),
            simple_value=s.int(0, 9))]).SerializeToString() for _ in range(values.size)]
        parts.append(values.reshape(shape))
    if s.rng.random() < 0.1:
        parts[0] = np.array(b"\xff\xff", object)
    return {"inputs": parts}


def tensor_v2(s):
    metadata = tf.compat.v1.SummaryMetadata(display_name=s.pick("", "n")).SerializeToString()
    if s.rng.random() < 0.1:
        metadata = b"\xff"
    return {"tag": tag(s), "tensor": s.values(s.shape(0, 3)),
            "serialized_summary_metadata": np.array(metadata, object)}


ROWS = [
    Row("ScalarSummary", REAL, scalar),
    Row("HistogramSummary", REAL, histogram),
    # PNG's bytes hang on the packer: what is inside is compared by the codecs' stories.
    Row("ImageSummary", "uint8 half float32 float64", image, vague=lambda arguments: (0,)),
    Row("AudioSummaryV2", "float32", audio),
    Row("MergeSummary", "string", merge),
    Row("TensorSummary", ANY, lambda s: {"tensor": s.values(s.shape(0, 3)), "description": "d",
                                         "labels": ["l"], "display_name": "n"}),
    Row("TensorSummaryV2", ANY, tensor_v2),
]
