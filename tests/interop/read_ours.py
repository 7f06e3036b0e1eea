"""read_ours.py FOLDER - TensorFlow and TensorBoard read what tf-write has put there; prints ok and FAIL lines."""
import glob
import hashlib
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

failed = 0


def check(name, wrong):
    global failed
    failed += bool(wrong)
    print(f"FAIL tensorflow/{name}: {wrong}" if wrong else f"ok tensorflow/{name}", flush=True)


def checkpoint(prefix, expected):
    reader = tf.train.load_checkpoint(prefix)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if set(shapes) != {t["name"] for t in expected}:
        return "other names"
    for t in expected:
        value = np.asarray(reader.get_tensor(t["name"]))
        if list(value.shape) != t["shape"] or types[t["name"]].name != t["dtype"]:
            return f"{t['name']}: {value.shape} {types[t['name']].name}"
        if t["dtype"] == "string":
            same = [v.hex() for v in value.reshape(-1).tolist()] == t["hex"]
        else:
            same = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest() == t["sha256"]
        if not same:
            return f"{t['name']}: other values"


def records(path, expected):
    got = list(tf.data.TFRecordDataset(path, compression_type=expected["compression"]).as_numpy_iterator())
    want = [(r["length"], r["sha256"]) for r in expected["records"]]
    return [(len(r), hashlib.sha256(r).hexdigest()) for r in got] != want and "other records"


def events(folder, expected):
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    if not accumulator.Tags()["graph"]:
        return "no graph"
    for tag in ("loss", "accuracy"):
        got = [[e.step, np.float32(e.value)] for e in accumulator.Scalars(tag)]
        if got != [[p[0], np.float32(p[-1])] for p in expected["tags"][tag]["points"]]:
            return f"other points of {tag}"


def in_parts(prefix):
    """What we saved in three parts, restored by a Saver into four, and into one."""
    tf1, kernel = tf.compat.v1, tf.train.load_checkpoint(prefix).get_tensor("dense/kernel")
    with tf.Graph().as_default(), tf1.Session() as session:
        with tf1.variable_scope("", use_resource=False, partitioner=tf1.fixed_size_partitioner(4)):
            cut = tf1.get_variable("dense/kernel", kernel.shape)
        tf1.train.Saver().restore(session, prefix)
        if not (session.run(tf.convert_to_tensor(cut)) == kernel).all():
            return "dense/kernel in four parts is another one"
    reader = tf.train.load_checkpoint(prefix)
    return None if reader.has_tensor("dense/kernel/Adam_1") else "no dense/kernel/Adam_1"


def main(folder):
    load = lambda name: json.load(open(os.path.join(folder, name)))
    for name in ("types", "big", "slices"):
        check(name, checkpoint(os.path.join(folder, name), load(name + ".json")["tensors"]))
    latest = tf.train.latest_checkpoint(os.path.join(folder, "published"))
    check("published", checkpoint(latest, load("published.json")["tensors"]) or
          (os.path.basename(latest) != "model.ckpt-300" and latest))
    for path in sorted(glob.glob(os.path.join(folder, "*.tfrecord"))):
        check(os.path.basename(path), records(path, load(os.path.basename(path) + ".json")))
    for name in ("scalars", "restart"):
        check(name, events(os.path.join(folder, name), load(name + ".json")["tensorboard"]["."]))
    trained = tf.train.latest_checkpoint(os.path.join(folder, "trained", "checkpoints"))
    if trained:
        tf.train.load_checkpoint(trained).get_variable_to_shape_map()
        check("trained", None)
    parts = tf.train.latest_checkpoint(os.path.join(folder, "parts", "checkpoints"))
    if parts:
        check("parts", in_parts(parts))
    return failed > 0


sys.exit(main(sys.argv[1]))
