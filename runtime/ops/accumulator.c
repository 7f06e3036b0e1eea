/* accumulator.c - accumulators of gradients, dense and sparse. */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

/* A gradient is of the shape that the accumulator declares. */
static bool infer_take(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *shape = node_attr_shape(infer->node->inputs[0].from, "shape");
    if (shape)
        infer->outputs[0] = *shape;
    return true;
}

#define BY_REF "Ref(string)"
#define BY_RESOURCE "resource"

#define MAKER(constant, name_, handle_)                                                        \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "",                                                                          \
        .outputs = "handle:" handle_,                                                          \
        .attrs = "dtype:" OP_NUMBER " shape:shape container:string='' "                        \
                 "shared_name:string='' reduction_type:{'MEAN','SUM'}='MEAN'",                 \
        .flags = OP_STATEFUL,                                                                  \
        .no_gradient = true,                                                                   \
    }
#define USER(constant, name_, inputs_, outputs_, attrs_, infer_)                               \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "handle:" inputs_,                                                           \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

#define DTYPE "dtype:" OP_NUMBER
#define APPLY " local_step:int64 gradient:dtype"
#define SET " new_global_step:int64"

MAKER(conditional_accumulator, "ConditionalAccumulator", BY_REF);
MAKER(resource_conditional_accumulator, "ResourceConditionalAccumulator", BY_RESOURCE);
MAKER(sparse_conditional_accumulator, "SparseConditionalAccumulator", BY_REF);

USER(accumulator_apply_gradient, "AccumulatorApplyGradient", BY_REF APPLY, "", DTYPE, NULL);
USER(resource_accumulator_apply_gradient, "ResourceAccumulatorApplyGradient", BY_RESOURCE APPLY,
     "", DTYPE, NULL);
USER(sparse_accumulator_apply_gradient, "SparseAccumulatorApplyGradient",
     BY_REF " local_step:int64 gradient_indices:int64 gradient_values:dtype "
            "gradient_shape:int64",
     "", DTYPE " has_known_shape:bool", NULL);
USER(accumulator_take_gradient, "AccumulatorTakeGradient", BY_REF " num_required:int32",
     "average:dtype", DTYPE, infer_take);
USER(resource_accumulator_take_gradient, "ResourceAccumulatorTakeGradient",
     BY_RESOURCE " num_required:int32", "average:dtype", DTYPE, infer_take);
USER(sparse_accumulator_take_gradient, "SparseAccumulatorTakeGradient",
     BY_REF " num_required:int32", "indices:int64 values:dtype shape:int64", DTYPE, NULL);
USER(accumulator_set_global_step, "AccumulatorSetGlobalStep", BY_REF SET, "", "", NULL);
USER(resource_accumulator_set_global_step, "ResourceAccumulatorSetGlobalStep", BY_RESOURCE SET,
     "", "", NULL);
USER(accumulator_num_accumulated, "AccumulatorNumAccumulated", BY_REF, "num_accumulated:int32",
     "", op_infer_scalar);
USER(resource_accumulator_num_accumulated, "ResourceAccumulatorNumAccumulated", BY_RESOURCE,
     "num_accumulated:int32", "", op_infer_scalar);
