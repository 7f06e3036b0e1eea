/* max_pool.c - maxima of windows over images and volumes, and their gradients. */

#include "kernels/ref/pool.h"
#include "kernels/ref/rules.h"
#include "kernels/ref/sums.h"

/* Index of the first maximum of a window, row-major; -1 for a window of no elements. */
static int64_t maximum_at(const struct window *w, const struct tensor *in,
                          const struct spot *spot)
{
    kernel_greater *greater = kernel_greater_for(in->dtype);
    struct part part = pool_part(w, spot);
    int64_t at, best = -1;
    while (pool_next(w, spot, &part, &at))
        if (best < 0 || greater(in->data, at, in->data, best))
            best = at;
    return best;
}

/* How many channels a window takes together; 1 for all but a rare form of MaxPool. */
static int64_t window_channels(const struct node *node)
{
    int count;
    const int64_t *ksize = node_attr_ints(node, "ksize", &count);
    bool nhwc = strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC") == 0;
    return count == 4 && nhwc ? ksize[3] : 1;
}

/* The maximum of each group of neighbouring channels; windows do not overlap or span pixels. */
static bool pool_channels(struct kernel_call *call, int64_t group, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct shape shape = in->shape;
    shape.dims[3] /= group;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_greater *greater = kernel_greater_for(in->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t best = i * group;
        for (int64_t c = best + 1; c < (i + 1) * group; c++)
            if (greater(in->data, c, in->data, best))
                best = c;
        kernel_copy(out, i, in, best, 1);
    }
    return true;
}

/* The windows of a pooling op of any version on an input of that shape. */
static bool read_windows(const struct kernel_call *call, const struct shape *input,
                         struct window *w, struct error *err)
{
    struct shape checked;
    if (!kernel_pool_rules(call, &checked, err))
        return false;
    if (node_attr(call->node, "ksize"))
        return kernel_window(call->node, input, NULL, w, err);
    return kernel_window_inputs(call, call->in_count - 2, input, w, err);
}

static bool max_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t group = window_channels(call->node);
    struct shape shape;
    struct window w;
    if (!kernel_pool_rules(call, &shape, err))
        return false;
    if (group > 1)
        return pool_channels(call, group, err);
    if (!read_windows(call, &in->shape, &w, err))
        return false;
    shape = kernel_window_out(&w, w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    POOL_EACH(&w, spot)
    {
        int64_t best = maximum_at(&w, in, &spot), at = pool_out(&w, &spot);
        if (best >= 0)
            kernel_copy(out, at, in, best, 1);
        else
            kernel_zero(out, at, 1);
    }
    return true;
}

/* --- gradients --- */

/* Index of the first element that is the maximum given; -1 if there is none. */
static int64_t equal_at(const struct window *w, const struct tensor *in,
                        const struct tensor *pooled, const struct spot *spot)
{
    kernel_load *load = kernel_load_for(in->dtype);
    struct part part = pool_part(w, spot);
    int64_t at, own = pool_out(w, spot);
    while (pool_next(w, spot, &part, &at))
        if (load(in->data, at) == load(pooled->data, own))
            return at;
    return -1;
}

/* Adds the window's gradient to all its elements that are the maximum given. */
static void spread(const struct window *w, const struct tensor *in, const struct tensor *pooled,
                   const struct tensor *grad, const struct spot *spot, const struct sums *sums)
{
    kernel_load *load = kernel_load_for(in->dtype);
    struct part part = pool_part(w, spot);
    int64_t at, own = pool_out(w, spot);
    while (pool_next(w, spot, &part, &at))
        if (load(in->data, at) == load(pooled->data, own))
            kernel_sums_add(sums, at, grad, own, 1);
}

/*
 * As TensorFlow has it, the gradient of an image's window goes to its first maximum, whatever
 * the pooled values given, that of a volume's to all elements equal to them.
 */
static void add_gradient(const struct window *w, const struct tensor *in,
                         const struct tensor *pooled, const struct tensor *grad,
                         const struct sums *sums)
{
    POOL_EACH(w, spot)
    {
        int64_t best = w->dims == 2 ? maximum_at(w, in, &spot) : -1;
        if (best >= 0)
            kernel_sums_add(sums, best, grad, pool_out(w, &spot), 1);
        if (w->dims == 3)
            spread(w, in, pooled, grad, &spot, sums);
    }
}

/* The gradient of the gradient is taken from where the gradient went to, the first place. */
static void take_gradient(const struct window *w, const struct tensor *in,
                          const struct tensor *pooled, const struct tensor *grad,
                          struct tensor *out)
{
    POOL_EACH(w, spot)
    {
        int64_t best = w->dims == 2 ? maximum_at(w, in, &spot) : equal_at(w, in, pooled, &spot);
        if (best >= 0)
            kernel_copy(out, pool_out(w, &spot), grad, best, 1);
    }
}

