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

/*
 * The number of a word: before vocabulary_sort() the one that it has for now, added if need be.
 * -1 after setting `err`: EXHAUSTED (too many words), INVALID (a zero byte in it; after
 * sorting, that it is not there and nothing stands for it).
 */
int32_t vocabulary_number(struct vocabulary *vocabulary, const char *word, size_t size,
                          struct error *err);

/*
 * Numbers the words for good; no word is added after that.  What was number n becomes number
 * result[n]; owned by the caller.
 */
int32_t *vocabulary_sort(struct vocabulary *vocabulary);

/* Of all numbers, with the unknown; after sorting. */
int64_t vocabulary_count(const struct vocabulary *vocabulary);
const char *const *vocabulary_words(const struct vocabulary *vocabulary); /* borrowed */
