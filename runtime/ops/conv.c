/* conv.c - convolutions and pooling: windows that slide over images. */

#include "runtime/ops/internal.h"

#define CONV_ATTRS                                                                             \
    "T:" OP_FLOAT " strides:list(int) use_cudnn_on_gpu:bool=true "                             \
    "padding:{'SAME','VALID','EXPLICIT'} explicit_paddings:list(int)=[] "                      \
    "data_format:{'NHWC','NCHW'}='NHWC' dilations:list(int)=[1,1,1,1]"

/* Size of dimension `d` of the output of a window op on an input of 4 dimensions. */
static int64_t window_dim(const struct infer *infer, int d, int64_t window, int64_t stride,
                          int64_t dilation)
{
    int64_t size = infer->inputs[0].dims[d];
    const char *padding = node_attr_string(infer->node, "padding", "VALID");
    int count;
    const int64_t *pads = node_attr_ints(infer->node, "explicit_paddings", &count);
    if (size < 0 || window < 0)
        return -1;
    if (strcmp(padding, "EXPLICIT") == 0) {
        if (count <= 2 * d + 1)
            return -1;
        size += pads[2 * d] + pads[2 * d + 1];
    }
    return op_infer_window(size, (window - 1) * dilation + 1, stride,
                           strcmp(padding, "SAME") == 0);
}

static bool infer_windows(struct infer *infer, const int64_t *window, int channels_axis,
                          int64_t channels)
{
    int strides_count, dilations_count;
    const int64_t *strides = node_attr_ints(infer->node, "strides", &strides_count);
    const int64_t *dilations = node_attr_ints(infer->node, "dilations", &dilations_count);
    if (infer->inputs[0].rank != 4 || strides_count != 4)
        return true;
    op_infer_rank(infer, 0, 4);
    for (int d = 0; d < 4; d++) {
        int64_t dilation = dilations_count == 4 ? dilations[d] : 1;
        infer->outputs[0].dims[d] = d == channels_axis
                                        ? channels
                                        : window_dim(infer, d, window[d], strides[d], dilation);
    }
    return true;
}

static bool is_nchw(const struct node *node)
{
    return strcmp(node_attr_string(node, "data_format", "NHWC"), "NCHW") == 0;
}

/* The window of a filter (height, width, in, out) in the order of the image's dimensions. */
static bool infer_filter(struct infer *infer, bool depthwise)
{
    const struct shape *filter = &infer->inputs[1];
    if (filter->rank != 4)
        return true;
    bool nchw = is_nchw(infer->node);
    int64_t window[4] = {1, 1, 1, 1}, channels = filter->dims[3];
    window[nchw ? 2 : 1] = filter->dims[0];
    window[nchw ? 3 : 2] = filter->dims[1];
    if (depthwise)
        channels = channels < 0 || filter->dims[2] < 0 ? -1 : channels * filter->dims[2];
    return infer_windows(infer, window, nchw ? 1 : 3, channels);
}

static bool infer_conv(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_filter(infer, false);
}

static bool infer_depthwise(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_filter(infer, true);
}

static bool infer_pool(struct infer *infer, struct error *err)
{
    (void)err;
    int count;
    const int64_t *ksize = node_attr_ints(infer->node, "ksize", &count);
    if (count != 4 || infer->inputs[0].rank != 4)
        return true;
    return infer_windows(infer, ksize, -1, 0);
}

static bool infer_from_first(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 0);
}

static bool infer_from_second(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 1);
}

/* A node `op` with the window attributes of the node being differentiated. */
static struct edge windowed(struct gradient *g, const char *op, const struct edge *inputs,
                            int inputs_count)
{
    static const char *const names[] = {"strides",
                                        "ksize",
                                        "padding",
                                        "data_format",
                                        "dilations",
                                        "explicit_paddings",
                                        "include_batch_in_index"};
    const struct op *target = op_find(op);
    struct attr attrs[ARRAY_LEN(names)];
    int count = 0;
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        const struct attr *attr = node_attr(g->node, names[i]);
        if (attr && op_signature_attr(op_signature(target), names[i]))
            attrs[count++] = *attr;
    }
    return op_call(g, op, inputs, inputs_count, attrs, count);
}

static struct edge by_input(struct gradient *g, struct edge shape, struct edge filter,
                            struct edge grad)
{
    return windowed(g, "Conv2DBackpropInput", INPUTS(shape, filter, grad));
}

static struct edge by_filter(struct gradient *g, struct edge input, struct edge shape,
                             struct edge grad)
{
    return windowed(g, "Conv2DBackpropFilter", INPUTS(input, shape, grad));
}

static bool conv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), filter = gradient_x(g, 1), dy = g->of_outputs[0];
    g->of_inputs[0] = by_input(g, op_shape_of(g, x), filter, dy);
    g->of_inputs[1] = by_filter(g, x, op_shape_of(g, filter), dy);
    return builder_ok(&g->build);
}

