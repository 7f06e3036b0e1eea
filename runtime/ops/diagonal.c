/* diagonal.c - matrices made of diagonals, diagonals taken from matrices and set in them. */

#include "runtime/ops/internal.h"

/* The range of diagonals in constant input `index`; false when it is not known. */
static bool known_range(const struct infer *infer, int index, int64_t range[2])
{
    int64_t values[LIMIT_TENSOR_RANK];
    int count;
    range[0] = range[1] = 0;
    if (index < 0)
        return true;
    if (!op_infer_values(infer, index, values, &count) || count < 1 || count > 2)
        return false;
    range[0] = values[0];
    range[1] = values[count - 1];
    return range[0] <= range[1];
}

static bool infer_matrix_diag(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    bool first = infer->node->inputs_count == 1;
    int64_t range[2], sizes[2] = {-1, -1};
    if (in->rank < 1 || in->rank == LIMIT_TENSOR_RANK ||
        !known_range(infer, first ? -1 : 1, range))
        return true;
    int rank = range[0] == range[1] ? in->rank + 1 : in->rank;
    if (first)
        sizes[0] = sizes[1] = in->dims[in->rank - 1];
    for (int i = 0; !first && i < 2; i++) {
        int64_t value;
        if (op_infer_value(infer, 2 + i, &value) && value >= 0)
            sizes[i] = value;
    }
    if (rank < 2)
        return true;
    infer->outputs[0] = *in;
    infer->outputs[0].rank = rank;
    infer->outputs[0].dims[rank - 2] = sizes[0];
    infer->outputs[0].dims[rank - 1] = sizes[1];
    return true;
}

static bool infer_matrix_diag_part(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t range[2];
    if (in->rank < 2 || !known_range(infer, infer->node->inputs_count == 1 ? -1 : 1, range))
        return true;
    int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
    struct shape *out = &infer->outputs[0];
    *out = *in;
    out->rank -= 2;
    if (range[0] != range[1])
        out->dims[out->rank++] = range[1] - range[0] + 1;
    int64_t length = -1;
    if (rows >= 0 && columns >= 0) {
        rows += range[1] < 0 ? range[1] : 0;
        columns -= range[0] > 0 ? range[0] : 0;
        length = rows < columns ? rows : columns;
    }
    out->dims[out->rank++] = length < 0 ? -1 : length;
    return true;
}

/* `op` in the version of the node being differentiated, with its alignment. */
static struct edge same_version(struct gradient *g, const char *op, const struct edge *inputs,
                                int inputs_count)
{
    const char *name = g->node->op->name;
    const char *version = name + strlen(name) - 2;
    const struct attr *align = node_attr(g->node, "align");
    char full[32];
    snprintf(full, sizeof(full), "%s%s", op, version[0] == 'V' ? version : "");
    return op_call(g, full, inputs, inputs_count, align, align ? 1 : 0);
}

static struct edge diagonals_of(struct gradient *g, struct edge x, int range)
{
    return range < 0 ? same_version(g, "MatrixDiagPart", INPUTS(x))
                     : same_version(g, "MatrixDiagPart",
                                    INPUTS(x, gradient_x(g, range), op_number(g, x, 0)));
}

static struct edge with_diagonals(struct gradient *g, struct edge x, struct edge diagonal,
                                  int range)
{
    return range < 0
               ? same_version(g, "MatrixSetDiag", INPUTS(x, diagonal))
               : same_version(g, "MatrixSetDiag", INPUTS(x, diagonal, gradient_x(g, range)));
}

static bool matrix_diag_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(
        g, diagonals_of(g, g->of_outputs[0], g->node->inputs_count == 1 ? -1 : 1));
}

static bool matrix_diag_part_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge zeros = op_call1(g, "ZerosLike", gradient_x(g, 0));
    return op_gradient_single(
        g, with_diagonals(g, zeros, g->of_outputs[0], g->node->inputs_count == 1 ? -1 : 1));
}

static bool matrix_set_diag_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int range = g->node->inputs_count == 2 ? -1 : 2;
    struct edge dy = g->of_outputs[0];
    struct edge zeros = op_call1(g, "ZerosLike", gradient_x(g, 1));
    g->of_inputs[0] = with_diagonals(g, dy, zeros, range);
    g->of_inputs[1] = diagonals_of(g, dy, range);
    return builder_ok(&g->build);
}

