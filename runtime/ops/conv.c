/* conv.c - convolutions of images and volumes: filters that slide. */

#include "runtime/ops/internal.h"

/* The window of a filter (height, width, in, out) in the order of the input's dimensions. */
static bool infer_conv(struct infer *infer, struct error *err)
{
    (void)err;
    int dims = op_window_dims(infer->node);
    bool first = op_window_channels_first(infer->node);
    const struct shape *filter = &infer->inputs[1];
    if (filter->rank != dims + 2)
        return true;
    int64_t window[5] = {1, 1, 1, 1, 1}, channels = filter->dims[dims + 1];
    for (int d = 0; d < dims; d++)
        window[(first ? 2 : 1) + d] = filter->dims[d];
    if (strcmp(infer->node->op->name, "DepthwiseConv2dNative") == 0)
        channels = shape_product(channels, filter->dims[2]);
    op_infer_windows(infer, window, first ? 1 : dims + 1, channels);
    return true;
}

/* --- gradients: each of the three ops of a family has them in the other two --- */

struct family {
    const char *forward, *by_input, *by_filter;
};

static const struct family images = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
static const struct family depthwise = {"DepthwiseConv2dNative",
                                        "DepthwiseConv2dNativeBackpropInput",
                                        "DepthwiseConv2dNativeBackpropFilter"};
static const struct family volumes = {"Conv3D", "Conv3DBackpropInputV2",
                                      "Conv3DBackpropFilterV2"};

static const struct family *family_of(const struct node *node)
{
    if (op_window_dims(node) == 3)
        return &volumes;
    return strncmp(node->op->name, "Depthwise", 9) == 0 ? &depthwise : &images;
}

static struct edge by_input(struct gradient *g, struct edge input, struct edge filter,
                            struct edge grad)
{
    return op_windowed(g, family_of(g->node)->by_input,
                       INPUTS(op_shape_of(g, input), filter, grad));
}

static struct edge by_filter(struct gradient *g, struct edge input, struct edge filter,
                             struct edge grad)
{
    return op_windowed(g, family_of(g->node)->by_filter,
                       INPUTS(input, op_shape_of(g, filter), grad));
}

static bool conv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), filter = gradient_x(g, 1), dy = g->of_outputs[0];
    g->of_inputs[0] = by_input(g, x, filter, dy);
    g->of_inputs[1] = by_filter(g, x, filter, dy);
    return builder_ok(&g->build);
}

static bool backprop_input_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge filter = gradient_x(g, 1), dx = g->of_outputs[0];
    g->of_inputs[1] = by_filter(g, dx, filter, gradient_x(g, 2));
    g->of_inputs[2] = op_windowed(g, family_of(g->node)->forward, INPUTS(dx, filter));
    return builder_ok(&g->build);
}

static bool backprop_filter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), df = g->of_outputs[0];
    g->of_inputs[0] = by_input(g, x, df, gradient_x(g, 2));
    g->of_inputs[2] = op_windowed(g, family_of(g->node)->forward, INPUTS(x, df));
    return builder_ok(&g->build);
}

/* --- images --- */

#define CONV_ATTRS                                                                             \
    " strides:list(int) use_cudnn_on_gpu:bool=true "                                           \
    "padding:{'SAME','VALID','EXPLICIT'} explicit_paddings:list(int)=[] "                      \
    "data_format:{'NHWC','NCHW'}='NHWC' dilations:list(int)=[1,1,1,1]"

const struct op op_conv2d = {
    .name = "Conv2D",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = "T:{half,bfloat16,float,double,int32}" CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_conv,
    .gradient = conv_gradient,
};

const struct op op_conv2d_backprop_input = {
    .name = "Conv2DBackpropInput",
    .inputs = "input_sizes:int32 filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = "T:{half,bfloat16,float,double,int32}" CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_first,
    .gradient = backprop_input_gradient,
};

const struct op op_conv2d_backprop_filter = {
    .name = "Conv2DBackpropFilter",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_second,
    .gradient = backprop_filter_gradient,
};

/* --- each channel with filters of its own --- */

#define DEPTHWISE_ATTRS                                                                        \
    "T:" OP_FLOAT " strides:list(int) padding:{'SAME','VALID','EXPLICIT'} "                    \
    "explicit_paddings:list(int)=[] data_format:{'NHWC','NCHW'}='NHWC' "                       \
    "dilations:list(int)=[1,1,1,1]"

const struct op op_depthwise_conv2d_native = {
    .name = "DepthwiseConv2dNative",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_conv,
    .gradient = conv_gradient,
};

const struct op op_depthwise_conv2d_native_backprop_input = {
    .name = "DepthwiseConv2dNativeBackpropInput",
    .inputs = "input_sizes:int32 filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_first,
    .gradient = backprop_input_gradient,
};

const struct op op_depthwise_conv2d_native_backprop_filter = {
    .name = "DepthwiseConv2dNativeBackpropFilter",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_second,
    .gradient = backprop_filter_gradient,
};

/* --- volumes --- */

#define VOLUME_ATTRS                                                                           \
    "T:" OP_FLOAT " strides:list(int)>=5 padding:{'SAME','VALID'} "                            \
    "data_format:{'NDHWC','NCDHW'}='NDHWC' dilations:list(int)=[1,1,1,1,1]"

const struct op op_conv3d = {
    .name = "Conv3D",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_conv,
    .gradient = conv_gradient,
};

#define FIRST_VERSION_ATTRS                                                                    \
    "T:{half,float,double} strides:list(int)>=5 padding:{'SAME','VALID'} "                     \
    "dilations:list(int)=[1,1,1,1,1]"

const struct op op_conv3d_backprop_input = {
    .name = "Conv3DBackpropInput",
    .inputs = "input:T filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = FIRST_VERSION_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_unchanged,
};

const struct op op_conv3d_backprop_filter = {
    .name = "Conv3DBackpropFilter",
    .inputs = "input:T filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = FIRST_VERSION_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_second,
};

const struct op op_conv3d_backprop_input_v2 = {
    .name = "Conv3DBackpropInputV2",
    .inputs = "input_sizes:Tshape filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS " Tshape:{int32,int64}=int32",
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_first,
    .gradient = backprop_input_gradient,
};

const struct op op_conv3d_backprop_filter_v2 = {
    .name = "Conv3DBackpropFilterV2",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_from_second,
    .gradient = backprop_filter_gradient,
};
