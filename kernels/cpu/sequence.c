/* sequence.c - the large products of recurrent sequences, see sequence.h. */

#include "kernels/cpu/sequence.h"

#include "runtime/kernel.h"

int sequence_threads(const struct kernel_call *call, int64_t batch, int64_t work)
{
    enum { STEP_WORK = 20000, EXAMPLES = 4 };
    return batch < EXAMPLES * call->threads || work < STEP_WORK ? 1 : call->threads;
}

bool sequence_product(struct kernel_call *call, const struct gemm *gemm, struct error *err)
{
    void *room = kernel_scratch(call, gemm_scratch(gemm, call->threads) + 1, err);
    if (room)
        gemm_run(gemm, call->threads, room);
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
