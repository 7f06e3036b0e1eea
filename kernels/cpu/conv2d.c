/* conv2d.c - Conv2D and _FusedConv2D (bias, Relu) in float over oneDNN. */

#include "kernels/cpu/conv2d.h"
#include "base/error.h"
#include "kernels/cpu/winograd.h"
#include "kernels/list.h"
#include "kernels/ref/rules.h"

static bool make(struct conv2d *c, const struct conv2d_shape *shape, struct error *err)
{
    struct conv2d_layouts layouts;
    dnnl_primitive_desc_t desc;
    if (!conv2d_layouts(c, shape, &layouts, err))
        return false;
    layouts.result.data_type = dnnl_f32;
    if (!conv2d_forward(c, &layouts, &desc, err))
        return false;
    dnnl_memory_desc_t wanted = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    return onednn_primitive(&c->main, desc, err) &&
           conv2d_pack(c, &layouts.filter_ours, &wanted, err) &&
           onednn_reorder(&c->filter_in, &layouts.filter_ours, &wanted, err) &&
           onednn_arg(&c->main, DNNL_ARG_SRC, &layouts.image, err) &&
           onednn_arg(&c->main, DNNL_ARG_WEIGHTS, &wanted, err) &&
           onednn_arg(&c->main, DNNL_ARG_DST, &layouts.result, err) &&
           (!c->bias || onednn_arg(&c->main, DNNL_ARG_BIAS, &layouts.bias, err));
}

static bool run(struct conv2d *c, struct kernel_call *call, const struct conv2d_shape *shape,
                float *result, struct error *err)
{
    onednn_threads(call->threads);
    conv2d_set_factors(c, call, shape);
    if (conv2d_is_stale(c, shape, call->threads) && !make(c, shape, err))
        return false;
    const struct tensor *x = kernel_in(call, 0);
    const void *image = conv2d_factor(c, call, tensor_f32(x), x->count, err);
    const void *filter = image ? conv2d_filter(c, call, kernel_in(call, 1), err) : NULL;
    if (!filter)
        return false;
    onednn_set(&c->filter_in, DNNL_ARG_FROM, filter);
    onednn_set(&c->filter_in, DNNL_ARG_TO, c->packed);
    onednn_set(&c->main, DNNL_ARG_SRC, image);
    onednn_set(&c->main, DNNL_ARG_WEIGHTS, c->packed ? c->packed : filter);
    onednn_set(&c->main, DNNL_ARG_DST, result);
    if (c->bias)
        onednn_set(&c->main, DNNL_ARG_BIAS, tensor_f32(kernel_in(call, 2)));
    return onednn_run(&c->filter_in, err) && onednn_run(&c->main, err);
}

static void add_nothing(const struct conv2d *c, const struct kernel_call *call, float *out,
                        int64_t count, int64_t channels)
{
    for (int64_t i = 0; i < count; i++) {
        out[i] = c->bias ? tensor_f32(kernel_in(call, 2))[i % channels] : 0;
        if (c->relu && out[i] < 0)
            out[i] = 0;
    }
}

static bool conv2d_run(struct kernel_call *call, struct error *err)
{
    struct conv2d *c = call->state;
    struct conv2d_shape s;
    struct shape image, filter;
    if (!kernel_conv_rules(call, &image, &filter, err))
        return false;
    conv2d_shape(c, &image, &filter, &s);
    if (c->bias && kernel_in(call, 2)->count != s.out_channels)
        return fail(err, INVALID, "the bias has %lld values for %lld channels",
                    (long long)kernel_in(call, 2)->count, (long long)s.out_channels);
    struct tensor *out =
        kernel_output(call, 0, &SHAPE(s.batch, s.out_height, s.out_width, s.out_channels), err);
    if (!out)
        return false;
    if (out->count == 0)
        return true;
    if (s.in_channels == 0) { /* sums of nothing */
        add_nothing(c, call, tensor_f32_mut(out), out->count, s.out_channels);
        return true;
    }
    if (c->winograd && winograd_suits(call, &s))
        return winograd_forward(
            call, &s, tensor_f32(kernel_in(call, 0)), tensor_f32(kernel_in(call, 1)),
            c->bias ? tensor_f32(kernel_in(call, 2)) : NULL, c->relu, tensor_f32_mut(out), err);
    return run(c, call, &s, tensor_f32_mut(out), err);
}

const struct kernel kernel_conv2d_cpu = {
    .op = "Conv2D",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = conv2d_accepts,
    .prepare = conv2d_prepare,
    .release = conv2d_release,
    .run = conv2d_run,
};

const struct kernel kernel_fused_conv2d_cpu = {
    .op = "_FusedConv2D",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = conv2d_accepts,
    .prepare = conv2d_prepare,
    .release = conv2d_release,
    .run = conv2d_run,
};
