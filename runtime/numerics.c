/* numerics.c - scans what calls make. */

#include "runtime/numerics.h"

#include <math.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* Of finite inputs these make finite outputs. */
static bool makes_none(const struct node *node)
{
    static const char *const ops[] = {
        "Relu",     "ReluGrad",      "MaxPool",    "Reshape",  "Identity", "Transpose",
        "Shape",    "Const",         "Maximum",    "Minimum",  "Slice",    "Concat",
        "ConcatV2", "Pack",          "ExpandDims", "Squeeze",  "GatherV2", "Gather",
        "Sign",     "Neg",           "Abs",        "Softmax",  "Tanh",     "Sigmoid",
        "Fill",     "ZerosLike",     "OnesLike",   "ArgMax",   "Max",      "Min",
        "Cast",     "Equal",         "Select",     "SelectV2", "Pad",      "Tile",
        "Floor",    "RandomUniform",
    };
    for (int i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(ops[i], node->op->name))
            /* A Cast to fewer bits may overflow. */
            return strcmp(ops[i], "Cast") != 0 || node->output_types[0] == F64 ||
                   node->output_types[0] == F32;
    return false;
}

/* --- scanning --- */

typedef int32_t four __attribute__((vector_size(16)));
typedef int32_t four_memory __attribute__((vector_size(16), aligned(4), may_alias));

/* Whether all of `count` floats are finite: the exponent of others is all ones. */
static bool f32_finite(const float *x, int64_t count)
{
    const four ones = {0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000};
    four bad[4] = {{0}};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        for (int k = 0; k < 4; k++)
            bad[k] |= (*(const four_memory *)(x + i + 4 * k) & ones) == ones;
    }
    four any = bad[0] | bad[1] | bad[2] | bad[3];
    bool finite = !(any[0] | any[1] | any[2] | any[3]);
    for (; finite && i < count; i++)
        finite = isfinite(x[i]);
    return finite;
}

static bool is_watched(const struct tensor *tensor)
{
    return BIT(tensor->dtype) & DTYPES_FLOAT && tensor->data;
}

static bool all_finite(const struct tensor *tensor)
{
    if (tensor->dtype == F32)
        return f32_finite(tensor_f32(tensor), tensor->count);
    for (int64_t i = 0; i < tensor->count; i++)
        if (!isfinite(tensor_number(tensor, i)))
            return false;
    return true;
}

/* The least and the greatest of finite floats, four at a time. */
static void f32_range(const float *x, int64_t count, double *low, double *high)
{
    typedef float vector __attribute__((vector_size(16)));
    typedef float vector_memory __attribute__((vector_size(16), aligned(4), may_alias));
    vector least = {INFINITY, INFINITY, INFINITY, INFINITY}, most = -least;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        vector v = *(const vector_memory *)(x + i);
        least = (vector)(((four)v & (v < least)) | ((four)least & ~(v < least)));
        most = (vector)(((four)v & (v > most)) | ((four)most & ~(v > most)));
    }
    for (; i < count; i++) {
        least[0] = x[i] < least[0] ? x[i] : least[0];
        most[0] = x[i] > most[0] ? x[i] : most[0];
    }
    *low = least[0];
    *high = most[0];
    for (int k = 1; k < 4; k++) {
        *low = least[k] < *low ? least[k] : *low;
        *high = most[k] > *high ? most[k] : *high;
    }
}

/* The least and the greatest, NaN if there is one. */
static void range_of(const struct tensor *tensor, double *low, double *high)
{
    if (tensor->dtype == F32 && f32_finite(tensor_f32(tensor), tensor->count)) {
        f32_range(tensor_f32(tensor), tensor->count, low, high);
        return;
    }
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < tensor->count; i++) {
        double x = tensor_number(tensor, i);
        if (isnan(x)) {
            *low = *high = x;
            return;
        }
        *low = x < *low ? x : *low;
        *high = x > *high ? x : *high;
    }
}

static const struct tensor *input(const struct kernel_call *call, int i)
{
    const struct tensor *in = call->in[i];
    return in && BIT(in->dtype) & DTYPES_REAL && in->data && in->count ? in : NULL;
}

void numerics_before(const struct kernel_call *call, struct numerics *seen)
{
    memset(seen->known, 0, sizeof(seen->known));
    if (!call->reusable || makes_none(call->node))
        return;
    for (int i = 0; i < call->in_count && i < NUMERICS_INPUTS; i++) {
        const struct tensor *in = call->reusable >> i & 1 ? input(call, i) : NULL;
        seen->known[i] = in && is_watched(in);
        if (seen->known[i])
            range_of(in, &seen->low[i], &seen->high[i]);
    }
}

/* --- telling --- */

static void tell_input(const struct kernel_call *call, const struct numerics *seen, int i,
                       struct str *text)
{
    const struct tensor *in = input(call, i);
    const struct edge *edge = &call->node->inputs[i];
    char shape[SHAPE_TEXT_BYTES];
    if (!in)
        return;
    double low, high;
    range_of(in, &low, &high);
    if (i < NUMERICS_INPUTS && seen->known[i])
        low = seen->low[i], high = seen->high[i];
    int size = (int)strlen(edge->from->name);
    const char *name = edge->from->name;
    if (edge->from->op == &prune_arg)
        name = prune_fed_name(edge->from, &size);
    str_printf(text, "; '%.*s", size, name);
    if (edge->output)
        str_printf(text, ":%d", edge->output);
    str_printf(text, "' %s%s ", dtype_name(in->dtype),
               shape_text(&in->shape, shape, sizeof(shape)));
    if (isnan(low))
        str_add(text, "has NaN");
    else if (low == high)
        str_printf(text, "is %g", low);
    else
        str_printf(text, "from %g to %g", low, high);
}

static bool tell(const struct kernel_call *call, const struct numerics *seen, int output,
                 struct error *err)
{
    const struct tensor *out = &call->out[output];
    int64_t nans = 0, infinities = 0;
    char shape[SHAPE_TEXT_BYTES];
    struct str inputs = {0};
    for (int64_t i = 0; i < out->count; i++) {
        nans += isnan(tensor_number(out, i)) != 0;
        infinities += isinf(tensor_number(out, i)) != 0;
    }
    for (int i = 0; i < call->in_count; i++)
        tell_input(call, seen, i, &inputs);
    error_at(err, NUMERICS_POINTER, INVALID,
             "output %d, %s%s, has %lld NaN and %lld infinite of %lld elements; its inputs%s%s",
             output, dtype_name(out->dtype), shape_text(&out->shape, shape, sizeof(shape)),
             (long long)nans, (long long)infinities, (long long)out->count,
             inputs.size ? ":" : " are no numbers", inputs.size ? str_text(&inputs) + 1 : "");
    str_release(&inputs);
    return false;
}

bool numerics_after(const struct kernel_call *call, const struct numerics *seen,
                    struct error *err)
{
    if (makes_none(call->node))
        return true;
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct tensor *out = &call->out[i];
        if (!dtype_is_ref(call->node->output_types[i]) && is_watched(out) && !all_finite(out))
            return tell(call, seen, i, err);
    }
    return true;
}
