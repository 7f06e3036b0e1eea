"""errors_generate.py - random wrong uses of ops, with the codes and texts of TensorFlow's errors.

    errors_generate.py FOLDER --seed 1 --count 500 [--only NAME[,NAME]]

Draws from the rows of ops/ as ops_generate.py does, and makes an input or an attribute wrong: ranks,
sizes, indices, axes, names of layouts.  The graph goes to a server of TensorFlow as it is: Python does not look at it.
Writes FOLDER/FAMILY.tfrecord, serialised Cases (case.proto) for build/tf-cases --texts.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

import ops_generate  # first of all: it says how TensorFlow is to start
import ops
import ops_case
from programs_generate import in_children
from ops.frame import Source, Story

import grpc  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import tensor_pb2  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

BIG = [2, 3, 5, 7, 100, -1, -2, -100, 0]
WORDS = ["", "bogus", "NHWC", "NCHW", "SAME", "VALID", "EXPLICIT", "NDHWC", "lower", "mean", "x"]
TEXTS = [b"", b"x", b"\xff\xfe", b"12a", b"-", b"1,2", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0",
         b"a,b,\"c", b"1e999", b"99999999999999999999", b"(", b"[", b"%"]


def master_messages():
    """The messages of master.proto by name, from our own definition of them."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto")
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "-I", root, "--include_imports", "--descriptor_set_out", out.name,
                        "tensorflow/master.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    return message_factory.GetMessages(files.file, descriptor_pool.DescriptorPool())


class Server:
    """TensorFlow's MasterService in this process, and a client that sends what it is given."""

    def __init__(self):
        self.server = tf.distribute.Server.create_local_server(ops_case.config())
        address = self.server.target.removeprefix("grpc://")
        self.channel = grpc.insecure_channel(address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1)])

        self.messages = master_messages()

    def message(self, kind, **fields):
        return self.messages["tensorflow." + kind](**fields)

    def call(self, name, **fields):
        request = self.message(name + "Request", **fields)
        answer = type(self.message(name + "Response"))
        method = self.channel.unary_unary(
            "/tensorflow.MasterService/" + name, request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString)
        return method(request, timeout=25)

    def create(self, graph):
        config = self.message("ConfigProto").FromString(ops_case.config().SerializeToString())
        config.isolate_session_state = True
        return self.call("CreateSession", graph_def=graph.SerializeToString(), config=config).session_handle

    def run(self, handle, feeds, fetch, target):
        feed = [self.message("NamedTensorProto", name=name) for name, _ in feeds]
        for message, (_, value) in zip(feed, feeds):
            message.tensor.ParseFromString(ops_case.as_proto(value))
        return self.call("RunStep", session_handle=handle, fetch=fetch, target=target, feed=feed,
                         store_errors_in_response_body=True)

    def close(self, handle):
        self.call("CloseSession", session_handle=handle)


