"""quantize.py - rows about numbers rounded as if they were quantised."""

import numpy as np
import tensorflow as tf

from .frame import Row, Step, Story

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


# --- quantised types: NumPy has none, so that their elements come and go as integers ---

STORED = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16",
          "qint32": "int32"}


def slices(s, wrong):
    """(shape, axis, shape of the limits)"""
    shape = s.shape(0, 4, 4)
    axis = s.int(-1, len(shape) - 1)
    of_limits = (shape[axis],) if axis >= 0 else ()
    if wrong:
        return s.pick((shape, len(shape), ()), (shape, axis, (s.int(0, 5),)))
    return shape, axis, of_limits


def range_of(s, shape):
    """Most are what they should be; some are no range, or nearly nothing."""
    low = s.rng.uniform(-4, 1.5, shape).astype(np.float32)
    width = s.pick(0.0, 1e-3, 1.0, 4.0, 4.0, 300.0)
    high = low + s.rng.uniform(-0.05 if s.rng.random() < 0.1 else 0, 1, shape) * width
    return (np.float32(-high) if s.rng.random() < 0.2 else low), np.float32(high)


def placed(s, wrong, arrays):
    """([tensor], feed): constants; or of unknown shape, so that wrong ones are found in the run."""
    if not wrong and s.flag():
        return [tf.constant(array) for array in arrays], {}
    holders = [tf.compat.v1.placeholder(tf.as_dtype(array.dtype)) for array in arrays]
    return holders, dict(zip(holders, arrays))


def quantized(s):
    name = s.pick(*STORED)
    wrong = s.rng.random() < 0.15
    shape, axis, of_limits = slices(s, wrong)
    (x, low, high), feed = placed(s, wrong, [s.values(shape, -5, 5, "float32"), *range_of(s, of_limits)])
    mode = s.pick("MIN_COMBINED", "MIN_FIRST", "SCALED")
    outputs = tf.raw_ops.QuantizeV2(
        input=x, min_range=low, max_range=high, T=name,
        mode=mode, round_mode=s.pick("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN") if mode == "SCALED" else
        "HALF_AWAY_FROM_ZERO", narrow_range=s.flag(), axis=axis,
        ensure_minimum_range=s.pick(0.01, 0.0, 0.5))
    return [Step([tf.bitcast(outputs[0], STORED[name]), *outputs[1:]], feed)]


def dequantized(s):
    name = s.pick(*STORED)
    wrong = s.rng.random() < 0.15
    stored = tf.as_dtype(STORED[name])
    shape, axis, of_limits = slices(s, wrong)
    x = np.asarray(s.rng.integers(stored.min, stored.max, shape, stored.as_numpy_dtype, endpoint=True))
    (x, low, high), feed = placed(s, wrong, [x, *range_of(s, of_limits)])
    out = s.pick("float32", "float32", "bfloat16")
    return [Step([tf.raw_ops.Dequantize(
        input=tf.bitcast(x, name), min_range=low, max_range=high, dtype=out,
        mode="MIN_COMBINED" if out == "bfloat16" else s.pick("MIN_COMBINED", "MIN_FIRST", "SCALED"),
        narrow_range=s.flag(), axis=axis)], feed)]


ROWS = [
    Story("quantized", "QuantizeV2", quantized),
    Story("dequantized", "Dequantize", dequantized),
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
