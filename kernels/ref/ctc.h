/* ctc.h - connectionist temporal classification: what decoders read and give. */
#pragma once

#include "kernels/ref/numbers.h"

struct kernel_ctc {
    int64_t steps, batch, classes;
    const double *x;        /* (steps, batch, classes) */
    const int32_t *lengths; /* (batch): steps of each example; below 0 as good as 0 */
};

/* Where the logits of an example's step are. */
static inline const double *kernel_ctc_at(const struct kernel_ctc *c, int64_t step, int64_t b)
{
    return c->x + (step * c->batch + b) * c->classes;
}

/* Reads inputs `frames` and `lengths`.  Fails with INVALID, with `mismatch` where lengths do
 * not fit. */
bool kernel_ctc_read(struct kernel_call *call, int frames, int lengths,
                     enum error_code mismatch, struct kernel_ctc *out,
                     struct error *err) CHECKED;

/* Labels of one decoded path, example after example. */
struct kernel_ctc_path {
    int64_t *labels; /* room for all steps of all examples */
    int64_t *ends;   /* (batch): where those of an example end */
};

/* Room for a path; false after setting `err`. */
bool kernel_ctc_path_new(struct kernel_call *call, const struct kernel_ctc *c,
                         struct kernel_ctc_path *path, struct error *err) CHECKED;

/* The path as outputs `index`, `values` and `shape`. */
bool kernel_ctc_path_give(struct kernel_call *call, const struct kernel_ctc *c,
                          const struct kernel_ctc_path *path, int index, int values, int shape,
                          struct error *err) CHECKED;
