/* pool.c - maxima and means of windows that slide over images and volumes. */

#include "runtime/ops/internal.h"

static bool infer_pool(struct infer *infer, struct error *err)
{
    (void)err;
    int count;
    const int64_t *ksize = node_attr_ints(infer->node, "ksize", &count);
    if (count == op_window_dims(infer->node) + 2)
        op_infer_windows(infer, ksize, -1, 0);
    return true;
}

static bool infer_four(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 4);
    return true;
}

static bool infer_argmax(struct infer *infer, struct error *err)
{
    if (!infer_pool(infer, err))
        return false;
    infer->outputs[1] = infer->outputs[0];
    return true;
}

/* --- gradients --- */

static bool is_volume(const struct gradient *g)
{
    return op_window_dims(g->node) == 3;
}

static bool max_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, op_windowed(g, is_volume(g) ? "MaxPool3DGrad" : "MaxPoolGrad",
                       INPUTS(gradient_x(g, 0), gradient_y(g, 0), g->of_outputs[0])));
}

static bool max_pool_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, op_windowed(g, "MaxPoolGradV2",
                       INPUTS(gradient_x(g, 0), gradient_y(g, 0), g->of_outputs[0],
                              gradient_x(g, 1), gradient_x(g, 2))));
}

static bool max_pool_with_argmax_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    if (!g->of_outputs[0].from)
        return true;
    return op_gradient_single(
        g, op_windowed(g, "MaxPoolGradWithArgmax",
                       INPUTS(gradient_x(g, 0), g->of_outputs[0], gradient_y(g, 1))));
}

/* Zeros for the input and output of the pooling, `op` for the gradient. */
static bool second_pool_gradient(struct gradient *g, const char *op)
{
    struct edge x = gradient_x(g, 0), y = gradient_x(g, 1);
    g->of_inputs[0] = op_call1(g, "ZerosLike", x);
    g->of_inputs[1] = op_call1(g, "ZerosLike", y);
    g->of_inputs[2] =
        g->node->inputs_count > 3
            ? op_windowed(g, op,
                          INPUTS(x, y, g->of_outputs[0], gradient_x(g, 3), gradient_x(g, 4)))
            : op_windowed(g, op, INPUTS(x, y, g->of_outputs[0]));
    return builder_ok(&g->build);
}

static bool max_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, is_volume(g) ? "MaxPool3DGradGrad" : "MaxPoolGradGrad");
}

static bool max_pool_grad_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, "MaxPoolGradGradV2");
}

static bool max_pool_grad_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return second_pool_gradient(g, is_volume(g) ? "MaxPool3DGrad" : "MaxPoolGrad");
}

static bool avg_pool_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge shape = op_shape_of(g, gradient_x(g, 0));
    return op_gradient_single(g, op_windowed(g, is_volume(g) ? "AvgPool3DGrad" : "AvgPoolGrad",
                                             INPUTS(shape, g->of_outputs[0])));
}

static bool avg_pool_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] =
        op_windowed(g, is_volume(g) ? "AvgPool3D" : "AvgPool", INPUTS(g->of_outputs[0]));
    return builder_ok(&g->build);
}

/* --- images --- */

#define POOL_ATTRS                                                                             \
    "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID','EXPLICIT'} "             \
    "explicit_paddings:list(int)=[] data_format:{'NHWC','NCHW','NCHW_VECT_C'}='NHWC' "
#define AVG_ATTRS                                                                              \
    "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID'} "                        \
    "data_format:{'NHWC','NCHW'}='NHWC' T:" OP_FLOAT

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
    .attrs =
        "ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID','EXPLICIT'} "
        "explicit_paddings:list(int)=[] data_format:{'NHWC','NCHW'}='NHWC' T:" OP_REAL "=float",
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
    .infer = op_infer_from_first,
    .gradient = avg_pool_grad_gradient,
};

/* --- maxima in other forms: sizes as inputs, gradients of gradients, places of maxima --- */

#define SIZES "ksize:list(int)>=4 strides:list(int)>=4 "
#define FORMAT "padding:{'SAME','VALID'} data_format:{'NHWC','NCHW'}='NHWC' "
#define BACK "orig_input:T orig_output:T grad:T"

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
    .attrs = FORMAT "T:" OP_REAL "=float",
    .infer = op_infer_unchanged,
    .gradient = max_pool_grad_v2_gradient,
};

const struct op op_max_pool_grad_grad = {
    .name = "MaxPoolGradGrad",
    .inputs = BACK,
    .outputs = "output:T",
    .attrs = SIZES FORMAT "T:" OP_REAL,
    .infer = op_infer_second,
    .gradient = max_pool_grad_grad_gradient,
};

const struct op op_max_pool_grad_grad_v2 = {
    .name = "MaxPoolGradGradV2",
    .inputs = BACK " ksize:int32 strides:int32",
    .outputs = "output:T",
    .attrs = FORMAT "T:" OP_REAL,
    .infer = op_infer_second,
};

const struct op op_max_pool_with_argmax = {
    .name = "MaxPoolWithArgmax",
    .inputs = "input:T",
    .outputs = "output:T argmax:Targmax",
    .attrs = SIZES "Targmax:{int32,int64}=int64 padding:{'SAME','VALID'} "
                   "include_batch_in_index:bool=false T:" OP_REAL,
    .infer = infer_argmax,
    .gradient = max_pool_with_argmax_gradient,
};

const struct op op_max_pool_grad_with_argmax = {
    .name = "MaxPoolGradWithArgmax",
    .inputs = "input:T grad:T argmax:Targmax",
    .outputs = "output:T",
    .attrs = SIZES "padding:{'SAME','VALID'} include_batch_in_index:bool=false "
                   "Targmax:{int32,int64} T:" OP_REAL,
    .infer = op_infer_unchanged,
};

/* --- volumes --- */

#define VOLUME_ATTRS                                                                           \
    "ksize:list(int)>=5 strides:list(int)>=5 padding:{'SAME','VALID'} "                        \
    "data_format:{'NDHWC','NCDHW'}='NDHWC' T:" OP_FLOAT

const struct op op_max_pool3d = {
    .name = "MaxPool3D",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS,
    .infer = infer_pool,
    .gradient = max_pool_gradient,
};

const struct op op_max_pool3d_grad = {
    .name = "MaxPool3DGrad",
    .inputs = "orig_input:TInput orig_output:TInput grad:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS "=float TInput:" OP_FLOAT "=float",
    .infer = op_infer_unchanged,
    .gradient = max_pool_grad_gradient,
};

const struct op op_max_pool3d_grad_grad = {
    .name = "MaxPool3DGradGrad",
    .inputs = "orig_input:T orig_output:T grad:T",
    .outputs = "output:T",
    .attrs = "ksize:list(int)>=5 strides:list(int)>=5 padding:{'SAME','VALID'} "
             "data_format:{'NDHWC','NCDHW'}='NDHWC' T:" OP_REAL,
    .infer = op_infer_second,
    .gradient = max_pool_grad_grad_gradient,
};

const struct op op_avg_pool3d = {
    .name = "AvgPool3D",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS,
    .infer = infer_pool,
    .gradient = avg_pool_gradient,
};

const struct op op_avg_pool3d_grad = {
    .name = "AvgPool3DGrad",
    .inputs = "orig_input_shape:int32 grad:T",
    .outputs = "output:T",
    .attrs = VOLUME_ATTRS,
    .infer = op_infer_from_first,
    .gradient = avg_pool_grad_gradient,
};
