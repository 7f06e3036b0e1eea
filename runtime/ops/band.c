/* band.c - matrices of a few diagonals. */

#include "runtime/ops/internal.h"

static bool infer_rhs(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[infer->node->inputs_count > 3 ? 3 : 1];
    return true;
}

static struct edge product(struct gradient *g, struct edge a, bool adj_a, struct edge b,
                           bool adj_b)
{
    return op_call(g, "BatchMatMulV2", INPUTS(a, b),
                   ATTRS(attr_bool("adj_x", adj_a), attr_bool("adj_y", adj_b)));
}

static struct edge sub(struct gradient *g, struct edge a, struct edge b)
{
    return op_call2(g, "Sub", a, b);
}

static struct edge mul(struct gradient *g, struct edge a, struct edge b)
{
    return op_call2(g, "Mul", a, b);
}

static struct edge spread(struct gradient *g, struct edge x, int axis)
{
    return op_call2(g, "ExpandDims", x, op_int(g, axis));
}

/* Entries of the last dimension of a banded matrix's gradient that its bands stand for. */
static bool banded_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool lower = node_attr_bool(g->node, "lower", true);
    bool adjoint_of = node_attr_bool(g->node, "adjoint", false);
    struct edge a = gradient_x(g, 0), b = gradient_x(g, 1), x = gradient_y(g, 0);
    struct edge db =
        op_call(g, "BandedTriangularSolve", INPUTS(a, g->of_outputs[0]),
                ATTRS(attr_bool("lower", lower), attr_bool("adjoint", !adjoint_of)));
    struct edge da =
        adjoint_of ? product(g, x, false, db, true) : product(g, db, false, x, true);
    struct edge above = sub(g, op_call1(g, "Rank", a), op_int(g, 2));
    struct edge bands = op_call3(g, "GatherV2", op_shape_of(g, a), above, op_int(g, 0));
    struct edge far = sub(g, bands, op_int(g, 1)), zero = op_int(g, 0);
    struct edge k =
        op_call(g, "Pack", INPUTS(lower ? op_call1(g, "Neg", far) : zero, lower ? zero : far),
                ATTRS(attr_int("N", 2)));
    da = op_call(g, "MatrixDiagPartV3", INPUTS(op_call1(g, "Neg", da), k, op_number(g, da, 0)),
                 ATTRS(attr_string("align", "LEFT_RIGHT")));
    struct edge none = op_ints(g, (const int64_t[]){0}, 1),
                two = op_ints(g, (const int64_t[]){-2}, 1),
                one = op_ints(g, (const int64_t[]){1}, 1);
    struct edge shape_a = op_shape_of(g, a), shape_b = op_shape_of(g, b);
    struct edge axes =
        op_call2(g, "BroadcastGradientArgs",
                 op_call(g, "StridedSlice", INPUTS(shape_a, none, two, one), NO_ATTRS),
                 op_call(g, "StridedSlice", INPUTS(shape_b, none, two, one), NO_ATTRS));
    g->of_inputs[0] = op_unbroadcast(g, da, axes, shape_a);
    g->of_inputs[1] = op_unbroadcast(g, db, builder_output(axes, 1), shape_b);
    return builder_ok(&g->build);
}

/* Rows moved by one: from below where `up`, else from above; zeros come in.  `row` (1, n). */
static struct edge moved(struct gradient *g, struct edge x, struct edge row, bool up)
{
    struct edge ones = op_call1(g, "OnesLike", row), zeros = op_call1(g, "ZerosLike", row);
    return op_call(g, "TridiagonalMatMul",
                   INPUTS(up ? ones : zeros, zeros, up ? zeros : ones, x), NO_ATTRS);
}

/* A diagonal (1, n) moved by one. */
static struct edge moved_row(struct gradient *g, struct edge row, bool up)
{
    struct edge squeezed =
        op_call(g, "Squeeze", INPUTS(row),
                ATTRS(attr_int_list("squeeze_dims", (const int64_t[]){-2}, 1)));
    struct edge column = moved(g, spread(g, squeezed, -1), row, up);
    struct edge flat = op_call(g, "Squeeze", INPUTS(column),
                               ATTRS(attr_int_list("squeeze_dims", (const int64_t[]){-1}, 1)));
    return spread(g, flat, -2);
}

/* Sums of products row by row, as a diagonal (1, n). */
static struct edge rows_of(struct gradient *g, struct edge x, struct edge y)
{
    return spread(g, op_call2(g, "Sum", mul(g, x, y), op_int(g, -1)), -2);
}

static bool tridiagonal_solve_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge d = gradient_x(g, 0), x = gradient_y(g, 0);
    struct edge parts =
        op_call(g, "Split", INPUTS(op_int(g, -2), d), ATTRS(attr_int("num_split", 3)));
    struct edge above = parts, main = builder_output(parts, 1),
                below = builder_output(parts, 2);
    struct edge turned = op_call(
        g, "ConcatV2",
        INPUTS(moved_row(g, below, true), main, moved_row(g, above, false), op_int(g, -2)),
        ATTRS(attr_int("N", 3)));
    struct edge db = op_call(
        g, "TridiagonalSolve", INPUTS(turned, g->of_outputs[0]),
        ATTRS(
            attr_bool("partial_pivoting", node_attr_bool(g->node, "partial_pivoting", true)),
            attr_bool("perturb_singular", node_attr_bool(g->node, "perturb_singular", false))));
    struct edge da = op_call(g, "ConcatV2",
                             INPUTS(rows_of(g, db, moved(g, x, main, true)), rows_of(g, db, x),
                                    rows_of(g, db, moved(g, x, main, false)), op_int(g, -2)),
                             ATTRS(attr_int("N", 3)));
    g->of_inputs[0] = op_call1(g, "Neg", da);
    g->of_inputs[1] = db;
    return builder_ok(&g->build);
}

static bool tridiagonal_product_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge above = gradient_x(g, 0), main = gradient_x(g, 1), below = gradient_x(g, 2);
    struct edge x = op_conjugate(g, gradient_x(g, 3)), dy = g->of_outputs[0];
    g->of_inputs[0] = rows_of(g, moved(g, x, main, true), dy);
    g->of_inputs[1] = rows_of(g, x, dy);
    g->of_inputs[2] = rows_of(g, moved(g, x, main, false), dy);
    g->of_inputs[3] =
        op_call(g, "TridiagonalMatMul",
                INPUTS(moved_row(g, op_conjugate(g, below), true), op_conjugate(g, main),
                       moved_row(g, op_conjugate(g, above), false), dy),
                NO_ATTRS);
    return builder_ok(&g->build);
}

const struct op op_banded_triangular_solve = {
    .name = "BandedTriangularSolve",
    .inputs = "matrix:T rhs:T",
    .outputs = "output:T",
    .attrs = "lower:bool=true adjoint:bool=false T:{double,float,half,complex64,complex128}",
    .gradient = banded_gradient,
};

const struct op op_tridiagonal_solve = {
    .name = "TridiagonalSolve",
    .inputs = "diagonals:T rhs:T",
    .outputs = "output:T",
    .attrs = "partial_pivoting:bool=true perturb_singular:bool=false "
             "T:{double,float,complex64,complex128}",
    .infer = infer_rhs,
    .gradient = tridiagonal_solve_gradient,
};

const struct op op_tridiagonal_mat_mul = {
    .name = "TridiagonalMatMul",
    .inputs = "superdiag:T maindiag:T subdiag:T rhs:T",
    .outputs = "output:T",
    .attrs = "T:{double,float,complex64,complex128}",
    .infer = infer_rhs,
    .gradient = tridiagonal_product_gradient,
};
