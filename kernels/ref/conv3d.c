/*
 * conv3d.c - convolutions of volumes and their gradients, straight from the definition.
 *
 * As in conv2d.c one walk over all (output place, filter element) pairs serves all three.
 */

#include "kernels/ref/volume.h"

struct conv {
    struct volume v;
    int64_t in, out; /* channels of the filter: (planes, height, width, in, out) */
};

enum role { INPUT, FILTER, OUTPUT };

/* The place in the input of filter element `f` at output place `o`; false: in the padding. */
static bool input_place(const struct volume *v, const int64_t o[3], const int64_t f[3],
                        int64_t place[3])
{
    for (int d = 0; d < 3; d++) {
        place[d] = o[d] * v->stride[d] - v->before[d] + f[d];
        if (place[d] < 0 || place[d] >= v->size[d])
            return false;
    }
    return true;
}

static void add_products(const struct conv *conv, enum role into, kernel_load *load,
                         const void *const *data, int64_t n, int64_t o_index, int64_t f_index,
                         double *sums)
{
    const struct volume *v = &conv->v;
    int64_t o[3], f[3], place[3];
    volume_place(v->out, o_index, o);
    volume_place(v->window, f_index, f);
    if (!input_place(v, o, f, place))
        return;
    int64_t per_group = conv->out / (v->channels / conv->in);
    for (int64_t c = 0; c < v->channels; c++) {
        int64_t first = c / conv->in * per_group;
        for (int64_t k = first; k < first + per_group; k++) {
            int64_t at[3] = {volume_at(v, v->size, v->channels, n, place, c),
                             (f_index * conv->in + c % conv->in) * conv->out + k,
                             volume_at(v, v->out, conv->out, n, o, k)};
            double product = 1;
            for (int r = INPUT; r <= OUTPUT; r++)
                if (r != (int)into)
                    product *= load(data[r], at[r]);
            sums[at[into]] += product;
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
    for (int64_t n = 0; n < conv->v.batch; n++)
        for (int64_t o = 0; o < volume_places(conv->v.out); o++)
            for (int64_t f = 0; f < volume_places(conv->v.window); f++)
                add_products(conv, into, load, data, n, o, f, sums);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, sums[i]);
    return true;
}

static bool conv_of(const struct kernel_call *call, const struct shape *input,
                    const struct shape *filter, struct conv *conv, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (filter->rank != 5)
        return fail(err, INVALID, "filter must be 5-dimensional: %s",
                    shape_text(filter, a, sizeof(a)));
    if (!kernel_volume(call->node, input, filter->dims, &conv->v, err))
        return false;
    if (conv->v.channels_first)
        return fail(err, INVALID,
                    "CPU implementation of %s currently only supports the NHWC tensor format.",
                    call->node->op->name);
    conv->in = filter->dims[3];
    conv->out = filter->dims[4];
    if (conv->in <= 0 || conv->v.channels % conv->in != 0)
        return fail(err, INVALID,
                    "Input depth must be evenly divisible by filter depth: input %s, filter %s",
                    shape_text(input, a, sizeof(a)), shape_text(filter, b, sizeof(b)));
    if (conv->v.channels == 0 || conv->out % (conv->v.channels / conv->in) != 0)
        return fail(err, INVALID, "output depth %lld must be divisible by the number of groups",
                    (long long)conv->out);
    return true;
}

static bool check_grad(const struct conv *conv, const struct tensor *grad, struct error *err)
{
    struct shape expected = kernel_volume_out(&conv->v, conv->out);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(&expected, &grad->shape) ||
           fail(err, INVALID, "out_backprop has shape %s, the convolution gives %s",
                shape_text(&grad->shape, a, sizeof(a)), shape_text(&expected, b, sizeof(b)));
}

/* A shape: that of input `index`, or (second version) the one that it holds. */
static bool shape_of(const struct kernel_call *call, int index, struct shape *shape,
                     struct error *err)
{
    const char *name = call->node->op->name;
    if (strcmp(name + strlen(name) - 2, "V2") == 0)
        return kernel_shape_in(call, index, shape, err);
    *shape = kernel_in(call, index)->shape;
    return true;
}

static bool conv3d_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *input = kernel_in(call, 0), *filter = kernel_in(call, 1);
    struct conv conv;
    if (!conv_of(call, &input->shape, &filter->shape, &conv, err))
        return false;
    struct shape shape = kernel_volume_out(&conv.v, conv.out);
    const struct tensor *operands[3] = {input, filter, NULL};
    return compute(call, &conv, OUTPUT, operands, &shape, err);
}

static bool conv3d_input_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *filter = kernel_in(call, 1), *grad = kernel_in(call, 2);
    struct shape shape;
    struct conv conv;
    if (!shape_of(call, 0, &shape, err) || !conv_of(call, &shape, &filter->shape, &conv, err) ||
        !check_grad(&conv, grad, err))
        return false;
    kernel_volume_pad(&conv.v);
    const struct tensor *operands[3] = {NULL, filter, grad};
    return compute(call, &conv, INPUT, operands, &shape, err);
}

static bool conv3d_filter_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *input = kernel_in(call, 0), *grad = kernel_in(call, 2);
    struct shape shape;
    struct conv conv;
    if (!shape_of(call, 1, &shape, err) || !conv_of(call, &input->shape, &shape, &conv, err) ||
        !check_grad(&conv, grad, err))
        return false;
    kernel_volume_pad(&conv.v);
    const struct tensor *operands[3] = {input, NULL, grad};
    return compute(call, &conv, FILTER, operands, &shape, err);
}

#define CONV(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .run = run_                        \
    }

const struct kernel kernel_conv3d_ref = CONV("Conv3D", conv3d_run);
const struct kernel kernel_conv3d_backprop_input_ref =
    CONV("Conv3DBackpropInput", conv3d_input_run);
const struct kernel kernel_conv3d_backprop_filter_ref =
    CONV("Conv3DBackpropFilter", conv3d_filter_run);
const struct kernel kernel_conv3d_backprop_input_v2_ref =
    CONV("Conv3DBackpropInputV2", conv3d_input_run);
const struct kernel kernel_conv3d_backprop_filter_v2_ref =
    CONV("Conv3DBackpropFilterV2", conv3d_filter_run);
