/*
 * lent.h - tensors that tasks of this machine read from this one's memory, by request.
 *
 * Each is held until its reader says that it has read it, its step ends, or its time is over.
 * As long as it is held the request's number stands at its mark, where the reader looks last.
 * Callable from any thread.
 */
#pragma once

#include "base/base.h"

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

/* Shares the tensor and says where its elements are; false when too many or too much (held.h)
 * are lent, or another has the number. */
bool lent_add(struct lent *lent, const struct loan *loan, const struct tensor *tensor,
              struct near_place *place);

/* The reader is done; whether the tensor was held until now. */
bool lent_end(struct lent *lent, int64_t request_id);

/* Nobody is to read what was lent in that step. */
void lent_end_step(struct lent *lent, int64_t step_id);

bool lent_has_step(struct lent *lent, int64_t step_id);

int lent_count(struct lent *lent);
