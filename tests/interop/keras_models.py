"""keras_models.py FOLDER [NAME...] - models that Keras itself makes, runs, trains and saves, for keras-vectors.

Each becomes FOLDER/NAME with model.json, expected.json, model.weights.h5, model.keras and, as Keras 2 wrote it, model.h5.
"""
import base64
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np
from keras import layers as L

rng = np.random.default_rng(7)


def numbers(*shape):
    return rng.normal(size=shape).astype("float32")


def tokens(rows, steps, most=12):
    """Sequences that end with padding, one of them whole, one with a gap."""
    x = rng.integers(1, most, (rows, steps)).astype("int32")
    for row in range(1, rows):
        x[row, rng.integers(1, steps) :] = 0
    x[-1, 0] = 0
    x[-1, -1] = 3
    return x


def classes(rows, count, *more):
    return rng.integers(0, count, (rows, *more)).astype("int64")


SPARSE = dict(loss=lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True))
MSE = dict(loss=lambda: keras.losses.MeanSquaredError())
MODELS = {}


def model(function):
    MODELS[function.__name__.replace("_", "-")] = function
    return function


@model
def bidirectional():
    m = keras.Sequential([L.Input((5, 4)), L.Bidirectional(L.LSTM(3, return_sequences=True)), L.Bidirectional(L.GRU(3), merge_mode="sum"), L.Dense(3)])
    return m, [numbers(4, 5, 4)], classes(4, 3), SPARSE


@model
def backward_layer_of_its_own():
    m = keras.Sequential([L.Input((5, 4)), L.Bidirectional(L.SimpleRNN(3), backward_layer=L.SimpleRNN(3, activation="relu", go_backwards=True)), L.Dense(3)])
    return m, [numbers(4, 5, 4)], classes(4, 3), SPARSE


@model
def distributed():
    m = keras.Sequential([L.Input((4, 6, 6, 2)), L.TimeDistributed(L.Conv2D(3, 3)), L.TimeDistributed(L.LayerNormalization()),
                          L.TimeDistributed(L.Flatten()), L.LSTM(4), L.Dense(2)])
    return m, [numbers(3, 4, 6, 6, 2)], classes(3, 2), SPARSE


@model
def attention():
    x = i = L.Input((6, 8))
    x = L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = L.GroupQueryAttention(4, 4, 2)(x, x)
    x = L.Attention(use_scale=True)([x, i])
    return keras.Model(i, L.Dense(1)(x)), [numbers(3, 6, 8)], numbers(3, 6, 1), MSE


@model
def shared():
    a, b = L.Input((4,), name="left"), L.Input((4,), name="right")
    tower = L.Dense(5, activation="tanh", name="tower")
    x = L.Concatenate()([tower(a), L.BatchNormalization()(tower(b))])
    x = L.Add()([L.Dense(3)(x), L.Dense(3, use_bias=False)(tower(a))])
    return keras.Model([a, b], x), [numbers(6, 4), numbers(6, 4)], classes(6, 3), SPARSE


@model
def normalization():
    n = L.Normalization()
    n.adapt(numbers(50, 4) * 3 + 2)
    m = keras.Sequential([L.Input((4,)), n, L.Dense(3, name="other"), L.LayerNormalization(), L.PReLU(), L.Dense(2, name="first")])
    return m, [numbers(6, 4)], classes(6, 2), SPARSE


@model
def convolutions():
    m = keras.Sequential([L.Input((9, 9, 3)), L.SeparableConv2D(4, 3), L.DepthwiseConv2D(3, padding="same"), L.Conv2DTranspose(3, 2), L.GroupNormalization(3),
                          L.ReLU(), L.GlobalAveragePooling2D(), L.Dense(4)])
    return m, [numbers(4, 9, 9, 3)], classes(4, 4), SPARSE


@model
def branches():
    """Keras lists these layers in another order than that in which they are made."""
    i = L.Input((5,))
    late = L.Dense(4)(i)
    x = L.Dense(4)(L.Dense(4, activation="relu")(i))
    x = L.Dense(4)(L.Add()([x, late]))
    y = L.Multiply()([L.Dense(4)(i), x])
    return keras.Model(i, L.Dense(2)(L.Add()([y, late]))), [numbers(5, 5)], classes(5, 2), SPARSE


@model
def nested():
    inner = keras.Sequential([L.Input((4,)), L.Dense(5, activation="relu"), L.BatchNormalization(), L.Dense(4)], name="block")
    j = L.Input((4,))
    deep = keras.Model(j, L.Add()([inner(j), L.Dense(4)(j)]), name="deep")
    i = L.Input((4,))
    return keras.Model(i, L.Dense(2)(deep(L.Dense(4)(i)))), [numbers(6, 4)], classes(6, 2), SPARSE


@model
def called_twice():
    block = keras.Sequential([L.Input((4,)), L.Dense(4, activation="tanh"), L.Dense(4)], name="block")
    a, b = L.Input((4,), name="left"), L.Input((4,), name="right")
    return keras.Model([a, b], L.Dense(2)(L.Subtract()([block(a), block(b)]))), [numbers(5, 4), numbers(5, 4)], classes(5, 2), SPARSE


