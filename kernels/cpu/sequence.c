/* sequence.c - the large products of recurrent sequences, see sequence.h. */

#include "kernels/cpu/sequence.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "runtime/kernel.h"

int sequence_threads(const struct kernel_call *call, int64_t batch, int64_t work)
{
    enum { STEP_WORK = 20000, EXAMPLES = 4 };
    return batch < EXAMPLES * call->threads || work < STEP_WORK ? 1 : call->threads;
}

bool sequence_product(struct kernel_call *call, const struct gemm *gemm, struct error *err)
{
    struct gemm product = *gemm;
    product.bf16 = call->precision == BF16;
    void *room = kernel_scratch(call, gemm_scratch(&product, call->threads) + 1, err);
    if (room)
        gemm_run(&product, call->threads, room);
    return room != NULL;
}

bool sequence_project(struct kernel_call *call, int64_t rows, int64_t inputs, int64_t columns,
                      const float *x, const float *w, int64_t w_row, const float *bias,
                      float *out, struct error *err)
{
    return sequence_product(call,
                            &(struct gemm){.m = rows,
                                           .n = columns,
                                           .k = inputs,
                                           .a = x,
                                           .a_row = inputs,
                                           .a_column = 1,
                                           .b = w,
                                           .b_row = w_row,
                                           .b_column = 1,
                                           .c = out,
                                           .c_row = columns,
                                           .alpha = 1,
                                           .bias = bias},
                            err);
}

bool sequence_inputs_grad(struct kernel_call *call, int64_t rows, int64_t inputs,
                          int64_t columns, const float *sums, const float *w, float *x_grad,
                          struct error *err)
{
    return sequence_product(call,
                            &(struct gemm){.m = rows,
                                           .n = inputs,
                                           .k = columns,
                                           .a = sums,
                                           .a_row = columns,
                                           .a_column = 1,
                                           .b = w,
                                           .b_row = 1,
                                           .b_column = columns,
                                           .c = x_grad,
                                           .c_row = inputs,
                                           .alpha = 1},
                            err);
}

bool sequence_weights_grad(struct kernel_call *call, int64_t rows, int64_t inputs,
                           int64_t columns, const float *x, const float *sums, bool add,
                           float *grad, struct error *err)
{
    return sequence_product(call,
                            &(struct gemm){.m = inputs,
                                           .n = columns,
                                           .k = rows,
                                           .a = x,
                                           .a_row = 1,
                                           .a_column = inputs,
                                           .b = sums,
                                           .b_row = columns,
                                           .b_column = 1,
                                           .c = grad,
                                           .c_row = columns,
                                           .alpha = 1,
                                           .beta = add ? 1 : 0},
                            err);
}

bool sequence_states_grad(struct kernel_call *call, int64_t steps, int64_t batch, int64_t cells,
                          int64_t columns, const float *first, const float *h,
                          const float *sums, float *grad, struct error *err)
{
    int64_t rows = steps * batch, own = steps ? batch : 0;
    return sequence_weights_grad(call, own, cells, columns, first, sums, false, grad, err) &&
           sequence_weights_grad(call, rows - own, cells, columns, h, sums + own * columns,
                                 true, grad, err);
}

void sequence_pack(const struct kernel_call *call, float *panels, int64_t k, int64_t n,
                   const float *b, int64_t b_row, int64_t b_column)
{
    bool bf16 = call->precision == BF16;
    int64_t row = bf16 ? gemm_bf16_row(k) : k;
    int threads = parallel_threads(call, k * n);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(n, isa()->tile_columns, threads, t);
        if (r.from < r.to)
            (bf16 ? gemm_pack_bf16 : gemm_pack)(panels + r.from * row, k, r.to - r.from,
                                                b + r.from * b_column, b_row, b_column);
    }
}

bool sequence_room(struct kernel_call *call, int64_t rows, int64_t k, float **room,
                   struct error *err)
{
    *room = NULL;
    if (call->precision != BF16)
        return true;
    *room = kernel_scratch(call, (size_t)(rows * gemm_bf16_row(k)) * sizeof(float) + 1, err);
    return *room;
}

float *sequence_room_at(float *room, int64_t rows, int64_t k)
{
    return room ? room + rows * gemm_bf16_row(k) : NULL;
}

void sequence_factor(struct gemm_packed *product, const float *a, int64_t a_row, float *room)
{
    product->bf16 = room;
    product->a = room ? room : a;
    product->a_row = room ? gemm_bf16_row(product->k) : a_row;
    if (room)
        gemm_pack_a_bf16(room, product->m, product->k, a, a_row);
}
