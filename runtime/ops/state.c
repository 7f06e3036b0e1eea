/*
 * state.c - variables: by reference (VariableV2 and what takes its output) and by resource
 * handle.
 */

#include "runtime/ops/internal.h"

static bool infer_read(struct infer *infer, struct error *err)
{
    (void)err;
    const struct node *handle = infer->node->inputs[0].from;
    const struct shape *shape = node_attr_shape(handle, "shape");
    if (shape)
        infer->outputs[0] = *shape;
    return true;
}

/* Without validation an assignment may change the shape. */
static bool infer_assign(struct infer *infer, struct error *err)
{
    (void)err;
    if (node_attr_bool(infer->node, "validate_shape", true))
        infer->outputs[0] = infer->inputs[1];
    return true;
}

const struct op op_variable_v2 = {
    .name = "VariableV2",
    .inputs = "",
    .outputs = "ref:Ref(dtype)",
    .attrs = "shape:shape dtype:type container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_variable = {
    .name = "Variable",
    .inputs = "",
    .outputs = "ref:Ref(dtype)",
    .attrs = "shape:shape dtype:type container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_assign = {
    .name = "Assign",
    .inputs = "ref:Ref(T) value:T",
    .outputs = "output_ref:Ref(T)",
    .attrs = "T:type validate_shape:bool=true use_locking:bool=true",
    .flags = OP_UNINITIALIZED_OK,
    .infer = infer_assign,
    .no_gradient = true,
};

#define UPDATE(name_)                                                                          \
    {                                                                                          \
        .name = name_, .inputs = "ref:Ref(T) value:T", .outputs = "output_ref:Ref(T)",         \
        .attrs = "T:" OP_NUMBER " use_locking:bool=false", .infer = op_infer_unchanged,        \
        .no_gradient = true,                                                                   \
    }

const struct op op_assign_add = UPDATE("AssignAdd");
const struct op op_assign_sub = UPDATE("AssignSub");

const struct op op_is_variable_initialized = {
    .name = "IsVariableInitialized",
    .inputs = "ref:Ref(dtype)",
    .outputs = "is_initialized:bool",
    .attrs = "dtype:type",
    .flags = OP_UNINITIALIZED_OK,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_count_up_to = {
    .name = "CountUpTo",
    .inputs = "ref:Ref(T)",
    .outputs = "output:T",
    .attrs = "limit:int T:{int32,int64}",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_resource_count_up_to = {
    .name = "ResourceCountUpTo",
    .inputs = "resource:resource",
    .outputs = "output:T",
    .attrs = "limit:int T:{int32,int64}",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_var_handle_op = {
    .name = "VarHandleOp",
    .inputs = "",
    .outputs = "resource:resource",
    .attrs = "container:string='' shared_name:string='' dtype:type shape:shape "
             "allowed_devices:list(string)=[] debug_name:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_read_variable_op = {
    .name = "ReadVariableOp",
    .inputs = "resource:resource",
    .outputs = "value:dtype",
    .attrs = "dtype:type",
    .flags = OP_STATEFUL,
    .infer = infer_read,
    .gradient = op_gradient_pass,
};

const struct op op_assign_variable_op = {
    .name = "AssignVariableOp",
    .inputs = "resource:resource value:dtype",
    .outputs = "",
    .attrs = "dtype:type validate_shape:bool=false",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

#define RESOURCE_UPDATE(name_)                                                                 \
    {                                                                                          \
        .name = name_, .inputs = "resource:resource value:dtype", .outputs = "",               \
        .attrs = "dtype:type", .flags = OP_STATEFUL, .no_gradient = true,                      \
    }

const struct op op_assign_add_variable_op = RESOURCE_UPDATE("AssignAddVariableOp");
const struct op op_assign_sub_variable_op = RESOURCE_UPDATE("AssignSubVariableOp");

const struct op op_var_is_initialized_op = {
    .name = "VarIsInitializedOp",
    .inputs = "resource:resource",
    .outputs = "is_initialized:bool",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_variable_shape = {
    .name = "VariableShape",
    .inputs = "input:resource",
    .outputs = "output:out_type",
    .attrs = "out_type:{int32,int64}=int32",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_disable_copy_on_read = {
    .name = "DisableCopyOnRead",
    .inputs = "resource:resource",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_destroy_resource_op = {
    .name = "DestroyResourceOp",
    .inputs = "resource:resource",
    .outputs = "",
    .attrs = "ignore_lookup_error:bool=true",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_temporary_variable = {
    .name = "TemporaryVariable",
    .inputs = "",
    .outputs = "ref:Ref(dtype)",
    .attrs = "shape:shape dtype:type var_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_destroy_temporary_variable = {
    .name = "DestroyTemporaryVariable",
    .inputs = "ref:Ref(T)",
    .outputs = "value:T",
    .attrs = "T:type var_name:string",
    .no_gradient = true,
};
