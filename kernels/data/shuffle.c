/*
 * shuffle.c - elements in a random order: one of those in a buffer is given, the next of the
 * input takes its place.  Equal seeds, equal order, the same as TensorFlow's.
 *
 * The buffer holds elements of up to a few passes over the input; those of an earlier pass all
 * go before those of a later one.
 */

#include <pthread.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "kernels/data/dataset.h"
#include "kernels/ref/random.h"

#define PASSES_MAX 3 /* in the buffer, beside the one being read */
#define SEEDS_KIND "seed_generator"

/* --- seeds: a pair for each pass --- */

struct seeds {
    struct resource resource;
    bool again;           /* each pass has other seeds */
    pthread_mutex_t lock; /* guards: taken */
    uint64_t taken;       /* numbers of the stream */
    struct philox philox;
};

static uint32_t word_at(const struct philox *philox, uint64_t index)
{
    uint32_t words[4];
    philox_block(philox, index / 4, words);
    return words[index % 4];
}

static void seeds_destroy(struct resource *resource)
{
    struct seeds *seeds = (struct seeds *)resource;
    pthread_mutex_destroy(&seeds->lock);
    free(seeds);
}

/* Both 0: seeds that nobody can repeat. */
static struct seeds *seeds_new(const int64_t given[2], bool again, struct error *err)
{
    int64_t pair[2] = {given[0], given[1]};
    if (pair[0] == 0 && pair[1] == 0 && getrandom(pair, sizeof(pair), 0) != sizeof(pair)) {
        error_errno(err, INTERNAL, "getrandom");
        return NULL;
    }
    struct seeds *seeds = alloc_bytes(sizeof(*seeds));
    seeds->resource =
        (struct resource){.kind = SEEDS_KIND, .references = 1, .destroy = seeds_destroy};
    pthread_mutex_init(&seeds->lock, NULL);
    seeds->again = again;
    seeds->philox = (struct philox){.key = (uint64_t)pair[0], .high = (uint64_t)pair[1]};
    return seeds;
}

/* The stream of the next pass. */
static struct philox seeds_next(struct seeds *seeds)
{
    if (!seeds->again)
        return seeds->philox;
    pthread_mutex_lock(&seeds->lock);
    struct philox pass = {.key = word_at(&seeds->philox, seeds->taken),
                          .high = word_at(&seeds->philox, seeds->taken + 1)};
    seeds->taken += 2;
    pthread_mutex_unlock(&seeds->lock);
    return pass;
}

/* --- the dataset --- */

struct shuffle {
    struct dataset dataset;
    int64_t buffer_size; /* -1: all there is */
    int64_t count;       /* passes over the input, -1: without end */
    struct seeds *seeds;
};

/* Elements of one pass: numbered on and on, element n lies at n modulo the buffer's size. */
struct pass {
    int64_t start, end;
};

struct shuffled {
    struct iterator it;
    struct iterator *at; /* of the pass being read, NULL between passes */
    int64_t begun;       /* passes */
    bool any;            /* the input has given something */
    struct pass passes[PASSES_MAX + 1];
    int passes_count;
    struct rows buffer; /* as much of it as was ever used */
    int64_t held;
    struct philox philox;
    uint64_t taken;
};

static struct shuffle *shuffle_of(struct iterator *it)
{
    return (struct shuffle *)it->dataset;
}

static bool shuffled_begin(struct iterator *it, struct error *err)
{
    (void)err;
    struct shuffled *shuffled = (struct shuffled *)it;
    shuffled->buffer.width = it->dataset->width;
    shuffled->philox = seeds_next(shuffle_of(it)->seeds);
    return true;
}

static void shuffled_end(struct iterator *it)
{
    struct shuffled *shuffled = (struct shuffled *)it;
    kernel_iterator_free(shuffled->at);
    kernel_rows_release(&shuffled->buffer);
}

static bool wants_more(const struct shuffled *shuffled, const struct shuffle *shuffle)
{
    if (!shuffled->at && shuffle->count >= 0 && shuffled->begun >= shuffle->count)
        return false;
    if (shuffled->passes_count > PASSES_MAX && shuffled->held > 0)
        return false;
    return shuffle->buffer_size < 0 || shuffled->held < shuffle->buffer_size;
}

