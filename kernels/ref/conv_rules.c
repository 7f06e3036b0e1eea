/* conv_rules.c - what TensorFlow refuses of convolutions; see rules.h. */

#include "kernels/ref/rules.h"

#include "base/error.h"
#include "kernels/ref/numbers.h"

enum role { FORWARD, OF_INPUT, OF_FILTER };

/* A node's attributes; axes are those of its data format. */
struct conv {
    const struct kernel_call *call;
    enum role role;
    bool depthwise;
    int dims, rank; /* 2 or 3; with batch and channels */
    int channels;   /* the axis */
    int spatial;    /* the first such axis */
    const int64_t *strides, *dilations, *pads;
    int strides_count, dilations_count, pads_count;
    bool same, is_explicit;
};

static struct conv conv_of(const struct kernel_call *call)
{
    const struct node *node = call->node;
    const char *name = node->op->name, *padding = node_attr_string(node, "padding", "VALID");
    bool first = strncmp(node_attr_string(node, "data_format", ""), "NC", 2) == 0;
    int dims = strstr(name, "3D") ? 3 : 2;
    struct conv c = {
        .call = call,
        .role = strstr(name, "BackpropInput")    ? OF_INPUT
                : strstr(name, "BackpropFilter") ? OF_FILTER
                                                 : FORWARD,
        .depthwise = strncmp(name, "Depthwise", strlen("Depthwise")) == 0,
        .dims = dims,
        .rank = dims + 2,
        .channels = first ? 1 : dims + 1,
        .spatial = first ? 2 : 1,
        .same = strcmp(padding, "SAME") == 0,
        .is_explicit = strcmp(padding, "EXPLICIT") == 0,
    };
    c.strides = node_attr_ints(node, "strides", &c.strides_count);
    c.dilations = node_attr_ints(node, "dilations", &c.dilations_count);
    c.pads = node_attr_ints(node, "explicit_paddings", &c.pads_count);
    return c;
}

bool kernel_slide(const struct slide *s, int64_t *out, struct error *err)
{
    if (s->stride <= 0)
        return fail(err, INVALID, "Stride must be > 0, but got %lld", (long long)s->stride);
    if (s->dilation < 1)
        return fail(err, INVALID, "Dilation rate must be >= 1, but got %lld",
                    (long long)s->dilation);
    if (s->stride > INT32_MAX || s->dilation > INT32_MAX || s->window > INT32_MAX)
        return fail(err, INVALID,
                    "strides, dilations and window sizes must be positive int32 values");
    int64_t reach = (s->window - 1) * s->dilation + 1;
    *out = s->same ? (s->size + s->stride - 1) / s->stride
                   : (s->size + s->before + s->after - reach + s->stride) / s->stride;
    return *out >= 0 ||
           fail(err, INVALID,
                "Computed output size would be negative: %lld [input_size: %lld, "
                "effective_filter_size: %lld, stride: %lld]",
                (long long)*out, (long long)s->size, (long long)reach, (long long)s->stride);
}

/* --- attributes --- */

static bool check_padding(const struct conv *c, struct error *err)
{
    if (!c->is_explicit)
        return c->pads_count == 0 ||
               fail(err, INVALID,
                    "explicit_paddings attribute must be empty if the padding attribute is not "
                    "EXPLICIT");
    if (c->pads_count != 2 * c->rank)
        return fail(err, INVALID,
                    "explicit_paddings attribute must contain %d values, but got: %d",
                    2 * c->rank, c->pads_count);
    for (int i = 0; i < c->pads_count; i++)
        if (c->pads[i] < 0 || c->pads[i] > INT32_MAX)
            return fail(err, INVALID, "All elements of explicit_paddings must be nonnegative");
    const int64_t *batch = c->pads, *depth = c->pads + (ptrdiff_t)2 * c->channels;
    return (batch[0] == 0 && batch[1] == 0 && depth[0] == 0 && depth[1] == 0) ||
           fail(err, INVALID,
                "Nonzero explicit padding in the batch or depth dimensions is not supported");
}

static bool is_outer_one(const struct conv *c, const int64_t *values)
{
    return values[0] == 1 && values[c->channels] == 1;
}

static bool is_inner_positive(const struct conv *c, const int64_t *values)
{
    for (int d = 0; d < c->dims; d++)
        if (values[c->spatial + d] <= 0)
            return false;
    return true;
}

