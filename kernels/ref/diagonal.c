/* diagonal.c - matrices made of diagonals, diagonals taken from matrices and set in them. */

#include "kernels/ref/numbers.h"

/*
 * Diagonals [lower, upper] of matrices (rows, columns); 0 is the main one, those above count
 * up.  As a tensor, a diagonal is a row of `length` elements, the topmost first; shorter ones
 * stand at the left or the right end of their row.
 */
struct band {
    int64_t lower, upper, rows, columns, length;
    bool left_above, left_below;
};

static int64_t diagonal_length(const struct band *b, int64_t k)
{
    int64_t rows = b->rows + (k < 0 ? k : 0), columns = b->columns - (k > 0 ? k : 0);
    return rows < columns ? rows : columns;
}

/* Where in the rows of diagonals element (row, column) of the matrix stands; -1: in none. */
static int64_t place_in_band(const struct band *b, int64_t row, int64_t column)
{
    int64_t k = column - row;
    if (k < b->lower || k > b->upper)
        return -1;
    bool left = (k >= 0 && b->left_above) || (k <= 0 && b->left_below);
    int64_t shift = left ? 0 : b->length - diagonal_length(b, k);
    int64_t along = row < column ? row : column;
    return (b->upper - k) * b->length + shift + along;
}

/* Input `index` as one or two numbers of diagonals, in any order. */
static bool read_range(const struct kernel_call *call, int index, struct band *b,
                       struct error *err)
{
    const struct tensor *k = kernel_in(call, index);
    char text[SHAPE_TEXT_BYTES];
    if (k->shape.rank > 1)
        return fail(err, INVALID, "diag_index must be a scalar or vector, received shape: %s",
                    shape_text(&k->shape, text, sizeof(text)));
    if (k->count < 1)
        return fail(err, INVALID, "Expected diag_index to have at least 1 element");
    if (k->count > 2)
        return fail(err, INVALID,
                    "diag_index must have only one or two elements, received %lld elements.",
                    (long long)k->count);
    b->lower = tensor_integer(k, 0);
    b->upper = tensor_integer(k, k->count - 1);
    return true;
}

static bool check_range(const struct band *b, struct error *err)
{
    return b->lower <= b->upper ||
           fail(err, INVALID,
                "lower_diag_index must not be larger than upper_diag_index: %lld > %lld",
                (long long)b->lower, (long long)b->upper);
}

/* Version 3 has the attribute; before, all stood left. */
static void read_align(const struct node *node, struct band *b)
{
    const char *align = node_attr_string(node, "align", "LEFT_LEFT");
    b->left_above = strncmp(align, "LEFT_", 5) == 0;
    b->left_below = strcmp(align + strlen(align) - 5, "_LEFT") == 0;
}

static void measure_length(struct band *b)
{
    int64_t rows = b->rows + (b->upper < 0 ? b->upper : 0);
    int64_t columns = b->columns - (b->lower > 0 ? b->lower : 0);
    b->length = rows < columns ? rows : columns;
}

/* The band in matrices of known size: the diagonals must lie in them. */
static bool measure_band(struct band *b, bool is_part, struct error *err)
{
    int64_t ends[2] = {b->lower, b->upper};
    for (int i = 0; i < 2; i++)
        if (!((ends[i] > -b->rows && ends[i] < b->columns) || ends[i] == 0))
            return fail(err, INVALID,
                        "%s_diag_index is out of bound: %lld%s It must be between %lld and "
                        "%lld",
                        i ? "upper" : "lower", (long long)ends[i], is_part && !i ? "." : "",
                        (long long)-b->rows, (long long)b->columns);
    if (!check_range(b, err))
        return false;
    measure_length(b);
    return true;
}

static bool is_first_version(const struct node *node)
{
    return node->op->name[strlen(node->op->name) - 2] != 'V';
}

/* --- diagonals become matrices --- */

/* Sizes of -1 are the least that hold the diagonals; both: a square. */
static bool choose_size(struct band *b, int64_t rows, int64_t columns, struct error *err)
{
    int64_t least_rows = b->length - (b->upper < 0 ? b->upper : 0);
    int64_t least_columns = b->length + (b->lower > 0 ? b->lower : 0);
    int64_t square = least_rows > least_columns ? least_rows : least_columns;
    b->rows = rows != -1 ? rows : (columns == -1 ? square : least_rows);
    b->columns = columns != -1 ? columns : (rows == -1 ? square : least_columns);
    if (b->rows < least_rows)
        return fail(err, INVALID, "The number of rows is too small.");
    if (b->columns < least_columns)
        return fail(err, INVALID, "The number of columns is too small.");
    if (b->rows != least_rows && b->columns != least_columns)
        return fail(err, INVALID,
                    "The number of rows or columns is not consistent with the specified "
                    "d_lower, d_upper, and diagonal.");
    return true;
}