/* Forgets passes of which nothing is left; the one behind has a stream of its own. */
static void drop_empty(struct shuffled *shuffled)
{
    while (shuffled->passes_count > 0 && shuffled->passes[0].start == shuffled->passes[0].end) {
        shuffled->passes_count--;
        memmove(shuffled->passes, shuffled->passes + 1,
                (size_t)shuffled->passes_count * sizeof(struct pass));
        shuffled->philox = seeds_next(shuffle_of(&shuffled->it)->seeds);
        shuffled->taken = 0;
    }
}

static bool begin_pass(struct shuffled *shuffled, struct error *err)
{
    struct iterator *it = &shuffled->it;
    int count = shuffled->passes_count;
    int64_t end = count ? shuffled->passes[count - 1].end : 0;
    if (count > PASSES_MAX) { /* nothing is held: they are all empty */
        count = shuffled->passes_count = 0;
    }
    shuffled->at = kernel_iterator_new(it->dataset->inputs[0], it->pipeline, it, err);
    if (!shuffled->at)
        return false;
    shuffled->passes[count] = (struct pass){end, end};
    shuffled->passes_count++;
    shuffled->begun++;
    return true;
}

/* Where element `n` lies, making the buffer longer up to there. */
static struct tensor *place_of(struct shuffled *shuffled, int64_t n)
{
    int64_t size = shuffle_of(&shuffled->it)->buffer_size;
    int64_t place = size < 0 ? n : n % size;
    while (shuffled->buffer.count <= place)
        kernel_rows_add(&shuffled->buffer);
    return kernel_rows_at(&shuffled->buffer, place);
}

static bool fill(struct shuffled *shuffled, struct error *err)
{
    struct iterator *it = &shuffled->it;
    while (wants_more(shuffled, shuffle_of(it))) {
        bool end;
        if (!shuffled->at && !begin_pass(shuffled, err))
            return false;
        struct pass *pass = &shuffled->passes[shuffled->passes_count - 1];
        struct tensor *place = place_of(shuffled, pass->end);
        if (!kernel_iterator_next(shuffled->at, place, &end, err))
            return false;
        if (!end) {
            shuffled->any = true;
            shuffled->held++;
            pass->end++;
            continue;
        }
        kernel_iterator_free(shuffled->at);
        shuffled->at = NULL;
        if (!shuffled->any && shuffle_of(it)->count < 0)
            return true;
        if (!kernel_iterator_go_on(it, err))
            return false;
    }
    return true;
}

static bool shuffled_next(struct iterator *it, struct tensor *out, bool *end, struct error *err)
{
    struct shuffled *shuffled = (struct shuffled *)it;
    size_t size = (size_t)it->dataset->width * sizeof(*out);
    if (!fill(shuffled, err))
        return false;
    *end = shuffled->held == 0;
    if (*end)
        return true;
    drop_empty(shuffled);
    struct pass *pass = &shuffled->passes[0];
    int64_t offset = word_at(&shuffled->philox, shuffled->taken++) % (pass->end - pass->start);
    struct tensor *chosen = place_of(shuffled, pass->start + offset);
    struct tensor *first = place_of(shuffled, pass->start);
    memcpy(out, chosen, size);
    if (chosen != first)
        memcpy(chosen, first, size);
    memset(first, 0, size);
    pass->start++;
    shuffled->held--;
    return true;
}

static int64_t shuffle_cardinality(const struct dataset *dataset)
{
    int64_t each = kernel_dataset_cardinality(dataset->inputs[0]);
    int64_t count = ((const struct shuffle *)dataset)->count, all;
    if (count == 0 || each == 0)
        return 0;
    if (each < 0)
        return each;
    if (count < 0)
        return CARDINALITY_INFINITE;
    return __builtin_mul_overflow(count, each, &all) ? CARDINALITY_UNKNOWN : all;
}

static void shuffle_release(struct dataset *dataset)
{
    struct seeds *seeds = ((struct shuffle *)dataset)->seeds;
    if (seeds)
        resource_unref(&seeds->resource);
}

static const struct dataset_type shuffle_type = {
    .name = "Shuffle",
    .dataset_size = sizeof(struct shuffle),
    .iterator_size = sizeof(struct shuffled),
    .lazy = true,
    .begin = shuffled_begin,
    .next = shuffled_next,
    .end = shuffled_end,
    .cardinality = shuffle_cardinality,
    .release = shuffle_release,
};

/* --- kernels --- */

