/*
 * control_flow.c - what decides which nodes run: conditionals, and loops in frames.
 *
 * The executor does these ops itself (enum op_flow); only RefSelect, RefIdentity and Abort have
 * kernels.
 */

#include "runtime/ops/internal.h"

/* --- conditionals --- */

static bool infer_all_as_first(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[0];
    return true;
}

const struct op op_switch = {
    .name = "Switch",
    .inputs = "data:T pred:bool",
    .outputs = "output_false:T output_true:T",
    .attrs = "T:type",
    .flow = FLOW_SWITCH,
    .infer = infer_all_as_first,
};

const struct op op_ref_switch = {
    .name = "RefSwitch",
    .inputs = "data:Ref(T) pred:bool",
    .outputs = "output_false:Ref(T) output_true:Ref(T)",
    .attrs = "T:type",
    .flags = OP_UNINITIALIZED_OK,
    .flow = FLOW_SWITCH,
    .infer = infer_all_as_first,
};

const struct op op_switch_n = {
    .name = "_SwitchN",
    .inputs = "data:T output_index:int32",
    .outputs = "outputs:num_outs*T",
    .attrs = "num_outs:int>=1 T:type",
    .flow = FLOW_SWITCH,
    .infer = infer_all_as_first,
};

/* What all inputs agree in; what comes round a loop may be anything. */
static bool infer_merge(struct infer *infer, struct error *err)
{
    (void)err;
    struct shape agreed = infer->inputs[0];
    for (int i = 1; i < infer->node->inputs_count; i++) {
        const struct shape *other = &infer->inputs[i];
        if (other->rank != agreed.rank)
            agreed = SHAPE_UNKNOWN;
        for (int d = 0; d < agreed.rank; d++)
            if (agreed.dims[d] != other->dims[d])
                agreed.dims[d] = -1;
    }
    for (int i = 0; i < infer->node->inputs_count; i++)
        if (infer->node->inputs[i].from->op->flow == FLOW_NEXT)
            agreed = SHAPE_UNKNOWN;
    infer->outputs[0] = agreed;
    infer->outputs[1] = SHAPE_SCALAR;
    return true;
}

const struct op op_merge = {
    .name = "Merge",
    .inputs = "inputs:N*T",
    .outputs = "output:T value_index:int32",
    .attrs = "T:type N:int>=1",
    .flow = FLOW_MERGE,
    .infer = infer_merge,
};

const struct op op_ref_merge = {
    .name = "RefMerge",
    .inputs = "inputs:N*Ref(T)",
    .outputs = "output:Ref(T) value_index:int32",
    .attrs = "T:type N:int>=1",
    .flow = FLOW_MERGE,
    .infer = infer_merge,
};

/* --- loops --- */

const struct op op_enter = {
    .name = "Enter",
    .inputs = "data:T",
    .outputs = "output:T",
    .attrs = "T:type frame_name:string is_constant:bool=false parallel_iterations:int=10",
    .flow = FLOW_ENTER,
    .infer = op_infer_unchanged,
};

const struct op op_ref_enter = {
    .name = "RefEnter",
    .inputs = "data:Ref(T)",
    .outputs = "output:Ref(T)",
    .attrs = "T:type frame_name:string is_constant:bool=false parallel_iterations:int=10",
    .flags = OP_UNINITIALIZED_OK,
    .flow = FLOW_ENTER,
    .infer = op_infer_unchanged,
};

#define PASSES(name_, flow_)                                                                   \
    {                                                                                          \
        .name = name_, .inputs = "data:T", .outputs = "output:T", .attrs = "T:type",           \
        .flow = flow_, .infer = op_infer_unchanged,                                            \
    }

#define PASSES_REF(name_, flow_)                                                               \
    {                                                                                          \
        .name = name_, .inputs = "data:Ref(T)", .outputs = "output:Ref(T)", .attrs = "T:type", \
        .flags = OP_UNINITIALIZED_OK, .flow = flow_, .infer = op_infer_unchanged,              \
    }

const struct op op_exit = PASSES("Exit", FLOW_EXIT);
const struct op op_ref_exit = PASSES_REF("RefExit", FLOW_EXIT);
const struct op op_next_iteration = PASSES("NextIteration", FLOW_NEXT);
const struct op op_ref_next_iteration = PASSES_REF("RefNextIteration", FLOW_NEXT);

const struct op op_loop_cond = {
    .name = "LoopCond",
    .inputs = "input:bool",
    .outputs = "output:bool",
    .attrs = "",
    .flow = FLOW_PASS,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

/* --- the rest --- */

const struct op op_ref_identity = {
    .name = "RefIdentity",
    .inputs = "input:Ref(T)",
    .outputs = "output:Ref(T)",
    .attrs = "T:type",
    .flags = OP_UNINITIALIZED_OK,
    .flow = FLOW_PASS,
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_ref_select = {
    .name = "RefSelect",
    .inputs = "index:int32 inputs:N*Ref(T)",
    .outputs = "output:Ref(T)",
    .attrs = "T:type N:int>=1",
    .flags = OP_UNINITIALIZED_OK,
    .no_gradient = true,
};

const struct op op_abort = {
    .name = "Abort",
    .inputs = "",
    .outputs = "",
    .attrs = "error_msg:string='' exit_without_error:bool=false",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

/* --- for people --- */

const struct op op_print = {
    .name = "Print",
    .inputs = "input:T data:list(U)",
    .outputs = "output:T",
    .attrs = "T:type U:list(type)>=0 message:string='' first_n:int=-1 summarize:int=3",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};

const struct op op_print_v2 = {
    .name = "PrintV2",
    .inputs = "input:string",
    .outputs = "",
    .attrs = "output_stream:string='stderr' end:string='\n'",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
