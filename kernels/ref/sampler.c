/*
 * sampler.c - candidate samplers: classes drawn with known probabilities, and what count of
 * each is to be expected in a draw.
 */

#include "kernels/ref/random.h"

#include <float.h>
#include <math.h>
#include <pthread.h>

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/io/file.h"

enum sampler_kind {
    SAMPLE_ALL,
    SAMPLE_UNIFORM,
    SAMPLE_LOG_UNIFORM,
    SAMPLE_LEARNED,
    SAMPLE_FIXED
};

#define FILE_BYTES_MAX (INT64_C(1) << 30)
#define RANGE_MAX (INT64_C(1) << 26) /* of samplers that keep something for each class */

/* The alternative of a class, and the chance that the class itself is taken (Walker, 1977). */
struct alias {
    float chance;
    int other;
};

struct sampler {
    pthread_mutex_t lock; /* guards: what a learned sampler learns */
    void *stream;
    enum sampler_kind kind;
    int64_t range;
    int64_t *tree;      /* learned: sums of counts, as a Fenwick tree of range + 1 */
    int64_t total;      /* of the counts */
    float *weights;     /* fixed */
    float total_weight; /* of the weights */
    struct alias *aliases;
};

/* --- learned counts: each class starts with 1 --- */

static void learned_init(struct sampler *sampler)
{
    sampler->tree = alloc_array((size_t)sampler->range + 1, sizeof(*sampler->tree));
    for (int64_t i = 1; i <= sampler->range; i++)
        sampler->tree[i] = i & -i;
    sampler->total = sampler->range;
}

static void learned_add(struct sampler *sampler, int64_t class)
{
    for (int64_t i = class + 1; i <= sampler->range; i += i & -i)
        sampler->tree[i]++;
    sampler->total++;
}

static int64_t learned_sum(const struct sampler *sampler, int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = count; i > 0; i -= i & -i)
        sum += sampler->tree[i];
    return sum;
}

/* The class in whose share the position lies. */
static int64_t learned_pick(const struct sampler *sampler, int64_t position)
{
    int64_t at = 0, step = 1;
    while (step * 2 <= sampler->range)
        step *= 2;
    for (; step > 0; step /= 2)
        if (at + step <= sampler->range && sampler->tree[at + step] <= position) {
            at += step;
            position -= sampler->tree[at];
        }
    return at;
}

/* --- fixed weights --- */

static void alias_init(struct sampler *sampler)
{
    int count = (int)sampler->range, low_count = 0, high_count = 0;
    double sum = 0, *share = alloc_array((size_t)count, sizeof(*share));
    int *low = alloc_array((size_t)count, sizeof(*low));
    int *high = alloc_array((size_t)count, sizeof(*high));
    sampler->aliases = alloc_array((size_t)count, sizeof(*sampler->aliases));
    for (int i = 0; i < count; i++)
        sum += sampler->weights[i];
    for (int i = 0; i < count; i++) {
        share[i] = sampler->weights[i] * (float)count / sum;
        if (share[i] < 1)
            low[low_count++] = i;
        else
            high[high_count++] = i;
    }
    while (low_count && high_count) {
        int l = low[--low_count], h = high[--high_count];
        sampler->aliases[l].other = h;
        share[h] -= 1 - share[l];
        if (share[h] < 1)
            low[low_count++] = h;
        else
            high[high_count++] = h;
    }
    for (int i = 0; i < count; i++)
        sampler->aliases[i].chance = (float)share[i];
    for (int i = 0; i < low_count; i++) /* what is left is close to 1 */
        sampler->aliases[low[i]] = (struct alias){1, low[i]};
    for (int i = 0; i < high_count; i++)
        sampler->aliases[high[i]] = (struct alias){1, high[i]};
    free(share);
    free(low);
    free(high);
}

/* What the weights of this shard are read into. */
struct weights {
    struct sampler *sampler;
    float distortion;
    int64_t shards, shard, word;
    int64_t count;
};

