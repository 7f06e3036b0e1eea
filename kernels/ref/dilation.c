/*
 * dilation.c - the largest sum of an image and a filter that slides over it, and where it came
 * from.
 *
 * Sums are of the type of the image, so that of several that are equal there the first counts.
 */

#include "kernels/ref/pool.h"
#include "kernels/ref/rules.h"
#include "kernels/ref/sums.h"

#include <float.h>

struct dilation {
    struct window w;
    const struct tensor *in, *filter;
};

/* The largest sum for an element of the output, and where its terms are. */
struct maximum {
    uint64_t value; /* in the first bytes, as the type has it */
    int64_t in, filter;
};

/* Less than any sum is greater than: NaN and negative infinity are not. */
static void set_lowest(enum dtype dtype, uint64_t *value)
{
    kernel_store_bits *store = kernel_store_bits_for(dtype);
    uint64_t sign = UINT64_C(1) << (8 * dtype_size(dtype) - 1);
    *value = 0;
    if (store)
        store(value, 0, BIT(dtype) & DTYPES_SIGNED ? sign : 0);
    else
        kernel_store_for(dtype)(value, 0,
                                dtype == F64   ? -DBL_MAX
                                : dtype == F16 ? -65504.0
                                : dtype == F32 ? -(double)FLT_MAX
                                               : -0x1.fep127);
}

static uint64_t sum_at(const struct dilation *d, int64_t in, int64_t filter)
{
    enum dtype dtype = d->in->dtype;
    uint64_t sum = 0;
    kernel_load_bits *bits = kernel_load_bits_for(dtype);
    if (bits) {
        kernel_store_bits_for(dtype)(&sum, 0,
                                     bits(d->in->data, in) + bits(d->filter->data, filter));
    } else {
        kernel_load *load = kernel_load_for(dtype);
        kernel_store_for(dtype)(&sum, 0, load(d->in->data, in) + load(d->filter->data, filter));
    }
    return sum;
}

/* Where nothing is greater than the lowest number, it came from the first place of the window.
 */
static struct maximum maximum_of(const struct dilation *d, const struct spot *spot)
{
    const struct window *w = &d->w;
    kernel_greater *greater = kernel_greater_for(d->in->dtype);
    int64_t first[3] = {0, 0, 0}, at[3] = {0, 0, 0};
    for (int i = 1; i < 3; i++) {
        first[i] = spot->place[i] * w->stride[i] - w->before[i];
        at[i] = first[i] < 0 ? 0 : first[i];
    }
    struct maximum best = {.in = window_at(w, w->size, w->channels, spot->n, at, spot->c),
                           .filter = spot->c};
    set_lowest(d->in->dtype, &best.value);
    for (int64_t y = 0; y < w->window[1]; y++)
        for (int64_t x = 0; x < w->window[2]; x++) {
            at[1] = first[1] + y * w->dilation[1];
            at[2] = first[2] + x * w->dilation[2];
            if (at[1] < 0 || at[1] >= w->size[1] || at[2] < 0 || at[2] >= w->size[2])
                continue;
            int64_t in = window_at(w, w->size, w->channels, spot->n, at, spot->c);
            int64_t filter = (y * w->window[2] + x) * w->channels + spot->c;
            uint64_t sum = sum_at(d, in, filter);
            if (greater(&sum, 0, &best.value, 0))
                best = (struct maximum){sum, in, filter};
        }
    return best;
}

static bool check_attr(const struct node *node, const char *name, const char *field,
                       const char *what, struct error *err)
{
    int count;
    const int64_t *values = node_attr_ints(node, name, &count);
    if (count != 4)
        return fail(err, INVALID, "%s field must specify 4 dimensions", field);
    return (values[0] == 1 && values[3] == 1) ||
           fail(err, UNIMPLEMENTED, "%s is only supported across spatial dimensions.", what);
}

