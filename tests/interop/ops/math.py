"""math.py - element by element."""

import tensorflow as tf

from .frame import ANY, COMPLEX, FLOAT, INTEGER, NUMBER, REAL, SIGNED, Row, alike, binary, unary


def select(s):
    shape = s.shape()
    kind = s.int(0, 2)
    condition = shape if kind == 0 else shape[:1] if kind == 1 else ()
    return {"condition": s.values(condition, dtype="bool"), "x": s.values(shape),
            "y": s.values(shape)}


def select_v2(s):
    a, b = s.broadcast_pair()
    c, _ = s.broadcast_pair()
    c = tuple(1 for _ in a) if s.flag() else ()
    return {"condition": s.values(c, dtype="bool"), "t": s.values(a), "e": s.values(b)}


def cast(s):
    target = tf.as_dtype(s.pick(*NUMBER.split(), "bool"))
    low, high = (0, 100) if not target.is_floating else (-100, 100)
    return {"x": s.values(s.shape(), low, high), "DstT": target, "Truncate": s.flag()}


def add_n(s):
    shape = s.shape()
    return {"inputs": [s.values(shape) for _ in range(s.int(1, 4))]}


def clip(s):
    shape = s.shape()
    limits = (lambda v: s.values((), v, v)) if s.flag() else (lambda v: s.values(shape, v, v))
    return {"t": s.values(shape), "clip_value_min": limits(0), "clip_value_max": limits(2)}


def range_args(s):
    start, delta = s.int(0, 5), s.int(1, 3)
    dtype = s.type
    return {"start": s.scalar(start, dtype), "limit": s.scalar(start + s.int(0, 9), dtype),
            "delta": s.scalar(delta, dtype)}


def lin_space(s):
    return {"start": s.values((), -3, 3), "stop": s.values((), -3, 3),
            "num": s.scalar(s.int(1, 7), s.index_type())}


def shift(s):
    a, b = s.broadcast_pair()
    return {"x": s.values(a), "y": s.values(b, 0, 7)}


def part_of(name):
    return lambda s: {name: s.values(s.shape()),
                      "Tout": tf.float64 if s.type == tf.complex128 else tf.float32}


def complex_of(s):
    return {**binary("real", "imag")(s),
            "Tout": tf.complex128 if s.type == tf.float64 else tf.complex64}


