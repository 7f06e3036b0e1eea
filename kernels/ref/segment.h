/* segment.h - segment numbers: what the segment ops check first, and the shape they give. */
#pragma once

#include "kernels/ref/numbers.h"

/* Numbers do not decrease and are not negative; `*segments` is one more than the last. */
bool kernel_segment_sorted(const struct tensor *ids, int64_t *segments,
                           struct error *err) CHECKED;

/* For a number for each row of `data`, sorted: the shape of the output. */
bool kernel_segment_rows(const struct kernel_call *call, struct shape *shape,
                         struct error *err) CHECKED;

/*
 * For numbers in any order that may have dimensions (input 1), at most the scalar input 2; a
 * negative one is left out.  The shape of the output.
 */
bool kernel_segment_unsorted(const struct kernel_call *call, struct shape *shape,
                             struct error *err) CHECKED;
