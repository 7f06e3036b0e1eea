/* nn.c - activations, bias, softmax and the losses built on it. */

#include "runtime/ops/internal.h"

#define ACTIVATION(name_, types_, gradient_)                                                   \
    {                                                                                          \
        .name = name_, .inputs = "features:T", .outputs = "activations:T",                     \
        .attrs = "T:" types_, .infer = op_infer_unchanged, .gradient = gradient_,              \
    }
#define ACTIVATION_GRAD(name_, other_, types_, gradient_)                                      \
    {                                                                                          \
        .name = name_, .inputs = "gradients:T " other_ ":T", .outputs = "backprops:T",         \
        .attrs = "T:" types_, .infer = op_infer_unchanged, .gradient = gradient_,              \
    }

/* The op that gives the gradient from dy and the output. */
static bool by_output(struct gradient *g, const char *op)
{
    return op_gradient_single(g, op_call2(g, op, g->of_outputs[0], gradient_y(g, 0)));
}

/* The same from dy and the input. */
static bool by_input(struct gradient *g, const char *op)
{
    return op_gradient_single(g, op_call2(g, op, g->of_outputs[0], gradient_x(g, 0)));
}

static bool relu_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_output(g, "ReluGrad");
}

static bool relu6_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_output(g, "Relu6Grad");
}

static bool elu_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_output(g, "EluGrad");
}

static bool selu_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_output(g, "SeluGrad");
}

static bool softplus_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_input(g, "SoftplusGrad");
}

static bool softsign_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_input(g, "SoftsignGrad");
}

static struct edge leaky(struct gradient *g, struct edge features)
{
    float alpha = node_attr_float(g->node, "alpha", 0.2f);
    return op_call(g, "LeakyReluGrad", INPUTS(g->of_outputs[0], features),
                   ATTRS(attr_float("alpha", alpha)));
}

static bool leaky_relu_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, leaky(g, gradient_x(g, 0)));
}

/* Second order: linear in the gradients, with steps (no slope) in the features. */
static bool step_gradient(struct gradient *g, struct edge for_gradients)
{
    g->of_inputs[0] = for_gradients;
    g->of_inputs[1] = op_call1(g, "ZerosLike", gradient_x(g, 1));
    return builder_ok(&g->build);
}

static bool relu_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return step_gradient(g, op_call2(g, "ReluGrad", g->of_outputs[0], gradient_x(g, 1)));
}

static bool relu6_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return step_gradient(g, op_call2(g, "Relu6Grad", g->of_outputs[0], gradient_x(g, 1)));
}

static bool leaky_relu_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return step_gradient(g, leaky(g, gradient_x(g, 1)));
}

/* Second order of Elu and Selu, whose gradients are linear in the output below zero. */
static bool exponential_gradient(struct gradient *g, const char *op)
{
    struct edge dz = g->of_outputs[0], y = gradient_x(g, 1);
    g->of_inputs[0] = op_call2(g, op, dz, y);
    struct edge below = op_call2(g, "Less", y, op_number(g, y, 0));
    struct edge slope = op_call2(g, "Mul", dz, gradient_x(g, 0));
    g->of_inputs[1] = op_call3(g, "SelectV2", below, slope, op_call1(g, "ZerosLike", slope));
    return builder_ok(&g->build);
}

static bool elu_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return exponential_gradient(g, "EluGrad");
}

static bool selu_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return exponential_gradient(g, "SeluGrad");
}

static bool softplus_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0], dy = gradient_x(g, 0), x = gradient_x(g, 1);
    struct edge sum =
        op_call2(g, "AddV2", op_call1(g, "Exp", op_call1(g, "Neg", x)), op_call1(g, "Exp", x));
    struct edge below = op_call2(g, "AddV2", sum, op_number(g, x, 2));
    g->of_inputs[0] = op_call2(g, "SoftplusGrad", dz, x);
    g->of_inputs[1] = op_call2(g, "RealDiv", op_call2(g, "Mul", dz, dy), below);
    return builder_ok(&g->build);
}

const struct op op_relu = ACTIVATION("Relu",
                                     "{float,double,int32,uint8,int16,int8,int64,bfloat16,"
                                     "uint16,half,uint32,uint64,qint8}",
                                     relu_gradient);
