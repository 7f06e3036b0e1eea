/* framework.c - where values come from, and ops that only pass them on. */

#include "runtime/ops/internal.h"

const struct op op_no_op = {.name = "NoOp", .inputs = "", .outputs = "", .attrs = ""};

const struct op op_control_trigger = {
    .name = "ControlTrigger", .inputs = "", .outputs = "", .attrs = "", .flow = FLOW_TRIGGER};

static bool infer_const(struct infer *infer, struct error *err)
{
    (void)err;
    const struct tensor *value = node_attr_tensor(infer->node, "value");
    if (value)
        infer->outputs[0] = value->shape;
    return true;
}

const struct op op_const = {
    .name = "Const",
    .inputs = "",
    .outputs = "output:dtype",
    .attrs = "value:tensor dtype:type",
    .infer = infer_const,
    .no_gradient = true,
};

const struct op op_placeholder = {
    .name = "Placeholder",
    .inputs = "",
    .outputs = "output:dtype",
    .attrs = "dtype:type shape:shape=<unk>",
    .infer = op_infer_shape_attr,
    .no_gradient = true,
};

const struct op op_placeholder_v2 = {
    .name = "PlaceholderV2",
    .inputs = "",
    .outputs = "output:dtype",
    .attrs = "dtype:type shape:shape",
    .infer = op_infer_shape_attr,
    .no_gradient = true,
};

const struct op op_placeholder_with_default = {
    .name = "PlaceholderWithDefault",
    .inputs = "input:dtype",
    .outputs = "output:dtype",
    .attrs = "dtype:type shape:shape",
    .infer = op_infer_shape_attr,
    .gradient = op_gradient_pass,
};

const struct op op_identity = {
    .name = "Identity",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
    .gradient = op_gradient_pass,
};

static bool infer_identity_n(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[i];
    return true;
}

static bool identity_n_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    for (int i = 0; i < g->node->inputs_count; i++)
        g->of_inputs[i] = g->of_outputs[i];
    return true;
}

const struct op op_identity_n = {
    .name = "IdentityN",
    .inputs = "input:list(T)",
    .outputs = "output:list(T)",
    .attrs = "T:list(type)>=1",
    .infer = infer_identity_n,
    .gradient = identity_n_gradient,
};

const struct op op_stop_gradient = {
    .name = "StopGradient",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

static bool prevent_gradient_gradient(struct gradient *g, struct error *err)
{
    return fail(err, INVALID, "gradient explicitly disabled at node '%s': %s", g->node->name,
                node_attr_string(g->node, "message", ""));
}

const struct op op_prevent_gradient = {
    .name = "PreventGradient",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type message:string=''",
    .infer = op_infer_unchanged,
    .gradient = prevent_gradient_gradient,
};

static bool check_numerics_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, op_call(g, "CheckNumerics", INPUTS(g->of_outputs[0]),
                   ATTRS(attr_string("message", "Not a number (NaN) or infinity (Inf) values "
                                                "detected in gradient."))));
}

const struct op op_check_numerics = {
    .name = "CheckNumerics",
    .inputs = "tensor:T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT " message:string",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
    .gradient = check_numerics_gradient,
};

const struct op op_assert = {
    .name = "Assert",
    .inputs = "condition:bool data:list(T)",
    .outputs = "",
    .attrs = "T:list(type)>=1 summarize:int=3",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
