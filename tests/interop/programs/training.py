"""training.py - small models with optimizers of TensorFlow 1.x, several steps of each."""

import numpy as np
import tensorflow as tf

from programs.program import v1


def optimizer(p):
    rate = float(p.rng.uniform(0.01, 0.2))
    t = v1.train
    return p.pick(
        lambda: t.GradientDescentOptimizer(rate), lambda: t.MomentumOptimizer(rate, 0.8, use_nesterov=p.flag()),
        lambda: t.AdamOptimizer(rate), lambda: t.AdagradOptimizer(rate), lambda: t.RMSPropOptimizer(rate, 0.9, 0.3),
        lambda: t.RMSPropOptimizer(rate, centered=True), lambda: t.AdadeltaOptimizer(rate),
        lambda: t.FtrlOptimizer(rate, l1_regularization_strength=0.01),
        lambda: t.ProximalAdagradOptimizer(rate, l1_regularization_strength=0.01),
        lambda: t.ProximalGradientDescentOptimizer(rate, l2_regularization_strength=0.01))()


def program(p):
    resource = p.flag()
    count = [0]

    def variable(shape, low=-0.5, high=0.5, train=True):
        count[0] += 1
        return v1.get_variable(f"v{count[0]}", initializer=tf.constant(p.values(shape, low, high, tf.float32)),
                               trainable=train, use_resource=resource)

    batch, width = p.int(1, 4), p.int(2, 5)
    features = v1.placeholder(tf.float32, [batch, width])
    words = v1.placeholder(tf.int32, [batch, 2])
    labels = v1.placeholder(tf.int32, [batch])
    table = variable((6, width))
    x = features
    if p.chance(0.6):
        x = x + tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1)
    for _ in range(p.int(1, 2)):
        out = p.int(2, 5)
        x = tf.matmul(x, variable((int(x.shape[1]), out))) + variable((out,))
        x = p.pick(tf.nn.relu, tf.tanh, tf.sigmoid, tf.nn.elu, tf.nn.softplus)(x)
    if p.chance(0.3):
        w = variable((int(x.shape[1]), int(x.shape[1])))
        x = v1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]
    logits = tf.matmul(x, variable((int(x.shape[1]), 3)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    if p.chance(0.3):
        loss += 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in v1.trainable_variables()])
    step = v1.train.get_or_create_global_step()
    chosen = optimizer(p)
    pairs = [(g, v) for g, v in chosen.compute_gradients(loss) if g is not None]
    if p.chance(0.3):
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
        pairs = list(zip(clipped, [v for _, v in pairs]))
    train = chosen.apply_gradients(pairs, global_step=step)
    if resource and p.chance(0.3):  # by reference, initial averages are read as chance has it
        average = v1.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([train]):
            train = average.apply(v1.trainable_variables())
    p.run(target=[v1.global_variables_initializer()])
    for _ in range(p.int(2, 5)):
        feeds = {features: p.values((batch, width), -1, 1, tf.float32), words: p.ints((batch, 2), 0, 5),
                 labels: p.ints((batch,), 0, 2)}
        p.feeds = dict(feeds)
        p.run([loss], kind="loose")
        p.feeds = dict(feeds)
        p.run(target=[train])
    # Ftrl divides the difference of two roots, of which little is left for small gradients.
    rough = isinstance(chosen, v1.train.FtrlOptimizer)
    p.run([v.read_value() for v in v1.global_variables()], kind="rough" if rough else "loose")