static bool max_pool_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *pooled = kernel_in(call, 1);
    const struct tensor *grad = kernel_in(call, 2);
    struct window w;
    if (!read_windows(call, &in->shape, &w, err))
        return false;
    kernel_window_pad(&w);
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct sums sums;
    if (!kernel_sums_init(call, out, &sums, err))
        return false;
    add_gradient(&w, in, pooled, grad, &sums);
    kernel_sums_write(out, &sums);
    return true;
}

static bool max_pool_grad_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *pooled = kernel_in(call, 1);
    const struct tensor *grad = kernel_in(call, 2);
    struct window w;
    struct shape shape;
    if (!kernel_pool_rules(call, &shape, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &pooled->shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    if (!pool_has_windows(call->node))
        return true;
    if (!read_windows(call, &in->shape, &w, err))
        return false;
    kernel_window_pad(&w);
    take_gradient(&w, in, pooled, grad, out);
    return true;
}

/* --- with the places of the maxima, counted in their image or in the whole batch --- */

static int64_t image_size(const struct window *w)
{
    return window_places(w->size) * w->channels;
}

static bool max_pool_with_argmax_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool whole = node_attr_bool(call->node, "include_batch_in_index", false);
    struct window w;
    if (!read_windows(call, &in->shape, &w, err))
        return false;
    struct shape shape = kernel_window_out(&w, w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct tensor *places = out ? kernel_output(call, 1, &shape, err) : NULL;
    if (!places)
        return false;
    kernel_store_bits *store = kernel_store_bits_for(places->dtype);
    POOL_EACH(&w, spot)
    {
        int64_t best = maximum_at(&w, in, &spot), at = pool_out(&w, &spot);
        kernel_copy(out, at, in, best < 0 ? 0 : best, 1);
        store(places->data, at, (uint64_t)(whole || best < 0 ? best : best % image_size(&w)));
    }
    return true;
}

static bool max_pool_grad_with_argmax_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *grad = kernel_in(call, 1);
    const struct tensor *places = kernel_in(call, 2);
    bool whole = node_attr_bool(call->node, "include_batch_in_index", false);
    struct window w;
    if (!read_windows(call, &in->shape, &w, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    struct sums sums;
    if (!kernel_sums_init(call, out, &sums, err))
        return false;
    int64_t per_image = w.batch ? grad->count / w.batch : 1;
    for (int64_t i = 0; i < grad->count; i++) {
        int64_t to = tensor_integer(places, i), first = i / per_image * image_size(&w);
        if (to < 0 || to >= out->count - (whole ? 0 : first))
            return fail(err, INVALID,
                        "Invalid input grad_index: %lld: must be within [0, %lld)",
                        (long long)to, (long long)out->count);
        kernel_sums_add(&sums, to + (whole ? 0 : first), grad, i, 1);
    }
    kernel_sums_write(out, &sums);
    return true;
}

#define POOL(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_max_pool_ref = POOL("MaxPool", DTYPES_REAL, max_pool_run);
const struct kernel kernel_max_pool_grad_ref =
    POOL("MaxPoolGrad", DTYPES_REAL, max_pool_grad_run);
const struct kernel kernel_max_pool_v2_ref = POOL("MaxPoolV2", DTYPES_REAL, max_pool_run);
const struct kernel kernel_max_pool_grad_v2_ref =
    POOL("MaxPoolGradV2", DTYPES_REAL, max_pool_grad_run);
const struct kernel kernel_max_pool_grad_grad_ref =
    POOL("MaxPoolGradGrad", DTYPES_REAL, max_pool_grad_grad_run);
const struct kernel kernel_max_pool_grad_grad_v2_ref =
    POOL("MaxPoolGradGradV2", DTYPES_REAL, max_pool_grad_grad_run);
const struct kernel kernel_max_pool_with_argmax_ref =
    POOL("MaxPoolWithArgmax", DTYPES_REAL, max_pool_with_argmax_run);
const struct kernel kernel_max_pool_grad_with_argmax_ref =
    POOL("MaxPoolGradWithArgmax", DTYPES_REAL, max_pool_grad_with_argmax_run);
const struct kernel kernel_max_pool3d_ref = POOL("MaxPool3D", DTYPES_FLOAT, max_pool_run);
const struct kernel kernel_max_pool3d_grad_ref =
    POOL("MaxPool3DGrad", DTYPES_FLOAT, max_pool_grad_run);
const struct kernel kernel_max_pool3d_grad_grad_ref =
    POOL("MaxPool3DGradGrad", DTYPES_FLOAT, max_pool_grad_grad_run);