static bool check_strides(const struct conv *c, enum error_code code, struct error *err)
{
    return is_outer_one(c, c->strides) ||
           fail(err, code,
                "Current implementation does not yet support strides in the batch and depth "
                "dimensions.");
}

static bool check_count(const struct conv *c, const char *what, int count, struct error *err)
{
    return count == c->rank ||
           fail(err, INVALID, "%s field must specify %d dimensions", what, c->rank);
}

static bool check_image_attrs(const struct conv *c, struct error *err)
{
    enum error_code code = c->role == OF_FILTER ? INVALID : UNIMPLEMENTED;
    bool plain = c->role == FORWARD; /* which list is looked at first */
    if (plain && !check_count(c, "Sliding window dilations", c->dilations_count, err))
        return false;
    if (!check_count(c, "Sliding window strides", c->strides_count, err) ||
        !check_strides(c, code, err))
        return false;
    if (!is_inner_positive(c, c->strides))
        return fail(err, INVALID, "Row and column strides should be larger than 0.");
    if (!plain && !check_count(c, "Sliding window dilations", c->dilations_count, err))
        return false;
    if (!is_outer_one(c, c->dilations))
        return fail(err, code,
                    "Current implementation does not yet support dilations in the batch and "
                    "depth dimensions.");
    if (!is_inner_positive(c, c->dilations))
        return fail(err, INVALID, "Dilated rates should be larger than 0.");
    return check_padding(c, err);
}

static bool check_depthwise_attrs(const struct conv *c, struct error *err)
{
    return check_count(c, "Sliding window strides", c->strides_count, err) &&
           check_strides(c, INVALID, err) && check_padding(c, err);
}

static bool check_dilation_rates(const struct conv *c, struct error *err)
{
    if (!check_count(c, "Dilation rates", c->dilations_count, err))
        return false;
    return is_outer_one(c, c->dilations) ||
           fail(err, INVALID,
                "Current implementation does not yet support dilation rates in the batch and "
                "depth dimensions.");
}

static bool has_dilation(const struct conv *c)
{
    for (int d = 0; d < c->dims; d++)
        if (c->dilations[c->spatial + d] != 1)
            return true;
    return false;
}

static bool check_volume_attrs(const struct conv *c, struct error *err)
{
    const char *name = c->call->node->op->name;
    bool forward = c->role == FORWARD, second = strcmp(name + strlen(name) - 2, "V2") == 0;
    if (second && c->channels == 1)
        return fail(err, INVALID, "Conv3DBackprop%sOpV2 only supports NDHWC on the CPU.",
                    c->role == OF_INPUT ? "Input" : "Filter");
    if (!forward && !check_dilation_rates(c, err))
        return false;
    if (!forward && has_dilation(c))
        return fail(
            err, INVALID,
            "Current CPU implementation does not yet support dilation rates larger than "
            "1.");
    if (!check_count(c, "Sliding window strides", c->strides_count, err) ||
        !check_strides(c, INVALID, err))
        return false;
    if (!forward)
        return true; /* the others are told later */
    if (!is_inner_positive(c, c->strides))
        return fail(err, INVALID, "Spatial strides should be larger than 0.");
    if (!check_dilation_rates(c, err))
        return false;
    return is_inner_positive(c, c->dilations) ||
           fail(err, INVALID, "Dilated rates should be larger than 0.");
}

/* --- inputs --- */

static struct slide slide_of(const struct conv *c, const struct shape *input,
                             const struct shape *filter, int d)
{
    int axis = c->spatial + d;
    return (struct slide){.size = input->dims[axis],
                          .window = filter->dims[d],
                          .dilation = c->depthwise ? 1 : c->dilations[axis],
                          .stride = c->strides[axis],
                          .before = c->is_explicit ? c->pads[2 * axis] : 0,
                          .after = c->is_explicit ? c->pads[2 * axis + 1] : 0,
                          .same = c->same};
}

/* `any`: whether the output has elements. */
static bool check_slides(const struct conv *c, const struct shape *input,
                         const struct shape *filter, bool *any, struct error *err)
{
    *any = input->dims[0] && filter->dims[c->rank - 1];
    for (int d = 0; d < c->dims; d++) {
        struct slide slide = slide_of(c, input, filter, d);
        int64_t out;
        if (!kernel_slide(&slide, &out, err))
            return false;
        *any = *any && out;
    }
    return true;
}

static bool has_elements(const struct shape *filter, struct error *err)
{
    return shape_count(filter) > 0 ||
           fail(err, INVALID,
                "filter must not have zero elements (i.e. all dimensions must be non-zero)");
}