/* Returns false when there are more than the range. */
static bool add_weight(struct weights *w, float weight, bool reserved)
{
    if (w->word++ % w->shards != w->shard)
        return true;
    if (w->count >= w->sampler->range)
        return false;
    if (!reserved)
        weight = powf(weight, w->distortion);
    w->sampler->total_weight += reserved ? 0 : weight;
    w->sampler->weights[w->count++] = reserved ? 0 : weight;
    return true;
}

/* Lines of fields parted by commas; the last is the weight. */
static bool read_vocabulary(struct weights *w, const char *path, struct error *err)
{
    struct str text = {0};
    bool ok = file_read(path, FILE_BYTES_MAX, &text, err);
    for (char *line = text.data; ok && line && *line;) {
        char *end = strchr(line, '\n'), *rest;
        if (end)
            *end = 0;
        char *comma = strrchr(line, ',');
        char *number = comma ? comma + 1 : line;
        float weight = strtof(number, &rest);
        while (rest != number && (*rest == ' ' || *rest == '\r'))
            rest++;
        if (rest == number || *rest)
            ok = fail(err, INVALID, "Wrong vocabulary format at line: %s", line);
        else if (!add_weight(w, weight, false))
            ok = fail(err, INVALID, "'%s' has more words than range_max, %lld", path,
                      (long long)w->sampler->range);
        line = end ? end + 1 : NULL;
    }
    str_release(&text);
    return ok;
}

static bool fixed_init(struct sampler *sampler, const struct node *node, struct error *err)
{
    const char *file = node_attr_string(node, "vocab_file", "");
    const struct attr *unigrams = node_attr(node, "unigrams");
    int given = unigrams && unigrams->kind == ATTR_FLOAT ? unigrams->count : 0;
    struct weights w = {.sampler = sampler,
                        .distortion = node_attr_float(node, "distortion", 1),
                        .shards = node_attr_int(node, "num_shards", 1),
                        .shard = node_attr_int(node, "shard", 0)};
    if (!file[0] && !given)
        return fail(err, INVALID, "Must provide either vocab_file or unigrams.");
    if (file[0] && given)
        return fail(err, INVALID, "Must only provide one of vocab_file and unigrams.");
    if (w.shards < 1 || w.shard < 0 || w.shard >= w.shards)
        return fail(err, INVALID, "shard %lld of %lld", (long long)w.shard,
                    (long long)w.shards);
    int64_t reserved = node_attr_int(node, "num_reserved_ids", 0);
    if (reserved > RANGE_MAX)
        return fail(err, EXHAUSTED, "num_reserved_ids is %lld, at most %lld",
                    (long long)reserved, (long long)RANGE_MAX);
    sampler->weights = alloc_array((size_t)sampler->range, sizeof(*sampler->weights));
    bool fits = true;
    for (int64_t i = 0; fits && i < reserved; i++)
        fits = add_weight(&w, 0, true);
    w.word = w.count; /* numbering starts behind the reserved ones of this shard */
    for (int i = 0; fits && i < given; i++)
        fits = add_weight(&w, unigrams->floats[i], false);
    if (fits && file[0] && !read_vocabulary(&w, file, err))
        return false;
    if (!fits || w.count != sampler->range)
        return fail(err, INVALID, "range is %lld must be equal to weights size  %lld",
                    (long long)sampler->range, (long long)(fits ? w.count : reserved + given));
    alias_init(sampler);
    return true;
}

/* --- all kinds --- */

static void release(void *state)
{
    struct sampler *sampler = state;
    if (!sampler)
        return;
    kernel_stream_release(sampler->stream);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler->tree);
    free(sampler->weights);
    free(sampler->aliases);
    free(sampler);
}

static enum sampler_kind kind_of(const struct node *node)
{
    const char *name = node->op->name;
    if (!strcmp(name, "AllCandidateSampler"))
        return SAMPLE_ALL;
    if (!strcmp(name, "UniformCandidateSampler"))
        return SAMPLE_UNIFORM;
    if (!strcmp(name, "LogUniformCandidateSampler"))
        return SAMPLE_LOG_UNIFORM;
    return strcmp(name, "FixedUnigramCandidateSampler") ? SAMPLE_LEARNED : SAMPLE_FIXED;
}

