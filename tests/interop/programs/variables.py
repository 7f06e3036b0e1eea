"""variables.py - variables of both kinds: assigned, counted, scattered into, gathered, destroyed."""

import numpy as np
import tensorflow as tf

from programs.program import raw, v1

TYPES = ("half bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
         "complex64 complex128 bool string")


class Variable:
    """One node, of either kind; `shape` is what it was made for."""

    def __init__(self, p, resource=None, dtype=None, shape=None, **names):
        self.p = p
        self.resource = p.flag() if resource is None else resource
        self.dtype = dtype or p.dtype(TYPES)
        self.shape = p.shape(0, 3, 4) if shape is None else shape
        static = self.shape if p.chance(0.85) else None
        if self.resource:
            self.ref = raw.VarHandleOp(dtype=self.dtype, shape=tf.TensorShape(static), **names)
        else:
            make = raw.VariableV2 if p.chance(0.9) else raw.Variable
            self.ref = make(dtype=self.dtype, shape=tf.TensorShape(static if p.chance(0.8) else self.shape),
                            **names)

    def values(self, shape=None, low=None, high=None):
        return self.p.values(self.shape if shape is None else shape, low, high, self.dtype)

    def read(self):
        if self.resource:
            return raw.ReadVariableOp(resource=self.ref, dtype=self.dtype)
        return raw.Identity(input=self.ref)

    def assign(self, value):
        if self.resource:
            return raw.AssignVariableOp(resource=self.ref, value=value,
                                        validate_shape=self.p.chance(0.3))
        return raw.Assign(ref=self.ref, value=value, validate_shape=self.p.chance(0.8),
                          use_locking=self.p.flag())

    def start(self, value=None):
        """Gives it a value; most programs begin so."""
        value = self.values() if value is None else value
        self.p.run(target=[self.assign(self.p.give(np.asarray(value)))])

    def show(self, kind="exact"):
        self.p.run([self.read()], kind=kind)


def change(p, v):
    """One update of the whole, then the value."""
    def assign():
        p.run(target=[v.assign(p.give(v.values(p.bent(v.shape))))])

    def add():
        value = p.give(v.values(p.bent(v.shape), -9, 9))
        name = p.pick("Add", "Sub")
        if v.resource:
            op = getattr(raw, f"Assign{name}VariableOp")(resource=v.ref, value=value)
        else:
            op = getattr(raw, f"Assign{name}")(ref=v.ref, value=value, use_locking=p.flag())
        p.run(target=[op])

    def fetched():
        """The updated value straight from the update."""
        if v.resource:
            with tf.control_dependencies([v.assign(p.give(v.values()))]):
                p.run([v.read()])
        else:
            p.run([v.assign(p.give(v.values()))])

    def count():
        limit = p.int(-3, 12)
        op = (raw.ResourceCountUpTo(resource=v.ref, limit=limit, T=v.dtype) if v.resource else
              raw.CountUpTo(ref=v.ref, limit=limit))
        p.run([op])
    return p.attempt(p.pick(assign, add, fetched, count))