static bool check_image(const struct conv *c, const struct shape *input,
                        const struct shape *filter, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (input->rank != 4)
        return fail(err, INVALID, "convolution input must be 4-dimensional: %s",
                    shape_text(input, text, sizeof(text)));
    if (filter->rank != 4)
        return fail(err, INVALID, "convolution filter must be 4-dimensional: %s",
                    shape_text(filter, text, sizeof(text)));
    long long depth = input->dims[c->channels], of_filter = filter->dims[2];
    if (of_filter == 0)
        return has_elements(filter, err);
    if (depth % of_filter != 0)
        return fail(err, INVALID,
                    "input depth must be evenly divisible by filter depth: %lld vs %lld", depth,
                    of_filter);
    if (depth && filter->dims[3] % (depth / of_filter) != 0)
        return fail(err, INVALID, "output depth %lld must be divisible by the number of groups",
                    (long long)filter->dims[3]);
    bool any;
    return check_slides(c, input, filter, &any, err) && (!any || has_elements(filter, err));
}

/* Dilations of whatever number, of which none may be any. */
static bool check_undilated(const struct conv *c, struct error *err)
{
    char text[200] = "";
    size_t used = 0;
    bool any = false;
    for (int i = 0; i < c->dilations_count; i++) {
        any |= c->dilations[i] != 1;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld", i ? " " : "",
                                 (long long)c->dilations[i]);
        if (used >= sizeof(text))
            break;
    }
    return !any || c->dilations_count != c->rank ||
           fail(err, UNIMPLEMENTED,
                "Current kernel implementation does not support dilations, received [%s]",
                text);
}

static bool check_depthwise(const struct conv *c, const struct shape *input,
                            const struct shape *filter, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (input->rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(input, text, sizeof(text)));
    if (filter->rank != 4)
        return fail(err, INVALID, "filter must be 4-dimensional: %s",
                    shape_text(filter, text, sizeof(text)));
    if (input->dims[c->channels] != filter->dims[2])
        return fail(err, INVALID, "input and filter must have the same depth: %lld vs %lld",
                    (long long)input->dims[c->channels], (long long)filter->dims[2]);
    bool any;
    return check_slides(c, input, filter, &any, err) && check_undilated(c, err);
}

static bool check_volume(const struct conv *c, const struct shape *input,
                         const struct shape *filter, struct error *err)
{
    if (input->rank != 5)
        return fail(err, INVALID, "input must be 5-dimensional");
    if (filter->rank != 5)
        return fail(err, INVALID, "filter must be 5-dimensional");
    long long depth = input->dims[c->channels], of_filter = filter->dims[3];
    if (of_filter == 0)
        return fail(err, INVALID, "filter_depth must be non-zero");
    if (depth % of_filter != 0)
        return fail(err, INVALID,
                    "Input depth must be evenly divisible by filter depth: %lld vs %lld", depth,
                    of_filter);
    if (!has_elements(filter, err))
        return false;
    bool any;
    if (!check_slides(c, input, filter, &any, err))
        return false;
    if (!any)
        return true;
    if (c->channels == 1)
        return fail(err, INVALID,
                    "CPU implementation of Conv3D currently only supports the NHWC tensor "
                    "format.");
    if (has_dilation(c))
        return fail(err, INVALID,
                    "CPU implementation of Conv3D currently only supports dilated rates of 1.");
    return depth == 0 || filter->dims[4] % (depth / of_filter) == 0 ||
           fail(err, INVALID, "output depth %lld must be divisible by the number of groups",
                (long long)filter->dims[4]);
}

/* --- gradients --- */

/* The size along axis `d` that the gradient has is that of the convolution's output. */
static bool check_extent(const struct conv *c, const char *label, const struct shape *input,
                         const struct shape *filter, const struct shape *grad, int d,
                         struct error *err)
{
    struct slide s = slide_of(c, input, filter, d);
    int64_t computed, actual = grad->dims[c->spatial + d];
    if (!kernel_slide(&s, &computed, err))
        return false;
    if (computed == actual)
        return true;
    if (c->depthwise)
        return fail(err, INVALID,
                    "%s: Number of %s of out_backprop doesn't match computed: actual = %lld, "
                    "computed = %lld",
                    label, d ? "cols" : "rows", (long long)actual, (long long)computed);
    return fail(err, INVALID,
                "%s: Size of out_backprop doesn't match computed: actual = %lld, computed = "
                "%lld spatial_dim: %d input: %lld filter: %lld output: %lld stride: %lld "
                "dilation: %lld",
                label, (long long)actual, (long long)computed, c->spatial + d,
                (long long)s.size, (long long)s.window, (long long)actual, (long long)s.stride,
                (long long)s.dilation);
}

