/*
 * conv2d.c - convolutions of images and their gradients, straight from the definition.
 *
 * One walk over all (output place, filter element) pairs serves all three: each pair names an
 * element of the input, the filter and the output, and each op sums products of two of them
 * into the third.  Depthwise: output channel = input channel * multiplier + m.
 */

#include "kernels/ref/window.h"

struct conv {
    struct window w;
    int64_t in, out; /* channels of the filter: (height, width, in, out) */
    bool depthwise;
};

enum role { INPUT, FILTER, OUTPUT };

static int64_t out_channels(const struct conv *conv)
{
    return conv->depthwise ? conv->in * conv->out : conv->out;
}

/* Sums into `sums` (of the size of the role `into`) the products of the two others. */
static void walk_window(const struct conv *conv, enum role into, kernel_load *load,
                        const void *const *data, int64_t n, int64_t oy, int64_t ox,
                        double *sums)
{
    const struct window *w = &conv->w;
    for (int64_t fy = 0; fy < w->window[0]; fy++)
        for (int64_t fx = 0; fx < w->window[1]; fx++) {
            int64_t y = oy * w->stride[0] - w->before[0] + fy * w->dilation[0];
            int64_t x = ox * w->stride[1] - w->before[1] + fx * w->dilation[1];
            if (y < 0 || y >= w->size[0] || x < 0 || x >= w->size[1])
                continue;
            for (int64_t c = 0; c < w->channels; c++) {
                /* Groups: the filter may see a part of the input's channels only. */
                int64_t group = c / conv->in, groups = w->channels / conv->in;
                int64_t first = conv->depthwise ? 0 : group * (conv->out / groups);
                int64_t last = conv->depthwise ? conv->out : first + conv->out / groups;
                for (int64_t o = first; o < last; o++) {
                    int64_t channel = conv->depthwise ? c * conv->out + o : o;
                    int64_t at[3] = {
                        window_at(w, w->size, w->channels, n, y, x, c),
                        ((fy * w->window[1] + fx) * conv->in + c % conv->in) * conv->out + o,
                        window_at(w, w->out, out_channels(conv), n, oy, ox, channel)};
                    double product = 1;
                    for (int r = INPUT; r <= OUTPUT; r++)
                        if (r != (int)into)
                            product *= load(data[r], at[r]);
                    sums[at[into]] += product;
                }
            }
        }
}

static bool compute(struct kernel_call *call, const struct conv *conv, enum role into,
                    const struct tensor *const *operands, const struct shape *shape,
                    struct error *err)
{
    struct tensor *out = kernel_output(call, 0, shape, err);
    double *sums =
        out ? kernel_scratch(call, (size_t)out->count * sizeof(*sums) + 1, err) : NULL;
    const void *data[3];
    if (!sums)
        return false;
    for (int r = INPUT; r <= OUTPUT; r++)
        data[r] = operands[r] ? operands[r]->data : NULL;
    memset(sums, 0, (size_t)out->count * sizeof(*sums));
    kernel_load *load = kernel_load_for(out->dtype);
    for (int64_t n = 0; n < conv->w.batch; n++)
        for (int64_t oy = 0; oy < conv->w.out[0]; oy++)
            for (int64_t ox = 0; ox < conv->w.out[1]; ox++)
                walk_window(conv, into, load, data, n, oy, ox, sums);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, sums[i]);
    return true;
}

/* Geometry from the shapes of input and filter. */
static bool conv_of(const struct kernel_call *call, const struct shape *input,
                    const struct shape *filter, bool depthwise, struct conv *conv,
                    struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (filter->rank != 4)
        return fail(err, INVALID, "filter must be 4-dimensional: %s",
                    shape_text(filter, a, sizeof(a)));
    if (!kernel_window(call->node, input, filter->dims, &conv->w, err))
        return false;
    conv->in = filter->dims[2];
    conv->out = filter->dims[3];
    conv->depthwise = depthwise;
    if (conv->in <= 0 || conv->w.channels % conv->in != 0 ||
        (depthwise && conv->in != conv->w.channels))
        return fail(err, INVALID,
                    "input depth must be evenly divisible by filter depth: input %s, filter %s",
                    shape_text(input, a, sizeof(a)), shape_text(filter, b, sizeof(b)));
    if (!depthwise && conv->out % (conv->w.channels / conv->in) != 0)
        return fail(err, INVALID, "output depth %lld must be divisible by the number of groups",
                    (long long)conv->out);
    if (depthwise && (conv->w.dilation[0] != 1 || conv->w.dilation[1] != 1))
        return fail(err, UNIMPLEMENTED, "depthwise convolutions with dilations on the CPU");
    return true;
}

