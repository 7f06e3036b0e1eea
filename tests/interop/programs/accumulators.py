"""accumulators.py - conditional accumulators, dense and sparse, by reference and by handle."""

import numpy as np
import tensorflow as tf

from programs.program import raw


def program(p):
    sparse = p.flag()
    prefix = "Sparse" if sparse else p.pick("", "Resource")
    dtype = p.dtype("float32 float32 float64 half bfloat16 int32 int64")
    shape = p.shape(1 if sparse else 0, 3, 4, 1)
    known = p.chance(0.8)
    handle = getattr(raw, prefix + "ConditionalAccumulator")(
        dtype=dtype, shape=tf.TensorShape(shape if known else None),
        reduction_type=p.pick("MEAN", "SUM"), shared_name=p.pick("", "sum"))
    kind = "Resource" if prefix == "Resource" else ""
    held = [0]

    def apply():
        step = p.give(np.int64(p.pick(0, 0, 1, 2, 5)))
        if not sparse:
            value = p.give(p.values(p.bent(shape), -4, 4, dtype))
            p.run(target=[getattr(raw, kind + "AccumulatorApplyGradient")(
                handle=handle, local_step=step, gradient=value)])
            return
        rows = p.int(0 if p.chance(0.1) else 1, 3)
        indices = np.sort(p.ints((rows,), 0, shape[0] - 1, "int64"))
        if p.chance(0.9):
            indices = np.unique(indices)
        values = p.values(p.bent((len(indices),) + tuple(shape[1:])), -4, 4, dtype)
        p.run(target=[raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=step, gradient_indices=p.give(indices), gradient_values=p.give(values),
            gradient_shape=p.give(np.array(p.bent(shape), np.int64)), has_known_shape=p.flag())])

    def count():
        answer = p.run([getattr(raw, kind + "AccumulatorNumAccumulated")(handle=handle)])
        held[0] = int(answer[0]) if answer else 0

    def take():
        need = p.pick(1, 1, 2, 3, 0)
        if need > held[0]:
            return
        need = p.give(np.int32(need))
        if sparse:
            p.run([raw.SparseAccumulatorTakeGradient(handle=handle, num_required=need, dtype=dtype)], kind="few")
        else:
            p.run([getattr(raw, kind + "AccumulatorTakeGradient")(handle=handle, num_required=need,
                                                                  dtype=dtype)], kind="few")

    def global_step():
        p.run(target=[getattr(raw, kind + "AccumulatorSetGlobalStep")(
            handle=handle, new_global_step=p.give(np.int64(p.int(0, 3))))])

    def one(action):
        p.attempt(action)
        count()
    p.actions([lambda a=a: one(a) for a in (apply, apply, apply, take, take, global_step)], 5, 12)