#define ALIGN " align:{'LEFT_RIGHT','RIGHT_LEFT','LEFT_LEFT','RIGHT_RIGHT'}='RIGHT_LEFT'"
#define MATRIX_DIAG(name_, inputs_, attrs_)                                                    \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "output:T", .attrs = attrs_,              \
        .infer = infer_matrix_diag, .gradient = matrix_diag_gradient,                          \
    }
#define MATRIX_DIAG_PART(name_, inputs_, attrs_)                                               \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "diagonal:T", .attrs = attrs_,            \
        .infer = infer_matrix_diag_part, .gradient = matrix_diag_part_gradient,                \
    }
#define MATRIX_SET_DIAG(name_, inputs_, attrs_)                                                \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "output:T", .attrs = attrs_,              \
        .infer = op_infer_unchanged, .gradient = matrix_set_diag_gradient,                     \
    }
#define MATRIX_DIAG_INPUTS "diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T"

const struct op op_matrix_diag = MATRIX_DIAG("MatrixDiag", "diagonal:T", "T:type");
const struct op op_matrix_diag_v2 = MATRIX_DIAG("MatrixDiagV2", MATRIX_DIAG_INPUTS, "T:type");
const struct op op_matrix_diag_v3 =
    MATRIX_DIAG("MatrixDiagV3", MATRIX_DIAG_INPUTS, "T:type" ALIGN);
const struct op op_matrix_diag_part = MATRIX_DIAG_PART("MatrixDiagPart", "input:T", "T:type");
const struct op op_matrix_diag_part_v2 =
    MATRIX_DIAG_PART("MatrixDiagPartV2", "input:T k:int32 padding_value:T", "T:type");
const struct op op_matrix_diag_part_v3 =
    MATRIX_DIAG_PART("MatrixDiagPartV3", "input:T k:int32 padding_value:T", "T:type" ALIGN);
const struct op op_matrix_set_diag =
    MATRIX_SET_DIAG("MatrixSetDiag", "input:T diagonal:T", "T:type");
const struct op op_matrix_set_diag_v2 =
    MATRIX_SET_DIAG("MatrixSetDiagV2", "input:T diagonal:T k:int32", "T:type");
const struct op op_matrix_set_diag_v3 =
    MATRIX_SET_DIAG("MatrixSetDiagV3", "input:T diagonal:T k:int32", "T:type" ALIGN);

/* --- tensors of rank 2n with the elements of one of rank n on the diagonal --- */

static bool infer_diag(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    if (in->rank < 1 || 2 * in->rank > LIMIT_TENSOR_RANK)
        return true;
    op_infer_rank(infer, 0, 2 * in->rank);
    for (int d = 0; d < 2 * in->rank; d++)
        infer->outputs[0].dims[d] = in->dims[d % in->rank];
    return true;
}

static bool infer_diag_part(struct infer *infer, struct error *err)
{
    const struct shape *in = &infer->inputs[0];
    if (in->rank < 2 || in->rank % 2 != 0)
        return true;
    struct shape first = *in, second = {.rank = in->rank / 2};
    first.rank /= 2;
    memcpy(second.dims, in->dims + first.rank, (size_t)first.rank * sizeof(int64_t));
    return shape_merge(&first, &second, &infer->outputs[0], err);
}

static bool diag_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call1(g, "DiagPart", g->of_outputs[0]));
}

static bool diag_part_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, op_call1(g, "Diag", g->of_outputs[0]));
}

#define DIAG_TYPES "T:{bfloat16,half,float,double,int32,int64,complex64,complex128}"

const struct op op_diag = {
    .name = "Diag",
    .inputs = "diagonal:T",
    .outputs = "output:T",
    .attrs = DIAG_TYPES,
    .infer = infer_diag,
    .gradient = diag_gradient,
};

const struct op op_diag_part = {
    .name = "DiagPart",
    .inputs = "input:T",
    .outputs = "diagonal:T",
    .attrs = DIAG_TYPES,
    .infer = infer_diag_part,
    .gradient = diag_part_gradient,
};
