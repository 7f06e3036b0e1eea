"""Trains the benchmark's cases in TensorFlow from the numbers of tests/bench/cases.c, and writes the loss of each step.

  python losses.py FOLDER [STEPS]     writes FOLDER/CASE.txt, one loss a line (the value before the step's update)
"""
import os, sys
sys.path.pop(0)  # platform.py, beside this file, is not Python's
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf


def mix(stream, count):
    x = np.uint64(stream << 32) + np.arange(count, dtype=np.uint64)
    s = np.uint64(33)
    x = (x ^ x >> s) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ x >> s) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ x >> s


def numbers(stream, *shape):
    count = int(np.prod(shape))
    return ((mix(stream, count) >> np.uint64(40)).astype(np.float32) / np.float32(16777216)).reshape(shape)


class Model:
    def __init__(self):
        self.variables = []

    def weights(self, *shape):
        scale = np.float32(1 / np.sqrt(float(np.prod(shape[:-1]))))
        v = tf.Variable((numbers(2 + len(self.variables), *shape) * np.float32(2) - np.float32(1)) * scale)
        self.variables.append(v)
        return v

    def vector(self, count, start=0):
        v = tf.Variable(np.full(count, start, np.float32))
        self.variables.append(v)
        return v

    def dense(self, i, o):
        w, b = self.weights(i, o), self.vector(o)
        return lambda x: tf.nn.bias_add(tf.matmul(x, w), b)

    def convolution(self, i, o):
        w, b = self.weights(5, 5, i, o), self.vector(o)
        return lambda x: tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)), 2, 2, "VALID")


def softmax_reg(m):
    return m.dense(784, 10)


def mlp(m):
    a, b, c = m.dense(784, 512), m.dense(512, 512), m.dense(512, 10)
    return lambda x: c(tf.nn.relu(b(tf.nn.relu(a(x)))))


def cnn512(m):
    a, b, c, d = m.convolution(1, 32), m.convolution(32, 64), m.dense(3136, 512), m.dense(512, 10)
    return lambda x: d(tf.nn.relu(c(tf.reshape(b(a(x)), (100, 3136)))))


def resnet20(m):
    def convolution(i, o, stride=1):
        w = m.weights(3, 3, i, o)
        padding = "SAME" if stride == 1 else [[0, 0], [1, 1], [1, 1], [0, 0]]
        return lambda x: tf.nn.conv2d(x, w, stride, padding)

    def norm(c):
        scale, offset = m.vector(c, 1), m.vector(c)
        return lambda x: tf.raw_ops.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=tf.zeros(0), variance=tf.zeros(0),
                                                     epsilon=1e-5, is_training=True)[0]

    def block(i, o):
        a, n, b, k = convolution(i, o, 1 if i == o else 2), norm(o), convolution(o, o), norm(o)

        def call(x):
            y = k(b(tf.nn.relu(n(a(x)))))
            if i != o:
                x = tf.pad(x[:, ::2, ::2, :], ((0, 0), (0, 0), (0, 0), (o // 4, o // 4)))
            return tf.nn.relu(y + x)
        return call

    first, n = convolution(3, 16), norm(16)
    blocks = [block(16 << max(0, i - 1) // 3, 16 << i // 3) for i in range(9)]
    last = m.dense(64, 10)

    def call(x):
        x = tf.nn.relu(n(first(x)))
        for b in blocks:
            x = b(x)
        return last(tf.reduce_mean(x, (1, 2)))
    return call


CASES = {"softmax_reg": (softmax_reg, (100, 784), "sgd"), "mlp": (mlp, (100, 784), "sgd"),
         "cnn512_adam": (cnn512, (100, 28, 28, 1), "adam"), "resnet20": (resnet20, (128, 32, 32, 3), "momentum")}


def train(name, steps):
    make, shape, optimizer = CASES[name]
    m = Model()
    logits = make(m)
    x, y = tf.constant(numbers(0, *shape)), tf.constant((mix(1, shape[0]) % np.uint64(10)).astype(np.int32))
    slots = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in m.variables]
    powers = [tf.Variable(1.0), tf.Variable(1.0)]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x)))
        gradients = tape.gradient(loss, m.variables)
        if optimizer == "adam":
            powers[0].assign(powers[0] * 0.9)
            powers[1].assign(powers[1] * 0.999)
            for v, g, (a, b) in zip(m.variables, gradients, slots):
                tf.raw_ops.ResourceApplyAdam(var=v.handle, m=a.handle, v=b.handle, beta1_power=powers[0], beta2_power=powers[1],
                                             lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, grad=g)
        elif optimizer == "momentum":
            for v, g, (a, b) in zip(m.variables, gradients, slots):
                tf.raw_ops.ResourceApplyMomentum(var=v.handle, accum=a.handle, lr=0.1, grad=g + 1e-4 * v, momentum=0.9)
        else:
            for v, g in zip(m.variables, gradients):
                tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.01, delta=g)
        return loss

    return [float(step()) for _ in range(steps)]


