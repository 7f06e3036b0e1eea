/* decompose.c - matrices factored, their eigenvalues, functions of matrices, bands. */

#include "runtime/ops/internal.h"

static struct edge product(struct gradient *g, struct edge a, bool adj_a, struct edge b,
                           bool adj_b)
{
    return op_call(g, "BatchMatMulV2", INPUTS(a, b),
                   ATTRS(attr_bool("adj_x", adj_a), attr_bool("adj_y", adj_b)));
}

/* --- shapes --- */

/* The batch of input 0 with one or two dimensions behind it; -1 for `second`: one. */
static void batch_and(struct infer *infer, int output, int dims, int64_t first, int64_t second)
{
    struct shape shape = infer->inputs[0];
    shape.rank -= 2;
    shape.dims[shape.rank++] = first;
    if (dims > 1)
        shape.dims[shape.rank++] = second;
    infer->outputs[output] = shape;
}

/* Rows, columns and the lesser of both of input 0; false where it has no known rank. */
static bool sides(struct infer *infer, int64_t *m, int64_t *n, int64_t *k)
{
    if (infer->inputs[0].rank < 2)
        return false;
    *m = op_infer_dim(infer, 0, -2);
    *n = op_infer_dim(infer, 0, -1);
    *k = *m < 0 || *n < 0 ? -1 : *m < *n ? *m : *n;
    return true;
}

static bool infer_qr(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (!sides(infer, &m, &n, &k))
        return true;
    k = node_attr_bool(infer->node, "full_matrices", false) ? m : k;
    batch_and(infer, 0, 2, m, k);
    batch_and(infer, 1, 2, k, n);
    return true;
}

static bool infer_svd(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (!sides(infer, &m, &n, &k))
        return true;
    bool full = node_attr_bool(infer->node, "full_matrices", false);
    batch_and(infer, 0, 1, k, 0);
    batch_and(infer, 1, 2, m, full ? m : k);
    batch_and(infer, 2, 2, n, full ? n : k);
    if (!node_attr_bool(infer->node, "compute_uv", true))
        infer->outputs[1] = infer->outputs[2] = SHAPE_SCALAR;
    return true;
}

static bool infer_eigen(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (!sides(infer, &m, &n, &k))
        return true;
    batch_and(infer, 0, 1, k < 0 ? (m < 0 ? n : m) : k, 0);
    if (node_attr_bool(infer->node, "compute_v", true))
        infer->outputs[1] = infer->inputs[0];
    else
        infer->outputs[1] = SHAPE_SCALAR;
    return true;
}

/* Values as a first row over the vectors. */
static bool infer_eigen_v1(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (sides(infer, &m, &n, &k))
        batch_and(infer, 0, 2, n < 0 ? -1 : n + 1, n);
    return true;
}

static bool infer_lu(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (!sides(infer, &m, &n, &k))
        return true;
    infer->outputs[0] = infer->inputs[0];
    batch_and(infer, 1, 1, m < 0 ? n : m, 0);
    return true;
}

static bool infer_least(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t m, n, k;
    if (sides(infer, &m, &n, &k))
        batch_and(infer, 0, 2, n, op_infer_dim(infer, 1, -1));
    return true;
}

static bool infer_determinant(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[0].rank >= 2) {
        infer->outputs[0] = infer->inputs[0];
        infer->outputs[0].rank -= 2;
    }
    return true;
}

static bool infer_rhs(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[1];
    return true;
}

/* --- gradients --- */

static struct edge sub(struct gradient *g, struct edge a, struct edge b)
{
    return op_call2(g, "Sub", a, b);
}

static struct edge add(struct gradient *g, struct edge a, struct edge b)
{
    return op_call2(g, "AddV2", a, b);
}

static struct edge mul(struct gradient *g, struct edge a, struct edge b)
{
    return op_call2(g, "Mul", a, b);
}

static struct edge band(struct gradient *g, struct edge x, int lower, int upper)
{
    return op_call3(g, "MatrixBandPart", x, op_int(g, lower), op_int(g, upper));
}

