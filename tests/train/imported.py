"""imported.py - the graphs of imported_test.c, by TensorFlow itself, and the losses that it trains them to.

    build/venv/bin/python tests/train/imported.py

A softmax regression with momentum, once with resource variables and once with variables by
reference, as a program of TensorFlow 1 exports it, without the definitions of ops that it carries.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
STEPS = 6


def build(resource):
    graph = tf1.Graph()
    with graph.as_default():
        tf1.get_variable_scope().set_use_resource(resource)
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        y = tf1.placeholder(tf.int64, [None], name="y_")
        keep = tf1.placeholder_with_default(1.0, [], name="keep")
        start = tf1.constant_initializer(np.linspace(-0.5, 0.5, 12).reshape(4, 3))
        kernel = tf1.get_variable("dense/kernel", [4, 3], initializer=start)
        bias = tf1.get_variable("dense/bias", [3], initializer=tf1.zeros_initializer())
        logits = tf.matmul(x * keep, kernel) + bias
        tf.nn.softmax(logits, name="probabilities")
        loss = tf1.losses.sparse_softmax_cross_entropy(y, logits)
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.MomentumOptimizer(0.5, 0.9).minimize(loss, global_step=step)
        meta = tf1.train.export_meta_graph(strip_default_attrs=True)
    meta.meta_info_def.ClearField("stripped_op_list")
    return graph, loss, train, meta.SerializeToString()


def data():
    """The same numbers as in imported_test.c."""
    i = np.arange(STEPS * 8 * 4)
    x = ((i * 37 % 64) / 32.0 - 1).astype(np.float32).reshape(STEPS, 8, 4)
    return x, (np.arange(STEPS * 8) * 7 % 3).reshape(STEPS, 8)


def losses(graph, loss, train):
    x, y = data()
    with tf1.Session(graph=graph) as session:
        with graph.as_default():
            session.run(tf1.global_variables_initializer())
        return [session.run([loss, train], {"x:0": x[i], "y_:0": y[i]})[0] for i in range(STEPS)]


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    for name, resource in (("resource", True), ("reference", False)):
        graph, loss, train, meta = build(resource)
        with open(os.path.join(folder, "imported_%s.meta" % name), "wb") as file:
            file.write(meta)
        print(name, ", ".join("%.8g" % v for v in losses(graph, loss, train)))


main()
