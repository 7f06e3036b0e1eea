/* conv2d_shape.c - attributes, sizes and layouts of a convolution; see conv2d.h. */

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/conv2d.h"
#include "runtime/attr.h"
#include "runtime/graph.h"
#include "runtime/optimise.h"

/* What is none is left to the reference kernel, which says so. */
static bool is_size(int64_t value)
{
    return value > 0 && value <= INT32_MAX;
}

bool conv2d_accepts(const struct node *node)
{
    if (strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC"))
        return false;
    static const char *const lists[] = {"strides", "dilations"};
    for (int i = 0; i < ARRAY_LEN(lists); i++) {
        int count;
        const int64_t *values = node_attr_ints(node, lists[i], &count);
        if (count == 4 &&
            (values[0] != 1 || values[3] != 1 || !is_size(values[1]) || !is_size(values[2])))
            return false;
    }
    int pads_count;
    const int64_t *pads = node_attr_ints(node, "explicit_paddings", &pads_count);
    for (int i = 0; i < pads_count; i++) {
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return false;
    }
    const struct attr *fused = node_attr(node, "fused_ops");
    if (!fused)
        return true;
    return fused->count >= 1 && fused->count <= 2 &&
           !strcmp(fused->strings[0].data, "BiasAdd") &&
           (fused->count == 1 || !strcmp(fused->strings[1].data, "Relu"));
}

bool conv2d_prepare(const struct node *node, void **state, struct error *err)
{
    (void)err;
    struct conv2d *c = alloc_bytes(sizeof(*c));
    c->strides[0] = c->strides[1] = c->dilations[0] = c->dilations[1] = 1;
    int count;
    const int64_t *strides = node_attr_ints(node, "strides", &count);
    for (int i = 0; i < 2 && count == 4; i++)
        c->strides[i] = strides[i + 1];
    const int64_t *dilations = node_attr_ints(node, "dilations", &count);
    for (int i = 0; i < 2 && count == 4; i++)
        c->dilations[i] = dilations[i + 1];
    const char *padding = node_attr_string(node, "padding", "VALID");
    c->same = !strcmp(padding, "SAME");
    c->is_explicit = !strcmp(padding, "EXPLICIT");
    const int64_t *pads = node_attr_ints(node, "explicit_paddings", &count);
    for (int i = 0; i < 4 && c->is_explicit && count == 8; i++)
        c->explicit_pads[i] = pads[i + 2];
    const struct attr *fused = node_attr(node, "fused_ops");
    c->bias = fused;
    c->relu = fused && fused->count == 2;
    c->winograd = node_attr_bool(node, OPTIMISE_WINOGRAD_ATTR, false);
    *state = c;
    return true;
}

static void forget(struct conv2d *c)
{
    onednn_release(&c->main);
    onednn_release(&c->filter_in);
    onednn_release(&c->filter_out);
    conv2d_forget_parts(c);
    free(c->packed);
    c->packed = NULL;
    c->threads = 0;
}

void conv2d_release(void *state)
{
    struct conv2d *c = state;
    forget(c);
    free(c);
}

/* Output size and padding along one axis. */
static void size_axis(const struct conv2d *c, int axis, int64_t in, int64_t filter,
                      int64_t *out, int64_t *before, int64_t *after)
{
    int64_t stride = c->strides[axis];
    int64_t extent = (filter - 1) * c->dilations[axis] + 1;
    *before = *after = 0;
    if (c->same) {
        *out = (in + stride - 1) / stride;
        int64_t pad = (*out - 1) * stride + extent - in;
        *before = pad > 0 ? pad / 2 : 0;
        *after = pad > 0 ? pad - pad / 2 : 0;
        return;
    }
    if (c->is_explicit) {
        *before = c->explicit_pads[2 * axis];
        *after = c->explicit_pads[2 * axis + 1];
    }
    *out = (in + *before + *after - extent + stride) / stride;
}

void conv2d_shape(const struct conv2d *c, const struct shape *image, const struct shape *filter,
                  struct conv2d_shape *s)
{
    *s = (struct conv2d_shape){
        .batch = image->dims[0],
        .in_height = image->dims[1],
        .in_width = image->dims[2],
        .in_channels = image->dims[3],
        .filter_height = filter->dims[0],
        .filter_width = filter->dims[1],
        .out_channels = filter->dims[3],
        .stride_height = c->strides[0],
        .stride_width = c->strides[1],
        .dilation_height = c->dilations[0],
        .dilation_width = c->dilations[1],
    };
    s->groups = s->in_channels ? s->in_channels / filter->dims[2] : 1;
    size_axis(c, 0, s->in_height, s->filter_height, &s->out_height, &s->pad_top,
              &s->pad_bottom);
    size_axis(c, 1, s->in_width, s->filter_width, &s->out_width, &s->pad_left, &s->pad_right);
}

bool conv2d_layouts(const struct conv2d *c, const struct conv2d_shape *s,
                    struct conv2d_layouts *l, struct error *err)
{
    dnnl_dims_t image = {s->batch, s->in_channels, s->in_height, s->in_width};
    dnnl_dims_t result = {s->batch, s->out_channels, s->out_height, s->out_width};
    dnnl_dims_t filter = {s->out_channels, s->in_channels, s->filter_height, s->filter_width};
    dnnl_dims_t grouped = {s->groups, s->out_channels / s->groups, s->in_channels / s->groups,
                           s->filter_height, s->filter_width};
    bool groups = s->groups > 1;
    dnnl_dims_t bias = {s->out_channels};
    memcpy(l->strides, (dnnl_dims_t){s->stride_height, s->stride_width}, sizeof(dnnl_dims_t));
    memcpy(l->dilations, (dnnl_dims_t){s->dilation_height - 1, s->dilation_width - 1},
           sizeof(dnnl_dims_t));
    memcpy(l->pad_before, (dnnl_dims_t){s->pad_top, s->pad_left}, sizeof(dnnl_dims_t));
    memcpy(l->pad_after, (dnnl_dims_t){s->pad_bottom, s->pad_right}, sizeof(dnnl_dims_t));
    dnnl_status_t status =
        dnnl_memory_desc_init_by_tag(&l->image, 4, image, c->factors, dnnl_acdb);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&l->result, 4, result, c->factors, dnnl_acdb);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&l->filter_any, groups ? 5 : 4,
                                              groups ? grouped : filter, c->factors,
                                              dnnl_format_tag_any);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&l->filter_ours, groups ? 5 : 4,
                                              groups ? grouped : filter, dnnl_f32,
                                              groups ? dnnl_hwigo : dnnl_hwio);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&l->bias, 1, bias, dnnl_f32, dnnl_a);
    return onednn_check(status, "layouts of a convolution", err);
}

