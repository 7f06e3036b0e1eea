/* math.c - elementwise operations of two operands, which broadcast, and sums of many. */

#include "runtime/ops/internal.h"

#define BINARY(name_, types_, flags_, gradient_)                                               \
    {                                                                                          \
        .name = name_, .inputs = "x:T y:T", .outputs = "z:T", .attrs = "T:" types_,            \
        .flags = flags_, .infer = op_infer_broadcast, .gradient = gradient_,                   \
    }
#define BINARY_NO_GRADIENT(name_, types_)                                                      \
    {                                                                                          \
        .name = name_, .inputs = "x:T y:T", .outputs = "z:T", .attrs = "T:" types_,            \
        .infer = op_infer_broadcast, .no_gradient = true,                                      \
    }

static bool add_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_pair(g, g->of_outputs[0], g->of_outputs[0]);
}

const struct op op_add = BINARY("Add",
                                "{bfloat16,half,float,double,uint8,int8,int16,int32,int64,"
                                "complex64,complex128,string}",
                                0, add_gradient);
const struct op op_add_v2 =
    BINARY("AddV2",
           "{bfloat16,half,float,double,uint8,uint16,uint32,uint64,int8,"
           "int16,int32,int64,complex64,complex128}",
           OP_COMMUTATIVE, add_gradient);

static bool sub_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    return op_gradient_pair(g, dy, op_call1(g, "Neg", dy));
}

const struct op op_sub = BINARY("Sub", OP_ARITHMETIC, 0, sub_gradient);

static bool mul_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    struct edge y = op_conjugate(g, gradient_x(g, 1));
    return op_gradient_pair(g, op_call2(g, "Mul", dy, y), op_call2(g, "Mul", x, dy));
}

const struct op op_mul = BINARY("Mul", OP_ARITHMETIC, OP_COMMUTATIVE, mul_gradient);

static bool mul_no_nan_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    struct edge x = gradient_x(g, 0);
    struct edge y = gradient_x(g, 1);
    return op_gradient_pair(g, op_call2(g, "MulNoNan", dy, y), op_call2(g, "MulNoNan", x, dy));
}

const struct op op_mul_no_nan = BINARY("MulNoNan", OP_FLOAT_COMPLEX, 0, mul_no_nan_gradient);

/* d (x/y) = dx / y - dy * x / y / y, with the very division of the node. */
static bool division_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const char *divide = g->node->op->name;
    struct edge dz = g->of_outputs[0];
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    struct edge y = op_conjugate(g, gradient_x(g, 1));
    struct edge slope = op_call2(g, divide, op_call2(g, divide, op_call1(g, "Neg", x), y), y);
    return op_gradient_pair(g, op_call2(g, divide, dz, y), op_call2(g, "Mul", dz, slope));
}

const struct op op_real_div = BINARY("RealDiv", OP_ARITHMETIC, 0, division_gradient);
const struct op op_div = BINARY("Div", OP_ARITHMETIC, 0, division_gradient);
const struct op op_div_no_nan = BINARY("DivNoNan", OP_FLOAT_COMPLEX, 0, division_gradient);

const struct op op_floor_div = BINARY_NO_GRADIENT("FloorDiv", OP_ARITHMETIC);
const struct op op_truncate_div = BINARY_NO_GRADIENT("TruncateDiv", OP_ARITHMETIC);
const struct op op_truncate_mod =
    BINARY_NO_GRADIENT("TruncateMod", "{int32,int64,bfloat16,half,float,double}");

/* x - floor(x / y) y: linear in x and, between the jumps, in y. */
static bool floor_mod_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge floor = op_call2(g, "FloorDiv", gradient_x(g, 0), gradient_x(g, 1));
    return op_gradient_pair(g, dz, op_call2(g, "Mul", dz, op_call1(g, "Neg", floor)));
}

const struct op op_floor_mod =
    BINARY("FloorMod",
           "{int8,int16,int32,int64,uint8,uint16,uint32,uint64,bfloat16,half,float,double}", 0,
           floor_mod_gradient);

/* The operand that was taken gets the gradient; x where they are equal. */
static bool selection_gradient(struct gradient *g, const char *comparison)
{
    struct edge dz = g->of_outputs[0];
    struct edge zeros = op_call1(g, "ZerosLike", dz);
    struct edge mask = op_call2(g, comparison, gradient_x(g, 0), gradient_x(g, 1));
    return op_gradient_pair(g, op_call3(g, "SelectV2", mask, dz, zeros),
                            op_call3(g, "SelectV2", mask, zeros, dz));
}

