"""Our models as ONNX: the checker accepts them and ONNX Runtime computes what we compute.

usage: onnx_models.py ONNX_WRITE TRAINYARD_TASK WORK_FOLDER [KERAS_MODELS]

One model for each family of layers, with random weights, and the recorded models of Keras with
their own.  ONNX_WRITE makes the files and says what our session gives; a line for each that differs.
The .keras files of those go to ONNX by `trainyard export` too, which must give what Keras gave.
"""
import base64
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

write, task, work = sys.argv[1:4]
recorded = sys.argv[4] if len(sys.argv) > 4 else None

image = {"name": "x", "dtype": "float32", "shape": [9, 8, 3]}
steps = {"name": "x", "dtype": "float32", "shape": [6, 5]}
numbers = {"name": "x", "dtype": "float32", "shape": [7]}
words = {"name": "x", "dtype": "int32", "shape": [6], "below": 11}
volume = {"name": "x", "dtype": "float32", "shape": [5, 6, 4, 2]}


def layer(kind, **arguments):
    return {"layer": kind, **arguments}


dense = layer("Dense", units=4)
learn = layer("Dense", units=5)
activations = ["elu", "exponential", "gelu", "hard_sigmoid", "hard_silu", "leaky_relu", "linear", "log_softmax", "mish", "relu",
               "relu6", "selu", "sigmoid", "silu", "softmax", "softplus", "softsign", "tanh", "celu", "glu", "hard_shrink",
               "hard_tanh", "log_sigmoid", "soft_shrink", "sparse_plus", "squareplus", "tanh_shrink", "threshold", "sparse_sigmoid",
               "sparsemax"]