bool conv2d_is_stale(struct conv2d *c, const struct conv2d_shape *shape, int threads)
{
    if ((c->main.primitive || c->parts_count) && c->threads == threads &&
        !memcmp(&c->made_for, shape, sizeof(*shape)))
        return false;
    forget(c);
    c->made_for = *shape;
    c->threads = threads;
    return true;
}

bool conv2d_pack(struct conv2d *c, const dnnl_memory_desc_t *ours,
                 const dnnl_memory_desc_t *wanted, struct error *err)
{
    if (dnnl_memory_desc_equal(ours, wanted))
        return true;
    size_t size = (dnnl_memory_desc_get_size(wanted) + 63) / 64 * 64;
    c->packed = aligned_alloc(64, size);
    if (!c->packed)
        return fail(err, EXHAUSTED, "no memory for a packed filter of %zu bytes", size);
    memset(c->packed, 0, size); /* the padding of blocked layouts stays zero */
    return true;
}

/* Relu behind the convolution, when the node asks for it. */
static bool attributes(const struct conv2d *c, dnnl_primitive_attr_t *attr, struct error *err)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(attr);
    if (status == dnnl_success && c->relu) {
        status = dnnl_post_ops_create(&ops);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(*attr, ops);
        dnnl_post_ops_destroy(ops);
    }
    return onednn_check(status, "attributes", err);
}

bool conv2d_forward(const struct conv2d *c, const struct conv2d_layouts *l,
                    dnnl_primitive_desc_t *desc, struct error *err)
{
    dnnl_engine_t engine = onednn_engine(err);
    if (!engine)
        return false;
    dnnl_convolution_desc_t forward;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &forward, dnnl_forward_training, dnnl_convolution_direct, &l->image, &l->filter_any,
        c->bias ? &l->bias : NULL, &l->result, l->strides, l->dilations, l->pad_before,
        l->pad_after);
    if (!onednn_check(status, "convolution", err))
        return false;
    dnnl_primitive_attr_t attr = NULL;
    bool ok = attributes(c, &attr, err) &&
              onednn_check(dnnl_primitive_desc_create(desc, &forward, attr, engine, NULL),
                           "convolution", err);
    dnnl_primitive_attr_destroy(attr);
    return ok;
}
