/*
 * sparse.h - sparse tensors as elements of datasets: three variants, for indices, values and
 * shape.
 */
#pragma once

#include "kernels/data/dataset.h"

#define TENSOR_KIND "tensor"

/* Element `i` of a VARIANT tensor becomes an object that holds `tensor` (shared).  INVALID for
 * tensors of variants or resources. */
bool kernel_sparse_hold(struct tensor *out, int64_t i, const struct tensor *tensor,
                        struct error *err) CHECKED;

/* Indices, values and shape fit each other in rank and size; INVALID. */
bool kernel_sparse_check_sizes(const struct tensor *indices, const struct tensor *values,
                               const struct tensor *shape, struct error *err) CHECKED;

/*
 * The sparse tensor of rank > 1 in inputs 0, 1 and 2, whose rows are cut apart: `*rows` of
 * them, places in order.
 */
bool kernel_sparse_rows(const struct kernel_call *call, int64_t *rows,
                        struct error *err) CHECKED;

/*
 * Row `row`, whose values begin at `*at`, as three tensors to be released; `*at` is moved
 * behind it.
 */
bool kernel_sparse_row(const struct kernel_call *call, int64_t row, int64_t *at,
                       struct tensor parts[3], struct error *err) CHECKED;

/*
 * Outputs 0, 1 and 2 become the sparse tensor that has `count` others, three tensors each, at
 * the places of `lead`.  INVALID for those that differ in rank, or have other values than
 * `dtype`.
 */
bool kernel_sparse_join(struct kernel_call *call, const struct tensor *tensors, int64_t count,
                        const struct shape *lead, enum dtype dtype, struct error *err) CHECKED;

/* out: a VARIANT vector of the three. */
bool kernel_sparse_element(struct tensor *out, const struct tensor *indices,
                           const struct tensor *values, const struct tensor *shape,
                           struct error *err) CHECKED;
