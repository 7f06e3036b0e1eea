/*
 * random.c - random numbers: from a stream that the node carries on from run to run, and from
 * seeds given at each run.
 */

#include "kernels/ref/random.h"

static struct philox take(struct kernel_call *call, const struct tensor *out)
{
    return kernel_stream_take(call->state, (uint64_t)out->count * RANDOM_BLOCKS_PER_NUMBER);
}

static bool stream_run(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    struct philox philox = take(call, out);
    kernel_random_fill(&philox, kind, out);
    return true;
}

static bool uniform_run(struct kernel_call *call, struct error *err)
{
    return stream_run(call, RANDOM_UNIFORM, err);
}
static bool normal_run(struct kernel_call *call, struct error *err)
{
    return stream_run(call, RANDOM_NORMAL, err);
}
static bool truncated_run(struct kernel_call *call, struct error *err)
{
    return stream_run(call, RANDOM_TRUNCATED, err);
}

static bool uniform_int_run(struct kernel_call *call, struct error *err)
{
    uint64_t low, range;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out || !kernel_random_range(call, 1, out->count, &low, &range, err))
        return false;
    struct philox philox = take(call, out);
    kernel_random_fill_integers(&philox, low, range, out);
    return true;
}

/* Swaps row i with one of those from i on, by one word each. */
static bool shuffle_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t rows = in->shape.rank ? in->shape.dims[0] : 1;
    if (rows < 2) {
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    int64_t *order = out ? kernel_scratch(call, (size_t)rows * sizeof(*order), err) : NULL;
    if (!order)
        return false;
    struct philox philox = kernel_stream_take(call->state, ((uint64_t)rows + 2) / 4);
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t i = 0; i < rows - 1; i++) {
        uint32_t words[4];
        philox_block(&philox, (uint64_t)i / 4, words);
        int64_t j = i + (int64_t)(words[i % 4] % (uint64_t)(rows - i)), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    int64_t inner = kernel_span(&in->shape, 1, in->shape.rank);
    for (int64_t i = 0; i < rows; i++)
        kernel_copy(out, i * inner, in, order[i] * inner, inner);
    return true;
}

/* A window of the size wanted, at a place drawn by a word each where there is a choice. */
static bool crop_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *image = kernel_in(call, 0), *size = kernel_in(call, 1);
    if (image->shape.rank != 3)
        return fail(err, INVALID, "input must be 3-dimensional, got rank %d",
                    image->shape.rank);
    if (size->shape.rank != 1 || size->count != 2)
        return fail(err, INVALID, "size must be a vector of 2 elements");
    int64_t height = tensor_integer(size, 0), width = tensor_integer(size, 1);
    const int64_t *dims = image->shape.dims;
    if (height < 0 || width < 0 || height > dims[0] || width > dims[1])
        return fail(
            err, PRECONDITION, "a crop of %lld x %lld does not fit in an image of %lld x %lld",
            (long long)height, (long long)width, (long long)dims[0], (long long)dims[1]);
    if (height == dims[0] && width == dims[1]) {
        kernel_output_share(call, 0, image, &image->shape);
        return true;
    }
    struct tensor *out = kernel_output(call, 0, &SHAPE(height, width, dims[2]), err);
    if (!out)
        return false;
    struct random_words words = {.philox = kernel_stream_take(call->state, 1)};
    int64_t top = 0, left = 0;
    if (height < dims[0])
        top = kernel_random_word(&words) % (uint64_t)(dims[0] - height + 1);
    if (width < dims[1])
        left = kernel_random_word(&words) % (uint64_t)(dims[1] - width + 1);
    for (int64_t y = 0; y < height; y++)
        kernel_copy(out, y * width * dims[2], image, ((top + y) * dims[1] + left) * dims[2],
                    width * dims[2]);
    return true;
}

/* --- from seeds alone --- */

static bool stateless(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct philox philox;
    int next;
    if (!kernel_random_stateless(call, &philox, &next, err))
        return false;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    kernel_random_fill(&philox, kind, out);
    return true;
}

static bool stateless_uniform_run(struct kernel_call *call, struct error *err)
{
    return stateless(call, RANDOM_UNIFORM, err);
}
static bool stateless_normal_run(struct kernel_call *call, struct error *err)
{
    return stateless(call, RANDOM_NORMAL, err);
}
static bool stateless_truncated_run(struct kernel_call *call, struct error *err)
{
    return stateless(call, RANDOM_TRUNCATED, err);
}