static bool size_matrix(const struct kernel_call *call, struct band *b, struct error *err)
{
    const struct shape *diagonal = &kernel_in(call, 0)->shape;
    int64_t count = b->upper - b->lower + 1;
    if (is_first_version(call->node)) {
        b->rows = b->columns = b->length;
        return true;
    }
    if (!check_range(b, err))
        return false;
    if (count > 1 && (diagonal->rank < 2 || diagonal->dims[diagonal->rank - 2] != count))
        return fail(err, INVALID,
                    "The number of diagonals provided in the input does not match the "
                    "lower_diag_index and upper_diag_index range.");
    return choose_size(b, tensor_integer(kernel_in(call, 2), 0),
                       tensor_integer(kernel_in(call, 3), 0), err);
}

/* The inputs behind the diagonals, if there are any. */
static bool read_size(const struct kernel_call *call, struct band *b, struct error *err)
{
    static const char *const scalars[] = {"num_rows", "num_cols", "padding_value"};
    if (is_first_version(call->node))
        return true;
    if (!read_range(call, 1, b, err))
        return false;
    for (int i = 0; i < 3; i++)
        if (kernel_in(call, 2 + i)->shape.rank != 0)
            return fail(err, INVALID, "%s must be a scalar", scalars[i]);
    return true;
}

static bool matrix_diag_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *diagonal = kernel_in(call, 0);
    struct band b = {0};
    int rank = diagonal->shape.rank;
    if (!read_size(call, &b, err))
        return false;
    if (rank < 1)
        return fail(err, INVALID, "diagonal must be at least 1-dim, received shape: []");
    b.length = diagonal->shape.dims[rank - 1];
    read_align(call->node, &b);
    if (!size_matrix(call, &b, err))
        return false;
    measure_length(&b);
    struct shape shape = diagonal->shape;
    shape.rank = b.lower == b.upper ? rank + 1 : rank;
    if (shape.rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "too many dimensions");
    shape.dims[shape.rank - 2] = b.rows;
    shape.dims[shape.rank - 1] = b.columns;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t size = b.rows * b.columns, band_size = (b.upper - b.lower + 1) * b.length;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at = place_in_band(&b, i % size / b.columns, i % b.columns);
        if (at >= 0)
            kernel_copy(out, i, diagonal, i / size * band_size + at, 1);
        else if (call->in_count > 4)
            kernel_copy(out, i, kernel_in(call, 4), 0, 1);
        else
            kernel_zero(out, i, 1);
    }
    return true;
}

/* --- matrices give diagonals, take diagonals --- */

/*
 * The band of the matrices in input 0; the range is in input `k`, if there is one.  What is
 * taken from them may have a scalar for padding, what is set in them (input 1) is a vector or
 * more.
 */
static bool band_of_input(const struct kernel_call *call, int k, struct band *b,
                          struct error *err)
{
    const struct shape *in = &kernel_in(call, 0)->shape;
    bool is_part = k == 1;
    char text[SHAPE_TEXT_BYTES];
    *b = (struct band){0};
    if (!is_first_version(call->node) && !read_range(call, k, b, err))
        return false;
    if (is_part && call->in_count > 2 && kernel_in(call, 2)->count != 1)
        return fail(err, INVALID, "Padding must be scalar.");
    if (in->rank < 2)
        return fail(err, INVALID, "input must be at least 2-dim, received shape: %s",
                    shape_text(in, text, sizeof(text)));
    b->rows = in->dims[in->rank - 2];
    b->columns = in->dims[in->rank - 1];
    read_align(call->node, b);
    if (!is_part && kernel_in(call, 1)->shape.rank < 1)
        return fail(err, INVALID, "diagonal must be at least 1-dim, received shape: []");
    return measure_band(b, is_part, err);
}

/* The shape of the diagonals of matrices of shape `in`. */
static struct shape band_shape(const struct band *b, const struct shape *in)
{
    struct shape shape = *in;
    shape.rank -= 2;
    if (b->lower != b->upper)
        shape.dims[shape.rank++] = b->upper - b->lower + 1;
    shape.dims[shape.rank++] = b->length;
    return shape;
}

static bool matrix_diag_part_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct band b;
    if (!band_of_input(call, 1, &b, err))
        return false;
    struct shape shape = band_shape(&b, &in->shape);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; call->in_count > 2 && i < out->count; i++)
        kernel_copy(out, i, kernel_in(call, 2), 0, 1);
    int64_t size = b.rows * b.columns, band_size = (b.upper - b.lower + 1) * b.length;
    for (int64_t i = 0; i < in->count; i++) {
        int64_t at = place_in_band(&b, i % size / b.columns, i % b.columns);
        if (at >= 0)
            kernel_copy(out, i / size * band_size + at, in, i, 1);
    }
    return true;
}

