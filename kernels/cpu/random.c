/*
 * random.c - fills with random numbers on all threads: the streams let each thread begin where
 * its part does, so that the bits do not depend on how many there are.
 */

#include "kernels/list.h"

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/ref/random.h"

/* Blocks whose words are made at a time: they stay in the first cache. */
#define BLOCKS 256

/* Floats in [0, 1): the low bits of a word as a mantissa. */
static void fill_uniform(const struct philox *philox, float *out, int64_t from, int64_t to)
{
    uint32_t words[4 * BLOCKS];
    for (int64_t at = from; at < to; at += 4 * BLOCKS) {
        struct philox own = *philox;
        kernel_philox_skip(&own, (uint64_t)at / 4);
        int64_t count = to - at < 4 * BLOCKS ? to - at : 4 * BLOCKS;
        isa()->philox(own.key, own.high, own.low, (count + 3) / 4, words);
        for (int64_t i = 0; i < count; i++) {
            union {
                uint32_t bits;
                float number;
            } u = {.bits = UINT32_C(127) << 23 | (words[i] & 0x7fffff)};
            out[at + i] = u.number - 1;
        }
    }
}

static void fill(struct kernel_call *call, const struct philox *philox, enum random_kind kind,
                 struct tensor *out)
{
    /* Normal numbers cost several times what uniform ones do. */
    int64_t work = kind == RANDOM_UNIFORM ? out->count : out->count * 8;
    int threads = parallel_threads(call, work);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(out->count, 4 * BLOCKS, threads, t);
        if (kind == RANDOM_UNIFORM && out->dtype == F32)
            fill_uniform(philox, out->data, r.from, r.to);
        else
            kernel_random_fill_range(philox, kind, out, r.from, r.to);
    }
}

static bool stream_fill(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    struct philox philox =
        kernel_stream_take(call->state, (uint64_t)out->count * RANDOM_BLOCKS_PER_NUMBER);
    fill(call, &philox, kind, out);
    return true;
}

static bool stateless_fill(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct philox philox;
    int next;
    if (!kernel_random_stateless(call, &philox, &next, err))
        return false;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    fill(call, &philox, kind, out);
    return true;
}

static bool uniform_run(struct kernel_call *call, struct error *err)
{
    return stream_fill(call, RANDOM_UNIFORM, err);
}
static bool normal_run(struct kernel_call *call, struct error *err)
{
    return stream_fill(call, RANDOM_NORMAL, err);
}
static bool truncated_run(struct kernel_call *call, struct error *err)
{
    return stream_fill(call, RANDOM_TRUNCATED, err);
}
static bool stateless_uniform_run(struct kernel_call *call, struct error *err)
{
    return stateless_fill(call, RANDOM_UNIFORM, err);
}
static bool stateless_normal_run(struct kernel_call *call, struct error *err)
{
    return stateless_fill(call, RANDOM_NORMAL, err);
}

#define STREAM(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .type_attr = "dtype",              \
        .prepare = kernel_stream_prepare, .release = kernel_stream_release, .run = run_,       \
    }
#define STATELESS(name_, run_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .type_attr = "dtype", .run = run_  \
    }

const struct kernel kernel_random_uniform_cpu = STREAM("RandomUniform", uniform_run);
const struct kernel kernel_random_standard_normal_cpu =
    STREAM("RandomStandardNormal", normal_run);
const struct kernel kernel_truncated_normal_cpu = STREAM("TruncatedNormal", truncated_run);
const struct kernel kernel_stateless_random_uniform_cpu =
    STATELESS("StatelessRandomUniform", stateless_uniform_run);
const struct kernel kernel_stateless_random_uniform_v2_cpu =
    STATELESS("StatelessRandomUniformV2", stateless_uniform_run);
const struct kernel kernel_stateless_random_normal_cpu =
    STATELESS("StatelessRandomNormal", stateless_normal_run);
const struct kernel kernel_stateless_random_normal_v2_cpu =
    STATELESS("StatelessRandomNormalV2", stateless_normal_run);
