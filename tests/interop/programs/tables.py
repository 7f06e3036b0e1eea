"""tables.py - lookup tables of all kinds, and tensors kept by the session."""

import numpy as np
import tensorflow as tf

from programs.program import raw

PAIRS = ("string int64", "int64 string", "string float32", "int64 float32", "int64 int64", "int32 int32",
         "string string", "int32 float32", "int64 float64", "string int32", "int64 int32", "int32 string",
         "string bool", "int64 bool", "string float64")


def keys_of(p, dtype, shape):
    if dtype == tf.string:
        return np.array([p.pick(b"", b"a", b"b", b"c", b"word") for _ in range(int(np.prod(shape)))],
                        object).reshape(shape)
    return p.ints(shape, -3, 6, dtype)


def program(p):
    """A table, and what is put into it, found, removed, exported."""
    kind = p.pick("HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable",
                  "AnonymousMutableHashTable") if p.chance(0.95) else "HashTable"
    if kind.startswith("Anonymous"):
        kind = "MutableHashTable"
    version = p.pick("V2", "V2", "V2", "") if kind != "MutableDenseHashTable" else "V2"
    key_type, value_type = (tf.as_dtype(t) for t in p.pick(*PAIRS).split())
    shape = p.shape(0, 2, 3, 1) if kind.endswith(("Tensors", "DenseHashTable")) else ()
    if kind == "MutableHashTableOfTensors":
        shape = p.shape(1, 1, 3, 1)
    more = {"key_dtype": key_type, "value_dtype": value_type, "shared_name": p.pick("", "table")}
    if shape or kind.endswith("Tensors"):
        more["value_shape"] = list(shape)
    if kind == "MutableDenseHashTable":
        del more["key_dtype"]
        if key_type == tf.string:
            empty, deleted = np.array(b"\x01", object), np.array(b"\x02", object)
        else:
            empty, deleted = (np.array(x, key_type.as_numpy_dtype) for x in (100, 101))
        more.update(empty_key=p.give(empty, 1.0), deleted_key=p.give(deleted, 1.0),
                    initial_num_buckets=p.pick(4, 16, 64), max_load_factor=p.pick(0.8, 0.8, 0.3))
    buckets = []  # of a dense table, as it exported them
    table = getattr(raw, kind + version)(**more)

    def op(name, **arguments):
        return getattr(raw, name + version)(table_handle=table, **arguments)

    def find():
        keys = keys_of(p, key_type, p.shape(0, 2, 3))
        default = p.values(p.bent(shape), -9, 9, value_type)
        p.run([op("LookupTableFind", keys=p.give(keys), default_value=p.give(default))])

    def size():
        p.run([op("LookupTableSize")])

    def put():
        keys = keys_of(p, key_type, (p.int(0, 4),))
        if p.chance(0.7):
            keys = np.array(list(dict.fromkeys(keys.tolist())), keys.dtype)
        values = p.values(p.bent((len(keys),) + tuple(shape)), -9, 9, value_type)
        name = "InitializeTable" if kind == "HashTable" else "LookupTableInsert"
        if name == "LookupTableInsert" and p.chance(0.3):
            if kind == "MutableDenseHashTable":
                # TensorFlow takes back into a dense table nothing but all of its own buckets.
                if not buckets:
                    return
                keys, values = buckets
            name = "LookupTableImport"
        p.run(target=[op(name, keys=p.give(keys), values=p.give(values))])

    def remove():
        if kind != "HashTable":
            p.run(target=[raw.LookupTableRemoveV2(table_handle=table, keys=p.give(
                keys_of(p, key_type, (p.int(0, 3),))))])

    def export():
        keys, values = op("LookupTableExport", Tkeys=key_type, Tvalues=value_type)
        if kind == "MutableDenseHashTable":
            buckets[:] = p.run([keys, values]) or buckets
            return
        # Their order is nobody's business: sorted by key.
        if key_type == tf.string:
            p.run([keys, values], vague=[keys, values])
            return
        order = raw.TopKV2(input=tf.cast(keys, tf.int64), k=tf.size(keys), sorted=True)[1]
        p.run([raw.GatherV2(params=keys, indices=order, axis=0), raw.GatherV2(params=values, indices=order, axis=0)])
    p.actions([find, find, size, put, put, put, remove, export], 4, 12)


def from_file(p):
    """A table of the lines of a file."""
    parts = p.int(1, 3)
    lines = []
    for _ in range(p.int(0, 5)):
        lines.append(p.pick(b"\t", b",").join(p.pick(b"a", b"b", b"7", b"-2", b"0.5", b"") for _ in range(parts)))
    text = b"\n".join(lines) + p.pick(b"", b"\n", b"\n\n")
    name = p.path("words")
    p.run(target=[raw.WriteFile(filename=name, contents=p.give(np.array(text, object)))])
    key_type, value_type = (tf.as_dtype(t) for t in p.pick("string int64", "int64 string", "string string",
                                                            "string float32", "int64 int64").split())
    table = raw.HashTableV2(key_dtype=key_type, value_dtype=value_type)
    start = raw.InitializeTableFromTextFileV2(
        table_handle=table, filename=name if p.chance(0.9) else p.path("none"),
        key_index=p.pick(-2, -1, 0, 0, 1), value_index=p.pick(-2, -1, 0, 1, 2),
        vocab_size=p.pick(-1, -1, -1, len(lines), 2), delimiter=p.pick("\t", ","))
    p.path("words")
    p.run(target=[start])
    p.run([raw.LookupTableSizeV2(table_handle=table)])
    keys = (np.array([b"a", b"b", b"7", b"", b"0.5"], object) if key_type == tf.string else
            np.array([0, 1, 2, 7, -2], np.int64))
    p.run([raw.LookupTableFindV2(table_handle=table, keys=p.give(keys), default_value=p.give(
        p.values((), -9, 9, value_type)))])


def session_tensors(p):
    """Tensors kept from one run for later ones."""
    dtype = p.dtype("float32 int32 string bool half")
    held = []

    def keep():
        value = p.give(p.values(p.shape(0, 2, 3), dtype=dtype))
        answer = p.run([raw.GetSessionHandle(value=value)])
        if answer:
            held.append(np.array(answer[0], object))

    def get():
        handle = p.pick(*held) if held and p.chance(0.9) else np.array(b"no;such;handle", object)
        p.run([raw.GetSessionTensor(handle=p.give(handle), dtype=dtype)])

    def delete():
        handle = p.pick(*held) if held and p.chance(0.9) else np.array(b"no;such;handle", object)
        p.run(target=[raw.DeleteSessionTensor(handle=p.give(handle))])
    p.actions([keep, keep, get, get, delete], 4, 10)
