/* special.c - elementwise functions beyond the everyday ones. */

#include "runtime/ops/internal.h"

#define UNARY(name_, types_, gradient_)                                                        \
    {                                                                                          \
        .name = name_, .inputs = "x:T", .outputs = "y:T", .attrs = "T:" types_,                \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }
#define BINARY(name_, inputs_, types_, gradient_)                                              \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "z:T", .attrs = "T:" types_,              \
        .infer = op_infer_broadcast, .gradient = gradient_,                                    \
    }

/* --- inverse and hyperbolic functions --- */

/* 1 - x^2 (times -1 of the square where `sign` is -1), with x conjugated. */
static struct edge one_and_square(struct gradient *g, double sign)
{
    struct edge x = op_conjugate(g, gradient_x(g, 0));
    return op_call2(g, sign < 0 ? "Sub" : "AddV2", op_number(g, x, 1),
                    op_call1(g, "Square", x));
}

static bool times(struct gradient *g, struct edge slope)
{
    return op_gradient_single(g, op_call2(g, "Mul", g->of_outputs[0], slope));
}

static bool acos_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge root = op_call1(g, "Sqrt", one_and_square(g, -1));
    return times(g, op_call1(g, "Neg", op_call1(g, "Reciprocal", root)));
}

static bool asin_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Reciprocal", op_call1(g, "Sqrt", one_and_square(g, -1))));
}

static bool atan_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Reciprocal", one_and_square(g, 1)));
}

static bool atanh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Reciprocal", one_and_square(g, -1)));
}

static bool over(struct gradient *g, const char *op)
{
    struct edge slope = op_call1(g, op, op_conjugate(g, gradient_y(g, 0)));
    return op_gradient_single(g, op_call2(g, "RealDiv", g->of_outputs[0], slope));
}

static bool acosh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return over(g, "Sinh");
}

static bool asinh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return over(g, "Cosh");
}

static bool cosh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Sinh", op_conjugate(g, gradient_x(g, 0))));
}

static bool sinh_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Cosh", op_conjugate(g, gradient_x(g, 0))));
}

static bool tan_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge cosine = op_call1(g, "Cos", op_conjugate(g, gradient_x(g, 0)));
    return times(g, op_call1(g, "Square", op_call1(g, "Reciprocal", cosine)));
}

const struct op op_acos = UNARY("Acos", OP_FLOAT_COMPLEX, acos_gradient);
const struct op op_asin = UNARY("Asin", OP_FLOAT_COMPLEX, asin_gradient);
const struct op op_atan = UNARY("Atan", OP_FLOAT_COMPLEX, atan_gradient);
const struct op op_atanh = UNARY("Atanh", OP_FLOAT_COMPLEX, atanh_gradient);
const struct op op_acosh = UNARY("Acosh", OP_FLOAT_COMPLEX, acosh_gradient);
const struct op op_asinh = UNARY("Asinh", OP_FLOAT_COMPLEX, asinh_gradient);
const struct op op_cosh = UNARY("Cosh", OP_FLOAT_COMPLEX, cosh_gradient);
const struct op op_sinh = UNARY("Sinh", OP_FLOAT_COMPLEX, sinh_gradient);
const struct op op_tan = UNARY("Tan", OP_FLOAT_COMPLEX, tan_gradient);

/* --- the error function's family, and the gamma function's --- */

/* factor * exp(part * v^2) */
static bool bell(struct gradient *g, double factor, double part, struct edge v)
{
    struct edge square = op_call2(g, "Mul", op_number(g, v, part), op_call1(g, "Square", v));
    return times(g, op_call2(g, "Mul", op_number(g, v, factor), op_call1(g, "Exp", square)));
}

static bool erfc_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return bell(g, -1.1283791670955126, -1, gradient_x(g, 0));
}

static bool erfinv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return bell(g, 0.8862269254527580, 1, gradient_y(g, 0));
}

static bool ndtri_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return bell(g, 2.5066282746310002, 0.5, gradient_y(g, 0));
}

static bool lgamma_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times(g, op_call1(g, "Digamma", gradient_x(g, 0)));
}

static bool digamma_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0);
    return times(g, op_call2(g, "Polygamma", op_number(g, x, 1), x));
}

static bool inv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call2(g, "InvGrad", gradient_y(g, 0), g->of_outputs[0]));
}

/* z = -dy y^2 */
static bool inv_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0], y = op_conjugate(g, gradient_x(g, 0));
    struct edge b = op_call2(g, "Mul", op_conjugate(g, dz), gradient_x(g, 1));
    g->of_inputs[0] = op_call2(g, "Mul", op_call2(g, "Mul", op_number(g, b, -2), b), y);
    g->of_inputs[1] = op_call2(g, "InvGrad", y, dz);
    return builder_ok(&g->build);
}

