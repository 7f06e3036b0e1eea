"""queues.py - queues of all kinds, barriers, mutexes: filled, emptied, closed, asked, held."""

import numpy as np
import tensorflow as tf

from programs.program import raw

KINDS = "FIFOQueue PaddingFIFOQueue RandomShuffleQueue PriorityQueue"
# Areas by key ("Map", "OrderedMap") are not ours yet.
KEYED = ("",)
TYPES = "float32 float64 int32 int64 string bool uint8 complex64 half"


class Queue:
    """`size`, `closed` as TensorFlow last told, so that no run waits for ever."""

    def __init__(self, p, **names):
        self.p, self.size, self.closed = p, 0, False
        self.kind = p.pick(*KINDS.split())
        self.version = p.pick("", "V2", "V2")
        self.types = [p.dtype(TYPES) for _ in range(p.int(1, 3))]
        self.shapes = [p.shape(0, 2, 3) for _ in self.types]
        self.capacity = p.int(1, 9)
        self.known = self.kind == "PriorityQueue" or p.chance(0.8)
        shapes = [list(s) for s in self.shapes] if self.known else []
        more = {}
        if self.kind == "PaddingFIFOQueue":
            shapes = [[None if p.flag() else d for d in s] for s in self.shapes]
            self.declared = shapes
        if self.kind == "RandomShuffleQueue":
            self.least = p.int(0, min(3, self.capacity))
            more = {"min_after_dequeue": self.least, "seed": p.int(1, 99), "seed2": p.int(0, 99)}
        else:
            self.least = 0
        self.handle = getattr(raw, self.kind + self.version)(
            component_types=self.types, shapes=[tf.TensorShape(s) for s in shapes],
            capacity=self.capacity, **more, **names)
        if self.kind == "PriorityQueue":
            self.types, self.shapes = [tf.int64] + self.types, [()] + self.shapes

    def op(self, name, **arguments):
        return getattr(raw, name + self.version)(handle=self.handle, **arguments)

    def element(self, count=None):
        """Values of an element, or of `count` of them; now and then of a wrong shape or type."""
        p, out = self.p, []
        for i, (dtype, shape) in enumerate(zip(self.types, self.shapes)):
            if self.kind == "PaddingFIFOQueue":
                shape = [p.int(0, 3) if d is None else d for d in self.declared[i]]
            shape = p.bent(shape) if p.chance(0.15) else tuple(shape)
            if p.chance(0.01):
                dtype = p.dtype(TYPES)
            values = p.values(shape if count is None else (count,) + shape, -9, 9, dtype)
            out.append(p.give(values))
        return out

    def ask(self):
        p = self.p
        answer = p.run([self.op("QueueSize")])
        if answer:
            self.size = int(answer[0])

    def enqueue(self):
        if self.size < self.capacity or self.closed:
            self.p.run(target=[self.op("QueueEnqueue", components=self.element())])

    def enqueue_many(self):
        p = self.p
        count = p.int(0, 4)
        if self.size + count <= self.capacity or self.closed:
            p.run(target=[self.op("QueueEnqueueMany", components=self.element(count))])

    def ready(self):
        return self.size - (0 if self.closed else self.least)

    def dequeue(self):
        if self.ready() > 0 or self.closed:
            self.p.run([self.op("QueueDequeue", component_types=self.types)])

    def dequeue_many(self):
        p = self.p
        count = p.pick(-1, 0, 1, 1, 2, 2, 3, 4)
        if count <= self.ready() or self.closed:
            name = p.pick("QueueDequeueMany", "QueueDequeueUpTo")
            p.run([self.op(name, n=p.give(np.int32(count)), component_types=self.types)])

    def close(self):
        if self.p.chance(0.4):
            self.p.run(target=[self.op("QueueClose", cancel_pending_enqueues=self.p.flag())])
            self.closed = True

    def is_closed(self):
        name = "QueueIsClosed" if not self.version else "QueueIsClosedV2"
        self.p.run([getattr(raw, name)(handle=self.handle)])


