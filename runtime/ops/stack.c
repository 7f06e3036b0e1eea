/* stack.c - stacks of tensors, which live for one run. */

#include "runtime/ops/internal.h"

/* What is pushed comes out again. */
static bool infer_push(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

const struct op op_stack_v2 = {
    .name = "StackV2",
    .inputs = "max_size:int32",
    .outputs = "handle:resource",
    .attrs = "elem_type:type stack_name:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_stack_push_v2 = {
    .name = "StackPushV2",
    .inputs = "handle:resource elem:T",
    .outputs = "output:T",
    .attrs = "T:type swap_memory:bool=false",
    .flags = OP_STATEFUL,
    .infer = infer_push,
    .no_gradient = true,
};

const struct op op_stack_pop_v2 = {
    .name = "StackPopV2",
    .inputs = "handle:resource",
    .outputs = "elem:elem_type",
    .attrs = "elem_type:type",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

/*
 * Another stack, one for each handle and source: where the gradients go of what is on it.  Ours
 * alone; TensorFlow has no gradients through stacks.
 */
const struct op op_stack_grad = {
    .name = "StackGrad",
    .inputs = "handle:resource",
    .outputs = "grad_handle:resource",
    .attrs = "source:string",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_stack_close_v2 = {
    .name = "StackCloseV2",
    .inputs = "handle:resource",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