/* The last two dimensions exchanged and conjugated: 1 x* as a product. */
static struct edge adjoint(struct gradient *g, struct edge x)
{
    struct edge rank = op_call1(g, "Rank", x);
    struct edge outer =
        op_call3(g, "Range", op_int(g, 0), sub(g, rank, op_int(g, 2)), op_int(g, 1));
    struct edge last =
        op_call2(g, "Reshape", sub(g, rank, op_int(g, 1)), op_ints(g, (const int64_t[]){1}, 1));
    struct edge before =
        op_call2(g, "Reshape", sub(g, rank, op_int(g, 2)), op_ints(g, (const int64_t[]){1}, 1));
    struct edge order = op_call(g, "ConcatV2", INPUTS(outer, last, before, op_int(g, 0)),
                                ATTRS(attr_int("N", 3)));
    return op_conjugate(g, op_call2(g, "Transpose", x, order));
}

static struct edge spread(struct gradient *g, struct edge x, int axis)
{
    return op_call2(g, "ExpandDims", x, op_int(g, axis));
}

/* 1 / x, and 0 where x is 0. */
static struct edge safe_reciprocal(struct gradient *g, struct edge x)
{
    return op_call2(g, "DivNoNan", op_number(g, x, 1), x);
}

/* a r^-* for an upper triangular r. */
static struct edge over_adjoint(struct gradient *g, struct edge a, struct edge r)
{
    struct edge turned = op_call(g, "MatrixTriangularSolve", INPUTS(r, adjoint(g, a)),
                                 ATTRS(attr_bool("lower", false), attr_bool("adjoint", false)));
    return adjoint(g, turned);
}

/* Of a = q r with r square. */
static struct edge square_qr(struct gradient *g, struct edge q, struct edge r, struct edge dq,
                             struct edge dr)
{
    struct edge qdq = product(g, q, true, dq, false), rdr = product(g, r, false, dr, true);
    struct edge odd_q = sub(g, qdq, adjoint(g, qdq)), odd_r = sub(g, rdr, adjoint(g, rdr));
    struct edge lower = band(g, add(g, odd_q, odd_r), -1, 0);
    struct edge from_r = product(g, q, false, add(g, dr, over_adjoint(g, lower, r)), false);
    struct edge from_q = over_adjoint(g, sub(g, dq, product(g, q, false, qdq, false)), r);
    struct edge whole = add(g, from_r, from_q);
    if (!(DTYPES_COMPLEX & BIT(op_edge_type(q))))
        return whole;
    /* The diagonal of r is real: what would turn it is taken out. */
    struct edge diagonal = op_call1(g, "MatrixDiagPart", sub(g, rdr, adjoint(g, qdq)));
    struct edge half = op_number(g, diagonal, 0.5);
    struct edge turn = mul(g, half, sub(g, diagonal, op_conjugate(g, diagonal)));
    struct edge fix = adjoint(g, op_call1(g, "MatrixDiag", turn));
    return add(g, whole, over_adjoint(g, product(g, q, false, fix, false), r));
}

/* `size` columns of x from `from` on; -1: all that are left. */
static struct edge columns(struct gradient *g, struct edge x, struct edge from,
                           struct edge size)
{
    struct edge rank = op_call1(g, "Rank", x);
    struct edge one = op_ints(g, (const int64_t[]){1}, 1);
    struct edge rest = op_call2(g, "Reshape", sub(g, rank, op_int(g, 1)), one);
    struct edge begin = op_call(g, "ConcatV2",
                                INPUTS(op_call2(g, "Fill", rest, op_int(g, 0)),
                                       op_call2(g, "Reshape", from, one), op_int(g, 0)),
                                ATTRS(attr_int("N", 2)));
    struct edge sizes = op_call(g, "ConcatV2",
                                INPUTS(op_call2(g, "Fill", rest, op_int(g, -1)),
                                       op_call2(g, "Reshape", size, one), op_int(g, 0)),
                                ATTRS(attr_int("N", 2)));
    return op_call3(g, "Slice", x, begin, sizes);
}

/* Number of columns of x. */
static struct edge width_of(struct gradient *g, struct edge x)
{
    struct edge last = sub(g, op_call1(g, "Rank", x), op_int(g, 1));
    return op_call3(g, "GatherV2", op_shape_of(g, x), last, op_int(g, 0));
}

