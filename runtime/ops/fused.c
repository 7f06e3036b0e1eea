/*
 * fused.c - ops that stand for several, made by optimise_fuse.c where a kernel for them exists.
 *
 * The forward ones are TensorFlow's internal ops; their shapes are those of what they replace,
 * and nobody asks for their gradient, since fusing comes last.
 */
#include "runtime/ops/internal.h"

/* `fused_ops` says what follows the product: BiasAdd with args[0], then perhaps Relu. */
const struct op op_fused_mat_mul = {
    .name = "_FusedMatMul",
    .inputs = "a:T b:T args:num_args*T",
    .outputs = "product:T",
    .attrs = "transpose_a:bool=false transpose_b:bool=false T:" OP_FLOAT
             " num_args:int>=0 fused_ops:list(string)=[] epsilon:float=0.0001",
    .flags = OP_EXPENSIVE,
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
    .no_gradient = true,
};

/* ReluGrad, and BiasAddGrad of its result. */
const struct op op_relu_bias_grad = {
    .name = "_ReluGradBiasAddGrad",
    .inputs = "gradients:T features:T",
    .outputs = "backprops:T bias_backprop:T",
    .attrs = "T:" OP_FLOAT,
    .no_gradient = true,
};

/* MaxPoolGrad, ReluGrad with the pooled image as features, and BiasAddGrad of its result. */
const struct op op_max_pool_relu_bias_grad = {
    .name = "_MaxPoolGradReluGradBiasAddGrad",
    .inputs = "orig_input:T orig_output:T grad:T",
    .outputs = "backprops:T bias_backprop:T",
    .attrs = "T:" OP_FLOAT " ksize:list(int)>=4 strides:list(int)>=4 padding:{'SAME','VALID'} "
             "data_format:{'NHWC'}='NHWC'",
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
