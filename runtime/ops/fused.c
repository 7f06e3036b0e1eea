/*
 * fused.c - ops that stand for several, made by optimise_fuse.c where a kernel for them exists.
 *
 * The forward ones are TensorFlow's internal ops; their shapes are those of what they replace,
 * and nobody asks for their gradient, since fusing comes last.
 */
#include "runtime/ops/internal.h"

/* The shapes of the op that the node is named after. */
static bool infer_as(const char *op, struct infer *infer, struct error *err)
{
    return op_find(op)->infer(infer, err);
}

static bool infer_mat_mul(struct infer *infer, struct error *err)
{
    return infer_as("MatMul", infer, err);
}

static bool infer_conv(struct infer *infer, struct error *err)
{
    return infer_as("Conv2D", infer, err);
}

static bool infer_norm(struct infer *infer, struct error *err)
{
    return infer_as("FusedBatchNormV3", infer, err);
}

/* Gradients of x, scale, offset; two that are empty; of what was added. */
static bool infer_norm_grad(struct infer *infer, struct error *err)
{
    if (!infer_as("FusedBatchNormGradV3", infer, err))
        return false;
    if (infer->node->outputs_count > 5)
        infer->outputs[5] = infer->inputs[0];
    return true;
}

/* The gradient of an image, and its sums over all but the last dimension. */
static bool infer_with_bias(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    infer->outputs[1] = SHAPE(op_infer_dim(infer, 0, -1));
    return true;
}

/* All operands broadcast together, whatever the program does with them. */
static bool infer_elementwise(struct infer *infer, struct error *err)
{
    struct shape shape = infer->inputs[0];
    for (int i = 1; i < infer->node->inputs_count; i++) {
        struct shape both;
        if (!shape_broadcast(&shape, &infer->inputs[i], &both, err))
            return false;
        shape = both;
    }
    infer->outputs[0] = shape;
    return true;
}

/* `fused_ops` says what follows the product: BiasAdd with args[0], then perhaps Relu. */
const struct op op_fused_mat_mul = {
    .name = "_FusedMatMul",
    .inputs = "a:T b:T args:num_args*T",
    .outputs = "product:T",
    .attrs = "transpose_a:bool=false transpose_b:bool=false T:" OP_FLOAT
             " num_args:int>=0 fused_ops:list(string)=[] epsilon:float=0.0001",
    .flags = OP_EXPENSIVE,
    .infer = infer_mat_mul,
    .no_gradient = true,
};

const struct op op_fused_conv2d = {
    .name = "_FusedConv2D",
    .inputs = "input:T filter:T args:num_args*T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT " num_args:int>=0 strides:list(int) "
             "padding:{'SAME','VALID','EXPLICIT'} explicit_paddings:list(int)=[] "
             "data_format:{'NHWC','NCHW'}='NHWC' dilations:list(int)=[1,1,1,1] "
             "fused_ops:list(string)=[] epsilon:float=0.0001",
    .flags = OP_EXPENSIVE,
    .infer = infer_conv,
    .no_gradient = true,
};

/* ReluGrad, and BiasAddGrad of its result. */
const struct op op_relu_bias_grad = {
    .name = "_ReluGradBiasAddGrad",
    .inputs = "gradients:T features:T",
    .outputs = "backprops:T bias_backprop:T",
    .attrs = "T:" OP_FLOAT,
    .infer = infer_with_bias,
    .no_gradient = true,
};

/* MaxPoolGrad, ReluGrad with the pooled image as features, and BiasAddGrad of its result. */
const struct op op_max_pool_relu_bias_grad = {
    .name = "_MaxPoolGradReluGradBiasAddGrad",
    .inputs = "orig_input:T orig_output:T grad:T",
    .outputs = "backprops:T bias_backprop:T",
    .attrs = "T:" OP_FLOAT " ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID'} "
             "data_format:{'NHWC'}='NHWC'",
    .infer = infer_with_bias,
    .no_gradient = true,
};

/* MatMul of the first two after transposing, and ResourceApplyGradientDescent with the product.
 */
const struct op op_mat_mul_descent = {
    .name = "_MatMulApplyGradientDescent",
    .inputs = "var:resource alpha:T a:T b:T",
    .outputs = "",
    .attrs = "transpose_a:bool=false transpose_b:bool=false T:" OP_FLOAT,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .no_gradient = true,
};

/*
 * A program of elementwise ops: `ops` names them, `operands` has two numbers for each, -1 for
 * none: inputs of this node first, then results of the ops before.  The last one's result is
 * the output.
 */
const struct op op_elementwise = {
    .name = "_Elementwise",
    .inputs = "args:N*T",
    .outputs = "result:T",
    .attrs = "T:" OP_FLOAT " N:int>=1 ops:list(string)>=1 operands:list(int)>=2",
    .infer = infer_elementwise,
    .no_gradient = true,
};

/*
 * Several updates by one rule ("ApplyAdam"): update i has the variables and slots
 * vars[i * slots ...] and the gradient grads[i]; scalars are the same for all.  Or one update,
 * whose gradient's numbers are those of grads, one after another.
 */
#define UPDATE(name_, op_name, var)                                                            \
    const struct op op_##name_ = {                                                             \
        .name = op_name,                                                                       \
        .inputs = "vars:V*" var " scalars:S*T grads:N*T",                                      \
        .outputs = "",                                                                         \
        .attrs = "T:" OP_FLOAT " V:int>=1 S:int>=1 N:int>=1 rule:string "                      \
                 "use_nesterov:bool=false",                                                    \
        .flags = OP_STATEFUL | OP_EXPENSIVE,                                                   \
        .no_gradient = true,                                                                   \
    };
UPDATE(update_refs, "_UpdateRefs", "Ref(T)")
UPDATE(update_resources, "_UpdateResources", "resource")

/* Batch normalisation, and `activation_mode` of its result; TensorFlow's internal op. */
const struct op op_fused_batch_norm_ex = {
    .name = "_FusedBatchNormEx",
    .inputs = "x:T scale:U offset:U mean:U variance:U side_input:num_side_inputs*T",
    .outputs = "y:T batch_mean:U batch_variance:U reserve_space_1:U reserve_space_2:U "
               "reserve_space_3:U",
    .attrs = "T:{half,bfloat16,float} U:{float} epsilon:float=0.0001 "
             "exponential_avg_factor:float=1 num_side_inputs:int>=0=0 "
             "activation_mode:string='Identity' data_format:{'NHWC','NCHW'}='NHWC' "
             "is_training:bool=true",
    .infer = infer_norm,
    .no_gradient = true,
};

/*
 * The gradient of the former: of all that went in, through `activation_mode`, whose result was
 * y.  TensorFlow's internal op.
 */
const struct op op_fused_batch_norm_grad_ex = {
    .name = "_FusedBatchNormGradEx",
    .inputs = "y_backprop:T x:T scale:float reserve_space_1:U reserve_space_2:U "
              "reserve_space_3:U offset:float y:T",
    .outputs = "x_backprop:T scale_backprop:U offset_backprop:U reserve_space_4:U "
               "reserve_space_5:U side_input_backprop:num_side_inputs*T",
    .attrs = "T:{half,bfloat16,float} U:{float} epsilon:float=0.0001 "
             "num_side_inputs:int>=0=0 activation_mode:string='Identity' "
             "data_format:{'NHWC','NCHW'}='NHWC' is_training:bool=true",
    .flags = OP_EXPENSIVE,
    .infer = infer_norm_grad,
    .no_gradient = true,
};