const struct op op_erfc = UNARY("Erfc", OP_FLOAT, erfc_gradient);
const struct op op_erfinv = UNARY("Erfinv", OP_FLOAT, erfinv_gradient);
const struct op op_ndtri = UNARY("Ndtri", OP_FLOAT, ndtri_gradient);
const struct op op_lgamma = UNARY("Lgamma", OP_FLOAT, lgamma_gradient);
const struct op op_digamma = UNARY("Digamma", OP_FLOAT, digamma_gradient);
const struct op op_inv =
    UNARY("Inv", "{bfloat16,half,float,double,int8,int16,int32,int64,complex64,complex128}",
          inv_gradient);
const struct op op_inv_grad = {
    .name = "InvGrad",
    .inputs = "y:T dy:T",
    .outputs = "z:T",
    .attrs = "T:" OP_FLOAT_COMPLEX,
    .infer = op_infer_unchanged,
    .gradient = inv_grad_gradient,
};

/* --- of two operands --- */

static bool atan2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge y = gradient_x(g, 0), x = gradient_x(g, 1);
    struct edge squares =
        op_call2(g, "AddV2", op_call1(g, "Square", x), op_call1(g, "Square", y));
    struct edge share = op_call2(g, "RealDiv", g->of_outputs[0], squares);
    return op_gradient_pair(g, op_call2(g, "Mul", x, share),
                            op_call2(g, "Mul", op_call1(g, "Neg", y), share));
}

/* 1 where x is not 0, in its type. */
static struct edge not_zero(struct gradient *g, struct edge x)
{
    return op_call(g, "Cast", INPUTS(op_call2(g, "NotEqual", x, op_number(g, x, 0))),
                   ATTRS(attr_type("DstT", (int)op_edge_type(x))));
}

static bool xlogy_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0], x = gradient_x(g, 0), y = gradient_x(g, 1);
    return op_gradient_pair(g, op_call2(g, "Mul", op_call2(g, "Xlogy", not_zero(g, x), y), dz),
                            op_call2(g, "Mul", op_call2(g, "Xdivy", x, y), dz));
}

static bool xlog1py_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0], x = gradient_x(g, 0), y = gradient_x(g, 1);
    struct edge more = op_call2(g, "AddV2", y, op_number(g, y, 1));
    return op_gradient_pair(g,
                            op_call2(g, "Mul", op_call2(g, "Xlog1py", not_zero(g, x), y), dz),
                            op_call2(g, "Mul", op_call2(g, "Xdivy", x, more), dz));
}

/* No gradient flows to the first operand: it is a whole number, or nobody knows. */
static bool polygamma_gradient(struct gradient *g, struct error *err)
{
    struct edge n = gradient_x(g, 0), x = gradient_x(g, 1);
    struct edge next = op_call2(g, "Polygamma", op_call2(g, "AddV2", n, op_number(g, n, 1)), x);
    struct edge flow = op_call2(g, "Mul", g->of_outputs[0], next);
    (void)err;
    if (!op_gradient_pair(g, flow, flow))
        return false;
    g->of_inputs[0] = OP_NO_EDGE;
    return true;
}

static bool zeta_gradient(struct gradient *g, struct error *err)
{
    struct edge x = gradient_x(g, 0), q = gradient_x(g, 1);
    struct edge next = op_call2(g, "Zeta", op_call2(g, "AddV2", x, op_number(g, x, 1)), q);
    struct edge slope = op_call2(g, "Mul", op_call1(g, "Neg", x), next);
    struct edge flow = op_call2(g, "Mul", g->of_outputs[0], slope);
    (void)err;
    if (!op_gradient_pair(g, flow, flow))
        return false;
    g->of_inputs[0] = OP_NO_EDGE;
    return true;
}

static bool next_after_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    return op_gradient_pair(g, dz, op_call1(g, "ZerosLike", dz));
}

const struct op op_atan2 = BINARY("Atan2", "y:T x:T", OP_FLOAT, atan2_gradient);
const struct op op_xlogy = BINARY("Xlogy", "x:T y:T", OP_FLOAT_COMPLEX, xlogy_gradient);
const struct op op_xlog1py = BINARY("Xlog1py", "x:T y:T", OP_FLOAT_COMPLEX, xlog1py_gradient);
const struct op op_zeta = BINARY("Zeta", "x:T q:T", "{float,double}", zeta_gradient);
const struct op op_polygamma =
    BINARY("Polygamma", "a:T x:T", "{float,double}", polygamma_gradient);