static bool prepare(const struct node *node, void **state, struct error *err)
{
    enum sampler_kind kind = kind_of(node);
    int64_t range = node_attr_int(node, kind == SAMPLE_ALL ? "num_sampled" : "range_max", 0);
    if (range < 1)
        return fail(err, INVALID, "node '%s': range_max is %lld, it must be positive",
                    node->name, (long long)range);
    if ((kind == SAMPLE_LEARNED || kind == SAMPLE_FIXED) && range > RANGE_MAX)
        return fail(err, EXHAUSTED, "node '%s': range_max is %lld, at most %lld", node->name,
                    (long long)range, (long long)RANGE_MAX);
    struct sampler *sampler = alloc_bytes(sizeof(*sampler));
    *sampler = (struct sampler){.kind = kind, .range = range};
    pthread_mutex_init(&sampler->lock, NULL);
    bool ok = kernel_stream_prepare(node, &sampler->stream, err);
    if (ok && kind == SAMPLE_LEARNED)
        learned_init(sampler);
    if (ok && kind == SAMPLE_FIXED)
        ok = fixed_init(sampler, node, err);
    if (!ok)
        release(sampler);
    else
        *state = sampler;
    return ok;
}

static int64_t sample(const struct sampler *sampler, struct random_words *words)
{
    switch (sampler->kind) {
    case SAMPLE_UNIFORM:
        return (int64_t)kernel_random_below64(words, (uint64_t)sampler->range);
    case SAMPLE_LOG_UNIFORM: {
        double log_range = log1p((double)sampler->range);
        int64_t value = (int64_t)exp(kernel_random_double(words) * log_range) - 1;
        return value % sampler->range; /* rounding may have gone too far */
    }
    case SAMPLE_LEARNED:
        return learned_pick(sampler, kernel_random_below32(words, (uint32_t)sampler->total));
    default: {
        uint32_t bits = UINT32_C(127) << 23 | (kernel_random_word(words) & 0x7fffff);
        float chance;
        memcpy(&chance, &bits, sizeof(chance));
        uint32_t class = kernel_random_below32(words, (uint32_t)sampler->range);
        const struct alias *alias = &sampler->aliases[class];
        return chance - 1 < alias->chance ? (int64_t) class : alias->other;
    }
    }
}

static float probability(const struct sampler *sampler, int64_t class)
{
    double value = (double)class;
    switch (sampler->kind) {
    case SAMPLE_ALL:
        return 1;
    case SAMPLE_UNIFORM:
        return (float)(1.0 / (double)sampler->range);
    case SAMPLE_LOG_UNIFORM:
        return (float)(log((value + 2) / (value + 1)) / log1p((double)sampler->range));
    case SAMPLE_LEARNED:
        return (float)(learned_sum(sampler, class + 1) - learned_sum(sampler, class)) /
               (float)sampler->total;
    default:
        return sampler->weights[class] / sampler->total_weight;
    }
}

/* How often a class of that probability is expected among what `tries` tries gave. */
static float expected(const struct sampler *sampler, float chance, int64_t sampled,
                      int64_t tries)
{
    if (sampler->kind == SAMPLE_ALL)
        return 1;
    if (tries == sampled)
        return chance * (float)sampled;
    return -expm1f((float)tries * log1pf(-chance));
}

/* --- sets of classes, by open addressing --- */

struct classes {
    int64_t *slots; /* -1: free */
    uint64_t mask;
};

static bool classes_add(struct classes *classes, int64_t class)
{
    uint64_t slot = (uint64_t) class * UINT64_C(0x9E3779B97F4A7C15) >> 20 & classes->mask;
    while (classes->slots[slot] != -1) {
        if (classes->slots[slot] == class)
            return false;
        slot = (slot + 1) & classes->mask;
    }
    classes->slots[slot] = class;
    return true;
}

