"""random.py - random numbers with a seed, and samplers of candidates."""

import numpy as np
import tensorflow as tf

from .frame import ANY, FLOAT, Row

HALF = "half float32 float64"


def shape_in(s, kind=None, most=40):
    """A shape as an input: blocks of random numbers end inside it."""
    shape = s.shape(0, 3, 5) if s.flag() else (s.int(0, most),)
    return s.vector(shape, kind or s.index_type())


def seeds(s):
    """Both zero would be a seed of the moment."""
    return {"seed": s.int(0, 99), "seed2": s.int(1, 99)}


def seed_in(s, kind=None):
    kind = kind or s.index_type()
    wide = [0, 1, -1, 7, 123456789, -2**31, 2**31 - 1] + ([2**40, -2**63] if kind == "int64" else [])
    return s.vector([s.pick(*wide), s.pick(*wide)], kind)


def key_in(s):
    """Key, counter and algorithm of the second versions."""
    alg = s.pick(1, 2, 1, 2, 3)
    return {"key": s.ints((1,), 0, 2**62, "uint64"), "counter": s.ints((2,), 0, 2**62, "uint64"),
            "alg": s.scalar(alg)}


def plain(s):
    return {"shape": shape_in(s), "dtype": s.type, **seeds(s)}


def between(s):
    low = s.int(0 if s.type.is_unsigned else -50, 50)
    high = low + s.pick(1, 7, 1000, 2**30, 0, -low)
    return {"minval": s.scalar(low, s.type), "maxval": s.scalar(high, s.type)}


def parameterized(s):
    rows = s.int(1, 4)
    shape = s.vector([rows, s.int(0, 9)], s.index_type())
    part = (lambda low, high: s.values((rows,) if s.flag() else (), low, high))
    return {"shape": shape, "means": part(-2, 2), "stdevs": part(0.3, 2), "minvals": part(-5, -3),
            "maxvals": part(-2.5, 5), **seeds(s)}


def gamma(s):
    return {"shape": shape_in(s, most=9), "alpha": s.values(s.shape(0, 2, 3), 0.1, 5), **seeds(s)}


def rates(s, dtype=None):
    return s.values(s.shape(0, 2, 3), 0, s.pick(3, 30), dtype)


def poisson_v2(s):
    return {"shape": shape_in(s, most=9), "rate": rates(s),
            "dtype": tf.as_dtype(s.pick("half", "float32", "float64", "int32", "int64")),
            **seeds(s)}


def logits(s):
    return s.values((s.int(0, 3), s.int(1, 6)), -3, 3)


def stateless(s, **more):
    return {"shape": shape_in(s), "seed": seed_in(s), "dtype": s.type,
            **{name: draw(s) for name, draw in more.items()}}


def stateless_v2(s):
    return {"shape": shape_in(s), **key_in(s), "dtype": s.type}


def alpha_for(s, lead):
    """Whose shape the end of the output's must match."""
    own = s.shape(0, 2, 3)
    return s.values(own, 0.1, 5), s.vector(tuple(lead) + own, s.index_type())


def stateless_gamma(version):
    def make(s):
        alpha, shape = alpha_for(s, s.shape(0, 2, 4))
        if version == 2:
            return {"shape": shape, "seed": seed_in(s), "alpha": alpha}
        return {"shape": shape, **key_in(s), "alpha": alpha}
    return make


def stateless_poisson(s):
    own = s.shape(0, 2, 3)
    return {"shape": s.vector(s.shape(0, 2, 4) + own, s.index_type()), "seed": seed_in(s),
            "lam": s.values(own, 0, s.pick(3, 30)),
            "dtype": tf.as_dtype(s.pick("half", "float32", "float64", "int32", "int64"))}


def binomial(s):
    own = s.shape(0, 2, 3)
    kind = s.pick(*HALF.split())
    return {"shape": s.vector(s.shape(0, 2, 4) + own, s.index_type()), "seed": seed_in(s),
            "counts": np.floor(s.values(own, 0, s.pick(8, 60), kind)),
            "probs": s.values(own, 0, 1, kind), "dtype": s.type}


def sampler(more=lambda s, limit: {}):
    def make(s):
        limit, true = s.int(4, 20), s.int(1, 3)
        count = s.int(1, 4) if s.flag() else s.int(1, 12)
        return {"true_classes": s.ints((s.int(0, 3), true), 0, limit - 1, "int64"),
                "num_true": true, "num_sampled": count, "unique": s.flag() and count <= limit,
                "range_max": limit, **more(s, limit), **seeds(s)}
    return make


