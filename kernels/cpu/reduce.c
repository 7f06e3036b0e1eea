/*
 * reduce.c - Sum, Mean and Max in float over any axes.
 *
 * Axes side by side are one; each group of them is reduced by itself, last first, as the middle
 * of (outer,middle,inner).  Long sums are made of a fixed number of slices, so that the order
 * of additions does not depend on the threads.
 */
#include "kernels/cpu/reduce.h"

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

enum reduction { SUM, MEAN, MAX };

#define SLICES 16

/* Which axes go, as bits. */
static bool read_axes(const struct tensor *axes, int rank, unsigned *bits, struct error *err)
{
    *bits = 0;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_integer(axes, i);
        if (axis < -rank || axis >= rank)
            return fail(err, INVALID,
                        "Invalid reduction dimension (%lld for input with %d dimension(s)",
                        (long long)axis, rank);
        unsigned bit = 1u << (axis < 0 ? axis + rank : axis);
        if (*bits & bit)
            return fail(err, INVALID,
                        "Invalid reduction arguments: Axes contains duplicate dimension: %lld",
                        (long long)(axis < 0 ? axis + rank : axis));
        *bits |= bit;
    }
    return true;
}

static struct shape reduced_shape(const struct shape *in, unsigned bits, bool keep)
{
    struct shape out = SHAPE_SCALAR;
    for (int i = 0; i < in->rank; i++) {
        if (!(bits & 1u << i))
            out.dims[out.rank++] = in->dims[i];
        else if (keep)
            out.dims[out.rank++] = 1;
    }
    return out;
}

/* (middle,inner), inner > 1, columns [from,to). */
static void reduce_columns(enum reduction kind, int64_t middle, int64_t inner, struct range r,
                           const float *x, float *out)
{
    if (kind != MAX) {
        isa()->column_sums(middle, inner, r.from, r.to, x, out);
        return;
    }
    memcpy(out + r.from, x + r.from, (size_t)(r.to - r.from) * sizeof(float));
    for (int64_t i = 1; i < middle; i++)
        isa()->binary(ISA_MAXIMUM, r.to - r.from, out + r.from, false, x + i * inner + r.from,
                      false, out + r.from);
}

/* One long row, in slices. */
static float reduce_row(enum reduction kind, int64_t count, int threads, const float *x)
{
    float parts[SLICES];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < SLICES; t++) {
        struct range r = parallel_range(count, 16, SLICES, t);
        parts[t] = kind == MAX ? isa()->maximum(r.to - r.from, x + r.from)
                               : isa()->sum(r.to - r.from, x + r.from);
    }
    return kind == MAX ? isa()->maximum(SLICES, parts) : isa()->sum(SLICES, parts);
}

float reduce_sum_row(int64_t rows, int64_t count, const float *x)
{
    return rows == 1 ? reduce_row(SUM, count, 1, x) : isa()->sum(count, x);
}

static void reduce_middle(enum reduction kind, int64_t outer, int64_t middle, int64_t inner,
                          int threads, const float *x, float *out)
{
    if (outer == 1 && inner == 1) {
        *out = reduce_row(kind, middle, threads, x);
        return;
    }
    if (outer == 1) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int t = 0; t < threads; t++)
            reduce_columns(kind, middle, inner, parallel_range(inner, 16, threads, t), x, out);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < outer; i++) {
        const float *from = x + i * middle * inner;
        if (inner > 1)
            reduce_columns(kind, middle, inner, (struct range){0, inner}, from,
                           out + i * inner);
        else
            out[i] = kind == MAX ? isa()->maximum(middle, from) : isa()->sum(middle, from);
    }
}

/* The last run of axes in `bits`: [start,end). */
static void last_group(const struct shape *shape, unsigned bits, int *start, int *end)
{
    *end = shape->rank;
    while (!(bits & 1u << (*end - 1)))
        (*end)--;
    *start = *end;
    while (*start > 0 && bits & 1u << (*start - 1))
        (*start)--;
}

/* Group by group; what comes before the last one goes through scratch. */
static bool reduce_groups(struct kernel_call *call, enum reduction kind, struct shape shape,
                          unsigned bits, const float *x, float *result, struct error *err)
{
    while (bits) {
        int start, end;
        last_group(&shape, bits, &start, &end);
        int64_t outer = 1, middle = 1, inner = 1;
        for (int i = 0; i < shape.rank; i++)
            *(i < start ? &outer : i < end ? &middle : &inner) *= shape.dims[i];
        bits &= (1u << start) - 1;
        float *to = result;
        if (bits && !(to = kernel_scratch(call, (size_t)(outer * inner) * sizeof(float), err)))
            return false;
        reduce_middle(kind, outer, middle, inner,
                      parallel_threads(call, outer * middle * inner), x, to);
        memmove(shape.dims + start, shape.dims + end,
                (size_t)(shape.rank - end) * sizeof(shape.dims[0]));
        shape.rank -= end - start;
        x = to;
    }
    return true;
}

static void fill_empty(enum reduction kind, const struct tensor *x, float *out, int64_t count)
{
    /* Nothing was summed: 0; the mean of nothing is NaN, the largest -inf. */
    float value = kind == SUM ? 0 : kind == MEAN ? 0.0f / (float)x->count : -1.0f / 0.0f;
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
}

static bool run(struct kernel_call *call, enum reduction kind, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    unsigned bits;
    if (!read_axes(kernel_in(call, 1), x->shape.rank, &bits, err))
        return false;
    struct shape shape =
        reduced_shape(&x->shape, bits, node_attr_bool(call->node, "keep_dims", false));
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    float *result = tensor_f32_mut(out);
    if (x->count == 0) {
        fill_empty(kind, x, result, out->count);
        return true;
    }
    if (!bits) {
        memcpy(result, x->data, (size_t)x->count * sizeof(float));
        return true;
    }
    if (!reduce_groups(call, kind, x->shape, bits, tensor_f32(x), result, err))
        return false;
    if (kind == MEAN) {
        float scale = (float)x->count / (float)out->count;
        isa()->binary(ISA_DIV, out->count, result, false, &scale, true, result);
    }
    return true;
}

static bool sum_run(struct kernel_call *call, struct error *err)
{
    return run(call, SUM, err);
}

static bool mean_run(struct kernel_call *call, struct error *err)
{
    return run(call, MEAN, err);
}

static bool max_run(struct kernel_call *call, struct error *err)
{
    return run(call, MAX, err);
}

const struct kernel kernel_sum_cpu = {
    .op = "Sum",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = sum_run,
};

const struct kernel kernel_mean_cpu = {
    .op = "Mean",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = mean_run,
};

const struct kernel kernel_max_cpu = {
    .op = "Max",
    .device = CPU,
    .dtypes = BIT(F32),
    .run = max_run,
};
