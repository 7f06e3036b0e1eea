"""parse.py - bytes and text that become tensors: Examples, CSV, raw numbers, tensors."""

import gzip
import json
import struct
import zlib

import numpy as np
import tensorflow as tf

from .frame import ANY, Row

KINDS = ("float32", "int64", "string")
NAMES = (b"a", b"b", b"c", b"d")


def feature(s, kind, count):
    """A list of that many values, of that kind."""
    values = s.values((count,), dtype=kind).tolist()
    if kind == "float32":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if kind == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


class Plan:
    """Which features an Example is to have: for each its kind, and its shape if it is dense."""

    def __init__(self, s, prefix=b""):
        names = [prefix + NAMES[i] for i in s.rng.permutation(len(NAMES))]
        self.kinds = {name: s.pick(*KINDS) for name in names}
        cut = s.int(0, len(names))
        self.dense, rest = names[:cut], names[cut:]
        cut = s.int(0, len(rest))
        self.sparse, self.ragged = rest[:cut], rest[cut:]
        self.shapes = {name: s.shape(0, 2, 3) for name in self.dense}
        # Rows of any number: the first dimension is open.
        self.open = {name for name in self.dense if self.shapes[name] and s.rng.random() < 0.2}

    def count(self, s, name):
        """How many values the feature has in one Example: mostly as many as asked for."""
        if name not in self.shapes:
            return s.int(0, 4)
        count = int(np.prod(self.shapes[name], dtype=np.int64))
        if name in self.open:
            return count // max(1, self.shapes[name][0]) * s.int(0, 3)
        return count if s.rng.random() < 0.97 else count + 1

    def features(self, s):
        result = {}
        for name, kind in self.kinds.items():
            odd = s.rng.random()
            if odd < 0.1:
                continue  # missing
            kind = s.pick(*KINDS) if odd < 0.12 else kind
            key = name.decode()
            result[key] = (tf.train.Feature() if odd > 0.97
                           else feature(s, kind, self.count(s, name)))
        return tf.train.Features(feature=result)

    def example(self, s):
        bytes_ = tf.train.Example(features=self.features(s)).SerializeToString(deterministic=True)
        return bytes_ if s.rng.random() < 0.98 else bytes_[:-1] + b"\xff"

    def types(self, names):
        return [tf.as_dtype(self.kinds[name]) for name in names]

    def dense_shapes(self):
        return [[None if name in self.open and i == 0 else d
                 for i, d in enumerate(self.shapes[name])] for name in self.dense]

    def defaults(self, s):
        """Empty ones say that the feature must be there."""
        result = []
        for name in self.dense:
            shape = self.shapes[name]
            if name in self.open:
                shape = ()
            elif s.rng.random() < 0.3:
                shape = (0,)
            result.append(s.values(shape, dtype=self.kinds[name]))
        return result


def strings(values):
    result = np.empty(len(values), object)
    result[:] = values
    return result


def serialized(s, plan):
    return strings([plan.example(s) for _ in range(s.int(0, 3))])


def debug_names(s, rows):
    return strings([b"n"] * len(rows) if s.rng.random() < 0.3 else [])


def scalars(names):
    return [np.array(name, object) for name in names]


def example(s):
    plan = Plan(s)
    plan.sparse += plan.ragged
    rows = serialized(s, plan)
    return {"serialized": rows, "names": debug_names(s, rows), "sparse_keys": scalars(plan.sparse),
            "dense_keys": scalars(plan.dense), "dense_defaults": plan.defaults(s),
            "sparse_types": plan.types(plan.sparse), "dense_shapes": plan.dense_shapes()}


def example_v2(s):
    plan = Plan(s)
    rows = serialized(s, plan)
    if s.rng.random() < 0.3:
        rows = np.array(plan.example(s), object)
    return {"serialized": rows, "names": debug_names(s, [] if rows.ndim == 0 else rows),
            "sparse_keys": strings(plan.sparse), "dense_keys": strings(plan.dense),
            "ragged_keys": strings(plan.ragged), "dense_defaults": plan.defaults(s),
            "num_sparse": len(plan.sparse), "sparse_types": plan.types(plan.sparse),
            "ragged_value_types": plan.types(plan.ragged),
            "ragged_split_types": [tf.as_dtype(s.index_type()) for _ in plan.ragged],
            "dense_shapes": plan.dense_shapes()}