/* Fills `out`; `*tries` is how many were drawn. */
static bool draw(struct kernel_call *call, struct random_words *words, bool unique,
                 struct tensor *out, int64_t *tries, struct error *err)
{
    struct sampler *sampler = call->state;
    int64_t *drawn = out->data;
    *tries = out->count;
    if (sampler->kind == SAMPLE_ALL || !unique) {
        for (int64_t i = 0; i < out->count; i++)
            drawn[i] = sampler->kind == SAMPLE_ALL ? i : sample(sampler, words);
        return true;
    }
    uint64_t size = 4;
    while (size < (uint64_t)out->count * 2)
        size *= 2;
    struct classes seen = {.mask = size - 1};
    seen.slots = kernel_scratch(call, size * sizeof(*seen.slots), err);
    if (!seen.slots)
        return false;
    memset(seen.slots, 0xff, size * sizeof(*seen.slots));
    *tries = 0;
    for (int64_t count = 0; count < out->count;) {
        if (++*tries >= INT32_MAX)
            return fail(err, INTERNAL, "no %lld different classes in %d tries",
                        (long long)out->count, INT32_MAX);
        drawn[count] = sample(sampler, words);
        count += classes_add(&seen, drawn[count]);
    }
    return true;
}

/* Words of the stream that a run takes for each class drawn. */
#define WORDS_PER_SAMPLE 2048

static bool run(struct kernel_call *call, struct error *err)
{
    struct sampler *sampler = call->state;
    const struct tensor *classes = kernel_in(call, 0);
    int64_t sampled = node_attr_int(call->node, "num_sampled", 0), tries = 0;
    bool unique = node_attr_bool(call->node, "unique", false);
    int64_t num_true = node_attr_int(call->node, "num_true", 0);
    if (classes->shape.rank != 2)
        return fail(err, INVALID, "true_classes must be a matrix");
    if (classes->shape.dims[1] != num_true)
        return fail(err, INVALID,
                    "true_classes must have num_true columns, expected: %lld was: %lld",
                    (long long)classes->shape.dims[1], (long long)num_true);
    for (int64_t i = 0; i < classes->count; i++)
        if (tensor_i64(classes)[i] < 0 || tensor_i64(classes)[i] >= sampler->range)
            return fail(err, INVALID, "`true_candidate` out of range [0, %lld), received %lld",
                        (long long)sampler->range, (long long)tensor_i64(classes)[i]);
    if (unique && sampled > sampler->range)
        return fail(err, INVALID, "Sampler's range is too small.");
    struct tensor *out = kernel_output(call, 0, &SHAPE(sampled), err);
    struct tensor *of_true = out ? kernel_output(call, 1, &classes->shape, err) : NULL;
    struct tensor *of_sampled = of_true ? kernel_output(call, 2, &SHAPE(sampled), err) : NULL;
    if (!of_sampled)
        return false;
    struct random_words words = {
        .philox =
            kernel_stream_take(sampler->stream, (uint64_t)sampled * WORDS_PER_SAMPLE / 4)};
    pthread_mutex_lock(&sampler->lock);
    bool ok = draw(call, &words, unique, out, &tries, err);
    for (int64_t i = 0; ok && i < sampled; i++)
        ((float *)of_sampled->data)[i] =
            expected(sampler, probability(sampler, tensor_i64(out)[i]), sampled, tries);
    for (int64_t i = 0; ok && i < classes->count; i++)
        ((float *)of_true->data)[i] =
            expected(sampler, probability(sampler, tensor_i64(classes)[i]), sampled, tries);
    for (int64_t i = 0; ok && sampler->kind == SAMPLE_LEARNED && i < classes->count; i++)
        learned_add(sampler, tensor_i64(classes)[i]);
    pthread_mutex_unlock(&sampler->lock);
    return ok;
}

#define SAMPLER(name_)                                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = prepare, .release = release, .run = run         \
    }

const struct kernel kernel_all_candidate_sampler_ref = SAMPLER("AllCandidateSampler");
const struct kernel kernel_uniform_candidate_sampler_ref = SAMPLER("UniformCandidateSampler");
const struct kernel kernel_log_uniform_candidate_sampler_ref =
    SAMPLER("LogUniformCandidateSampler");
const struct kernel kernel_learned_unigram_candidate_sampler_ref =
    SAMPLER("LearnedUnigramCandidateSampler");
const struct kernel kernel_thread_unsafe_unigram_candidate_sampler_ref =
    SAMPLER("ThreadUnsafeUnigramCandidateSampler");
const struct kernel kernel_fixed_unigram_candidate_sampler_ref =
    SAMPLER("FixedUnigramCandidateSampler");
