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

/* out: a VARIANT vector of the three. */
bool kernel_sparse_element(struct tensor *out, const struct tensor *indices,
                           const struct tensor *values, const struct tensor *shape,
                           struct error *err) CHECKED;