pool = dict(pool_size=3, strides=2)
table = [
    ("dense", numbers, [layer("Dense", units=5, activation="relu"), layer("Dense", units=3, activation="softmax")]),
    ("dense-of-rank-3", steps, [layer("Dense", units=5, activation="tanh")]),
    ("einsum-dense", steps, [layer("EinsumDense", equation="abc,cd->abd", output_shape=[-1, 4], bias_axes="d")]),
    ("conv1d", steps, [layer("Conv1D", filters=4, kernel_size=3, padding="same", activation="relu"),
                       layer("Conv1D", filters=3, kernel_size=2, strides=2)]),
    ("conv1d-causal", steps, [layer("Conv1D", filters=4, kernel_size=3, padding="causal", dilation_rate=2)]),
    ("conv2d", image, [layer("Conv2D", filters=4, kernel_size=3, padding="same", strides=2, activation="relu"),
                       layer("Conv2D", filters=5, kernel_size=[2, 3])]),
    ("conv2d-dilated", image, [layer("Conv2D", filters=4, kernel_size=3, padding="same", dilation_rate=2)]),
    ("conv2d-groups", {**image, "shape": [6, 6, 4]}, [layer("Conv2D", filters=6, kernel_size=3, groups=2)]),
    ("conv3d", volume, [layer("Conv3D", filters=3, kernel_size=2, padding="same", strides=[1, 2, 1])]),
    ("depthwise", image, [layer("DepthwiseConv2D", kernel_size=3, depth_multiplier=2, padding="same", strides=2)]),
    ("separable", image, [layer("SeparableConv2D", filters=5, kernel_size=3, depth_multiplier=2)]),
    ("transposed-same", image, [layer("Conv2DTranspose", filters=4, kernel_size=3, strides=2, padding="same")]),
    ("transposed-valid", image, [layer("Conv2DTranspose", filters=4, kernel_size=[2, 5], strides=[3, 2])]),
    ("transposed-longer", image, [layer("Conv2DTranspose", filters=2, kernel_size=3, strides=2, padding="same", output_padding=1)]),
    ("transposed-between", image, [layer("Conv2DTranspose", filters=4, kernel_size=3, strides=2, padding="same", activation="relu"),
                                   layer("Conv2D", filters=2, kernel_size=3), layer("Flatten"), dense]),
    ("max-pooling-1d", steps, [learn, layer("MaxPooling1D", **pool)]),
    ("max-pooling-2d", image, [learn, layer("MaxPooling2D", padding="same", **pool)]),
    ("max-pooling-3d", volume, [learn, layer("MaxPooling3D", pool_size=2)]),
    ("average-pooling-1d", steps, [learn, layer("AveragePooling1D", padding="same", **pool)]),
    ("average-pooling-2d", image, [learn, layer("AveragePooling2D", padding="same", **pool)]),
    ("average-pooling-3d", volume, [learn, layer("AveragePooling3D", pool_size=2)]),
    ("global-max-1d", steps, [layer("GlobalMaxPooling1D"), dense]),
    ("global-max-2d", image, [layer("Conv2D", filters=4, kernel_size=3), layer("GlobalMaxPooling2D"), dense]),
    ("global-max-3d", volume, [layer("GlobalMaxPooling3D"), dense]),
    ("global-average-1d", steps, [layer("GlobalAveragePooling1D"), dense]),
    ("global-average-2d", image, [layer("Conv2D", filters=4, kernel_size=3), layer("GlobalAveragePooling2D"), dense]),
    ("global-average-2d-kept", image, [layer("Conv2D", filters=4, kernel_size=3), layer("GlobalAveragePooling2D", keepdims=True)]),
    ("global-average-3d", volume, [layer("GlobalAveragePooling3D"), dense]),
    ("flatten-after-conv", image, [layer("Conv2D", filters=4, kernel_size=3), layer("MaxPooling2D"), layer("Flatten"), dense]),
    ("reshape", steps, [layer("Reshape", target_shape=[5, -1]), layer("Permute", dims=[2, 1]), dense]),
    ("repeat", numbers, [layer("RepeatVector", n=3), dense]),
    ("padding-1d", steps, [learn, layer("ZeroPadding1D", padding=[2, 1])]),
    ("padding-2d", image, [layer("Conv2D", filters=2, kernel_size=3), layer("ZeroPadding2D", padding=[[1, 2], [0, 3]])]),
    ("cropping-1d", steps, [learn, layer("Cropping1D", cropping=[1, 2])]),
    ("cropping-2d", image, [layer("Conv2D", filters=2, kernel_size=1), layer("Cropping2D", cropping=[[1, 2], [3, 1]])]),
    ("upsampling-1d", steps, [learn, layer("UpSampling1D", size=3)]),
    ("upsampling-2d", image, [layer("Conv2D", filters=2, kernel_size=1), layer("UpSampling2D", size=[2, 3])]),
    ("upsampling-2d-bilinear", image, [learn, layer("UpSampling2D", size=[2, 3], interpolation="bilinear")]),
    ("upsampling-2d-bicubic", image, [learn, layer("UpSampling2D", size=2, interpolation="bicubic")]),
    ("batch-normalization", numbers, [dense, layer("BatchNormalization"), layer("ReLU")]),
    ("batch-normalization-2d", image, [layer("Conv2D", filters=4, kernel_size=3), layer("BatchNormalization"), layer("ReLU")]),
    ("batch-normalization-bare", image, [learn, layer("BatchNormalization", center=False, scale=False)]),
    ("layer-normalization", steps, [layer("LayerNormalization")]),
    ("layer-normalization-axes", image, [layer("LayerNormalization", axis=[1, 2])]),
    ("rms-normalization", steps, [layer("RMSNormalization")]),
    ("group-normalization", {**image, "shape": [4, 5, 6]}, [layer("GroupNormalization", groups=3)]),
    ("unit-normalization", steps, [learn, layer("UnitNormalization")]),
    ("dropouts", image, [layer("SpatialDropout2D", rate=0.4), layer("Dropout", rate=0.3), layer("GaussianNoise", stddev=1),
                         layer("GaussianDropout", rate=0.5), dense]),
    ("activations-of-conv", image, [layer("Conv2D", filters=4, kernel_size=3, activation=a) for a in ("relu", "elu", "silu", "gelu")][:2]
     + [layer("LeakyReLU", negative_slope=0.1), layer("PReLU"), layer("ELU", alpha=0.7), layer("Softmax")]),
    ("prelu-shared", image, [layer("PReLU", shared_axes=[1, 2])]),
    ("embedding", words, [layer("Embedding", input_dim=11, output_dim=4), layer("Flatten"), dense]),
    ("masked-lstm", words, [layer("Embedding", input_dim=11, output_dim=4, mask_zero=True), layer("LSTM", units=3, return_sequences=True),
                            layer("LSTM", units=4), dense]),
    ("masked-gru", words, [layer("Embedding", input_dim=11, output_dim=4, mask_zero=True), layer("GRU", units=3), dense]),
    ("masked-average", words, [layer("Embedding", input_dim=11, output_dim=4, mask_zero=True), layer("GlobalAveragePooling1D"), dense]),
    ("masked-attention", words, [layer("Embedding", input_dim=11, output_dim=4, mask_zero=True),
                                 layer("MultiHeadAttention", num_heads=2, key_dim=3)]),
    ("masking", steps, [layer("Masking", mask_value=0.5), layer("SimpleRNN", units=3), dense]),
    ("reversible-embedding", words, [layer("ReversibleEmbedding", input_dim=11, output_dim=4)]),
    ("position-embedding", steps, [layer("PositionEmbedding", sequence_length=6)]),
    ("simple-rnn", steps, [layer("SimpleRNN", units=4, return_sequences=True), layer("SimpleRNN", units=3, go_backwards=True)]),
    ("lstm", steps, [layer("LSTM", units=4, return_sequences=True), layer("LSTM", units=3)]),
    ("lstm-backwards", steps, [layer("LSTM", units=4, go_backwards=True, return_sequences=True)]),
    ("lstm-other-activation", steps, [layer("LSTM", units=4, activation="relu")]),
    ("gru", steps, [layer("GRU", units=4, return_sequences=True), layer("GRU", units=3, reset_after=False)]),
    ("attention", steps, [layer("MultiHeadAttention", num_heads=2, key_dim=3)]),
    ("attention-causal", steps, [layer("MultiHeadAttention", num_heads=2, key_dim=3, use_causal_mask=True)]),
    ("grouped-attention", steps, [layer("GroupedQueryAttention", head_dim=4, num_query_heads=4, num_key_value_heads=2)]),
    ("rescaling", {"name": "x", "dtype": "uint8", "shape": [6, 5, 1], "below": 256},
     [layer("Rescaling", scale=1 / 127.5, offset=-1), layer("Conv2D", filters=2, kernel_size=3)]),
    ("normalization", numbers, [layer("Normalization", mean=[0.1] * 7, variance=[2.0] * 7), dense]),
] + [("activation-" + a, steps, [learn, layer("Activation", activation=a)]) for a in activations if a != "glu"] + [
    ("activation-glu", steps, [dense, layer("Activation", activation="glu")])]
