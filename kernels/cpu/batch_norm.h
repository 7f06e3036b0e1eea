/*
 * batch_norm.h - how batch normalisation and its gradient cut an image into blocks.
 *
 * x is (rows, channels), channels last.  Several rows count as one line of more columns, so
 * that few channels fill vectors too.  A block is as many lines as fit the first cache; rows
 * that do not fill a line are a last block of their own.  What is summed is summed block by
 * block, and blocks are put together in order: the bits do not depend on the threads.
 */
#pragma once

#include "base/base.h"

struct error;
struct kernel_call;

struct batch_norm_cut {
    int64_t rows, channels;
    int64_t columns; /* of a line: channels, or several times that */
    int64_t lines, lines_each;
    int64_t blocks;
};

struct batch_norm_block {
    int64_t at; /* of its first element */
    int64_t rows, columns;
};

struct batch_norm_cut batch_norm_cut(int64_t rows, int64_t channels);
struct batch_norm_block batch_norm_block(const struct batch_norm_cut *cut, int64_t index);

/* Repeats a vector over the channels to fill the columns. */
void batch_norm_spread(const struct batch_norm_cut *cut, float *vector);

/*
 * Adds up what each block has for its columns (`stride` floats from one block to the next) to a
 * sum per channel.
 */
void batch_norm_gather(const struct batch_norm_cut *cut, const float *parts, int64_t stride,
                       double *total);
