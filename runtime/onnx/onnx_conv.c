/* onnx_conv.c - convolutions, with their channels first as ONNX has them. */

#include "runtime/onnx/window.h"

/* (height, width, in, out) to (out, in, height, width), and the like in 3 dimensions. */
static const char *filters(struct onnx *o, const struct tensor *value)
{
    int rank = value->shape.rank;
    int64_t order[LIMIT_TENSOR_RANK];
    order[0] = rank - 1;
    order[1] = rank - 2;
    for (int d = 2; d < rank; d++)
        order[d] = d - 2;
    return onnx_turned(o, value, order);
}

static void convolve(struct onnx *o, int dims)
{
    struct window window;
    struct onnx_attr attrs[WINDOW_ATTRS_MAX + 1];
    const struct tensor *kernel = onnx_constant(o, 1);
    if (!kernel || !window_read(o, 0, kernel->shape.dims, dims, &window))
        return;
    /* The input may have several times the channels that a filter looks at: groups. */
    int64_t channels =
        onnx_shape(o, 0)->rank == dims + 2 ? onnx_shape(o, 0)->dims[dims + 1] : -1;
    int64_t seen = kernel->shape.dims[dims];
    int count = window_attrs(&window, true, attrs, 0);
    attrs[count++] = ONNX_I("group", channels > 0 && seen > 0 ? channels / seen : 1);
    onnx_give_first(
        o, 0,
        onnx_add(o, "Conv", ONNX_IN(onnx_in_first(o, 0), filters(o, kernel)), attrs, count));
}

static void convert_conv2d(struct onnx *o)
{
    convolve(o, 2);
}

static void convert_conv3d(struct onnx *o)
{
    convolve(o, 3);
}

/* (height, width, channels, times): every channel has filters of its own. */
static void convert_depthwise(struct onnx *o)
{
    struct window window;
    struct onnx_attr attrs[WINDOW_ATTRS_MAX + 1];
    const struct tensor *kernel = onnx_constant(o, 1);
    if (!kernel || !window_read(o, 0, kernel->shape.dims, 2, &window))
        return;
    const int64_t *dims = kernel->shape.dims, order[] = {2, 3, 0, 1};
    const int64_t flat[] = {dims[2] * dims[3], 1, dims[0], dims[1]};
    const char *weights = onnx_reshape(o, onnx_turned(o, kernel, order), flat, 4);
    int count = window_attrs(&window, true, attrs, 0);
    attrs[count++] = ONNX_I("group", dims[2]);
    onnx_give_first(o, 0,
                    onnx_add(o, "Conv", ONNX_IN(onnx_in_first(o, 0), weights), attrs, count));
}

/*
 * The way back: input 2 is what a convolution by input 1 (height, width, out, in) would give of
 * the result.  Where that convolution pads, the result is cut; where its steps leave some of
 * the image out, the result is longer.
 */
static void convert_backprop(struct onnx *o)
{
    struct window w;
    struct onnx_attr attrs[WINDOW_ATTRS_MAX + 2];
    int64_t longer[WINDOW_DIMS_MAX] = {0};
    const struct tensor *kernel = onnx_constant(o, 1);
    const struct shape *from = onnx_shape(o, 2), *to = onnx_output_shape(o, 0);
    if (!kernel || !window_read(o, 2, kernel->shape.dims, 2, &w))
        return;
    bool same = !strcmp(node_attr_string(o->node, "padding", "VALID"), "SAME");
    w.auto_pad = NULL;
    for (int d = 0; d < 2; d++) {
        if (from->rank != 4 || to->rank != 4 || from->dims[d + 1] < 0 || to->dims[d + 1] < 0) {
            onnx_refuse(o, "height and width of its result are not known");
            return;
        }
        int64_t reach = (w.size[d] - 1) * w.rates[d] + 1;
        int64_t full = (from->dims[d + 1] - 1) * w.strides[d] + reach, size = to->dims[d + 1];
        if (same) {
            int64_t cut = full > size ? full - size : 0;
            w.pads[d] = cut / 2;
            w.pads[2 + d] = cut - cut / 2;
        }
        longer[d] = size - (full - w.pads[d] - w.pads[2 + d]);
    }
    const int64_t order[] = {3, 2, 0, 1};
    int count = window_attrs(&w, true, attrs, 0);
    attrs[count++] = ONNX_I("group", 1);
    attrs[count++] = ONNX_L("output_padding", longer, 2);
    onnx_give_first(o, 0,
                    onnx_add(o, "ConvTranspose",
                             ONNX_IN(onnx_in_first(o, 2), onnx_turned(o, kernel, order)), attrs,
                             count));
}

const struct onnx_row onnx_conv_rows[] = {{"Conv2D", convert_conv2d, NULL},
                                          {"Conv2DBackpropInput", convert_backprop, NULL},
                                          {"Conv3D", convert_conv3d, NULL},
                                          {"DepthwiseConv2dNative", convert_depthwise, NULL},
                                          {NULL, NULL, NULL}};
