/*
 * mask.h - keeps the task's secrets out of what it prints.
 *
 * A secret is masked wherever it stands in a stream, in however many pieces it comes; of one
 * with several lines, each line that is long enough as well.  What is masked reads "***".
 * Bytes that may be the start of a secret are kept back until the next ones tell.
 */
#pragma once

#include "base/base.h"

#define MASK_FOLDER "secrets" /* in the folder of the attempt: one file, one secret */
#define MASK_BYTES_MAX 65536  /* of one secret */
#define MASK_BYTES_MIN 4      /* shorter ones would be found in words */
#define MASK_LINE_BYTES_MIN 8 /* a line of a secret that is shorter says little */
#define MASK_WORDS_MAX 1024   /* secrets and lines of secrets */

struct mask_word;

struct mask {
    struct mask_word *words;
    int count;
    size_t longest;
};

/* What one stream has kept back; all zero at first. */
struct mask_stream {
    char *bytes;
    bool *hidden; /* of each: it is part of a secret */
    size_t size;  /* bytes kept back */
    size_t room;
    size_t *matched; /* of each word, how much of it the bytes end with */
    size_t *marked;  /* of each word, how many of the last bytes it has hidden already */
    bool was_hidden; /* the last byte that went out was hidden */
};

/* Reads all secrets of the current folder; false with errno when it cannot. */
bool mask_open(struct mask *mask);

/* Adds one secret, and its lines; false when memory is short. */
bool mask_add(struct mask *mask, const char *bytes, size_t size);

typedef void mask_out(void *self, const char *bytes, size_t size);

/* Takes the next bytes of a stream and hands on what is decided.  When memory is short, nothing
 * is handed on that has not been looked at. */
void mask_take(const struct mask *mask, struct mask_stream *stream, const char *bytes,
               size_t size, mask_out *out, void *self);

/* The stream has ended: hands on the rest, but not the start of a secret. */
void mask_end(const struct mask *mask, struct mask_stream *stream, mask_out *out, void *self);

/* Removes the files of the secrets and overwrites what is in memory. */
void mask_close(struct mask *mask);
