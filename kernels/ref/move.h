/*
 * move.h - elements moved from one place to another by steps: transposes, slices, paddings.
 */
#pragma once

#include "kernels/ref/numbers.h"

/* Where elements are in a tensor: at `start` plus, for each dimension, index times step. */
struct places {
    int64_t start;
    int64_t steps[2 * LIMIT_TENSOR_RANK];
};

/* The steps of a tensor of that shape, from its first element. */
struct places kernel_places(const struct shape *shape);

/* The steps of a tensor of that shape along the dimensions of what it is broadcast to. */
struct places kernel_broadcast_places(const struct shape *shape, const struct shape *all);

/* Where element `index` of a tensor of shape `all` is by these steps. */
int64_t kernel_place(const struct places *places, const struct shape *all, int64_t index);

/* Copies every element of the box of `rank` dimensions `dims`. */
void kernel_move(struct tensor *to, const struct places *to_places, const struct tensor *from,
                 const struct places *from_places, const int64_t *dims, int rank);

/* The shape that a Transpose gives, and where its elements are in what it is given.  Fails with
 * INVALID. */
bool kernel_transposed(const struct kernel_call *call, struct shape *shape, struct places *from,
                       struct error *err) CHECKED;

/* The part of a tensor that begin, end, strides and the masks of a node stand for. */
struct strided {
    struct shape box;   /* sizes along the dimensions of the tensor */
    struct shape shape; /* of the part: with new axes, without those shrunk */
    struct places from; /* where it is in the tensor */
};

/* Of a tensor of shape `in`; begin is input `first`, end and strides come behind it.  Fails
 * with INVALID. */
bool kernel_strided(const struct kernel_call *call, int first, const struct shape *in,
                    struct strided *out, struct error *err) CHECKED;