def single(s):
    plan = Plan(s)
    plan.sparse += plan.ragged
    return {"serialized": np.array(plan.example(s), object), "dense_defaults": plan.defaults(s),
            "num_sparse": len(plan.sparse), "sparse_keys": [k.decode() for k in plan.sparse],
            "dense_keys": [k.decode() for k in plan.dense],
            "sparse_types": plan.types(plan.sparse), "dense_shapes": plan.dense_shapes()}


class Lists(Plan):
    """Feature lists: each a sequence of features of one kind."""

    def lists(self, s):
        result = {}
        for name, kind in self.kinds.items():
            if s.rng.random() < 0.1:
                continue
            steps = [feature(s, kind, int(np.prod(self.shapes[name], dtype=np.int64))
                             if name in self.shapes and s.rng.random() < 0.97 else s.int(0, 3))
                     for _ in range(s.int(0, 3))]
            result[name.decode()] = tf.train.FeatureList(feature=steps)
        return tf.train.FeatureLists(feature_list=result)


def sequence_bytes(s, context, lists):
    message = tf.train.SequenceExample(context=context.features(s), feature_lists=lists.lists(s))
    return message.SerializeToString(deterministic=True)


def texts(names):
    return [name.decode() for name in names]


def plans(s, ragged):
    context, lists = Plan(s), Lists(s, b"l")
    context.open, lists.open = set(), set()
    for plan in (context, lists):
        if not ragged:
            plan.sparse, plan.ragged = plan.sparse + plan.ragged, []
    return context, lists


def single_sequence(s):
    context, lists = plans(s, False)
    missing = [name for name in lists.dense if s.flag()]
    return {"serialized": np.array(sequence_bytes(s, context, lists), object),
            "feature_list_dense_missing_assumed_empty": strings(missing),
            "context_sparse_keys": scalars(context.sparse),
            "context_dense_keys": scalars(context.dense),
            "feature_list_sparse_keys": scalars(lists.sparse),
            "feature_list_dense_keys": scalars(lists.dense),
            "context_dense_defaults": context.defaults(s), "debug_name": np.array(b"", object),
            "context_sparse_types": context.types(context.sparse),
            "feature_list_dense_types": lists.types(lists.dense),
            "context_dense_shapes": context.dense_shapes(),
            "feature_list_sparse_types": lists.types(lists.sparse),
            "feature_list_dense_shapes": lists.dense_shapes()}


def sequence(s):
    context, lists = plans(s, False)
    missing = [name for name in lists.dense if s.flag()]
    rows = strings([sequence_bytes(s, context, lists) for _ in range(s.int(0, 3))])
    return {"serialized": rows, "debug_name": debug_names(s, rows),
            "context_dense_defaults": context.defaults(s),
            "feature_list_dense_missing_assumed_empty": texts(missing),
            "context_sparse_keys": texts(context.sparse),
            "context_dense_keys": texts(context.dense),
            "feature_list_sparse_keys": texts(lists.sparse),
            "feature_list_dense_keys": texts(lists.dense),
            "Ncontext_sparse": len(context.sparse), "Ncontext_dense": len(context.dense),
            "Nfeature_list_sparse": len(lists.sparse), "Nfeature_list_dense": len(lists.dense),
            "context_sparse_types": context.types(context.sparse),
            "feature_list_dense_types": lists.types(lists.dense),
            "context_dense_shapes": context.dense_shapes(),
            "feature_list_sparse_types": lists.types(lists.sparse),
            "feature_list_dense_shapes": lists.dense_shapes()}


