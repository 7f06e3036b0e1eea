/*
 * reader_state.h - where a reader is: how much it has read, and of which file.
 *
 * As bytes it is TensorFlow's ReaderBaseState: fields 1, 2 and 3 (varints) and 4 (bytes).
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

struct reader_state {
    int64_t started;  /* files */
    int64_t finished; /* files; one less while one is being read */
    int64_t records;
    char *path; /* of the file read last, owned; NULL for none */
};

void kernel_reader_state_write(const struct reader_state *state, struct str *out);

/* Replaces `state`, but on failure (INVALID, naming the reader). */
bool kernel_reader_state_read(struct reader_state *state, const void *bytes, size_t size,
                              const char *reader, struct error *err) CHECKED;
