"""kernel_types.py FILE - which types each operation has a CPU kernel for, ours against TensorFlow's.

FILE is what kernel-types prints.  Lists by op the choices of types that TensorFlow computes and we
do not ("lacks"), and those that we compute and TensorFlow does not ("more"); exits 1 if anything
is lacking.
"""

import collections
import itertools
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry


def name_of(number):
    return tf.as_dtype(number).name


def their_kernels():
    found = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.label:
            found[kernel.op].append({c.name: set(c.allowed_values.list.type)
                                     for c in kernel.constraint})
    return found


def allowed_types(op):
    """By type attribute, the types of the op's definition."""
    return {a.name: set(a.allowed_values.list.type) for a in op.attr if a.type == "type"}


def is_valid(op, choice):
    allowed = allowed_types(op)
    return all(not allowed.get(name) or number in allowed[name] for name, number in choice.items())


def has_kernel(candidates, choice):
    return any(all(name not in choice or choice[name] in types for name, types in kernel.items())
               for kernel in candidates)


def read_ours(path):
    ours = collections.defaultdict(dict)
    with open(path) as lines:
        for line in lines:
            op, types, answer = line.rstrip("\n").split("\t")
            choice = tuple(sorted((name, int(number)) for name, number in
                                  (pair.split("=") for pair in types.split())))
            ours[op][choice] = answer == "yes"
    return ours


def text(choices):
    """Choices of types in one line: all values of the attribute that varies most at once."""
    grouped = collections.defaultdict(list)
    for choice in filter(None, choices):
        rest, last = choice[1:], choice[0]
        grouped[(last[0], rest)].append(name_of(last[1]))
    return "; ".join("%s in {%s}%s" % (name, " ".join(values), "".join(
        " %s=%s" % (n, name_of(t)) for n, t in rest)) for (name, rest), values in grouped.items())


# What TensorFlow takes, but never computes.
NEVER_COMPUTED = {"Conj": {tf.variant.as_datatype_enum}}


def unknown_to_us(op, known):
    """Types that TensorFlow's definition allows and ours refuses."""
    seen = collections.defaultdict(set)
    for choice in known:
        for name, number in choice:
            seen[name].add(number)
    return {name: types - seen[name] for name, types in allowed_types(op).items()
            if types - seen[name]}


def main(path):
    theirs, lacks = their_kernels(), 0
    for op_name, choices in read_ours(path).items():
        op = op_def_registry.get(op_name)
        if op is None or not theirs[op_name] or op_name.startswith("_"):
            continue  # names with "_" are of rewritten graphs, which no client writes
        for name, types in unknown_to_us(op, choices).items():
            computed = [t for t in sorted(types) if t < 100 and any(
                name not in k or t in k[name] for k in theirs[op_name])]
            if computed:
                lacks += 1
                print("lacks", op_name, "(definition) %s in {%s}" %
                      (name, " ".join(map(name_of, computed))))
        valid = {c: ours for c, ours in choices.items() if is_valid(op, dict(c))}
        less = [c for c, ours in valid.items() if not ours and has_kernel(theirs[op_name], dict(c))
                and not NEVER_COMPUTED.get(op_name, set()) & set(dict(c).values())]
        more = [c for c, ours in valid.items() if ours and not has_kernel(theirs[op_name], dict(c))]
        if less:
            lacks += 1
            print("lacks", op_name, text(less))
        if more:
            print("more ", op_name, text(more))
    print("%d operations lack types" % lacks)
    return lacks > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
