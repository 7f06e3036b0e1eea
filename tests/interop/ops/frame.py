"""frame.py - what the tables of this folder are made of: Row, Story, Step and Source.

A Row is an op, the types its first type attribute may have, a function that draws its
arguments, and how exact the answer is.  The function is given a Source and returns the
arguments of tf.raw_ops.OP: arrays are inputs (constants or placeholders, by chance), all else
attributes.

A Story is a graph of several operations, and what is run in it, one step after the other in
one session: variables, queues, loops.  Its function builds the graph (the default one) from a
Source and returns a list of Steps.

How exact: "exact" bit for bit; "round" one rounding; "few" some; "sum" a sum of many terms;
"loose" an algorithm that is free in its order; "single" such a sum in
float32, whatever the type; "jpeg" within 6 of 255, as its decoders differ.
"""

import numpy as np
import tensorflow as tf

FLOAT = "half bfloat16 float32 float64"
COMPLEX = "complex64 complex128"
SIGNED = "int8 int16 int32 int64"
UNSIGNED = "uint8 uint16 uint32 uint64"
INTEGER = SIGNED + " " + UNSIGNED
REAL = FLOAT + " " + INTEGER
NUMBER = REAL + " " + COMPLEX
ANY = NUMBER + " bool string"
IMAGE = "half float32 float64 " + SIGNED + " uint8 uint16"


class Row:
    """`constant`: names of inputs that the shape of the output hangs on.  `vague`: a function of
    the arguments that gives the outputs whose contents TensorFlow leaves undefined.  `spoil`:
    whether inputs are made wrong now and then; not where TensorFlow reads what is not there.
    `gradient`: whether it is compared, or how exact it is.  `terms`: how large what is added up is,
    where the sum may be next to nothing."""

    def __init__(self, op, types, make, kind="exact", gradient=True, constant=(),
                 vague=lambda arguments: (), spoil=True, terms=0.0):
        self.name, self.op, self.types, self.make = op, op, types.split(), make
        self.kind, self.gradient, self.constant = kind, gradient, constant
        self.vague, self.spoil, self.terms = vague, spoil, terms
        self.ops, self.weight = (op,), 1

    def constants(self, names):
        """Inputs that stay constants even where the others become placeholders."""
        return [name for name in names if name[3:] in self.constant]


class Step:
    """One run: tensors to fetch, what is fed ({tensor: array}), operations to run.  `vague`:
    those of the tensors of which only type and shape count (random numbers, unordered keys)."""

    def __init__(self, fetch=(), feed=None, target=(), vague=()):
        self.fetch, self.feed, self.target = list(fetch), feed or {}, list(target)
        self.vague = [tensor.name for tensor in vague]


class Story:
    """`ops`: the operations that it is about.  `weight`: how often it comes, compared to a
    Row.  A step that fails must fail in both, with the same code; the next one goes on."""

    def __init__(self, name, ops, make, types="float32", kind="exact", weight=1):
        self.name, self.ops, self.types, self.make = name, tuple(ops.split()), types.split(), make
        self.kind, self.weight = kind, weight