static bool conv_backprop_input_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge filter = gradient_x(g, 1), dx = g->of_outputs[0];
    g->of_inputs[1] = by_filter(g, dx, op_shape_of(g, filter), gradient_x(g, 2));
    g->of_inputs[2] = windowed(g, "Conv2D", INPUTS(dx, filter));
    return builder_ok(&g->build);
}

static bool conv_backprop_filter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), df = g->of_outputs[0];
    g->of_inputs[0] = by_input(g, op_shape_of(g, x), df, gradient_x(g, 2));
    g->of_inputs[2] = windowed(g, "Conv2D", INPUTS(x, df));
    return builder_ok(&g->build);
}

const struct op op_conv2d = {
    .name = "Conv2D",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_conv,
    .gradient = conv_gradient,
};

const struct op op_conv2d_backprop_input = {
    .name = "Conv2DBackpropInput",
    .inputs = "input_sizes:int32 filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_from_first,
    .gradient = conv_backprop_input_gradient,
};

const struct op op_conv2d_backprop_filter = {
    .name = "Conv2DBackpropFilter",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_from_second,
    .gradient = conv_backprop_filter_gradient,
};

/* --- each channel with filters of its own --- */

#define DEPTHWISE_ATTRS                                                                        \
    "T:" OP_FLOAT " strides:list(int) padding:{'SAME','VALID','EXPLICIT'} "                    \
    "explicit_paddings:list(int)=[] data_format:{'NHWC','NCHW'}='NHWC' "                       \
    "dilations:list(int)=[1,1,1,1]"

static bool depthwise_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), filter = gradient_x(g, 1), dy = g->of_outputs[0];
    g->of_inputs[0] = windowed(g, "DepthwiseConv2dNativeBackpropInput",
                               INPUTS(op_shape_of(g, x), filter, dy));
    g->of_inputs[1] = windowed(g, "DepthwiseConv2dNativeBackpropFilter",
                               INPUTS(x, op_shape_of(g, filter), dy));
    return builder_ok(&g->build);
}

static bool depthwise_backprop_input_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge filter = gradient_x(g, 1), dx = g->of_outputs[0];
    g->of_inputs[1] = windowed(g, "DepthwiseConv2dNativeBackpropFilter",
                               INPUTS(dx, op_shape_of(g, filter), gradient_x(g, 2)));
    g->of_inputs[2] = windowed(g, "DepthwiseConv2dNative", INPUTS(dx, filter));
    return builder_ok(&g->build);
}

static bool depthwise_backprop_filter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), df = g->of_outputs[0];
    g->of_inputs[0] = windowed(g, "DepthwiseConv2dNativeBackpropInput",
                               INPUTS(op_shape_of(g, x), df, gradient_x(g, 2)));
    g->of_inputs[2] = windowed(g, "DepthwiseConv2dNative", INPUTS(x, df));
    return builder_ok(&g->build);
}

const struct op op_depthwise_conv2d_native = {
    .name = "DepthwiseConv2dNative",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_depthwise,
    .gradient = depthwise_gradient,
};

const struct op op_depthwise_conv2d_native_backprop_input = {
    .name = "DepthwiseConv2dNativeBackpropInput",
    .inputs = "input_sizes:int32 filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_from_first,
    .gradient = depthwise_backprop_input_gradient,
};

const struct op op_depthwise_conv2d_native_backprop_filter = {
    .name = "DepthwiseConv2dNativeBackpropFilter",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = DEPTHWISE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_from_second,
    .gradient = depthwise_backprop_filter_gradient,
};

/* --- pooling --- */

#define POOL_ATTRS                                                                             \
    "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID','EXPLICIT'} "             \
    "explicit_paddings:list(int)=[] data_format:{'NHWC','NCHW','NCHW_VECT_C'}='NHWC' "
#define AVG_ATTRS                                                                              \
    "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID'} "                        \
    "data_format:{'NHWC','NCHW'}='NHWC' T:" OP_FLOAT

static bool max_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, windowed(g, "MaxPoolGrad",
                    INPUTS(gradient_x(g, 0), gradient_y(g, 0), g->of_outputs[0])));
}

/* Zeros for the input and output of the pooling, `op` for the gradient. */
static bool second_pool_gradient(struct gradient *g, const char *op)
{
    struct edge x = gradient_x(g, 0), y = gradient_x(g, 1);
    g->of_inputs[0] = op_call1(g, "ZerosLike", x);
    g->of_inputs[1] = op_call1(g, "ZerosLike", y);
    g->of_inputs[2] =
        g->node->inputs_count > 3
            ? windowed(g, op,
                       INPUTS(x, y, g->of_outputs[0], gradient_x(g, 3), gradient_x(g, 4)))
            : windowed(g, op, INPUTS(x, y, g->of_outputs[0]));
    return builder_ok(&g->build);
}

static bool max_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, "MaxPoolGradGrad");
}

static bool max_pool_grad_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, "MaxPoolGradGradV2");
}

static bool max_pool_grad_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, "MaxPoolGrad");
}