def sequence_v2(s):
    context, lists = plans(s, True)
    rows = strings([sequence_bytes(s, context, lists) for _ in range(s.int(0, 3))])
    if s.rng.random() < 0.3:
        rows = np.array(sequence_bytes(s, context, lists), object)
    split = (lambda plan: [tf.as_dtype(s.index_type()) for _ in plan.ragged])
    return {"serialized": rows, "debug_name": debug_names(s, [] if rows.ndim == 0 else rows),
            "context_sparse_keys": strings(context.sparse),
            "context_dense_keys": strings(context.dense),
            "context_ragged_keys": strings(context.ragged),
            "feature_list_sparse_keys": strings(lists.sparse),
            "feature_list_dense_keys": strings(lists.dense),
            "feature_list_ragged_keys": strings(lists.ragged),
            "feature_list_dense_missing_assumed_empty": s.values((len(lists.dense),), dtype="bool"),
            "context_dense_defaults": context.defaults(s),
            "Ncontext_sparse": len(context.sparse),
            "context_sparse_types": context.types(context.sparse),
            "context_ragged_value_types": context.types(context.ragged),
            "context_ragged_split_types": split(context),
            "context_dense_shapes": context.dense_shapes(),
            "Nfeature_list_sparse": len(lists.sparse), "Nfeature_list_dense": len(lists.dense),
            "feature_list_dense_types": lists.types(lists.dense),
            "feature_list_sparse_types": lists.types(lists.sparse),
            "feature_list_ragged_value_types": lists.types(lists.ragged),
            "feature_list_ragged_split_types": split(lists),
            "feature_list_dense_shapes": lists.dense_shapes()}


def json_example(s):
    features = {}
    for name in ("a", "b"):
        kind = s.pick("int64List", "floatList", "bytesList", "int64_list")
        values = {"bytesList": ["YQ==", "", "////"], "floatList": [1.5, -2, 1e30, "NaN", "0.5"]}.get(
            kind, [1, "2", -3, 2**53])
        features[name] = {kind: {"value": [s.pick(*values) for _ in range(s.int(0, 3))]}}
    text = json.dumps({"features": {"feature": features}})
    if s.rng.random() < 0.2:
        text = s.pick("{}", "", "[", "null", '{"features": 1}', '{"x": 1}', text[:-1], " " + text)
    return {"json_examples": np.array([text.encode()] * s.int(0, 2) + [None], object)[:-1]
            if s.flag() else np.array(text.encode(), object)}


CELLS = {"float32": (b"1.5", b"-2", b"nan", b" 3 ", b"1e3", b"x", b"inf"),
         "float64": (b"1.5", b"-2e300", b"0.1", b" 3", b"x"),
         "int32": (b"1", b"-7", b"2147483648", b" 4 ", b"1.5", b"0"),
         "int64": (b"1", b"-7", b"9223372036854775807", b"x", b"12"),
         "string": (b"a", b"", b'"q,q"', b'"a""b"', b'a"b', b" sp ", b'"open', b"NA", b'"x"y')}


def csv(s):
    kinds = [s.pick(*CELLS) for _ in range(s.int(1, 4))]
    delimiter = s.pick(",", ",", ";", "\t")
    mistake = (lambda kind: CELLS[kind][s.int(0, len(CELLS[kind]) - 1)]
               if kind == "string" or s.rng.random() < 0.1 else s.pick(*CELLS[kind][:2], b"", b"NA"))
    extra = s.int(0, 1) if s.rng.random() < 0.3 else 0
    row = (lambda: delimiter.encode().join(
        [mistake(kind) for kind in kinds] + [b"z"] * (extra + (s.rng.random() < 0.05))))
    rows = s.shape(0, 2, 3)
    records = np.empty(int(np.prod(rows)), object)
    records[:] = [row() for _ in range(records.size)]
    defaults = [s.values((s.pick(1, 1, 0),) if s.flag() else (), dtype=kind) for kind in kinds]
    return {"records": records.reshape(rows), "record_defaults": defaults,
            "field_delim": delimiter, "use_quote_delim": s.rng.random() < 0.8,
            "na_value": s.pick("", "NA"),
            **({"select_cols": list(range(len(kinds)))} if extra else {})}


