/*
 * partials.h - beginnings of records whose ends have not come.
 *
 * They are in memory alone: what is stored ends with a whole record, so after a crash the
 * sender is asked for such a beginning again.  A file is known by a key.
 */
#pragma once

#include "base/base.h"

struct error;
struct partials;

struct piece { /* of a file */
    int64_t offset;
    const char *bytes;
    size_t size;
};

struct partials *partials_new(void);
void partials_free(struct partials *partials); /* NULL is fine */

/* Whether the piece goes on where a beginning ended; it is the two together then, borrowed
 * until the next call. */
bool partials_continue(struct partials *partials, const char *key, struct piece *piece,
                       uint64_t now_us);

/*
 * Of the piece, `used` bytes were whole records, and `*cursor` is how far the file is stored.
 * Keeps the rest for the next piece; `*cursor` then is where that must begin.  Fails with
 * EXHAUSTED when too much waits for its end.
 */
bool partials_keep(struct partials *partials, const char *key, const struct piece *piece,
                   size_t used, int64_t *cursor, uint64_t now_us, struct error *err) CHECKED;

void partials_drop(struct partials *partials, const char *key);
