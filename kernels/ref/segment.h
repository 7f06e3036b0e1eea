/* segment.h - segment numbers: what the segment ops check first, and the shape they give. */
#pragma once

#include "kernels/ref/numbers.h"

/* One more than the last number; fails where that is negative. */
bool kernel_segment_count(const struct tensor *ids, int64_t *segments,
                          struct error *err) CHECKED;

/*
 * Numbers do not decrease, are not negative and less than `segments`; with `picks`, a row for
 * each number, these are in [0, rows).
 */
bool kernel_segment_sorted(const struct tensor *ids, int64_t segments,
                           const struct tensor *picks, int64_t rows, struct error *err) CHECKED;

/* Rows and their segments are vectors of one length. */
bool kernel_segment_picks(const struct tensor *picks, const struct tensor *ids,
                          struct error *err) CHECKED;

/* For gradients: ids in [0, segments), picks in [0, rows). */
bool kernel_segment_grad(const struct tensor *ids, int64_t segments, const struct tensor *picks,
                         int64_t rows, struct error *err) CHECKED;

/* The scalar input 3 of gradients, by its name, not negative. */
bool kernel_segment_size(const struct kernel_call *call, const char *name, int64_t *size,
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
