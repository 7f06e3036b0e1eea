"""arrays.py - stacks, TensorArrays and tensor lists: chains of their operations in one run."""

import numpy as np
import tensorflow as tf

from programs.program import raw, v1

TYPES = "float32 float32 float64 int32 int64 string bool half bfloat16 complex64 uint8"


def stacks(p):
    """What is pushed in one run comes back in it, last first."""
    dtype = p.dtype(TYPES)
    handle = raw.StackV2(max_size=p.give(np.int32(p.pick(-1, 0, 2, 9))), elem_type=dtype,
                         stack_name=p.pick("", "st"))
    last, out, depth = [], [], 0
    for _ in range(p.int(1, 8)):
        with tf.control_dependencies(last):
            if p.chance(0.6) or (depth == 0 and p.chance(0.9)):
                value = p.give(p.values(p.shape(0, 2, 3), dtype=dtype))
                last = [raw.StackPushV2(handle=handle, elem=value, swap_memory=p.flag())]
                depth += 1
            elif p.chance(0.06):
                last = [raw.StackCloseV2(handle=handle)]
            else:
                last = [raw.StackPopV2(handle=handle, elem_type=dtype if p.chance(0.95) else tf.int8)]
                depth -= 1
            out += last
    p.run(out, target=[x for x in out if isinstance(x, tf.Operation)])


def tensor_arrays(p):
    dtype = p.dtype(TYPES)
    shape = p.shape(0, 2, 3, 1)
    size = p.int(0, 5)
    declared = tf.TensorShape(p.pick(None, list(shape), [None] * len(shape)))
    handle, flow = raw.TensorArrayV3(
        size=p.give(np.int32(size)), dtype=dtype, element_shape=declared, dynamic_size=p.flag(),
        clear_after_read=p.chance(0.3), identical_element_shapes=p.flag())
    out, written, smooth = [], [], []

    def index():
        return p.give(np.int32(p.int(0, max(size - 1, 0)) if p.chance(0.95) else p.pick(-1, size)))

    def value(*lead):
        return p.give(p.values(tuple(lead) + p.bent(shape), -9, 9, dtype))

    def write():
        nonlocal flow
        free = [i for i in range(size) if i not in written]
        at = p.pick(*free) if free and p.chance(0.9) else p.int(0, size)
        written.append(at)
        x = value()
        smooth.append(x)
        flow = raw.TensorArrayWriteV3(handle=handle, index=p.give(np.int32(at)), value=x, flow_in=flow)

    def read():
        if written or p.chance(0.2):
            at = np.int32(p.pick(*written)) if written and p.chance(0.9) else np.int32(p.int(0, size))
            out.append(raw.TensorArrayReadV3(handle=handle, index=p.give(at), flow_in=flow, dtype=dtype))

    def gather():
        some = np.array([p.pick(*written) for _ in range(p.int(0, 3))] if written else [], np.int32)
        out.append(raw.TensorArrayGatherV3(handle=handle, indices=p.give(some), flow_in=flow, dtype=dtype,
                                           element_shape=p.pick(declared, tf.TensorShape(None))))

    def scatter():
        nonlocal flow
        free = [i for i in range(size) if i not in written]
        some = p.rng.permutation(free)[:p.int(0, 3)].astype(np.int32)
        written.extend(int(i) for i in some)
        flow = raw.TensorArrayScatterV3(handle=handle, indices=p.give(some), value=value(len(some)),
                                        flow_in=flow)

    def concat():
        more = tf.TensorShape(None if p.flag() else list(shape[1:]))
        out.append(raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=dtype,
                                           element_shape_except0=more))

    def split():
        nonlocal flow
        lengths = np.array([p.int(0, 2) for _ in range(size)], np.int64)
        whole = int(lengths.sum()) + (p.chance(0.05))
        flow = raw.TensorArraySplitV3(
            handle=handle, value=p.give(p.values((whole,) + tuple(shape[1:]), -9, 9, dtype)),
            lengths=p.give(lengths), flow_in=flow)
        written.extend(range(size))

    def length():
        out.append(raw.TensorArraySizeV3(handle=handle, flow_in=flow))

    def gradient():
        """An array of gradients, of the same size."""
        other, more = raw.TensorArrayGradV3(handle=handle, flow_in=flow, source="g")
        at = p.give(np.int32(p.int(0, max(size - 1, 0))))
        for _ in range(p.int(1, 3)):
            more = raw.TensorArrayWriteV3(handle=other, index=at, value=value(), flow_in=more)
        out.append(raw.TensorArrayReadV3(handle=other, index=at, flow_in=more, dtype=dtype))

    def close():
        if p.chance(0.05):
            out.append(raw.TensorArrayCloseV3(handle=handle))

    calls = [write, write, write, read, gather, scatter, concat, split, length, close]
    if dtype.is_floating:
        calls.append(gradient)
    for _ in range(p.int(2, 8)):
        done = [flow, *tf.nest.flatten(out)]
        with tf.control_dependencies(done):  # in this order, also where nothing flows
            p.attempt_keeping(p.pick(*calls))
    p.run(out + [flow], target=[x for x in out if isinstance(x, tf.Operation)], kind="round")