# --- the sequence models, by Keras itself ---

def reversible(K, characters, width):
    """Looks numbers up, and goes back by the same table."""
    class Tokens(K.layers.Embedding):
        def back(self, x):
            return K.ops.matmul(x, K.ops.transpose(self.embeddings))
    return Tokens(characters, width)


def lstm(K):
    x = K.Input((64,), dtype="int32")
    y = K.layers.Dense(64)(K.layers.LSTM(256, return_sequences=True)(K.layers.Embedding(64, 256)(x)))
    return K.Model(x, y), K.optimizers.Adam(1e-3, epsilon=1e-8), 32, 64


def gpt(K):
    L = K.layers
    x = K.Input((64,), dtype="int32")
    tokens = reversible(K, 65, 128)

    class Position(L.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=(64, 128))

        def call(self, x):
            return x + self.table

    class Back(L.Layer):
        def call(self, x):
            return tokens.back(x)

    h = Position()(tokens(x))
    for _ in range(4):
        n = L.LayerNormalization(epsilon=1e-5)(h)
        h = h + L.MultiHeadAttention(4, 32, use_bias=False)(n, n, use_causal_mask=True)
        n = L.LayerNormalization(epsilon=1e-5)(h)
        h = h + L.Dense(128, use_bias=False)(L.Dense(512, use_bias=False, activation="gelu")(n))
    y = Back()(L.LayerNormalization(epsilon=1e-5)(h))
    return K.Model(x, y), K.optimizers.AdamW(1e-3, beta_2=0.99, epsilon=1e-8, weight_decay=0.1, global_clipnorm=1.0), 12, 65


SEQUENCES = {"lstm": lstm, "gpt": gpt}


def first_value(k, v):
    if len(v.shape) < 2:
        return np.full(v.shape, 1 if v.name == "gamma" else 0, np.float32)
    scale = np.float32(1 / np.sqrt(float(np.prod(v.shape[:-1]))))
    return (numbers(2 + k, *v.shape) * np.float32(2) - np.float32(1)) * scale


def train_sequences(name, steps):
    import keras as K
    model, optimizer, batch, characters = SEQUENCES[name](K)
    for k, v in enumerate(model.trainable_variables):
        v.assign(first_value(k, v))
    x, y = ((mix(s, batch * 64) % np.uint64(characters)).astype(np.int32).reshape(batch, 64) for s in (0, 1))
    loss = K.losses.SparseCategoricalCrossentropy(from_logits=True)
    return [step(model, loss, optimizer, x, y) for _ in range(steps)]


def step(model, loss, optimizer, x, y):
    with tf.GradientTape() as tape:
        value = loss(y, model(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))
    return float(value)


if __name__ == "__main__":
    for case in list(CASES) + list(SEQUENCES):
        steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
        losses = train(case, steps) if case in CASES else train_sequences(case, steps)
        with open(os.path.join(sys.argv[1], case + ".txt"), "w") as f:
            f.writelines("%.9g\n" % v for v in losses)
        print(case, losses[0], losses[-1])