const struct op op_relu6 = ACTIVATION("Relu6", OP_REAL, relu6_gradient);
const struct op op_elu = ACTIVATION("Elu", OP_FLOAT, elu_gradient);
const struct op op_selu = ACTIVATION("Selu", OP_FLOAT, selu_gradient);
const struct op op_softplus = ACTIVATION("Softplus", OP_FLOAT, softplus_gradient);
const struct op op_softsign = ACTIVATION("Softsign", OP_FLOAT, softsign_gradient);
const struct op op_leaky_relu = {
    .name = "LeakyRelu",
    .inputs = "features:T",
    .outputs = "activations:T",
    .attrs = "alpha:float=0.2 T:{half,bfloat16,float,double}=float",
    .infer = op_infer_unchanged,
    .gradient = leaky_relu_gradient,
};

const struct op op_relu_grad =
    ACTIVATION_GRAD("ReluGrad", "features", OP_REAL, relu_grad_gradient);
const struct op op_relu6_grad =
    ACTIVATION_GRAD("Relu6Grad", "features", OP_REAL, relu6_grad_gradient);
const struct op op_elu_grad =
    ACTIVATION_GRAD("EluGrad", "outputs", OP_FLOAT, elu_grad_gradient);
const struct op op_selu_grad =
    ACTIVATION_GRAD("SeluGrad", "outputs", OP_FLOAT, selu_grad_gradient);
const struct op op_softplus_grad =
    ACTIVATION_GRAD("SoftplusGrad", "features", OP_FLOAT, softplus_grad_gradient);
const struct op op_softsign_grad = ACTIVATION_GRAD("SoftsignGrad", "features", OP_FLOAT, NULL);
const struct op op_leaky_relu_grad = {
    .name = "LeakyReluGrad",
    .inputs = "gradients:T features:T",
    .outputs = "backprops:T",
    .attrs = "alpha:float=0.2 T:{half,bfloat16,float,double}=float",
    .infer = op_infer_unchanged,
    .gradient = leaky_relu_grad_gradient,
};

/* --- bias --- */

static bool bias_add_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const char *format = node_attr_string(g->node, "data_format", "NHWC");
    g->of_inputs[0] = g->of_outputs[0];
    g->of_inputs[1] = op_call(g, "BiasAddGrad", INPUTS(g->of_outputs[0]),
                              ATTRS(attr_string("data_format", format)));
    return builder_ok(&g->build);
}

static bool bias_add_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const char *format = node_attr_string(g->node, "data_format", "NHWC");
    struct edge zeros = op_call1(g, "ZerosLike", gradient_x(g, 0));
    return op_gradient_single(g, op_call(g, "BiasAdd", INPUTS(zeros, g->of_outputs[0]),
                                         ATTRS(attr_string("data_format", format))));
}

static bool infer_bias_grad(struct infer *infer, struct error *err)
{
    (void)err;
    bool first = strcmp(node_attr_string(infer->node, "data_format", "NHWC"), "NCHW") == 0;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, first ? 1 : -1));
    return true;
}

const struct op op_bias_add = {
    .name = "BiasAdd",
    .inputs = "value:T bias:T",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " data_format:{'NHWC','NCHW'}='NHWC'",
    .infer = op_infer_unchanged,
    .gradient = bias_add_gradient,
};

const struct op op_bias_add_grad = {
    .name = "BiasAddGrad",
    .inputs = "out_backprop:T",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER " data_format:{'NHWC','NCHW'}='NHWC'",
    .infer = infer_bias_grad,
    .gradient = bias_add_grad_gradient,
};

/* --- softmax and losses --- */

static struct edge sum_last(struct gradient *g, struct edge x)
{
    return op_call(g, "Sum", INPUTS(x, op_ints(g, (const int64_t[]){-1}, 1)),
                   ATTRS(attr_bool("keep_dims", true)));
}

static bool softmax_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0], y = gradient_y(g, 0);
    struct edge centre = sum_last(g, op_call2(g, "Mul", dy, y));
    return op_gradient_single(g, op_call2(g, "Mul", op_call2(g, "Sub", dy, centre), y));
}

static bool log_softmax_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge softmax = op_call1(g, "Exp", gradient_y(g, 0));
    struct edge part = op_call2(g, "Mul", sum_last(g, dy), softmax);
    return op_gradient_single(g, op_call2(g, "Sub", dy, part));
}

const struct op op_softmax = {
    .name = "Softmax",
    .inputs = "logits:T",
    .outputs = "softmax:T",
    .attrs = "T:" OP_FLOAT,
    .infer = op_infer_unchanged,
    .gradient = softmax_gradient,
};

