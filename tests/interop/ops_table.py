"""ops_table.py - what ops_generate.py makes of each operation.

A row is an op, the types its first type attribute may have, a function that draws its
arguments, and how exact the answer is (KINDS in ops_generate.py).  The function is given a
Source and returns the arguments of tf.raw_ops.OP: arrays are inputs, all else attributes.
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
    the arguments that gives the outputs whose contents TensorFlow leaves undefined."""

    def __init__(self, op, types, make, kind="exact", gradient=True, constant=(),
                 vague=lambda arguments: ()):
        self.op, self.types, self.make = op, types.split(), make
        self.kind, self.gradient, self.constant = kind, gradient, constant
        self.vague = vague

    def constants(self, names):
        """Inputs that stay constants even where the others become placeholders."""
        return [name for name in names if name[3:] in self.constant]


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


def reduce_args(s):
    shape = s.shape(0, 5, 4)
    rank = len(shape)
    axes = list(s.rng.permutation(rank)[:s.int(0, rank)])
    axes = [int(a) - (rank if s.flag() else 0) for a in axes]
    if len(axes) == 1 and s.flag():
        indices = s.scalar(axes[0], s.index_type())
    else:
        indices = np.array(axes, tf.as_dtype(s.index_type()).as_numpy_dtype)
    return {"input": s.values(shape), "axis": indices, "keep_dims": s.flag()}


def logical_reduce(s):
    arguments = reduce_args(s)
    arguments["input"] = s.values(arguments["input"].shape, dtype="bool")
    return arguments


def arg_extreme(s):
    shape = s.shape(1, 4, 5)
    return {"input": s.values(shape), "dimension": s.scalar(s.axis(len(shape)), s.index_type()),
            "output_type": tf.as_dtype(s.index_type())}


def cumulative(s):
    shape = s.shape(1, 4)
    return {"x": s.values(shape), "axis": s.scalar(s.axis(len(shape)), s.index_type()),
            "exclusive": s.flag(), "reverse": s.flag()}


def mat_mul(s):
    m, k, n = s.int(0, 5) if s.rng.random() < 0.1 else s.int(1, 6), s.int(1, 6), s.int(1, 6)
    ta, tb = s.flag(), s.flag()
    return {"a": s.values((k, m) if ta else (m, k), -3, 3),
            "b": s.values((n, k) if tb else (k, n), -3, 3),
            "transpose_a": ta, "transpose_b": tb}


def einsum(s):
    """One of the usual equations, sizes at random; ... is broadcast."""
    equation = s.pick("ab,bc->ac", "ab,cb->ac", "abc,acd->abd", "abcd,aecd->acbe", "ab->ba", "aa->a", "ab->", "abc->b",
                      "a,b->ab", "ab,cd->bd", "...ab,...bc->...ac", "a...b,...bc->c...a", "...ab->...", "aab,b->ab",
                      "ab,ab->", "a->aa")
    sizes = {label: s.int(1, 4) for label in "abcde"}
    dots = s.shape(0, 2, 3)
    inputs = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            if part == ".":
                shape += [1 if s.rng.random() < 0.3 else d for d in dots]
            else:
                shape.append(sizes[part])
        inputs.append(s.values(tuple(shape), -2, 2))
    return {"inputs": inputs, "equation": equation}


def batch_mat_mul(broadcast):
    def make(s):
        m, k, n = s.int(1, 5), s.int(1, 5), s.int(1, 5)
        ax, ay = s.flag(), s.flag()
        left, right = s.broadcast_pair() if broadcast else (s.shape(0, 3, 3),) * 2
        left, right = left[-3:], right[-3:]
        return {"x": s.values(left + ((k, m) if ax else (m, k)), -3, 3),
                "y": s.values(right + ((n, k) if ay else (k, n)), -3, 3),
                "adj_x": ax, "adj_y": ay}
    return make


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


# --- arrays ---


