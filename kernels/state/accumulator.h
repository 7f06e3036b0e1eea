/*
 * accumulator.h - sums of gradients, taken once there are enough of them.
 *
 * A gradient computed at a step older than the accumulator's is dropped.  Taking ends the
 * accumulator's step, whatever number it had.
 */
#pragma once

#include "kernels/ref/numbers.h"
#include "runtime/attempt.h"
#include "runtime/resource.h"

#define ACCUMULATOR_KIND "accumulator"

enum { ACCUMULATOR_TENSORS = 3 }; /* at most: of a sparse gradient */

struct accumulator_spec {
    enum dtype dtype;
    struct shape shape; /* may be partly unknown */
    bool sparse;
    bool mean;
};

/* What was added up, and how the two kinds of gradients are added; guarded by `counter`. */
struct accumulator {
    struct resource resource; /* first */
    struct counter counter;
    struct accumulator_spec spec; /* not guarded, like name */
    char *name;
    int64_t step;
    int64_t count;       /* gradients added since the last were taken */
    struct tensor sum;   /* sparse: of rows */
    bool is_divided;     /* dense: the sum is the mean by now, as it is taken at once */
    int64_t *rows;       /* sparse: which row of the gradient each is, */
    int64_t *rows_count; /* ... and how many gradients had it */
    struct attempt_list takes;
};

/* accumulator_dense.c: inputs from 2 on are the gradient; fail with INVALID, changing nothing.
 * With `last` the sum is taken next, and may be divided in the same pass. */
bool kernel_accumulator_add_dense(struct accumulator *accumulator, struct kernel_call *call,
                                  bool last, struct error *err) CHECKED;

/* Moves the sum out, divided as it should be; the accumulator is empty then. */
bool kernel_accumulator_take_dense(struct accumulator *accumulator, struct tensor *out,
                                   struct error *err) CHECKED;

/* accumulator_sparse.c: the same of indices, values and shape. */
bool kernel_accumulator_add_sparse(struct accumulator *accumulator, struct kernel_call *call,
                                   struct error *err) CHECKED;
bool kernel_accumulator_take_sparse(struct accumulator *accumulator, struct tensor *out,
                                    struct error *err) CHECKED;

/* to[to_at + i] += from[from_at + i], of a float type. */
void kernel_accumulator_add(struct tensor *to, int64_t to_at, const struct tensor *from,
                            int64_t from_at, int64_t count);

/* to[at + i] /= divisor */
void kernel_accumulator_divide(struct tensor *to, int64_t at, int64_t count, int64_t divisor);
