/*
 * random.c - random numbers: from a stream that the node carries on from run to run, and from
 * seeds given at each run.
 */

#include "kernels/ref/random.h"

#include <pthread.h>
#include <sys/random.h>

#include "base/alloc.h"

/* The stream of one node; lives as long as its session. */
struct stream {
    pthread_mutex_t lock; /* guards: philox */
    struct philox philox;
};

/* Both seeds 0: a stream that nobody can repeat. */
static bool stream_prepare(const struct node *node, void **state, struct error *err)
{
    uint64_t seed = (uint64_t)node_attr_int(node, "seed", 0);
    uint64_t seed2 = (uint64_t)node_attr_int(node, "seed2", 0);
    if (seed == 0 && seed2 == 0) {
        uint64_t entropy[2];
        if (getrandom(entropy, sizeof(entropy), 0) != sizeof(entropy))
            return error_errno(err, INTERNAL, "node '%s': getrandom", node->name);
        seed = entropy[0];
        seed2 = entropy[1];
    }
    struct stream *stream = alloc_bytes(sizeof(*stream));
    pthread_mutex_init(&stream->lock, NULL);
    stream->philox = (struct philox){.key = seed, .low = 0, .high = seed2};
    *state = stream;
    return true;
}

static void stream_release(void *state)
{
    struct stream *stream = state;
    if (stream)
        pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* The stream as it is, and moves it on by `blocks`. */
static struct philox stream_take(struct stream *stream, uint64_t blocks)
{
    pthread_mutex_lock(&stream->lock);
    struct philox philox = stream->philox;
    stream->philox.low += blocks;
    stream->philox.high += stream->philox.low < blocks;
    pthread_mutex_unlock(&stream->lock);
    return philox;
}

static struct tensor *output_of_shape(struct kernel_call *call, struct error *err)
{
    struct shape shape;
    if (kernel_in(call, 0)->shape.rank != 1)
        return fail_null(err, INVALID, "shape must be a vector of {int32,int64}, got rank %d",
                         kernel_in(call, 0)->shape.rank);
    if (!kernel_shape_in(call, 0, &shape, err))
        return NULL;
    return kernel_output(call, 0, &shape, err);
}

/* A run of n numbers moves the counter by 256 n blocks, whatever it used. */
static bool stream_run(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct tensor *out = output_of_shape(call, err);
    if (!out)
        return false;
    struct philox philox = stream_take(call->state, (uint64_t)out->count * 256);
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

/* Scalars at inputs `first` and behind; an empty output asks for no numbers between them. */
static bool read_range(const struct kernel_call *call, int first, int64_t count, uint64_t *low,
                       uint64_t *range, struct error *err)
{
    const struct tensor *from = kernel_in(call, first), *to = kernel_in(call, first + 1);
    if (from->shape.rank != 0 || to->shape.rank != 0)
        return fail(err, INVALID, "minval and maxval must be 0-D");
    kernel_load_bits *load = kernel_load_bits_for(from->dtype);
    uint64_t a = load(from->data, 0), b = load(to->data, 0);
    bool ordered = DTYPES_UNSIGNED & BIT(from->dtype) ? a < b : (int64_t)a < (int64_t)b;
    if (!ordered && count > 0)
        return fail(err, INVALID, "Need minval < maxval, got %lld >= %lld", (long long)a,
                    (long long)b);
    *low = a;
    *range = b - a;
    return true;
}

static bool uniform_int_run(struct kernel_call *call, struct error *err)
{
    uint64_t low, range;
    struct tensor *out = output_of_shape(call, err);
    if (!out || !read_range(call, 1, out->count, &low, &range, err))
        return false;
    struct philox philox = stream_take(call->state, (uint64_t)out->count * 256);
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
    struct philox philox = stream_take(call->state, ((uint64_t)rows + 3) / 4);
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t i = 0; i < rows - 1; i++) {
        uint32_t words[4];
        kernel_philox_block(&philox, (uint64_t)i / 4, words);
        int64_t j = i + (int64_t)(words[i % 4] % (uint64_t)(rows - i)), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    int64_t inner = kernel_span(&in->shape, 1, in->shape.rank);
    for (int64_t i = 0; i < rows; i++)
        kernel_copy(out, i * inner, in, order[i] * inner, inner);
    return true;
}

/* --- from seeds alone --- */

static bool read_seeds(const struct kernel_call *call, int input, struct philox *philox,
                       struct error *err)
{
    const struct tensor *seed = kernel_in(call, input);
    if (seed->shape.rank != 1 || seed->count != 2)
        return fail(err, INVALID, "seed must have shape [2]");
    kernel_load_bits *load = kernel_load_bits_for(seed->dtype);
    *philox = kernel_philox_from_seeds(load(seed->data, 0), load(seed->data, 1));
    return true;
}

/* Version 2: key, counter and algorithm as inputs 1, 2, 3. */
static bool read_key(const struct kernel_call *call, struct philox *philox, struct error *err)
{
    const struct tensor *key = kernel_in(call, 1), *counter = kernel_in(call, 2);
    int64_t algorithm;
    if (!kernel_scalar(call, 3, "alg", &algorithm, err))
        return false;
    if (algorithm != 1 && algorithm != 3)
        return fail(err, INVALID, "Unsupported algorithm id: %lld", (long long)algorithm);
    if (key->shape.rank != 1 || key->count != 1 || counter->shape.rank != 1 ||
        counter->count < 2)
        return fail(err, INVALID, "key must have shape [1], counter [2]");
    *philox = (struct philox){.key = ((const uint64_t *)key->data)[0],
                              .low = ((const uint64_t *)counter->data)[0],
                              .high = ((const uint64_t *)counter->data)[1]};
    return true;
}

static bool is_v2(const struct kernel_call *call)
{
    return call->node->input_types[1] == U64;
}

static bool stateless(struct kernel_call *call, enum random_kind kind, struct error *err)
{
    struct philox philox;
    if (is_v2(call) ? !read_key(call, &philox, err) : !read_seeds(call, 1, &philox, err))
        return false;
    struct tensor *out = output_of_shape(call, err);
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
    if (is_v2(call) ? !read_key(call, &philox, err) : !read_seeds(call, 1, &philox, err))
        return false;
    struct tensor *out = output_of_shape(call, err);
    if (!out)
        return false;
    if (!full && !read_range(call, is_v2(call) ? 4 : 2, out->count, &low, &range, err))
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
    if (!read_seeds(call, 0, &philox, err))
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
        .op = name_, .device = CPU, .prepare = stream_prepare, .release = stream_release,      \
        .run = run_,                                                                           \
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
const struct kernel kernel_stateless_random_uniform_int_v2_ref =
    STATELESS("StatelessRandomUniformIntV2", stateless_int_run);
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
