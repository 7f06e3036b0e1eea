/*
 * vocabulary.h - the words of a categorical column, and their numbers.
 *
 * Numbers follow the words' order by bytes, whatever order they came in, so that the same
 * examples in another order give the same model.
 */
#pragma once

#include "base/base.h"

struct error;
struct vocabulary;

#define VOCABULARY_WORDS_MAX 10000000
#define VOCABULARY_UNKNOWN "[UNK]" /* what stands for words that were not met in training */

/* With `has_unknown`, number 0 is that of all words that are not in it. */
struct vocabulary *vocabulary_new(bool has_unknown);
void vocabulary_free(struct vocabulary *vocabulary); /* NULL is fine */

/* The number that a word has for now, adding it.  -1 after setting `err`: EXHAUSTED,
 * INVALID (a zero byte in it). */
int32_t vocabulary_add(struct vocabulary *vocabulary, const char *word, size_t size,
                       struct error *err);

/*
 * Numbers the words for good; no word is added after that.  What was number n becomes number
 * result[n]; owned by the caller.
 */
int32_t *vocabulary_sort(struct vocabulary *vocabulary);

/* The number of a word, after sorting; -1 when it is not there and nothing stands for it. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *word, size_t size);

/* Of all numbers, with the unknown; after sorting. */
int64_t vocabulary_count(const struct vocabulary *vocabulary);
const char *const *vocabulary_words(const struct vocabulary *vocabulary); /* borrowed */
