#!/usr/bin/env python3
"""saved_models.py TASK FOLDER: SavedModels both ways, TASK being the program trainyard-task.

Models of ours are trained for some steps, exported, and called by TensorFlow's loaders of both versions with the inputs that
`predict` gets; models that TensorFlow writes here, of many kinds, are called by `predict`.  A line for each difference, exit 1.
"""
import json
import os
import subprocess
import sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
tf1 = tf.compat.v1
task, work = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
rng = np.random.default_rng(7)
failed = passed = 0


def check(name, ok, why=""):
    global failed, passed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {name}: {why}")


def run(*args):
    done = subprocess.run([task, *args], capture_output=True, text=True, cwd=work, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{args[0]}: {done.stderr.strip()}")
    return done.stdout


def as_array(value):
    def fix(x):
        if isinstance(x, list):
            return [fix(y) for y in x]
        if isinstance(x, dict):
            return np.frombuffer(__import__("base64").b64decode(x["b64"]), np.uint8).tobytes()
        return float(x) if x in ("NaN", "Infinity", "-Infinity") else x.encode() if isinstance(x, str) else x
    return np.array(fix(value))


def same(name, got, want):
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype == object or want.dtype.kind in "SU":
        ok = got.shape == want.shape and [bytes(x) for x in got.reshape(-1)] == [bytes(x) for x in want.reshape(-1)]
    else:
        ok = got.shape == want.shape and np.allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-5, equal_nan=True)
    check(name, ok, f"{got.reshape(-1)[:4]} {got.shape}, wanted {want.reshape(-1)[:4]} {want.shape}")


# --- ours, read by TensorFlow ---

def dense(n=3, **more):
    return {"layer": "Dense", "units": n, **more}


def layer(name, **more):
    return {"layer": name, **more}


pictures = (lambda n: rng.random((n, 8, 8, 3), np.float32))
tokens = (lambda n: rng.integers(0, 11, (n, 6)).astype(np.int32))
rows = (lambda n: rng.standard_normal((n, 6, 4)).astype(np.float32))
specs = {
    "conv": (pictures, [layer("Conv2D", filters=4, kernel_size=3, padding="same", activation="relu"), layer("BatchNormalization"),
                        layer("MaxPooling2D"), layer("SeparableConv2D", filters=4, kernel_size=3, activation="gelu"),
                        layer("GlobalAveragePooling2D"), layer("Dropout", rate=0.5), dense(activation="softmax")]),
    "transposed": (pictures, [layer("Conv2DTranspose", filters=3, kernel_size=3, strides=2), layer("DepthwiseConv2D", kernel_size=3),
                              layer("AveragePooling2D"), layer("UpSampling2D"), layer("ZeroPadding2D"), layer("Flatten"), dense()]),
    "lstm": (tokens, [layer("Embedding", input_dim=11, output_dim=5), layer("LSTM", units=6, return_sequences=True),
                      layer("GRU", units=4), dense()]),
    "bidirectional": (tokens, [layer("Embedding", input_dim=11, output_dim=5),
                               layer("Bidirectional", wrapped={"layer": "LSTM", "units": 3}), dense()]),
    "rnn": (rows, [layer("SimpleRNN", units=5), layer("LayerNormalization"), dense()]),
    "transformer": (tokens, [
        {**layer("Embedding", input_dim=11, output_dim=8), "name": "e"},
        {**layer("MultiHeadAttention", num_heads=2, key_dim=4, use_causal_mask=True), "name": "a", "inputs": ["e", "e"]},
        {**layer("Add"), "name": "s", "inputs": ["a", "e"]}, layer("LayerNormalization"), layer("GlobalAveragePooling1D"), dense()]),
}


def ours(name, make, layers):
    folder = f"{work}/data-{name}"
    os.makedirs(folder)
    for part, n in (("train", 64), ("test", 16)):
        np.save(f"{folder}/x_{part}.npy", make(n))
        np.save(f"{folder}/y_{part}.npy", (np.arange(n) % 3).astype(np.int32))
    spec = {"name": name, "seed": 1, "model": {"layers": layers}, "data": {"dataset": name, "batch_size": 16, "target": "y"},
            "train": {"steps": 5, "loss": {"name": "SparseCategoricalCrossentropy", "from_logits": name != "conv"}}}
    json.dump(spec, open(f"{work}/{name}.json", "w"))
    run("train", f"{name}.json", "--data", folder, "--out", f"run-{name}")
    run("export", f"run-{name}", f"saved-{name}", "--format", "saved_model")
    x = make(5)
    np.save(f"{work}/x.npy", x)
    run("predict", f"run-{name}", "x.npy", "--output", "ours.npy")
    want = np.load(f"{work}/ours.npy")
    run("predict", f"saved-{name}", "x.npy", "--output", "again.npy")
    again = np.load(f"{work}/again.npy")
    # A GRU is one op in the run and written out in what is exported, which rounds otherwise.
    agrees = np.allclose(again, want, rtol=0, atol=1e-6) if name == "lstm" else np.array_equal(again, want)
    check(f"{name} by our own loader", agrees, f"off by {np.abs(again - want).max()}")
    model = tf.saved_model.load(f"{work}/saved-{name}")
    call = model.signatures["serving_default"]
    feature = list(call.structured_input_signature[1])[0]
    same(f"{name} by tf.saved_model.load", call(**{feature: tf.constant(x)})["predictions"], want)
    with tf1.Session(graph=tf.Graph()) as session:
        meta = tf1.saved_model.loader.load(session, ["serve"], f"{work}/saved-{name}")
        signature = meta.signature_def["serving_default"]
        same(f"{name} by the loader of version 1",
             session.run(signature.outputs["predictions"].name, {signature.inputs[feature].name: x}), want)
        check(f"{name} has variables", len(tf1.global_variables()) > 0 and len(tf1.trainable_variables()) > 0, "none")
        tf1.train.Saver().save(session, f"{work}/again-{name}/model.ckpt")
    graphs(name, x, feature, want, again)


