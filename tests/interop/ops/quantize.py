"""quantize.py - rows about numbers rounded as if they were quantised."""

import numpy as np
import tensorflow as tf

from .frame import Row

LONG = "float32 float64"


def bits(s):
    return {"num_bits": s.int(2, 8), "narrow_range": s.flag()}


def limits(s, shape=()):
    low = s.rng.uniform(-3, 0.5, shape)
    return (low.astype(s.type.as_numpy_dtype),
            (low + s.rng.uniform(0.5, 4, shape)).astype(s.type.as_numpy_dtype))


def fake_args(s):
    low, high = limits(s)
    return {"inputs": s.values(s.shape(), -4, 4), "min": float(low), "max": float(high),
            **bits(s)}


def fake_vars(s):
    low, high = limits(s)
    if s.rng.random() < 0.1:
        low = high = np.zeros((), np.float32)
    return {"inputs": s.values(s.shape(), -4, 4), "min": low, "max": high, **bits(s)}


def fake_channels(s):
    shape = s.shape(1, 4)
    low, high = limits(s, shape[-1:])
    return {"inputs": s.values(shape, -4, 4), "min": low, "max": high, **bits(s)}


def with_gradient(make):
    def inner(s):
        arguments = make(s)
        return {"gradients": s.values(arguments["inputs"].shape, -3, 3), **arguments}
    return inner


def quantize(version):
    def make(s):
        shape = s.shape(1, 3)
        axis = s.axis(len(shape)) if s.rng.random() < 0.4 else -1
        axis = max(axis, -1)
        low, high = limits(s, () if axis < 0 else (shape[axis],))
        arguments = {"input": s.values(shape, -4, 4), "input_min": low, "input_max": high,
                     "signed_input": s.flag(), "range_given": s.flag(),
                     "narrow_range": s.flag(), "axis": axis}
        if version == 3:
            return {**arguments, "num_bits": s.scalar(s.int(2, 9))}
        return {**arguments, "num_bits": s.int(2, 9),
                "round_mode": s.pick("HALF_TO_EVEN", "HALF_UP")}
    return make


def quantize_grad(s):
    shape = s.shape(1, 3)
    axis = max(s.axis(len(shape)), -1)
    low, high = limits(s, () if axis < 0 else (shape[axis],))
    return {"gradients": s.values(shape, -3, 3), "input": s.values(shape, -4, 4),
            "input_min": low, "input_max": high, "axis": axis}


ROWS = [
    Row("FakeQuantWithMinMaxArgs", "float32", fake_args, "few"),
    Row("FakeQuantWithMinMaxArgsGradient", "float32", with_gradient(fake_args), "few"),
    Row("FakeQuantWithMinMaxVars", "float32", fake_vars, "few"),
    Row("FakeQuantWithMinMaxVarsGradient", "float32", with_gradient(fake_vars), "sum"),
    Row("FakeQuantWithMinMaxVarsPerChannel", "float32", fake_channels, "few"),
    Row("FakeQuantWithMinMaxVarsPerChannelGradient", "float32", with_gradient(fake_channels),
        "sum"),
    Row("QuantizeAndDequantizeV2", LONG, quantize(2), "few"),
    Row("QuantizeAndDequantizeV3", LONG, quantize(3), "few"),
    Row("QuantizeAndDequantizeV4", LONG, quantize(4), "few"),
    Row("QuantizeAndDequantizeV4Grad", LONG, quantize_grad, "sum"),
]
