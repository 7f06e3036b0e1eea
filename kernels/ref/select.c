/* select.c - selection, clipping, conversion, and sums of many tensors. */

#include "kernels/ref/move.h"

#include <math.h>

static bool check_select(const struct kernel_call *call, struct error *err)
{
    const struct shape *condition = &kernel_in(call, 0)->shape;
    const struct shape *yes = &kernel_in(call, 1)->shape, *no = &kernel_in(call, 2)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool rows = condition->rank == 1 && yes->rank != 1;
    if (condition->rank != 0 && !rows)
        return kernel_same_shape(call, 0, 1, err) && kernel_same_shape(call, 0, 2, err);
    if (rows && yes->rank == 0)
        return fail(err, INVALID, "'then' must be at least a vector, but saw shape: []");
    if (rows && yes->dims[0] != condition->dims[0])
        return fail(err, INVALID,
                    "Number of batches of 'then' must match size of 'cond', but saw: %lld vs. "
                    "%lld",
                    (long long)yes->dims[0], (long long)condition->dims[0]);
    return shape_equal(yes, no) ||
           fail(err, INVALID,
                "'then' and 'else' must have the same size.  but received: %s vs. %s",
                shape_text(yes, a, sizeof(a)), shape_text(no, b, sizeof(b)));
}

/* The condition is a scalar, of the same shape, or a vector that chooses rows. */
static bool select_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *condition = kernel_in(call, 0);
    const struct tensor *yes = kernel_in(call, 1), *no = kernel_in(call, 2);
    if (!check_select(call, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &yes->shape, err);
    if (!out)
        return false;
    const bool *choose = condition->data;
    int64_t row = condition->count ? out->count / condition->count : 0;
    for (int64_t i = 0; i < condition->count; i++)
        kernel_copy(out, i * row, choose[i] ? yes : no, i * row, row);
    return true;
}

static bool select_v2_run(struct kernel_call *call, struct error *err)
{
    struct shape all = kernel_in(call, 0)->shape;
    struct places places[3];
    char texts[3][SHAPE_TEXT_BYTES];
    struct error differ;
    for (int i = 0; i < 3; i++)
        shape_text(&kernel_in(call, i)->shape, texts[i], sizeof(texts[i]));
    for (int i = 1; i < 3; i++)
        if (!shape_broadcast(&all, &kernel_in(call, i)->shape, &all, &differ))
            return fail(err, INVALID,
                        "condition %s, then %s, and else %s must be broadcastable", texts[0],
                        texts[1], texts[2]);
    struct tensor *out = kernel_output(call, 0, &all, err);
    if (!out)
        return false;
    for (int i = 0; i < 3; i++)
        places[i] = kernel_broadcast_places(&kernel_in(call, i)->shape, &all);
    const bool *choose = kernel_in(call, 0)->data;
    for (int64_t i = 0; i < out->count; i++) {
        int side = choose[kernel_place(&places[0], &all, i)] ? 1 : 2;
        kernel_copy(out, i, kernel_in(call, side), kernel_place(&places[side], &all, i), 1);
    }
    return true;
}

static double clip_part(double value, double low, double high)
{
    value = value > high ? high : value;
    return low > value ? low : value;
}

/* Of complex numbers each part by itself. */
static void clip_complex(struct tensor *out, const struct tensor *in, const struct tensor *low,
                         const struct tensor *high)
{
    for (int64_t i = 0; i < out->count; i++) {
        double complex x = kernel_complex_at(in, i);
        double complex least = kernel_complex_at(low, low->shape.rank ? i : 0);
        double complex most = kernel_complex_at(high, high->shape.rank ? i : 0);
        kernel_set_complex(out, i,
                           kernel_complex(clip_part(creal(x), creal(least), creal(most)),
                                          clip_part(cimag(x), cimag(least), cimag(most))));
    }
}

/* Limits are scalars or of the shape of the input; a NaN stays. */
static bool clip_by_value_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    char texts[3][SHAPE_TEXT_BYTES];
    for (int i = 0; i < 3; i++)
        shape_text(&kernel_in(call, i)->shape, texts[i], sizeof(texts[i]));
    for (int i = 1; i < 3; i++) {
        const struct shape *limit = &kernel_in(call, i)->shape;
        if (limit->rank != 0 && !shape_equal(limit, &in->shape))
            return fail(err, INVALID,
                        "clip_value_min and clip_value_max must be either of the same shape as "
                        "input, or a scalar. input shape: %sclip_value_min shape: "
                        "%sclip_value_max shape: %s",
                        texts[0], texts[1], texts[2]);
    }
    struct tensor *out = kernel_output_reuse(call, 0, 0, &in->shape, err);
    if (!out)
        return false;
    const struct tensor *low = kernel_in(call, 1), *high = kernel_in(call, 2);
    if (BIT(in->dtype) & DTYPES_COMPLEX) {
        clip_complex(out, in, low, high);
        return true;
    }
    kernel_greater *greater = kernel_greater_for(in->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t most = high->shape.rank ? i : 0, least = low->shape.rank ? i : 0, at = i;
        const struct tensor *from = in;
        if (greater(in->data, i, high->data, most)) {
            from = high;
            at = most;
        }
        if (greater(low->data, least, from->data, at)) {
            from = low;
            at = least;
        }
        if (from->data != out->data)
            kernel_copy(out, i, from, at, 1);
    }
    return true;
}