merges = [("add", "Add"), ("subtract", "Subtract"), ("multiply", "Multiply"), ("average", "Average"), ("maximum", "Maximum"),
          ("minimum", "Minimum"), ("concatenate", "Concatenate"), ("dot", "Dot")]


def case(name, inputs, layers, weights=None, keras=None, target=None, blocks=None):
    """A spec wants something to learn, and a target of the shape of its output: `probe` tells that."""
    spec = {"model": {"keras": keras} if keras else {"layers": layers, "blocks": blocks or {}},
            "data": {"dataset": "x", "batch_size": 2}, "train": {"loss": "mean_squared_error", "optimizer": "SGD", "metrics": [], "steps": 1}}
    return {"name": name, "spec": spec, "inputs": inputs, "weights": weights,
            "target": {"name": "y", "dtype": "float32", "shape": target or [], **({} if keras else {"like": True})},
            **({} if keras else {"probe": {**spec, "model": {**spec["model"], "layers": layers + [layer("Flatten"), layer("Dense", units=1)]}}})}


def compare(name, rtol=1e-5, atol=1e-5):
    """None, or what is wrong with a model that was written."""
    path = f"{work}/{name}.onnx"
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {value.name: np.load(f"{work}/{name}.in{i}.npy") for i, value in enumerate(session.get_inputs())}
    wanted = np.load(f"{work}/{name}.out.npy")
    for value in session.get_inputs():
        if value.shape[0] != "batch":
            return f"the first dimension of {value.name} is {value.shape[0]}, not open"
    for rows in (len(wanted), 1):  # the number of examples is open
        got, = session.run(["predictions"], {key: value[:rows] for key, value in feeds.items()})
        if got.shape != wanted[:rows].shape or got.dtype != wanted.dtype:
            return f"gives {got.dtype}{got.shape}, wanted {wanted.dtype}{wanted[:rows].shape}"
        if not np.allclose(got, wanted[:rows], rtol=rtol, atol=atol, equal_nan=True):
            return f"differs by {np.max(np.abs(got - wanted[:rows]))}"
    declared = [d if isinstance(d, int) else None for d in session.get_outputs()[0].shape]
    if len(declared) != wanted.ndim or any(d is not None and d != n for d, n in zip(declared, wanted.shape)):
        return f"declares {declared} for {wanted.shape}"
    return None


cases = [case(name, [given], layers) for name, given, layers in table]
for name, merge in merges:
    inputs = [{"name": key, "dtype": "float32", "shape": [5]} for key in "ab"]
    extra = {"axes": 1} if merge == "Dot" else {}
    cases.append(case(name, inputs, [layer("InputLayer", name="a"), layer("InputLayer", name="b"),
                                       layer("Dense", units=5, inputs=["a"], name="c"), layer(merge, inputs=["c", "b"], **extra)]))
inputs = [{**image, "name": key} for key in "ab"]
cases.append(case("concatenate-images", inputs, [
    layer("InputLayer", name="a"), layer("InputLayer", name="b"),
    layer("Conv2D", filters=2, kernel_size=3, padding="same", inputs=["a"], name="left"),
    layer("Conv2D", filters=3, kernel_size=3, padding="same", inputs=["b"], name="right"),
    layer("Concatenate", inputs=["left", "right"])]))
