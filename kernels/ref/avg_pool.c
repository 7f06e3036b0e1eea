/* avg_pool.c - means of windows over images and volumes, and their gradients. */

#include "kernels/ref/pool.h"
#include "kernels/ref/sums.h"

static bool avg_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct window w;
    if (!kernel_window(call->node, &in->shape, NULL, &w, err))
        return false;
    struct shape shape = kernel_window_out(&w, w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    POOL_EACH(&w, spot)
    {
        struct part part = pool_part(&w, &spot);
        double sum = 0, count = (double)part.left;
        int64_t at;
        while (pool_next(&w, &spot, &part, &at))
            sum += load(in->data, at);
        store(out->data, pool_out(&w, &spot), sum / count);
    }
    return true;
}

static bool avg_pool_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 1);
    struct shape shape;
    struct window w;
    if (!kernel_shape_in(call, 0, &shape, err) ||
        !kernel_window(call->node, &shape, NULL, &w, err) ||
        !kernel_window_check(&w, w.channels, grad, err))
        return false;
    kernel_window_pad(&w);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(grad->dtype);
    POOL_EACH(&w, spot)
    {
        struct part part = pool_part(&w, &spot);
        double share = load(grad->data, pool_out(&w, &spot)) / (double)part.left;
        int64_t at;
        while (pool_next(&w, &spot, &part, &at))
            sums[at] += share;
    }
    kernel_sums_store(out, sums);
    return true;
}

#define POOL(name_, run_)                                                                      \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_FLOAT, .run = run_                        \
    }

const struct kernel kernel_avg_pool_ref = POOL("AvgPool", avg_pool_run);
const struct kernel kernel_avg_pool_grad_ref = POOL("AvgPoolGrad", avg_pool_grad_run);
const struct kernel kernel_avg_pool3d_ref = POOL("AvgPool3D", avg_pool_run);
const struct kernel kernel_avg_pool3d_grad_ref = POOL("AvgPool3DGrad", avg_pool_grad_run);
