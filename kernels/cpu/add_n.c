/* add_n.c - AddN in float: blocks that stay in the first cache until all inputs are added. */

#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"
#include "runtime/op.h"

enum { BLOCK = 4096 };

static bool check_shapes(const struct kernel_call *call, struct error *err)
{
    const struct shape *first = &kernel_in(call, 0)->shape;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    for (int i = 1; i < call->in_count; i++)
        if (!shape_equal(first, &kernel_in(call, i)->shape)) {
            if (strcmp(call->node->op->name, "AccumulateNV2") == 0)
                return fail(err, INVALID, "Parameters and update must be the same size");
            return fail(err, INVALID,
                        "Inputs to operation %s of type %s must have the same size and shape.  "
                        "Input 0: %s != input %d: %s",
                        call->node->name, call->node->op->name, shape_text(first, a, sizeof(a)),
                        i, shape_text(&kernel_in(call, i)->shape, b, sizeof(b)));
        }
    return true;
}

static void add_range(const struct kernel_call *call, int64_t from, int64_t to, float *out)
{
    for (int64_t at = from; at < to; at += BLOCK) {
        int64_t count = to - at < BLOCK ? to - at : BLOCK;
        const float *sum = tensor_f32(kernel_in(call, 0)) + at;
        for (int i = 1; i < call->in_count; i++) {
            isa()->binary(ISA_ADD, count, sum, false, tensor_f32(kernel_in(call, i)) + at,
                          false, out + at);
            sum = out + at;
        }
        if (sum != out + at)
            memcpy(out + at, sum, (size_t)count * sizeof(*out));
    }
}

static bool add_n_run(struct kernel_call *call, struct error *err)
{
    if (!check_shapes(call, err))
        return false;
    const struct tensor *first = kernel_in(call, 0);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &first->shape, err);
    if (!out)
        return false;
    int threads = parallel_threads(call, out->count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(out->count, 16, threads, t);
        add_range(call, r.from, r.to, tensor_f32_mut(out));
    }
    return true;
}

const struct kernel kernel_add_n_cpu = {
    .op = "AddN", .device = CPU, .dtypes = BIT(F32), .run = add_n_run};
