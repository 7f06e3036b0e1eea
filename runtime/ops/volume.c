/* volume.c - convolutions and pooling of volumes: windows in three dimensions. */

#include "runtime/ops/internal.h"

#define FORMAT " data_format:{'NDHWC','NCDHW'}='NDHWC'"
#define CONV_ATTRS                                                                             \
    "T:" OP_FLOAT " strides:list(int)>=5 padding:{'SAME','VALID'}" FORMAT                      \
    " dilations:list(int)=[1,1,1,1,1]"
#define POOL_ATTRS                                                                             \
    "ksize:list(int)>=5 strides:list(int)>=5 padding:{'SAME','VALID'}" FORMAT " T:" OP_FLOAT

/* `window` in the order of the dimensions of input 0. */
static void infer_windows(struct infer *infer, const int64_t *window, int channels_axis,
                          int64_t channels)
{
    int count;
    const int64_t *strides = node_attr_ints(infer->node, "strides", &count);
    bool same = strcmp(node_attr_string(infer->node, "padding", "VALID"), "SAME") == 0;
    if (infer->inputs[0].rank != 5 || count != 5)
        return;
    op_infer_rank(infer, 0, 5);
    for (int d = 0; d < 5; d++)
        infer->outputs[0].dims[d] =
            d == channels_axis
                ? channels
                : op_infer_window(infer->inputs[0].dims[d], window[d], strides[d], same);
}

static bool infer_conv(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *filter = &infer->inputs[1];
    if (filter->rank != 5)
        return true;
    bool first = strcmp(node_attr_string(infer->node, "data_format", "NDHWC"), "NCDHW") == 0;
    int64_t window[5] = {1, 1, 1, 1, 1};
    for (int d = 0; d < 3; d++)
        window[(first ? 2 : 1) + d] = filter->dims[d];
    infer_windows(infer, window, first ? 1 : 4, filter->dims[4]);
    return true;
}

static bool infer_pool(struct infer *infer, struct error *err)
{
    (void)err;
    int count;
    const int64_t *ksize = node_attr_ints(infer->node, "ksize", &count);
    if (count == 5)
        infer_windows(infer, ksize, -1, 0);
    return true;
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

static bool infer_as_second(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

/* A node `op` with the window attributes of the node being differentiated. */
static struct edge windowed(struct gradient *g, const char *op, const struct edge *inputs,
                            int inputs_count)
{
    static const char *const names[] = {"strides", "ksize", "padding", "data_format",
                                        "dilations"};
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

/* --- convolutions --- */

static bool conv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), filter = gradient_x(g, 1), dy = g->of_outputs[0];
    g->of_inputs[0] =
        windowed(g, "Conv3DBackpropInputV2", INPUTS(op_shape_of(g, x), filter, dy));
    g->of_inputs[1] =
        windowed(g, "Conv3DBackpropFilterV2", INPUTS(x, op_shape_of(g, filter), dy));
    return builder_ok(&g->build);
}

static bool backprop_input_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge filter = gradient_x(g, 1), dx = g->of_outputs[0];
    g->of_inputs[1] = windowed(g, "Conv3DBackpropFilterV2",
                               INPUTS(dx, op_shape_of(g, filter), gradient_x(g, 2)));
    g->of_inputs[2] = windowed(g, "Conv3D", INPUTS(dx, filter));
    return builder_ok(&g->build);
}

static bool backprop_filter_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), df = g->of_outputs[0];
    g->of_inputs[0] =
        windowed(g, "Conv3DBackpropInputV2", INPUTS(op_shape_of(g, x), df, gradient_x(g, 2)));
    g->of_inputs[2] = windowed(g, "Conv3D", INPUTS(x, df));
    return builder_ok(&g->build);
}

const struct op op_conv3d = {
    .name = "Conv3D",
    .inputs = "input:T filter:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS,
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
    .infer = infer_as_second,
};

const struct op op_conv3d_backprop_input_v2 = {
    .name = "Conv3DBackpropInputV2",
    .inputs = "input_sizes:Tshape filter:T out_backprop:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS " Tshape:{int32,int64}=int32",
    .flags = OP_EXPENSIVE,
    .infer = infer_from_first,
    .gradient = backprop_input_gradient,
};

const struct op op_conv3d_backprop_filter_v2 = {
    .name = "Conv3DBackpropFilterV2",
    .inputs = "input:T filter_sizes:int32 out_backprop:T",
    .outputs = "output:T",
    .attrs = CONV_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_from_second,
    .gradient = backprop_filter_gradient,
};

/* --- pooling --- */

static bool max_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, windowed(g, "MaxPool3DGrad",
                    INPUTS(gradient_x(g, 0), gradient_y(g, 0), g->of_outputs[0])));
}

static bool max_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), y = gradient_x(g, 1);
    g->of_inputs[0] = op_call1(g, "ZerosLike", x);
    g->of_inputs[1] = op_call1(g, "ZerosLike", y);
    g->of_inputs[2] = windowed(g, "MaxPool3DGradGrad", INPUTS(x, y, g->of_outputs[0]));
    return builder_ok(&g->build);
}

static bool max_pool_grad_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), y = gradient_x(g, 1);
    g->of_inputs[0] = op_call1(g, "ZerosLike", x);
    g->of_inputs[1] = op_call1(g, "ZerosLike", y);
    g->of_inputs[2] = windowed(g, "MaxPool3DGrad", INPUTS(x, y, g->of_outputs[0]));
    return builder_ok(&g->build);
}

static bool avg_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    return op_gradient_single(g, windowed(g, "AvgPool3DGrad", INPUTS(shape, g->of_outputs[0])));
}

static bool avg_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = windowed(g, "AvgPool3D", INPUTS(g->of_outputs[0]));
    return builder_ok(&g->build);
}

const struct op op_max_pool3d = {
    .name = "MaxPool3D",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS,
    .infer = infer_pool,
    .gradient = max_pool_gradient,
};

const struct op op_max_pool3d_grad = {
    .name = "MaxPool3DGrad",
    .inputs = "orig_input:TInput orig_output:TInput grad:T",
    .outputs = "output:T",
    .attrs = "ksize:list(int)>=5 strides:list(int)>=5 padding:{'SAME','VALID'}" FORMAT
             " T:" OP_FLOAT "=float TInput:" OP_FLOAT "=float",
    .infer = op_infer_unchanged,
    .gradient = max_pool_grad_gradient,
};

const struct op op_max_pool3d_grad_grad = {
    .name = "MaxPool3DGradGrad",
    .inputs = "orig_input:T orig_output:T grad:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS,
    .infer = infer_as_second,
    .gradient = max_pool_grad_grad_gradient,
};

const struct op op_avg_pool3d = {
    .name = "AvgPool3D",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS,
    .infer = infer_pool,
    .gradient = avg_pool_gradient,
};

const struct op op_avg_pool3d_grad = {
    .name = "AvgPool3DGrad",
    .inputs = "orig_input_shape:int32 grad:T",
    .outputs = "output:T",
    .attrs = POOL_ATTRS,
    .infer = infer_from_first,
    .gradient = avg_pool_grad_gradient,
};
