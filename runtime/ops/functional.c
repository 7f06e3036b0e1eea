/* functional.c - ops that call functions of the graph's library. */

#include "runtime/ops/internal.h"

/* What the attribute says of the outputs, if it says as many. */
static bool infer_output_shapes(struct infer *infer, struct error *err)
{
    (void)err;
    const struct attr *shapes = node_attr(infer->node, "output_shapes");
    if (!shapes || shapes->kind != ATTR_SHAPE || shapes->count != infer->node->outputs_count)
        return true;
    for (int i = 0; i < shapes->count; i++)
        infer->outputs[i] = shapes->shapes[i];
    return true;
}

#define IF_ATTRS                                                                               \
    "Tcond:type Tin:list(type)>=0 Tout:list(type)>=0 then_branch:func else_branch:func "       \
    "output_shapes:list(shape)=[]"

const struct op op_if = {
    .name = "If",
    .inputs = "cond:Tcond input:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = IF_ATTRS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

const struct op op_stateless_if = {
    .name = "StatelessIf",
    .inputs = "cond:Tcond input:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = IF_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

#define CASE_ATTRS                                                                             \
    "Tin:list(type)>=0 Tout:list(type)>=0 branches:list(func)>=1 output_shapes:list(shape)=[]"

const struct op op_case = {
    .name = "Case",
    .inputs = "branch_index:int32 input:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = CASE_ATTRS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

const struct op op_stateless_case = {
    .name = "StatelessCase",
    .inputs = "branch_index:int32 input:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = CASE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

#define WHILE_ATTRS                                                                            \
    "T:list(type)>=0 cond:func body:func output_shapes:list(shape)=[] "                        \
    "parallel_iterations:int=10"

const struct op op_while = {
    .name = "While",
    .inputs = "input:list(T)",
    .outputs = "output:list(T)",
    .attrs = WHILE_ATTRS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

const struct op op_stateless_while = {
    .name = "StatelessWhile",
    .inputs = "input:list(T)",
    .outputs = "output:list(T)",
    .attrs = WHILE_ATTRS,
    .flags = OP_EXPENSIVE,
    .infer = infer_output_shapes,
};

const struct op op_for = {
    .name = "For",
    .inputs = "start:int32 limit:int32 delta:int32 input:list(T)",
    .outputs = "output:list(T)",
    .attrs = "T:list(type)>=0 body:func",
    .flags = OP_EXPENSIVE,
};

#define CALL_ATTRS                                                                             \
    "Tin:list(type)>=0 Tout:list(type)>=0 f:func config:string='' config_proto:string='' "     \
    "executor_type:string=''"

const struct op op_partitioned_call = {
    .name = "PartitionedCall",
    .inputs = "args:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = CALL_ATTRS,
    .flags = OP_EXPENSIVE,
};

const struct op op_stateful_partitioned_call = {
    .name = "StatefulPartitionedCall",
    .inputs = "args:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = CALL_ATTRS,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
};

const struct op op_remote_call = {
    .name = "RemoteCall",
    .inputs = "target:string args:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = "Tin:list(type)>=1 Tout:list(type)>=1 f:func",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
};

const struct op op_symbolic_gradient = {
    .name = "SymbolicGradient",
    .inputs = "input:list(Tin)",
    .outputs = "output:list(Tout)",
    .attrs = "Tin:list(type)>=1 Tout:list(type)>=1 f:func",
    .flags = OP_EXPENSIVE,
};

/* What If takes for true: a number but 0, a text but "", and any tensor with an element. */
const struct op op_to_bool = {
    .name = "ToBool",
    .inputs = "input:T",
    .outputs = "output:bool",
    .attrs = "T:type",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

/* Stands for a result that a branch does not have; whoever reads it made a mistake. */
const struct op op_fake_param = {
    .name = "FakeParam",
    .inputs = "",
    .outputs = "output:dtype",
    .attrs = "dtype:type shape:shape",
    .infer = op_infer_shape_attr,
    .no_gradient = true,
};
