"""grads.py - ops that TensorFlow's gradients are made of, called by themselves."""

import numpy as np
import tensorflow as tf

from .array import mirror_pad, strided_slice
from .frame import ANY, FLOAT, NUMBER, REAL, Row
from .nn import block_lstm, gru_cell, lrn, lstm_cell
from .window import pool, pool_grad

HALF = "half float32"
POOLED = "half bfloat16 float32 float64 int32 int64 uint8 int16 int8 uint16"


def answers(op, arguments):
    """What TensorFlow's op makes of them: outputs of a forward op as inputs of its gradient."""
    with tf.Graph().as_default():
        made = {k: [tf.constant(x) for x in v] if isinstance(v, list) and v and
                isinstance(v[0], np.ndarray) else v for k, v in arguments.items()}
        result = getattr(tf.raw_ops, op)(**made)
        with tf.compat.v1.Session() as session:
            return session.run(result)


def strided_slice_grad(s):
    arguments = strided_slice(s)
    try:
        value = answers("StridedSlice", arguments)
        shape = np.shape(value)
    except (ValueError, tf.errors.OpError):
        shape = s.shape()
    whole = arguments.pop("input").shape
    return {"shape": s.vector(whole, arguments["begin"].dtype), "dy": s.values(shape), **arguments}


def strided_update(s):
    arguments = strided_slice(s)
    try:
        shape = np.shape(answers("StridedSlice", arguments))
    except (ValueError, tf.errors.OpError):
        shape = s.shape()
    return {**arguments, "value": s.values(shape)}


def mirror_grad(s):
    arguments = mirror_pad(s)
    arguments["input"] = s.values(tuple(
        d + sum(p) for d, p in zip(arguments["input"].shape, arguments["paddings"])))
    return arguments


def norm_grad(version):
    def make(s):
        channels, training = s.int(1, 4), s.flag()
        # Channels first, TensorFlow has no kernel for what is not training; ours has.
        form = s.pick("NHWC", "NCHW") if training else "NHWC"
        lead = (s.int(1, 3), s.int(1, 3), s.int(1, 3))
        shape = lead + (channels,) if form == "NHWC" else lead[:1] + (channels,) + lead[1:]
        vector = (lambda low, high: s.values((channels,), low, high, "float32"))
        more = {"reserve_space_3": np.zeros((0,), np.float32)} if version == 3 else {}
        return {"y_backprop": s.values(shape, -2, 2), "x": s.values(shape, -2, 2),
                "scale": vector(0.5, 2), "reserve_space_1": vector(-1, 1),
                "reserve_space_2": vector(0.5, 2), **more, "epsilon": 0.01,
                "data_format": form, "is_training": training}
    return make


def norm_grad_vague(arguments):
    return (3, 4)


def lrn_grad(s):
    arguments = lrn(s)
    image = arguments.pop("input")
    attrs = dict(arguments)
    return {"input_grads": s.values(image.shape, -1, 1), "input_image": image,
            "output_image": answers("LRN", {"input": image, **attrs}), **attrs}


def lstm_cell_grad(s):
    arguments = lstm_cell(s)
    parts = answers("LSTMBlockCell", arguments)
    for name in ("forget_bias", "cell_clip"):
        del arguments[name]
    shape = arguments["cs_prev"].shape
    return {**arguments, **{k: getattr(parts, k) for k in ("i", "cs", "f", "o", "ci", "co")},
            "cs_grad": s.values(shape, -1, 1), "h_grad": s.values(shape, -1, 1)}


def block_lstm_grad(version):
    def make(s):
        arguments = block_lstm(version)(s)
        parts = answers("BlockLSTM" + ("V2" if version == 2 else ""), arguments)
        for name in ("forget_bias", "cell_clip"):
            arguments.pop(name, None)
        return {**arguments,
                **{k: getattr(parts, k) for k in ("i", "cs", "f", "o", "ci", "co", "h")},
                "cs_grad": s.values(parts.cs.shape, -1, 1), "h_grad": s.values(parts.h.shape, -1, 1)}
    return make


def gru_cell_grad(s):
    arguments = gru_cell(s)
    parts = answers("GRUBlockCell", arguments)
    return {**arguments, "r": parts.r, "u": parts.u, "c": parts.c,
            "d_h": s.values(parts.h.shape, -1, 1)}


def pool_grad_v2(twice):
    def make(s):
        arguments = pool_grad(2, False)(s)
        if twice:
            arguments["grad"] = s.values(arguments["orig_input"].shape, -9, 9)
        for name in ("ksize", "strides"):
            arguments[name] = np.array(arguments[name], np.int32)
        return arguments
    return make


def pool3d_grad_grad(s):
    arguments = pool_grad(3, False)(s)
    arguments["grad"] = s.values(arguments["orig_input"].shape, -9, 9)
    return arguments


def pool_argmax_grad(s):
    arguments = pool(2)(s)
    batched = s.flag()
    output, places = answers("MaxPoolWithArgmax", {
        "input": arguments["input"], "Targmax": tf.int64, "include_batch_in_index": batched,
        **{k: arguments[k] for k in ("ksize", "strides", "padding")}})
    return {"input": arguments["input"], "grad": s.values(output.shape, -9, 9), "argmax": places,
            "include_batch_in_index": batched,
            **{k: arguments[k] for k in ("ksize", "strides", "padding")}}


