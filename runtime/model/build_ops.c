/* build_ops.c - TensorFlow's ops under short names, for those who write forward passes. */

#include "base/arena.h"
#include "runtime/model/build.h"
#include "runtime/tensor.h"

struct edge build_unary(struct build *m, const char *op, struct edge x)
{
    return builder_add(&m->b, op, op, INPUTS(x), NO_ATTRS);
}

struct edge build_binary(struct build *m, const char *op, struct edge x, struct edge y)
{
    return builder_add(&m->b, op, op, INPUTS(x, y), NO_ATTRS);
}

struct edge build_number(struct build *m, enum dtype dtype, double value)
{
    return builder_scalar(&m->b, "Const", dtype, value);
}

struct edge build_with_number(struct build *m, const char *op, struct edge x, double y)
{
    return build_binary(m, op, x, build_number(m, build_dtype(x), y));
}

struct edge build_ints(struct build *m, const int64_t *values, int count)
{
    return builder_ints(&m->b, "Const", I32, values, count);
}

struct edge build_pad(struct build *m, struct edge x, const int64_t *sides, int rank)
{
    struct tensor pairs;
    if (!build_ok(m) || !tensor_init(&pairs, I32, &SHAPE(rank, 2), m->b.err)) {
        m->b.failed = true;
        return (struct edge){0};
    }
    for (int i = 0; i < 2 * rank; i++)
        ((int32_t *)pairs.data)[i] = (int32_t)sides[i];
    struct edge paddings = builder_const(&m->b, "Const", &pairs);
    tensor_release(&pairs);
    return build_binary(m, "Pad", x, paddings);
}

struct edge build_cast(struct build *m, struct edge x, enum dtype dtype)
{
    if (!build_ok(m) || build_dtype(x) == dtype)
        return x;
    return builder_add(
        &m->b, "Cast", "Cast", INPUTS(x),
        ATTRS(attr_type("SrcT", (int)build_dtype(x)), attr_type("DstT", (int)dtype)));
}

struct edge build_matmul(struct build *m, struct edge x, struct edge y, bool transpose_x,
                         bool transpose_y)
{
    if (build_shape(m, x)->rank > 2 || build_shape(m, y)->rank > 2)
        return builder_add(
            &m->b, "BatchMatMulV2", "MatMul", INPUTS(x, y),
            ATTRS(attr_bool("adj_x", transpose_x), attr_bool("adj_y", transpose_y)));
    return builder_add(
        &m->b, "MatMul", "MatMul", INPUTS(x, y),
        ATTRS(attr_bool("transpose_a", transpose_x), attr_bool("transpose_b", transpose_y)));
}

struct edge build_reduce(struct build *m, const char *op, struct edge x, const int64_t *axes,
                         int axes_count, bool keep_dims)
{
    struct edge indices = build_ints(m, axes, axes_count);
    return builder_add(&m->b, op, op, INPUTS(x, indices),
                       ATTRS(attr_bool("keep_dims", keep_dims)));
}

struct edge build_reduce_all(struct build *m, const char *op, struct edge x)
{
    int64_t axes[LIMIT_TENSOR_RANK];
    int rank = build_shape(m, x)->rank;
    if (rank < 0) { /* a gradient of looked up rows, for one */
        x = build_reshape(m, x, (const int64_t[]){-1}, 1);
        rank = 1;
    }
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    return rank < 1 ? x : build_reduce(m, op, x, axes, rank, false);
}

struct edge build_reshape(struct build *m, struct edge x, const int64_t *dims, int rank)
{
    return build_binary(m, "Reshape", x, build_ints(m, dims, rank));
}

/* How many numbers an example of `x` has; -1: not known. */
static int64_t example_count(struct build *m, struct edge x)
{
    struct shape shape = *build_shape(m, x);
    if (shape.rank < 1)
        return -1;
    shape.dims[0] = 1;
    return shape_count(&shape);
}