def graphs(name, x, feature, want, again):
    """The same model as a MetaGraphDef with its checkpoint, and as a GraphDef with the weights in it."""
    for ending in ("meta", "pb", "pbtxt"):
        run("export", f"run-{name}", f"graph-{name}.{ending}")
        run("predict", f"graph-{name}.{ending}", "x.npy", "--output", "graph.npy")
        check(f"{name}.{ending} by our own loader", np.array_equal(np.load(f"{work}/graph.npy"), again), "other predictions")
    with tf1.Session(graph=tf.Graph()) as session:
        saver = tf1.train.import_meta_graph(f"{work}/graph-{name}.meta")
        saver.restore(session, f"{work}/graph-{name}")
        same(f"{name} by import_meta_graph", session.run("predictions:0", {f"{feature}:0": x}), want)
        check(f"{name}.meta has variables", len(tf1.trainable_variables()) > 0, "none")
    frozen = tf1.GraphDef.FromString(open(f"{work}/graph-{name}.pb", "rb").read())
    from google.protobuf import text_format
    text = text_format.Parse(open(f"{work}/graph-{name}.pbtxt").read(), tf1.GraphDef())
    check(f"{name}.pbtxt is {name}.pb", text.SerializeToString(deterministic=True) == frozen.SerializeToString(deterministic=True), "it is not")
    check(f"{name}.pb has no variables", not any("Variable" in node.op or node.op == "VarHandleOp" for node in frozen.node), "it has")
    with tf1.Session(graph=tf.Graph()) as session:
        tf1.import_graph_def(frozen, name="")
        same(f"{name} by import_graph_def", session.run("predictions:0", {f"{feature}:0": x}), want)


# --- TensorFlow's, read by us ---

def call_ours(name, folder, signature, inputs, want, *more):
    def plain(x):
        x = np.asarray(x)
        return [plain(y) for y in x] if x.ndim else x.item().decode() if x.dtype.kind in "SO" else x.item()
    json.dump({"inputs": {k: plain(v) for k, v in inputs.items()}}, open(f"{work}/in.json", "w"))
    got = json.loads(run("predict", folder, "in.json", "--signature", signature, *more))["outputs"]
    if len(want) == 1:
        got = {list(want)[0]: got}
    for key, value in want.items():
        same(f"{name}/{signature}/{key}", as_array(got[key]), value)


def v2(name, module, signatures, calls):
    folder = f"{work}/tf-{name}"
    tf.saved_model.save(module, folder, signatures=signatures)
    loaded = tf.saved_model.load(folder)
    for signature, inputs in calls:
        want = loaded.signatures[signature](**{k: tf.constant(v) for k, v in inputs.items()})
        call_ours(name, folder, signature, inputs, {k: v.numpy() for k, v in want.items()})


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(rng.standard_normal((3, 2)).astype(np.float32), name="w")
        self.parts = [tf.Variable(float(i), name=f"p{i}") for i in range(12)]
        self.named = {"a": tf.Variable([1, 2], dtype=tf.int64), "b": tf.Variable(["x", "yy"])}
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64)), -1)
        self.asset = tf.saved_model.Asset(f"{work}/words.txt")
        self.words = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            self.asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 2)
        self.mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.5)
        self.mutable.insert(["m"], [2.5])
        self.constant = tf.constant(rng.standard_normal((40, 40)).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")])
    def math(self, x):
        y = x @ self.w
        for p in self.parts:
            y += p
        return {"y": y, "total": tf.reduce_sum(self.constant) + tf.cast(tf.reduce_sum(self.named["a"]), tf.float32)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def lookup(self, words):
        return {"ids": self.table.lookup(words), "vocabulary": self.words.lookup(words), "text": words + self.named["b"][1],
                "lengths": tf.strings.length(words)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, "n"), tf.TensorSpec([None], tf.float32, "x")])
    def loop(self, n, x):
        total = tf.zeros_like(x)
        for i in tf.range(n):
            if tf.reduce_sum(total) > 10.0:
                total = total * 0.5
            else:
                total = total + x * tf.cast(i, tf.float32)
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
        for i in tf.range(n):
            array = array.write(i, tf.reduce_sum(total) * tf.cast(i, tf.float32))
        return {"total": total, "stack": array.stack(), "flag": tf.reduce_all(total > 0)}


