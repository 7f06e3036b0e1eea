"""Trains the benchmark's cases in TensorFlow from the numbers of tests/bench/cases.c, and writes the loss of each step.

  python losses.py FOLDER [STEPS]     writes FOLDER/CASE.txt, one loss a line (the value before the step's update)
"""
import os, sys
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

    def biases(self, count):
        v = tf.Variable(np.zeros(count, np.float32))
        self.variables.append(v)
        return v

    def dense(self, i, o):
        w, b = self.weights(i, o), self.biases(o)
        return lambda x: tf.nn.bias_add(tf.matmul(x, w), b)

    def convolution(self, i, o):
        w, b = self.weights(5, 5, i, o), self.biases(o)
        return lambda x: tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b)), 2, 2, "VALID")


def softmax_reg(m):
    return m.dense(784, 10)


def mlp(m):
    a, b, c = m.dense(784, 512), m.dense(512, 512), m.dense(512, 10)
    return lambda x: c(tf.nn.relu(b(tf.nn.relu(a(x)))))


def cnn512(m):
    a, b, c, d = m.convolution(1, 32), m.convolution(32, 64), m.dense(3136, 512), m.dense(512, 10)
    return lambda x: d(tf.nn.relu(c(tf.reshape(b(a(x)), (100, 3136)))))


CASES = {"softmax_reg": (softmax_reg, (100, 784), False), "mlp": (mlp, (100, 784), False), "cnn512_adam": (cnn512, (100, 28, 28, 1), True)}


def train(name, steps):
    make, shape, adam = CASES[name]
    m = Model()
    logits = make(m)
    x, y = tf.constant(numbers(0, *shape)), tf.constant((mix(1, 100) % np.uint64(10)).astype(np.int32))
    slots = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in m.variables] if adam else []
    powers = [tf.Variable(1.0), tf.Variable(1.0)]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x)))
        gradients = tape.gradient(loss, m.variables)
        if adam:
            powers[0].assign(powers[0] * 0.9)
            powers[1].assign(powers[1] * 0.999)
            for v, g, (a, b) in zip(m.variables, gradients, slots):
                tf.raw_ops.ResourceApplyAdam(var=v.handle, m=a.handle, v=b.handle, beta1_power=powers[0], beta2_power=powers[1],
                                             lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, grad=g)
        else:
            for v, g in zip(m.variables, gradients):
                tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.01, delta=g)
        return loss

    return [float(step()) for _ in range(steps)]


if __name__ == "__main__":
    for case in CASES:
        losses = train(case, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
        with open(os.path.join(sys.argv[1], case + ".txt"), "w") as f:
            f.writelines("%.9g\n" % v for v in losses)
        print(case, losses[0], losses[-1])
