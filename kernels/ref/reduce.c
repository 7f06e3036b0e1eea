/*
 * reduce.c - reductions along axes.  Every element of the input is added to the one of the
 * output that it belongs to, in an accumulator of double, complex double or 64-bit integers.
 */

#include "kernels/ref/numbers.h"

#include <math.h>

enum kind { SUM, MEAN, PROD, MAX, MIN, ALL, ANY };

struct plan {
    struct shape shape;               /* of the output */
    int64_t steps[LIMIT_TENSOR_RANK]; /* of the output along the input's dimensions */
    int64_t parts;                    /* elements of the input in one of the output */
};

static bool plan_axes(const struct kernel_call *call, uint64_t *reduced, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *axes = kernel_in(call, 1);
    int rank = in->shape.rank;
    *reduced = 0;
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_integer(axes, i);
        if (axis < -rank || axis >= rank)
            return fail(err, INVALID,
                        "Invalid reduction dimension (%lld for input with %d dimension(s)",
                        (long long)axis, rank);
        uint64_t bit = BIT(axis < 0 ? axis + rank : axis);
        if (*reduced & bit)
            return fail(err, INVALID,
                        "Invalid reduction arguments: Axes contains duplicate "
                        "dimension: %lld",
                        (long long)(axis < 0 ? axis + rank : axis));
        *reduced |= bit;
    }
    return true;
}

static void plan_make(const struct shape *in, uint64_t reduced, bool keep, struct plan *plan)
{
    plan->shape.rank = 0;
    plan->parts = 1;
    for (int d = 0; d < in->rank; d++) {
        if (reduced & BIT(d)) {
            plan->parts *= in->dims[d];
            if (keep)
                plan->shape.dims[plan->shape.rank++] = 1;
        } else {
            plan->shape.dims[plan->shape.rank++] = in->dims[d];
        }
    }
    int64_t step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        plan->steps[d] = reduced & BIT(d) ? 0 : step;
        if (!(reduced & BIT(d)))
            step *= in->dims[d];
    }
}

/* Walks the input in order; `*to` follows in the output. */
static void advance(const struct shape *in, const int64_t *steps, int64_t *index, int64_t *to)
{
    for (int d = in->rank - 1; d >= 0; d--) {
        *to += steps[d];
        if (++index[d] < in->dims[d])
            return;
        *to -= steps[d] * in->dims[d];
        index[d] = 0;
    }
}

static double join_real(enum kind kind, double sum, double value)
{
    switch (kind) {
    case PROD:
        return sum * value;
    case MAX:
        return sum != sum || value != value ? sum + value : (value > sum ? value : sum);
    case MIN:
        return sum != sum || value != value ? sum + value : (value < sum ? value : sum);
    default:
        return sum + value;
    }
}

static void reduce_real(const struct tensor *in, const struct plan *plan, enum kind kind,
                        double *sums, struct tensor *out)
{
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(out->dtype);
    int64_t index[LIMIT_TENSOR_RANK] = {0}, to = 0;
    double first = kind == PROD ? 1 : kind == MAX ? -INFINITY : kind == MIN ? INFINITY : 0;
    for (int64_t i = 0; i < out->count; i++)
        sums[i] = first;
    for (int64_t i = 0; i < in->count; i++) {
        sums[to] = join_real(kind, sums[to], load(in->data, i));
        advance(&in->shape, plan->steps, index, &to);
    }
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, kind == MEAN ? sums[i] / (double)plan->parts : sums[i]);
}

static void reduce_complex(const struct tensor *in, const struct plan *plan, enum kind kind,
                           double complex *sums, struct tensor *out)
{
    int64_t index[LIMIT_TENSOR_RANK] = {0}, to = 0;
    for (int64_t i = 0; i < out->count; i++)
        sums[i] = kind == PROD ? 1 : 0;
    for (int64_t i = 0; i < in->count; i++) {
        double complex value = kernel_complex_at(in, i);
        sums[to] = kind == PROD ? sums[to] * value : sums[to] + value;
        advance(&in->shape, plan->steps, index, &to);
    }
    for (int64_t i = 0; i < out->count; i++)
        kernel_set_complex(
            out, i, kind == MEAN && plan->parts ? sums[i] / (double)plan->parts : sums[i]);
}

