"""window.py - convolutions and pooling."""

import numpy as np
import tensorflow as tf

from .frame import FLOAT, REAL, Row


def conv_args(s, spatial, extra=True, dilate=True):
    size = [s.int(1, 7) for _ in range(spatial)]
    window = [s.int(1, 3) for _ in range(spatial)]
    strides = [s.int(1, 3) for _ in range(spatial)]
    padding = s.pick("SAME", "VALID", *(["EXPLICIT"] if extra else []))
    attrs = {"strides": [1] + strides + [1], "padding": padding}
    if dilate and s.rng.random() < 0.3:
        attrs["dilations"] = [1] + [s.int(1, 2) for _ in range(spatial)] + [1]
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0] + [s.int(0, 2) for _ in range(2 * spatial)] + [0, 0]
    return size, window, attrs


def conv_out(size, window, attrs):
    result = []
    for i, (n, k) in enumerate(zip(size, window)):
        stride = attrs["strides"][1 + i]
        dilation = attrs.get("dilations", [1] * (len(size) + 2))[1 + i]
        reach = (k - 1) * dilation + 1
        if attrs["padding"] == "SAME":
            result.append(-(-n // stride))
            continue
        if attrs["padding"] == "EXPLICIT":
            n += sum(attrs["explicit_paddings"][2 + 2 * i:4 + 2 * i])
        result.append(max(0, (n - reach + stride) // stride))
    return result


def conv(spatial, depthwise=False, part="forward"):
    def make(s):
        size, window, attrs = conv_args(s, spatial, spatial == 2, part == "forward"
                                        and spatial == 2 and not depthwise)
        if depthwise:
            attrs["strides"] = [1] + attrs["strides"][1:2] * 2 + [1]
        batch, channels, last = s.int(1, 2), s.int(1, 3), s.int(1, 3)
        x = (batch, *size, channels)
        w = (*window, channels, last)
        y = (batch, *conv_out(size, window, attrs), channels * last if depthwise else last)
        if part != "forward" and 0 in y:  # TensorFlow leaves the answer undefined
            return make(s)
        if part == "forward":
            return {"input": s.values(x, -2, 2), "filter": s.values(w, -2, 2), **attrs}
        if part == "input":
            return {"input_sizes": np.array(x, np.int32), "filter": s.values(w, -2, 2),
                    "out_backprop": s.values(y, -2, 2), **attrs}
        return {"input": s.values(x, -2, 2), "filter_sizes": np.array(w, np.int32),
                "out_backprop": s.values(y, -2, 2), **attrs}
    return make


def dilation(part):
    def make(s):
        size, window, attrs = conv_args(s, 2, False)
        channels, batch = s.int(1, 3), s.int(1, 2)
        y = (batch, *conv_out(size, window, attrs), channels)
        if part and 0 in y:
            return make(s)
        attrs["rates"] = attrs.pop("dilations", [1, 1, 1, 1])
        back = {"out_backprop": s.values(y, -9, 9)} if part else {}
        return {"input": s.values((batch, *size, channels), -9, 9),
                "filter": s.values((*window, channels), -9, 9), **back, **attrs}
    return make


def pool(spatial, name="input"):
    def make(s):
        size, window, attrs = conv_args(s, spatial, False, False)
        return {name: s.values((s.int(1, 2), *size, s.int(1, 3)), -9, 9),
                "ksize": [1] + window + [1], **attrs}
    return make


def pool_grad(spatial, mean):
    def make(s):
        size, window, attrs = conv_args(s, spatial, False, False)
        batch, channels = s.int(1, 2), s.int(1, 3)
        x = (batch, *size, channels)
        y = (batch, *conv_out(size, window, attrs), channels)
        attrs["ksize"] = [1] + window + [1]
        if mean:
            return {"orig_input_shape": np.array(x, np.int32), "grad": s.values(y, -9, 9),
                    **attrs}
        image = s.values(x, -9, 9)
        pooling = tf.raw_ops.MaxPool if spatial == 2 else tf.raw_ops.MaxPool3D
        with tf.Graph().as_default():
            pooled = pooling(input=tf.constant(image), **attrs)
            with tf.compat.v1.Session() as session:
                pooled = session.run(pooled)
        return {"orig_input": image, "orig_output": pooled, "grad": s.values(y, -9, 9), **attrs}
    return make


def pool_v2(s):
    arguments = pool(2)(s)
    return {"input": arguments["input"], "ksize": np.array(arguments["ksize"], np.int32),
            "strides": np.array(arguments["strides"], np.int32),
            "padding": arguments["padding"]}


def pool_argmax(s):
    return {**pool(2)(s), "include_batch_in_index": s.flag(),
            "Targmax": tf.as_dtype(s.index_type())}


def pool_grad_grad(s):
    arguments = pool_grad(2, False)(s)
    arguments["grad"] = s.values(arguments["orig_input"].shape, -9, 9)
    return arguments


ROWS = [
    Row("Conv2D", FLOAT + " int32", conv(2), "sum"),
    Row("Conv2DBackpropInput", FLOAT + " int32", conv(2, part="input"), "sum"),
    Row("Conv2DBackpropFilter", FLOAT, conv(2, part="filter"), "sum"),
    Row("DepthwiseConv2dNative", FLOAT, conv(2, True), "sum"),
    Row("DepthwiseConv2dNativeBackpropInput", FLOAT, conv(2, True, "input"), "sum"),
    Row("DepthwiseConv2dNativeBackpropFilter", FLOAT, conv(2, True, "filter"), "sum"),
    Row("Conv3D", FLOAT, conv(3), "sum"),
    Row("Conv3DBackpropInputV2", FLOAT, conv(3, part="input"), "sum"),
    Row("Conv3DBackpropFilterV2", FLOAT, conv(3, part="filter"), "sum"),
    Row("Dilation2D", REAL, dilation(""), "round", gradient="sum"),
    Row("Dilation2DBackpropInput", REAL, dilation("input"), "sum"),
    Row("Dilation2DBackpropFilter", REAL, dilation("filter"), "sum"),
    Row("MaxPool", "half bfloat16 float32 float64 int32 int64 uint8 int16 int8 uint16", pool(2),
        "round"),
    Row("AvgPool", FLOAT, pool(2, "value"), "sum"),
    Row("MaxPoolGrad", REAL, pool_grad(2, False), "sum"),
    # A gradient of more images than the input has is taken, and written behind the output.
    Row("AvgPoolGrad", FLOAT, pool_grad(2, True), "sum", spoil=False),
    Row("MaxPool3D", "bfloat16 float32", pool(3), "round"),
    Row("AvgPool3D", "bfloat16 float32", pool(3), "sum"),
    Row("MaxPool3DGrad", "bfloat16 float32", pool_grad(3, False), "sum"),
    Row("AvgPool3DGrad", "bfloat16 float32", pool_grad(3, True), "sum"),
    Row("MaxPoolV2", "half bfloat16 float32 float64 int8 int16 uint16 int32 int64 uint8", pool_v2, "round"),
    Row("MaxPoolGradGrad", REAL, pool_grad_grad, "sum"),
    Row("MaxPoolWithArgmax", REAL, pool_argmax, "sum"),
]
