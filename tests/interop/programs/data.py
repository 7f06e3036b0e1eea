"""data.py - random pipelines of tf.data, read to their end, their error or a bound."""

import numpy as np
import tensorflow as tf

from programs.program import raw, v1

Data = v1.data.Dataset
ELEMENTS = 24


class Pipeline:
    """A dataset of int64 scalars, vectors of unknown length, or pairs, changed step by step."""

    def __init__(self, p, depth=1):
        self.p, self.depth = p, depth
        self.dataset = self.source()

    def source(self):
        p = self.p
        return p.pick(
            lambda: Data.range(p.int(-3, 12)),
            lambda: Data.range(p.int(-5, 5), p.int(-5, 15), p.pick(1, 2, 3, -1, -2)),
            lambda: Data.from_tensor_slices(p.ints((p.int(0, 9),), -9, 9, "int64")),
            lambda: Data.from_tensors(np.int64(p.int(-9, 9))).repeat(p.int(0, 4)),
            lambda: Data.range(p.int(1, 6)).flat_map(lambda i: Data.range(i)),
            lambda: v1.data.experimental.RandomDataset(p.int(1, 99)).take(p.int(0, 9)))()

    def arithmetic(self, alone=True):
        """`alone`: called one at a time, so that random numbers come in order."""
        p = self.p
        k, m = p.int(-4, 4), p.int(1, 5)
        return p.pick(lambda x: x + k, lambda x: x * k, lambda x: x // m, lambda x: x % m,
                      lambda x: tf.where(x > k, x, -x), lambda x: tf.cond(x % 2 > 0, lambda: x * 10, lambda: x - k),
                      lambda x: x + (tf.random.uniform([], 0, 9, tf.int64, seed=m) if alone else k),
                      lambda x: tf.while_loop(lambda i, s: i < x % 5, lambda i, s: (i + 1, s + i),
                                              [np.int64(0), x])[1])

    def fails(self):
        bad = self.p.int(0, 9)

        def check(x):
            with tf.control_dependencies([tf.debugging.Assert(tf.not_equal(x, bad), [x])]):
                return tf.identity(x)
        return check

    def repeated(self, count):
        """Not no times behind a shuffle."""
        d = self.dataset
        return d.repeat(count or "Shuffle" in type(getattr(d, "_dataset", d)).__name__)

    def change(self):
        p, d = self.p, self.dataset
        c = [p.int(1, 4) for _ in range(3)]
        seed = p.int(1, 99)

        def other():
            made = Pipeline(p, self.depth - 1)
            for _ in range(p.int(0, 2)):
                made.step()
            return made.dataset
        nested = [] if self.depth <= 0 else [
            lambda: d.concatenate(other()),
            lambda: Data.zip((d, other())).map(lambda a, b: a * 3 + b),
            lambda: v1.data.experimental.choose_from_datasets([d, other()], Data.range(9).map(lambda i: i * i % 2)),
            lambda: v1.data.experimental.sample_from_datasets([d, other()], [0.4, 0.6], seed=seed),
        ]
        return p.pick(
            lambda: d.map(self.arithmetic()), lambda: d.map(self.arithmetic(c[0] == 1), num_parallel_calls=c[0]),
            lambda: d.filter(lambda x: tf.not_equal(x % (c[0] + 1), c[1] % (c[0] + 1))),
            lambda: d.take(p.int(-1, 8)), lambda: d.skip(p.int(-1, 4)), lambda: self.repeated(p.int(0, 3)),
            lambda: d.repeat().take(p.int(0, 15)),
            lambda: d.shuffle(p.int(1, 8), seed=seed, reshuffle_each_iteration=p.pick(None, True, False)),
            lambda: d.batch(c[0], drop_remainder=p.flag()).unbatch(),
            lambda: d.batch(c[0]).map(lambda x: tf.reduce_sum(x, 0)),
            lambda: d.map(lambda x: tf.fill([tf.abs(x) % 4], x)).padded_batch(
                c[0], [None], np.int64(-7), drop_remainder=p.flag()).map(tf.reduce_sum),
            lambda: d.window(c[0], c[1], c[2], drop_remainder=p.flag()).flat_map(lambda w: w.batch(4)).map(
                tf.reduce_max),
            lambda: d.flat_map(lambda x: Data.range(tf.abs(x) % 4).map(lambda y: x + y)),
            lambda: d.interleave(lambda x: Data.range(x, x + tf.abs(x) % 4), cycle_length=c[0], block_length=c[1],
                                 num_parallel_calls=p.pick(None, None, 2), deterministic=True),
            lambda: d.scan(np.int64(c[0]), lambda s, x: (s + x, s - x)),
            lambda: d.take_while(lambda x: x < c[0] + 3), lambda: d.enumerate(c[0]).map(lambda i, x: i + x),
            lambda: d.cache(), lambda: d.prefetch(c[0]), lambda: d.shard(c[0], c[1] % c[0]),
            lambda: d.apply(tf.data.experimental.unique()),
            lambda: d.map(self.fails()), lambda: d.map(self.fails()).apply(tf.data.experimental.ignore_errors()),
            lambda: d.apply(tf.data.experimental.assert_cardinality(p.int(0, 9))),
            lambda: d.group_by_window(lambda x: x % c[0], lambda k, w: w.batch(c[1]).map(
                lambda x: tf.reduce_sum(x) + k), c[2]),
            lambda: d.apply(tf.data.experimental.map_and_batch(self.arithmetic(False), c[0], drop_remainder=p.flag())).map(
                lambda x: tf.reduce_sum(x)),
            lambda: d.apply(tf.data.experimental.parallel_interleave(
                lambda x: Data.range(tf.abs(x) % 3), cycle_length=c[0], block_length=1, sloppy=False)),
            lambda: Data.from_tensors(d.reduce(np.int64(c[0]), lambda s, x: s * 2 + x)),
            lambda: d.map(lambda x: tf.strings.as_string(x)).map(lambda s: tf.strings.to_number(s, tf.int64)),
            *nested)()

    def step(self):
        self.dataset = self.change()


def program(p):
    v1.set_random_seed(p.int(1, 99))
    line = Pipeline(p)
    for _ in range(p.int(1, 5)):
        p.attempt(line.step)
    end = p.int(0, 4)
    dataset = line.dataset
    if end == 0:
        dataset = dataset.batch(p.int(1, 4), drop_remainder=p.flag())
    elif end == 1:
        dataset = dataset.map(lambda x: (x, {"f": tf.cast(x, tf.float32) / 2, "s": tf.strings.as_string(x)}))
    elif end == 2:
        dataset = dataset.map(lambda x: tf.fill([tf.abs(x) % 3], x)).padded_batch(3, [None])
    once = p.chance(0.3)
    iterator = (v1.data.make_one_shot_iterator if once else v1.data.make_initializable_iterator)(dataset)
    fetch = tf.nest.flatten(iterator.get_next())
    for _ in range(1 if once else 2):
        if not once:
            p.run(target=[iterator.initializer])
        failures = 0
        for _ in range(ELEMENTS):
            if p.run(fetch) is None:
                failures += 1
                error = p.case.run[-1].error_code if p.case.run else 0
                if error == tf.errors.OUT_OF_RANGE or failures > 3:
                    break
