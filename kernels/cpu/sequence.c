/* sequence.c - the large products of recurrent sequences, see sequence.h. */

#include "kernels/cpu/sequence.h"

#include "base/error.h"
#include "kernels/cpu/columns.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/ref/numbers.h"
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

/* --- what goes in --- */

static float *scratch(struct kernel_call *call, int64_t count, struct error *err)
{
    return kernel_scratch(call, (size_t)count * sizeof(float) + 1, err);
}

/* to (rows,columns): row i is row ids[i] of `from`. */
static void look_up(const struct kernel_call *call, int64_t rows, int64_t columns,
                    const float *from, const int32_t *ids, float *to)
{
    int threads = parallel_threads(call, rows * columns);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        for (int64_t i = r.from; i < r.to; i++)
            memcpy(to + i * columns, from + ids[i] * columns, (size_t)columns * sizeof(float));
    }
}

/* to (rows of the table,columns): the rows of `from` summed by id, in their order. */
static void sum_up(const struct kernel_call *call, const struct sequence_in *in,
                   int64_t columns, const float *from, float *to)
{
    int threads = parallel_threads(call, in->rows * columns);
    memset(to, 0, (size_t)(in->table_shape.dims[0] * columns) * sizeof(float));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(columns, 16, threads, t);
        for (int64_t i = 0; i < in->rows && r.from < r.to; i++) {
            float *row = to + in->ids[i] * columns + r.from;
            isa()->binary(ISA_ADD, r.to - r.from, row, false, from + i * columns + r.from,
                          false, row);
        }
    }
}

bool sequence_in_shape(const struct kernel_call *call, int x, int table, struct shape *shape,
                       struct error *err)
{
    *shape = kernel_in(call, x)->shape;
    if (table < 0)
        return true;
    const struct shape *rows = &kernel_in(call, table)->shape;
    if (shape->rank != 2 || rows->rank != 2)
        return fail(err, INVALID, "indices and the table must be 2D");
    shape->dims[shape->rank++] = rows->dims[1];
    return true;
}

bool sequence_in_read(struct kernel_call *call, int x, int table, struct sequence_in *in,
                      struct error *err)
{
    enum { OFTEN = 2 }; /* a row is looked up on average, so that the table's product pays */
    const struct tensor *given = kernel_in(call, x);
    *in = (struct sequence_in){.rows = given->shape.dims[0] * given->shape.dims[1]};
    if (table < 0) {
        in->inputs = given->shape.dims[2];
        in->x = tensor_f32(given);
        return true;
    }
    const struct tensor *rows = kernel_in(call, table);
    in->table = tensor_f32(rows);
    in->table_shape = rows->shape;
    in->inputs = rows->shape.dims[1];
    int64_t table_rows = rows->shape.dims[0];
    int32_t *ids = kernel_scratch(call, (size_t)in->rows * sizeof(*ids) + 1, err);
    if (!ids)
        return false;
    for (int64_t i = 0; i < in->rows; i++) {
        int64_t id = tensor_integer(given, i);
        if (id < 0 || id >= table_rows)
            return fail(err, INVALID, "indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                        (long long)id, (long long)table_rows);
        ids[i] = (int32_t)id;
    }
    in->ids = ids;
    if (in->rows / OFTEN >= table_rows)
        return true;
    float *looked_up = scratch(call, in->rows * in->inputs, err);
    if (!looked_up)
        return false;
    look_up(call, in->rows, in->inputs, in->table, ids, looked_up);
    in->x = looked_up;
    return true;
}

bool sequence_project(struct kernel_call *call, const struct sequence_in *in, int64_t columns,
                      const float *w, int64_t w_row, const float *bias, float *out,
                      struct error *err)
{
    int64_t rows = in->x ? in->rows : in->table_shape.dims[0];
    float *products = in->x ? out : scratch(call, rows * columns, err);
    if (!products || !sequence_product(call,
                                       &(struct gemm){.m = rows,
                                                      .n = columns,
                                                      .k = in->inputs,
                                                      .a = in->x ? in->x : in->table,
                                                      .a_row = in->inputs,
                                                      .a_column = 1,
                                                      .b = w,
                                                      .b_row = w_row,
                                                      .b_column = 1,
                                                      .c = products,
                                                      .c_row = columns,
                                                      .alpha = 1,
                                                      .bias = bias},
                                       err))
        return false;
    if (!in->x)
        look_up(call, in->rows, columns, products, in->ids, out);
    return true;
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

/*
 * Turns `sums` (rows,columns) to those of the rows that take part in products, and `in` to
 * these rows: the table's, or as they are.
 */
static bool fold(struct kernel_call *call, struct sequence_in *in, int64_t columns,
                 const float **sums, struct error *err)
{
    if (in->x)
        return true;
    float *folded = scratch(call, in->table_shape.dims[0] * columns, err);
    if (!folded)
        return false;
    sum_up(call, in, columns, *sums, folded);
    *in = (struct sequence_in){
        .rows = in->table_shape.dims[0], .inputs = in->inputs, .x = in->table};
    *sums = folded;
    return true;
}

/* grad of the rows, or summed by id where there are ids: sums w^T. */
static bool inputs_grad(struct kernel_call *call, const struct sequence_in *in, int64_t columns,
                        const float *sums, const float *w, float *grad, struct error *err)
{
    float *of_rows = in->ids ? scratch(call, in->rows * in->inputs, err) : grad;
    if (!of_rows || !sequence_product(call,
                                      &(struct gemm){.m = in->rows,
                                                     .n = in->inputs,
                                                     .k = columns,
                                                     .a = sums,
                                                     .a_row = columns,
                                                     .a_column = 1,
                                                     .b = w,
                                                     .b_row = 1,
                                                     .b_column = columns,
                                                     .c = of_rows,
                                                     .c_row = in->inputs,
                                                     .alpha = 1},
                                      err))
        return false;
    if (in->ids)
        sum_up(call, in, in->inputs, of_rows, grad);
    return true;
}

bool sequence_in_grads(struct kernel_call *call, const struct sequence_in *in,
                       const struct shape *x, int64_t columns, const float *sums,
                       const float *w, float *w_grad, float *b_grad, struct error *err)
{
    bool of_table = in->table && !node_attr_bool(call->node, "by_rows", false);
    struct tensor *grad = kernel_output(call, 0, of_table ? &in->table_shape : x, err);
    struct sequence_in rows = *in, folded = *in;
    const float *folded_sums = sums;
    if (!grad || !fold(call, &folded, columns, &folded_sums, err))
        return false;
    if (!of_table) { /* the steps after the last have no gradient */
        memset(tensor_f32_mut(grad) + in->rows * in->inputs, 0,
               (size_t)(grad->count - in->rows * in->inputs) * sizeof(float));
        rows.ids = NULL;
    }
    return inputs_grad(call, of_table ? &folded : &rows, columns, of_table ? folded_sums : sums,
                       w, tensor_f32_mut(grad), err) &&
           sequence_weights_grad(call, folded.rows, in->inputs, columns, folded.x, folded_sums,
                                 false, w_grad, err) &&
           columns_sum(call, folded.rows, columns, folded_sums, NULL, NULL, b_grad, err);
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