# --- masks ---


def masked(function):
    """A model of sequences: from the tokens' vectors, some of which are padding, to what `function` makes of them."""

    def make():
        i = L.Input((7,), dtype="int32")
        x = L.Embedding(12, 6, mask_zero=True)(i)
        out, steps = function(x)
        y = classes(5, 3, 7) if steps else classes(5, 3)
        return keras.Model(i, L.Dense(3)(out)), [tokens(5, 7)], y, SPARSE

    MODELS["masked-" + function.__name__.replace("_", "-")] = make
    return function


@masked
def rnns(x):
    x = L.GRU(5, return_sequences=True)(L.LSTM(5, return_sequences=True)(x))
    return L.SimpleRNN(4)(L.Dropout(0)(x)), False


@masked
def steps(x):
    x = L.LSTM(5, return_sequences=True)(x)
    return L.LayerNormalization()(L.Activation("tanh")(x)), True


@masked
def both_ways(x):
    x = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    return L.Bidirectional(L.GRU(4, reset_after=False), merge_mode="ave")(x), False


@masked
def backwards(x):
    return L.GRU(4, go_backwards=True, return_sequences=True)(x), True


@masked
def zero_output(x):
    x = L.LSTM(4, return_sequences=True, zero_output_for_mask=True)(x)
    return L.Flatten()(x), False


@masked
def average(x):
    return L.GlobalAveragePooling1D()(L.TimeDistributed(L.Dense(4, activation="relu"))(x)), False


@masked
def batches(x):
    return L.BatchNormalization(momentum=0.5)(x), True


@masked
def self_attention(x):
    a = L.MultiHeadAttention(2, 3)(x, x)
    return L.LayerNormalization()(L.Add()([x, a])), True


@masked
def causal_attention(x):
    return L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True), True


@masked
def grouped_attention(x):
    return L.GroupQueryAttention(4, 4, 2)(x, x), True


@masked
def dot_attention(x):
    return L.Attention()([L.Dense(6)(x), x]), True


@masked
def causal_dot_attention(x):
    return L.Attention()([x, x, L.Dense(6)(x)]), True


@masked
def merged(x):
    return L.LSTM(4)(L.Concatenate(name="both")([L.Add()([x, L.Dense(6)(x)]), L.Dense(2)(x)])), False


@masked
def one_after_another(x):
    return L.LSTM(4)(L.Concatenate(axis=1)([x, L.Dense(6)(x)])), False


@masked
def one_without(x):
    return L.GRU(4)(L.Concatenate(axis=1)([x, L.Reshape((7, 6))(x)])), False


@model
def masking():
    x = numbers(5, 7, 3)
    x[1, 4:] = 0
    x[3, :2] = 0
    m = keras.Sequential([L.Input((7, 3)), L.Masking(), L.LSTM(4, return_sequences=True), L.Dense(1)])
    return m, [x], numbers(5, 7, 1), MSE


@model
def masked_sum():
    m = keras.Sequential([L.Input((7,), dtype="int32"), L.Embedding(12, 6, mask_zero=True), L.GRU(4, return_sequences=True), L.Dense(3)])
    loss = dict(loss=lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum"))
    return m, [tokens(5, 7)], classes(5, 3, 7), loss


# --- writing ---


def array(value):
    value = np.asarray(value)
    return {"dtype": value.dtype.name, "shape": list(value.shape), "base64": base64.b64encode(value.tobytes()).decode()}


def described(thing):
    config = {k: v for k, v in thing.get_config().items() if k not in ("name", "dtype")}
    return {"class": type(thing).__name__, "config": config}


def write(folder, name):
    global rng
    rng = np.random.default_rng(7)
    keras.utils.set_random_seed(7)
    keras.backend.clear_session()
    made, inputs, y, how = MODELS[name]()
    for variable in made.trainable_variables:  # nothing is to be hidden by zeros
        variable.assign(variable + 0.1 * numbers(*variable.shape))
    loss, optimizer = how["loss"](), how.get("optimizer", lambda: keras.optimizers.SGD(0.05, momentum=0.5))()
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(f"{path}/model.json", "w") as f:
        f.write(made.to_json())
    made.save_weights(f"{path}/model.weights.h5")
    made.save(f"{path}/model.keras")
    if name != "nested":  # version 2 flattens the weights of models in models, in an order of its own
        made.save(f"{path}/model.h5")
    fed = inputs if len(inputs) > 1 else inputs[0]
    expected = {"input": [array(x) for x in inputs], "y": array(y), "loss": described(loss), "optimizer": described(optimizer), "rtol": 1e-4, "atol": 1e-5}
    expected["output"] = [array(made(fed, training=False))]
    made.compile(optimizer, loss, run_eagerly=False)
    expected["losses"] = [float(made.train_on_batch(fed, y)) for _ in range(5)]
    expected["output_after"] = [array(made(fed, training=False))]
    with open(f"{path}/expected.json", "w") as f:
        json.dump(expected, f)


if __name__ == "__main__":
    for name in sys.argv[2:] or MODELS:
        write(sys.argv[1], name)