def scatter(p, v):
    """Rows by index, repeated and bad ones too."""
    name = p.pick("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
    index_type = p.index_type()
    rows = v.shape[0] if v.shape else 1
    shape = p.shape(0, 2, 3)
    bad = p.chance(0.1)
    indices = p.ints(shape, -1 if bad else 0, rows if bad else rows - 1, index_type)
    # TensorFlow reads beyond a scalar's shape here, and beyond updates of another shape.
    if v.resource and not v.shape:
        return
    updates = () if p.chance(0.15) else tuple(shape) + tuple(v.shape[1:])
    updates = updates if v.resource else p.bent(updates)
    low, high = (1, 4) if name == "Div" else (-4, 4)
    updates = p.give(v.values(updates, low, high))
    if v.resource:
        op = getattr(raw, "ResourceScatter" + name)(resource=v.ref, indices=p.give(indices), updates=updates)
        p.run(target=[op])
    else:
        op = getattr(raw, "Scatter" + name)(ref=v.ref, indices=p.give(indices), updates=updates,
                                            use_locking=p.flag())
        p.run([op] if p.flag() else [], [op], kind="round")


def scatter_nd(p, v):
    name = p.pick("Update", "Add", "Sub", "Min", "Max")
    depth = p.int(0 if p.chance(0.05) else min(1, len(v.shape)), len(v.shape))
    outer = p.shape(1, 2, 3)
    bad = p.chance(0.1)
    indices = np.zeros(tuple(outer) + (depth,), tf.as_dtype(p.index_type()).as_numpy_dtype)
    for i in range(depth):
        indices[..., i] = p.rng.integers(-1 if bad else 0, v.shape[i] + (1 if bad else 0) or 1, size=outer)
    updates = p.give(v.values(p.bent(tuple(outer) + tuple(v.shape[depth:])), -4, 4))
    if name in ("Min", "Max") and v.dtype.is_complex or v.dtype == tf.string and p.chance(0.9):
        return  # no such kernel: the program would end here
    prefix = "ResourceScatterNd" if v.resource else "ScatterNd"
    more = {"bad_indices_policy": "IGNORE"} if p.chance(0.15) else {}
    op = getattr(raw, prefix + name)(ref=v.ref, indices=p.give(indices), updates=updates,
                                     use_locking=p.flag(), **more)
    p.run(target=[op])


def strided_assign(p, v):
    begin, end, strides = [], [], []
    for size in v.shape:
        stride = p.pick(1, 1, 2, -1, -2)
        first, last = sorted((p.int(0, size), p.int(0, size)))
        begin.append(first if stride > 0 else last - 1)
        end.append(last if stride > 0 else first - 1 - (size if first == 0 else 0))
        strides.append(stride)
    taken = [len(range(s)[slice(b if b >= 0 else None, e if e >= -s else None, d)])
             for b, e, d, s in zip(begin, end, strides, v.shape)]
    spec = [p.give(np.array(x, np.int32)) for x in (begin, end, strides)]
    value = p.give(v.values(p.bent(taken)))
    op = (raw.ResourceStridedSliceAssign if v.resource else raw.StridedSliceAssign)(
        ref=v.ref, begin=spec[0], end=spec[1], strides=spec[2], value=value,
        begin_mask=p.pick(0, 0, 0, 1), end_mask=p.pick(0, 0, 0, 1, 2))
    p.run(target=[op])


def ask(p, v):
    """What can be asked without a change."""
    def initialised():
        p.run([raw.VarIsInitializedOp(resource=v.ref) if v.resource else raw.IsVariableInitialized(ref=v.ref)])

    def shape():
        p.run([raw.VariableShape(input=v.ref, out_type=tf.as_dtype(p.index_type())) if v.resource else
               raw.Shape(input=v.ref)])

    def gather():
        rows = v.shape[0] if v.shape else 1
        batch = p.pick(0, 0, 0, 1) if len(v.shape) > 1 else 0
        # TensorFlow looks into the next batch for these.
        bad = p.chance(0.1) and not (batch and v.resource)
        outer = tuple(v.shape[:batch]) + tuple(p.shape(0, 2, 3))
        rows = v.shape[batch] if len(v.shape) > batch else rows
        indices = p.give(p.ints(outer, -1 if bad else 0, rows if bad else max(rows - 1, 0), p.index_type()))
        p.run([raw.ResourceGather(resource=v.ref, indices=indices, dtype=v.dtype, batch_dims=batch) if v.resource
               else raw.GatherV2(params=v.ref, indices=indices, axis=batch, batch_dims=batch)])

    def gather_nd():
        depth = p.int(0, len(v.shape))
        outer = p.shape(0, 2, 3)
        bad = p.chance(0.1)
        indices = np.zeros(tuple(outer) + (depth,), np.int32)
        for i in range(depth):
            indices[..., i] = p.rng.integers(-1 if bad else 0, v.shape[i] + (1 if bad else 0) or 1, size=outer)
        indices = p.give(indices)
        p.run([raw.ResourceGatherNd(resource=v.ref, indices=indices, dtype=v.dtype) if v.resource else
               raw.GatherNd(params=v.ref, indices=indices)])

    return p.attempt(p.pick(initialised, shape, gather, gather, gather_nd, lambda: v.show()))


def destroy(p, v):
    if v.resource:
        p.run(target=[raw.DestroyResourceOp(resource=v.ref, ignore_lookup_error=p.flag())])


def temporary(p, v):
    """A variable that lives within one run."""
    shape, dtype = p.shape(0, 2, 3), p.dtype("float32 float64 int32 int64 half")
    name = p.pick("", "temp")
    temp = raw.TemporaryVariable(shape=shape, dtype=dtype, var_name=name)
    step = raw.Assign(ref=temp, value=p.give(p.values(shape, dtype=dtype)))
    for _ in range(p.int(0, 3)):
        step = raw.AssignAdd(ref=step, value=p.give(p.values(shape, -9, 9, dtype=dtype)))
    p.run([raw.DestroyTemporaryVariable(ref=step, var_name=name or temp.op.name)])


def sibling(p, v):
    """Another node, perhaps of the same variable, perhaps of another type under its name."""
    names = {"shared_name": p.pick("", "one", "two"), "container": p.pick("", "", "box")}
    same = p.chance(0.6)
    return Variable(p, v.resource if p.chance(0.8) else None, v.dtype if same else None,
                    v.shape if same else None, **names)


def program(p):
    names = {"shared_name": p.pick("", "one")} if p.flag() else {}
    numbers = p.dtype("half bfloat16 float32 float64 int32 int64 int64")
    variables = [Variable(p, dtype=numbers if p.chance(0.75) else None, **names)]
    for _ in range(p.pick(0, 0, 1, 2)):
        variables.append(sibling(p, variables[0]))
    for v in variables:
        if p.chance(0.9):
            p.attempt(v.start)

    def one(action):
        v = p.pick(*variables)
        p.attempt(lambda: action(p, v))
        if p.chance(0.7):
            v.show(kind="round")
    choices = [change, change, scatter, scatter, scatter_nd, scatter_nd, strided_assign, ask, ask, ask]
    if p.chance(0.2):
        choices += [destroy, temporary]
    p.actions([lambda a=a: one(a) for a in choices])