def program(p):
    names = {"shared_name": p.pick("one", "two"), "container": p.pick("", "box")} if p.chance(0.3) else {}
    queues = [Queue(p, **names)]
    if p.chance(0.15):
        queues.append(Queue(p, **names))  # of the same name: it must agree
    q = queues[0]

    def one(action):
        q.attempt_action = p.attempt(action)
        q.ask()
    if len(queues) > 1:
        p.attempt(queues[1].ask)
    p.actions([lambda a=a: one(a) for a in (
        q.enqueue, q.enqueue, q.enqueue, q.enqueue_many, q.enqueue_many, q.dequeue, q.dequeue_many,
        q.dequeue_many, q.close, q.is_closed)], 5, 14)


class Barrier:
    def __init__(self, p):
        self.p, self.closed = p, False
        self.types = [p.dtype("float32 int32 int64 string bool") for _ in range(p.int(1, 3))]
        self.shapes = [p.shape(0, 2, 3, 1) for _ in self.types]
        self.handle = raw.Barrier(component_types=self.types, shapes=[list(s) for s in self.shapes])
        self.ready = 0

    def insert(self):
        p, count = self.p, self.p.int(1, 3)
        keys = np.array([p.pick(b"a", b"b", b"c", b"d", b"e") for _ in range(count)], object)
        if p.chance(0.9):
            keys = np.unique(keys)
        at = p.int(0, len(self.types) - 1)
        values = p.values((len(keys),) + self.shapes[at], -9, 9, self.types[at])
        p.run(target=[raw.BarrierInsertMany(handle=self.handle, keys=p.give(keys), values=p.give(values),
                                            component_index=at)])

    def take(self):
        p = self.p
        count = p.int(0, 3)
        small = p.flag()
        if count <= self.ready or (self.closed and p.chance(0.5)):
            p.run([raw.BarrierTakeMany(handle=self.handle, num_elements=p.give(np.int32(count)),
                                       component_types=self.types, allow_small_batch=small,
                                       wait_for_incomplete=False, timeout_ms=-1)])

    def ask(self):
        answer = self.p.run([raw.BarrierReadySize(handle=self.handle),
                             raw.BarrierIncompleteSize(handle=self.handle)])
        if answer:
            self.ready = int(answer[0])

    def close(self):
        if self.p.chance(0.3):
            self.p.run(target=[raw.BarrierClose(handle=self.handle,
                                                cancel_pending_enqueues=self.p.flag())])
            self.closed = True


def barriers(p):
    b = Barrier(p)

    def one(action):
        p.attempt(action)
        b.ask()
    p.actions([lambda a=a: one(a) for a in (b.insert, b.insert, b.insert, b.take, b.take, b.close)], 5, 14)


def stages(p):
    """Staging areas, plain and by key."""
    dtypes = [p.dtype("float32 int64 string int32") for _ in range(p.int(1, 3))]
    shapes = [p.shape(0, 2, 3) for _ in dtypes]
    more = {"dtypes": dtypes, "capacity": p.pick(0, 0, 9), "shared_name": p.pick("", "area")}
    more["shared_name"] = "area"
    keyed = p.pick(*KEYED)
    held = []

    def values():
        return [p.give(p.values(s, -9, 9, d)) for d, s in zip(dtypes, shapes)]

    def op(name, **arguments):
        if name == "Stage":  # its values have their types
            arguments["dtypes"] = None
        told = {**more, **arguments}
        return getattr(raw, keyed + name)(**{k: v for k, v in told.items() if v is not None})

    def stage():
        if len(held) >= 6:
            return
        if keyed:
            key = p.int(0, 9)
            if key in held:
                return
            some = sorted(p.rng.permutation(len(dtypes))[:len(dtypes)].tolist())
            p.run(target=[op("Stage", key=p.give(np.int64(key)), indices=p.give(np.array(some, np.int32)),
                             values=values())])
            held.append(key)
        else:
            p.run(target=[op("Stage", values=values())])
            held.append(0)

    def unstage():
        if not held:
            return
        if not keyed:
            p.run([op("Unstage")])
            held.pop()
        elif keyed == "OrderedMap" and p.flag():
            p.run([op("UnstageNoKey", indices=p.give(np.arange(len(dtypes), dtype=np.int32)))])
            held.remove(min(held))
        else:
            key = p.pick(*held)
            p.run([op("Unstage", key=p.give(np.int64(key)),
                      indices=p.give(np.arange(len(dtypes), dtype=np.int32)))])
            held.remove(key)

    def peek():
        if not held:
            return
        if keyed:
            p.run([op("Peek", key=p.give(np.int64(p.pick(*held))),
                      indices=p.give(np.arange(len(dtypes), dtype=np.int32)))])
        else:
            p.run([raw.StagePeek(index=p.give(np.int32(p.int(0, len(held) - 1))), **more)])

    def size():
        p.run([op("Size") if keyed else raw.StageSize(**more)])
        if keyed:
            p.run([op("IncompleteSize")])

    def clear():
        if p.chance(0.2):
            p.run(target=[op("Clear") if keyed else raw.StageClear(**more)])
            held.clear()
    p.actions([stage, stage, stage, unstage, unstage, peek, size, clear], 5, 14)


