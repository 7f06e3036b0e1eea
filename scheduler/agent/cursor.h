/*
 * cursor.h - how far the server has stored a file, and what of it is to be sent next.
 *
 * Pure: nothing is read or sent here.  tail.c does that, and so does the simulator (tests/sim).
 */
#pragma once

#include "base/base.h"

struct cursor {
    int64_t at;         /* everything before is stored; -1: the server must be asked */
    int64_t tried;      /* size of the file when the server last took nothing of it, -1 */
    size_t batch_bytes; /* sent at once */
};

enum cursor_result {
    CURSOR_OK,
    CURSOR_LOST,  /* the server has less than it once had: the start of a record, which it keeps
                     in memory; leave it alone for a while, then go on */
    CURSOR_STUCK, /* a record is too large to be shipped */
    CURSOR_BEYOND, /* it has more than there is */
};

/* `fresh`: the server cannot have any of the file. */
void cursor_init(struct cursor *cursor, bool fresh);

/* How many bytes to send from `at` on of a file of `size` bytes; 0: none for now. */
size_t cursor_next(const struct cursor *cursor, int64_t size);

/* The server got `sent` bytes, and says that it has stored up to `stored`. */
enum cursor_result cursor_advance(struct cursor *cursor, int64_t stored, int64_t size,
                                  size_t sent);
