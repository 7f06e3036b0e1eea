/* framework.c - constants, placeholders and what only passes values on. */

#include "base/error.h"
#include "runtime/gradient.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

const struct op op_no_op = {.name = "NoOp", .no_gradient = true};

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
    .outputs = "output:dtype",
    .attrs = "value:tensor dtype:type",
    .infer = infer_const,
    .no_gradient = true,
};

static bool gradient_identity(struct gradient *gradient, struct error *err)
{
    (void)err;
    gradient->of_inputs[0] = gradient->of_outputs[0];
    return true;
}

const struct op op_identity = {
    .name = "Identity",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
    .gradient = gradient_identity,
};

static bool infer_placeholder(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *shape = node_attr_shape(infer->node, "shape");
    if (shape)
        infer->outputs[0] = *shape;
    return true;
}

const struct op op_placeholder = {
    .name = "Placeholder",
    .outputs = "output:dtype",
    .attrs = "dtype:type shape:shape=<unk>",
    .infer = infer_placeholder,
    .no_gradient = true,
};