def fixed_unigram(s, limit):
    reserved = s.int(0, 2)
    shards = s.pick(1, 1, 2)
    return {"unigrams": [float(s.int(1, 9)) for _ in range(limit - reserved)],
            "num_reserved_ids": reserved, "distortion": s.pick(1.0, 0.75, 0.0), "unique": False,
            "num_shards": shards, "shard": s.int(0, shards - 1)}


def all_candidates(s):
    arguments = sampler()(s)
    del arguments["range_max"]
    return arguments


def accidental(s):
    true = s.int(1, 3)
    return {"true_classes": s.ints((s.int(0, 4), true), 0, 5, "int64"), "num_true": true,
            "sampled_candidates": s.ints((s.int(0, 6),), 0, 5, "int64")}


ROWS = [
    Row("RandomUniform", FLOAT, plain),
    Row("RandomStandardNormal", FLOAT, plain, "few"),
    Row("TruncatedNormal", FLOAT, plain, "few"),
    Row("RandomUniformInt", "int32 int64",
        lambda s: {"shape": shape_in(s), **between(s), **seeds(s)}),
    Row("ParameterizedTruncatedNormal", HALF, parameterized, "sum"),
    Row("RandomGamma", HALF, gamma, "sum", gradient=False),
    Row("RandomGammaGrad", "float32 float64", lambda s: {
        "alpha": s.values((5,), 0.2, 9), "sample": s.values((5,), 0.1, 9)}, "loose"),
    Row("RandomPoissonV2", HALF + " int32 int64", poisson_v2),
    Row("RandomShuffle", ANY, lambda s: {"value": s.values(s.shape(0, 3)), **seeds(s)}),
    Row("Multinomial", FLOAT, lambda s: {
        "logits": logits(s), "num_samples": s.scalar(s.int(0, 9)), **seeds(s),
        "output_dtype": tf.as_dtype(s.index_type())}),
    Row("StatelessMultinomial", FLOAT, lambda s: {
        "logits": logits(s), "num_samples": s.scalar(s.int(0, 9)), "seed": seed_in(s),
        "output_dtype": tf.as_dtype(s.index_type())}),
    Row("StatelessRandomUniform", FLOAT, stateless),
    Row("StatelessRandomNormal", FLOAT, stateless, "few"),
    Row("StatelessTruncatedNormal", FLOAT, stateless, "few"),
    Row("StatelessRandomUniformFullInt", "int32 int64 uint32 uint64", stateless),
    Row("StatelessRandomUniformInt", "int32 int64",
        lambda s: {"shape": shape_in(s), "seed": seed_in(s), **between(s)}),
    Row("StatelessRandomUniformV2", FLOAT, stateless_v2, spoil=False),
    Row("StatelessRandomNormalV2", FLOAT, stateless_v2, "few", spoil=False),
    Row("StatelessTruncatedNormalV2", FLOAT, stateless_v2, "few", spoil=False),
    Row("StatelessRandomUniformFullIntV2", "int32 int64 uint32 uint64", stateless_v2, spoil=False),
    Row("StatelessRandomUniformIntV2", "int32 int64 uint32 uint64",
        lambda s: {"shape": shape_in(s), **key_in(s), **between(s)}, spoil=False),
    *(Row(f"StatelessRandomGammaV{v}", HALF, stateless_gamma(v), "sum", gradient=False, spoil=False)
      for v in (2, 3)),
    Row("StatelessRandomPoisson", HALF + " int32 int64", stateless_poisson),
    Row("StatelessRandomBinomial", HALF + " int32 int64", binomial),
    Row("StatelessRandomGetKeyCounter", "int32", lambda s: {"seed": seed_in(s)}),
    Row("StatelessRandomGetKeyCounterAlg", "int32", lambda s: {"seed": seed_in(s)}),
    Row("StatelessRandomGetAlg", "int32", lambda s: {}),
    *(Row(op, "int64", sampler(), "few")
      for op in ("UniformCandidateSampler", "LogUniformCandidateSampler",
                 "LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")),
    Row("FixedUnigramCandidateSampler", "int64", sampler(fixed_unigram), "few"),
    Row("AllCandidateSampler", "int64", all_candidates, "few"),
    Row("ComputeAccidentalHits", "int64", accidental),
]
