/* layer_norm.c - _LayerNorm, its gradient, and _Gelu in float, in one pass each. */

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "kernels/ref/attention.h"
#include "runtime/attr.h"

static bool layer_norm_run(struct kernel_call *call, struct error *err)
{
    int64_t rows, columns;
    if (!kernel_layer_norm_read(call, 0, &rows, &columns, err))
        return false;
    const struct tensor *x = kernel_in(call, 0);
    struct shape per_row = x->shape;
    per_row.rank--;
    struct tensor *mean = kernel_output(call, 1, &per_row, err);
    struct tensor *inverse = mean ? kernel_output(call, 2, &per_row, err) : NULL;
    struct tensor *y = inverse ? kernel_output(call, 0, &x->shape, err) : NULL;
    if (!y)
        return false;
    int threads = parallel_threads(call, x->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(rows, 1, threads, t);
        isa()->layer_norm(&(struct isa_layer_norm){
            .rows = r.to - r.from,
            .columns = columns,
            .x = tensor_f32(x) + r.from * columns,
            .scale = tensor_f32(kernel_in(call, 1)),
            .offset = tensor_f32(kernel_in(call, 2)),
            .epsilon = node_attr_float(call->node, "epsilon", 1e-3f),
            .y = tensor_f32_mut(y) + r.from * columns,
            .mean = tensor_f32_mut(mean) + r.from,
            .inverse = tensor_f32_mut(inverse) + r.from,
        });
    }
    return true;
}

/* Slices of rows whose sums are made apart; a fixed number, so that the order stays the same.
 */
enum { SLICES = 16 };

static bool layer_norm_grad_run(struct kernel_call *call, struct error *err)
{
    int64_t rows, columns;
    if (!kernel_layer_norm_read(call, 1, &rows, &columns, err))
        return false;
    const struct tensor *x = kernel_in(call, 1);
    struct tensor *dx = kernel_output(call, 0, &x->shape, err);
    struct tensor *dscale = dx ? kernel_output(call, 1, &SHAPE(columns), err) : NULL;
    struct tensor *doffset = dscale ? kernel_output(call, 2, &SHAPE(columns), err) : NULL;
    size_t bytes = (size_t)(2 * SLICES * columns) * sizeof(float);
    float *sums = doffset ? kernel_scratch(call, bytes, err) : NULL;
    if (!sums)
        return false;
    memset(sums, 0, bytes);
    int threads = parallel_threads(call, x->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int s = 0; s < SLICES; s++) {
        struct range r = parallel_range(rows, 1, SLICES, s);
        isa()->layer_norm_grad(&(struct isa_layer_norm_grad){
            .rows = r.to - r.from,
            .columns = columns,
            .dy = tensor_f32(kernel_in(call, 0)) + r.from * columns,
            .x = tensor_f32(x) + r.from * columns,
            .scale = tensor_f32(kernel_in(call, 2)),
            .mean = tensor_f32(kernel_in(call, 3)) + r.from,
            .inverse = tensor_f32(kernel_in(call, 4)) + r.from,
            .dx = tensor_f32_mut(dx) + r.from * columns,
            .scale_grad = sums + s * columns,
            .offset_grad = sums + (SLICES + s) * columns,
        });
    }
    isa()->column_sums(SLICES, columns, 0, columns, sums, tensor_f32_mut(dscale));
    isa()->column_sums(SLICES, columns, 0, columns, sums + SLICES * columns,
                       tensor_f32_mut(doffset));
    return true;
}

static bool gelu_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    struct tensor *slope = kernel_output(call, 1, &x->shape, err);
    struct tensor *y = slope ? kernel_output_reuse(call, 0, 0, &x->shape, err) : NULL;
    if (!y)
        return false;
    int threads = parallel_threads(call, x->count * 8);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(x->count, 16, threads, t);
        isa()->gelu(r.to - r.from, tensor_f32(x) + r.from, tensor_f32_mut(y) + r.from,
                    tensor_f32_mut(slope) + r.from);
    }
    return true;
}

const struct kernel kernel_layer_norm_cpu = {
    .op = "_LayerNorm", .device = CPU, .dtypes = BIT(F32), .run = layer_norm_run};
const struct kernel kernel_layer_norm_grad_cpu = {
    .op = "_LayerNormGrad", .device = CPU, .dtypes = BIT(F32), .run = layer_norm_grad_run};
const struct kernel kernel_gelu_cpu = {
    .op = "_Gelu", .device = CPU, .dtypes = BIT(F32), .run = gelu_run};
