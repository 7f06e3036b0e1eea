"""keras_losses.py - the losses that keras_test.c expects, from Keras itself.

    python3 -m venv build/venv && build/venv/bin/pip install tensorflow-cpu==2.21.0
    build/venv/bin/python tests/train/keras_losses.py

Weights, images and labels are made by the same formulas as in keras_test.c.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from keras import Sequential, layers, losses, optimizers

BATCH, STEPS, CLASSES = 4, 10, 3


def values(count, seed, scale):
    i = np.arange(count, dtype=np.int64)
    return (((i * 7919 + seed * 104729) % 211) / 211.0 - 0.5) * scale


def batch(step, shape):
    count = BATCH * int(np.prod(shape))
    x = (values(count, 1000 + step, 1.0) + 0.5).astype(np.float32).reshape((BATCH,) + shape)
    y = (np.arange(BATCH) * 5 + step * 7) % CLASSES
    return x, y.astype(np.int32)


def run(name, model, optimizer, shape):
    model.build((BATCH,) + shape)
    for i, w in enumerate(model.trainable_weights):
        w.assign(values(int(np.prod(w.shape)), i, 1.0).astype(np.float32).reshape(w.shape))
    softmax = model.layers[-1].get_config().get("activation") == "softmax"
    loss_of = losses.SparseCategoricalCrossentropy(from_logits=not softmax)
    out = []
    for step in range(STEPS):
        x, y = batch(step, shape)
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)
        out.append(float(loss))
    print(name, ", ".join("%.9g" % v for v in out))


def mlp():
    return Sequential([layers.Flatten(), layers.Dense(8, activation="relu"), layers.Dense(CLASSES)])


def cnn():
    return Sequential([
        layers.Conv2D(4, 3, padding="same", activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(5, (2, 3), strides=(1, 2), use_bias=False, activation="tanh"),
        layers.AveragePooling2D(2, strides=1, padding="same"), layers.Flatten(),
        layers.Dense(6, activation="sigmoid"), layers.Dense(CLASSES, activation="softmax")])


def wide():
    return Sequential([
        layers.Dense(5, activation="elu"), layers.Flatten(),
        layers.Dense(7, activation="softplus"), layers.Activation("softmax"), layers.Dense(CLASSES)])


run("mlp_sgd", mlp(), optimizers.SGD(0.1), (4, 4, 1))
run("mlp_momentum", mlp(), optimizers.SGD(0.05, momentum=0.9), (4, 4, 1))
run("mlp_nesterov", mlp(), optimizers.SGD(0.05, momentum=0.9, nesterov=True), (4, 4, 1))
run("cnn_adam", cnn(), optimizers.Adam(0.01), (8, 8, 2))
run("wide_adam", wide(), optimizers.Adam(0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3), (3, 2, 2))