def array_gradients(p):
    """tf.TensorArray as programs use it, and its gradient."""
    shape, size = p.shape(0, 2, 3, 1), p.int(1, 5)
    dtype = p.dtype("float32 float64")
    xs = [tf.constant(p.values(shape, -2, 2, dtype)) for _ in range(size)]
    array = tf.TensorArray(dtype, size, clear_after_read=False, infer_shape=p.flag())
    how = p.int(0, 2)
    if how == 0:
        for i in p.rng.permutation(size):
            array = array.write(int(i), xs[int(i)])
    elif how == 1:
        array = array.scatter(list(range(size)), tf.stack(xs))
    else:
        array = array.unstack(tf.stack(xs))
    ys = [p.pick(array.stack, lambda: array.read(p.int(0, size - 1)),
                 lambda: array.gather([p.int(0, size - 1) for _ in range(3)]),
                 lambda: array.concat() if shape else array.stack())() * 2.0 for _ in range(p.int(1, 3))]
    p.run(ys, kind="few")
    p.run([tf.gradients(ys, xs)], kind="few")
    p.attempt(lambda: p.gradient(ys, xs))


class Lists:
    """A chain of lists, each made of an earlier one, and what was taken out of them."""

    def __init__(self, p):
        self.p, self.out = p, []
        self.dtype = p.dtype(TYPES)
        self.shape = p.shape(0, 2, 3, 1)
        self.lists = []
        self.lengths = []

    def declared(self):
        p = self.p
        if p.chance(0.2):
            return p.give(np.int32(-1), 1.0)
        return p.give(np.array([-1 if p.chance(0.3) else d for d in p.bent(self.shape)], np.int32), 1.0)

    def value(self, *lead):
        p = self.p
        return p.give(p.values(tuple(lead) + p.bent(self.shape), -9, 9, self.dtype))

    def add(self, made, length):
        self.lists.append(made)
        self.lengths.append(length)

    def one(self):
        at = self.p.int(0, len(self.lists) - 1)
        return self.lists[at], self.lengths[at]

    def make(self):
        p, how = self.p, self.p.int(0, 4)
        if how == 0:
            self.add(raw.EmptyTensorList(element_shape=self.declared(), max_num_elements=p.give(
                np.int32(p.pick(-1, -1, 2, 9))), element_dtype=self.dtype), 0)
        elif how == 1:
            n = p.int(0, 4)
            self.add(raw.TensorListReserve(element_shape=self.declared(), num_elements=p.give(np.int32(n)),
                                           element_dtype=self.dtype), n)
        elif how == 2:
            n = p.int(0, 4)
            self.add(raw.TensorListFromTensor(tensor=self.value(n), element_shape=self.declared()), n)
        elif how == 3:
            n = p.int(1, 4)
            self.add(raw.TensorListScatterV2(
                tensor=self.value(n), indices=p.give(p.rng.permutation(n + 1)[:n].astype(np.int32)),
                element_shape=self.declared(), num_elements=p.give(np.int32(p.pick(-1, n + 1)))), n)
        elif self.shape:
            lengths = np.array([p.int(0, 3) for _ in range(p.int(0, 3))], np.int64)
            shape = (int(lengths.sum()),) + tuple(self.shape[1:])
            # A number of rows that is declared is not compared with those that the items get, and
            # who reads them reads so many.
            rows = np.array([-1, *self.shape[1:]], np.int32)
            self.add(raw.TensorListSplit(tensor=p.give(p.values(shape, -9, 9, self.dtype)),
                                         element_shape=p.give(rows), lengths=p.give(lengths)),
                     len(lengths))

    def change(self):
        p, (made, length) = self.p, self.one()
        at = p.give(np.int32(p.int(0, max(length - 1, 0)) if p.chance(0.95) else p.pick(-1, length)))
        how = p.int(0, 5)
        if how <= 1:
            self.add(raw.TensorListPushBack(input_handle=made, tensor=self.value()), length + 1)
        elif how == 2:
            self.add(raw.TensorListSetItem(input_handle=made, index=at, item=self.value()), length)
        elif how == 3 and (length or p.chance(0.1)):
            rest, item = raw.TensorListPopBack(input_handle=made, element_shape=self.declared(),
                                               element_dtype=self.dtype)
            self.add(rest, length - 1)
            self.out.append(item)
        elif how == 4:
            n = p.int(0, 5)
            self.add(raw.TensorListResize(input_handle=made, size=p.give(np.int32(n))), n)
        elif how == 5:
            other, more = self.one()
            self.add(raw.TensorListConcatLists(input_a=made, input_b=other, element_dtype=self.dtype),
                     length + more)

    def take(self):
        p, (made, length) = self.p, self.one()
        how = p.int(0, 5)
        more = {"element_dtype": self.dtype if p.chance(0.98) else tf.int16}
        if how == 0:
            self.out.append(raw.TensorListLength(input_handle=made))
        elif how == 1:
            self.out.append(raw.TensorListElementShape(input_handle=made, shape_type=tf.as_dtype(p.index_type())))
        elif how == 2 and length:
            self.out.append(raw.TensorListGetItem(
                input_handle=made, index=p.give(np.int32(p.int(0, length - 1) if p.chance(0.95) else length)),
                element_shape=self.declared(), **more))
        elif how == 3:
            self.out.append(raw.TensorListStack(input_handle=made, element_shape=self.declared(),
                                                num_elements=p.pick(-1, -1, length), **more))
        elif how == 4:
            some = p.ints((p.int(0, 3) if length else 0,), 0, max(length - 1, 0))
            self.out.append(raw.TensorListGather(input_handle=made, indices=p.give(some),
                                                 element_shape=self.declared(), **more))
        else:
            rest = np.array([-1, *self.shape[1:]], np.int32)
            self.out.append(raw.TensorListConcatV2(
                input_handle=made, element_shape=p.give(rest, 1.0), leading_dims=p.give(
                    np.array([self.shape[0] if self.shape else 1] * length, np.int64)), **more))


def tensor_lists(p):
    lists = Lists(p)
    p.attempt(lists.make)
    if not lists.lists:
        lists.add(raw.EmptyTensorList(element_shape=tf.constant(-1), max_num_elements=-1,
                                      element_dtype=lists.dtype), 0)
    for _ in range(p.int(2, 10)):
        p.attempt_keeping(p.pick(lists.make, lists.change, lists.change, lists.take))
    feeds = dict(p.feeds)
    for item in lists.out:  # one after the other: which of several errors comes first is chance
        for part in tf.nest.flatten(item):
            p.feeds = dict(feeds)
            p.run([part])
    p.feeds = {}