def sparse_segment_grad(version):
    def make(s):
        rows, count = s.int(1, 4), s.int(1, 6)  # of none TensorFlow writes nothing
        tail = s.shape(0, 2, 3)
        kind = s.index_type()
        size = s.int(1, 6)
        return {"grad": s.values((rows,) + tail), "indices": s.ints((count,), 0, size - 1, kind),
                "segment_ids": np.sort(s.ints((count,), 0, rows - 1, s.index_type())),
                ("output_dim0" if version == 1 else "dense_output_dim0"): s.scalar(size)}
    return make


def resize_grad(s):
    mode = s.int(0, 2)
    small, large = (s.int(1, 5), s.int(1, 5)), (s.int(1, 8), s.int(1, 8))
    batch, channels = s.int(1, 2), s.int(1, 3)
    return small, large, batch, channels, {"align_corners": mode == 1,
                                           "half_pixel_centers": mode == 2}


def resize_grad_image(s):
    small, large, batch, channels, attrs = resize_grad(s)
    return {"grads": s.values((batch, *large, channels), -3, 3, "float32"),
            "original_image": s.values((batch, *small, channels), -3, 3), **attrs}


def resize_grad_size(s):
    small, large, batch, channels, attrs = resize_grad(s)
    return {"grads": s.values((batch, *large, channels), -3, 3), "size": s.vector(small), **attrs}


def crop_boxes(s, dtype=None):
    batch, boxes, channels = s.int(1, 3), s.int(0, 4), s.int(1, 3)
    crop, image = (s.int(1, 4), s.int(1, 4)), (s.int(1, 5), s.int(1, 5))
    return {"grads": s.values((boxes, *crop, channels), -2, 2, "float32"),
            "boxes": s.values((boxes, 4), -0.2, 1.2, "float32"),
            "box_ind": s.ints((boxes,), 0, batch - 1)}, (batch, *image, channels)


def crop_grad_image(s):
    arguments, shape = crop_boxes(s)
    return {**arguments, "image_size": s.vector(shape), "T": s.type,
            "method": s.pick("bilinear", "nearest")}


def crop_grad_boxes(s):
    arguments, shape = crop_boxes(s)
    return {**arguments, "image": s.values(shape, 0, 99)}


ROWS = [
    Row("StridedSliceGrad", ANY, strided_slice_grad),
    Row("TensorStridedSliceUpdate", ANY, strided_update),
    Row("MirrorPadGrad", NUMBER, mirror_grad, "sum"),
    # Not ours: the gradient of this gradient.
    Row("FusedBatchNormGrad", "float32", norm_grad(1), "loose", gradient=False, vague=norm_grad_vague),
    Row("FusedBatchNormGradV2", "half bfloat16 float32", norm_grad(2), "loose", gradient=False,
        vague=norm_grad_vague),
    Row("FusedBatchNormGradV3", "half bfloat16 float32", norm_grad(3), "loose", gradient=False,
        vague=norm_grad_vague),
    # Sums of some ten terms that may cancel: against float64, TensorFlow is off by less than 2
    # roundings of the largest term, and by 0.12 of what is allowed (0.35 in the LSTM's), in 1,500
    # cases of each.
    Row("LRNGrad", HALF, lrn_grad, "sum"),
    Row("LSTMBlockCellGrad", HALF, lstm_cell_grad, "sum", spoil=False),
    Row("BlockLSTMGrad", HALF, block_lstm_grad(1), "sum", spoil=False),
    Row("BlockLSTMGradV2", HALF, block_lstm_grad(2), "sum", spoil=False),
    Row("GRUBlockCellGrad", "float32", gru_cell_grad, "sum", spoil=False),
    Row("MaxPoolGradV2", POOLED, pool_grad_v2(False), "sum", spoil=False),
    Row("MaxPoolGradGradV2", POOLED, pool_grad_v2(True), "sum", spoil=False),
    Row("MaxPool3DGradGrad", "bfloat16 float32", pool3d_grad_grad, "sum"),
    Row("MaxPoolGradWithArgmax", REAL, pool_argmax_grad, "sum", spoil=False),
    *(Row(f"SparseSegment{k}Grad" + ("V2" if v == 2 else ""), FLOAT, sparse_segment_grad(v), "sum")
      for k in ("Sum", "Mean", "SqrtN") for v in (1, 2)),
    # Computed in float32 whatever the type is, as are the gradients that it gets: 11 roundings of
    # that size in 1,500 cases, 0.27 of what is allowed.
    Row("ResizeBilinearGrad", FLOAT, resize_grad_image, "single", spoil=False),
    Row("ResizeBicubicGrad", "float32 float64", resize_grad_image, "single", spoil=False),
    Row("ResizeNearestNeighborGrad", "uint8 int8 int32 half bfloat16 float32 float64", resize_grad_size, "sum"),
    Row("CropAndResizeGradImage", "half float32 float64", crop_grad_image, "loose"),
    Row("CropAndResizeGradBoxes", "half float32 float64 int8 int16 int32 int64 uint8 uint16",
        crop_grad_boxes, "loose"),
]
