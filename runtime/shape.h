/*
 * shape.h - the dimensions of a tensor; also what is known of them before there is a tensor.
 *
 * rank -1: nothing is known.  A dimension of -1: that one is not known.  A real tensor has
 * neither.  At most LIMIT_TENSOR_RANK dimensions.
 */
#pragma once

#include "base/base.h"
#include "base/limits.h"

struct error;
struct str;

struct shape {
    int rank;
    int64_t dims[LIMIT_TENSOR_RANK];
};

#define SHAPE_UNKNOWN ((struct shape){.rank = -1})
#define SHAPE_SCALAR ((struct shape){.rank = 0})
/* SHAPE(2, 3) */
#define SHAPE(...)                                                                             \
    ((struct shape){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
                    .dims = {__VA_ARGS__}})

bool shape_is_full(const struct shape *shape); /* rank and all dimensions known */
bool shape_equal(const struct shape *a, const struct shape *b);

/* Neither contradicts the other: unknown parts agree with anything. */
bool shape_compatible(const struct shape *a, const struct shape *b);

/* What both together say.  Fails with INVALID when they contradict each other. */
bool shape_merge(const struct shape *a, const struct shape *b, struct shape *out,
                 struct error *err) CHECKED;

/*
 * Number of elements of a full shape; -1 when it is not full, or overflows.  A dimension of 0
 * hides no overflow of the others, so that who has a tensor may multiply any of its sizes.
 */
int64_t shape_count(const struct shape *shape);

/*
 * Dimensions made of others: -1 when one of them is below 0 (not known, or wrong) or the result
 * is too large.  No tensor can be made of a shape with such a dimension.
 */
int64_t shape_sum(int64_t a, int64_t b);
int64_t shape_product(int64_t a, int64_t b);

/*
 * TensorFlow's (numpy's) broadcasting.  Fails with INVALID "Incompatible shapes: [2] vs. [3]".
 * Unknown parts stay unknown in the result.
 */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *out,
                     struct error *err) CHECKED;

/* Appends "[2,3]", "[?,3]", "<unknown>". */
void shape_print(const struct shape *shape, struct str *out);

/* The same into a small buffer, for error texts; returns `out`. */
const char *shape_text(const struct shape *shape, char *out, size_t out_size);
#define SHAPE_TEXT_BYTES 256
