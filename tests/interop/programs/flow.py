"""flow.py - random nests of conds and loops in both forms, dead values, functions, and gradients."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function as defun
from tensorflow.python.ops import control_flow_util

from programs.program import raw, v1


class Expression:
    """Draws expressions over values of one type and shape; all are kept small."""

    def __init__(self, p, functional, pure=False):
        self.p, self.functional, self.pure = p, functional, pure
        self.dtype = p.dtype("float32 float64")
        self.shape = p.pick((), (), (2,), (2, 3))
        self.variables = []

    def constant(self):
        return tf.constant(self.p.values(self.shape, -2, 2, self.dtype))

    def truth(self, values, counter=None):
        p = self.p
        if counter is not None and p.chance(0.6):
            return tf.equal(counter % p.int(2, 3), p.int(0, 1))
        return tf.reduce_sum(p.pick(*values)) > tf.constant(p.rng.uniform(-2, 2), self.dtype)

    def simple(self, values):
        p = self.p
        x, y = p.pick(*values), p.pick(*values)
        return p.pick(
            lambda: tf.tanh(x + y), lambda: tf.sin(x) * y * 0.5, lambda: tf.tanh(x) - y, lambda: tf.maximum(x, y),
            lambda: tf.tanh(x * y), lambda: 0.5 * x + self.constant(), lambda: tf.where(x > y, x * 0.5, y),
            lambda: tf.stop_gradient(x) + 0.1 * y, lambda: tf.identity(x))()

    def cond(self, values, depth, counter):
        predicate = self.truth(values, counter)

        def branch():
            # What is used may be made outside or inside.
            return self.draw(values + ([self.simple(values)] if self.p.flag() else []), depth - 1, counter)
        return tf.cond(predicate, branch, branch)

    def case(self, values, depth, counter):
        index = tf.cast(tf.reduce_sum(self.p.pick(*values)), tf.int32) if counter is None else counter % 4
        return tf.switch_case(index, [lambda: self.draw(values, depth - 1, counter) for _ in range(self.p.int(1, 3))])

    def loop(self, values, depth, counter):
        p = self.p
        times = p.int(0, 4)
        count = p.int(1, 2)
        start = [p.pick(*values) for _ in range(count)]
        limit = tf.constant(times) if counter is None or p.flag() else tf.minimum(counter, times)
        stop = p.rng.uniform(1, 3) if p.chance(0.2) else None

        def more(i, *xs):
            go = i < limit
            if stop is not None:
                go = tf.logical_and(go, tf.reduce_max(tf.abs(xs[0])) < tf.constant(stop, self.dtype))
            return go

        def body(i, *xs):
            inner = list(xs) + values
            return [i + 1] + [self.draw(inner, depth - 1, i) for _ in xs]
        out = v1.while_loop(more, body, [tf.constant(0), *start], parallel_iterations=p.pick(1, 2, 10),
                            maximum_iterations=p.pick(None, None, 3))
        return p.pick(*out[1:])

    def array_loop(self, values, depth, counter):
        """A loop that writes, or reads, an array."""
        p = self.p
        size = p.int(1, 4)
        source = tf.TensorArray(self.dtype, size, clear_after_read=False).unstack(
            tf.stack([p.pick(*values) for _ in range(size)]))
        into = tf.TensorArray(self.dtype, size, element_shape=self.shape)
        first = p.pick(*values)

        def body(i, x, array):
            x = tf.tanh(x + source.read(i)) if p.flag() else source.read(i) * 0.5 + x
            x.set_shape(self.shape)
            return i + 1, x, array.write(i, self.draw([x], depth - 2, i))
        _, x, into = v1.while_loop(lambda i, *_: i < size, body, [tf.constant(0), first, into],
                                   parallel_iterations=p.pick(1, 10))
        return p.pick(lambda: x, lambda: tf.reduce_sum(into.stack(), 0), lambda: into.read(size - 1))()

    def call(self, values, depth, counter):
        """A function of its own, with captured values."""
        p = self.p
        inputs = [p.pick(*values) for _ in range(p.int(1, 2))]

        def body(*xs):
            return self.draw(list(xs) + (values if p.flag() else []), depth - 1, None)
        return tf.function(body, autograph=False)(*inputs)

    def read(self, values, depth, counter):
        return tf.tanh(p.pick(*self.variables).read()) if (p := self.p) and self.variables else self.simple(values)

    def draw(self, values, depth, counter=None):
        p = self.p
        if depth <= 0:
            return self.simple(values)
        kinds = [self.cond, self.cond, self.loop, self.loop, self.array_loop]
        if self.functional:
            kinds += [self.case, self.call]
        out = p.pick(*kinds)(values, depth, counter)
        out = tf.reshape(out, self.shape) if out.shape.rank is None else out
        return self.simple(values + [out]) if p.flag() else out


def nest(p, functional):
    switch = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = functional
    try:
        e = Expression(p, functional)
        inputs = [p.give(p.values(e.shape, -2, 2, e.dtype), 0.2) for _ in range(p.int(1, 3))]
        for x in inputs:
            x.set_shape(e.shape)
        feeds = dict(p.feeds)
        ys = [e.draw(list(inputs), p.int(1, 3)) for _ in range(p.int(1, 2))]
        if p.chance(0.5):
            p.attempt(lambda: p.gradient(ys, inputs, feeds, kind="loose"))
        # Before the first run: gradients add outputs to the ops that they are of.
        grads, again = [], []
        if p.chance(0.5):
            grads = [g for g in p.attempt(lambda: tf.gradients(ys, inputs)) or [] if g is not None]
        if grads and p.chance(0.2):
            again = [g for g in p.attempt(lambda: tf.gradients(grads, inputs)) or [] if g is not None]
        for _ in range(p.int(1, 3)):
            for what in (ys, grads, again):
                if what:
                    p.feeds = dict(feeds)
                    # Terms of about 1 may cancel.
                    p.run(what, kind="sum" if what is ys else "loose", terms=[1.0] * len(what))
            feeds = {t: p.values(e.shape, -2, 2, e.dtype) for t in feeds}
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = switch


def first_form(p):
    nest(p, False)


def functional_form(p):
    nest(p, True)


def references(p):
    """A loop whose variable is a reference: what it refers to is added to in each round."""
    from tensorflow.python.ops import gen_control_flow_ops as flow, gen_state_ops as state
    shape = p.shape(0, 2, 3)
    variable = state.variable_v2(shape=shape, dtype=tf.float32)
    p.run(target=[state.assign(variable, p.give(p.values(shape, -3, 3, tf.float32))).op])
    around = {"frame_name": "f", "parallel_iterations": p.pick(1, 10)}

    def held(value):
        return raw.Enter(data=tf.constant(value), is_constant=True, **around)
    count = raw.Enter(data=tf.constant(0), **around)
    number = raw.Merge(inputs=[count, count])[0]
    entered = flow.ref_enter(variable, **around)
    merged = flow.ref_merge([entered, entered])[0]
    go_on = raw.LoopCond(input=raw.Less(x=number, y=held(p.int(0, 4))))
    last, now = flow.ref_switch(merged, go_on)
    last_number, next_number = raw.Switch(data=number, pred=go_on)
    changed = state.assign_add(now, held(np.ones(shape, np.float32)))
    number.op._update_input(1, raw.NextIteration(data=next_number + held(1)))
    merged.op._update_input(1, flow.ref_next_iteration(changed))
    p.run([tf.identity(flow.ref_exit(last)), raw.Exit(data=last_number)])
    p.run([tf.identity(variable)])


def switches(p):
    """Switch, Merge and frames by hand, and dead values fetched or taken."""
    dtype = p.dtype("float32 int32 string bool")
    live = [p.give(p.values((), -3, 3, dtype)) for _ in range(2)]
    live += [raw.Identity(input=live[0])]
    truths = [p.give(np.bool_(p.flag())) for _ in range(2)]
    values, indices = list(live), []

    def switch():
        values.extend(raw.Switch(data=p.pick(*values), pred=p.pick(*truths)))

    def merge():
        """Of the two sides of a Switch, so that no more than one is alive."""
        sides = list(raw.Switch(data=p.pick(*values), pred=p.pick(*truths)))
        sides = [raw.Identity(input=s) if p.flag() else s for s in sides]
        if p.chance(0.3):
            sides[p.int(0, 1)] = raw.Switch(data=sides[p.int(0, 1)], pred=p.pick(*truths))[p.int(0, 1)]
            sides = sides[:1]
        p.rng.shuffle(sides)
        merged, index = raw.Merge(inputs=sides)
        values.extend([merged, raw.Identity(input=merged)])
        indices.append(index)

    def identity():
        with tf.control_dependencies([p.pick(*values)] if p.flag() else []):
            values.append(raw.Identity(input=p.pick(*values)))

    def both():
        x, y = p.pick(*values), p.pick(*values)
        if dtype in (tf.float32, tf.int32):
            values.append(raw.AddV2(x=x, y=y))
        else:
            values.append(raw.Reshape(tensor=raw.Pack(values=[x, y]), shape=[2])[p.int(0, 1)])

    def frame():
        """In and out of a frame that runs once."""
        inside = raw.Enter(data=p.pick(*values), frame_name=f"f{len(values)}", is_constant=p.flag())
        values.append(raw.Exit(data=raw.Identity(input=inside)))
    for _ in range(p.int(2, 9)):
        p.attempt_keeping(p.pick(switch, switch, merge, merge, identity, both, frame))
    feeds = dict(p.feeds)
    for value in values[3:] + indices:
        if p.chance(0.6):
            p.feeds = dict(feeds)
            p.run([value], kind="round")
    p.feeds = {}


def functions(p):
    """Functional operations by hand: If, Case, While, For, PartitionedCall, with state inside."""
    dtype = p.dtype("float32 int32 float64 int64")
    variable = raw.VarHandleOp(dtype=dtype, shape=[], shared_name="v")
    p.run(target=[raw.AssignVariableOp(resource=variable, value=p.give(p.values((), -3, 3, dtype)))])
    two = p.chance(0.5)
    types = [dtype, dtype] if two else [dtype]

    def make(stateful):
        amount = p.int(-3, 3)

        def body(handle, *xs):
            out = []
            deps = []
            if stateful and p.chance(0.7):
                deps = [raw.AssignAddVariableOp(resource=handle, value=tf.cast(tf.constant(amount), dtype))]
            with tf.control_dependencies(deps):
                for x in xs:
                    y = p.pick(lambda: x + tf.cast(amount, dtype), lambda: x * xs[0], lambda: xs[-1] - x,
                               lambda: tf.maximum(x, 1), lambda: tf.identity(x))()
                    if stateful and p.chance(0.4):
                        y = y + raw.ReadVariableOp(resource=handle, dtype=dtype)
                    out.append(y)
            return out
        return body

    def concrete(body, *more):
        spec = [tf.TensorSpec([], t) for t in types]
        handle = tf.TensorSpec([], tf.resource)
        return tf.function(body, autograph=False).get_concrete_function(*more, handle, *spec)

    def arguments():
        return [variable] + [p.give(p.values((), -3, 3, dtype)) for _ in types]
    lower = p.flag()

    def mark(outputs):
        for op in {t.op for t in outputs}:
            if lower:
                op._set_attr("_lower_using_switch_merge", tf.compat.v1.AttrValue(b=True))
        p.run(outputs, kind="round")
        p.run([raw.ReadVariableOp(resource=variable, dtype=dtype)], kind="round")

    def plain(f):
        g = f.graph
        f.add_to_graph(tf.compat.v1.get_default_graph())
        return f

    def truth():
        kind = 0 if lower else p.int(0, 4)  # lowered, TensorFlow takes nothing but bool
        return p.give([np.bool_(p.flag()), np.float32(p.int(0, 1)), np.int32(p.int(0, 1)),
                       np.array(p.pick(b"", b"x"), object), np.zeros(p.int(0, 2), np.int32)][kind])

    def branch():
        stateful = p.flag()
        then, other = plain(concrete(make(stateful))), plain(concrete(make(stateful)))
        op = raw.If if stateful else raw.StatelessIf
        mark(op(cond=truth(), input=arguments(), Tout=types, then_branch=then, else_branch=other))

    def case():
        stateful = p.flag()
        branches = [plain(concrete(make(stateful))) for _ in range(p.int(1, 3))]
        op = raw.Case if stateful else raw.StatelessCase
        mark(op(branch_index=p.give(np.int32(p.int(-1, 3))), input=arguments(), Tout=types, branches=branches))

    def call():
        stateful = p.flag()
        f = plain(concrete(make(stateful)))
        op = raw.StatefulPartitionedCall if stateful else raw.PartitionedCall
        mark(op(args=arguments(), Tout=types, f=f))

    def loop():
        stateful = p.flag()
        inner = make(stateful)
        limit = p.int(0, 5)

        def body(i, handle, *xs):
            return [i + 1, handle, *inner(handle, *xs)]

        def cond(i, handle, *xs):
            return i < limit
        count = tf.TensorSpec([], tf.int32)
        b, c = plain(concrete(body, count)), plain(concrete(cond, count))
        op = raw.While if stateful else raw.StatelessWhile
        mark([t for t in op(input=[p.give(np.int32(p.int(0, 2))), *arguments()], cond=c, body=b)
              if t.dtype != tf.resource])

    def counted():
        inner = make(False)

        def body(i, *xs):
            return [x + tf.cast(i, dtype) for x in xs]
        spec = [tf.TensorSpec([], t) for t in types]
        f = plain(tf.function(body, autograph=False).get_concrete_function(tf.TensorSpec([], tf.int32), *spec))
        p.run(raw.For(start=p.give(np.int32(p.int(-1, 2))), limit=p.give(np.int32(p.int(0, 5))),
                      delta=p.give(np.int32(p.pick(1, 1, 2, -1, 0))), input=arguments()[1:], body=f), kind="round")
    p.actions([branch, branch, case, call, call, loop, loop, counted], 1, 4)
