/*
 * conv.c - convolutions of images and volumes and their gradients, straight from the
 * definition.
 *
 * One walk over all (output place, filter element) pairs serves all three: each pair names an
 * element of the input, the filter and the output, and each op sums products of two of them
 * into the third.  Depthwise: output channel = input channel * multiplier + m.
 */

#include "kernels/ref/rules.h"
#include "kernels/ref/sums.h"
#include "kernels/ref/window.h"

struct conv {
    struct window w;
    int64_t in, out; /* channels of the filter: (planes, height, width, in, out) */
    bool depthwise;
};

enum role { INPUT, FILTER, OUTPUT };

static int64_t out_channels(const struct conv *conv)
{
    return conv->depthwise ? conv->in * conv->out : conv->out;
}

/* What is summed, and where to. */
struct products {
    const struct conv *conv;
    enum role into;
    kernel_load *load;
    const void *data[3]; /* by role; NULL for the one summed into */
    double *sums;
    uint32_t *whole; /* in place of sums: of int32, which wraps around */
};

/* The place in the input of filter element `f` at output place `o`; false: in the padding. */
static bool input_place(const struct window *w, const int64_t o[3], const int64_t f[3],
                        int64_t place[3])
{
    for (int d = 0; d < 3; d++) {
        place[d] = o[d] * w->stride[d] - w->before[d] + f[d] * w->dilation[d];
        if (place[d] < 0 || place[d] >= w->size[d])
            return false;
    }
    return true;
}

/* The products of filter element number `index`, at `place` of the input, for output place `o`.
 */
static void add_products(const struct products *p, int64_t n, const int64_t o[3],
                         const int64_t place[3], int64_t index)
{
    const struct conv *conv = p->conv;
    const struct window *w = &conv->w;
    /* Groups: a filter may see a part of the input's channels only. */
    int64_t groups = conv->depthwise ? 1 : w->channels / conv->in;
    int64_t per_group = groups ? conv->out / groups : 0;
    for (int64_t c = 0; c < w->channels; c++) {
        int64_t first = conv->depthwise ? 0 : c / conv->in * per_group;
        for (int64_t k = first; k < first + per_group; k++) {
            int64_t channel = conv->depthwise ? c * conv->out + k : k;
            int64_t at[3] = {window_at(w, w->size, w->channels, n, place, c),
                             (index * conv->in + c % conv->in) * conv->out + k,
                             window_at(w, w->out, out_channels(conv), n, o, channel)};
            if (p->whole) {
                uint32_t whole = 1;
                for (int r = INPUT; r <= OUTPUT; r++)
                    if (r != (int)p->into)
                        whole *= ((const uint32_t *)p->data[r])[at[r]];
                p->whole[at[p->into]] += whole;
                continue;
            }
            double product = 1;
            for (int r = INPUT; r <= OUTPUT; r++)
                if (r != (int)p->into)
                    product *= p->load(p->data[r], at[r]);
            p->sums[at[p->into]] += product;
        }
    }
}

static void walk(const struct products *p)
{
    static const int64_t origin[3];
    const struct window *w = &p->conv->w;
    int64_t outputs = window_places(w->out), elements = window_places(w->window);
    for (int64_t n = 0; outputs && elements && n < w->batch; n++) {
        int64_t o[3] = {0}, f[3] = {0}, place[3];
        for (int64_t i = 0; i < outputs; i++, window_step(origin, w->out, o))
            for (int64_t j = 0; j < elements; j++, window_step(origin, w->window, f))
                if (input_place(w, o, f, place))
                    add_products(p, n, o, place, j);
    }
}