def wrong_number(s, array):
    flat = array.reshape(-1).copy()
    place = s.int(0, flat.size - 1)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        value = s.pick(*BIG, flat[s.int(0, flat.size - 1)])
        flat[place] = min(max(int(value), limits.min), limits.max)
    elif array.dtype.kind == "O":
        text = flat[place]
        flat[place] = s.pick(*TEXTS, text[:len(text) // 2], text + b"z", text[1:]) if isinstance(text, bytes) else b""
    elif array.dtype.kind == "b":
        flat[place] = not flat[place]
    else:
        flat[place] = np.array(s.pick(-1.0, 0.0, 2.0, 100.0, -5.0, np.nan, np.inf)).astype(array.dtype)
    return flat.reshape(array.shape)


def wrong_array(s, array):
    choice = s.int(0, 11)
    axis = s.int(0, max(0, array.ndim - 1))
    if choice <= 3 and array.size:
        return wrong_number(s, array)
    if choice == 4 and array.size:
        return array.reshape(-1)[0].copy() if array.dtype.kind != "O" else np.array(array.reshape(-1)[0], object)
    if choice == 5:
        return array[None]
    if choice == 6:
        return array[..., None]
    if choice == 7 and array.ndim and array.shape[axis]:
        return np.concatenate([array, np.take(array, [0], axis)], axis)
    if choice == 8 and array.ndim and array.shape[axis]:
        return np.delete(array, 0, axis)
    if choice == 9 and array.ndim:
        return np.take(array, [], axis)
    if choice == 10 and array.ndim and array.shape[0]:
        return array[0].copy() if array.ndim > 1 else array[:-1]
    if choice == 11:
        return array.reshape(-1)
    return array[None]


def wrong_list(s, numbers):
    choice = s.int(0, 4)
    place = s.int(0, max(0, len(numbers) - 1))
    if choice == 0 and numbers:
        return numbers[:place] + numbers[place + 1:]
    if choice == 1:
        return numbers + [numbers[-1] if numbers else 1]
    if choice == 2:
        return []
    return [s.pick(0, -1, -3, 2, 9, 1) if i == place else n for i, n in enumerate(numbers)]


def wrong_attr(s, definition, node):
    """One attribute of the node made wrong; false where it has none that can be."""
    kinds = {a.name: a for a in definition.attr}
    names = [n for n in node.attr if n in kinds and kinds[n].type in (
        "int", "float", "string", "list(int)", "list(float)", "bool", "shape", "list(string)", "list(shape)")]
    counts = {a.number_attr for a in definition.input_arg} | {a.number_attr for a in definition.output_arg}
    names = [n for n in names if n not in counts]
    if not names:
        return False
    name = s.pick(*names)
    value, kind = node.attr[name], kinds[name].type
    if kind == "int":
        value.i = s.pick(0, -1, -2, 1, 2, value.i + 1, value.i - 1, -value.i, 100)
    elif kind == "float":
        value.f = s.pick(-1.0, 0.0, 2.0, float("nan"), 0.5)
    elif kind == "bool":
        value.b = not value.b
    elif kind == "string":
        allowed = [w.decode() for w in kinds[name].allowed_values.list.s]
        value.s = s.pick(*WORDS, *allowed, *allowed).encode()
    elif kind == "shape":
        sizes = [d.size for d in value.shape.dim]
        value.shape.Clear()
        for size in wrong_list(s, sizes):
            value.shape.dim.add(size=max(size, -1))
    elif kind == "list(int)":
        numbers = wrong_list(s, list(value.list.i))
        del value.list.i[:]
        value.list.i.extend(numbers)
        value.list.SetInParent()
    elif kind == "list(float)":
        numbers = wrong_list(s, list(value.list.f))
        del value.list.f[:]
        value.list.f.extend(numbers)
        value.list.SetInParent()
    else:
        return False
    return True


def wrong_input(s, arguments):
    names = [n for n, v in arguments.items() if isinstance(v, np.ndarray)
             or (isinstance(v, list) and v and isinstance(v[0], np.ndarray))]
    if not names:
        return False
    name = s.pick(*names)
    value = arguments[name]
    if isinstance(value, list):
        place = s.int(0, len(value) - 1)
        arguments[name] = [wrong_array(s, v) if i == place else v for i, v in enumerate(value)]
    else:
        arguments[name] = wrong_array(s, value)
    return True


def first_line(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("From /job:")]
    return lines[0].split("\t [[{{")[0].strip()[:400] if lines else ""


def record(Case, name, server, graph, attempt, row):
    case = Case(name=name)
    case.graph = graph.SerializeToString()
    case.op.extend(sorted({node.op for node in graph.node}))
    try:
        handle = server.create(graph)
    except grpc.RpcError as error:
        case.graph_error_code = error.code().value[0]
        case.graph_error_text = first_line(error.details())
        return case
    fetch = [y.name for y in attempt.outputs]
    target = [] if fetch else [attempt.node.name]
    run = case.run.add()
    run.fetch.extend(fetch)
    run.target.extend(target)
    ops_case.add_feeds(run, attempt.feeds)
    try:
        answer = server.run(handle, [(t.name, v) for t, v in attempt.feeds.items()], fetch, target)
        if answer.status_code:
            run.error_code, run.error_text = answer.status_code, first_line(answer.status_error_message)
        else:
            answers = {got.name: got for got in answer.tensor}
            for name in fetch:
                add_expect(run.expect.add(), answers[name], row)
    except grpc.RpcError as error:
        run.error_code, run.error_text = error.code().value[0], first_line(error.details())
    server.close(handle)
    return None if run.error_code == 8 else case


def add_expect(message, got, row):
    array = tf.make_ndarray(tensor_pb2.TensorProto.FromString(got.tensor.SerializeToString()))
    ops_case.add_expect(message, got.name, array, row.kind, row.terms)
    message.shape_only = True


SERVER = []


def make_case(Case, family, row, number, options):
    rng = np.random.default_rng([options.seed, number])
    source = Source(row, rng)
    arguments = row.make(source)
    spoilt = row.spoil and rng.random() < 0.6 and wrong_input(source, arguments)
    try:
        attempt = ops_case.Attempt(row, arguments, set(row.constants(ops_case.flat_names(arguments))))
    except (ValueError, TypeError, tf.errors.OpError):
        return b""
    graph = attempt.graph.as_graph_def()
    node = next(n for n in graph.node if n.name == attempt.node.name)
    if not spoilt and not wrong_attr(source, attempt.node.op_def, node):
        return b""
    if not SERVER:
        SERVER.append(Server())
    case = record(Case, f"{family}/{row.name}/{source.type.name}/{options.seed}-{number}", SERVER[0], graph, attempt, row)
    return case.SerializeToString() if case else b""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rows = [(family, row) for family, row in ops.chosen(set(filter(None, options.only.split(","))))
            if not isinstance(row, Story)]
    Case = ops_case.case_class()
    made = {}
    failing = 0
    for number, data, error in in_children(
            lambda n: make_case(Case, *rows[(n + options.seed) % len(rows)], n, options), options.count):
        family, row = rows[(number + options.seed) % len(rows)]
        if error:
            print(f"not built: {row.name}: {error[:160]}", file=sys.stderr)
        elif data:
            made.setdefault(family, []).append(data)
            case = Case.FromString(data)
            failing += bool(case.graph_error_code or case.run[0].error_code)
    ops_generate.write(options.folder, made)
    print(f"{sum(map(len, made.values()))} cases, {failing} fail", file=sys.stderr)


if __name__ == "__main__":
    main()
