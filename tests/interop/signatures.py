"""signatures.py TF_CASES: the signature of each of our ops against TensorFlow's registry.

Prints a line for each difference and exits 1 if there are any.  What we know to be different
is in KNOWN, with the reason.
"""

import subprocess
import sys

from tensorflow.python.framework import op_def_registry

KINDS = {"string": 1, "int": 2, "float": 3, "bool": 4, "type": 5, "shape": 6, "tensor": 7,
         "func": 8}
EVERY_TYPE = 0x3fffffe
# Gradients of volumes are checked against differences in double, so there are kernels for it.
KNOWN = {("MaxPool3D", "T"), ("MaxPool3DGrad", "T"), ("MaxPool3DGrad", "TInput")}


def ours(program):
    """Signatures by op: arguments as tuples, attributes as dicts of tuples."""
    ops = {}
    text = subprocess.run([program, "--signatures"], check=True, capture_output=True, text=True)
    for line in text.stdout.splitlines():
        what, name, *fields = line.split("\t")
        if what == "op":
            op = ops[name] = {"input": [], "output": [], "attr": {}}
        elif what == "attr":
            op["attr"][name] = tuple(fields)
        else:
            op[what].append((name, *fields))
    return ops


def arguments(args):
    return [(a.name, str(0 if a.type_attr or a.type_list_attr else a.type), str(int(a.is_ref)),
             a.type_attr or "-", a.number_attr or "-", a.type_list_attr or "-") for a in args]


def default_text(attr, is_list):
    if not attr.HasField("default_value"):
        return ""
    value = attr.default_value
    if is_list:
        lists = value.list
        return str(max(len(getattr(lists, field)) for field in
                       ("s", "i", "f", "b", "type", "shape", "tensor", "func")))
    field = value.WhichOneof("value")
    if field == "f":
        return "%.9g" % value.f
    if field == "s":
        return "".join(chr(c) if c >= 32 and c != 92 else "\\x%02x" % c for c in value.s)
    return str(int(getattr(value, field))) if field in ("i", "b", "type") else ""


def attribute(attr):
    is_list = attr.type.startswith("list(")
    kind = KINDS[attr.type[5:-1] if is_list else attr.type]
    types = sum(1 << t for t in set(attr.allowed_values.list.type)) & EVERY_TYPE
    if kind == 5 and not types:
        types = EVERY_TYPE
    minimum = str(attr.minimum) if attr.has_minimum and (attr.minimum or not is_list) else ""
    strings = ",".join("'%s'" % s.decode() for s in attr.allowed_values.list.s)
    return (str(kind), str(int(is_list)), "%x" % types, minimum, strings,
            str(int(attr.HasField("default_value"))), default_text(attr, is_list))


def ordered(fields):
    """A list of at least nothing is any list; strings in any order."""
    kind, is_list, types, minimum, strings, *rest = fields
    types = "%x" % (int(types, 16) & EVERY_TYPE)
    minimum = "" if is_list == "1" and minimum == "0" else minimum
    return (kind, is_list, types, minimum, sorted(strings.split(",")), *rest)


def differences(name, op, definition):
    for what, args in (("input", definition.input_arg), ("output", definition.output_arg)):
        if op[what] != arguments(args):
            yield f"{name}: {what}s {op[what]}, TensorFlow has {arguments(args)}"
    theirs = {a.name: attribute(a) for a in definition.attr}
    for attr in sorted(theirs.keys() | op["attr"].keys()):
        own, other = op["attr"].get(attr), theirs.get(attr)
        if own is None or other is None:
            yield f"{name}: attribute {attr} is {'missing' if own is None else 'too many'}"
        elif ordered(own) != ordered(other) and (name, attr) not in KNOWN:
            yield f"{name}: attribute {attr} is {own}, in TensorFlow {other}"


def main():
    count = wrong = 0
    for name, op in ours(sys.argv[1]).items():
        definition = op_def_registry.get(name)
        if definition is None or name.startswith("_"):  # ours, and what passes make
            continue
        count += 1
        for line in differences(name, op, definition):
            print("FAIL", line)
            wrong += 1
    print(f"{count} signatures, {wrong} differences")
    sys.exit(wrong > 0)


main()
