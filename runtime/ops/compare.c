/* compare.c - comparison, logic and selection. */

#include "runtime/ops/internal.h"

#define COMPARE(name_)                                                                         \
    {                                                                                          \
        .name = name_, .inputs = "x:T y:T", .outputs = "z:bool", .attrs = "T:" OP_REAL,        \
        .infer = op_infer_broadcast, .no_gradient = true,                                      \
    }
#define LOGIC(name_)                                                                           \
    {                                                                                          \
        .name = name_, .inputs = "x:bool y:bool", .outputs = "z:bool", .attrs = "",            \
        .flags = OP_COMMUTATIVE, .infer = op_infer_broadcast, .no_gradient = true,             \
    }
#define EQUALITY(name_)                                                                        \
    {                                                                                          \
        .name = name_, .inputs = "x:T y:T", .outputs = "z:bool",                               \
        .attrs = "T:type incompatible_shape_error:bool=true", .flags = OP_COMMUTATIVE,         \
        .infer = infer_equality, .no_gradient = true,                                          \
    }

/* Where shapes that do not broadcast are allowed, they give a scalar. */
static bool infer_equality(struct infer *infer, struct error *err)
{
    if (node_attr_bool(infer->node, "incompatible_shape_error", true))
        return op_infer_broadcast(infer, err);
    return true;
}

const struct op op_equal = EQUALITY("Equal");
const struct op op_not_equal = EQUALITY("NotEqual");
const struct op op_less = COMPARE("Less");
const struct op op_less_equal = COMPARE("LessEqual");
const struct op op_greater = COMPARE("Greater");
const struct op op_greater_equal = COMPARE("GreaterEqual");
const struct op op_logical_and = LOGIC("LogicalAnd");
const struct op op_logical_or = LOGIC("LogicalOr");

static bool infer_select(struct infer *infer, struct error *err)
{
    return shape_merge(&infer->inputs[1], &infer->inputs[2], &infer->outputs[0], err);
}

static bool select_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge zeros = op_call1(g, "ZerosLike", dy);
    g->of_inputs[1] = op_call3(g, "Select", gradient_x(g, 0), dy, zeros);
    g->of_inputs[2] = op_call3(g, "Select", gradient_x(g, 0), zeros, dy);
    return builder_ok(&g->build);
}

/* The condition is of the same shape, a scalar, or a vector that chooses rows. */
const struct op op_select = {
    .name = "Select",
    .inputs = "condition:bool t:T e:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = infer_select,
    .gradient = select_gradient,
};

static bool infer_select_v2(struct infer *infer, struct error *err)
{
    return shape_broadcast(&infer->inputs[1], &infer->inputs[2], &infer->outputs[0], err) &&
           shape_broadcast(&infer->outputs[0], &infer->inputs[0], &infer->outputs[0], err);
}

static bool select_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0], condition = gradient_x(g, 0);
    struct edge zeros = op_call1(g, "ZerosLike", dy);
    struct edge shape = op_shape_of(g, gradient_y(g, 0));
    for (int i = 1; i <= 2; i++) {
        struct edge chosen = i == 1 ? op_call3(g, "SelectV2", condition, dy, zeros)
                                    : op_call3(g, "SelectV2", condition, zeros, dy);
        struct edge own_shape = op_shape_of(g, gradient_x(g, i));
        struct edge axes = op_call2(g, "BroadcastGradientArgs", own_shape, shape);
        g->of_inputs[i] = op_unbroadcast(g, chosen, axes, own_shape);
    }
    return builder_ok(&g->build);
}

const struct op op_select_v2 = {
    .name = "SelectV2",
    .inputs = "condition:bool t:T e:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = infer_select_v2,
    .gradient = select_v2_gradient,
};