/* Of a wide matrix the columns behind the square do not change q: a = (x, y), r = (u, v). */
static bool qr_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge q = gradient_y(g, 0), r = gradient_y(g, 1), a = gradient_x(g, 0);
    struct edge dq = op_gradient_or_zeros(g, 0), dr = op_gradient_or_zeros(g, 1);
    struct edge size = op_call2(g, "Minimum", width_of(g, q), width_of(g, r));
    struct edge zero = op_int(g, 0), all = op_int(g, -1);
    struct edge y = columns(g, a, size, all), dv = columns(g, dr, size, all);
    struct edge whole_q = add(g, dq, product(g, y, false, dv, true));
    struct edge dx =
        square_qr(g, q, columns(g, r, zero, size), whole_q, columns(g, dr, zero, size));
    return op_gradient_single(
        g, op_call(g, "ConcatV2", INPUTS(dx, product(g, q, false, dv, false), op_int(g, -1)),
                   ATTRS(attr_int("N", 2))));
}

/* With f the reciprocal differences of values: v (diag(de) + f (v* dv)) v*, its lower half. */
static bool self_adjoint_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    bool vectors = node_attr_bool(g->node, "compute_v", true);
    struct edge e = gradient_y(g, 0), v = gradient_y(g, 1), de = op_gradient_or_zeros(g, 0);
    struct edge middle = op_call1(g, "MatrixDiag", de);
    if (!vectors) {
        struct edge again = op_call1(g, "SelfAdjointEigV2", gradient_x(g, 0));
        v = builder_output(again, 1);
    } else if (g->of_outputs[1].from) {
        struct edge f = safe_reciprocal(g, sub(g, spread(g, e, -2), spread(g, e, -1)));
        middle = add(g, middle, mul(g, f, product(g, v, true, g->of_outputs[1], false)));
    }
    struct edge whole = product(g, v, false, product(g, middle, false, v, true), false);
    /* Only the lower triangle is read: it stands for both. */
    struct edge half = band(g, add(g, whole, adjoint(g, whole)), -1, 0);
    struct edge diagonal = op_call1(g, "MatrixDiagPart", half);
    diagonal = mul(g, op_number(g, diagonal, 0.5), diagonal);
    return op_gradient_single(g, op_call2(g, "MatrixSetDiag", half, diagonal));
}

/* A factor of a singular value decomposition, and its gradient. */
struct factor {
    struct edge x, dx;        /* as many columns as there are singular values */
    struct edge rest, d_rest; /* those behind, of full matrices; .from NULL: not asked for */
    struct edge xdx;          /* x* dx */
};

static struct factor factor_of(struct gradient *g, int output)
{
    struct factor f = {.x = gradient_y(g, output), .dx = op_gradient_or_zeros(g, output)};
    if (node_attr_bool(g->node, "full_matrices", false)) {
        struct edge size = width_of(g, gradient_y(g, 0)), all = op_int(g, -1);
        f.rest = columns(g, f.x, size, all);
        f.d_rest = columns(g, f.dx, size, all);
        f.x = columns(g, f.x, op_int(g, 0), size);
        f.dx = columns(g, f.dx, op_int(g, 0), size);
    }
    f.xdx = product(g, f.x, true, f.dx, false);
    return f;
}

/* What of dx lies outside of x, less what turns x and the rest into each other. */
static struct edge outside(struct gradient *g, const struct factor *f)
{
    struct edge off = sub(g, f->dx, product(g, f->x, false, f->xdx, false));
    if (!f->rest.from)
        return off;
    struct edge turn = product(g, f->d_rest, true, f->x, false);
    return sub(g, off, product(g, f->rest, false, turn, false));
}

/*
 * With f the reciprocal differences of squares: u (diag(ds) + (f (u* du - du* u)/2) s + s (f
 * (v* dv - dv* v)/2)) v*, and what is outside of both.
 */