static bool check_slides(const struct node *node, const struct shape *in,
                         const struct shape *filter, struct error *err)
{
    int count;
    for (int d = 0; d < 2; d++) {
        int64_t rate = node_attr_ints(node, "rates", &count)[1 + d], out;
        struct slide slide = {
            .size = in->dims[1 + d],
            .window = (filter->dims[d] - 1) * rate + 1,
            .dilation = 1,
            .stride = node_attr_ints(node, "strides", &count)[1 + d],
            .same = strcmp(node_attr_string(node, "padding", "VALID"), "SAME") == 0,
        };
        if (!kernel_slide(&slide, &out, err))
            return false;
    }
    return true;
}

static bool dilation_begin(struct kernel_call *call, struct dilation *d, struct error *err)
{
    d->in = kernel_in(call, 0);
    d->filter = kernel_in(call, 1);
    const struct shape *in = &d->in->shape, *filter = &d->filter->shape;
    char text[SHAPE_TEXT_BYTES];
    if (!check_attr(call->node, "strides", "Sliding window stride", "Stride", err) ||
        !check_attr(call->node, "rates", "Input stride (atrous rate)", "Rate", err))
        return false;
    if (in->rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(in, text, sizeof(text)));
    if (filter->rank != 3)
        return fail(err, INVALID, "filter must be 3-dimensional: %s",
                    shape_text(filter, text, sizeof(text)));
    if (in->dims[3] != filter->dims[2])
        return fail(err, INVALID, "input and filter must have the same depth: %lld vs %lld",
                    (long long)in->dims[3], (long long)filter->dims[2]);
    return check_slides(call->node, in, filter, err) &&
           kernel_window(call->node, in, filter->dims, &d->w, err);
}

static bool dilation_run(struct kernel_call *call, struct error *err)
{
    struct dilation d;
    if (!dilation_begin(call, &d, err))
        return false;
    struct shape shape = kernel_window_out(&d.w, d.w.channels);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    size_t size = dtype_size(out->dtype);
    POOL_EACH(&d.w, spot)
    {
        struct maximum best = maximum_of(&d, &spot);
        memcpy((char *)out->data + (size_t)pool_out(&d.w, &spot) * size, &best.value, size);
    }
    return true;
}

/* The gradient of each output goes to where its largest sum came from: in input `to`. */
static bool back(struct kernel_call *call, int to, struct error *err)
{
    struct dilation d;
    const struct tensor *grad = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES];
    if (!dilation_begin(call, &d, err))
        return false;
    if (grad->shape.rank != 4)
        return fail(err, INVALID, "out_backprop must be 4-dimensional%s",
                    shape_text(&grad->shape, text, sizeof(text)));
    struct shape expected = kernel_window_out(&d.w, d.w.channels);
    if (!shape_equal(&grad->shape, &expected))
        return fail(err, INVALID, "out_backprop has incompatible size.");
    struct sums sums;
    struct tensor *out = kernel_output(call, 0, &kernel_in(call, to)->shape, err);
    if (!kernel_sums_init(call, out, &sums, err))
        return false;
    if (out->count == 0)
        return true;
    POOL_EACH(&d.w, spot)
    {
        struct maximum best = maximum_of(&d, &spot);
        kernel_sums_add(&sums, to ? best.filter : best.in, grad, pool_out(&d.w, &spot), 1);
    }
    kernel_sums_write(out, &sums);
    return true;
}

static bool back_input_run(struct kernel_call *call, struct error *err)
{
    return back(call, 0, err);
}

static bool back_filter_run(struct kernel_call *call, struct error *err)
{
    return back(call, 1, err);
}

#define DILATION(name_, run_)                                                                  \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = DTYPES_REAL, .run = run_                         \
    }

const struct kernel kernel_dilation2d_ref = DILATION("Dilation2D", dilation_run);
const struct kernel kernel_dilation2d_backprop_input_ref =
    DILATION("Dilation2DBackpropInput", back_input_run);
const struct kernel kernel_dilation2d_backprop_filter_ref =
    DILATION("Dilation2DBackpropFilter", back_filter_run);