/* Takes the reference to `seeds`. */
static bool shuffle_make(struct kernel_call *call, struct seeds *seeds, int64_t count,
                         struct error *err)
{
    int64_t size;
    bool ok = seeds && kernel_scalar(call, 1, "buffer_size", &size, err);
    if (ok && size < 1 && size != CARDINALITY_UNKNOWN)
        ok = fail(err, INVALID,
                  "`buffer_size` must be greater than zero or UNKNOWN_CARDINALITY");
    struct shuffle *shuffle =
        ok ? (struct shuffle *)kernel_dataset_make(call, &shuffle_type, 0, 1, err) : NULL;
    if (!shuffle) {
        if (seeds)
            resource_unref(&seeds->resource);
        return false;
    }
    shuffle->buffer_size = size;
    shuffle->count = count;
    shuffle->seeds = seeds;
    return kernel_dataset_output(call, &shuffle->dataset, err);
}

static bool seed_pair(const struct kernel_call *call, int first, int64_t pair[2],
                      struct error *err)
{
    return kernel_scalar(call, first, "seed", &pair[0], err) &&
           kernel_scalar(call, first + 1, "seed2", &pair[1], err);
}

static bool shuffle_run(struct kernel_call *call, struct error *err)
{
    int64_t pair[2];
    bool again = node_attr_bool(call->node, "reshuffle_each_iteration", true);
    return seed_pair(call, 2, pair, err) &&
           shuffle_make(call, seeds_new(pair, again, err), 1, err);
}

/* The generator behind the handle, if there is one, else one of our own. */
static struct seeds *seeds_of(struct kernel_call *call, int input, const int64_t pair[2],
                              bool again, struct error *err)
{
    struct error none;
    struct resource *given = kernel_resource(call, input, SEEDS_KIND, &none);
    return given ? (struct seeds *)given : seeds_new(pair, again, err);
}

static bool shuffle_v2_run(struct kernel_call *call, struct error *err)
{
    const int64_t pair[2] = {0, 0};
    return shuffle_make(call, seeds_of(call, 2, pair, true, err), 1, err);
}

static bool shuffle_v3_run(struct kernel_call *call, struct error *err)
{
    int64_t pair[2];
    bool again = node_attr_bool(call->node, "reshuffle_each_iteration", true);
    return seed_pair(call, 2, pair, err) &&
           shuffle_make(call, seeds_of(call, 4, pair, again, err), 1, err);
}

static bool shuffle_and_repeat_run(struct kernel_call *call, struct error *err)
{
    int64_t pair[2], count;
    bool again = node_attr_bool(call->node, "reshuffle_each_iteration", true);
    return seed_pair(call, 2, pair, err) && kernel_scalar(call, 4, "count", &count, err) &&
           shuffle_make(call,
                        call->in_count > 5 ? seeds_of(call, 5, pair, again, err)
                                           : seeds_new(pair, again, err),
                        count < 0 ? -1 : count, err);
}

/* Handles of generators that several datasets share. */
static bool seed_generator_run(struct kernel_call *call, struct error *err)
{
    int64_t pair[2];
    bool again = true;
    if (!seed_pair(call, 0, pair, err))
        return false;
    if (call->in_count > 2) {
        if (kernel_in(call, 2)->count != 1)
            return fail(err, INVALID, "reshuffle must be a scalar");
        again = *(const bool *)kernel_in(call, 2)->data;
    }
    struct seeds *seeds = seeds_new(pair, again, err);
    bool ok =
        seeds &&
        kernel_output_resource(call, 0, &seeds->resource, "", "AnonymousSeedGenerator", err) &&
        kernel_output_resource(call, 1, &seeds->resource, NULL, NULL, err);
    if (seeds)
        resource_unref(&seeds->resource);
    return ok;
}

#define DATASET(name_, run_)                                                                   \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_shuffle_dataset = DATASET("ShuffleDataset", shuffle_run);
const struct kernel kernel_shuffle_dataset_v2 = DATASET("ShuffleDatasetV2", shuffle_v2_run);
const struct kernel kernel_shuffle_dataset_v3 = DATASET("ShuffleDatasetV3", shuffle_v3_run);
const struct kernel kernel_shuffle_and_repeat_dataset =
    DATASET("ShuffleAndRepeatDataset", shuffle_and_repeat_run);
const struct kernel kernel_shuffle_and_repeat_dataset_v2 =
    DATASET("ShuffleAndRepeatDatasetV2", shuffle_and_repeat_run);
const struct kernel kernel_anonymous_seed_generator =
    DATASET("AnonymousSeedGenerator", seed_generator_run);
const struct kernel kernel_anonymous_random_seed_generator =
    DATASET("AnonymousRandomSeedGenerator", seed_generator_run);
