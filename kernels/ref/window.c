/* window.c - the geometry of sliding windows, from a node's attributes. */

#include "kernels/ref/window.h"

/* What the node says, `dims` + 2 values each in the order of the data format. */
struct sliding {
    const int64_t *window; /* of a filter: its sizes; NULL: they are in ksize */
    const int64_t *ksize;
    const int64_t *strides;
    const int64_t *dilations; /* NULL: all 1 */
    const int64_t *pads;      /* explicit: two for each dimension; else NULL */
    bool same;                /* padding "SAME" */
};

static int window_dims(const struct node *node)
{
    return strstr(node->op->name, "3D") ? 3 : 2;
}

static bool read_ints(const struct node *node, const char *name, const int64_t **values,
                      struct error *err)
{
    int count, expected = window_dims(node) + 2;
    *values = node_attr_ints(node, name, &count);
    return count == expected ||
           fail(err, INVALID, "Sliding window %s field must specify %d dimensions", name,
                expected);
}

/* Windows that span examples or channels: what TensorFlow says of them. */
static bool check_outer(const struct window *w, const struct sliding *s, int channel_axis,
                        struct error *err)
{
    const int64_t *ksize = s->ksize, *strides = s->strides;
    if (s->window)
        return (strides[0] == 1 && strides[channel_axis] == 1) ||
               fail(err, INVALID,
                    "Current implementation does not yet support strides in the batch and "
                    "depth dimensions.");
    if (ksize[0] != 1 || strides[0] != 1)
        return fail(err, UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.");
    /* A stride alone does nothing to the channels of images. */
    bool depth = ksize[channel_axis] != 1 || (w->dims == 3 && strides[channel_axis] != 1);
    return !depth ||
           fail(err, UNIMPLEMENTED, "Pooling is not yet supported on the depth dimension.");
}

/* Places the windows along dimension `d`; the padding is `pads`, or NULL. */
static bool place_windows(struct window *w, int d, bool same, const int64_t *pads,
                          struct error *err)
{
    int64_t reach = (w->window[d] - 1) * w->dilation[d] + 1, stride = w->stride[d];
    if (same) {
        w->out[d] = (w->size[d] + stride - 1) / stride;
        w->before[d] = ((w->out[d] - 1) * stride + reach - w->size[d]) / 2;
        return true;
    }
    w->before[d] = pads ? pads[0] : 0;
    /* A little too large a window: towards zero, empty. */
    w->out[d] = (w->size[d] + (pads ? pads[0] + pads[1] : 0) - reach + stride) / stride;
    return w->out[d] >= 0 || fail(err, INVALID, "Computed output size would be negative: %lld",
                                  (long long)w->out[d]);
}

/* Of 32 bits, so that products of two are no overflow. */
static bool is_size(int64_t value)
{
    return value > 0 && value <= INT32_MAX;
}

/* Dimension `d` of the windows from axis `axis` of what the node says. */
static bool read_dim(const struct node *node, const struct sliding *s, int d, int axis,
                     struct window *w, struct error *err)
{
    w->window[d] = s->window ? s->window[d - 3 + w->dims] : s->ksize[axis];
    w->stride[d] = s->strides[axis];
    w->dilation[d] = s->dilations ? s->dilations[axis] : 1;
    bool empty = s->window && w->window[d] == 0; /* a filter may be */
    if (!is_size(w->stride[d]) || !is_size(w->dilation[d]) ||
        (!empty && !is_size(w->window[d])))
        return fail(err, INVALID,
                    "strides, dilations and window sizes must be positive int32 values");
    if (w->dims == 3 && w->dilation[d] != 1)
        return fail(err, INVALID,
                    "CPU implementation of %s currently only supports dilated rates of 1.",
                    node->op->name);
    const int64_t *pads = s->pads ? s->pads + 2 * axis : NULL;
    if (pads && (pads[0] < 0 || pads[1] < 0 || pads[0] > INT32_MAX || pads[1] > INT32_MAX))
        return fail(err, INVALID, "All elements of explicit_paddings must be nonnegative");
    return place_windows(w, d, s->same, pads, err);
}

static bool work_out(const struct node *node, const struct shape *input, struct sliding *s,
                     struct window *w, struct error *err)
{
    int dims = window_dims(node), dilations_count, pads_count;
    const char *rates = node_attr(node, "rates") ? "rates" : "dilations";
    const int64_t *dilations = node_attr_ints(node, rates, &dilations_count);
    const int64_t *pads = node_attr_ints(node, "explicit_paddings", &pads_count);
    const char *padding = node_attr_string(node, "padding", "VALID");
    char text[SHAPE_TEXT_BYTES];
    if (input->rank != dims + 2)
        return fail(err, INVALID, "input must be %d-dimensional, got %s", dims + 2,
                    shape_text(input, text, sizeof(text)));
    bool depthwise = strncmp(node->op->name, "Depthwise", strlen("Depthwise")) == 0;
    s->dilations = dilations_count == dims + 2 && !depthwise ? dilations : NULL;
    s->pads = strcmp(padding, "EXPLICIT") == 0 ? pads : NULL;
    s->same = strcmp(padding, "SAME") == 0;
    if (s->pads && pads_count != 2 * (dims + 2))
        return fail(err, INVALID,
                    "explicit_paddings attribute must contain %d values, but got: %d",
                    2 * (dims + 2), pads_count);
    /* "NCHW", "NCDHW": the channels come second. */
    bool first = strncmp(node_attr_string(node, "data_format", ""), "NC", 2) == 0;
    int channel_axis = first ? 1 : dims + 1;
    *w = (struct window){.dims = dims,
                         .channels_first = first,
                         .batch = input->dims[0],
                         .channels = input->dims[channel_axis],
                         .size = {1, 1, 1},
                         .window = {1, 1, 1},
                         .stride = {1, 1, 1},
                         .dilation = {1, 1, 1},
                         .out = {1, 1, 1}};
    if (!check_outer(w, s, channel_axis, err))
        return false;
    for (int i = 0; i < dims; i++) {
        int axis = (first ? 2 : 1) + i, d = 3 - dims + i;
        w->size[d] = input->dims[axis];
        if (!read_dim(node, s, d, axis, w, err))
            return false;
    }
    if (dims == 2)
        kernel_window_pad(w); /* TensorFlow centres windows in volumes only */
    return true;
}

bool kernel_window(const struct node *node, const struct shape *input, const int64_t *window,
                   struct window *w, struct error *err)
{
    struct sliding s = {.window = window};
    return read_ints(node, "strides", &s.strides, err) &&
           (window || read_ints(node, "ksize", &s.ksize, err)) &&
           work_out(node, input, &s, w, err);
}

bool kernel_window_inputs(const struct kernel_call *call, int index, const struct shape *input,
                          struct window *w, struct error *err)
{
    int64_t sizes[2][4];
    struct sliding s = {.ksize = sizes[0], .strides = sizes[1]};
    bool forward = index == 1; /* behind the input alone; TensorFlow says it otherwise there */
    for (int i = 0; i < 2; i++) {
        const struct tensor *in = kernel_in(call, index + i);
        if (in->count != 4) /* in whatever shape */
            return fail(err, INVALID, "Sliding window %s field must specify 4 dimensions",
                        !i        ? "ksize"
                        : forward ? "stride"
                                  : "strides");
        for (int d = 0; d < 4; d++) {
            sizes[i][d] = tensor_integer(in, d);
            if (forward && !i && sizes[i][d] <= 0)
                return fail(err, INVALID, "Sliding window ksize must be positive.");
        }
    }
    return work_out(call->node, input, &s, w, err);
}

void kernel_window_pad(struct window *w)
{
    for (int d = 0; d < 3; d++)
        w->before[d] = w->before[d] < 0 ? 0 : w->before[d];
}

struct shape kernel_window_out(const struct window *w, int64_t channels)
{
    struct shape shape = {.rank = w->dims + 2};
    shape.dims[0] = w->batch;
    shape.dims[w->channels_first ? 1 : w->dims + 1] = channels;
    for (int i = 0; i < w->dims; i++)
        shape.dims[(w->channels_first ? 2 : 1) + i] = w->out[3 - w->dims + i];
    return shape;
}