static bool svd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge a = gradient_x(g, 0), ds = op_gradient_or_zeros(g, 0);
    if (!node_attr_bool(g->node, "compute_uv", true)) {
        struct edge again = op_call(g, "Svd", INPUTS(a), ATTRS(attr_bool("compute_uv", true)));
        struct edge u = builder_output(again, 1), v = builder_output(again, 2);
        struct edge left = mul(g, u, spread(g, ds, -2));
        return op_gradient_single(g, product(g, left, false, v, true));
    }
    struct edge s = gradient_y(g, 0);
    struct factor u = factor_of(g, 1), v = factor_of(g, 2);
    struct edge squares = op_call1(g, "Square", s);
    struct edge f = safe_reciprocal(g, sub(g, spread(g, squares, -2), spread(g, squares, -1)));
    struct edge of_u = mul(g, f, sub(g, u.xdx, adjoint(g, u.xdx)));
    struct edge of_v = mul(g, f, sub(g, v.xdx, adjoint(g, v.xdx)));
    struct edge row = spread(g, s, -2), column = spread(g, s, -1);
    struct edge middle =
        add(g, op_call1(g, "MatrixDiag", ds), add(g, mul(g, of_u, row), mul(g, column, of_v)));
    struct edge whole = product(g, u.x, false, product(g, middle, false, v.x, true), false);
    struct edge inverse = safe_reciprocal(g, row);
    whole = add(g, whole, product(g, mul(g, outside(g, &u), inverse), false, v.x, true));
    whole = add(g, whole, product(g, u.x, false, mul(g, outside(g, &v), inverse), true));
    if (!(DTYPES_COMPLEX & BIT(op_edge_type(a))))
        return op_gradient_single(g, whole);
    /* Angles of pairs of vectors: only their difference is determined. */
    struct edge diagonal = op_call1(g, "MatrixDiagPart", v.xdx);
    struct edge turn = sub(g, op_conjugate(g, diagonal), diagonal);
    turn = mul(g, op_number(g, turn, 0.5), mul(g, turn, safe_reciprocal(g, s)));
    struct edge left = mul(g, u.x, spread(g, turn, -2));
    return op_gradient_single(g, add(g, whole, product(g, left, false, v.x, true)));
}

static struct edge least(struct gradient *g, struct edge a, struct edge b)
{
    return op_call3(g, "MatrixSolveLs", a, b, gradient_x(g, 2));
}

/*
 * With p the matrix that gives x = p b: b gets p* dx =: c.  a gets -c x* and, with what is left
 * of b and of dx, a product over l2; where l2 is 0 one of both is nothing, and p tells the
 * rest.
 */
static bool least_gradient(struct gradient *g, struct error *err)
{
    if (!node_attr_bool(g->node, "fast", true))
        return fail(err, INVALID, "Gradient not defined for fast=False");
    struct edge a = gradient_x(g, 0), b = gradient_x(g, 1), x = gradient_y(g, 0);
    struct edge dx = g->of_outputs[0], turned = adjoint(g, a);
    struct edge l2 =
        op_call(g, "Cast", INPUTS(gradient_x(g, 2)), ATTRS(attr_type("DstT", op_edge_type(a))));
    struct edge c = least(g, turned, dx);
    struct edge left_b = sub(g, b, product(g, a, false, x, false));
    struct edge left_dx = sub(g, dx, product(g, turned, false, c, false));
    struct edge with = op_call2(g, "DivNoNan", product(g, left_b, false, left_dx, true), l2);
    struct edge without = add(g, product(g, left_b, false, least(g, a, c), true),
                              product(g, least(g, turned, x), false, left_dx, true));
    struct edge is_zero = op_call2(g, "Equal", l2, op_number(g, l2, 0));
    struct edge rest = op_call3(g, "SelectV2", is_zero, without, with);
    g->of_inputs[0] = sub(g, rest, product(g, c, false, x, true));
    g->of_inputs[1] = c;
    return builder_ok(&g->build);
}