class Nested(tf.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = tf.Module(), tf.Module()
        self.first.k = tf.Variable(tf.ones([2, 2]), name="same")
        self.second.k = tf.Variable(tf.ones([2, 2]) * 2, name="same")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def __call__(self, x):
        return x @ self.first.k + self.second.k[0]


def keras_model(kind):
    inputs = tf.keras.Input((6,), dtype="int32") if kind == "tokens" else tf.keras.Input((8, 8, 1))
    if kind == "tokens":
        x = tf.keras.layers.Embedding(9, 4)(inputs)
        x = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(3, return_sequences=True))(x)
        x = tf.keras.layers.GRU(3)(tf.keras.layers.Dropout(0.3)(x))
    else:
        x = tf.keras.layers.Conv2D(3, 3, activation="relu")(inputs)
        x = tf.keras.layers.BatchNormalization()(x)
        x = tf.keras.layers.Flatten()(tf.keras.layers.MaxPooling2D()(x))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def keras(kind):
    model = keras_model(kind)
    x = rng.integers(0, 9, (4, 6)).astype(np.int32) if kind == "tokens" else rng.random((4, 8, 8, 1), np.float32)
    model.fit(x, np.array([0, 1, 0, 1]), verbose=0)
    want = model(x).numpy()
    for how, save in (("export", model.export), ("save", lambda folder: tf.saved_model.save(model, folder))):
        folder = f"{work}/keras-{kind}-{how}"
        save(folder)
        signature = tf.saved_model.load(folder).signatures["serving_default"]
        names = list(signature.structured_input_signature[1])
        call_ours(f"keras-{kind}-{how}", folder, "serving_default", {names[0]: x}, {"output_0": want})


def v1(name, resource):
    folder = f"{work}/v1-{name}"
    x = rng.standard_normal((4, 3)).astype(np.float32)
    with tf1.Graph().as_default(), tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
        tf1.disable_resource_variables() if not resource else tf1.enable_resource_variables()
        data = tf1.placeholder(tf.float32, [None, 3], "x")
        w = tf1.get_variable("w", [6, 2], partitioner=tf1.fixed_size_partitioner(3))
        b = tf1.get_variable("b", initializer=tf.constant([0.5, -0.5]))
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            f"{work}/words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, tf.constant(f"{work}/words.txt", name="asset"))
        words = tf1.placeholder(tf.string, [None], "words")
        y = tf1.nn.softmax(tf.matmul(data, tf.concat([w], 0)[:3]) + b, name="y")
        with tf1.device("/device:GPU:0"):
            far = tf.identity(y * 2, name="far")
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        builder = tf1.saved_model.Builder(folder)
        info = tf1.saved_model.utils.build_tensor_info
        make = tf1.saved_model.signature_def_utils.build_signature_def
        sigs = {"serving_default": make({"in": info(data)}, {"y": info(y), "far": info(far)}, "tensorflow/serving/predict"),
                "ids": make({"words": info(words)}, {"ids": info(table.lookup(words))}, "tensorflow/serving/predict")}
        builder.add_meta_graph_and_variables(session, ["serve", "a"], sigs, main_op=tf1.tables_initializer(), clear_devices=False,
                                             assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS))
        builder.add_meta_graph(["b"], {"serving_default": sigs["serving_default"]})
        builder.save(as_text=resource)
        want = session.run(y, {data: x})
        tf1.enable_resource_variables()
    call_ours(f"v1-{name}", folder, "serving_default", {"in": x}, {"y": want, "far": want * 2}, "--tags", "a,serve")
    call_ours(f"v1-{name}", folder, "ids", {"words": ["one", "three", "?"]}, {"ids": [0, 2, -1]}, "--tags", "serve,a")
    call_ours(f"v1-{name}-b", folder, "serving_default", {"in": x}, {"y": want, "far": want * 2}, "--tags", "b")


def attempt(name, what, *args):
    try:
        what(*args)
    except Exception as e:
        check(name, False, f"{type(e).__name__}: {' '.join(str(e).split())[:500]}")


os.makedirs(work, exist_ok=True)
open(f"{work}/words.txt", "w").write("one\ntwo\nthree\n")
for name, (make, layers) in specs.items():
    attempt(name, ours, name, make, layers)
module = Module()
attempt("module", v2, "module", module, {"math": module.math, "lookup": module.lookup, "loop": module.loop}, [
    ("math", {"x": rng.standard_normal((4, 3)).astype(np.float32)}), ("lookup", {"words": ["a", "two", "zz"]}),
    ("loop", {"n": np.int32(5), "x": np.array([1, 2.5], np.float32)})])
nested = Nested()
attempt("nested", v2, "nested", nested, None, [("serving_default", {"x": np.array([[1, 2]], np.float32)})])
for kind in ("pictures", "tokens"):
    attempt(f"keras-{kind}", keras, kind)
attempt("v1-reference", v1, "reference", False)
attempt("v1-resource", v1, "resource", True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