def reshape(s):
    shape = s.shape(0, 4, 4, 1)
    total = int(np.prod(shape, dtype=np.int64))
    target, rest = [], total
    for divisor in (2, 3, 4):
        if rest % divisor == 0 and s.flag():
            target.append(divisor)
            rest //= divisor
    target.append(-1 if s.flag() else rest)
    s.rng.shuffle(target)
    return {"tensor": s.values(shape),
            "shape": np.array(target, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def squeeze(s):
    shape = tuple(1 if s.flag() else d for d in s.shape(0, 5))
    ones = [i for i, d in enumerate(shape) if d == 1]
    dims = [i - (len(shape) if s.flag() else 0) for i in ones if s.flag()]
    return {"input": s.values(shape), "axis": dims}


def expand_dims(s):
    shape = s.shape()
    return {"input": s.values(shape), "axis": s.scalar(s.axis(len(shape) + 1), s.index_type())}


def pack(s):
    shape = s.shape(0, 3)
    return {"values": [s.values(shape) for _ in range(s.int(1, 4))],
            "axis": s.axis(len(shape) + 1)}


def unpack(s):
    shape = s.shape(1, 4, 4, 1)
    axis = s.axis(len(shape))
    return {"value": s.values(shape), "num": shape[axis], "axis": axis}


def concat(s):
    shape = s.shape(1, 4)
    axis = s.axis(len(shape))
    parts = []
    for _ in range(s.int(2, 4)):
        own = list(shape)
        own[axis] = s.int(0, 4)
        parts.append(s.values(tuple(own)))
    return {"values": parts, "axis": s.scalar(axis, s.index_type())}


def split(s):
    shape = list(s.shape(1, 4))
    axis, parts = s.axis(len(shape)), s.int(1, 4)
    shape[axis] = parts * s.int(0, 3)
    return {"axis": s.scalar(axis), "value": s.values(tuple(shape)), "num_split": parts}


def split_v(s):
    shape = list(s.shape(1, 4))
    axis = s.axis(len(shape))
    sizes = [s.int(0, 3) for _ in range(s.int(1, 4))]
    shape[axis] = sum(sizes)
    if s.flag():
        sizes[s.int(0, len(sizes) - 1)] = -1
    return {"value": s.values(tuple(shape)),
            "size_splits": np.array(sizes, tf.as_dtype(s.index_type()).as_numpy_dtype),
            "axis": s.scalar(axis), "num_split": len(sizes)}


def slice_args(s):
    shape = s.shape(0, 5)
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    begin = [s.int(0, d) for d in shape]
    size = [s.pick(-1, s.int(0, d - b)) for d, b in zip(shape, begin)]
    return {"input": s.values(shape), "begin": np.array(begin, dtype),
            "size": np.array(size, dtype)}


def strided_spec(s, shape):
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    count = s.int(0, min(5, len(shape) + 1))
    begin = [s.int(-6, 6) for _ in range(count)]
    end = [s.int(-6, 6) for _ in range(count)]
    strides = [s.pick(1, 1, 2, 3, -1, -2) for _ in range(count)]
    mask = (lambda: s.int(0, 2 ** count - 1) if s.rng.random() < 0.4 else 0)
    ellipsis = 2 ** s.int(0, count - 1) if count and s.rng.random() < 0.3 else 0
    return {"begin": np.array(begin, dtype), "end": np.array(end, dtype),
            "strides": np.array(strides, dtype), "begin_mask": mask(), "end_mask": mask(),
            "ellipsis_mask": ellipsis, "new_axis_mask": mask(), "shrink_axis_mask": mask()}


def strided_slice(s):
    shape = s.shape(1, 4)
    return {"input": s.values(shape), **strided_spec(s, shape)}


def transpose(s):
    shape = s.shape(0, 5)
    order = s.rng.permutation(len(shape))
    return {"x": s.values(shape),
            "perm": np.array(order, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def tile(s):
    shape = s.shape(0, 4)
    return {"input": s.values(shape), "multiples": s.ints((len(shape),), 0, 3, s.index_type())}


def pad(s):
    shape = s.shape(0, 4)
    return {"input": s.values(shape), "paddings": s.ints((len(shape), 2), 0, 3, s.index_type())}


def pad_v2(s):
    return {**pad(s), "constant_values": s.values(())}


def mirror_pad(s):
    shape = s.shape(0, 4, 5, 1)
    mode = s.pick("REFLECT", "SYMMETRIC")
    less = mode == "REFLECT"
    pads = np.array([[s.int(0, d - less), s.int(0, d - less)] for d in shape],
                    tf.as_dtype(s.index_type()).as_numpy_dtype).reshape(len(shape), 2)
    return {"input": s.values(shape), "paddings": pads, "mode": mode}


def reverse_v2(s):
    shape = s.shape(0, 5)
    axes = [int(a) for a in s.rng.permutation(len(shape))[:s.int(0, len(shape))]]
    axes = [a - (len(shape) if s.flag() else 0) for a in axes]
    return {"tensor": s.values(shape),
            "axis": np.array(axes, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def reverse_sequence(s):
    shape = s.shape(2, 4)
    seq, batch = (int(a) for a in s.rng.permutation(len(shape))[:2])
    return {"input": s.values(shape), "seq_dim": seq, "batch_dim": batch,
            "seq_lengths": s.ints((shape[batch],), 0, shape[seq], s.index_type())}


def fill(s):
    return {"dims": np.array(s.shape(), tf.as_dtype(s.index_type()).as_numpy_dtype),
            "value": s.values(())}


def broadcast_to(s):
    a, b = s.broadcast_pair()
    target = np.broadcast_shapes(a, b)
    return {"input": s.values(a),
            "shape": np.array(target, tf.as_dtype(s.index_type()).as_numpy_dtype)}


def one_hot(s):
    shape = s.shape(0, 3)
    return {"indices": s.ints(shape, -1, 5, s.index_type()),
            "depth": s.scalar(s.int(0, 6)), "on_value": s.values(()),
            "off_value": s.values(()), "axis": s.int(-1, len(shape))}


def band_part(s):
    shape = s.shape(2, 4)
    dtype = s.index_type()
    return {"input": s.values(shape), "num_lower": s.scalar(s.int(-1, shape[-2]), dtype),
            "num_upper": s.scalar(s.int(-1, shape[-1]), dtype)}


def gather_v2(s):
    shape = s.shape(1, 4, 5, 1)
    batch = s.int(0, min(2, len(shape) - 1))
    axis = s.int(batch, len(shape) - 1)
    indices = shape[:batch] + s.shape(0, 2)
    return {"params": s.values(shape), "batch_dims": batch, "axis": s.scalar(axis, s.index_type()),
            "indices": s.ints(indices, 0, shape[axis] - 1, s.index_type())}


def gather(s):
    shape = s.shape(1, 4, 5, 1)
    return {"params": s.values(shape),
            "indices": s.ints(s.shape(0, 2), 0, shape[0] - 1, s.index_type())}


def nd_indices(s, shape, depth, lead):
    dtype = s.index_type()
    columns = [s.ints(lead, 0, max(d - 1, 0), dtype) for d in shape[:depth]]
    return (np.stack(columns, -1) if columns
            else np.zeros(lead + (0,), tf.as_dtype(dtype).as_numpy_dtype))


def gather_nd(s):
    shape = s.shape(1, 4, 5, 1)
    depth = s.int(0, len(shape))
    return {"params": s.values(shape), "indices": nd_indices(s, shape, depth, s.shape(0, 2))}


def scatter_nd(s):
    shape = s.shape(1, 4, 5, 1)
    depth, lead = s.int(1, len(shape)), s.shape(1, 2)
    indices = nd_indices(s, shape, depth, lead)
    return {"indices": indices, "updates": s.values(lead + shape[depth:]),
            "shape": np.array(shape, indices.dtype)}


def tensor_scatter(s):
    arguments = scatter_nd(s)
    shape = tuple(arguments.pop("shape"))
    return {"tensor": s.values(shape), **arguments}


def dynamic_partition(s):
    shape = s.shape(1, 4)
    depth = s.int(1, len(shape))
    return {"data": s.values(shape), "partitions": s.ints(shape[:depth], 0, 2),
            "num_partitions": 3}


def dynamic_stitch(s):
    tail, count = s.shape(0, 2), s.int(1, 3)
    shapes = [s.shape(0, 2, 3) for _ in range(count)]
    total = sum(int(np.prod(x, dtype=np.int64)) for x in shapes)
    order, at, indices = s.rng.permutation(max(total, 1)), 0, []
    for shape in shapes:
        size = int(np.prod(shape, dtype=np.int64))
        indices.append(order[at:at + size].reshape(shape).astype(np.int32))
        at += size
    return {"indices": indices, "data": [s.values(x + tail) for x in shapes]}


def top_k(s):
    shape = s.shape(1, 3, 7)
    return {"input": s.values(shape), "k": s.scalar(s.int(0, shape[-1])), "sorted": True}


def in_top_k(s):
    rows, classes = s.int(1, 5), s.int(1, 6)
    dtype = s.index_type()
    s.type = tf.float32
    return {"predictions": s.values((rows, classes)),
            "targets": s.ints((rows,), 0, classes - 1, dtype),
            "k": s.scalar(s.int(0, classes), dtype)}


def space_to_depth(s):
    block = s.int(2, 3)
    return {"input": s.values((s.int(1, 2), block * s.int(1, 2), block * s.int(1, 2),
                               s.int(1, 3))), "block_size": block}


def depth_to_space(s):
    block = s.int(2, 3)
    return {"input": s.values((s.int(1, 2), s.int(1, 3), s.int(1, 3),
                               block * block * s.int(1, 2))), "block_size": block}


def sparse_to_dense(s):
    shape = s.shape(1, 3, 5, 1)
    places = sorted(set(tuple(s.int(0, d - 1) for d in shape) for _ in range(s.int(0, 5))))
    dtype = tf.as_dtype(s.index_type()).as_numpy_dtype
    return {"sparse_indices": np.array(places, dtype).reshape(len(places), len(shape)),
            "output_shape": np.array(shape, dtype), "sparse_values": s.values((len(places),)),
            "default_value": s.values(())}


def space_to_batch(inverse, nd):
    def make(s):
        count = s.int(1, 3) if nd else 2
        sizes = [s.int(1, 3) for _ in range(count)] if nd else [2, 2]
        tail = s.shape(0, 2, 3) if nd else (s.int(1, 3),)
        space, pads = [], []
        for size in sizes:
            a, b = s.int(0, 2), s.int(0, 2)
            if inverse:
                least = -(-(a + b) // size)
                space.append(least + s.int(0, 2))
            else:
                length = s.int(1, 5)
                b += -(length + a + b) % size
                space.append(length)
            pads.append([a, b])
        blocks = int(np.prod(sizes))
        batch = s.int(1, 2) * (blocks if inverse else 1)
        pads = np.array(pads, tf.as_dtype(s.index_type()).as_numpy_dtype)
        arguments = {"input": s.values((batch, *space, *tail)),
                     "crops" if inverse else "paddings": pads}
        if nd:
            arguments["block_shape"] = np.array(sizes, np.int32)
        else:
            arguments["block_size"] = 2
        return arguments
    return make


def roll(s):
    shape = s.shape(1, 4)
    count = s.int(1, 3)
    return {"input": s.values(shape), "shift": s.ints((count,), -7, 7, s.index_type()),
            "axis": s.ints((count,), -len(shape), len(shape) - 1, s.index_type())}


def image_patches(s):
    return {"images": s.values((s.int(1, 2), s.int(2, 6), s.int(2, 6), s.int(1, 3))),
            "ksizes": [1, s.int(1, 3), s.int(1, 3), 1],
            "strides": [1, s.int(1, 3), s.int(1, 3), 1],
            "rates": [1, s.int(1, 2), s.int(1, 2), 1], "padding": s.pick("SAME", "VALID")}


# --- matrices ---


def well_conditioned(s, lead, n):
    """Far from matrices that cannot be inverted."""
    noise = s.values(lead + (n, n), -1, 1).astype(np.complex128)
    whole = noise + (n + 1) * np.eye(n)
    return (whole if s.type.is_complex else whole.real).astype(s.type.as_numpy_dtype)


def one_matrix(**attrs):
    def make(s):
        own = {name: s.flag() for name in attrs}
        return {"input": well_conditioned(s, s.shape(0, 2, 3), s.int(1, 4)), **own}
    return make


def positive_matrix(s):
    a = well_conditioned(s, s.shape(0, 2, 3), s.int(1, 4)).astype(np.complex128)
    a = a @ np.conj(np.swapaxes(a, -1, -2))
    return {"input": (a if s.type.is_complex else a.real).astype(s.type.as_numpy_dtype)}


def solve(triangular):
    def make(s):
        lead, n, m = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 3)
        return {"matrix": well_conditioned(s, lead, n), "rhs": s.values(lead + (n, m), -2, 2),
                "adjoint": s.flag(), **({"lower": s.flag()} if triangular else {})}
    return make


# --- diagonals ---

ALIGN = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def diagonal_range(s, rows, columns):
    ends = sorted(s.int(-rows + 1, columns - 1) for _ in range(2))
    if s.flag():
        return ends[0], ends[0], s.scalar(ends[0])
    return ends[0], ends[1], np.array(ends, np.int32)


def band_shape(lead, rows, columns, low, high):
    length = min(rows + min(high, 0), columns - max(low, 0))
    return lead + ((high - low + 1,) if low != high else ()) + (length,)


def matrix_diag(version):
    def make(s):
        lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
        low, high, k = diagonal_range(s, rows, columns)
        return {"diagonal": s.values(band_shape(lead, rows, columns, low, high)), "k": k,
                "num_rows": s.scalar(rows), "num_cols": s.scalar(columns),
                "padding_value": s.values(()),
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def matrix_diag_part(version):
    def make(s):
        shape = s.shape(0, 2, 3) + (s.int(1, 4), s.int(1, 4))
        _, _, k = diagonal_range(s, *shape[-2:])
        return {"input": s.values(shape), "k": k, "padding_value": s.values(()),
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def matrix_set_diag(version):
    def make(s):
        lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
        low, high, k = diagonal_range(s, rows, columns)
        return {"input": s.values(lead + (rows, columns)),
                "diagonal": s.values(band_shape(lead, rows, columns, low, high)), "k": k,
                **({"align": s.pick(*ALIGN)} if version == 3 else {})}
    return make


def set_diag(s):
    lead, rows, columns = s.shape(0, 2, 3), s.int(1, 4), s.int(1, 4)
    return {"input": s.values(lead + (rows, columns)),
            "diagonal": s.values(lead + (min(rows, columns),))}


# --- windows ---


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


def suppression(version):
    def make(s):
        count = s.int(0, 7)
        corner = s.values((count, 2), 0, 1).astype(np.float64)
        boxes = np.concatenate([corner, corner + s.values((count, 2), 0.1, 0.6).astype(
            np.float64)], 1).astype(s.type.as_numpy_dtype)
        arguments = {"boxes": boxes, "scores": s.values((count,), 0, 1),
                     "max_output_size": s.scalar(s.int(0, 5)),
                     "iou_threshold": s.values((), 0.2, 0.7)}
        if version == 1:
            arguments["iou_threshold"] = 0.5
        if version >= 3:
            arguments["score_threshold"] = s.values((), 0, 0.5)
        if version == 5:
            arguments["soft_nms_sigma"] = s.values((), 0, 0.5) if s.flag() else s.values(
                (), 0, 0)
        if version >= 4:
            arguments["pad_to_max_output_size"] = s.flag()
        return arguments
    return make


def sample_distorted(version):
    def make(s):
        boxes = np.sort(s.values((1, s.int(0, 3), 2, 2), 0, 1, "float32"), 2).reshape(1, -1, 4)
        arguments = {"image_size": s.ints((3,), 5, 100, s.type),
                     "bounding_boxes": boxes.astype(np.float32), "seed": s.int(1, 99),
                     "seed2": s.int(0, 99), "use_image_if_no_bounding_boxes": True,
                     "area_range": [s.pick(0.05, 0.3), 1.0]}
        cover = s.pick(0.1, 0.5, 0.9)
        arguments["min_object_covered"] = (cover if version == 1
                                           else np.array(cover, np.float32))
        return arguments
    return make


def shift(s):
    a, b = s.broadcast_pair()
    return {"x": s.values(a), "y": s.values(b, 0, 7)}


# --- neural networks ---


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


# --- images ---


def resize(halves=True):
    def make(s):
        mode = s.int(0, 2 if halves else 1)
        return {"images": s.values((s.int(1, 2), s.int(1, 6), s.int(1, 6), s.int(1, 3)), 0, 99),
                "size": s.ints((2,), 1, 8), "align_corners": mode == 1,
                **({"half_pixel_centers": mode == 2} if halves else {})}
    return make


def crop_and_resize(s):
    batch, boxes = s.int(1, 3), s.int(0, 4)
    return {"image": s.values((batch, s.int(1, 6), s.int(1, 6), s.int(1, 3)), 0, 99),
            "boxes": s.values((boxes, 4), -0.2, 1.2, "float32"),
            "box_ind": s.ints((boxes,), 0, batch - 1), "crop_size": s.ints((2,), 1, 5),
            "method": s.pick("bilinear", "nearest"), "extrapolation_value": s.pick(0.0, 3.5)}


def color(name, low, high):
    return lambda s: {"images": s.values(s.shape(2, 3, 4, 1) + (3,), 0, 1),
                      name: s.values((), low, high, "float32")}


def pixels(s):
    return {"images": s.values(s.shape(0, 3, 4, 1) + (3,), 0, 1)}


ROWS = [
    *(Row(op, NUMBER, binary(), "round") for op in ("AddV2", "Sub", "Mul")),
    Row("Add", FLOAT + " uint8 " + SIGNED + " " + COMPLEX, binary(), "round"),
    Row("Div", REAL, binary(), "round"),
    Row("RealDiv", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("DivNoNan", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("MulNoNan", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("Xdivy", FLOAT + " " + COMPLEX, binary(), "few"),
    Row("FloorDiv", REAL, binary(), "few"),
    Row("FloorMod", REAL, binary(), "few", gradient=False),
    Row("TruncateDiv", INTEGER, binary()),
    Row("TruncateMod", "float32 float64 int32 int64", binary(), "few"),
    Row("Maximum", REAL, binary(), "round"),
    Row("Minimum", REAL, binary(), "round"),
    Row("SquaredDifference", "half bfloat16 float32 float64 int32 int64 complex64", binary(),
        "few"),
    Row("Pow", "half bfloat16 float32 float64 int32 int64", binary(), "loose"),
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
    Row("ClipByValue", "half bfloat16 float32 float64 int32 int64 uint8 int16", clip, "round"),
    Row("Select", ANY, select),
    Row("SelectV2", ANY, select_v2),
    Row("MatMul", "half bfloat16 float32 float64 int32 int64 complex64 complex128", mat_mul,
        "sum"),
    Row("BatchMatMul", "half bfloat16 float32 float64 int32 int64 complex64 complex128",
        batch_mat_mul(False), "sum"),
    Row("BatchMatMulV2", "half bfloat16 float32 float64 int16 int32 int64 complex64 complex128",
        batch_mat_mul(True), "sum"),
    Row("Einsum", "half bfloat16 float32 float64 int32 int64 complex64 complex128", einsum, "sum"),
    *(Row(op, NUMBER, reduce_args, "sum") for op in ("Sum", "Mean", "Prod")),
    *(Row(op, REAL, reduce_args, "round") for op in ("Max", "Min")),
    Row("All", "bool", logical_reduce),
    Row("Any", "bool", logical_reduce),
    Row("ArgMax", REAL + " bool", arg_extreme),
    Row("ArgMin", REAL + " bool", arg_extreme),
    Row("L2Loss", FLOAT, lambda s: {"t": s.values(s.shape())}, "sum"),
    Row("Cumsum", NUMBER, cumulative, "sum"),
    Row("Cumprod", NUMBER, cumulative, "sum"),
    Row("SegmentSum", NUMBER, segment, "sum"),
    Row("SegmentMean", NUMBER, segment, "sum"),
    Row("UnsortedSegmentSum", NUMBER, unsorted_segment, "sum"),
    *(Row(f"Segment{k}", REAL, segment, "sum") for k in ("Max", "Min", "Prod")),
    *(Row(f"UnsortedSegment{k}", REAL, unsorted_segment, "sum") for k in ("Max", "Min", "Prod")),
    *(Row(f"SparseSegment{k}WithNumSegments", FLOAT, sparse_segment_number, "sum")
      for k in ("Sum", "Mean", "SqrtN")),
    *(Row(f"TensorScatter{k}", REAL, tensor_scatter, "sum")
      for k in ("Update", "Add", "Sub", "Max", "Min")),
    Row("SparseSegmentSum", REAL, sparse_segment, "sum"),
    Row("SparseSegmentMean", FLOAT, sparse_segment, "sum"),
    Row("SparseSegmentSqrtN", FLOAT, sparse_segment, "sum"),
    Row("Range", "float32 float64 half bfloat16 int32 int64", range_args, "few"),
    Row("LinSpace", "float32 float64", lin_space, "few"),
    Row("Reshape", ANY, reshape),
    Row("Squeeze", ANY, squeeze),
    Row("ExpandDims", ANY, expand_dims),
    Row("Pack", ANY, pack),
    Row("Unpack", ANY, unpack),
    Row("ConcatV2", ANY, concat),
    Row("Split", ANY, split),
    Row("SplitV", ANY, split_v),
    Row("Slice", ANY, slice_args),
    Row("StridedSlice", ANY, strided_slice),
    Row("Transpose", ANY, transpose),
    Row("Tile", ANY, tile),
    Row("Pad", ANY, pad),
    Row("PadV2", ANY, pad_v2),
    Row("MirrorPad", NUMBER, mirror_pad),
    Row("ReverseV2", ANY, reverse_v2),
    Row("ReverseSequence", ANY, reverse_sequence),
    Row("Fill", ANY, fill),
    Row("BroadcastTo", ANY, broadcast_to, "sum"),
    Row("OneHot", ANY, one_hot),
    Row("MatrixBandPart", NUMBER, band_part),
    Row("Where", REAL + " bool", lambda s: {"condition": s.values(s.shape(1, 4))}),
    Row("ZerosLike", ANY, unary()),
    Row("OnesLike", NUMBER + " bool", unary()),
    Row("Gather", ANY, gather),
    Row("GatherV2", ANY, gather_v2),
    Row("GatherNd", ANY, gather_nd),
    Row("ScatterNd", NUMBER, scatter_nd, "sum"),
    Row("DynamicPartition", ANY, dynamic_partition),
    Row("DynamicStitch", ANY, dynamic_stitch),
    Row("Unique", REAL + " bool string", lambda s: {"x": s.values(s.shape(1, 1, 9))}),
    Row("UniqueWithCounts", REAL + " bool string",
        lambda s: {"x": s.values(s.shape(1, 1, 9))}),
    Row("ListDiff", REAL + " string", lambda s: {"x": s.values(s.shape(1, 1, 9)),
                                                 "y": s.values(s.shape(1, 1, 9))}),
    Row("TopKV2", REAL, top_k),
    Row("InTopKV2", "float32", in_top_k),
    Row("SpaceToDepth", ANY, space_to_depth),
    Row("DepthToSpace", ANY, depth_to_space),
    Row("SparseToDense", ANY, sparse_to_dense),
    Row("MatrixDiag", NUMBER + " bool", lambda s: {"diagonal": s.values(s.shape(1, 3))}),
    Row("MatrixDiagPart", NUMBER + " bool", lambda s: {"input": s.values(s.shape(2, 4))}),
    Row("MatrixSetDiag", NUMBER + " bool", set_diag),
    # TensorFlow's gradients of the second versions have the third's alignment: not as they run.
    *(Row(f"MatrixDiagV{v}", NUMBER + " bool", matrix_diag(v), gradient=v > 2) for v in (2, 3)),
    *(Row(f"MatrixDiagPartV{v}", NUMBER + " bool", matrix_diag_part(v), gradient=v > 2)
      for v in (2, 3)),
    *(Row(f"MatrixSetDiagV{v}", NUMBER + " bool", matrix_set_diag(v), gradient=v > 2)
      for v in (2, 3)),
    Row("Diag", "half float32 float64 int32 int64 complex64",
        lambda s: {"diagonal": s.values(s.shape(1, 2))}),
    Row("DiagPart", "half float32 float64 int32 int64 complex64",
        lambda s: {"input": s.values(s.shape(1, 2) * 2)}),
    Row("Conv2D", FLOAT, conv(2), "sum"),
    Row("Conv2DBackpropInput", FLOAT, conv(2, part="input"), "sum"),
    Row("Conv2DBackpropFilter", FLOAT, conv(2, part="filter"), "sum"),
    Row("DepthwiseConv2dNative", FLOAT, conv(2, True), "sum"),
    Row("DepthwiseConv2dNativeBackpropInput", FLOAT, conv(2, True, "input"), "sum"),
    Row("DepthwiseConv2dNativeBackpropFilter", FLOAT, conv(2, True, "filter"), "sum"),
    Row("Conv3D", FLOAT, conv(3), "sum"),
    Row("Conv3DBackpropInputV2", FLOAT, conv(3, part="input"), "sum"),
    Row("Conv3DBackpropFilterV2", FLOAT, conv(3, part="filter"), "sum"),
    Row("MaxPool", "half bfloat16 float32 float64 int32 int64 uint8 int16 int8 uint16", pool(2),
        "round"),
    Row("AvgPool", FLOAT, pool(2, "value"), "sum"),
    Row("MaxPoolGrad", REAL, pool_grad(2, False), "sum"),
    Row("AvgPoolGrad", FLOAT, pool_grad(2, True), "sum"),
    Row("MaxPool3D", "bfloat16 float32", pool(3), "round"),
    Row("AvgPool3D", "bfloat16 float32", pool(3), "sum"),
    Row("MaxPool3DGrad", "bfloat16 float32", pool_grad(3, False), "sum"),
    Row("AvgPool3DGrad", "bfloat16 float32", pool_grad(3, True), "sum"),
    Row("MaxPoolV2", "half bfloat16 float32 float64 int32 int64 uint8", pool_v2, "round"),
    Row("MaxPoolGradGrad", REAL, pool_grad_grad, "sum"),
    Row("MaxPoolWithArgmax", REAL, pool_argmax, "sum"),
    Row("NonMaxSuppression", "float32", suppression(1)),
    *(Row(f"NonMaxSuppressionV{v}", "float32 half", suppression(v), "few")
      for v in (2, 3, 4, 5)),
    Row("SampleDistortedBoundingBox", "int32 int64 uint8", sample_distorted(1), "few"),
    Row("SampleDistortedBoundingBoxV2", "int32 int64 uint8", sample_distorted(2), "few"),
    *(Row(op, FLOAT + " " + COMPLEX, unary(), "sum")
      for op in ("Acos", "Asin", "Atan", "Atanh", "Acosh", "Asinh", "Cosh", "Sinh", "Tan",
                 "Inv")),
    Row("Erfc", FLOAT, unary(), "sum"),
    Row("Lgamma", "half float32 float64", unary(), "sum"),
    Row("Digamma", "half float32 float64", unary(), "sum"),
    Row("Zeta", "float32 float64", lambda s: {"x": s.values((4,), 1.1, 9),
                                              "q": s.values((4,), 0.1, 9)}, "sum"),
    Row("Polygamma", "float32 float64",
        lambda s: {"a": s.ints((4,), 0, 3, s.type), "x": s.values((4,), 0.1, 9)}, "sum"),
    Row("Erfinv", "float32 float64", unary(low=-1, high=1), "sum"),
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
    *(Row(op, "complex64", unary("x" if op == "ComplexAbs" else "input"), "few")
      for op in ("Real", "Imag", "Angle", "ComplexAbs")),
    Row("Complex", "float32", binary("real", "imag")),
    Row("SpaceToBatch", REAL, space_to_batch(False, False)),
    Row("SpaceToBatchND", REAL, space_to_batch(False, True), constant=("block_shape",)),
    Row("BatchToSpace", REAL, space_to_batch(True, False)),
    Row("BatchToSpaceND", REAL, space_to_batch(True, True), constant=("block_shape",)),
    Row("Roll", NUMBER + " bool string", roll),
    Row("ExtractImagePatches", NUMBER, image_patches, "exact"),
    Row("EnsureShape", ANY, lambda s: {"input": s.values((2, 3)),
                                       "shape": s.pick([2, 3], [None, 3], [2, 2], None)}),
    *(Row(op, "float32 float64 complex64 complex128", one_matrix(), "loose")
      for op in ("MatrixDeterminant", "LogMatrixDeterminant")),
    Row("MatrixInverse", "float32 float64 complex64 complex128", one_matrix(adjoint=True),
        "loose"),
    Row("MatrixSolve", "float32 float64 complex64 complex128", solve(False), "loose"),
    Row("MatrixTriangularSolve", "float32 float64 complex64 complex128", solve(True), "loose"),
    Row("Cholesky", "float32 float64 complex64 complex128", positive_matrix, "loose"),
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
    Row("LRN", "half float32", lrn, "sum"),
    Row("LSTMBlockCell", "half float32", lstm_cell, "sum"),
    Row("BlockLSTM", "half float32", block_lstm(1), "sum"),
    Row("BlockLSTMV2", "half float32", block_lstm(2), "sum"),
    Row("GRUBlockCell", "float32", gru_cell, "sum"),
    Row("ResizeBilinear", IMAGE, resize(), "sum"),
    Row("ResizeBicubic", IMAGE, resize(), "sum"),
    Row("ResizeNearestNeighbor", IMAGE, resize(), "sum"),
    Row("ResizeArea", IMAGE, resize(False), "sum"),
    Row("CropAndResize", IMAGE, crop_and_resize, "loose"),
    Row("AdjustContrastv2", "float32", color("contrast_factor", 0, 2), "sum"),
    Row("AdjustHue", "float32", color("delta", -1, 1), "loose"),
    Row("AdjustSaturation", "float32", color("scale", 0, 2), "loose"),
    Row("RGBToHSV", FLOAT, pixels, "sum"),
    Row("HSVToRGB", FLOAT, pixels, "sum"),
]