def mutexes(p):
    """Critical sections: what they do to a variable never overlaps."""
    names = {"container": p.pick("", "box"), "shared_name": p.pick("", "door")}
    variable = raw.VarHandleOp(dtype=tf.int64, shape=[])
    handles = [raw.MutexV2(**names) for _ in range(p.int(1, 2))] if names["shared_name"] else [raw.MutexV2(**names)]

    def read():
        return raw.ReadVariableOp(resource=variable, dtype=tf.int64)

    def section(after=None, wrong=False):
        """With the lock held adds to what it reads; `wrong`: fails before."""
        with tf.control_dependencies(after):
            lock = raw.MutexLock(mutex=p.pick(*handles))
        with tf.control_dependencies([lock]):
            value = read()
            change = raw.AddV2(x=value, y=p.give(np.int64(p.int(-9, 9))))
            if wrong:
                change = raw.FloorDiv(x=change, y=p.give(np.int64(0)))
        done = raw.AssignVariableOp(resource=variable, value=change)
        if p.chance(0.2):
            lock = raw.Identity(input=lock)
        with tf.control_dependencies([done]):
            return raw.ConsumeMutexLock(mutex_lock=lock)

    def several():
        p.run(target=[section() for _ in range(p.int(1, 4))])
        p.run([read()])

    def in_order():
        first = section()
        p.run(target=[section([first])])
        p.run([read()])

    def fail():
        p.run(target=[section(wrong=True)])
        p.run([read()])

    def misuse():
        lock = raw.MutexLock(mutex=p.pick(*handles, variable))
        what = p.pick(lambda: raw.OptionalNone(), lambda: raw.Pack(values=[lock, lock]), lambda: lock)()
        p.run(target=[raw.ConsumeMutexLock(mutex_lock=what)])
    p.run(target=[raw.AssignVariableOp(resource=variable, value=np.int64(0))])
    p.actions([several, several, in_order, fail, misuse], 3, 8)


def sparse_maps(p):
    """Sparse tensors that wait under numbers until many are taken as one."""
    dtype, rank = p.dtype("float32 int64 string int32 bool"), p.int(1, 3)
    where = {"container": p.pick("", "box"), "shared_name": "map"}
    held = []

    def parts(rows=None):
        dims = ([rows] if rows is not None else []) + [p.int(1, 4) for _ in range(rank)]
        places = np.sort(p.rng.permutation(int(np.prod(dims)))[:p.int(0, 4)])
        indices = np.stack(np.unravel_index(places, dims), -1).astype(np.int64).reshape(len(places), len(dims))
        return {"sparse_indices": p.give(indices), "sparse_values": p.give(p.values([len(places)], -9, 9, dtype)),
                "sparse_shape": p.give(np.array(dims, np.int64))}

    def add():
        got = p.run([raw.AddSparseToTensorsMap(**parts(), **where)])
        if got is not None:
            held.append(got[0])

    def add_many():
        got = p.run([raw.AddManySparseToTensorsMap(**parts(p.int(0, 3)), **where)])
        if got is not None:
            held.extend(got[0])

    def take():
        some = p.rng.permutation(len(held))[:p.int(1, 4)].tolist()
        numbers = [held[i] for i in some] + ([99] if p.chance(0.1) else [])
        if not numbers:
            return
        p.run(raw.TakeManySparseFromTensorsMap(sparse_handles=p.give(np.array(numbers, np.int64)), dtype=dtype, **where))
        held[:] = [h for i, h in enumerate(held) if i not in some]
    p.actions([add, add, add_many, take, take], 4, 10)