/* v (e + f (v* dv - v* v real(diag(v* dv)))) v^-1, with v* in place of v. */
static bool eig_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), e = gradient_y(g, 0), v = gradient_y(g, 1);
    enum dtype type = op_edge_type(e);
    struct edge middle = op_call1(g, "MatrixDiag", op_gradient_or_zeros(g, 0));
    if (!node_attr_bool(g->node, "compute_v", true)) {
        v = builder_output(op_call(g, "Eig", INPUTS(x), ATTRS(attr_type("Tout", type))), 1);
    } else if (g->of_outputs[1].from) {
        struct edge f = safe_reciprocal(g, sub(g, spread(g, e, -2), spread(g, e, -1)));
        struct edge vdv = product(g, v, true, g->of_outputs[1], false);
        struct edge half = op_number(g, e, 0.5), diagonal = op_call1(g, "MatrixDiagPart", vdv);
        struct edge real = mul(g, half, add(g, diagonal, op_conjugate(g, diagonal)));
        struct edge along = mul(g, product(g, v, true, v, false), spread(g, real, -2));
        middle = add(g, middle, mul(g, op_conjugate(g, f), sub(g, vdv, along)));
    }
    struct edge turned = adjoint(g, v);
    struct edge whole =
        op_call2(g, "MatrixSolve", turned, product(g, middle, false, turned, false));
    if (op_edge_type(x) != type)
        whole = op_call(g, "Cast", INPUTS(whole), ATTRS(attr_type("DstT", op_edge_type(x))));
    return op_gradient_single(g, whole);
}

/* a (.., m, m) and b likewise as (.., m m, m m): every element of a times b. */
static struct edge kronecker(struct gradient *g, struct edge a, struct edge b, struct edge flat)
{
    struct edge whole =
        op_call(g, "Einsum", INPUTS(a, b),
                ATTRS(attr_int("N", 2), attr_string("equation", "...ij,...kl->...ikjl")));
    return op_call2(g, "Reshape", whole, flat);
}

/* With r r = a: r* x + x r* = dy, solved for all elements of x at once. */
static bool root_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge r = gradient_y(g, 0), shape = op_shape_of(g, r), size = width_of(g, r);
    struct edge square = mul(g, size, size), one = op_int(g, 1), zero = op_int(g, 0);
    struct edge outer = op_call(g, "StridedSlice",
                                INPUTS(shape, op_ints(g, (const int64_t[]){0}, 1),
                                       op_ints(g, (const int64_t[]){-2}, 1),
                                       op_ints(g, (const int64_t[]){1}, 1)),
                                NO_ATTRS);
    struct edge both = op_call(g, "Pack", INPUTS(square, square), ATTRS(attr_int("N", 2)));
    struct edge column = op_call(g, "Pack", INPUTS(square, one), ATTRS(attr_int("N", 2)));
    struct edge flat =
        op_call(g, "ConcatV2", INPUTS(outer, both, zero), ATTRS(attr_int("N", 2)));
    struct edge flat_column =
        op_call(g, "ConcatV2", INPUTS(outer, column, zero), ATTRS(attr_int("N", 2)));
    struct edge ones = op_call1(g, "OnesLike", op_call1(g, "MatrixDiagPart", r));
    struct edge identity = op_call1(g, "MatrixDiag", ones), turned = adjoint(g, r);
    /* Of r* x elements (i, j) come from (k, j); of x r* from (i, k). */
    struct edge sum = add(g, kronecker(g, turned, identity, flat),
                          kronecker(g, identity, op_conjugate(g, r), flat));
    struct edge x =
        op_call2(g, "MatrixSolve", sum, op_call2(g, "Reshape", g->of_outputs[0], flat_column));
    return op_gradient_single(g, op_call2(g, "Reshape", x, shape));
}

const struct op op_qr = {
    .name = "Qr",
    .inputs = "input:T",
    .outputs = "q:T r:T",
    .attrs = "full_matrices:bool=false T:{double,float,half,complex64,complex128}",
    .infer = infer_qr,
    .gradient = qr_gradient,
};

const struct op op_svd = {
    .name = "Svd",
    .inputs = "input:T",
    .outputs = "s:T u:T v:T",
    .attrs = "compute_uv:bool=true full_matrices:bool=false "
             "T:{double,float,half,complex64,complex128}",
    .infer = infer_svd,
    .gradient = svd_gradient,
};

const struct op op_batch_svd = {
    .name = "BatchSvd",
    .inputs = "input:T",
    .outputs = "s:T u:T v:T",
    .attrs =
        "compute_uv:bool=true full_matrices:bool=false T:{double,float,complex64,complex128}",
    .infer = infer_svd,
};