static bool max_pool_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, windowed(g, "MaxPoolGradV2",
                    INPUTS(gradient_x(g, 0), gradient_y(g, 0), g->of_outputs[0],
                           gradient_x(g, 1), gradient_x(g, 2))));
}

static bool max_pool_with_argmax_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    if (!g->of_outputs[0].from)
        return true;
    return op_gradient_single(
        g, windowed(g, "MaxPoolGradWithArgmax",
                    INPUTS(gradient_x(g, 0), g->of_outputs[0], gradient_y(g, 1))));
}

static bool avg_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    return op_gradient_single(g, windowed(g, "AvgPoolGrad", INPUTS(shape, g->of_outputs[0])));
}

static bool avg_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = windowed(g, "AvgPool", INPUTS(g->of_outputs[0]));
    return builder_ok(&g->build);
}

const struct op op_max_pool = {
    .name = "MaxPool",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS "T:{half,bfloat16,float,double,int32,int64,uint8,int16,int8,uint16,"
                        "qint8}=float",
    .infer = infer_pool,
    .gradient = max_pool_gradient,
};

const struct op op_max_pool_grad = {
    .name = "MaxPoolGrad",
    .inputs = "orig_input:T orig_output:T grad:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,"
                        "uint32,uint64}=float",
    .infer = op_infer_unchanged,
    .gradient = max_pool_grad_gradient,
};

const struct op op_avg_pool = {
    .name = "AvgPool",
    .inputs = "value:T",
    .outputs = "output:T",
    .attrs = AVG_ATTRS,
    .infer = infer_pool,
    .gradient = avg_pool_gradient,
};

const struct op op_avg_pool_grad = {
    .name = "AvgPoolGrad",
    .inputs = "orig_input_shape:int32 grad:T",
    .outputs = "output:T",
    .attrs = AVG_ATTRS,
    .infer = infer_from_first,
    .gradient = avg_pool_grad_gradient,
};

/* --- maxima in other forms: sizes as inputs, gradients of gradients, places of the maxima ---
 */

#define REAL_TYPES                                                                             \
    "{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}"
#define SIZES "ksize:list(int)>=4 strides:list(int)>=4 "
#define FORMAT "padding:{'SAME','VALID'} data_format:{'NHWC','NCHW'}='NHWC' "
#define BACK "orig_input:T orig_output:T grad:T"

static bool infer_four(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 4);
    return true;
}

static bool infer_as_second(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

static bool infer_argmax(struct infer *infer, struct error *err)
{
    if (!infer_pool(infer, err))
        return false;
    infer->outputs[1] = infer->outputs[0];
    return true;
}

const struct op op_max_pool_v2 = {
    .name = "MaxPoolV2",
    .inputs = "input:T ksize:int32 strides:int32",
    .outputs = "output:T",
    .attrs = "padding:{'SAME','VALID'} data_format:{'NHWC','NCHW','NCHW_VECT_C'}='NHWC' "
             "T:{half,bfloat16,float,double,int32,int64,uint8,int16,int8,uint16,qint8}=float",
    .infer = infer_four,
    .gradient = max_pool_v2_gradient,
};

const struct op op_max_pool_grad_v2 = {
    .name = "MaxPoolGradV2",
    .inputs = BACK " ksize:int32 strides:int32",
    .outputs = "output:T",
    .attrs = FORMAT "T:" REAL_TYPES "=float",
    .infer = op_infer_unchanged,
    .gradient = max_pool_grad_v2_gradient,
};

const struct op op_max_pool_grad_grad = {
    .name = "MaxPoolGradGrad",
    .inputs = BACK,
    .outputs = "output:T",
    .attrs = SIZES FORMAT "T:" REAL_TYPES,
    .infer = infer_as_second,
    .gradient = max_pool_grad_grad_gradient,
};

const struct op op_max_pool_grad_grad_v2 = {
    .name = "MaxPoolGradGradV2",
    .inputs = BACK " ksize:int32 strides:int32",
    .outputs = "output:T",
    .attrs = FORMAT "T:" REAL_TYPES,
    .infer = infer_as_second,
};

const struct op op_max_pool_with_argmax = {
    .name = "MaxPoolWithArgmax",
    .inputs = "input:T",
    .outputs = "output:T argmax:Targmax",
    .attrs = SIZES "Targmax:{int32,int64}=int64 padding:{'SAME','VALID'} "
                   "include_batch_in_index:bool=false T:" REAL_TYPES,
    .infer = infer_argmax,
    .gradient = max_pool_with_argmax_gradient,
};

const struct op op_max_pool_grad_with_argmax = {
    .name = "MaxPoolGradWithArgmax",
    .inputs = "input:T grad:T argmax:Targmax",
    .outputs = "output:T",
    .attrs = SIZES "padding:{'SAME','VALID'} include_batch_in_index:bool=false "
                   "Targmax:{int32,int64} T:" REAL_TYPES,
    .infer = op_infer_unchanged,
};