struct edge build_reshape_examples(struct build *m, struct edge x, const int64_t *dims,
                                   int rank)
{
    int64_t all[LIMIT_TENSOR_RANK + 1] = {-1}, rest = 1, count = example_count(m, x);
    int wildcard = 0;
    if (rank >= LIMIT_TENSOR_RANK) {
        build_refuse(m, INVALID, "more than %d dimensions", LIMIT_TENSOR_RANK);
        return x;
    }
    for (int i = 1; i <= rank; i++) {
        all[i] = dims[i - 1];
        if (all[i] < 0)
            wildcard = i;
        else
            rest *= all[i];
    }
    if (wildcard && count >= 0 && rest > 0 && count % rest == 0) {
        all[wildcard] = count / rest;
        wildcard = 0;
    }
    if (!wildcard)
        return build_reshape(m, x, all, rank + 1);
    /* Two unknowns: the number of examples is taken from the tensor itself. */
    struct edge first =
        build_slice(m, build_shape_of(m, x), (const int64_t[]){0}, (const int64_t[]){1}, 1);
    struct edge others = build_ints(m, dims, rank);
    return build_binary(m, "Reshape", x, build_concat(m, (struct edge[]){first, others}, 2, 0));
}

struct edge build_transpose(struct build *m, struct edge x, const int64_t *order, int rank)
{
    return build_binary(m, "Transpose", x, build_ints(m, order, rank));
}

struct edge build_concat(struct build *m, const struct edge *xs, int count, int64_t axis)
{
    struct edge *inputs = arena_array(m->arena, (size_t)count + 1, sizeof(*inputs));
    memcpy(inputs, xs, (size_t)count * sizeof(*inputs));
    inputs[count] = build_number(m, I32, (double)axis);
    return builder_add(&m->b, "ConcatV2", "concat", inputs, count + 1,
                       ATTRS(attr_int("N", count)));
}

struct edge build_slice(struct build *m, struct edge x, const int64_t *begin,
                        const int64_t *size, int rank)
{
    struct edge from = build_ints(m, begin, rank), count = build_ints(m, size, rank);
    return builder_add(&m->b, "Slice", "Slice", INPUTS(x, from, count), NO_ATTRS);
}

struct edge build_split(struct build *m, struct edge x, int64_t axis, int parts)
{
    struct edge along = build_number(m, I32, (double)axis);
    return builder_add(&m->b, "Split", "split", INPUTS(along, x),
                       ATTRS(attr_int("num_split", parts)));
}

struct edge build_expand(struct build *m, struct edge x, int64_t axis)
{
    struct edge at = build_number(m, I32, (double)axis);
    return builder_add(&m->b, "ExpandDims", "ExpandDims", INPUTS(x, at), NO_ATTRS);
}

struct edge build_squeeze(struct build *m, struct edge x, int64_t axis)
{
    return builder_add(&m->b, "Squeeze", "Squeeze", INPUTS(x),
                       ATTRS(attr_int_list("squeeze_dims", &axis, 1)));
}

struct edge build_select(struct build *m, struct edge condition, struct edge x, struct edge y)
{
    return builder_add(&m->b, "SelectV2", "SelectV2", INPUTS(condition, x, y), NO_ATTRS);
}

struct edge build_argmax(struct build *m, struct edge x, int64_t axis, enum dtype dtype)
{
    struct edge along = build_number(m, I32, (double)axis);
    return builder_add(&m->b, "ArgMax", "ArgMax", INPUTS(x, along),
                       ATTRS(attr_type("output_type", (int)dtype)));
}

struct edge build_bias(struct build *m, struct edge x, struct edge bias)
{
    return builder_add(&m->b, "BiasAdd", "BiasAdd", INPUTS(x, bias), NO_ATTRS);
}

struct edge build_shape_of(struct build *m, struct edge x)
{
    return builder_add(&m->b, "Shape", "Shape", INPUTS(x), ATTRS(attr_type("out_type", I32)));
}
