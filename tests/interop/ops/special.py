"""special.py - rows about functions with names."""

from .frame import Row

BESSEL = "half float32 float64"
WIDE = "float32 float64"


def of_x(low, high):
    return lambda s: {"x": s.values(s.shape(), low, high)}


def gamma_pair(s):
    left, right = s.broadcast_pair()
    return {"a": s.values(left, 0.05, 9), "x": s.values(right, 0, 12)}


def beta_triple(s):
    shape = s.shape()
    part = lambda: shape if s.flag() else ()
    return {"a": s.values(part(), 0.1, 6), "b": s.values(part(), 0.1, 6),
            "x": s.values(part(), 0.01, 0.99)}


ROWS = [
    *(Row("Bessel" + name, BESSEL, of_x(-9, 9), "loose")
      for name in ("I0", "I1", "I0e", "I1e", "J0", "J1")),
    *(Row("Bessel" + name, BESSEL, of_x(0.1, 9), "loose")
      for name in ("K0", "K1", "K0e", "K1e", "Y0", "Y1")),
    Row("Dawsn", WIDE, of_x(-9, 9), "loose"),
    Row("Expint", WIDE, of_x(-1, 12), "loose"),
    Row("FresnelCos", WIDE, of_x(-5, 5), "loose"),
    Row("FresnelSin", WIDE, of_x(-5, 5), "loose"),
    Row("Spence", WIDE, of_x(-0.5, 6), "loose"),
    Row("Igamma", WIDE, gamma_pair, "loose"),
    Row("Igammac", WIDE, gamma_pair, "loose"),
    Row("IgammaGradA", WIDE, gamma_pair, "loose"),
    Row("Betainc", WIDE, beta_triple, "loose"),
]
