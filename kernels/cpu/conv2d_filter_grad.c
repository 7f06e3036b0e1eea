/*
 * conv2d_filter_grad.c - Conv2DBackpropFilter in float over oneDNN.
 *
 * DESIGN.  oneDNN adds up all positions of all images one after the other, in float.  Over
 * thousands of them that loses more than TensorFlow's blocked sums do.  So a call to oneDNN
 * takes some images at a time, or some rows of a large one, and its sum is added to that of the
 * others.  Such parts have few different sizes (those at the edges of an image are padded):
 * each size has a primitive of its own, and all write the same layout.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/winograd.h"
#include "kernels/list.h"
#include "kernels/ref/rules.h"

/* The positions that one call may add up; as many more if that saves cutting images. */
enum { TERMS = 1024 };

/* --- parts --- */

struct conv2d_part {
    struct conv2d_shape shape;
    struct onednn_primitive primitive;
};

void conv2d_forget_parts(struct conv2d *c)
{
    for (int i = 0; i < c->parts_count; i++)
        onednn_release(&c->parts[i].primitive);
    free(c->parts);
    c->parts = NULL;
    c->parts_count = c->parts_capacity = 0;
}

/* How many images make a part: of those that divide the batch, as many as TERMS allows.  What
 * rounding to bfloat16 loses is more than long sums do. */
static int64_t images_of_part(const struct conv2d *c, const struct conv2d_shape *s)
{
    if (c->factors == dnnl_bf16)
        return s->batch;
    int64_t images = TERMS / (s->out_height * s->out_width);
    if (images >= s->batch)
        return s->batch;
    while (images > 1 && s->batch % images)
        images--;
    return images > 1 ? images : 1;
}

/* How many rows of the result make a part: all but for large images. */
static int64_t rows_of_part(const struct conv2d *c, const struct conv2d_shape *s)
{
    if (c->factors == dnnl_bf16 || s->out_height * s->out_width < 2 * TERMS)
        return s->out_height;
    return s->out_width < TERMS ? TERMS / s->out_width : 1;
}

/* The sizes of rows [row, row + rows) of the result, and the first row of the image they see.
 */
static int64_t cut(const struct conv2d *c, const struct conv2d_shape *s, int64_t row,
                   int64_t rows, struct conv2d_shape *part)
{
    int64_t extent = (s->filter_height - 1) * s->dilation_height + 1;
    int64_t from = row * s->stride_height - s->pad_top;
    int64_t to = (row + rows - 1) * s->stride_height - s->pad_top + extent;
    int64_t last = to < s->in_height ? to : s->in_height;
    int64_t first = from > 0 ? from : 0;
    *part = *s;
    part->batch = images_of_part(c, s);
    if (rows == s->out_height)
        return 0; /* whole images, with the rows that the filter never reaches */
    part->out_height = rows;
    part->pad_top = first - from;
    part->pad_bottom = to - last;
    part->in_height = last - first;
    return first;
}

/*
 * Windows of one element with strides: oneDNN's own code for them (as of 2.6) writes beyond its
 * scratch memory when the channels do not fill its vectors.
 */
static const char *avoided(const struct conv2d_shape *s)
{
    bool one = s->filter_height == 1 && s->filter_width == 1;
    bool strided = s->stride_height > 1 || s->stride_width > 1;
    return one && strided && s->in_channels / s->groups % 16 ? "jit_1x1" : " ";
}

/* Makes the primitive; all but the first must write the layout that the first has chosen. */
static bool make_part(struct conv2d *c, struct conv2d_part *part, struct error *err)
{
    struct conv2d_layouts l;
    dnnl_primitive_desc_t hint;
    if (!conv2d_layouts(c, &part->shape, &l, err) || !conv2d_forward(c, &l, &hint, err))
        return false;
    l.filter_any.data_type = dnnl_f32;
    const dnnl_memory_desc_t *wanted = c->given_count ? &c->given : &l.filter_any;
    dnnl_convolution_desc_t backward;
    dnnl_primitive_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
        &backward, dnnl_convolution_direct, &l.image, wanted, NULL, &l.result, l.strides,
        l.dilations, l.pad_before, l.pad_after);
    bool made = onednn_check(status, "gradient of a convolution's filter", err) &&
                onednn_desc(&backward, hint, avoided(&part->shape), &desc, err);
    dnnl_primitive_desc_destroy(hint);
    if (!made)
        return false;
    if (!c->given_count) {
        c->given = *dnnl_primitive_desc_query_md(desc, dnnl_query_diff_weights_md, 0);
        c->given_count = (int64_t)(dnnl_memory_desc_get_size(&c->given) / sizeof(float));
        if (!conv2d_pack(c, &l.filter_ours, &c->given, err) ||
            !onednn_reorder(&c->filter_out, &c->given, &l.filter_ours, err)) {
            dnnl_primitive_desc_destroy(desc);
            return false;
        }
    }
    return onednn_primitive(&part->primitive, desc, err) &&
           onednn_arg(&part->primitive, DNNL_ARG_SRC, &l.image, err) &&
           onednn_arg(&part->primitive, DNNL_ARG_DIFF_WEIGHTS, &c->given, err) &&
           onednn_arg(&part->primitive, DNNL_ARG_DIFF_DST, &l.result, err);
}

