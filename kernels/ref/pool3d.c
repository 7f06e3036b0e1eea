/* pool3d.c - maxima and means of windows over volumes, and their gradients. */

#include "kernels/ref/volume.h"

/* The part of the window at output place `o` that lies within the input: its first element and
 * its size; returns the number of elements. */
static int64_t clip_window(const struct volume *v, const int64_t o[3], int64_t begin[3],
                           int64_t size[3])
{
    for (int d = 0; d < 3; d++) {
        int64_t from = o[d] * v->stride[d] - v->before[d], to = from + v->window[d];
        from = from < 0 ? 0 : from;
        to = to > v->size[d] ? v->size[d] : to;
        begin[d] = from;
        size[d] = to > from ? to - from : 0;
    }
    return volume_places(size);
}

/* Where element i of a clipped window is in the input. */
static int64_t window_element(const struct volume *v, const int64_t begin[3],
                              const int64_t size[3], int64_t i, int64_t n, int64_t c)
{
    int64_t place[3];
    volume_place(size, i, place);
    for (int d = 0; d < 3; d++)
        place[d] += begin[d];
    return volume_at(v, v->size, v->channels, n, place, c);
}

/* The first maximum of the window, row-major; -1 for a window of no elements. */
static int64_t maximum_at(const struct volume *v, kernel_load *load, const void *data,
                          int64_t n, const int64_t o[3], int64_t c)
{
    int64_t begin[3], size[3], best = -1, count = clip_window(v, o, begin, size);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = window_element(v, begin, size, i, n, c);
        if (best < 0 || load(data, at) > load(data, best))
            best = at;
    }
    return best;
}

#define EACH_OUTPUT(v, n, o, c)                                                                \
    for (int64_t n = 0; n < (v)->batch; n++)                                                   \
        for (int64_t o = 0; o < volume_places((v)->out); o++)                                  \
            for (int64_t c = 0; c < (v)->channels; c++)

static bool check_pooled(const struct volume *v, const struct tensor *pooled, struct error *err)
{
    struct shape expected = kernel_volume_out(v, v->channels);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return shape_equal(&expected, &pooled->shape) ||
           fail(err, INVALID, "a tensor of shape %s, pooling gives %s",
                shape_text(&pooled->shape, a, sizeof(a)), shape_text(&expected, b, sizeof(b)));
}

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

static bool max_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct volume v;
    if (!kernel_volume(call->node, &in->shape, NULL, &v, err))
        return false;
    struct shape shape = kernel_volume_out(&v, v.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    EACH_OUTPUT(&v, n, o, c)
    {
        int64_t place[3];
        volume_place(v.out, o, place);
        int64_t best = maximum_at(&v, load, in->data, n, place, c);
        store(out->data, volume_at(&v, v.out, v.channels, n, place, c),
              best < 0 ? 0 : load(in->data, best));
    }
    return true;
}

/* The gradient goes to all elements of its window that are the maximum given, as TensorFlow has
 * it for volumes. */
static void spread(const struct volume *v, const struct tensor *const in[3], int64_t n,
                   int64_t o, int64_t c, double *sums)
{
    kernel_load *load = kernel_load_for(in[0]->dtype);
    int64_t place[3], begin[3], size[3];
    volume_place(v->out, o, place);
    int64_t count = clip_window(v, place, begin, size);
    int64_t own = volume_at(v, v->out, v->channels, n, place, c);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = window_element(v, begin, size, i, n, c);
        if (load(in[0]->data, at) == load(in[1]->data, own))
            sums[at] += load(in[2]->data, own);
    }
}

/* The gradient goes to the maxima; `again`: is taken from the first that is the maximum given.
 */
static bool max_pool_back(struct kernel_call *call, bool again, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *pooled = kernel_in(call, 1);
    const struct tensor *grad = kernel_in(call, 2);
    struct volume v;
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!kernel_volume(call->node, &in->shape, NULL, &v, err) ||
        !check_pooled(&v, pooled, err) || (!again && !check_pooled(&v, grad, err)))
        return false;
    if (again && !shape_equal(&grad->shape, &in->shape))
        return fail(err, INVALID, "the gradient has shape %s, the input %s",
                    shape_text(&grad->shape, a, sizeof(a)),
                    shape_text(&in->shape, b, sizeof(b)));
    struct tensor *out = kernel_output(call, 0, again ? &pooled->shape : &in->shape, err);
    double *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_volume_pad(&v);
    EACH_OUTPUT(&v, n, o, c)
    {
        int64_t place[3];
        if (!again) {
            spread(&v, (const struct tensor *const[]){in, pooled, grad}, n, o, c, sums);
            continue;
        }
        int64_t begin[3], size[3], at;
        volume_place(v.out, o, place);
        at = volume_at(&v, v.out, v.channels, n, place, c);
        int64_t count = clip_window(&v, place, begin, size), k = 0, from = 0;
        for (; k < count; k++) {
            from = window_element(&v, begin, size, k, n, c);
            if (load(in->data, from) == load(pooled->data, at))
                break;
        }
        if (k < count)
            sums[at] = load(grad->data, from);
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

static bool avg_pool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct volume v;
    if (!kernel_volume(call->node, &in->shape, NULL, &v, err))
        return false;
    struct shape shape = kernel_volume_out(&v, v.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    EACH_OUTPUT(&v, n, o, c)
    {
        int64_t place[3], begin[3], size[3];
        volume_place(v.out, o, place);
        int64_t count = clip_window(&v, place, begin, size);
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += load(in->data, window_element(&v, begin, size, i, n, c));
        store(out->data, volume_at(&v, v.out, v.channels, n, place, c), sum / (double)count);
    }
    return true;
}

static bool avg_pool_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grad = kernel_in(call, 1);
    struct shape shape;
    struct volume v;
    if (!kernel_shape_in(call, 0, &shape, err) ||
        !kernel_volume(call->node, &shape, NULL, &v, err) || !check_pooled(&v, grad, err))
        return false;
    kernel_volume_pad(&v);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums = out ? zero_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(grad->dtype);
    EACH_OUTPUT(&v, n, o, c)
    {
        int64_t place[3], begin[3], size[3];
        volume_place(v.out, o, place);
        int64_t count = clip_window(&v, place, begin, size);
        double dy = load(grad->data, volume_at(&v, v.out, v.channels, n, place, c));
        for (int64_t i = 0; i < count; i++)
            sums[window_element(&v, begin, size, i, n, c)] += dy / (double)count;
    }
    store_sums(out, sums);
    return true;
}

#define POOL(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_max_pool3d_ref = POOL("MaxPool3D", DTYPES_FLOAT, max_pool_run);
const struct kernel kernel_max_pool3d_grad_ref =
    POOL("MaxPool3DGrad", DTYPES_FLOAT, max_pool_grad_run);
const struct kernel kernel_max_pool3d_grad_grad_ref =
    POOL("MaxPool3DGradGrad", DTYPES_FLOAT, max_pool_grad_grad_run);
const struct kernel kernel_avg_pool3d_ref = POOL("AvgPool3D", DTYPES_FLOAT, avg_pool_run);
const struct kernel kernel_avg_pool3d_grad_ref =
    POOL("AvgPool3DGrad", DTYPES_FLOAT, avg_pool_grad_run);
