/* pool.c - maxima and means of windows, and their gradients. */

#include "kernels/ref/window.h"

#include <math.h>

/* The part of the window at output place o that lies within the input: [begin, end). */
static void span(const struct window *w, int i, int64_t o, int64_t *begin, int64_t *end)
{
    *begin = o * w->stride[i] - w->before[i];
    *end = *begin + w->window[i];
    *begin = *begin < 0 ? 0 : *begin;
    *end = *end > w->size[i] ? w->size[i] : *end;
}

/* Index of the first maximum of a window, row-major; -1 for a window of no elements. */
static int64_t maximum_at(const struct window *w, kernel_load *load, const void *data,
                          int64_t n, int64_t oy, int64_t ox, int64_t c)
{
    int64_t y0, y1, x0, x1, best = -1;
    span(w, 0, oy, &y0, &y1);
    span(w, 1, ox, &x0, &x1);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            int64_t at = window_at(w, w->size, w->channels, n, y, x, c);
            if (best < 0 || load(data, at) > load(data, best))
                best = at;
        }
    return best;
}

/* Walks the output in the order (batch, y, x, channel). */
#define EACH_OUTPUT(w, n, y, x, c)                                                             \
    for (int64_t n = 0; n < (w)->batch; n++)                                                   \
        for (int64_t y = 0; y < (w)->out[0]; y++)                                              \
            for (int64_t x = 0; x < (w)->out[1]; x++)                                          \
                for (int64_t c = 0; c < (w)->channels; c++)

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
    int ksize_count, strides_count;
    const int64_t *ksize = node_attr_ints(call->node, "ksize", &ksize_count);
    const int64_t *strides = node_attr_ints(call->node, "strides", &strides_count);
    if (in->shape.rank != 4 || strides_count != 4)
        return fail(err, INVALID, "tensor_in must be 4-dimensional");
    if (ksize[1] != 1 || ksize[2] != 1 || strides[3] != group)
        return fail(err, UNIMPLEMENTED,
                    "Depthwise max pooling requires the depth window to equal "
                    "the depth stride, and no other window.");
    if (in->shape.dims[3] % group != 0)
        return fail(err, UNIMPLEMENTED,
                    "Depthwise max pooling requires the depth window to evenly "
                    "divide the input depth.");
    struct shape shape = in->shape;
    shape.dims[3] /= group;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t best = i * group;
        for (int64_t c = best + 1; c < (i + 1) * group; c++)
            if (load(in->data, c) > load(in->data, best))
                best = c;
        kernel_copy(out, i, in, best, 1);
    }
    return true;
}

/* The windows of a pooling op of any version on images of shape `input`. */
static bool pool_window(const struct kernel_call *call, const struct shape *input,
                        struct window *w, struct error *err)
{
    if (node_attr(call->node, "ksize"))
        return kernel_window(call->node, input, NULL, w, err);
    return kernel_window_inputs(call, call->in_count - 2, input, w, err);
}

static bool max_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t group = window_channels(call->node);
    struct window w;
    if (group > 1)
        return pool_channels(call, group, err);
    if (!pool_window(call, &in->shape, &w, err))
        return false;
    struct shape shape = kernel_window_out(&w, w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    EACH_OUTPUT(&w, n, y, x, c)
    {
        int64_t best = maximum_at(&w, load, in->data, n, y, x, c);
        store(out->data, window_at(&w, w.out, w.channels, n, y, x, c),
              best < 0 ? 0 : load(in->data, best));
    }
    return true;
}

static bool check_grad(const struct window *w, const struct tensor *grad, struct error *err)
{
    struct shape expected = kernel_window_out(w, w->channels);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(&expected, &grad->shape) ||
           fail(err, INVALID, "the gradient has shape %s, pooling gives %s",
                shape_text(&grad->shape, a, sizeof(a)), shape_text(&expected, b, sizeof(b)));
}

/* Sums of gradients by element of the input, stored at the end. */
static double *zero_sums(struct kernel_call *call, const struct tensor *out, struct error *err)
{
    double *sums = kernel_scratch(call, (size_t)out->count * sizeof(*sums) + 1, err);
    if (sums)
        memset(sums, 0, (size_t)out->count * sizeof(*sums));
    return sums;
}

static void store_sums(struct tensor *out, const double *sums)
{
    kernel_store *store = kernel_store_for(out->dtype);
    for (int64_t i = 0; i < out->count; i++)
        store(out->data, i, sums[i]);
}