class Source:
    """Draws values for one case of a row."""

    def __init__(self, row, rng):
        self.rng = rng
        self.type = tf.as_dtype(row.types[rng.integers(len(row.types))])
        # Some cases are of ordinary numbers only: sums of infinities say little.
        self.tame = row.kind in ("sum", "loose") or rng.random() < 0.5

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def flag(self):
        return bool(self.rng.integers(2))

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def shape(self, low=0, high=4, most=5, least=0):
        """Mostly without empty dimensions."""
        rank = self.int(low, high)
        least = least if self.rng.random() < 0.08 else max(least, 1)
        return tuple(self.int(least, most) for _ in range(rank))

    def values(self, shape, low=None, high=None, dtype=None):
        """Numbers of the row's type: ordinary ones, or with odd ones among them."""
        dtype = tf.as_dtype(dtype) if dtype else self.type
        numpy, size = dtype.as_numpy_dtype, int(np.prod(shape, dtype=np.int64))
        if dtype == tf.bool:
            return self.rng.integers(2, size=shape).astype(bool)
        if dtype == tf.string:
            words = [b"", b"a", b"bc", b"\xff\x00", b"word"]
            return np.array([words[i] for i in self.rng.integers(5, size=size)] or [],
                            dtype=object).reshape(shape)
        if dtype.is_integer:
            limits = np.iinfo(numpy)
            bottom = max(limits.min, -9 if low is None else int(np.ceil(low)))
            top = min(limits.max, 9 if high is None else int(np.floor(high)))
            array = self.rng.integers(bottom, max(top, bottom) + 1, size=shape).astype(numpy)
            odd = [limits.min, limits.max, 0, 1]
        else:
            bottom, top = -3 if low is None else low, 3 if high is None else high
            array = self.rng.uniform(bottom, top, shape)
            if dtype.is_complex:
                array = array + 1j * self.rng.uniform(bottom, top, shape)
            array = np.asarray(array).astype(numpy)
            odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 6e4, 1.0, -1.0]
        array = np.asarray(array)
        if low is None and high is None and not self.tame and not dtype.is_complex:
            flat = array.reshape(-1).copy()
            for i in range(size):
                if self.rng.random() < 0.25:
                    with np.errstate(all="ignore"):
                        flat[i] = np.array(odd[self.rng.integers(len(odd))]).astype(numpy)
            array = flat.reshape(shape)
        return array

    def text(self, shape, *words):
        """Strings: of these, or pieces of them joined."""
        size = int(np.prod(shape, dtype=np.int64))
        pieces = [b"".join(self.pick(*words) for _ in range(self.int(1, 3)))
                  if self.rng.random() < 0.4 else self.pick(*words) for _ in range(size)]
        result = np.empty(size, object)
        result[:] = pieces
        return result.reshape(shape)

    def bytes(self, size):
        return self.rng.integers(0, 256, size).astype(np.uint8).tobytes()

    def string(self, text):
        """A scalar input."""
        return np.array(text, object)

    def vector(self, numbers, dtype="int32"):
        return np.array(numbers, tf.as_dtype(dtype).as_numpy_dtype)

    def ints(self, shape, low, high, dtype="int32"):
        return np.asarray(self.rng.integers(low, max(low, high) + 1, size=shape)).astype(
            tf.as_dtype(dtype).as_numpy_dtype)

    def index_type(self):
        return self.pick("int32", "int64")

    def scalar(self, value, dtype="int32"):
        return np.array(value, tf.as_dtype(dtype).as_numpy_dtype)

    def broadcast_pair(self):
        """Two shapes that broadcast."""
        whole = self.shape(0, 5, 4)
        def part():
            own = [d if self.rng.random() < 0.7 else 1 for d in whole]
            return tuple(own[self.int(0, len(own)) if self.rng.random() < 0.3 else 0:])
        return part(), part()

    def axis(self, rank):
        """An axis, counted from either end."""
        return self.int(-rank, rank - 1)

    def spoil(self, arguments):
        """Makes one input wrong: its shape, or one of its integers."""
        names = [n for n, v in arguments.items() if isinstance(v, np.ndarray)]
        if not names:
            return
        name = self.pick(*names)
        array = arguments[name]
        choice = self.int(0, 3)
        if choice == 0 and array.ndim:
            arguments[name] = np.concatenate([array, array[:1]], 0)
        elif choice == 1:
            arguments[name] = array[None]
        elif choice == 2 and array.ndim and array.shape[0]:
            arguments[name] = array[0].copy() if array.ndim > 1 else array[:-1]
        elif array.dtype.kind in "iu" and array.size:
            flat = array.reshape(-1).copy()
            flat[self.int(0, flat.size - 1)] = self.pick(100, 7, 126) if (
                array.dtype.kind == "u") else self.pick(-100, 100, -1, 7)
            arguments[name] = flat.reshape(array.shape)


# --- shapes of arguments that many rows share ---


def unary(name="x", low=None, high=None):
    return lambda s: {name: s.values(s.shape(), low, high)}


def binary(x="x", y="y", **attrs):
    def make(s):
        left, right = s.broadcast_pair()
        return {x: s.values(left), y: s.values(right), **attrs}
    return make


def alike(*names, low=None, high=None, **attrs):
    def make(s):
        shape = s.shape()
        return {**{name: s.values(shape, low, high) for name in names}, **attrs}
    return make
