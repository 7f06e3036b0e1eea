/* random_stream.c - where random numbers come from: streams of nodes, seeds, keys; words. */

#include "kernels/ref/random.h"

#include <math.h>
#include <pthread.h>
#include <sys/random.h>

#include "base/alloc.h"

/* The stream of one node. */
struct stream {
    pthread_mutex_t lock; /* guards: philox */
    struct philox philox;
};

bool kernel_stream_prepare(const struct node *node, void **state, struct error *err)
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

void kernel_stream_release(void *state)
{
    struct stream *stream = state;
    if (stream)
        pthread_mutex_destroy(&stream->lock);
    free(stream);
}

struct philox kernel_stream_take(void *state, uint64_t blocks)
{
    struct stream *stream = state;
    pthread_mutex_lock(&stream->lock);
    struct philox philox = stream->philox;
    kernel_philox_skip(&stream->philox, blocks);
    pthread_mutex_unlock(&stream->lock);
    return philox;
}

/* --- seeds and keys --- */

bool kernel_random_seeds(const struct kernel_call *call, int input, struct philox *philox,
                         struct error *err)
{
    const struct tensor *seed = kernel_in(call, input);
    char text[SHAPE_TEXT_BYTES];
    if (seed->shape.rank != 1 || seed->count != 2)
        return fail(err, INVALID, "seed must have shape [2], not %s",
                    shape_text(&seed->shape, text, sizeof(text)));
    kernel_load_bits *load = kernel_load_bits_for(seed->dtype);
    *philox = kernel_philox_from_seeds(load(seed->data, 0), load(seed->data, 1));
    return true;
}

#define PHILOX_ALGORITHM 1
#define THREEFRY_ALGORITHM 2
#define AUTOMATIC_ALGORITHM 3

/* Whether input 0, a shape, is of no elements: then the algorithm does not matter. */
static bool is_empty_shape(const struct tensor *dims)
{
    for (int64_t i = 0; i < dims->count; i++)
        if (tensor_integer(dims, i) == 0)
            return true;
    return false;
}

bool kernel_random_key(const struct kernel_call *call, int input, struct philox *philox,
                       struct error *err)
{
    const struct tensor *key = kernel_in(call, input), *counter = kernel_in(call, input + 1);
    int64_t algorithm;
    if (!kernel_scalar(call, input + 2, "alg", &algorithm, err))
        return false;
    bool none = is_empty_shape(kernel_in(call, 0));
    bool is_ours = algorithm == PHILOX_ALGORITHM || algorithm == AUTOMATIC_ALGORITHM;
    if (!is_ours && !(algorithm == THREEFRY_ALGORITHM && none))
        return fail(err, INVALID, "Unsupported algorithm id: %lld", (long long)algorithm);
    if (key->shape.rank != 1 || key->count != 1)
        return fail(err, INVALID, "key must have shape [1]");
    /* TensorFlow takes a counter of one number too, and then reads what lies behind it. */
    if (counter->shape.rank != 1 || counter->count < (none && is_ours ? 1 : 2))
        return fail(err, INVALID, "counter must be a vector with length at least 2");
    const uint64_t *words = counter->data;
    *philox = (struct philox){.key = ((const uint64_t *)key->data)[0],
                              .low = words[0],
                              .high = counter->count > 1 ? words[1] : 0};
    return true;
}

bool kernel_random_stateless(const struct kernel_call *call, struct philox *philox, int *next,
                             struct error *err)
{
    bool keyed = strcmp(op_signature(call->node->op)->inputs[1].name, "key") == 0;
    *next = keyed ? 4 : 2;
    return keyed ? kernel_random_key(call, 1, philox, err)
                 : kernel_random_seeds(call, 1, philox, err);
}