static uint64_t least(enum dtype dtype)
{
    int bits = (int)dtype_size(dtype) * 8;
    return DTYPES_UNSIGNED & BIT(dtype) ? 0 : (uint64_t)0 - (UINT64_C(1) << (bits - 1));
}

static uint64_t greatest(enum dtype dtype)
{
    int bits = (int)dtype_size(dtype) * 8;
    if (DTYPES_UNSIGNED & BIT(dtype))
        return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    return (UINT64_C(1) << (bits - 1)) - 1;
}

static uint64_t join_integer(enum kind kind, bool is_unsigned, uint64_t sum, uint64_t value)
{
    bool less = is_unsigned ? value < sum : (int64_t)value < (int64_t)sum;
    switch (kind) {
    case PROD:
        return sum * value;
    case MAX:
        return less ? sum : value;
    case MIN:
        return less ? value : sum;
    case ALL:
        return sum && value;
    case ANY:
        return sum || value;
    default:
        return sum + value;
    }
}

static void reduce_integer(const struct tensor *in, const struct plan *plan, enum kind kind,
                           uint64_t *sums, struct tensor *out)
{
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    bool is_unsigned = (DTYPES_UNSIGNED & BIT(in->dtype)) != 0;
    int64_t index[LIMIT_TENSOR_RANK] = {0}, to = 0;
    uint64_t first = kind == PROD || kind == ALL ? 1
                     : kind == MAX               ? least(in->dtype)
                     : kind == MIN               ? greatest(in->dtype)
                                                 : 0;
    for (int64_t i = 0; i < out->count; i++)
        sums[i] = first;
    for (int64_t i = 0; i < in->count; i++) {
        sums[to] = join_integer(kind, is_unsigned, sums[to], load(in->data, i));
        advance(&in->shape, plan->steps, index, &to);
    }
    for (int64_t i = 0; i < out->count; i++) {
        uint64_t sum = sums[i];
        if (kind == MEAN && plan->parts == 0)
            sum = 0;
        else if (kind == MEAN)
            sum = is_unsigned ? sum / (uint64_t)plan->parts
                              : (uint64_t)((int64_t)sum / plan->parts);
        store(out->data, i, sum);
    }
}

static bool reduce(struct kernel_call *call, enum kind kind, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool keep = node_attr_bool(call->node, "keep_dims", false);
    uint64_t reduced;
    struct plan plan;
    if (!plan_axes(call, &reduced, err))
        return false;
    plan_make(&in->shape, reduced, keep, &plan);
    if (reduced == 0) {
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    struct tensor *out = kernel_output(call, 0, &plan.shape, err);
    void *sums = out ? kernel_scratch(call, (size_t)out->count * 16 + 16, err) : NULL;
    if (!sums)
        return false;
    if (DTYPES_COMPLEX & BIT(in->dtype))
        reduce_complex(in, &plan, kind, sums, out);
    else if (DTYPES_FLOAT & BIT(in->dtype))
        reduce_real(in, &plan, kind, sums, out);
    else
        reduce_integer(in, &plan, kind, sums, out);
    return true;
}

static bool sum_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, SUM, err);
}
static bool mean_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, MEAN, err);
}
static bool prod_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, PROD, err);
}
static bool max_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, MAX, err);
}
static bool min_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, MIN, err);
}
static bool all_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, ALL, err);
}
static bool any_run(struct kernel_call *call, struct error *err)
{
    return reduce(call, ANY, err);
}

#define REDUCE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_,                            \
    }

const struct kernel kernel_sum_ref = REDUCE("Sum", DTYPES_NUMBER, sum_run);
const struct kernel kernel_mean_ref = REDUCE("Mean", DTYPES_NUMBER, mean_run);
const struct kernel kernel_prod_ref = REDUCE("Prod", DTYPES_NUMBER, prod_run);
const struct kernel kernel_max_ref = REDUCE("Max", DTYPES_REAL, max_run);
const struct kernel kernel_min_ref = REDUCE("Min", DTYPES_REAL, min_run);
const struct kernel kernel_all_ref = REDUCE("All", 0, all_run);
const struct kernel kernel_any_ref = REDUCE("Any", 0, any_run);
