"""ops_generate.py - random graphs of one operation each, with TensorFlow's answers.

    ops_generate.py OUT.tfrecord --seed 1 --count 500 [--only NAME[,NAME]]

Writes serialised Cases (case.proto) for build/tf-cases: what TensorFlow answers or with which
code it fails, and now and then its gradients.  The table of rows is in ops_table.py; another
family adds rows there.  Equal seeds give equal cases.
"""

import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402
from tensorflow.core.protobuf import rewriter_config_pb2  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ops_table  # noqa: E402

v1 = tf.compat.v1


def case_class():
    """The message of case.proto beside this file, without generated code."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            ["protoc", "-I", folder, "--descriptor_set_out", out.name, "case.proto"],
            check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("trainyard.cases.Case"))


def config():
    """As it stands in the graph: nothing rewritten or folded, one thread."""
    result = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    options = result.graph_options
    options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    options.rewrite_options.disable_meta_optimizer = True
    options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return result


# Relative error of one rounding, and the least normal number, by type.
ROUNDING = {"float16": (1e-3, 6.2e-5), "bfloat16": (8e-3, 1.2e-38),
            "float32": (1.2e-7, 1.2e-38), "float64": (2.3e-16, 2.3e-308),
            "complex64": (2.4e-7, 1.2e-38), "complex128": (4.6e-16, 2.3e-308)}
# How many roundings each kind of row may be off, and whether relative to the largest element.
KINDS = {"exact": (0, 0), "round": (1, 0), "few": (8, 1), "sum": (60, 8), "loose": (2000, 200)}


def tolerance(array, kind):
    """(rtol, atol) for an answer of a row of that kind."""
    one, least = ROUNDING.get(np.dtype(array.dtype).name, (0, 0))
    of_element, of_largest = KINDS[kind]
    if not one or not of_element:
        return 0.0, least if kind != "exact" else 0.0
    finite = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    finite = finite[np.isfinite(finite)]
    largest = float(finite.max()) if finite.size else 0.0
    return of_element * one, max(least, of_largest * one * largest)


def as_proto(array):
    return tf.make_tensor_proto(array).SerializeToString()


def add_expect(message, name, array, kind):
    message.name = name
    message.tensor = as_proto(array)
    message.relative, message.absolute = tolerance(np.asarray(array), kind)


class Attempt:
    """One graph: inputs as constants or placeholders, one operation."""

    def __init__(self, row, arguments, constants):
        self.feeds = {}
        self.inputs = {}
        self.graph = tf.Graph()
        with self.graph.as_default():
            arguments = {name: self.place(name, value, constants)
                         for name, value in arguments.items()}
            result = getattr(tf.raw_ops, row.op)(**arguments, name="y")
        if isinstance(result, tf.Operation):
            raise ValueError("an operation without outputs")
        self.node = (result if isinstance(result, tf.Tensor) else
                     [x for part in result for x in
                      (part if isinstance(part, (list, tuple)) else [part])][0]).op
        self.outputs = list(self.node.outputs)

    def place(self, name, value, constants):
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            return [self.place(f"{name}_{i}", part, constants)
                    for i, part in enumerate(value)]
        if not isinstance(value, np.ndarray):
            return value
        name = "in_" + name
        if name in constants:
            tensor = tf.constant(value, name=name)
        else:
            tensor = v1.placeholder(tf.as_dtype(value.dtype), name=name)
            self.feeds[tensor] = value
        self.inputs[name] = tensor
        return tensor


def flat_names(arguments):
    for name, value in arguments.items():
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            yield from (f"in_{name}_{i}" for i in range(len(value)))
        elif isinstance(value, np.ndarray):
            yield "in_" + name


def build(row, arguments, rng):
    """An attempt; all placeholders where what is known beforehand is refused."""
    names = list(flat_names(arguments))
    constants = {name for name in names if rng.random() < 0.4}
    try:
        return Attempt(row, arguments, constants)
    except (ValueError, TypeError, tf.errors.OpError):
        return Attempt(row, arguments, set(row.constants(names)))


def add_gradient(case, row, attempt, session, rng):
    smooth = (tf.float32, tf.float64, tf.float16, tf.bfloat16)
    ys = [y for y in attempt.outputs if y.dtype in smooth]
    xs = [x for x in attempt.inputs.values() if x.dtype in smooth]
    if not ys or not xs:
        return
    values = session.run(ys, attempt.feeds)
    weights = [rng.uniform(-1, 1, np.shape(v)).astype(np.asarray(v).dtype) for v in values]
    with attempt.graph.as_default():
        # A constant each, so that the case can feed the same as grad_y.
        grads = tf.gradients(ys, xs, [tf.constant(w) for w in weights])
        dense = [None if g is None else tf.convert_to_tensor(g) for g in grads]
    answers = iter(session.run([g for g in dense if g is not None], attempt.feeds))
    message = case.gradient.add()
    for y, weight in zip(ys, weights):
        message.y.append(y.name)
        part = message.grad_y.add()
        part.name = y.name
        part.tensor = as_proto(weight)
    for tensor, value in attempt.feeds.items():
        feed = message.feed.add()
        feed.name = tensor.name
        feed.tensor = as_proto(value)
    for x, g in zip(xs, dense):
        message.x.append(x.name)
        if g is None:
            message.expect.add().name = x.name
        else:
            add_expect(message.expect.add(), x.name, next(answers),
                       "loose" if row.kind == "loose" or weights[0].dtype.itemsize == 2
                       else "sum")


def make_case(Case, row, number, rng):
    source = ops_table.Source(row, rng)
    arguments = row.make(source)
    if rng.random() < 0.08:
        source.spoil(arguments)
    attempt = build(row, arguments, rng)
    case = Case(name=f"{row.op}/{source.type.name}/{number}")
    case.graph = attempt.graph.as_graph_def().SerializeToString()
    case.op.extend(sorted({node.type for node in attempt.graph.get_operations()}))
    run = case.run.add()
    for tensor, value in attempt.feeds.items():
        feed = run.feed.add()
        feed.name = tensor.name
        feed.tensor = as_proto(value)
    run.fetch.extend(y.name for y in attempt.outputs)
    with v1.Session(graph=attempt.graph, config=config()) as session:
        try:
            answers = session.run(attempt.outputs, attempt.feeds)
        except tf.errors.OpError as error:
            run.error_code = error.error_code
            run.error_text = error.message.splitlines()[0][:200]
            return case
        for y, answer in zip(attempt.outputs, answers):
            add_expect(run.expect.add(), y.name, np.asarray(answer), row.kind)
            run.expect[-1].shape_only = y.value_index in row.vague(arguments)
        if row.gradient and rng.random() < 0.5:
            try:
                add_gradient(case, row, attempt, session, rng)
            except (LookupError, ValueError, TypeError, tf.errors.OpError):
                del case.gradient[:]
    return case


def work(Case, rows, options, start, pipe):
    """Sends the cases from number `start` on: for each its size and bytes, or the error."""
    for number in range(start, options.count):
        row = rows[(number + options.seed) % len(rows)]
        rng = np.random.default_rng([options.seed, number])
        try:
            case, error = make_case(Case, row, number, rng).SerializeToString(), b""
        except Exception as trouble:  # the row asked for what cannot be built
            case, error = b"", f"{type(trouble).__name__}: {trouble}".encode()[:300]
        pipe.write(len(case).to_bytes(8, "little") + case)
        pipe.write(len(error).to_bytes(8, "little") + error)
        pipe.flush()


def read_part(pipe):
    size = pipe.read(8)
    if len(size) < 8:
        return None
    part = pipe.read(int.from_bytes(size, "little"))
    return part if len(part) == int.from_bytes(size, "little") else None


def cases(Case, rows, options):
    """(number, case, error) in order.  TensorFlow may crash: then a new child goes on behind."""
    number = 0
    while number < options.count:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                work(Case, rows, options, number, pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            while (case := read_part(pipe)) is not None:
                error = read_part(pipe)
                if error is None:
                    break
                yield number, case, error.decode(errors="replace")
                number += 1
        os.waitpid(child, 0)
        if number < options.count:
            yield number, b"", "TensorFlow crashed"
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="ops, separated by commas")
    options = parser.parse_args()
    rows = [row for row in ops_table.ROWS
            if not options.only or row.op in options.only.split(",")]
    refused = {}
    with tf.io.TFRecordWriter(options.out) as writer:
        for number, case, error in cases(case_class(), rows, options):
            row = rows[(number + options.seed) % len(rows)]
            if error:
                refused.setdefault(row.op, []).append(error)
            else:
                writer.write(case)
    for op, errors in sorted(refused.items()):
        print(f"not built: {op} ({len(errors)}): {errors[0][:160]}", file=sys.stderr)


if __name__ == "__main__":
    main()