ROWS = [
    *(Row(op, NUMBER, binary(), "round") for op in ("AddV2", "Sub", "Mul")),
    Row("Add", FLOAT + " string uint8 " + SIGNED + " " + COMPLEX, binary(), "round"),
    Row("Div", NUMBER, binary(), "few"),
    Row("RealDiv", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("DivNoNan", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("MulNoNan", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("Xdivy", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("FloorDiv", REAL, binary(), "few"),
    Row("FloorMod", REAL, binary(), "few", gradient=False),
    Row("TruncateDiv", REAL, binary()),
    Row("TruncateMod", "float32 float64 int32 int64", binary(), "few"),
    Row("Maximum", REAL, binary(), "round"),
    Row("Minimum", REAL, binary(), "round"),
    Row("SquaredDifference", "half bfloat16 float32 float64 int32 int64 complex64 complex128", binary(),
        "few"),
    Row("Pow", "half bfloat16 float32 float64 int8 int16 int32 int64 complex64 complex128", binary(), "loose"),
    *(Row(op, ANY if "qual" in op and op[0] in "EN" else REAL, binary())
      for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")),
    Row("LogicalAnd", "bool", binary()),
    Row("LogicalOr", "bool", binary()),
    Row("LogicalNot", "bool", unary()),
    *(Row(op, FLOAT + " " + COMPLEX, unary(), "few")
      for op in ("Sqrt", "Rsqrt", "Reciprocal", "Exp", "Expm1", "Log", "Log1p", "Sigmoid",
                 "Tanh", "Sin", "Cos")),
    Row("Neg", FLOAT + " " + SIGNED + " " + COMPLEX, unary(), "round"),
    Row("Abs", FLOAT + " " + SIGNED, unary(), "round"),
    Row("Sign", FLOAT + " " + SIGNED + " " + COMPLEX, unary(), "few"),
    Row("Square", NUMBER, unary(), "few"),
    Row("Erf", FLOAT, unary(), "few"),
    Row("Round", FLOAT + " int32 int64", unary(), "round"),
    Row("Rint", "float32 float64", unary(), "round"),
    Row("Floor", FLOAT, unary(), "round"),
    Row("Ceil", FLOAT, unary(), "round"),
    Row("IsNan", FLOAT, unary()),
    Row("IsInf", FLOAT, unary()),
    Row("IsFinite", FLOAT, unary()),
    Row("Conj", COMPLEX, unary("input")),
    *(Row(op, FLOAT + " " + COMPLEX, alike("y", "dy", low=0.3, high=2), "few")
      for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")),
    Row("Cast", NUMBER + " bool", cast),
    Row("AddN", NUMBER, add_n, "few"),
    Row("ClipByValue", "half bfloat16 float32 float64 int32 int64 uint8 int16 int8 uint16", clip, "round"),
    Row("Select", ANY, select),
    Row("SelectV2", ANY, select_v2),
    Row("Range", "float32 float64 half bfloat16 int32 int64", range_args, "few"),
    Row("LinSpace", "float32 float64", lin_space, "few"),
    *(Row(op, FLOAT + " " + COMPLEX, unary(), "sum")
      for op in ("Acos", "Asin", "Atan", "Atanh", "Acosh", "Asinh", "Cosh", "Sinh", "Tan",
                 "Inv")),
    Row("Erfc", FLOAT, unary(), "sum"),
    # Its gradient is Digamma: see there.
    Row("Lgamma", "half float32 float64", unary(), "sum", gradient="loose"),
    Row("Digamma", "half float32", unary(), "loose"),
    # Near a pole every bit of x counts.
    Row("Digamma", "float64", unary(low=0.1, high=30), "sum"),
    Row("Zeta", "float32 float64", lambda s: {"x": s.values((4,), 1.1, 9),
                                              "q": s.values((4,), 0.1, 9)}, "sum"),
    Row("Polygamma", "float32 float64",
        lambda s: {"a": s.ints((4,), 0, 3, s.type), "x": s.values((4,), 0.1, 9)}, "sum"),
    # TensorFlow takes it as Ndtri((x + 1) / 2): the rounding of that sum alone moves the gradient
    # by half a rounding / (1 - |x|) of itself, 50 of them at 0.99.
    Row("Erfinv", "float32 float64", unary(low=-0.99, high=0.99), "sum"),
    Row("Ndtri", "float32 float64", unary(low=0, high=1), "sum"),
    Row("Atan2", FLOAT, binary("y", "x"), "sum"),
    Row("Xlogy", FLOAT + " " + COMPLEX, binary(), "sum"),
    Row("Xlog1py", FLOAT + " " + COMPLEX, binary(), "sum"),
    Row("NextAfter", "float32 float64", binary("x1", "x2")),
    Row("Mod", "float32 float64 int32 int64", binary(), "few"),
    Row("InvGrad", FLOAT + " " + COMPLEX, alike("y", "dy", low=0.3, high=2), "few"),
    *(Row(op, INTEGER, binary()) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    Row("LeftShift", INTEGER, shift),
    Row("RightShift", INTEGER, shift),
    Row("Invert", INTEGER, unary()),
    Row("PopulationCount", INTEGER, unary()),
    Row("ApproximateEqual", "float32 float64", alike("x", "y", tolerance=1.0)),
    *(Row(op, COMPLEX, part_of("x" if op == "ComplexAbs" else "input"), "few")
      for op in ("Real", "Imag", "Angle", "ComplexAbs")),
    Row("Complex", "float32 float64", complex_of),
]
