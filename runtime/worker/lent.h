/*
 * lent.h - tensors that tasks of this machine, or of a fabric, read from this one's memory, by
 * request.
 *
 * Each is held until its reader says that it is done, its step ends, or its time is over.  As
 * long as it is held the request's number stands at its mark, where the reader looks last.  A
 * reader that maps the elements (borrowed.h) may use them for longer: if its loan ends before
 * it says that it is done, their memory is not used again. Callable from any thread.
 */
#pragma once

#include "base/base.h"

struct fabric_keys;
struct lent;
struct near_place;
struct tensor;

enum {
    LENT_MAX = 128, /* at a time */
    LENT_MS = 60000,
};

struct loan {
    int64_t step_id;
    int64_t request_id; /* never 0 */
};

/* Each loan is for `loan_ms` at most. */
struct lent *lent_new(int loan_ms);
void lent_free(struct lent *lent); /* NULL is fine */

/* Shares the tensor and says where its elements are, and with `keys` (else NULL: to a task of
 * this machine) how they are read over the fabric; false when too many or too much (held.h) are
 * lent, another has the number, or the fabric cannot lend it. */
bool lent_add(struct lent *lent, const struct loan *loan, const struct tensor *tensor,
              struct near_place *place, struct fabric_keys *keys);

/* The reader is done; whether the tensor was held until now. */
bool lent_end(struct lent *lent, int64_t request_id);

/* Nobody is to read what was lent in that step. */
void lent_end_step(struct lent *lent, int64_t step_id);

bool lent_has_step(struct lent *lent, int64_t step_id);

int lent_count(struct lent *lent);
