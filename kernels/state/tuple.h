/*
 * tuple.h - what queues, barriers and stages hold: an array of tensors, one per component.
 */
#pragma once

#include "runtime/tensor.h"

struct error;

/* `count` tensors, each no tensor yet. */
struct tensor *kernel_tuple_new(int count);
void kernel_tuple_free(struct tensor *tuple, int count); /* NULL is fine */

/* References to the tensors given. */
struct tensor *kernel_tuple_share(const struct tensor *const *tensors, int count);

/* A copy of element `index` along the first dimension.  Fails with EXHAUSTED. */
bool kernel_tuple_slice(struct tensor *out, const struct tensor *batch, int64_t index,
                        struct error *err) CHECKED;

/* The tuple of row `index` of batches; NULL (EXHAUSTED) if there is no memory. */
struct tensor *kernel_tuple_row(const struct tensor *batches, int count, int64_t index,
                                struct error *err) CHECKED;

/*
 * Component `component` of all rows, stacked along a new first dimension.  `shape` is that of
 * an element: what it leaves open is as large as the largest, and filled up with zeros.
 */
bool kernel_tuple_stack(struct tensor *out, struct tensor *const *rows, int64_t rows_count,
                        int component, enum dtype dtype, const struct shape *shape,
                        struct error *err) CHECKED;