const struct op op_self_adjoint_eig = {
    .name = "SelfAdjointEig",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{double,float,half}",
    .infer = infer_eigen_v1,
};

const struct op op_self_adjoint_eig_v2 = {
    .name = "SelfAdjointEigV2",
    .inputs = "input:T",
    .outputs = "e:T v:T",
    .attrs = "compute_v:bool=true T:{double,float,half,complex64,complex128}",
    .infer = infer_eigen,
    .gradient = self_adjoint_gradient,
};

const struct op op_batch_self_adjoint_eig = {
    .name = "BatchSelfAdjointEig",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{double,float}",
    .infer = infer_eigen_v1,
};

const struct op op_batch_self_adjoint_eig_v2 = {
    .name = "BatchSelfAdjointEigV2",
    .inputs = "input:T",
    .outputs = "e:T v:T",
    .attrs = "compute_v:bool=true T:{double,float}",
    .infer = infer_eigen,
};

const struct op op_eig = {
    .name = "Eig",
    .inputs = "input:T",
    .outputs = "e:Tout v:Tout",
    .attrs =
        "compute_v:bool=true T:{float,double,complex64,complex128} Tout:{complex64,complex128}",
    .infer = infer_eigen,
    .gradient = eig_gradient,
};

const struct op op_lu = {
    .name = "Lu",
    .inputs = "input:T",
    .outputs = "lu:T p:output_idx_type",
    .attrs = "T:{double,float,half,complex64,complex128} output_idx_type:{int32,int64}=int32",
    .infer = infer_lu,
};

const struct op op_matrix_exponential = {
    .name = "MatrixExponential",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{double,float,half,complex64,complex128}",
    .infer = op_infer_unchanged,
};

const struct op op_matrix_logarithm = {
    .name = "MatrixLogarithm",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{complex64,complex128}",
    .infer = op_infer_unchanged,
};

const struct op op_matrix_square_root = {
    .name = "MatrixSquareRoot",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{double,float,half,complex64,complex128}",
    .infer = op_infer_unchanged,
    .gradient = root_gradient,
};

const struct op op_matrix_solve_ls = {
    .name = "MatrixSolveLs",
    .inputs = "matrix:T rhs:T l2_regularizer:double",
    .outputs = "output:T",
    .attrs = "T:{double,float,half,complex64,complex128} fast:bool=true",
    .infer = infer_least,
    .gradient = least_gradient,
};

const struct op op_batch_matrix_solve_ls = {
    .name = "BatchMatrixSolveLs",
    .inputs = "matrix:T rhs:T l2_regularizer:double",
    .outputs = "output:T",
    .attrs = "T:{double,float} fast:bool=true",
    .infer = infer_least,
};

const struct op op_cholesky_grad = {
    .name = "CholeskyGrad",
    .inputs = "l:T grad:T",
    .outputs = "output:T",
    .attrs = "T:{half,float,double}",
    .infer = op_infer_unchanged,
};

const struct op op_batch_cholesky = {
    .name = "BatchCholesky",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{double,float}",
    .infer = op_infer_unchanged,
};

const struct op op_batch_cholesky_grad = {
    .name = "BatchCholeskyGrad",
    .inputs = "l:T grad:T",
    .outputs = "output:T",
    .attrs = "T:{float,double}",
    .infer = op_infer_unchanged,
};

const struct op op_batch_matrix_determinant = {
    .name = "BatchMatrixDeterminant",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:{float,double,complex64,complex128}",
    .infer = infer_determinant,
};

const struct op op_batch_matrix_inverse = {
    .name = "BatchMatrixInverse",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "adjoint:bool=false T:{double,float}",
    .infer = op_infer_unchanged,
};

const struct op op_batch_matrix_solve = {
    .name = "BatchMatrixSolve",
    .inputs = "matrix:T rhs:T",
    .outputs = "output:T",
    .attrs = "adjoint:bool=false T:{double,float}",
    .infer = infer_rhs,
};

const struct op op_batch_matrix_triangular_solve = {
    .name = "BatchMatrixTriangularSolve",
    .inputs = "matrix:T rhs:T",
    .outputs = "output:T",
    .attrs = "lower:bool=true adjoint:bool=false T:{double,float}",
    .infer = infer_rhs,
};
