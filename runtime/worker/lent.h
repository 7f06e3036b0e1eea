/*
 * lent.h - tensors that tasks of this machine read from this one's memory, by request.
 *
 * Each is held until its reader says that it has read it, and for LENT_MS at most; a
 * reader that is told that it came too late has read what may no longer have been the tensor.
 * Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct lent;
struct tensor;

enum {
    LENT_MAX = 128, /* at a time */
    LENT_MS = 60000,
};

struct lent *lent_new(void);
void lent_free(struct lent *lent); /* NULL is fine */

/* Shares the tensor and says where its elements are; false when too many are lent, or another
 * has the number. */
bool lent_add(struct lent *lent, int64_t request_id, const struct tensor *tensor,
              uint64_t *address);

/* The reader is done; whether the tensor was held until now. */
bool lent_end(struct lent *lent, int64_t request_id);