struct tensor *kernel_random_output(struct kernel_call *call, int index, int inner,
                                    struct error *err)
{
    const struct tensor *dims = kernel_in(call, index);
    char text[SHAPE_TEXT_BYTES];
    struct shape shape;
    if (dims->shape.rank != 1)
        return fail_null(err, INVALID,
                         strstr(call->node->op->name, "Binomial") ||
                                 strstr(call->node->op->name, "Parameterized")
                             ? "Input shape should be a vector, got shape: %s"
                             : "shape must be a vector of {int32,int64}, got shape %s",
                         shape_text(&dims->shape, text, sizeof(text)));
    if (!kernel_shape_in(call, index, &shape, err))
        return NULL;
    const struct shape *behind = inner < 0 ? NULL : &kernel_in(call, inner)->shape;
    if (behind && !kernel_append_dims(&shape, behind, 0, err))
        return NULL;
    return kernel_output(call, 0, &shape, err);
}

bool kernel_random_range(const struct kernel_call *call, int first, int64_t count,
                         uint64_t *low, uint64_t *range, struct error *err)
{
    const struct tensor *from = kernel_in(call, first), *to = kernel_in(call, first + 1);
    char text[SHAPE_TEXT_BYTES];
    for (int i = 0; i < 2; i++)
        if ((i ? to : from)->shape.rank != 0)
            return fail(err, INVALID, "%s must be 0-D, got shape %s", i ? "maxval" : "minval",
                        shape_text(&(i ? to : from)->shape, text, sizeof(text)));
    kernel_load_bits *load = kernel_load_bits_for(from->dtype);
    uint64_t a = load(from->data, 0), b = load(to->data, 0);
    bool is_unsigned = DTYPES_UNSIGNED & BIT(from->dtype);
    bool ordered = is_unsigned ? a < b : (int64_t)a < (int64_t)b;
    if (!ordered && count > 0)
        return fail(err, INVALID, "Need minval < maxval, got %lld >= %lld", (long long)a,
                    (long long)b);
    *low = a;
    *range = b - a;
    return true;
}

/* --- words --- */

uint32_t kernel_random_word(struct random_words *words)
{
    if (words->left == 0) {
        philox_block(&words->philox, words->next++, words->words);
        words->left = 4;
    }
    return words->words[4 - words->left--];
}

static double unit(uint32_t high, uint32_t low)
{
    uint64_t bits = UINT64_C(1023) << 52 | (uint64_t)(high & 0xfffff) << 32 | low;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value - 1;
}

double kernel_random_double(struct random_words *words)
{
    uint32_t high = kernel_random_word(words);
    return unit(high, kernel_random_word(words));
}

uint32_t kernel_random_below32(struct random_words *words, uint32_t bound)
{
    uint32_t word = kernel_random_word(words);
    if (bound == 0 || (bound & (bound - 1)) == 0)
        return bound ? word & (bound - 1) : 0;
    uint32_t reject = UINT32_MAX % bound + 1;
    while (word < reject)
        word = kernel_random_word(words);
    return word % bound;
}

static uint64_t word64(struct random_words *words)
{
    uint64_t low = kernel_random_word(words);
    return low | (uint64_t)kernel_random_word(words) << 32;
}

uint64_t kernel_random_below64(struct random_words *words, uint64_t bound)
{
    uint64_t word = word64(words);
    if (bound == 0 || (bound & (bound - 1)) == 0)
        return bound ? word & (bound - 1) : 0;
    uint64_t reject = UINT64_MAX % bound + 1;
    while (word < reject)
        word = word64(words);
    return word % bound;
}

/* --- pairs of doubles --- */

static double next_of_pair(struct random_pairs *pairs, enum random_kind kind)
{
    if (pairs->left == 0) {
        double numbers[4];
        pairs->left = kernel_random_block(pairs->source, 0, kind, F64, numbers);
        kernel_philox_skip(pairs->source, 1);
        pairs->pair[0] = numbers[0];
        pairs->pair[1] = numbers[1];
    }
    return pairs->pair[--pairs->left];
}

double kernel_random_uniform(struct random_pairs *pairs)
{
    return next_of_pair(pairs, RANDOM_UNIFORM);
}

double kernel_random_normal(struct random_pairs *pairs)
{
    return next_of_pair(pairs, RANDOM_NORMAL);
}