static bool maximum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return selection_gradient(g, "GreaterEqual");
}

static bool minimum_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return selection_gradient(g, "LessEqual");
}

const struct op op_maximum = BINARY("Maximum", OP_REAL, 0, maximum_gradient);
const struct op op_minimum = BINARY("Minimum", OP_REAL, 0, minimum_gradient);

static bool squared_difference_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge x = gradient_x(g, 0);
    struct edge y = gradient_x(g, 1);
    struct edge twice = op_call2(g, "Mul", op_number(g, dz, 2), dz);
    struct edge for_x = op_call2(g, "Mul", twice, op_call2(g, "Sub", x, y));
    return op_gradient_pair(g, for_x, op_call1(g, "Neg", for_x));
}

const struct op op_squared_difference =
    BINARY("SquaredDifference", "{bfloat16,half,float,double,int32,int64,complex64,complex128}",
           OP_COMMUTATIVE, squared_difference_gradient);

/* Where x is not positive, x^y has no slope in y: zero in place of the NaN of log x. */
static bool pow_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    struct edge y = op_conjugate(g, gradient_x(g, 1));
    struct edge z = op_conjugate(g, gradient_y(g, 0));
    struct edge lower = op_call2(g, "Pow", x, op_call2(g, "Sub", y, op_number(g, y, 1)));
    struct edge for_x = op_call2(g, "Mul", op_call2(g, "Mul", dz, y), lower);

    bool complex_type = (DTYPES_COMPLEX & BIT(op_edge_type(x))) != 0;
    struct edge mask =
        op_call2(g, complex_type ? "NotEqual" : "Greater", x, op_number(g, x, 0));
    struct edge safe = op_call3(g, "SelectV2", mask, x, op_call1(g, "OnesLike", x));
    struct edge log_x =
        op_call3(g, "SelectV2", mask, op_call1(g, "Log", safe), op_call1(g, "ZerosLike", x));
    struct edge for_y = op_call2(g, "Mul", op_call2(g, "Mul", dz, z), log_x);
    return op_gradient_pair(g, for_x, for_y);
}

const struct op op_pow =
    BINARY("Pow", "{bfloat16,float,half,double,int8,int16,int32,int64,complex64,complex128}", 0,
           pow_gradient);

static bool xdivy_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge x = gradient_x(g, 0);
    struct edge y = gradient_x(g, 1);
    struct edge not_zero = op_call2(g, "NotEqual", x, op_number(g, x, 0));
    struct edge one =
        op_call(g, "Cast", INPUTS(not_zero), ATTRS(attr_type("DstT", (int)op_edge_type(x))));
    struct edge square = op_call1(g, "Square", y);
    struct edge slope_y = op_call2(g, "Xdivy", op_call1(g, "Neg", x), square);
    return op_gradient_pair(g, op_call2(g, "Mul", dz, op_call2(g, "Xdivy", one, y)),
                            op_call2(g, "Mul", dz, slope_y));
}

const struct op op_xdivy = BINARY("Xdivy", OP_FLOAT_COMPLEX, 0, xdivy_gradient);

/* --- gradient helpers: functions of y and dy of one shape --- */

#define OF_Y_AND_DY(name_, gradient_)                                                          \
    {                                                                                          \
        .name = name_, .inputs = "y:T dy:T", .outputs = "z:T", .attrs = "T:" OP_FLOAT_COMPLEX, \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }

/* z = dy y (1 - y) */
static bool sigmoid_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge y = op_conjugate(g, gradient_x(g, 0));
    struct edge b = op_call2(g, "Mul", dz, op_conjugate(g, gradient_x(g, 1)));
    struct edge twice = op_call2(g, "Mul", op_number(g, b, 2), op_call2(g, "Mul", b, y));
    g->of_inputs[0] = op_call2(g, "Sub", b, twice);
    g->of_inputs[1] = op_call2(g, "SigmoidGrad", y, dz);
    return builder_ok(&g->build);
}

/* z = dy (1 - y^2) */
static bool tanh_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge y = op_conjugate(g, gradient_x(g, 0));
    struct edge b = op_call2(g, "Mul", dz, op_conjugate(g, gradient_x(g, 1)));
    g->of_inputs[0] = op_call2(g, "Mul", op_number(g, b, -2), op_call2(g, "Mul", b, y));
    g->of_inputs[1] = op_call2(g, "TanhGrad", y, dz);
    return builder_ok(&g->build);
}

