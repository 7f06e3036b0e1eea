"""program.py - a random program: a graph, and runs in it one after the other.

A family draws actions; each makes the nodes it needs and runs them at once.  What TensorFlow
answers, or its error code, goes into a Case as it comes.
"""

import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import session_ops

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import ops_case  # noqa: E402
from ops.frame import Source  # noqa: E402

v1 = tf.compat.v1
raw = tf.raw_ops
WAIT_MS = 3000  # for a run: TensorFlow's own time, then the program ends before that run
# The last two: parts of a saved tensor of a type that it restores only as a whole.
NO_KERNEL = ("Cannot assign a device", "No OpKernel was registered",
             "Dtype string not supported", "Dtype half not supported")
REFUSED = (AttributeError, ValueError, TypeError, LookupError, NotImplementedError, OverflowError)


def essence(message):
    """What an error says, without the places that Python adds."""
    lines = [line.strip() for line in message.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith((
        "Graph execution error", "Detected at", "File ", "Node:", "[[{{", "Original stack")))[:200]


class Program(Source):
    """`graph` is the default one while a family draws its program."""

    def __init__(self, case, rng, folder):
        self.rng, self.type, self.tame = rng, tf.float32, rng.random() < 0.7
        self.case, self.folder = case, folder
        self.graph, self.session, self.over = tf.Graph(), None, False
        self.feeds, self.accepted, self.whole = {}, 0, None
        self.gradients = []

    # --- drawing ---

    def chance(self, probability):
        return self.rng.random() < probability

    def dtype(self, names):
        return tf.as_dtype(self.pick(*names.split()))

    def string(self, low=0, high=4):
        return bytes(self.rng.choice(list(b"ab\xff\x00 z"), self.int(low, high)).tolist())

    def bent(self, shape):
        """Now and then another shape than that: what a kernel must refuse."""
        shape = list(shape)
        if self.chance(0.93):
            return tuple(shape)
        how = self.int(0, 2)
        if how == 0 or not shape:
            return tuple([1] + shape)
        if how == 1:
            return tuple(shape[1:])
        shape[self.int(0, len(shape) - 1)] += 1
        return tuple(shape)

    # --- building ---

    def give(self, value, constant=0.3):
        """A tensor with that value, constant or fed to the next run."""
        value = np.asarray(value)
        if value.dtype.kind in "SU":
            value = value.astype(object)
        dtype = tf.string if value.dtype.kind == "O" else tf.as_dtype(value.dtype)
        with tf.control_dependencies(None):  # what waits is who takes it
            if self.chance(constant):
                return tf.constant(value, dtype)
            tensor = v1.placeholder(dtype, value.shape if self.chance(0.3) else None)
        self.feeds[tensor] = value
        return tensor

    def path(self, name):
        """The name of a file in the folder of this case."""
        if not hasattr(self, "root"):
            self.root = v1.placeholder(tf.string, [], "folder")
        self.feeds[self.root] = np.array("$TMP", object)
        return tf.strings.join([self.root, "/" + name])

    # --- running ---

    def run(self, fetch=(), target=(), kind="exact", vague=(), terms=()):
        """Fetches tensors, or what actions return; None after an error.  `vague`: compared by
        type and shape only.  `terms`: for each how large what was added up is."""
        if self.over:
            return None
        fetch = [t for t in tf.nest.flatten(list(fetch)) if isinstance(t, tf.Tensor)]
        target = [t if isinstance(t, tf.Operation) else t.op for t in tf.nest.flatten(list(target))]
        feeds, self.feeds = self.feeds, {}
        real = {t: np.array(self.folder, object) if v.dtype.kind == "O" and v.shape == () and
                v.item() == "$TMP" else v for t, v in feeds.items()}
        if self.session is None:
            config = ops_case.config()
            config.operation_timeout_in_ms = WAIT_MS
            self.session = v1.Session(graph=self.graph, config=config)
        error, answers = None, None
        try:
            answers = self.session.run([*fetch, *target], real)
        except tf.errors.DeadlineExceededError:
            self.over = True
            return None
        except tf.errors.OpError as trouble:
            error = trouble
        record = self.case.run.add()
        for tensor, value in feeds.items():
            message = record.feed.add()
            message.name = tensor.name
            message.tensor = ops_case.as_proto(value)
        record.fetch.extend(t.name for t in fetch)
        record.target.extend(op.name for op in target)
        if error:
            record.error_code = error.error_code
            record.error_text = essence(error.message)
            if any(text in error.message for text in NO_KERNEL):
                self.end_before()
            self.accepted = len(self.graph.get_operations())
            return None
        self.accepted = len(self.graph.get_operations())
        answers = [x.get_raw_handle() if isinstance(x, session_ops.TensorHandle) else x for x in answers]
        for i, (tensor, answer) in enumerate(zip(fetch, answers)):
            answer = self.hide_folder(np.asarray(answer, object if isinstance(answer, bytes) else None))
            ops_case.add_expect(record.expect.add(), tensor.name, answer, kind, terms[i] if terms else 0.0)
            record.expect[-1].shape_only = any(tensor is v for v in vague)
        return answers

    def end_before(self):
        """The nodes since the last run ask for a kernel that TensorFlow lacks: the program ends
        before them.  Ours may have it."""
        self.over = True
        del self.case.run[-1]
        self.whole = self.graph.as_graph_def()
        kept = {op.name for op in self.graph.get_operations()[:self.accepted]}
        nodes = [node for node in self.whole.node if node.name in kept]
        del self.whole.node[:]
        self.whole.node.extend(nodes)

    def hide_folder(self, array):
        if array.dtype.kind != "O":
            return array
        hidden = [x.replace(self.folder.encode(), b"$TMP") if isinstance(x, bytes) else x
                  for x in array.reshape(-1)]
        out = np.empty(len(hidden), object)
        out[:] = hidden
        return out.reshape(array.shape)

    def actions(self, choices, least=4, most=12):
        """So many of the actions, one after the other; those that cannot be built are left out."""
        for _ in range(self.int(least, most)):
            self.attempt(self.pick(*choices))

    def attempt(self, action):
        try:
            return action()
        except REFUSED:
            self.feeds.clear()
            return None

    def attempt_keeping(self, action):
        """As attempt(), within the making of one run."""
        feeds = dict(self.feeds)
        try:
            action()
        except REFUSED:
            self.feeds = feeds

    def gradient(self, ys, xs, feeds=None, kind="sum"):
        """Asks for the gradients by our own differentiation of the graph as it is at the end."""
        self.gradients.append((ys, xs, feeds or {}, kind))

    def differentiate(self, ys, xs, feeds, kind):
        weights = [tf.ones_like(t) for t in ys]
        grads = [None if g is None else tf.convert_to_tensor(g) for g in tf.gradients(ys, xs, weights)]
        with v1.Session(graph=self.graph, config=ops_case.config()) as session:
            ones, answers = session.run([weights, [g for g in grads if g is not None]], feeds)
        message = self.case.gradient.add()
        for t, one in zip(ys, ones):
            message.y.append(t.name)
            part = message.grad_y.add()
            part.name, part.tensor = t.name, ops_case.as_proto(one)
        for t, v in feeds.items():
            part = message.feed.add()
            part.name, part.tensor = t.name, ops_case.as_proto(v)
        answers = iter(answers)
        for t, g in zip(xs, grads):
            message.x.append(t.name)
            if g is None:
                message.expect.add().name = t.name
            else:
                ops_case.add_expect(message.expect.add(), t.name, next(answers), kind)

    def finish(self):
        if self.session is not None:
            self.session.close()
        definition = self.whole or self.graph.as_graph_def()
        self.case.graph = definition.SerializeToString()
        ops = {node.op for node in definition.node}
        names = {f.signature.name for f in definition.library.function}
        for function in definition.library.function:
            ops |= {node.op for node in function.node_def}
        self.case.op.extend(sorted(ops - names))
        for request in self.gradients:
            try:
                self.differentiate(*request)
            except (*REFUSED, tf.errors.OpError):
                pass  # TensorFlow has none