/* The gradient goes to the first maximum of each window; `again`: is taken from there. */
static bool max_pool_back(struct kernel_call *call, bool again, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *pooled = kernel_in(call, 1);
    const struct tensor *grad = kernel_in(call, 2);
    struct window w;
    if (!pool_window(call, &in->shape, &w, err) || !check_grad(&w, pooled, err) ||
        (!again && !check_grad(&w, grad, err)))
        return false;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (again && !shape_equal(&grad->shape, &in->shape))
        return fail(err, INVALID, "the gradient has shape %s, the input %s",
                    shape_text(&grad->shape, a, sizeof(a)),
                    shape_text(&in->shape, b, sizeof(b)));
    struct tensor *out = kernel_output(call, 0, again ? &pooled->shape : &in->shape, err);
    double *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    EACH_OUTPUT(&w, n, y, x, c)
    {
        int64_t best = maximum_at(&w, load, in->data, n, y, x, c);
        int64_t at = window_at(&w, w.out, w.channels, n, y, x, c);
        if (best >= 0)
            sums[again ? at : best] += load(grad->data, again ? best : at);
    }
    store_sums(out, sums);
    return true;
}

static bool max_pool_grad_run(struct kernel_call *call, struct error *err)
{
    return max_pool_back(call, false, err);
}

static bool max_pool_grad_grad_run(struct kernel_call *call, struct error *err)
{
    return max_pool_back(call, true, err);
}

/* --- with the places of the maxima, counted in their image or in the whole batch --- */

static int64_t image_size(const struct window *w)
{
    return w->size[0] * w->size[1] * w->channels;
}

static bool max_pool_with_argmax_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    bool whole = node_attr_bool(call->node, "include_batch_in_index", false);
    struct window w;
    if (!kernel_window(call->node, &in->shape, NULL, &w, err))
        return false;
    struct shape shape = kernel_window_out(&w, w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct tensor *places = out ? kernel_output(call, 1, &shape, err) : NULL;
    if (!places)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    EACH_OUTPUT(&w, n, y, x, c)
    {
        int64_t best = maximum_at(&w, load, in->data, n, y, x, c);
        int64_t at = window_at(&w, w.out, w.channels, n, y, x, c);
        kernel_copy(out, at, in, best < 0 ? 0 : best, 1);
        kernel_store_bits_for(places->dtype)(
            places->data, at, (uint64_t)(whole || best < 0 ? best : best % image_size(&w)));
    }
    return true;
}

static bool max_pool_grad_with_argmax_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *grad = kernel_in(call, 1);
    const struct tensor *places = kernel_in(call, 2);
    bool whole = node_attr_bool(call->node, "include_batch_in_index", false);
    struct window w;
    if (!kernel_window(call->node, &in->shape, NULL, &w, err) || !check_grad(&w, grad, err) ||
        !check_grad(&w, places, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    double *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    int64_t per_image = w.batch ? grad->count / w.batch : 1;
    for (int64_t i = 0; i < grad->count; i++) {
        int64_t to = tensor_integer(places, i) + (whole ? 0 : i / per_image * image_size(&w));
        if (to < 0 || to >= out->count)
            return fail(err, INVALID,
                        "Invalid input grad_index: %lld: must be within [0, %lld)",
                        (long long)to, (long long)out->count);
        sums[to] += kernel_load_for(grad->dtype)(grad->data, i);
    }
    store_sums(out, sums);
    return true;
}

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
    EACH_OUTPUT(&w, n, oy, ox, c)
    {
        int64_t y0, y1, x0, x1;
        double sum = 0;
        span(&w, 0, oy, &y0, &y1);
        span(&w, 1, ox, &x0, &x1);
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++)
                sum += load(in->data, window_at(&w, w.size, w.channels, n, y, x, c));
        double count = (double)((y1 - y0) * (x1 - x0));
        store(out->data, window_at(&w, w.out, w.channels, n, oy, ox, c), sum / count);
    }
    return true;
}

static bool avg_pool_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 1);
    struct shape shape;
    struct window w;
    if (!kernel_shape_in(call, 0, &shape, err) ||
        !kernel_window(call->node, &shape, NULL, &w, err) || !check_grad(&w, grad, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(grad->dtype);
    EACH_OUTPUT(&w, n, oy, ox, c)
    {
        int64_t y0, y1, x0, x1;
        span(&w, 0, oy, &y0, &y1);
        span(&w, 1, ox, &x0, &x1);
        double share = load(grad->data, window_at(&w, w.out, w.channels, n, oy, ox, c)) /
                       (double)((y1 - y0) * (x1 - x0));
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++)
                sums[window_at(&w, w.size, w.channels, n, y, x, c)] += share;
    }
    store_sums(out, sums);
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
const struct kernel kernel_avg_pool_ref = POOL("AvgPool", DTYPES_FLOAT, avg_pool_run);
const struct kernel kernel_avg_pool_grad_ref =
    POOL("AvgPoolGrad", DTYPES_FLOAT, avg_pool_grad_run);
