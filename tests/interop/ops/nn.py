"""nn.py - activations, losses, norms and cells."""

import numpy as np
import tensorflow as tf

from .frame import FLOAT, NUMBER, REAL, Row, alike, unary


def bias_add(s):
    shape = s.shape(2, 5, 4)
    form = s.pick("NHWC", "NCHW")
    return {"value": s.values(shape), "bias": s.values((shape[-1 if form == "NHWC" else 1],)),
            "data_format": form}


def bias_add_grad(s):
    return {"out_backprop": s.values(s.shape(2, 5, 4)), "data_format": s.pick("NHWC", "NCHW")}


def xent(s):
    rows, classes = s.int(1, 5), s.int(1, 6)
    labels = np.abs(s.values((rows, classes), 0.1, 1).astype(np.float64))
    labels /= labels.sum(1, keepdims=True)
    return {"features": s.values((rows, classes), -4, 4),
            "labels": labels.astype(s.type.as_numpy_dtype)}


def sparse_xent(s):
    rows, classes = s.int(1, 5), s.int(1, 6)
    return {"features": s.values((rows, classes), -4, 4),
            "labels": s.ints((rows,), 0, classes - 1, s.index_type())}


def batch_norm(version):
    def make(s):
        channels, training = s.int(1, 4), s.flag()
        form = s.pick("NHWC", "NCHW")
        lead = (s.int(1, 3), s.int(1, 3), s.int(1, 3))
        shape = lead + (channels,) if form == "NHWC" else lead[:1] + (channels,) + lead[1:]
        other = "float32" if version > 1 else s.type
        vector = (lambda low, high: s.values((channels,), low, high, other))
        empty = np.zeros((0,), tf.as_dtype(other).as_numpy_dtype)
        return {"x": s.values(shape, -2, 2), "scale": vector(0.5, 2), "offset": vector(-1, 1),
                "mean": empty if training else vector(-1, 1),
                "variance": empty if training else vector(0.5, 2), "epsilon": 0.01,
                "is_training": training, "data_format": form}
    return make


def norm_vague(arguments):
    """What is kept for the gradient is not when there is nothing to learn."""
    return () if arguments["is_training"] else (3, 4, 5)


def lrn(s):
    return {"input": s.values((s.int(1, 2), s.int(1, 3), s.int(1, 3), s.int(1, 7)), -2, 2),
            "depth_radius": s.int(0, 4), "bias": s.pick(1.0, 2.0), "alpha": s.pick(0.1, 1.0),
            "beta": s.pick(0.5, 0.75)}


def lstm_parts(s, lead):
    cells, inputs = s.int(1, 4), s.int(1, 4)
    batch = lead[-1]
    return cells, {"x": s.values(lead + (inputs,), -1, 1),
                   "cs_prev": s.values((batch, cells), -1, 1),
                   "h_prev": s.values((batch, cells), -1, 1),
                   "w": s.values((inputs + cells, 4 * cells), -1, 1),
                   "wci": s.values((cells,), -1, 1), "wcf": s.values((cells,), -1, 1),
                   "wco": s.values((cells,), -1, 1), "b": s.values((4 * cells,), -1, 1)}


def lstm_cell(s):
    _, inputs = lstm_parts(s, (s.int(1, 3),))
    return {**inputs, "forget_bias": s.pick(0.0, 1.0), "cell_clip": s.pick(3.0, -1.0, 0.3),
            "use_peephole": s.flag()}


def block_lstm(version):
    def make(s):
        steps = s.int(1, 4)
        _, inputs = lstm_parts(s, (steps, s.int(1, 3)))
        attrs = {"cell_clip": s.pick(3.0, -1.0), "use_peephole": s.flag()}
        if version == 1:
            attrs["forget_bias"] = s.pick(0.0, 1.0)
        return {"seq_len_max": s.scalar(steps, "int64"), **inputs, **attrs}
    return make


def gru_cell(s):
    batch, inputs, cells = s.int(1, 3), s.int(1, 4), s.int(1, 4)
    return {"x": s.values((batch, inputs), -1, 1), "h_prev": s.values((batch, cells), -1, 1),
            "w_ru": s.values((inputs + cells, 2 * cells), -1, 1),
            "w_c": s.values((inputs + cells, cells), -1, 1),
            "b_ru": s.values((2 * cells,), -1, 1), "b_c": s.values((cells,), -1, 1)}


ROWS = [
    Row("BiasAdd", NUMBER, bias_add, "round"),
    Row("BiasAddGrad", NUMBER, bias_add_grad, "sum"),
    *(Row(op, REAL if "Relu" in op and op != "LeakyRelu" else FLOAT, unary("features"), "few")
      for op in ("Relu", "Relu6", "LeakyRelu")),
    *(Row(op, FLOAT, unary("features"), "few") for op in ("Elu", "Selu", "Softplus",
                                                          "Softsign")),
    *(Row(op, REAL if op != "LeakyReluGrad" else FLOAT, alike("gradients", "features"), "few")
      for op in ("ReluGrad", "Relu6Grad", "LeakyReluGrad")),
    *(Row(op, FLOAT, alike("gradients", name, low=-2, high=2), "few")
      for op, name in (("EluGrad", "outputs"), ("SeluGrad", "outputs"),
                       ("SoftplusGrad", "features"), ("SoftsignGrad", "features"))),
    Row("Softmax", FLOAT, lambda s: {"logits": s.values(s.shape(1, 3), -4, 4)}, "sum"),
    Row("LogSoftmax", FLOAT, lambda s: {"logits": s.values(s.shape(1, 3), -4, 4)}, "sum"),
    Row("SoftmaxCrossEntropyWithLogits", FLOAT, xent, "sum"),
    Row("SparseSoftmaxCrossEntropyWithLogits", FLOAT, sparse_xent, "sum"),
    Row("FusedBatchNorm", "float32", batch_norm(1), "loose", vague=norm_vague),
    Row("FusedBatchNormV2", "half bfloat16 float32", batch_norm(2), "loose", vague=norm_vague),
    Row("FusedBatchNormV3", "half bfloat16 float32", batch_norm(3), "loose", vague=norm_vague),
    Row("LRN", "half float32", lrn, "sum", gradient="sum"),
    Row("LSTMBlockCell", "half float32", lstm_cell, "sum"),
    # A state is the sum of two terms of up to 1, which may cancel; so are its gradients.
    Row("BlockLSTM", "half float32", block_lstm(1), "sum", gradient="sum", spoil=False, terms=1.0),
    Row("BlockLSTMV2", "half float32", block_lstm(2), "sum", gradient="sum", spoil=False, terms=1.0),
    Row("GRUBlockCell", "float32", gru_cell, "sum"),
]
