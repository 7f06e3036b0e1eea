/* batch_norm.c - normalisation by the moments of a batch, in TensorFlow's three versions. */

#include "runtime/ops/internal.h"

static bool infer_norm(struct infer *infer, struct error *err)
{
    (void)err;
    bool nchw = strncmp(node_attr_string(infer->node, "data_format", "NHWC"), "NC", 2) == 0;
    infer->outputs[0] = infer->inputs[0];
    for (int i = 1; i < 5; i++)
        infer->outputs[i] = SHAPE(op_infer_dim(infer, 0, nchw ? 1 : -1));
    return true;
}

static bool infer_norm_grad(struct infer *infer, struct error *err)
{
    if (!infer_norm(infer, err))
        return false;
    infer->outputs[3] = infer->outputs[4] = SHAPE(0);
    return true;
}

/* Training: with the moments of the batch, which the node has kept; else with those given. */
static bool norm_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const char *name = g->node->op->name;
    bool v1 = strcmp(name, "FusedBatchNorm") == 0, v3 = strcmp(name, "FusedBatchNormV3") == 0;
    bool training = node_attr_bool(g->node, "is_training", true);
    struct edge inputs[6] = {g->of_outputs[0],
                             gradient_x(g, 0),
                             gradient_x(g, 1),
                             training ? gradient_y(g, 3) : gradient_x(g, 3),
                             training ? gradient_y(g, 4) : gradient_x(g, 4),
                             v3 ? gradient_y(g, 5) : OP_NO_EDGE};
    if (!inputs[0].from)
        return true;
    float epsilon = node_attr_float(g->node, "epsilon", 0.0001f);
    const char *format = node_attr_string(g->node, "data_format", "NHWC");
    struct edge grads =
        op_call(g,
                v1   ? "FusedBatchNormGrad"
                : v3 ? "FusedBatchNormGradV3"
                     : "FusedBatchNormGradV2",
                inputs, v3 ? 6 : 5,
                ATTRS(attr_float("epsilon", epsilon), attr_string("data_format", format),
                      attr_bool("is_training", training)));
    for (int i = 0; i < 3; i++)
        g->of_inputs[i] = builder_output(grads, i);
    return builder_ok(&g->build);
}

#define IMAGES "{'NHWC','NCHW'}='NHWC'"
#define ALL "{'NHWC','NCHW','NDHWC','NCDHW'}='NHWC'"
#define NORM_ATTRS(formats)                                                                    \
    " epsilon:float=0.0001 exponential_avg_factor:float=1 data_format:" formats                \
    " is_training:bool=true"
#define GRAD_ATTRS(formats)                                                                    \
    " epsilon:float=0.0001 data_format:" formats " is_training:bool=true"

const struct op op_fused_batch_norm = {
    .name = "FusedBatchNorm",
    .inputs = "x:T scale:T offset:T mean:T variance:T",
    .outputs = "y:T batch_mean:T batch_variance:T reserve_space_1:T reserve_space_2:T",
    .attrs = "T:{float}" NORM_ATTRS(IMAGES),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm,
    .gradient = norm_gradient,
};

const struct op op_fused_batch_norm_v2 = {
    .name = "FusedBatchNormV2",
    .inputs = "x:T scale:U offset:U mean:U variance:U",
    .outputs = "y:T batch_mean:U batch_variance:U reserve_space_1:U reserve_space_2:U",
    .attrs = "T:{half,bfloat16,float} U:{float}" NORM_ATTRS(IMAGES),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm,
    .gradient = norm_gradient,
};

const struct op op_fused_batch_norm_v3 = {
    .name = "FusedBatchNormV3",
    .inputs = "x:T scale:U offset:U mean:U variance:U",
    .outputs = "y:T batch_mean:U batch_variance:U reserve_space_1:U reserve_space_2:U "
               "reserve_space_3:U",
    .attrs = "T:{half,bfloat16,float} U:{bfloat16,float}" NORM_ATTRS(ALL),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm,
    .gradient = norm_gradient,
};

const struct op op_fused_batch_norm_grad = {
    .name = "FusedBatchNormGrad",
    .inputs = "y_backprop:T x:T scale:T reserve_space_1:T reserve_space_2:T",
    .outputs = "x_backprop:T scale_backprop:T offset_backprop:T reserve_space_3:T "
               "reserve_space_4:T",
    .attrs = "T:{float}" GRAD_ATTRS(IMAGES),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm_grad,
};

const struct op op_fused_batch_norm_grad_v2 = {
    .name = "FusedBatchNormGradV2",
    .inputs = "y_backprop:T x:T scale:float reserve_space_1:U reserve_space_2:U",
    .outputs = "x_backprop:T scale_backprop:U offset_backprop:U reserve_space_3:U "
               "reserve_space_4:U",
    .attrs = "T:{half,bfloat16,float} U:{float}" GRAD_ATTRS(IMAGES),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm_grad,
};

const struct op op_fused_batch_norm_grad_v3 = {
    .name = "FusedBatchNormGradV3",
    .inputs = "y_backprop:T x:T scale:float reserve_space_1:U reserve_space_2:U "
              "reserve_space_3:U",
    .outputs = "x_backprop:T scale_backprop:U offset_backprop:U reserve_space_4:U "
               "reserve_space_5:U",
    .attrs = "T:{half,bfloat16,float} U:{float}" GRAD_ATTRS(ALL),
    .flags = OP_EXPENSIVE,
    .infer = infer_norm_grad,
};
