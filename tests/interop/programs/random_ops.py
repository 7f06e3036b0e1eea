"""random_ops.py - random numbers from seeds, several runs of each."""

import numpy as np
import tensorflow as tf

from programs.program import raw


def seeds(p):
    return {"seed": p.int(1, 1 << 40), "seed2": p.int(0, 1 << 40)}


def program(p):
    index = p.index_type()

    def shape(low=0, high=3, most=6):
        return p.shape(low, high, most)

    def as_shape(s):
        return p.give(np.array(s, index))
    floats = "half bfloat16 float32 float64"

    def fill(name):
        return lambda: (getattr(raw, name)(shape=as_shape(shape()), dtype=p.dtype(floats), **seeds(p)), "sum")

    def uniform_int():
        dtype = p.dtype("int32 int64")
        low = p.int(-5, 5)
        return raw.RandomUniformInt(shape=as_shape(shape()), minval=p.give(np.array(low, dtype.as_numpy_dtype)),
                                    maxval=p.give(np.array(low + p.int(0 if p.chance(0.1) else 1, 9),
                                                           dtype.as_numpy_dtype)), **seeds(p)), "exact"

    def shuffle():
        return raw.RandomShuffle(value=p.give(p.values(shape(0, 3, 7), dtype=p.dtype(
            "float32 int64 string bool half complex64"))), **seeds(p)), "exact"

    def multinomial():
        logits = p.values((p.int(0 if p.chance(0.1) else 1, 3), p.int(1, 5)), -3, 3, p.dtype(floats))
        return raw.Multinomial(logits=p.give(logits), num_samples=p.give(np.int32(p.int(0, 9))),
                               output_dtype=p.dtype("int32 int64"), **seeds(p)), "exact"

    def truncated():
        dtype = p.dtype("half bfloat16 float32 float64")
        batch = p.int(1, 3)
        size = (batch,) + tuple(shape(0, 2, 4))
        alike = p.pick((), (1,), (batch,))
        means = p.values(alike, -2, 2, dtype)
        low = p.values(alike, -4, 0, dtype)
        span = p.values(alike, 0.5, 5, dtype)
        return raw.ParameterizedTruncatedNormal(
            shape=as_shape(size), means=p.give(means), stdevs=p.give(p.values(alike, 0.1, 3, dtype)),
            minvals=p.give(low), maxvals=p.give(low + span), **seeds(p)), "loose"

    def gamma():
        dtype = p.dtype("half float32 float64")
        return raw.RandomGamma(shape=as_shape(shape(0, 2)), alpha=p.give(p.values(shape(0, 2, 3), 0.1, 6, dtype)),
                               **seeds(p)), "loose"

    def poisson():
        rate = p.values(shape(0, 2, 3), 0.0, p.pick(3, 30), p.dtype("half float32 float64 int32 int64"))
        return raw.RandomPoissonV2(shape=as_shape(shape(0, 2)), rate=p.give(rate),
                                   dtype=p.dtype("int64 int32 float32 float64 half"), **seeds(p)), "exact"

    def sampler():
        name = p.pick("Uniform", "LogUniform", "LearnedUnigram", "All", "FixedUnigram")
        true = p.int(1, 2)
        top = p.int(3, 20)
        classes = p.ints((p.int(1, 3), true), 0, top - 1, "int64")
        unique = p.flag()
        count = p.int(1, top)
        more = {"range_max": top}
        if name == "All":
            more, count = {}, top
        if name == "FixedUnigram":
            more.update(unigrams=p.rng.uniform(0.1, 5, top).tolist(), distortion=p.pick(1.0, 0.75, 0.0))
        return getattr(raw, name + "CandidateSampler")(
            true_classes=p.give(classes), num_true=true, num_sampled=count, unique=unique, **more, **seeds(p)), "few"

    def dropout():
        x = p.give(p.values(shape(1, 3), -2, 2, p.dtype("float32 float64 half")))
        return tf.nn.dropout(x, rate=p.rng.uniform(0.1, 0.9), seed=p.int(1, 99)), "few"

    def crop():
        size = p.shape(1, 3, 6, 1)
        part = [p.int(1, d) for d in size]
        image = p.give(p.values(size, -2, 2, p.dtype("float32 uint8 int64")))
        return tf.image.random_crop(image, part, seed=p.int(1, 99)), "exact"
    makers = [fill("RandomUniform"), fill("RandomStandardNormal"), fill("TruncatedNormal"), uniform_int, shuffle,
              multinomial, truncated, gamma, poisson, sampler, dropout, crop]
    nodes = []
    for _ in range(p.int(1, 3)):
        p.feeds.clear()
        made = p.attempt(p.pick(*makers))
        if made is not None:
            nodes.append((*made, dict(p.feeds)))
    for _ in range(p.int(2, 5)):
        if nodes:
            node, kind, feeds = p.pick(*nodes)
            p.feeds = dict(feeds)
            p.run([node], kind=kind)


def generators(p):
    """tf.random.Generator: its state is a variable."""
    state = raw.VarHandleOp(dtype=tf.int64, shape=[3], shared_name="state")
    p.run(target=[raw.AssignVariableOp(resource=state, value=p.give(p.ints((3,), -9, 1 << 40, "int64")))])
    index = p.index_type()

    def size():
        return p.give(np.array(p.shape(0, 2, 6), index))

    def algorithm():
        return p.give(np.int64(1 if p.chance(0.95) else p.pick(0, 2)))

    def draw():
        name = p.pick("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal")
        p.run([getattr(raw, name)(resource=state, algorithm=algorithm(), shape=size(),
                                  dtype=p.dtype("half bfloat16 float32 float64"))], kind="sum")

    def full():
        p.run([raw.StatefulUniformFullInt(resource=state, algorithm=algorithm(), shape=size(),
                                          dtype=p.dtype("int32 int64 uint32 uint64"))])

    def between():
        dtype = p.dtype("int32 int64 uint32 uint64")
        low = p.int(0, 5)
        p.run([raw.StatefulUniformInt(resource=state, algorithm=algorithm(), shape=size(), minval=p.give(
            np.array(low, dtype.as_numpy_dtype)), maxval=p.give(np.array(low + p.int(1, 9), dtype.as_numpy_dtype)))])

    def binomial():
        p.run([raw.StatefulRandomBinomial(resource=state, algorithm=algorithm(), shape=p.give(np.array([4], index)),
                                          counts=p.give(np.float32(p.int(0, 30))), probs=p.give(
                                              np.float32(p.rng.uniform(0, 1))), dtype=p.dtype("int32 int64 float32"))])

    def skip():
        if p.flag():
            p.run(target=[raw.RngSkip(resource=state, algorithm=algorithm(), delta=p.give(np.int64(p.int(0, 9))))])
        else:
            p.run([raw.RngReadAndSkip(resource=state, alg=p.give(np.int32(1)), delta=p.give(np.uint64(p.int(0, 9))))])

    def show():
        p.run([raw.ReadVariableOp(resource=state, dtype=tf.int64)])
    # A binomial on a state that shares its memory with what was assigned, TensorFlow does not move on.
    p.attempt(full)
    p.actions([draw, draw, full, between, binomial, skip, show], 3, 9)