static bool stateless_int_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    uint64_t low = 0, range = 0;
    bool full = strstr(call->node->op->name, "FullInt") != NULL;
    int next;
    if (!kernel_random_stateless(call, &philox, &next, err))
        return false;
    struct tensor *out = kernel_random_output(call, 0, -1, err);
    if (!out)
        return false;
    if (!full && !kernel_random_range(call, next, out->count, &low, &range, err))
        return false;
    kernel_random_fill_integers(&philox, low, range, out);
    return true;
}

#define PHILOX_ALGORITHM 1

static bool set_algorithm(struct kernel_call *call, int output, struct error *err)
{
    struct tensor *out = kernel_output(call, output, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    *(int32_t *)out->data = PHILOX_ALGORITHM;
    return true;
}

static bool get_alg_run(struct kernel_call *call, struct error *err)
{
    return set_algorithm(call, 0, err);
}

static bool key_counter_run(struct kernel_call *call, struct error *err)
{
    struct philox philox;
    if (!kernel_random_seeds(call, 0, &philox, err))
        return false;
    struct tensor *key = kernel_output(call, 0, &SHAPE(1), err);
    struct tensor *counter = key ? kernel_output(call, 1, &SHAPE(2), err) : NULL;
    if (!counter)
        return false;
    ((uint64_t *)key->data)[0] = philox.key;
    ((uint64_t *)counter->data)[0] = philox.low;
    ((uint64_t *)counter->data)[1] = philox.high;
    return call->node->outputs_count < 3 || set_algorithm(call, 2, err);
}

#define STREAM(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = kernel_stream_prepare,                          \
        .release = kernel_stream_release, .run = run_,                                         \
    }
#define STATELESS(name_, run_)                                                                 \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_random_uniform_ref = STREAM("RandomUniform", uniform_run);
const struct kernel kernel_random_standard_normal_ref =
    STREAM("RandomStandardNormal", normal_run);
const struct kernel kernel_truncated_normal_ref = STREAM("TruncatedNormal", truncated_run);
const struct kernel kernel_random_uniform_int_ref = STREAM("RandomUniformInt", uniform_int_run);
const struct kernel kernel_random_shuffle_ref = STREAM("RandomShuffle", shuffle_run);
const struct kernel kernel_random_crop_ref = STREAM("RandomCrop", crop_run);
const struct kernel kernel_stateless_random_uniform_ref =
    STATELESS("StatelessRandomUniform", stateless_uniform_run);
const struct kernel kernel_stateless_random_normal_ref =
    STATELESS("StatelessRandomNormal", stateless_normal_run);
const struct kernel kernel_stateless_truncated_normal_ref =
    STATELESS("StatelessTruncatedNormal", stateless_truncated_run);
const struct kernel kernel_stateless_random_uniform_v2_ref =
    STATELESS("StatelessRandomUniformV2", stateless_uniform_run);
const struct kernel kernel_stateless_random_normal_v2_ref =
    STATELESS("StatelessRandomNormalV2", stateless_normal_run);
const struct kernel kernel_stateless_truncated_normal_v2_ref =
    STATELESS("StatelessTruncatedNormalV2", stateless_truncated_run);
const struct kernel kernel_stateless_random_uniform_int_ref =
    STATELESS("StatelessRandomUniformInt", stateless_int_run);
const struct kernel kernel_stateless_random_uniform_int_v2_ref = {
    .op = "StatelessRandomUniformIntV2",
    .device = CPU,
    .dtypes = BIT(I32) | BIT(I64),
    .type_attr = "dtype",
    .run = stateless_int_run,
};
const struct kernel kernel_stateless_random_uniform_full_int_ref =
    STATELESS("StatelessRandomUniformFullInt", stateless_int_run);
const struct kernel kernel_stateless_random_uniform_full_int_v2_ref =
    STATELESS("StatelessRandomUniformFullIntV2", stateless_int_run);
const struct kernel kernel_stateless_random_get_alg_ref =
    STATELESS("StatelessRandomGetAlg", get_alg_run);
const struct kernel kernel_stateless_random_get_key_counter_ref =
    STATELESS("StatelessRandomGetKeyCounter", key_counter_run);
const struct kernel kernel_stateless_random_get_key_counter_alg_ref =
    STATELESS("StatelessRandomGetKeyCounterAlg", key_counter_run);
