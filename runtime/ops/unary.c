/* unary.c - elementwise operations of one operand, and conversion between types. */

#include "runtime/ops/internal.h"

#define UNARY(name_, types_, gradient_)                                                        \
    {                                                                                          \
        .name = name_, .inputs = "x:T", .outputs = "y:T", .attrs = "T:" types_,                \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }
#define STEPS(name_, types_)                                                                   \
    {                                                                                          \
        .name = name_, .inputs = "x:T", .outputs = "y:T", .attrs = "T:" types_,                \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }
#define TEST(name_)                                                                            \
    {                                                                                          \
        .name = name_, .inputs = "x:T", .outputs = "y:bool", .attrs = "T:" OP_FLOAT,           \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }

static bool neg_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call1(g, "Neg", g->of_outputs[0]));
}

static bool conj_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call1(g, "Conj", g->of_outputs[0]));
}

static bool sign_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call1(g, "ZerosLike", gradient_x(g, 0)));
}

/* dy f'(x), with `op` giving f' from x. */
static bool times_op_of_x(struct gradient *g, const char *op)
{
    struct edge slope = op_call1(g, op, op_conjugate(g, gradient_x(g, 0)));
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], slope));
}

static bool abs_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times_op_of_x(g, "Sign");
}

static bool log_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times_op_of_x(g, "Reciprocal");
}

static bool sin_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times_op_of_x(g, "Cos");
}

static bool expm1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times_op_of_x(g, "Exp");
}

static bool cos_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge sine = op_call1(g, "Sin", op_conjugate(g, gradient_x(g, 0)));
    return op_gradient_single(g,
                              op_call2(g, "Mul", g->of_outputs[0], op_call1(g, "Neg", sine)));
}

static bool log1p_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    struct edge slope = op_call1(g, "Reciprocal", op_call2(g, "AddV2", op_number(g, x, 1), x));
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], slope));
}

static bool exp_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge y = op_conjugate(g, gradient_y(g, 0));
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], y));
}

static bool square_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    struct edge twice = op_call2(g, "Mul", x, op_number(g, x, 2));
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], twice));
}

static bool erf_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0);
    struct edge bell = op_call1(g, "Exp", op_call1(g, "Neg", op_call1(g, "Square", x)));
    struct edge scaled = op_call2(g, "Mul", op_number(g, x, 1.1283791670955126), bell);
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], scaled));
}

/* `op` makes the gradient from y (some want it conjugated) and dy. */
static bool by_grad_op(struct gradient *g, const char *op, bool conjugate)
{
    struct edge y = gradient_y(g, 0);
    if (conjugate)
        y = op_conjugate(g, y);
    return op_gradient_single(g, op_call2(g, op, y, g->of_outputs[0]));
}

static bool sqrt_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_grad_op(g, "SqrtGrad", false);
}

static bool rsqrt_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_grad_op(g, "RsqrtGrad", false);
}

static bool reciprocal_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_grad_op(g, "ReciprocalGrad", false);
}

static bool sigmoid_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_grad_op(g, "SigmoidGrad", true);
}

static bool tanh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return by_grad_op(g, "TanhGrad", true);
}

const struct op op_neg = UNARY("Neg", OP_SIGNED, neg_gradient);
const struct op op_conj = {
    .name = "Conj",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{complex64,complex128,variant}=complex64",
    .infer = op_infer_unchanged,
    .gradient = conj_gradient,
};
const struct op op_abs =
    UNARY("Abs", "{bfloat16,half,float,double,int8,int16,int32,int64}", abs_gradient);
const struct op op_sign = UNARY("Sign", OP_SIGNED, sign_gradient);
const struct op op_square =
    UNARY("Square",
          "{bfloat16,half,float,double,int8,int16,int32,int64,uint8,uint16,uint32,uint64,"
          "complex64,complex128}",
          square_gradient);
const struct op op_sqrt = UNARY("Sqrt", OP_FLOAT_COMPLEX, sqrt_gradient);
const struct op op_rsqrt = UNARY("Rsqrt", OP_FLOAT_COMPLEX, rsqrt_gradient);
const struct op op_reciprocal = UNARY("Reciprocal", OP_SIGNED, reciprocal_gradient);
const struct op op_exp = UNARY("Exp", OP_FLOAT_COMPLEX, exp_gradient);
const struct op op_expm1 = UNARY("Expm1", OP_FLOAT_COMPLEX, expm1_gradient);
const struct op op_log = UNARY("Log", OP_FLOAT_COMPLEX, log_gradient);
const struct op op_log1p = UNARY("Log1p", OP_FLOAT_COMPLEX, log1p_gradient);
const struct op op_sigmoid = UNARY("Sigmoid", OP_FLOAT_COMPLEX, sigmoid_gradient);
const struct op op_tanh = UNARY("Tanh", OP_FLOAT_COMPLEX, tanh_gradient);
const struct op op_sin = UNARY("Sin", OP_FLOAT_COMPLEX, sin_gradient);
const struct op op_cos = UNARY("Cos", OP_FLOAT_COMPLEX, cos_gradient);
const struct op op_erf = UNARY("Erf", OP_FLOAT, erf_gradient);
const struct op op_floor = STEPS("Floor", OP_FLOAT);
const struct op op_ceil = STEPS("Ceil", OP_FLOAT);
const struct op op_round = STEPS("Round", OP_SIGNED);
const struct op op_rint = STEPS("Rint", OP_FLOAT);

const struct op op_is_nan = TEST("IsNan");
const struct op op_is_inf = TEST("IsInf");
const struct op op_is_finite = TEST("IsFinite");

const struct op op_logical_not = {
    .name = "LogicalNot",
    .inputs = "x:bool",
    .outputs = "y:bool",
    .attrs = "",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

static bool cast_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    const uint64_t smooth = DTYPES_FLOAT | DTYPES_COMPLEX;
    int from = node_attr_type(g->node, "SrcT");
    if (!(smooth & BIT(from)) || !(smooth & BIT(node_attr_type(g->node, "DstT"))))
        return true;
    return op_gradient_single(
        g, op_call(g, "Cast", INPUTS(g->of_outputs[0]), ATTRS(attr_type("DstT", from))));
}

const struct op op_cast = {
    .name = "Cast",
    .inputs = "x:SrcT",
    .outputs = "y:DstT",
    .attrs = "SrcT:type DstT:type Truncate:bool=false",
    .infer = op_infer_unchanged,
    .gradient = cast_gradient,
};
