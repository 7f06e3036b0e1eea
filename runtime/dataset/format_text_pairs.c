/*
 * format_text_pairs.c - skip-grams: a word and one of its neighbours, which is to be told from
 * words drawn by chance.
 *
 * Words are drawn as often as the power 3/4 of how often they are in the text.  The neighbour's
 * place among them is drawn too, so that it tells nothing.  What is unknown is no word.
 */

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/format_text.h"
#include "runtime/philox.h"
#include "runtime/spec/spec.h"

#define PAIRS_THIN UINT64_C(0x7468696e) /* stream of the words that are thinned out */
#define PAIRS_DRAW UINT64_C(0x64726177) /* and of the words that are drawn */

struct pair {
    int32_t word, neighbour;
};

struct pairs {
    struct dataset_examples examples; /* first */
    struct pair *all;
    double *chances; /* of words up to each one */
    int64_t size;    /* of the vocabulary */
    int64_t negatives;
    uint64_t seed;
};

/* Number `index` of a stream, from 0 to 1. */
static double uniform(uint64_t seed, uint64_t stream, uint64_t row, uint64_t index)
{
    const struct philox philox = {.key = seed, .low = index / 4, .high = stream << 32 ^ row};
    uint32_t words[4];
    philox_block(&philox, 0, words);
    return words[index % 4] * 0x1p-32;
}

/* --- examples --- */

/* A word other than `not`, by its chance. */
static int32_t draw(const struct pairs *pairs, double chance, int32_t not )
{
    double wanted = chance * pairs->chances[pairs->size - 1];
    int64_t low = 1, high = pairs->size - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (pairs->chances[middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return (int32_t)(low == not &&pairs->size > 2 ? 1 + low % (pairs->size - 1) : low);
}

static const void *pairs_at(const struct dataset_examples *examples, int column, int64_t row,
                            void *scratch, struct error *err)
{
    (void)err;
    const struct pairs *pairs = (const struct pairs *)examples;
    const struct pair *pair = &pairs->all[row];
    int32_t *out = scratch;
    if (column == 0)
        return &pair->word;
    uint64_t at = (uint64_t)row;
    int32_t place =
        (int32_t)(uniform(pairs->seed, PAIRS_DRAW, at, 0) * (double)(pairs->negatives + 1));
    if (column == 2) {
        *out = place;
        return out;
    }
    for (int64_t i = 0; i <= pairs->negatives; i++)
        out[i] = i == place ? pair->neighbour
                            : draw(pairs, uniform(pairs->seed, PAIRS_DRAW, at, (uint64_t)i + 1),
                                   pair->neighbour);
    return out;
}

static void pairs_free(struct dataset_examples *examples)
{
    struct pairs *pairs = (struct pairs *)examples;
    free(pairs->all);
    free(pairs->chances);
    free(pairs);
}

/* --- making --- */

/* How often each word is there; those that are unknown never. */
static int64_t *count_words(const struct tokenizer_ids *ids, int64_t size, int64_t *all)
{
    int64_t *counts = alloc_array((size_t)size, sizeof(*counts));
    *all = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        if (ids->ids[i]) {
            counts[ids->ids[i]]++;
            ++*all;
        }
    }
    return counts;
}

/* Takes the unknown words out, and frequent ones by chance. */
static void thin_out(struct tokenizer_ids *ids, const int64_t *counts, int64_t all,
                     double subsample, uint64_t seed)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < ids->count; i++) {
        int32_t id = ids->ids[i];
        double share = id ? (double)counts[id] / (double)all : 0;
        double keep = subsample > 0 && share > subsample
                          ? sqrt(subsample / share) + subsample / share
                          : 1;
        if (id && (keep >= 1 || uniform(seed, PAIRS_THIN, 0, (uint64_t)i) < keep))
            ids->ids[kept++] = id;
    }
    ids->count = kept;
}

static bool fill(struct pairs *pairs, const struct tokenizer_ids *ids, int64_t window,
                 struct error *err)
{
    int64_t count = 0, most;
    if (ids->count < 2)
        return fail(err, INVALID,
                    "the text has %lld words of the vocabulary, wanted: at least 2",
                    (long long)ids->count);
    if (__builtin_mul_overflow(ids->count, 2 * window, &most) || most > INT32_MAX)
        return error_at(err, "/data/skip_gram/window", EXHAUSTED,
                        "%lld words with windows of %lld are more than %d pairs",
                        (long long)ids->count, (long long)window, INT32_MAX);
    pairs->all = malloc((size_t)most * sizeof(*pairs->all));
    if (!pairs->all)
        return fail(err, EXHAUSTED, "no memory for %lld pairs of words", (long long)most);
    for (int64_t i = 0; i < ids->count; i++)
        for (int64_t j = i - window; j <= i + window; j++)
            if (j >= 0 && j < ids->count && j != i)
                pairs->all[count++] = (struct pair){ids->ids[i], ids->ids[j]};
    pairs->examples.count = count;
    return true;
}

struct dataset_examples *format_text_pairs(struct tokenizer_ids *ids, int64_t size,
                                           const struct spec_text *text, int64_t seed,
                                           struct error *err)
{
    struct pairs *pairs = alloc_bytes(sizeof(*pairs));
    int64_t all, *counts = count_words(ids, size, &all);
    pairs->examples = (struct dataset_examples){.at = pairs_at, .free = pairs_free};
    pairs->size = size;
    pairs->negatives = text->negatives;
    pairs->seed = (uint64_t)seed;
    pairs->chances = alloc_array((size_t)size, sizeof(*pairs->chances));
    for (int64_t i = 1; i < size; i++)
        pairs->chances[i] = pairs->chances[i - 1] + pow((double)counts[i], 0.75);
    thin_out(ids, counts, all, text->subsample, (uint64_t)seed);
    bool ok = fill(pairs, ids, text->window, err);
    free(counts);
    tokenizer_ids_release(ids);
    if (ok)
        return &pairs->examples;
    pairs_free(&pairs->examples);
    return NULL;
}
