/* linear.c - matrices factored, inverted and solved, in batches. */

#include "runtime/ops/internal.h"

#define LINEAR_TYPES "{double,float,half,complex64,complex128}"

static struct edge product(struct gradient *g, struct edge a, bool adj_a, struct edge b,
                           bool adj_b)
{
    return op_call(g, "BatchMatMulV2", INPUTS(a, b),
                   ATTRS(attr_bool("adj_x", adj_a), attr_bool("adj_y", adj_b)));
}

static bool adjoint_of(const struct gradient *g)
{
    return node_attr_bool(g->node, "adjoint", false);
}

static struct edge inverse(struct gradient *g, struct edge a, bool adjoint)
{
    return op_call(g, "MatrixInverse", INPUTS(a), ATTRS(attr_bool("adjoint", adjoint)));
}

static bool matrix_inverse_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge y = gradient_y(g, 0);
    bool adjoint = adjoint_of(g);
    struct edge inner = product(g, g->of_outputs[0], adjoint, y, !adjoint);
    return op_gradient_single(g, op_call1(g, "Neg", product(g, y, !adjoint, inner, false)));
}

/* `factors`, one for each matrix, times the inverse's adjoint. */
static bool times_inverse(struct gradient *g, struct edge factors)
{
    struct edge shape = op_call(
        g, "ConcatV2",
        INPUTS(op_shape_of(g, factors), op_ints(g, (const int64_t[]){1, 1}, 2), op_int(g, 0)),
        ATTRS(attr_int("N", 2)));
    return op_gradient_single(g, op_call2(g, "Mul", op_call2(g, "Reshape", factors, shape),
                                          inverse(g, gradient_x(g, 0), true)));
}

static bool determinant_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return times_inverse(g, op_call2(g, "Mul", g->of_outputs[0], gradient_y(g, 0)));
}

static bool log_determinant_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return !g->of_outputs[1].from || times_inverse(g, g->of_outputs[1]);
}

static bool matrix_solve_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool adjoint = adjoint_of(g);
    struct edge x = gradient_y(g, 0);
    struct edge db = op_call(g, "MatrixSolve", INPUTS(gradient_x(g, 0), g->of_outputs[0]),
                             ATTRS(attr_bool("adjoint", !adjoint)));
    struct edge da = adjoint ? product(g, x, false, db, true) : product(g, db, false, x, true);
    g->of_inputs[0] = op_call1(g, "Neg", da);
    g->of_inputs[1] = db;
    return builder_ok(&g->build);
}

/* All but the last two dimensions of a shape. */
static struct edge batch_part(struct gradient *g, struct edge shape)
{
    return op_call(g, "StridedSlice",
                   INPUTS(shape, op_ints(g, (const int64_t[]){0}, 1),
                          op_ints(g, (const int64_t[]){-2}, 1),
                          op_ints(g, (const int64_t[]){1}, 1)),
                   NO_ATTRS);
}

static bool triangular_solve_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool adjoint = adjoint_of(g), lower = node_attr_bool(g->node, "lower", true);
    struct edge a = gradient_x(g, 0), b = gradient_x(g, 1), x = gradient_y(g, 0);
    struct edge db = op_call(g, "MatrixTriangularSolve", INPUTS(a, g->of_outputs[0]),
                             ATTRS(attr_bool("lower", lower), attr_bool("adjoint", !adjoint)));
    struct edge da = adjoint ? product(g, x, false, db, true) : product(g, db, false, x, true);
    da = op_call3(g, "MatrixBandPart", op_call1(g, "Neg", da), op_int(g, lower ? -1 : 0),
                  op_int(g, lower ? 0 : -1));
    struct edge shape_a = op_shape_of(g, a), shape_b = op_shape_of(g, b);
    struct edge axes =
        op_call2(g, "BroadcastGradientArgs", batch_part(g, shape_a), batch_part(g, shape_b));
    g->of_inputs[0] = op_unbroadcast(g, da, axes, shape_a);
    g->of_inputs[1] = op_unbroadcast(g, db, builder_output(axes, 1), shape_b);
    return builder_ok(&g->build);
}

/* With m the lower triangle of l* dl, half of its diagonal: half of l^-* (m + m*) l^-1. */
static bool cholesky_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge l = gradient_y(g, 0), back = inverse(g, l, false);
    struct edge middle = product(g, l, true, g->of_outputs[0], false);
    struct edge diagonal = op_call1(g, "MatrixDiagPart", middle);
    middle = op_call2(g, "MatrixSetDiag", middle,
                      op_call2(g, "Mul", op_number(g, diagonal, 0.5), diagonal));
    middle = op_call3(g, "MatrixBandPart", middle, op_int(g, -1), op_int(g, 0));
    struct edge one = product(g, product(g, back, true, middle, false), false, back, false);
    struct edge other = product(g, product(g, back, true, middle, true), false, back, false);
    struct edge sum = op_call2(g, "AddV2", one, other);
    return op_gradient_single(g, op_call2(g, "Mul", op_number(g, sum, 0.5), sum));
}

static bool infer_determinant(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank < 2)
        return true;
    for (int i = 0; i < infer->node->outputs_count; i++) {
        infer->outputs[i] = infer->inputs[0];
        infer->outputs[i].rank -= 2;
    }
    return true;
}

static bool infer_rhs(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

const struct op op_matrix_inverse = {
    .name = "MatrixInverse",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "adjoint:bool=false T:" LINEAR_TYPES,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_unchanged,
    .gradient = matrix_inverse_gradient,
};

const struct op op_matrix_determinant = {
    .name = "MatrixDeterminant",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{half,float,double,complex64,complex128}",
    .flags = OP_EXPENSIVE,
    .infer = infer_determinant,
    .gradient = determinant_gradient,
};

const struct op op_log_matrix_determinant = {
    .name = "LogMatrixDeterminant",
    .inputs = "input:T",
    .outputs = "sign:T log_abs_determinant:T",
    .attrs = "T:{half,float,double,complex64,complex128}",
    .flags = OP_EXPENSIVE,
    .infer = infer_determinant,
    .gradient = log_determinant_gradient,
};

const struct op op_matrix_solve = {
    .name = "MatrixSolve",
    .inputs = "matrix:T rhs:T",
    .outputs = "output:T",
    .attrs = "adjoint:bool=false T:" LINEAR_TYPES,
    .flags = OP_EXPENSIVE,
    .infer = infer_rhs,
    .gradient = matrix_solve_gradient,
};

const struct op op_matrix_triangular_solve = {
    .name = "MatrixTriangularSolve",
    .inputs = "matrix:T rhs:T",
    .outputs = "output:T",
    .attrs = "lower:bool=true adjoint:bool=false "
             "T:{bfloat16,double,float,half,complex64,complex128}",
    .flags = OP_EXPENSIVE,
    .gradient = triangular_solve_gradient,
};

const struct op op_cholesky = {
    .name = "Cholesky",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:" LINEAR_TYPES,
    .flags = OP_EXPENSIVE,
    .infer = op_infer_unchanged,
    .gradient = cholesky_gradient,
};
