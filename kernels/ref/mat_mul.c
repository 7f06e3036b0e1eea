/* mat_mul.c - products of matrices, single and in batches; sums in double. */

#include "kernels/ref/mat_mul.h"
#include "kernels/ref/numbers.h"

/* Where the elements of a matrix are: (row, column) at start + row * row_step + column * step.
 */
struct matrix {
    const struct tensor *tensor;
    int64_t start;
    int64_t row_step;
    int64_t step;
    bool conjugate;
};

static double complex at(const struct matrix *m, int64_t row, int64_t column)
{
    double complex value =
        kernel_complex_at(m->tensor, m->start + row * m->row_step + column * m->step);
    return m->conjugate ? conj(value) : value;
}

/* Integers wrap as the result's type does. */
static void multiply_integers(const struct matrix *a, const struct matrix *b, int64_t rows,
                              int64_t inner, int64_t columns, struct tensor *out, int64_t start)
{
    kernel_load_bits *load_a = kernel_load_bits_for(a->tensor->dtype);
    kernel_load_bits *load_b = kernel_load_bits_for(b->tensor->dtype);
    kernel_store_bits *store = kernel_store_bits_for(out->dtype);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            uint64_t sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += load_a(a->tensor->data, a->start + r * a->row_step + k * a->step) *
                       load_b(b->tensor->data, b->start + k * b->row_step + c * b->step);
            store(out->data, start + r * columns + c, sum);
        }
}

static void multiply(const struct matrix *a, const struct matrix *b, int64_t rows,
                     int64_t inner, int64_t columns, struct tensor *out, int64_t start)
{
    if (DTYPES_INTEGER & BIT(out->dtype)) {
        multiply_integers(a, b, rows, inner, columns, out, start);
        return;
    }
    if (DTYPES_COMPLEX & BIT(out->dtype)) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                double complex sum = 0;
                for (int64_t k = 0; k < inner; k++)
                    sum += at(a, r, k) * at(b, k, c);
                kernel_set_complex(out, start + r * columns + c, sum);
            }
        return;
    }
    kernel_load *load_a = kernel_load_for(a->tensor->dtype);
    kernel_load *load_b = kernel_load_for(b->tensor->dtype);
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double sum = 0;
            for (int64_t k = 0; k < inner; k++)
                sum += load_a(a->tensor->data, a->start + r * a->row_step + k * a->step) *
                       load_b(b->tensor->data, b->start + k * b->row_step + c * b->step);
            store(out->data, start + r * columns + c, sum);
        }
}

static struct matrix view(const struct tensor *tensor, int64_t start, bool transpose,
                          bool conjugate)
{
    int64_t columns = tensor->shape.dims[tensor->shape.rank - 1];
    return (struct matrix){.tensor = tensor,
                           .start = start,
                           .row_step = transpose ? 1 : columns,
                           .step = transpose ? columns : 1,
                           .conjugate = conjugate};
}