/* --- conversion --- */

/* Drops mantissa bits in place of rounding, as the attribute Truncate asks. */
static double truncated(double value, enum dtype to)
{
    if (to == BF16 || to == F32 || to == F16) {
        float f = (float)value;
        if (fabs((double)f) > fabs(value))
            f = nextafterf(f, 0);
        uint32_t bits;
        memcpy(&bits, &f, sizeof(bits));
        bits &= to == BF16 ? 0xffff0000u : to == F16 ? 0xffffe000u : 0xffffffffu;
        memcpy(&f, &bits, sizeof(f));
        return f;
    }
    return value;
}

/* As the hardware converts: what does not fit becomes the least number of int32 or int64, of
 * which shorter types keep the low bits. */
static uint64_t to_integer(double value, enum dtype to)
{
    bool wide = to == I64 || to == U64 || to == U32;
    if (to == U64 && value >= 9223372036854775808.0 && value < 18446744073709551616.0)
        return (uint64_t)value;
    double limit = wide ? 9223372036854775808.0 : 2147483648.0;
    if (!(value >= -limit && value < limit))
        return wide ? UINT64_C(1) << 63 : (uint64_t)INT64_C(-2147483648);
    return (uint64_t)(int64_t)value;
}

static void cast_one(const struct tensor *in, struct tensor *out, int64_t i, bool truncate)
{
    kernel_load_bits *load = kernel_load_bits_for(in->dtype);
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    if (load && store) {
        uint64_t bits = load(in->data, i);
        store(out->data, i, out->dtype == BOOL ? bits != 0 : bits);
        return;
    }
    if (load && out->dtype == F32 && in->dtype != U64) {
        ((float *)out->data)[i] = (float)(int64_t)load(in->data, i);
        return;
    }
    double complex value = kernel_complex_at(in, i);
    if (store)
        store(out->data, i,
              out->dtype == BOOL ? value != 0 : to_integer(creal(value), out->dtype));
    else if (!truncate)
        kernel_set_complex(out, i, value);
    else if (out->dtype == C64)
        for (int part = 0; part < 2; part++)
            ((float *)out->data)[2 * i + part] =
                (float)truncated(part ? cimag(value) : creal(value), F32);
    else
        kernel_set_complex(out, i, truncated(creal(value), out->dtype));
}

static bool cast_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    enum dtype to = dtype_base(call->node->output_types[0]);
    const uint64_t known = DTYPES_NUMBER | BIT(BOOL);
    if (to == in->dtype) {
        kernel_output_share(call, 0, in, &in->shape);
        return true;
    }
    if (!(known & BIT(in->dtype)) || !(known & BIT(to)))
        return fail(err, UNIMPLEMENTED, "Cast %s to %s is not supported", dtype_name(in->dtype),
                    dtype_name(to));
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    /* To bfloat16 TensorFlow obeys the attribute from float only. */
    bool truncate = node_attr_bool(call->node, "Truncate", false) &&
                    (BIT(in->dtype) & (BIT(F32) | BIT(F64) | DTYPES_COMPLEX)) &&
                    (to != BF16 || in->dtype == F32);
    for (int64_t i = 0; i < out->count; i++)
        cast_one(in, out, i, truncate);
    return true;
}

/* --- sums of many --- */

static bool add_n_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *first = kernel_in(call, 0);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 1; i < call->in_count; i++)
        if (!shape_equal(&first->shape, &kernel_in(call, i)->shape)) {
            if (strcmp(call->node->op->name, "AccumulateNV2") == 0)
                return fail(err, INVALID, "Parameters and update must be the same size");
            return fail(err, INVALID,
                        "Inputs to operation %s of type %s must have the same size and shape.  "
                        "Input 0: %s != input %d: %s",
                        call->node->name, call->node->op->name,
                        shape_text(&first->shape, a, sizeof(a)), i,
                        shape_text(&kernel_in(call, i)->shape, b, sizeof(b)));
        }
    struct tensor *out = kernel_output(call, 0, &first->shape, err);
    if (!out)
        return false;
    kernel_load_bits *load = kernel_load_bits_for(out->dtype);
    for (int64_t k = 0; k < out->count; k++) {
        uint64_t whole = 0;
        double complex sum = 0;
        for (int i = 0; i < call->in_count; i++) {
            if (load)
                whole += load(kernel_in(call, i)->data, k);
            else
                sum += kernel_complex_at(kernel_in(call, i), k);
        }
        if (load)
            kernel_store_bits_for(out->dtype)(out->data, k, whole);
        else
            kernel_set_complex(out, k, sum);
    }
    return true;
}

#define SELECT(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_select_ref = SELECT("Select", 0, select_run);
const struct kernel kernel_select_v2_ref = SELECT("SelectV2", 0, select_v2_run);
const struct kernel kernel_clip_by_value_ref =
    SELECT("ClipByValue", DTYPES_NUMBER, clip_by_value_run);
const struct kernel kernel_cast_ref = SELECT("Cast", 0, cast_run);
const struct kernel kernel_add_n_ref = SELECT("AddN", DTYPES_NUMBER, add_n_run);
const struct kernel kernel_accumulate_nv2_ref =
    SELECT("AccumulateNV2", DTYPES_NUMBER, add_n_run);
