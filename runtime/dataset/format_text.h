/*
 * format_text.h - what the files of the text format share.
 */
#pragma once

#include "runtime/dataset/format.h"
#include "runtime/dataset/tokenizer.h"

struct spec_text;

/* Examples are windows of tokens, and the same a token later.  Takes `ids`, owned by the
 * caller. */
struct dataset_examples *format_text_windows(struct tokenizer_ids *ids, int64_t length,
                                             int64_t stride);

/*
 * Examples are pairs of neighbours: a word, and its neighbour in a place drawn by chance among
 * words that are none.  `size` is that of the vocabulary; takes `ids`.  All chance follows from
 * `seed` and the example's number.
 *
 * Fails with INVALID (no pairs) or EXHAUSTED (more than memory allows).
 */
struct dataset_examples *format_text_pairs(struct tokenizer_ids *ids, int64_t size,
                                           const struct spec_text *text, int64_t seed,
                                           struct error *err) CHECKED;
