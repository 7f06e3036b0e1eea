/* conv2d_grad.c - Conv2DBackpropInput in float over oneDNN, and what both gradients check. */

#include "base/error.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/winograd.h"
#include "kernels/list.h"
#include "kernels/ref/rules.h"

static bool make_input(struct conv2d *c, const struct conv2d_shape *shape, struct error *err)
{
    struct conv2d_layouts l;
    dnnl_primitive_desc_t hint;
    if (!conv2d_layouts(c, shape, &l, err) || !conv2d_forward(c, &l, &hint, err))
        return false;
    l.image.data_type = dnnl_f32;
    dnnl_convolution_desc_t backward;
    dnnl_primitive_desc_t desc;
    dnnl_status_t status = dnnl_dilated_convolution_backward_data_desc_init(
        &backward, dnnl_convolution_direct, &l.image, &l.filter_any, &l.result, l.strides,
        l.dilations, l.pad_before, l.pad_after);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&desc, &backward, NULL, onednn_engine(err), hint);
    dnnl_primitive_desc_destroy(hint);
    if (!onednn_check(status, "gradient of a convolution's input", err))
        return false;
    dnnl_memory_desc_t wanted = *dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    return onednn_primitive(&c->main, desc, err) &&
           conv2d_pack(c, &l.filter_ours, &wanted, err) &&
           onednn_reorder(&c->filter_in, &l.filter_ours, &wanted, err) &&
           onednn_arg(&c->main, DNNL_ARG_DIFF_SRC, &l.image, err) &&
           onednn_arg(&c->main, DNNL_ARG_WEIGHTS, &wanted, err) &&
           onednn_arg(&c->main, DNNL_ARG_DIFF_DST, &l.result, err);
}

static bool run_input(struct conv2d *c, struct kernel_call *call,
                      const struct conv2d_shape *shape, float *dx, struct error *err)
{
    onednn_threads(call->threads);
    conv2d_set_factors(c, call, shape);
    if (conv2d_is_stale(c, shape, call->threads) && !make_input(c, shape, err))
        return false;
    const struct tensor *dy = kernel_in(call, 2);
    const void *grad = conv2d_factor(c, call, tensor_f32(dy), dy->count, err);
    const void *filter = grad ? conv2d_filter(c, call, kernel_in(call, 1), err) : NULL;
    if (!filter)
        return false;
    onednn_set(&c->filter_in, DNNL_ARG_FROM, filter);
    onednn_set(&c->filter_in, DNNL_ARG_TO, c->packed);
    onednn_set(&c->main, DNNL_ARG_DIFF_SRC, dx);
    onednn_set(&c->main, DNNL_ARG_WEIGHTS, c->packed ? c->packed : filter);
    onednn_set(&c->main, DNNL_ARG_DIFF_DST, grad);
    return onednn_run(&c->filter_in, err) && onednn_run(&c->main, err);
}

static bool conv2d_input_run(struct kernel_call *call, struct error *err)
{
    struct conv2d *c = call->state;
    struct shape image, filter;
    struct conv2d_shape s;
    if (!kernel_conv_rules(call, &image, &filter, err))
        return false;
    conv2d_shape(c, &image, &filter, &s);
    struct tensor *dx = kernel_output(call, 0, &image, err);
    if (!dx)
        return false;
    if (kernel_in(call, 2)->count == 0 || kernel_in(call, 1)->count == 0 || dx->count == 0) {
        memset(dx->data, 0, (size_t)dx->count * sizeof(float));
        return true;
    }
    if (c->winograd && winograd_suits(call, &s))
        return winograd_image_grad(call, &s, tensor_f32(kernel_in(call, 1)),
                                   tensor_f32(kernel_in(call, 2)), tensor_f32_mut(dx), err);
    return run_input(c, call, &s, tensor_f32_mut(dx), err);
}

const struct kernel kernel_conv2d_input_grad_cpu = {
    .op = "Conv2DBackpropInput",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = conv2d_accepts,
    .prepare = conv2d_prepare,
    .release = conv2d_release,
    .run = conv2d_input_run,
};
