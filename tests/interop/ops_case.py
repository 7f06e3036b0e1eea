"""ops_case.py - one case: a graph made from a row, and TensorFlow's answers."""

import os
import subprocess
import tempfile

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.protobuf import rewriter_config_pb2

from ops.frame import Source, Story

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
KINDS = {"exact": (0, 0), "round": (1, 0), "few": (8, 1), "sum": (60, 8), "loose": (2000, 200), "rough": (20000, 2000),
         "single": (60, 8)}


def tolerance(array, kind, terms=0.0):
    """(rtol, atol) for an answer of a row of that kind, a sum of terms of that size."""
    if kind == "jpeg":
        return 0.0, 6.0
    one, least = ROUNDING.get(np.dtype(array.dtype).name, (0, 0))
    if kind == "single" and one:
        one = max(one, ROUNDING["float32"][0])
    of_element, of_largest = KINDS[kind]
    if not one or not of_element:
        return 0.0, least if kind != "exact" else 0.0
    finite = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    finite = finite[np.isfinite(finite)]
    largest = max(float(finite.max()) if finite.size else 0.0, terms)
    return of_element * one, max(least, of_largest * one * largest)


def as_proto(array):
    return tf.make_tensor_proto(array).SerializeToString()


def add_feeds(message, feeds):
    for tensor, value in feeds.items():
        feed = message.feed.add()
        feed.name = tensor.name
        feed.tensor = as_proto(value)


def add_expect(message, name, array, kind, terms=0.0):
    message.name = name
    message.tensor = as_proto(array)
    message.relative, message.absolute = tolerance(np.asarray(array), kind, terms)


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
            self.node, self.outputs = result, []
            return
        while isinstance(result, (list, tuple)):
            result = next(part for part in result if not isinstance(part, (list, tuple)) or part)
        self.node = result.op
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
    if any(np.size(value) == 0 for value in values):  # convolutions write no gradient of nothing
        return
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
    add_feeds(message, attempt.feeds)
    for x, g in zip(xs, dense):
        message.x.append(x.name)
        if g is None:
            message.expect.add().name = x.name
        else:
            add_expect(message.expect.add(), x.name, next(answers),
                       row.gradient if isinstance(row.gradient, str) else
                       row.kind if row.kind in ("loose", "single") else
                       "loose" if weights[0].dtype.itemsize == 2 else "sum", row.terms)


def record_run(case, session, kind, fetch, feeds, target=(), vague=(), terms=0.0):
    """Runs it in TensorFlow and writes down what came out; whether it succeeded."""
    run = case.run.add()
    add_feeds(run, feeds)
    run.fetch.extend(y.name for y in fetch)
    run.target.extend(operation.name for operation in target)
    try:
        answers = session.run([list(fetch), list(target)], feeds)[0]
    except tf.errors.OpError as error:
        run.error_code = error.error_code
        lines = [line for line in error.message.splitlines() if line and "Graph execution" not in line
                 and not line.startswith(("Detected at", "Node:", "  File", "    "))]
        run.error_text = lines[0][:200] if lines else ""
        if "No OpKernel was registered" in error.message:  # the session refuses the graph
            case.graph_error_code, case.graph_error_text = run.error_code, run.error_text
        return False
    for y, answer in zip(fetch, answers):
        array = np.array(answer, object) if isinstance(answer, bytes) else np.asarray(answer)
        add_expect(run.expect.add(), y.name, array, kind, terms)
        run.expect[-1].shape_only = y.name in vague
    return True


def start_case(Case, name, graph):
    case = Case(name=name)
    definition = graph.as_graph_def()
    case.graph = definition.SerializeToString()
    nodes = list(definition.node)
    for function in definition.library.function:
        nodes += function.node_def
    case.op.extend(sorted({node.op for node in nodes}))
    return case


def story_case(Case, name, story, source):
    graph = tf.Graph()
    with graph.as_default():
        steps = story.make(source)
    case = start_case(Case, name, graph)
    with v1.Session(graph=graph, config=config()) as session:
        for step in steps:
            record_run(case, session, story.kind, step.fetch, step.feed, step.target, step.vague)
    return finish_case(case)


def finish_case(case):
    """A graph that is refused has no runs."""
    if case.graph_error_code:
        del case.run[:]
    return case


def row_case(Case, name, row, source, rng):
    arguments = row.make(source)
    if row.spoil and rng.random() < 0.1:
        source.spoil(arguments)
    attempt = build(row, arguments, rng)
    case = start_case(Case, name, attempt.graph)
    vague = [y.name for i, y in enumerate(attempt.outputs) if i in row.vague(arguments)]
    with v1.Session(graph=attempt.graph, config=config()) as session:
        target = () if attempt.outputs else (attempt.node,)
        ran = record_run(case, session, row.kind, attempt.outputs, attempt.feeds, target, vague, row.terms)
        if ran and row.gradient and rng.random() < 0.5:
            try:
                add_gradient(case, row, attempt, session, rng)
            except (LookupError, ValueError, TypeError, NotImplementedError, tf.errors.OpError):
                del case.gradient[:]
    return finish_case(case)


def make_case(Case, family, row, number, rng):
    source = Source(row, rng)
    name = f"{family}/{row.name}/{source.type.name}/{number}"
    if isinstance(row, Story):
        return story_case(Case, name, row, source)
    return row_case(Case, name, row, source, rng)
