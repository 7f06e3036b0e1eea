/*
 * matmul_bf16.c - products of matrices whose elements are bfloat16: widened to float, which
 * holds them exactly, added in float, and rounded at the end.
 */
#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/list.h"
#include "kernels/ref/mat_mul.h"
#include "runtime/attr.h"

static void widen(const struct tensor *from, float *to)
{
    const uint16_t *halves = from->data;
    for (int64_t i = 0; i < from->count; i++) {
        uint32_t bits = (uint32_t)halves[i] << 16;
        memcpy(to + i, &bits, sizeof(bits));
    }
}

/* Rounds `from` in place on the way. */
static void narrow(int64_t count, float *from, uint16_t *to)
{
    isa()->bf16.round(count, from, from);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof(bits));
        to[i] = (uint16_t)(bits >> 16);
    }
}

/* Floats of whole cache lines. */
static int64_t lines(int64_t count)
{
    return (count + 15) / 16 * 16;
}

static bool multiply(struct kernel_call *call, const struct kernel_batches *m,
                     struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    struct tensor *out = kernel_output(call, 0, &m->out, err);
    if (!out || out->count == 0)
        return out;
    int64_t each = m->rows * m->columns;
    struct gemm gemm = {.m = m->rows,
                        .n = m->columns,
                        .k = m->inner,
                        .a_row = m->adj_x ? 1 : m->inner,
                        .a_column = m->adj_x ? m->rows : 1,
                        .b_row = m->adj_y ? 1 : m->columns,
                        .b_column = m->adj_y ? m->inner : 1,
                        .c_row = m->columns,
                        .alpha = 1,
                        .bf16 = isa()->bf16.instructions};
    int64_t floats = lines(x->count) + lines(y->count) + lines(each);
    float *left = kernel_scratch(
        call, (size_t)floats * sizeof(*left) + gemm_scratch(&gemm, call->threads), err);
    if (!left)
        return false;
    float *right = left + lines(x->count);
    gemm.c = right + lines(y->count);
    widen(x, left);
    widen(y, right);
    for (int64_t n = 0; each && n < m->count; n++) {
        int64_t at_x, at_y;
        kernel_batches_at(m, n, &at_x, &at_y);
        gemm.a = left + at_x;
        gemm.b = right + at_y;
        gemm_run(&gemm, call->threads, left + floats);
        narrow(each, gemm.c, (uint16_t *)out->data + n * each);
    }
    return true;
}

static bool mat_mul_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *a = kernel_in(call, 0), *b = kernel_in(call, 1);
    struct kernel_batches m = {.adj_x = node_attr_bool(call->node, "transpose_a", false),
                               .adj_y = node_attr_bool(call->node, "transpose_b", false),
                               .count = 1};
    if (!kernel_mat_mul_check(m.adj_x, m.adj_y, &a->shape, &b->shape, err))
        return false;
    m.rows = a->shape.dims[m.adj_x];
    m.inner = a->shape.dims[!m.adj_x];
    m.columns = b->shape.dims[!m.adj_y];
    m.out = SHAPE(m.rows, m.columns);
    return multiply(call, &m, err);
}

static bool batch_mat_mul_run(struct kernel_call *call, struct error *err)
{
    struct kernel_batches m;
    return kernel_batches_read(call, &m, err) && multiply(call, &m, err);
}

const struct kernel kernel_mat_mul_bf16_cpu = {
    .op = "MatMul", .device = CPU, .dtypes = BIT(BF16), .run = mat_mul_run};
const struct kernel kernel_batch_mat_mul_bf16_cpu = {
    .op = "BatchMatMul", .device = CPU, .dtypes = BIT(BF16), .run = batch_mat_mul_run};
const struct kernel kernel_batch_mat_mul_v2_bf16_cpu = {
    .op = "BatchMatMulV2", .device = CPU, .dtypes = BIT(BF16), .run = batch_mat_mul_run};