const struct op op_log_softmax = {
    .name = "LogSoftmax",
    .inputs = "logits:T",
    .outputs = "logsoftmax:T",
    .attrs = "T:" OP_FLOAT,
    .infer = op_infer_unchanged,
    .gradient = log_softmax_gradient,
};

static struct edge times_rows(struct gradient *g, struct edge per_row, struct edge rows)
{
    struct edge column = op_call2(g, "ExpandDims", per_row, op_int(g, -1));
    return op_call2(g, "Mul", column, rows);
}

/* Output 1, the gradient that the forward pass has made already, may itself be differentiated.
 */
/* `first`, and what flows through the second output, the derivative of the loss. */
static struct edge with_second(struct gradient *g, struct edge first)
{
    struct edge dback = g->of_outputs[1];
    if (!dback.from)
        return first;
    struct edge p = op_call1(g, "Softmax", gradient_x(g, 0));
    struct edge centre = sum_last(g, op_call2(g, "Mul", dback, p));
    struct edge second = op_call2(g, "Mul", op_call2(g, "Sub", dback, centre), p);
    return first.from ? op_call2(g, "AddV2", first, second) : second;
}

static bool softmax_loss_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dloss = g->of_outputs[0], logits = gradient_x(g, 0);
    struct edge sum = OP_NO_EDGE;
    if (dloss.from) {
        sum = times_rows(g, dloss, gradient_y(g, 1));
        struct edge log_p = op_call1(g, "LogSoftmax", logits);
        g->of_inputs[1] = times_rows(g, dloss, op_call1(g, "Neg", log_p));
    }
    g->of_inputs[0] = with_second(g, sum);
    return builder_ok(&g->build);
}

static bool sparse_softmax_loss_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dloss = g->of_outputs[0];
    struct edge first = dloss.from ? times_rows(g, dloss, gradient_y(g, 1)) : OP_NO_EDGE;
    return op_gradient_single(g, with_second(g, first));
}

static bool infer_softmax_loss(struct infer *infer, struct error *err)
{
    if (!shape_broadcast(&infer->inputs[0], &infer->inputs[1], &infer->outputs[1], err))
        return false;
    infer->outputs[0] = SHAPE(infer->outputs[1].rank == 2 ? infer->outputs[1].dims[0] : -1);
    return true;
}

static bool infer_sparse_softmax_loss(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0));
    infer->outputs[1] = infer->inputs[0];
    return true;
}

const struct op op_softmax_cross_entropy_with_logits = {
    .name = "SoftmaxCrossEntropyWithLogits",
    .inputs = "features:T labels:T",
    .outputs = "loss:T backprop:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_softmax_loss,
    .gradient = softmax_loss_gradient,
};

const struct op op_sparse_softmax_cross_entropy_with_logits = {
    .name = "SparseSoftmaxCrossEntropyWithLogits",
    .inputs = "features:T labels:Tlabels",
    .outputs = "loss:T backprop:T",
    .attrs = "T:" OP_FLOAT " Tlabels:{int32,int64}=int64",
    .infer = infer_sparse_softmax_loss,
    .gradient = sparse_softmax_loss_gradient,
};

/* --- response across neighbouring channels --- */

#define LRN_ATTRS                                                                              \
    "depth_radius:int=5 bias:float=1 alpha:float=1 beta:float=0.5 "                            \
    "T:{half,bfloat16,float}=float"

static bool lrn_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    static const char *const names[] = {"depth_radius", "bias", "alpha", "beta"};
    struct attr attrs[ARRAY_LEN(names)];
    for (int i = 0; i < ARRAY_LEN(names); i++)
        attrs[i] = *node_attr(g->node, names[i]);
    return op_gradient_single(
        g, op_call(g, "LRNGrad", INPUTS(g->of_outputs[0], gradient_x(g, 0), gradient_y(g, 0)),
                   attrs, ARRAY_LEN(attrs)));
}

const struct op op_lrn = {
    .name = "LRN",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = LRN_ATTRS,
    .infer = op_infer_unchanged,
    .gradient = lrn_gradient,
};

const struct op op_lrn_grad = {
    .name = "LRNGrad",
    .inputs = "input_grads:T input_image:T output_image:T",
    .outputs = "output:T",
    .attrs = LRN_ATTRS,
    .infer = op_infer_unchanged,
};