/* z = dy / 2 / y */
static bool sqrt_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge quotient = op_call2(g, "RealDiv", g->of_outputs[0], gradient_x(g, 0));
    g->of_inputs[0] =
        op_call1(g, "Neg", op_call2(g, "Mul", op_conjugate(g, quotient), gradient_y(g, 0)));
    g->of_inputs[1] = op_call2(g, "Mul", op_number(g, quotient, 0.5), quotient);
    return builder_ok(&g->build);
}

/* z = -dy / 2 * y^3 */
static bool rsqrt_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge y = op_conjugate(g, gradient_x(g, 0));
    struct edge b = op_call2(g, "Mul", op_conjugate(g, dz), gradient_x(g, 1));
    g->of_inputs[0] = op_call2(g, "Mul", op_call2(g, "Mul", op_number(g, b, -1.5), b),
                               op_call1(g, "Square", y));
    g->of_inputs[1] = op_call2(g, "RsqrtGrad", y, dz);
    return builder_ok(&g->build);
}

/* z = -dy y^2 */
static bool reciprocal_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    struct edge y = op_conjugate(g, gradient_x(g, 0));
    struct edge b = op_call2(g, "Mul", op_conjugate(g, dz), gradient_x(g, 1));
    g->of_inputs[0] = op_call2(g, "Mul", op_call2(g, "Mul", op_number(g, b, -2), b), y);
    g->of_inputs[1] = op_call2(g, "ReciprocalGrad", y, dz);
    return builder_ok(&g->build);
}

const struct op op_sigmoid_grad = OF_Y_AND_DY("SigmoidGrad", sigmoid_grad_gradient);
const struct op op_tanh_grad = OF_Y_AND_DY("TanhGrad", tanh_grad_gradient);
const struct op op_sqrt_grad = OF_Y_AND_DY("SqrtGrad", sqrt_grad_gradient);
const struct op op_rsqrt_grad = OF_Y_AND_DY("RsqrtGrad", rsqrt_grad_gradient);
const struct op op_reciprocal_grad = OF_Y_AND_DY("ReciprocalGrad", reciprocal_grad_gradient);

/* --- sums of many --- */

static bool infer_add_n(struct infer *infer, struct error *err)
{
    struct shape sum = SHAPE_UNKNOWN;
    for (int i = 0; i < infer->node->inputs_count; i++)
        if (!shape_merge(&sum, &infer->inputs[i], &sum, err))
            return false;
    infer->outputs[0] = sum;
    return true;
}

static bool add_n_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    for (int i = 0; i < g->node->inputs_count; i++)
        g->of_inputs[i] = g->of_outputs[0];
    return true;
}

const struct op op_add_n = {
    .name = "AddN",
    .inputs = "inputs:N*T",
    .outputs = "sum:T",
    .attrs = "N:int>=1 T:{float,double,int32,uint8,int16,int8,complex64,int64,qint8,quint8,"
             "qint32,bfloat16,qint16,quint16,uint16,complex128,half,uint32,uint64,variant}",
    .infer = infer_add_n,
    .gradient = add_n_gradient,
};

const struct op op_accumulate_nv2 = {
    .name = "AccumulateNV2",
    .inputs = "inputs:N*T",
    .outputs = "sum:T",
    .attrs = "N:int>=1 T:" OP_NUMBER " shape:shape",
    .infer = op_infer_shape_attr,
    .gradient = add_n_gradient,
};

/* --- clipping --- */

static bool clip_by_value_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0], x = gradient_x(g, 0);
    struct edge zeros = op_call1(g, "ZerosLike", dy);
    struct edge low = op_call2(g, "Less", x, gradient_x(g, 1));
    struct edge high = op_call2(g, "Greater", x, gradient_x(g, 2));
    struct edge outside = op_call2(g, "LogicalOr", low, high);
    struct edge shape = op_shape_of(g, x);
    g->of_inputs[0] = op_call3(g, "SelectV2", outside, zeros, dy);
    for (int i = 1; i <= 2; i++) {
        struct edge limit_shape = op_shape_of(g, gradient_x(g, i));
        struct edge axes = op_call2(g, "BroadcastGradientArgs", shape, limit_shape);
        struct edge at_limit = op_call3(g, "SelectV2", i == 1 ? low : high, dy, zeros);
        g->of_inputs[i] = op_unbroadcast(g, at_limit, builder_output(axes, 1), limit_shape);
    }
    return builder_ok(&g->build);
}

const struct op op_clip_by_value = {
    .name = "ClipByValue",
    .inputs = "t:T clip_value_min:T clip_value_max:T",
    .outputs = "output:T",
    .attrs = "T:" OP_NUMBER,
    .infer = op_infer_unchanged,
    .gradient = clip_by_value_gradient,
};