cases.append(case("residual", [image], [
    layer("Conv2D", filters=4, kernel_size=3, padding="same", name="first"), layer("BatchNormalization", name="normal"),
    layer("Conv2D", filters=4, kernel_size=3, padding="same", activation="relu", name="second"),
    layer("Add", inputs=["normal", "second"]), layer("GlobalAveragePooling2D"), layer("Dense", units=3, activation="softmax")]))
recurrent = {"units": 3, "return_sequences": True}
for name, around, config in (("bidirectional-lstm", "Bidirectional", {"layer": {"class_name": "LSTM", "config": recurrent}, "merge_mode": "concat"}),
                             ("bidirectional-gru", "Bidirectional", {"layer": {"class_name": "GRU", "config": recurrent}, "merge_mode": "sum"}),
                             ("time-distributed", "TimeDistributed", {"layer": {"class_name": "Dense", "config": {"units": 6}}})):
    stack = [{"class_name": "InputLayer", "config": {"batch_shape": [None, 6, 5], "dtype": "float32", "name": "x"}},
             {"class_name": around, "config": {"name": "around", **config}}]
    model = {"class_name": "Sequential", "config": {"name": "wrapped", "layers": stack}}
    cases.append(case(name, [steps], None, None, model, [6, 3 if name == "bidirectional-gru" else 6]))
for name, given in (("digits-cnn", {**image, "shape": [28, 28, 1]}), ("cifar-resnet20", {**image, "shape": [32, 32, 3]}),
                    ("shakespeare-lstm", {**words, "shape": [20], "below": 60}), ("shakespeare-gpt", {**words, "shape": [64], "below": 60})):
    example = json.load(open(f"examples/{name}.json"))
    cases.append(case("example-" + name, [given], example["model"]["layers"], blocks=example["model"].get("blocks")))
for name in sorted(os.listdir(recorded)) if recorded and os.path.isdir(recorded) else []:
    folder = os.path.join(recorded, name)
    model = json.load(open(f"{folder}/model.json"))
    wanted = json.load(open(f"{folder}/expected.json"))
    names = [l["config"]["name"] for l in model["config"]["layers"] if l["class_name"] == "InputLayer"]
    order = model["config"].get("input_layers")
    if order:
        names = [entry[0] for entry in (order if isinstance(order[0], list) else [order])]
    inputs = [{"name": key, "dtype": value["dtype"], "shape": value["shape"][1:], **({"below": 12} if value["dtype"] == "int32" else {})}
              for key, value in zip(names, wanted["input"])]
    made = case("keras-" + name, inputs, None, f"{folder}/model.weights.h5", model, wanted["output"][0]["shape"][1:])
    cases.append(made)


def array(value):
    return np.frombuffer(base64.b64decode(value["base64"]), value["dtype"]).reshape(value["shape"])


def compare_with_keras(folder):
    """None, or how a .keras file as ONNX differs from what Keras computed."""
    out = f"{work}/file.onnx"
    done = subprocess.run([task, "export", f"{folder}/model.keras", out, "--force"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    wanted = json.load(open(f"{folder}/expected.json"))
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    got, = session.run(None, {i.name: array(value) for i, value in zip(session.get_inputs(), wanted["input"])})
    difference = np.max(np.abs(got - array(wanted["output"][0])))
    return None if difference < 1e-5 else f"differs by {difference}"


with open(f"{work}/cases.jsonl", "w") as file:
    file.writelines(json.dumps(made) + "\n" for made in cases)
result = subprocess.run([write, f"{work}/cases.jsonl", work], capture_output=True, text=True)
failed = [line for line in result.stdout.splitlines() if line.startswith("FAIL")]
if result.returncode not in (0, 1) or (result.returncode and not failed):
    failed.append(f"FAIL onnx-write: exit code {result.returncode}: {result.stderr[-300:]}")
unwritten = {line.split(":")[0].removeprefix("FAIL onnx/") for line in failed}
for made in cases:
    if made["name"] in unwritten:
        continue
    try:
        why = compare(made["name"])
    except Exception as problem:
        why = f"{type(problem).__name__}: {str(problem)[:600]}"
    if why:
        failed.append(f"FAIL onnx/{made['name']}: {why}")
files = sorted(os.listdir(recorded)) if recorded and os.path.isdir(recorded) else []
for name in files:
    why = compare_with_keras(os.path.join(recorded, name))
    if why:
        failed.append(f"FAIL onnx/{name}.keras: {why}")
print("\n".join(failed + [f"{len(cases) + len(files) - len(failed)} of {len(cases) + len(files)} models are the same in ONNX Runtime {onnxruntime.__version__}"]))
sys.exit(bool(failed))