/* The primitive for parts of that shape, made at first use. */
static struct onednn_primitive *find_part(struct conv2d *c, const struct conv2d_shape *shape,
                                          struct error *err)
{
    for (int i = 0; i < c->parts_count; i++)
        if (!memcmp(&c->parts[i].shape, shape, sizeof(*shape)))
            return &c->parts[i].primitive;
    c->parts = alloc_grow(c->parts, c->parts_count, &c->parts_capacity, sizeof(*c->parts));
    struct conv2d_part *part = &c->parts[c->parts_count++];
    *part = (struct conv2d_part){.shape = *shape};
    return make_part(c, part, err) ? &part->primitive : NULL;
}

/* --- summing --- */

static void add(const struct kernel_call *call, float *sum, const float *part, int64_t count)
{
    int threads = parallel_threads(call, count);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(count, 16, threads, t);
        for (int64_t i = r.from; i < r.to; i++)
            sum[i] += part[i];
    }
}

/* Images and gradients of the results. */
struct factors {
    const char *image, *grad;
};

/* Where a part begins in a batch of images, in bytes. */
static int64_t offset(const struct conv2d *c, int64_t image, int64_t row, int64_t height,
                      int64_t width, int64_t channels)
{
    int64_t size = c->factors == dnnl_bf16 ? 2 : sizeof(float);
    return (image * height + row) * width * channels * size;
}

/* Adds the rows from `row` on of the images from `image` on; the first part sets the sum. */
static bool add_part(struct conv2d *c, struct kernel_call *call, const struct conv2d_shape *s,
                     const struct factors *factors, int64_t image, int64_t row,
                     float **part_sum, struct error *err)
{
    int64_t rows = rows_of_part(c, s);
    struct conv2d_shape shape;
    int64_t in_row =
        cut(c, s, row, rows < s->out_height - row ? rows : s->out_height - row, &shape);
    if (shape.in_height <= 0)
        return true; /* sees padding only */
    struct onednn_primitive *primitive = find_part(c, &shape, err);
    if (!primitive)
        return false;
    float *sum = c->packed ? c->packed : call->out[0].data;
    bool first = !*part_sum;
    if (first &&
        !(*part_sum = kernel_scratch(call, (size_t)c->given_count * sizeof(float), err)))
        return false;
    onednn_set(primitive, DNNL_ARG_SRC,
               factors->image +
                   offset(c, image, in_row, s->in_height, s->in_width, s->in_channels));
    onednn_set(primitive, DNNL_ARG_DIFF_DST,
               factors->grad +
                   offset(c, image, row, s->out_height, s->out_width, s->out_channels));
    onednn_set(primitive, DNNL_ARG_DIFF_WEIGHTS, first ? sum : *part_sum);
    if (!onednn_run(primitive, err))
        return false;
    if (!first)
        add(call, sum, *part_sum, c->given_count);
    return true;
}

static bool run_filter(struct conv2d *c, struct kernel_call *call, const struct conv2d_shape *s,
                       struct tensor *dw, struct error *err)
{
    float *part_sum = NULL;
    const struct tensor *x = kernel_in(call, 0), *dy = kernel_in(call, 2);
    onednn_threads(call->threads);
    conv2d_set_factors(c, call, s);
    struct factors factors = {.image = conv2d_factor(c, call, tensor_f32(x), x->count, err)};
    if (!factors.image ||
        !(factors.grad = conv2d_factor(c, call, tensor_f32(dy), dy->count, err)))
        return false;
    if (conv2d_is_stale(c, s, call->threads))
        c->given_count = 0;
    for (int64_t image = 0; image < s->batch; image += images_of_part(c, s))
        for (int64_t row = 0; row < s->out_height; row += rows_of_part(c, s))
            if (!add_part(c, call, s, &factors, image, row, &part_sum, err))
                return false;
    if (!part_sum) { /* padding only */
        memset(dw->data, 0, (size_t)dw->count * sizeof(float));
        return true;
    }
    onednn_set(&c->filter_out, DNNL_ARG_FROM, c->packed);
    onednn_set(&c->filter_out, DNNL_ARG_TO, dw->data);
    return onednn_run(&c->filter_out, err);
}

static bool conv2d_filter_run(struct kernel_call *call, struct error *err)
{
    struct conv2d *c = call->state;
    struct shape image, filter;
    struct conv2d_shape s;
    if (!kernel_conv_rules(call, &image, &filter, err))
        return false;
    conv2d_shape(c, &image, &filter, &s);
    struct tensor *dw = kernel_output(call, 0, &filter, err);
    if (!dw)
        return false;
    if (kernel_in(call, 2)->count == 0 || kernel_in(call, 0)->count == 0 || dw->count == 0) {
        memset(dw->data, 0, (size_t)dw->count * sizeof(float));
        return true;
    }
    if (c->winograd && winograd_suits(call, &s))
        return winograd_filter_grad(call, &s, tensor_f32(kernel_in(call, 0)),
                                    tensor_f32(kernel_in(call, 2)), tensor_f32_mut(dw), err);
    return run_filter(c, call, &s, dw, err);
}

const struct kernel kernel_conv2d_filter_grad_cpu = {
    .op = "Conv2DBackpropFilter",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = conv2d_accepts,
    .prepare = conv2d_prepare,
    .release = conv2d_release,
    .run = conv2d_filter_run,
};