const struct op op_next_after = {
    .name = "NextAfter",
    .inputs = "x1:T x2:T",
    .outputs = "output:T",
    .attrs = "T:{double,float}=float",
    .infer = op_infer_broadcast,
    .gradient = next_after_gradient,
};
const struct op op_mod =
    BINARY("Mod", "x:T y:T", "{int32,int64,half,bfloat16,float,double}", NULL);

/* --- bits --- */

#define BITS "{int8,int16,int32,int64,uint8,uint16,uint32,uint64}"
#define OF_BITS(name_)                                                                         \
    {                                                                                          \
        .name = name_, .inputs = "x:T y:T", .outputs = "z:T", .attrs = "T:" BITS,              \
        .infer = op_infer_broadcast, .no_gradient = true,                                      \
    }

const struct op op_bitwise_and = OF_BITS("BitwiseAnd");
const struct op op_bitwise_or = OF_BITS("BitwiseOr");
const struct op op_bitwise_xor = OF_BITS("BitwiseXor");
const struct op op_left_shift = OF_BITS("LeftShift");
const struct op op_right_shift = OF_BITS("RightShift");
const struct op op_invert = {
    .name = "Invert",
    .inputs = "x:T",
    .outputs = "y:T",
    .attrs = "T:" BITS,
    .infer = op_infer_unchanged,
    .no_gradient = true,
};
const struct op op_population_count = {
    .name = "PopulationCount",
    .inputs = "x:T",
    .outputs = "y:uint8",
    .attrs = "T:" BITS,
    .infer = op_infer_unchanged,
    .no_gradient = true,
};
const struct op op_approximate_equal = {
    .name = "ApproximateEqual",
    .inputs = "x:T y:T",
    .outputs = "z:bool",
    .attrs = "T:" OP_NUMBER " tolerance:float=0.00001",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

/* --- complex numbers and their parts --- */

#define PARTS "T:{complex64,complex128}=complex64 Tout:{float,double}=float"
#define PART(name_, gradient_)                                                                 \
    {                                                                                          \
        .name = name_, .inputs = "input:T", .outputs = "output:Tout", .attrs = PARTS,          \
        .infer = op_infer_unchanged, .gradient = gradient_,                                    \
    }

/* Complex of the type of input 0. */
static struct edge complex_of(struct gradient *g, struct edge real, struct edge imaginary)
{
    return op_call(g, "Complex", INPUTS(real, imaginary),
                   ATTRS(attr_type("Tout", (int)op_edge_type(gradient_x(g, 0)))));
}

static bool real_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    return op_gradient_single(g, complex_of(g, dy, op_call1(g, "ZerosLike", dy)));
}

static bool imag_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0];
    return op_gradient_single(g, complex_of(g, op_call1(g, "ZerosLike", dy), dy));
}

/* `op` of the complex edge, in the type of the gradient. */
static struct edge part_of(struct gradient *g, const char *op, struct edge x, enum dtype type)
{
    return op_call(g, op, INPUTS(x), ATTRS(attr_type("Tout", (int)type)));
}

static bool angle_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0], x = gradient_x(g, 0);
    enum dtype type = op_edge_type(dy);
    struct edge turned =
        complex_of(g, part_of(g, "Imag", x, type), part_of(g, "Real", x, type));
    struct edge whole = complex_of(g, dy, op_call1(g, "ZerosLike", dy));
    return op_gradient_single(
        g, op_call2(g, "Mul", op_call1(g, "Neg", whole), op_call1(g, "Reciprocal", turned)));
}

static bool complex_abs_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dy = g->of_outputs[0], y = gradient_y(g, 0), x = gradient_x(g, 0);
    struct edge whole = complex_of(g, dy, op_call1(g, "ZerosLike", dy));
    struct edge size = complex_of(g, y, op_call1(g, "ZerosLike", y));
    return op_gradient_single(g, op_call2(g, "DivNoNan", op_call2(g, "Mul", whole, x), size));
}

static bool complex_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge dz = g->of_outputs[0];
    enum dtype type = op_edge_type(gradient_x(g, 0));
    return op_gradient_pair(g, part_of(g, "Real", dz, type), part_of(g, "Imag", dz, type));
}

const struct op op_real = PART("Real", real_gradient);
const struct op op_imag = PART("Imag", imag_gradient);
const struct op op_angle = PART("Angle", angle_gradient);
const struct op op_complex_abs = {
    .name = "ComplexAbs",
    .inputs = "x:T",
    .outputs = "y:Tout",
    .attrs = PARTS,
    .infer = op_infer_unchanged,
    .gradient = complex_abs_gradient,
};
const struct op op_complex = {
    .name = "Complex",
    .inputs = "real:T imag:T",
    .outputs = "out:Tout",
    .attrs = "T:{float,double}=float Tout:{complex64,complex128}=complex64",
    .infer = op_infer_broadcast,
    .gradient = complex_gradient,
};
