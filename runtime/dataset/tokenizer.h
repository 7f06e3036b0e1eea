/*
 * tokenizer.h - text as numbers, and back.
 *
 * A tokenizer is learned from the text that is trained on.  Its vocabulary is kept with what
 * was trained, as JSON, so that later texts become the same numbers.  The same text gives the
 * same vocabulary, to the bit.
 *
 *   characters   one number for each code point of UTF-8 that the text has, in their order
 *   bpe          byte pairs: what stands together most often becomes one token, again and
 * again; any bytes can be encoded, and decode to themselves words        the most frequent
 * words, in small letters; for models of words, not of texts: what stands between words is lost
 *
 * Of characters and words, token 0 stands for what the vocabulary has not.
 * Immutable once made: threads share it freely.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;
struct tokenizer;

enum tokenizer_kind { TOKENIZER_CHARACTERS, TOKENIZER_BYTES, TOKENIZER_WORDS };

#define TOKENIZER_BYTES_MIN 256 /* tokens: the bytes themselves */
#define TOKENIZER_WORDS_MIN 2
#define TOKENIZER_SIZE_MAX 200000

/* Tokens that grow; `ids` is owned. */
struct tokenizer_ids {
    int32_t *ids;
    int64_t count, capacity;
};

/* Whether a tokenizer of that kind can read the text.  Fails with DATA_LOSS, at which byte. */
bool tokenizer_check(enum tokenizer_kind kind, const char *text, size_t size,
                     struct error *err) CHECKED;

/*
 * Learns from `text`; owned by the caller.  `size_max`: tokens at most, of bytes and words.
 *
 * Fails as tokenizer_check() does, and with INVALID where the text is empty.
 */
struct tokenizer *tokenizer_learn(enum tokenizer_kind kind, int64_t size_max, const char *text,
                                  size_t size, struct error *err) CHECKED;
void tokenizer_free(struct tokenizer *tokenizer); /* NULL is fine */

/* Tokens are 0 to this - 1. */
int64_t tokenizer_size(const struct tokenizer *tokenizer);
enum tokenizer_kind tokenizer_kind(const struct tokenizer *tokenizer);

/* Appends the tokens of `text`.  Fails as tokenizer_check() does. */
bool tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                      struct tokenizer_ids *out, struct error *err) CHECKED;
void tokenizer_ids_release(struct tokenizer_ids *ids);

/* Appends the text of tokens; those that there are not become U+FFFD, as unknown ones do. */
void tokenizer_decode(const struct tokenizer *tokenizer, const int32_t *ids, int64_t count,
                      struct str *out);

/* --- as JSON --- */

void tokenizer_write(const struct tokenizer *tokenizer, struct str *json);

/* Takes back what tokenizer_write() gave; owned by the caller.  Fails with DATA_LOSS. */
struct tokenizer *tokenizer_read(const char *json, size_t size, struct error *err) CHECKED;

/* The name of a kind, as specs and files have it: "characters", "bpe", "words". */
const char *tokenizer_name(enum tokenizer_kind kind);
