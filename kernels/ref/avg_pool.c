/* avg_pool.c - means of windows over images and volumes, and their gradients. */

#include "kernels/ref/pool.h"
#include "kernels/ref/rules.h"
#include "kernels/ref/sums.h"

static bool avg_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct shape shape;
    struct window w;
    if (!kernel_pool_rules(call, &shape, err) ||
        !kernel_window(call->node, &in->shape, NULL, &w, err))
        return false;
    shape = kernel_window_out(&w, w.channels);
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

/* The number as the type has it. */
static double rounded(enum dtype dtype, double value)
{
    uint64_t room;
    kernel_store_for(dtype)(&room, 0, value);
    return kernel_load_for(dtype)(&room, 0);
}

/* A window's part of the gradient and the sums are rounded at each step, as TensorFlow does. */
static bool avg_pool_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 1);
    struct shape shape;
    struct window w;
    if (!kernel_pool_rules(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    if (out->count == 0 || !pool_has_windows(call->node))
        return true;
    if (!kernel_window(call->node, &shape, NULL, &w, err))
        return false;
    kernel_window_pad(&w);
    for (int d = 0; d < w.dims; d++) /* places beyond the windows count as well */
        w.out[3 - w.dims + d] = grad->shape.dims[(w.channels_first ? 2 : 1) + d];
    kernel_load *load = kernel_load_for(grad->dtype);
    kernel_store *store = kernel_store_for(grad->dtype);
    POOL_EACH(&w, spot)
    {
        struct part part = pool_part(&w, &spot);
        double coefficient = rounded(grad->dtype, 1 / (double)part.left);
        double share =
            rounded(grad->dtype, load(grad->data, pool_out(&w, &spot)) * coefficient);
        int64_t at;
        while (pool_next(&w, &spot, &part, &at))
            store(out->data, at, load(out->data, at) + share);
    }
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