def blocks(s, size):
    """Strings of whole numbers; now and then one of them is not."""
    count = s.int(0, 4)
    shape = s.shape(0, 2, 3)
    flat = np.empty(int(np.prod(shape)), object)
    flat[:] = [s.bytes(count * size + (s.rng.random() < 0.02)) for _ in range(flat.size)]
    return flat.reshape(shape)


def raw(s):
    return {"bytes": blocks(s, s.type.size), "out_type": s.type, "little_endian": s.flag()}


def padded_raw(s):
    shape = s.shape(0, 2, 3)
    flat = np.empty(int(np.prod(shape)), object)
    flat[:] = [s.bytes(s.int(0, 9)) for _ in range(flat.size)]
    return {"input_bytes": flat.reshape(shape), "out_type": s.type, "little_endian": s.flag(),
            "fixed_length": s.scalar(s.type.size * s.int(1, 3) + (s.rng.random() < 0.1))}


def compressed(s):
    kind = s.pick("", "ZLIB", "GZIP", "OTHER") if s.rng.random() < 0.2 else s.pick("ZLIB", "GZIP")
    pack = {"ZLIB": zlib.compress, "GZIP": gzip.compress}.get(kind, lambda b: b)
    shape = s.shape(0, 1, 3)
    flat = np.empty(int(np.prod(shape)), object)
    flat[:] = [pack(s.bytes(s.int(0, 300))) if s.rng.random() < 0.95 else b"not packed"
               for _ in range(flat.size)]
    return {"bytes": flat.reshape(shape), "compression_type": kind}


def tensor_bytes(s):
    """A TensorProto: as made by Python, or with its values in the typed fields."""
    array = s.values(s.shape(0, 3, 3))
    proto = tf.make_tensor_proto(array)
    if s.rng.random() < 0.2 and s.type == tf.float32:
        proto = tf.compat.v1.make_tensor_proto(array.tolist(), tf.float32, array.shape)
    data = proto.SerializeToString()
    odd = s.rng.random()
    if odd < 0.05:
        data = data[:-1]
    elif odd < 0.08:
        data += struct.pack("<q", 5)
    return {"serialized": np.array(data, object),
            "out_type": s.type if odd < 0.95 else tf.int32}


def one_example(arguments):
    """Outputs that part examples, where there is one that is no vector."""
    if arguments["serialized"].ndim:
        return ()
    a = {name: len(value) for name, value in arguments.items() if isinstance(value, list)}
    first = (3 * a["context_sparse_types"] + len(arguments["context_dense_keys"]) +
             a["context_ragged_value_types"])
    behind = first + a["context_ragged_split_types"]
    outer = (behind + 3 * a["feature_list_sparse_types"] + 2 * a["feature_list_dense_types"] +
             a["feature_list_ragged_value_types"])
    return (*range(first, behind), *range(outer, outer + a["feature_list_ragged_split_types"]))


RAW = "half bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16"

ROWS = [
    Row("ParseExample", "string", example, spoil=False),
    Row("ParseExampleV2", "string", example_v2, spoil=False),
    Row("ParseSingleExample", "string", single, spoil=False),
    Row("ParseSequenceExample", "string", sequence, spoil=False),
    Row("ParseSequenceExampleV2", "string", sequence_v2, vague=one_example, spoil=False),
    Row("ParseSingleSequenceExample", "string", single_sequence, spoil=False),
    Row("DecodeJSONExample", "string", json_example),
    Row("DecodeCSV", "string", csv),
    Row("DecodeRaw", RAW + " complex64 complex128 bool", raw),
    Row("DecodePaddedRaw", "bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16",
        padded_raw),
    Row("DecodeCompressed", "string", compressed),
    Row("ParseTensor", ANY, tensor_bytes),
    Row("SerializeTensor", ANY, lambda s: {"tensor": s.values(s.shape(0, 3))}),
]
