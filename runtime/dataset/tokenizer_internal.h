/* tokenizer_internal.h - what the kinds of tokenizers share. */
#pragma once

#include <jansson.h>

#include "runtime/dataset/tokenizer.h"

/* One kind; the first member of each one's own struct. */
struct tokenizer {
    const struct tokenizer_class *class;
};

struct tokenizer_class {
    const char *name;
    enum tokenizer_kind kind;
    /* (optional) Whether the text is one that it reads; any is, without. */
    bool (*check)(const char *text, size_t size, struct error *err);
    struct tokenizer *(*learn)(const char *text, size_t size, int64_t size_max,
                               struct error *err);
    void (*release)(struct tokenizer *tokenizer);
    int64_t (*size)(const struct tokenizer *tokenizer);
    bool (*encode)(const struct tokenizer *tokenizer, const char *text, size_t size,
                   struct tokenizer_ids *out, struct error *err);
    void (*decode)(const struct tokenizer *tokenizer, int32_t id, struct str *out);
    /* Appends the value of the field that is named as the kind is. */
    void (*write)(const struct tokenizer *tokenizer, struct str *json);
    struct tokenizer *(*read)(const json_t *value, struct error *err);
};

extern const struct tokenizer_class tokenizer_characters, tokenizer_bytes, tokenizer_words;

#define TOKENIZER_UNKNOWN "\xef\xbf\xbd" /* U+FFFD */

void tokenizer_ids_add(struct tokenizer_ids *ids, int32_t id);

/*
 * The code point at `text`, of which `size` (at least 1) bytes are left, and how many bytes it
 * takes; 0 bytes when this is not UTF-8 (no overlong forms, no surrogates).
 */
int tokenizer_code_point(const char *text, size_t size, uint32_t *point);

/* --- pieces of text: each once, with how often it came --- */

struct tokenizer_piece {
    const char *text; /* borrowed from the text */
    uint32_t size;
    int64_t count;
    int64_t value; /* the user's */
};

struct tokenizer_pieces {
    struct tokenizer_piece *all; /* in the order in which they were added */
    int64_t count, capacity;
    int64_t *slots; /* index + 1; 0: free */
    int64_t slots_count;
};

/* The piece of that text, added with count 0 if it is new. */
struct tokenizer_piece *tokenizer_pieces_add(struct tokenizer_pieces *pieces, const char *text,
                                             size_t size);
/* NULL if there is none. */
const struct tokenizer_piece *tokenizer_pieces_find(const struct tokenizer_pieces *pieces,
                                                    const char *text, size_t size);
void tokenizer_pieces_release(struct tokenizer_pieces *pieces);

/* --- byte pairs --- */

/* Two tokens that became one, number 256 + the place of the pair in its list. */
struct tokenizer_pair {
    int32_t left, right;
};

#define TOKENIZER_PIECE_MAX 64 /* bytes; longer runs are cut, so no token is longer */

/* How many bytes of `text` are the next piece: pairs never reach over its borders. */
size_t tokenizer_piece_next(const char *text, size_t size);

/*
 * Finds at most `pairs_max` pairs, each the one that stood in most places when those before it
 * had been joined, of equal ones that of the lowest tokens; ends when none stands twice.
 * Returns how many.
 */
int64_t tokenizer_pairs_learn(const char *text, size_t size, int64_t pairs_max,
                              struct tokenizer_pair *pairs);