static bool forward(struct kernel_call *call, bool depthwise, struct error *err)
{
    const struct tensor *input = kernel_in(call, 0), *filter = kernel_in(call, 1);
    struct conv conv;
    if (!conv_of(call, &input->shape, &filter->shape, depthwise, &conv, err))
        return false;
    struct shape shape = kernel_window_out(&conv.w, out_channels(&conv));
    const struct tensor *operands[3] = {input, filter, NULL};
    return compute(call, &conv, OUTPUT, operands, &shape, err);
}

/* The sizes given may leave out batch and channels (height, width only), as TensorFlow takes.
 */
static bool input_sizes(const struct kernel_call *call, const struct tensor *grad,
                        const struct shape *filter, struct shape *shape, struct error *err)
{
    if (!kernel_shape_in(call, 0, shape, err))
        return false;
    if (shape->rank == 2 && grad->shape.rank == 4 && filter->rank == 4) {
        bool nchw = strcmp(node_attr_string(call->node, "data_format", "NHWC"), "NCHW") == 0;
        int64_t n = grad->shape.dims[0], y = shape->dims[0], x = shape->dims[1];
        *shape = nchw ? SHAPE(n, filter->dims[2], y, x) : SHAPE(n, y, x, filter->dims[2]);
    }
    return true;
}

static bool check_grad(const struct conv *conv, const struct tensor *grad, struct error *err)
{
    struct shape expected = kernel_window_out(&conv->w, out_channels(conv));
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!conv->depthwise && (conv->w.dilation[0] != 1 || conv->w.dilation[1] != 1))
        return fail(err, INVALID,
                    "Current CPU implementation does not yet support dilation "
                    "rates larger than 1.");
    return shape_equal(&expected, &grad->shape) ||
           fail(err, INVALID, "out_backprop has shape %s, the convolution gives %s",
                shape_text(&grad->shape, a, sizeof(a)), shape_text(&expected, b, sizeof(b)));
}

static bool backward_input(struct kernel_call *call, bool depthwise, struct error *err)
{
    const struct tensor *filter = kernel_in(call, 1), *grad = kernel_in(call, 2);
    struct shape shape;
    struct conv conv;
    if (!input_sizes(call, grad, &filter->shape, &shape, err) ||
        !conv_of(call, &shape, &filter->shape, depthwise, &conv, err) ||
        !check_grad(&conv, grad, err))
        return false;
    const struct tensor *operands[3] = {NULL, filter, grad};
    return compute(call, &conv, INPUT, operands, &shape, err);
}

static bool backward_filter(struct kernel_call *call, bool depthwise, struct error *err)
{
    const struct tensor *input = kernel_in(call, 0), *grad = kernel_in(call, 2);
    struct shape shape;
    struct conv conv;
    if (!kernel_shape_in(call, 1, &shape, err) ||
        !conv_of(call, &input->shape, &shape, depthwise, &conv, err) ||
        !check_grad(&conv, grad, err))
        return false;
    const struct tensor *operands[3] = {input, NULL, grad};
    return compute(call, &conv, FILTER, operands, &shape, err);
}

static bool conv_run(struct kernel_call *call, struct error *err)
{
    return forward(call, false, err);
}
static bool conv_input_run(struct kernel_call *call, struct error *err)
{
    return backward_input(call, false, err);
}
static bool conv_filter_run(struct kernel_call *call, struct error *err)
{
    return backward_filter(call, false, err);
}
static bool depthwise_run(struct kernel_call *call, struct error *err)
{
    return forward(call, true, err);
}
static bool depthwise_input_run(struct kernel_call *call, struct error *err)
{
    return backward_input(call, true, err);
}
static bool depthwise_filter_run(struct kernel_call *call, struct error *err)
{
    return backward_filter(call, true, err);
}

#define CONV(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .run = run_                        \
    }

const struct kernel kernel_conv2d_ref = CONV("Conv2D", conv_run);
const struct kernel kernel_conv2d_backprop_input_ref =
    CONV("Conv2DBackpropInput", conv_input_run);
const struct kernel kernel_conv2d_backprop_filter_ref =
    CONV("Conv2DBackpropFilter", conv_filter_run);
const struct kernel kernel_depthwise_conv2d_native_ref =
    CONV("DepthwiseConv2dNative", depthwise_run);
const struct kernel kernel_depthwise_conv2d_native_backprop_input_ref =
    CONV("DepthwiseConv2dNativeBackpropInput", depthwise_input_run);
const struct kernel kernel_depthwise_conv2d_native_backprop_filter_ref =
    CONV("DepthwiseConv2dNativeBackpropFilter", depthwise_filter_run);
