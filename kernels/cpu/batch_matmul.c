/*
 * batch_matmul.c - BatchMatMul in float.  Many products are shared out among the threads, one
 * large one is done by all of them; the order of additions is the same.
 */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/mat_mul.h"

static struct gemm product(const struct kernel_call *call, const struct kernel_batches *m,
                           int64_t n, float *out)
{
    int64_t x, y;
    kernel_batches_at(m, n, &x, &y);
    return (struct gemm){
        .m = m->rows,
        .n = m->columns,
        .k = m->inner,
        .a = tensor_f32(kernel_in(call, 0)) + x,
        .a_row = m->adj_x ? 1 : m->inner,
        .a_column = m->adj_x ? m->rows : 1,
        .b = tensor_f32(kernel_in(call, 1)) + y,
        .b_row = m->adj_y ? 1 : m->columns,
        .b_column = m->adj_y ? m->inner : 1,
        .c = out + n * m->rows * m->columns,
        .c_row = m->columns,
        .alpha = 1,
        .bf16 = call->precision == BF16,
    };
}

static bool batch_mat_mul_run(struct kernel_call *call, struct error *err)
{
    struct kernel_batches m;
    if (!kernel_batches_read(call, &m, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &m.out, err);
    if (!out)
        return false;
    if (out->count == 0)
        return true;
    float *to = tensor_f32_mut(out);
    struct gemm first = product(call, &m, 0, to);
    int outer = m.count < call->threads ? 1 : parallel_threads(call, m.count * out->count);
    int inner = outer > 1 ? 1 : call->threads;
    size_t each = (gemm_scratch(&first, inner) + 63) / 64 * 64;
    char *room = kernel_scratch(call, each * (size_t)outer + 1, err);
    if (!room)
        return false;
#pragma omp parallel for num_threads(outer) schedule(static) if (outer > 1)
    for (int t = 0; t < outer; t++) {
        struct range r = parallel_range(m.count, 1, outer, t);
        for (int64_t n = r.from; n < r.to; n++) {
            struct gemm gemm = product(call, &m, n, to);
            gemm_run(&gemm, inner, room + each * (size_t)t);
        }
    }
    return true;
}

const struct kernel kernel_batch_mat_mul_cpu = {
    .op = "BatchMatMul", .device = CPU, .dtypes = BIT(F32), .run = batch_mat_mul_run};
const struct kernel kernel_batch_mat_mul_v2_cpu = {
    .op = "BatchMatMulV2", .device = CPU, .dtypes = BIT(F32), .run = batch_mat_mul_run};