static bool matrix_set_diag_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *diagonal = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES], d[SHAPE_TEXT_BYTES];
    struct band b;
    if (!band_of_input(call, 2, &b, err))
        return false;
    struct shape shape = band_shape(&b, &in->shape);
    int rank = diagonal->shape.rank, wanted = in->shape.rank - 1;
    if (b.lower != b.upper && rank < wanted)
        return fail(err, INVALID,
                    "Diagonal tensor rank must be large enough to contain a diagonal-count "
                    "dimension. Input rank: %d, Expected diagonal rank >= %d, Received "
                    "diagonal rank: %d",
                    in->shape.rank, wanted, rank);
    if (b.lower != b.upper && diagonal->shape.dims[wanted - 1] != b.upper - b.lower + 1)
        return fail(err, INVALID,
                    "The number of diagonals provided in `diag` is not consistent with "
                    "`lower_diag_index` and `upper_diag_index`");
    if (!shape_equal(&shape, &diagonal->shape))
        return fail(err, INVALID,
                    "Either first dimensions of diagonal don't match input.shape[:-2], or "
                    "diagonal.shape[:-1] is not equal to the longests diagonal in range "
                    "[lower_diag_index:upper_diag_index].\nInput shape: %s\nDiagonal shape: "
                    "%s\nExpected diagonal shape: %s",
                    shape_text(&in->shape, a, sizeof(a)),
                    shape_text(&diagonal->shape, c, sizeof(c)),
                    shape_text(&shape, d, sizeof(d)));
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    int64_t size = b.rows * b.columns, band_size = (b.upper - b.lower + 1) * b.length;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t at = place_in_band(&b, i % size / b.columns, i % b.columns);
        if (at >= 0)
            kernel_copy(out, i, diagonal, i / size * band_size + at, 1);
        else
            kernel_copy(out, i, in, i, 1);
    }
    return true;
}

/* --- tensors of rank 2n with the elements of one of rank n on the diagonal --- */

static bool diag_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    if (rank < 1 || 2 * rank > LIMIT_TENSOR_RANK)
        return fail(err, INVALID, "Input must be at least rank 1, got 0");
    struct shape shape = {.rank = 2 * rank};
    for (int d = 0; d < 2 * rank; d++)
        shape.dims[d] = in->shape.dims[d % rank];
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    for (int64_t i = 0; i < in->count; i++)
        kernel_copy(out, i * (in->count + 1), in, i, 1);
    return true;
}

static bool diag_part_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank / 2;
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank == 0 || in->shape.rank % 2 != 0)
        return fail(err, INVALID,
                    "The rank of the tensor should be                                          "
                    "even and positive, got shape %s",
                    shape_text(&in->shape, text, sizeof(text)));
    struct shape shape = in->shape;
    shape.rank = rank;
    for (int d = 0; d < rank; d++)
        if (in->shape.dims[d] != in->shape.dims[rank + d])
            return fail(err, INVALID, "Invalid shape %s: dimensions %d and %d do not match.",
                        shape_text(&in->shape, text, sizeof(text)), d, rank + d);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    for (int64_t i = 0; i < out->count; i++)
        kernel_copy(out, i, in, i * (out->count + 1), 1);
    return true;
}

#define DIAGONAL(name_, dtypes_, run_)                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }
#define MATRIX_TYPES (DTYPES_PLAIN | BIT(STRING))
#define DIAG_TYPES (BIT(F32) | BIT(F64) | BIT(I32) | BIT(I64) | DTYPES_COMPLEX | BIT(F16))

const struct kernel kernel_matrix_diag_ref =
    DIAGONAL("MatrixDiag", MATRIX_TYPES, matrix_diag_run);
const struct kernel kernel_matrix_diag_v2_ref =
    DIAGONAL("MatrixDiagV2", MATRIX_TYPES, matrix_diag_run);
const struct kernel kernel_matrix_diag_v3_ref =
    DIAGONAL("MatrixDiagV3", MATRIX_TYPES, matrix_diag_run);
const struct kernel kernel_matrix_diag_part_ref =
    DIAGONAL("MatrixDiagPart", MATRIX_TYPES, matrix_diag_part_run);
const struct kernel kernel_matrix_diag_part_v2_ref =
    DIAGONAL("MatrixDiagPartV2", MATRIX_TYPES, matrix_diag_part_run);
const struct kernel kernel_matrix_diag_part_v3_ref =
    DIAGONAL("MatrixDiagPartV3", MATRIX_TYPES, matrix_diag_part_run);
const struct kernel kernel_matrix_set_diag_ref =
    DIAGONAL("MatrixSetDiag", MATRIX_TYPES, matrix_set_diag_run);
const struct kernel kernel_matrix_set_diag_v2_ref =
    DIAGONAL("MatrixSetDiagV2", MATRIX_TYPES, matrix_set_diag_run);
const struct kernel kernel_matrix_set_diag_v3_ref =
    DIAGONAL("MatrixSetDiagV3", MATRIX_TYPES, matrix_set_diag_run);
const struct kernel kernel_diag_ref = DIAGONAL("Diag", DIAG_TYPES, diag_run);
const struct kernel kernel_diag_part_ref = DIAGONAL("DiagPart", DIAG_TYPES, diag_part_run);
