/* conv2d_bf16.c - the factors of convolutions rounded to bfloat16; see conv2d.h. */

#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "runtime/kernel.h"

void conv2d_set_factors(struct conv2d *c, const struct kernel_call *call,
                        const struct conv2d_shape *shape)
{
    bool bf16 = call->precision == BF16 && isa()->bf16.instructions && shape->groups == 1;
    c->factors = bf16 ? dnnl_bf16 : dnnl_f32;
}

const void *conv2d_factor(const struct conv2d *c, struct kernel_call *call, const float *x,
                          int64_t count, struct error *err)
{
    if (call->precision != BF16)
        return x;
    bool pairs = c->factors == dnnl_bf16;
    int64_t room = pairs ? (count + 1) / 2 : count;
    float *to = kernel_scratch(call, (size_t)room * sizeof(float) + 1, err);
    int threads = to ? parallel_threads(call, count) : 0;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(count, 32, threads, t);
        if (pairs)
            isa()->bf16.pair_columns(1, r.to - r.from, x + r.from, 0, to + r.from / 2, 0);
        else
            isa()->bf16.round(r.to - r.from, x + r.from, to + r.from);
    }
    return to;
}

const void *conv2d_filter(const struct conv2d *c, struct kernel_call *call,
                          const struct tensor *filter, struct error *err)
{
    const float *x = tensor_f32(filter);
    return c->factors == dnnl_bf16 ? x : conv2d_factor(c, call, x, filter->count, err);
}
