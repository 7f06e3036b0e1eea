/*
 * sparse.h - sparse tensors: a matrix of places, a vector of values, a shape.
 *
 * `index` has a row of `rank` numbers for each of the `count` values.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct sparse {
    const int64_t *index;
    const struct tensor *values;
    int64_t count;
    int rank;
    const int64_t *dims; /* the dense shape */
};

/*
 * The sparse tensor in inputs `indices`, `values` and `shape`.  Fails with INVALID when these
 * do not fit each other; places may lie outside the shape.
 */
bool kernel_sparse_in(const struct kernel_call *call, int indices, int values, int shape,
                      struct sparse *sparse, struct error *err) CHECKED;

/* Fails with INVALID naming the first place that lies outside the shape. */
bool kernel_sparse_check(const struct sparse *sparse, struct error *err) CHECKED;

/*
 * What several ops ask before kernel_sparse_in(), in their words; INVALID: parts that a sparse
 * tensor is made of; parts that are to fit; places that lie inside.
 */
bool kernel_sparse_check_made(const struct kernel_call *call, int indices, int values,
                              int shape, struct error *err) CHECKED;
bool kernel_sparse_check_fit(const struct kernel_call *call, int indices, int values, int shape,
                             struct error *err) CHECKED;
bool kernel_sparse_check_inside(const struct kernel_call *call, int indices, int shape,
                                struct error *err) CHECKED;

/* Row `i` of the places. */
static inline const int64_t *kernel_sparse_at(const struct sparse *sparse, int64_t i)
{
    return sparse->index + i * sparse->rank;
}

/* Below, equal or above 0 as place `a` comes before, is, comes after `b`, in row-major order.
 */
int kernel_sparse_compare(const int64_t *a, const int64_t *b, int rank);

/*
 * Which value comes when in row-major order; equal places stay as they are to each other.  NULL
 * (EXHAUSTED) when there is no memory.
 */
int64_t *kernel_sparse_order(struct kernel_call *call, const int64_t *index, int64_t count,
                             int rank, struct error *err) CHECKED;

/* Outputs `first` and the two behind, with undefined contents. */
struct sparse_out {
    int64_t *index;
    struct tensor *values;
    int64_t *dims;
};
bool kernel_sparse_out(struct kernel_call *call, int first, int64_t count, int rank,
                       struct sparse_out *out, struct error *err) CHECKED;