static bool check_depths(const struct conv *c, const char *label, const struct shape *input,
                         const struct shape *filter, const struct shape *grad,
                         struct error *err)
{
    int64_t depth = input->dims[c->channels], back = grad->dims[c->channels];
    int64_t in = filter->dims[c->rank - 2], out = filter->dims[c->rank - 1];
    if (c->depthwise) {
        if (depth != in)
            return fail(err, INVALID, "%s: input and filter must have the same in_depth",
                        label);
        return depth * out == back ||
               fail(err, INVALID, "%s: depth_multiplier * in_depth not equal to out_depth",
                    label);
    }
    if (in == 0)
        return fail(err, INVALID, "%s: filter depth must be strictly greated than zero", label);
    if (depth % in != 0)
        return fail(err, INVALID, "%s: input depth must be evenly divisible by filter depth",
                    label);
    return out == back ||
           fail(err, INVALID, "%s: filter and out_backprop must have the same out_depth",
                label);
}

static bool check_sizes(const struct conv *c, const char *label, const struct shape *input,
                        const struct shape *filter, const struct shape *grad, struct error *err)
{
    const struct shape *shapes[] = {input, filter, grad};
    static const char *const names[] = {"input", "filter", "out_backprop"};
    for (int i = 0; i < 3; i++)
        if (shapes[i]->rank != c->rank)
            return fail(err, INVALID, "%s: %s must be %d-dimensional", label, names[i],
                        c->rank);
    if (input->dims[0] != grad->dims[0])
        return c->depthwise
                   ? fail(err, INVALID,
                          "%s: input and out_backprop must have the same batch size", label)
                   : fail(err, INVALID,
                          "%s: input and out_backprop must have the same batch size. Input "
                          "batch: %lld, outbackprop batch: %lld, batch_dim: 0",
                          label, (long long)input->dims[0], (long long)grad->dims[0]);
    if (!check_depths(c, label, input, filter, grad, err))
        return false;
    for (int d = 0; d < c->dims; d++)
        if (!check_extent(c, label, input, filter, grad, d, err))
            return false;
    int64_t in = filter->dims[c->rank - 2], out = filter->dims[c->rank - 1];
    return c->depthwise || input->dims[c->channels] / in == 0 ||
           out % (input->dims[c->channels] / in) == 0 ||
           fail(err, INVALID, "output depth %lld must be divisible by the number of groups",
                (long long)out);
}

/* Of volumes: the gradient's three shapes, before what all check. */
static bool check_volumes(const struct shape *input, const struct shape *filter,
                          const struct shape *grad, struct error *err)
{
    const struct shape *shapes[] = {input, filter, grad};
    static const char *const names[] = {"input", "filter_sizes", "out_backprop"};
    for (int i = 0; i < 3; i++)
        if (shapes[i]->rank != 5)
            return fail(err, INVALID, "%s tensor must have 5 dimensions", names[i]);
    for (int i = 0; i < 3; i += 2) {
        const char *name = names[i];
        long long have = shapes[i]->dims[4], wanted = filter->dims[i ? 4 : 3];
        if (have != wanted)
            return fail(err, INVALID,
                        "%s and filter_sizes must have the same number of channels. Got %lld "
                        "for %s and %lld for filter_sizes",
                        name, have, name, wanted);
    }
    return true;
}

static bool check_dimensions(const struct tensor *sizes, const char *name, struct error *err)
{
    for (int64_t i = 0; i < sizes->count; i++)
        if (tensor_integer(sizes, i) < 0)
            return fail(err, INVALID, "Dimension %lld of %s must be >= 0", (long long)i, name);
    return true;
}

/* The sizes of images may leave out batch and channels. */
static bool read_image(const struct conv *c, const struct shape *filter,
                       const struct shape *grad, struct shape *input, struct error *err)
{
    const struct tensor *sizes = kernel_in(c->call, 0);
    if (sizes->count != 2)
        return sizes->count == 4
                   ? kernel_shape_of(sizes, input, err)
                   : fail(err, INVALID,
                          "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 "
                          "values, but got: %lld",
                          (long long)sizes->count);
    long long y = tensor_integer(sizes, 0), x = tensor_integer(sizes, 1);
    if (y < 0 || x < 0)
        return fail(err, INVALID,
                    "Conv2DBackpropInput: elements of input_sizes must be >= 0, not %lldx%lld",
                    y, x);
    int64_t channels = filter->rank > 2 ? filter->dims[2] : 0;
    *input = c->channels == 1 ? SHAPE(grad->dims[0], channels, y, x)
                              : SHAPE(grad->dims[0], y, x, channels);
    return true;
}