static bool mismatch(const struct shape *a, const struct shape *b, struct error *err)
{
    char a_text[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    return fail(err, INVALID, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                shape_text(a, a_text, sizeof(a_text)), shape_text(b, b_text, sizeof(b_text)));
}

static bool ranks_differ(const struct shape *a, const struct shape *b, struct error *err)
{
    char a_text[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    return fail(err, INVALID, "In[0] and In[1] has different ndims: %s vs. %s",
                shape_text(a, a_text, sizeof(a_text)), shape_text(b, b_text, sizeof(b_text)));
}

bool kernel_mat_mul_check(bool transpose_a, bool transpose_b, const struct shape *a,
                          const struct shape *b, struct error *err)
{
    if (a->rank != b->rank)
        return ranks_differ(a, b, err);
    if (a->rank != 2)
        return fail(err, INVALID, "In[0] and In[1] ndims must be == 2: %d", a->rank);
    return a->dims[!transpose_a] == b->dims[transpose_b] || mismatch(a, b, err);
}

/* SparseMatMul has words of its own. */
static bool check_sparse(const struct shape *a, const struct shape *b, bool ta, bool tb,
                         struct error *err)
{
    char a_text[SHAPE_TEXT_BYTES], b_text[SHAPE_TEXT_BYTES];
    if (a->rank != 2 || b->rank != 2)
        return fail(err, INVALID, "%s is not a matrix", a->rank != 2 ? "a" : "b");
    return a->dims[!ta] == b->dims[tb] ||
           fail(err, INVALID, "Matrix size incompatible: a: %s, b: %s",
                shape_text(a, a_text, sizeof(a_text)), shape_text(b, b_text, sizeof(b_text)));
}

static bool mat_mul_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *a = kernel_in(call, 0), *b = kernel_in(call, 1);
    bool ta = node_attr_bool(call->node, "transpose_a", false);
    bool tb = node_attr_bool(call->node, "transpose_b", false);
    bool sparse = strcmp(call->node->op->name, "SparseMatMul") == 0;
    if (!(sparse ? check_sparse(&a->shape, &b->shape, ta, tb, err)
                 : kernel_mat_mul_check(ta, tb, &a->shape, &b->shape, err)))
        return false;
    int64_t rows = a->shape.dims[ta], inner = a->shape.dims[!ta], columns = b->shape.dims[!tb];
    struct tensor *out = kernel_output(call, 0, &SHAPE(rows, columns), err);
    if (!out)
        return false;
    struct matrix left = view(a, 0, ta, false), right = view(b, 0, tb, false);
    multiply(&left, &right, rows, inner, columns, out, 0);
    return true;
}

/* The dimensions in front of the matrices are the same. */
static bool check_same(const struct shape *x, const struct shape *y, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (x->rank != y->rank)
        return ranks_differ(x, y, err);
    if (x->rank < 2)
        return fail(err, INVALID, "In[0] and In[1] ndims must be >= 2: %d", x->rank);
    for (int d = 0; d < x->rank - 2; d++)
        if (x->dims[d] != y->dims[d])
            return fail(err, INVALID,
                        "In[0].dim(%d) and In[1].dim(%d) must be the same: %s vs %s", d, d,
                        shape_text(x, a, sizeof(a)), shape_text(y, b, sizeof(b)));
    return true;
}

bool kernel_batches_broadcast(const struct shape *x, const struct shape *y, struct shape *out,
                              struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    struct error differ;
    struct shape left = *x, right = *y;
    if (x->rank < 2 || y->rank < 2)
        return fail(err, INVALID, "In[%d] ndims must be >= 2: %d", x->rank >= 2,
                    x->rank < 2 ? x->rank : y->rank);
    left.rank -= 2;
    right.rank -= 2;
    return shape_broadcast(&left, &right, out, &differ) ||
           fail(err, INVALID,
                "In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                shape_text(x, a, sizeof(a)), shape_text(y, b, sizeof(b)));
}

bool kernel_batches_read(struct kernel_call *call, struct kernel_batches *m, struct error *err)
{
    const struct shape *x = &kernel_in(call, 0)->shape, *y = &kernel_in(call, 1)->shape;
    *m = (struct kernel_batches){.adj_x = node_attr_bool(call->node, "adj_x", false),
                                 .adj_y = node_attr_bool(call->node, "adj_y", false)};
    if (strcmp(call->node->op->name, "BatchMatMul") == 0 && !check_same(x, y, err))
        return false;
    if (!kernel_batches_broadcast(x, y, &m->out, err))
        return false;
    m->x = *x;
    m->y = *y;
    m->x.rank -= 2;
    m->y.rank -= 2;
    const int64_t *dims_x = x->dims + m->x.rank, *dims_y = y->dims + m->y.rank;
    if (dims_x[!m->adj_x] != dims_y[m->adj_y])
        return mismatch(x, y, err);
    m->rows = dims_x[m->adj_x];
    m->inner = dims_x[!m->adj_x];
    m->columns = dims_y[!m->adj_y];
    m->count = kernel_span(&m->out, 0, m->out.rank);
    m->out.dims[m->out.rank++] = m->rows;
    m->out.dims[m->out.rank++] = m->columns;
    return true;
}

void kernel_batches_at(const struct kernel_batches *m, int64_t n, int64_t *x, int64_t *y)
{
    int rank = m->out.rank - 2;
    int64_t rest = n, at_x = 0, at_y = 0, step_x = 1, step_y = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t index = rest % m->out.dims[d];
        int dx = d - (rank - m->x.rank), dy = d - (rank - m->y.rank);
        rest /= m->out.dims[d];
        if (dx >= 0) {
            at_x += (m->x.dims[dx] == 1 ? 0 : index) * step_x;
            step_x *= m->x.dims[dx];
        }
        if (dy >= 0) {
            at_y += (m->y.dims[dy] == 1 ? 0 : index) * step_y;
            step_y *= m->y.dims[dy];
        }
    }
    *x = at_x * m->rows * m->inner;
    *y = at_y * m->inner * m->columns;
}

/* Adjoints are conjugated. */
static bool batch_mat_mul_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct kernel_batches m;
    if (!kernel_batches_read(call, &m, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &m.out, err);
    for (int64_t n = 0; out && out->count && n < m.count; n++) {
        int64_t at_x, at_y;
        kernel_batches_at(&m, n, &at_x, &at_y);
        struct matrix left = view(x, at_x, m.adj_x, m.adj_x);
        struct matrix right = view(y, at_y, m.adj_y, m.adj_y);
        multiply(&left, &right, m.rows, m.inner, m.columns, out, n * m.rows * m.columns);
    }
    return out != NULL;
}

/* TensorFlow's combinations: one type for all, 8-bit integers to int32, or with bfloat16. */
static bool batch_mat_mul_v3_accepts(const struct node *node)
{
    int x = node_attr_type(node, "Ta"), y = node_attr_type(node, "Tb");
    int out = node_attr_type(node, "Tout");
    bool byte_x = x == I8 || x == U8, byte_y = y == I8 || y == U8;
    if (byte_x && byte_y)
        return out == I32;
    if (byte_x || byte_y)
        return (byte_x ? y : x) == BF16 && out == BF16;
    return x == y && y == out;
}

const struct kernel kernel_mat_mul_ref = {
    .op = "MatMul", .device = CPU, .dtypes = DTYPES_NUMBER, .run = mat_mul_run};
const struct kernel kernel_sparse_mat_mul_ref = {
    .op = "SparseMatMul", .device = CPU, .run = mat_mul_run};
const struct kernel kernel_batch_mat_mul_ref = {
    .op = "BatchMatMul", .device = CPU, .dtypes = DTYPES_NUMBER, .run = batch_mat_mul_run};
const struct kernel kernel_batch_mat_mul_v2_ref = {
    .op = "BatchMatMulV2", .device = CPU, .dtypes = DTYPES_NUMBER, .run = batch_mat_mul_run};
const struct kernel kernel_batch_mat_mul_v3_ref = {.op = "BatchMatMulV3",
                                                   .device = CPU,
                                                   .accepts = batch_mat_mul_v3_accepts,
                                                   .run = batch_mat_mul_run};