static bool compute(struct kernel_call *call, const struct conv *conv, enum role into,
                    const struct tensor *const *operands, const struct shape *shape,
                    struct error *err)
{
    struct tensor *out = kernel_output(call, 0, shape, err);
    bool is_whole = out && out->dtype == I32;
    double *sums = is_whole ? NULL : kernel_sums(call, out, err);
    if (!is_whole && !sums)
        return false;
    struct products p = {.conv = conv,
                         .into = into,
                         .load = is_whole ? NULL : kernel_load_for(out->dtype),
                         .sums = sums,
                         .whole = is_whole ? out->data : NULL};
    for (int r = INPUT; r <= OUTPUT; r++)
        p.data[r] = operands[r] ? operands[r]->data : NULL;
    if (is_whole)
        kernel_zero(out, 0, out->count);
    walk(&p);
    if (sums)
        kernel_sums_store(out, sums);
    return true;
}

/* --- geometry --- */

/* What passes the rules has windows. */
static bool conv_of(const struct kernel_call *call, struct conv *conv, struct shape *input,
                    struct shape *filter, struct error *err)
{
    struct window *w = &conv->w;
    if (!kernel_conv_rules(call, input, filter, err) ||
        !kernel_window(call->node, input, filter->dims, w, err))
        return false;
    conv->depthwise = strncmp(call->node->op->name, "Depthwise", strlen("Depthwise")) == 0;
    conv->in = filter->dims[filter->rank - 2];
    conv->out = filter->dims[filter->rank - 1];
    return true;
}

/* --- the ops --- */

static bool conv_run(struct kernel_call *call, struct error *err)
{
    struct shape input, filter;
    struct conv conv;
    if (!conv_of(call, &conv, &input, &filter, err))
        return false;
    struct shape shape = kernel_window_out(&conv.w, out_channels(&conv));
    const struct tensor *operands[3] = {kernel_in(call, 0), kernel_in(call, 1), NULL};
    return compute(call, &conv, OUTPUT, operands, &shape, err);
}

static bool input_run(struct kernel_call *call, struct error *err)
{
    struct shape input, filter;
    struct conv conv;
    if (!conv_of(call, &conv, &input, &filter, err))
        return false;
    kernel_window_pad(&conv.w);
    const struct tensor *operands[3] = {NULL, kernel_in(call, 1), kernel_in(call, 2)};
    return compute(call, &conv, INPUT, operands, &input, err);
}

static bool filter_run(struct kernel_call *call, struct error *err)
{
    struct shape input, filter;
    struct conv conv;
    if (!conv_of(call, &conv, &input, &filter, err))
        return false;
    kernel_window_pad(&conv.w);
    const struct tensor *operands[3] = {kernel_in(call, 0), NULL, kernel_in(call, 2)};
    return compute(call, &conv, FILTER, operands, &filter, err);
}

#define CONV_OF(name_, dtypes_, run_)                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define CONV(name_, run_) CONV_OF(name_, DTYPES_FLOAT, run_)

const struct kernel kernel_conv2d_ref = CONV_OF("Conv2D", DTYPES_FLOAT | BIT(I32), conv_run);
const struct kernel kernel_conv2d_backprop_input_ref =
    CONV_OF("Conv2DBackpropInput", DTYPES_FLOAT | BIT(I32), input_run);
const struct kernel kernel_conv2d_backprop_filter_ref =
    CONV("Conv2DBackpropFilter", filter_run);
const struct kernel kernel_depthwise_conv2d_native_ref =
    CONV("DepthwiseConv2dNative", conv_run);
const struct kernel kernel_depthwise_conv2d_native_backprop_input_ref =
    CONV("DepthwiseConv2dNativeBackpropInput", input_run);
const struct kernel kernel_depthwise_conv2d_native_backprop_filter_ref =
    CONV("DepthwiseConv2dNativeBackpropFilter", filter_run);
const struct kernel kernel_conv3d_ref = CONV("Conv3D", conv_run);
const struct kernel kernel_conv3d_backprop_input_ref = CONV("Conv3DBackpropInput", input_run);
const struct kernel kernel_conv3d_backprop_filter_ref =
    CONV("Conv3DBackpropFilter", filter_run);
const struct kernel kernel_conv3d_backprop_input_v2_ref =
    CONV("Conv3DBackpropInputV2", input_run);
const struct kernel kernel_conv3d_backprop_filter_v2_ref =
    CONV("Conv3DBackpropFilterV2", filter_run);