/* The shape that an input holds: of the image (index 0), of the filter (1). */
static bool read_sizes(const struct conv *c, int index, struct shape *shape, struct error *err)
{
    const struct tensor *sizes = kernel_in(c->call, index);
    const char *name = index ? "filter_sizes" : "input_sizes";
    char text[SHAPE_TEXT_BYTES];
    if (sizes->shape.rank != 1 && c->dims == 3)
        return index
                   ? fail(err, INVALID, "filter_sizes shape must be rank 1 but is rank %d",
                          sizes->shape.rank)
                   : fail(err, INVALID, "shape must be a vector of {int32,int64}, got shape %s",
                          shape_text(&sizes->shape, text, sizeof(text)));
    if (sizes->shape.rank != 1)
        return fail(err, INVALID, "%s: %s input must be 1-dim, not %d",
                    !index         ? "Conv2DBackpropInput"
                    : c->depthwise ? "Conv2DBackpropFilter"
                                   : "Conv2DCustomBackpropFilter",
                    name, sizes->shape.rank);
    if (c->depthwise && !check_dimensions(sizes, name, err))
        return false;
    return kernel_shape_of(sizes, shape, err);
}

static bool check_gradient(const struct conv *c, struct shape *input, struct shape *filter,
                           struct error *err)
{
    const char *name = c->call->node->op->name;
    const struct shape *grad = &kernel_in(c->call, 2)->shape;
    char label[64];
    snprintf(label, sizeof(label), "%s%s%s",
             c->depthwise   ? "DepthwiseConv2DBackprop"
             : c->dims == 3 ? "Conv3DBackprop"
                            : "Conv2DCustomBackprop",
             c->role == OF_INPUT ? "Input" : "Filter", c->dims == 3 ? "Op" : "");
    *input = kernel_in(c->call, 0)->shape;
    *filter = kernel_in(c->call, 1)->shape;
    bool holds = c->dims == 2 || strcmp(name + strlen(name) - 2, "V2") == 0;
    bool image = c->role == OF_INPUT && c->dims == 2 && !c->depthwise;
    if (image && grad->rank != 4)
        return fail(err, INVALID, "input_sizes must be 4-dimensional, got: %d", grad->rank);
    if (image && kernel_in(c->call, 0)->shape.rank == 1) {
        if (!read_image(c, filter, grad, input, err))
            return false;
    } else if (holds && !read_sizes(c, c->role == OF_INPUT ? 0 : 1,
                                    c->role == OF_INPUT ? input : filter, err)) {
        return false;
    }
    return (c->dims == 2 || check_volumes(input, filter, grad, err)) &&
           check_sizes(c, label, input, filter, grad, err);
}

static bool check_all(const struct conv *c, struct shape *input, struct shape *filter,
                      struct error *err)
{
    bool ok = c->depthwise   ? check_depthwise_attrs(c, err)
              : c->dims == 3 ? check_volume_attrs(c, err)
                             : check_image_attrs(c, err);
    if (!ok)
        return false;
    if (c->role != FORWARD)
        return check_gradient(c, input, filter, err);
    *input = kernel_in(c->call, 0)->shape;
    *filter = kernel_in(c->call, 1)->shape;
    return c->depthwise   ? check_depthwise(c, input, filter, err)
           : c->dims == 3 ? check_volume(c, input, filter, err)
                          : check_image(c, input, filter, err);
}

bool kernel_conv_rules(const struct kernel_call *call, struct shape *input,
                       struct shape *filter, struct error *err)
{
    struct conv c = conv_of(call);
    if (check_all(&c, input, filter, err))
        return true;
    /* TensorFlow has no such depthwise convolutions.  We have, but if there is more to it. */
    bool odd = c.depthwise && c.strides_count == c.rank &&
               c.strides[c.spatial] != c.strides[c.spatial + 1];
    return odd ? fail(
                     err, INVALID,
                     "Current implementation only supports equal length strides in the row and "
                     "column dimensions.")
               : false;
}
