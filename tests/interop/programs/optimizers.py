"""optimizers.py - every Apply kernel over several steps: dense and sparse, of both kinds of variables."""

import re

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from programs.program import raw
from programs.variables import Variable

NAMES = [name for name in dir(raw) if re.match("(Resource)?(Sparse)?Apply", name)]
# Those with kernels for complex numbers.
COMPLEX = tuple("ApplyAdam ApplyMomentum ApplyGradientDescent ApplyAdagrad ApplyAdagradV2 ApplyAdadelta "
                "ApplyRMSProp ApplyKerasMomentum".split())
# The range of each number, by its name.
RANGES = {"lr": (0.01, 0.5), "alpha": (0.01, 0.5), "rho": (0.5, 0.99), "momentum": (0.1, 0.95),
          "epsilon": (0.01, 0.1), "beta1_power": (0.3, 0.9), "beta2_power": (0.3, 0.9), "beta1": (0.5, 0.95),
          "beta2": (0.5, 0.95), "beta": (0.5, 0.95), "l1": (0, 0.3), "l2": (0, 0.3), "l2_shrinkage": (0, 0.3),
          "lr_power": (-0.8, -0.2), "logbase": (0.5, 2), "sign_decay": (0.5, 1)}
# Slots that are sums of squares; a step takes their root.
SQUARES = ("accum", "ms", "v", "vhat", "accum_update", "gradient_squared_accumulator")


def number(p, name, dtype):
    low, high = RANGES[name]
    value = p.rng.uniform(low, high)
    if name == "lr_power" and p.chance(0.6):
        value = -0.5
    if name in ("l1", "l2", "l2_shrinkage") and p.chance(0.3):
        value = 0
    if p.chance(0.02) and name not in ("alpha", "l1", "l2"):
        value = p.pick(0, -1, 1, 2)
    shape = (1,) if p.chance(0.02) else ()
    return p.give(np.full(shape, value).astype(dtype.as_numpy_dtype))


def step(p, definition, slots, dtype, shape):
    """One Apply; rows may be repeated, and now and then something is wrong."""
    arguments = dict(slots)
    indexed = any(a.name == "indices" for a in definition.input_arg)
    rows = p.int(0, 5)
    for argument in definition.input_arg:
        name = argument.name
        if name in arguments:
            continue
        if name in ("grad", "delta"):
            # Of rows TensorFlow compares no more dimensions than the variable has.
            like = (rows,) + tuple(shape[1:]) if indexed else p.bent(shape)
            arguments[name] = p.give(p.values(like, -2, 2, dtype))
        elif name == "indices":
            bad = p.chance(0.04)
            most = (shape[0] if shape else 1) - (0 if bad else 1)
            arguments[name] = p.give(p.ints((rows,), -1 if bad else 0, most, p.index_type()))
        elif name == "global_step":
            arguments[name] = p.give(np.int64(p.int(1, 9)))
        else:
            arguments[name] = number(p, name, dtype)
    for attr in definition.attr:
        if attr.type == "bool":
            arguments[attr.name] = p.flag()
    return getattr(raw, definition.name)(**arguments)


def program(p, names=None):
    definition = op_def_registry.get(p.pick(*(names or NAMES)))
    resource = definition.name.startswith("Resource")
    complex_too = " complex64 complex128" if p.chance(0.2) and definition.name.endswith(
        COMPLEX) else ""
    dtype = p.dtype("half bfloat16 float32 float32 float64" + complex_too)
    shape = p.shape(1, 2, 4) if "Sparse" in definition.name else p.shape(0, 3, 4)
    variables = {}
    for argument in definition.input_arg:
        if argument.is_ref or argument.type == tf.resource.as_datatype_enum:
            own = p.bent(shape) if p.chance(0.2) else shape
            variables[argument.name] = Variable(p, resource, dtype, own, shared_name=argument.name)
    for name, variable in variables.items():
        low = 0.1 if name in SQUARES else -2
        if p.chance(0.97):
            p.attempt(lambda: variable.start(variable.values(None, low, 2)))
    if "mg" in variables:  # its square stays below ms
        p.attempt(lambda: variables["mg"].start(variables["mg"].values(None, -0.3, 0.3)))
    slots = {name: variable.ref for name, variable in variables.items()}
    # Steps may cancel each other: roundings are those of the largest value that there was.
    largest = [0.0] * len(variables)

    def one():
        op = step(p, definition, slots, dtype, shape)
        p.run(target=[op])
        values = p.run([v.read() for v in variables.values()], kind="sum", terms=largest)
        for i, value in enumerate(values or ()):
            finite = np.abs(value[np.isfinite(value)].astype(np.complex128))
            largest[i] = max(largest[i], float(finite.max(initial=0)))
    p.actions([one], 2, 5)
