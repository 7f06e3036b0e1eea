/* window.c - the geometry of sliding windows, from a node's attributes. */

#include "kernels/ref/window.h"

static bool four(const struct node *node, const char *name, const int64_t **values,
                 struct error *err)
{
    int count;
    *values = node_attr_ints(node, name, &count);
    return count == 4 ||
           fail(err, INVALID, "Sliding window %s field must specify 4 dimensions", name);
}

static bool place(const struct node *node, struct window *w, const int64_t *pads, int64_t after,
                  int i, struct error *err)
{
    int64_t reach = (w->window[i] - 1) * w->dilation[i] + 1;
    (void)node;
    if (w->same) {
        w->out[i] = (w->size[i] + w->stride[i] - 1) / w->stride[i];
        int64_t total = (w->out[i] - 1) * w->stride[i] + reach - w->size[i];
        w->before[i] = total > 0 ? total / 2 : 0;
        return true;
    }
    int64_t room = w->size[i] + (pads ? pads[0] + after : 0) - reach + w->stride[i];
    w->before[i] = pads ? pads[0] : 0;
    w->out[i] = room / w->stride[i]; /* a little too large a window: towards zero, empty */
    return w->out[i] >= 0 || fail(err, INVALID, "Computed output size would be negative: %lld",
                                  (long long)w->out[i]);
}

/* `ksize` is NULL when there is a filter's window. */
static bool work_out(const struct node *node, const struct shape *input, const int64_t *window,
                     const int64_t *strides, const int64_t *ksize, struct window *w,
                     struct error *err)
{
    int dilations_count, pads_count;
    const int64_t *dilations = node_attr_ints(node, "dilations", &dilations_count);
    const int64_t *pads = node_attr_ints(node, "explicit_paddings", &pads_count);
    const char *padding = node_attr_string(node, "padding", "VALID");
    char text[SHAPE_TEXT_BYTES];
    if (input->rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional, got %s",
                    shape_text(input, text, sizeof(text)));
    w->nchw = strcmp(node_attr_string(node, "data_format", "NHWC"), "NCHW") == 0;
    w->same = strcmp(padding, "SAME") == 0;
    bool explicit_pads = strcmp(padding, "EXPLICIT") == 0;
    int channel_axis = w->nchw ? 1 : 3, first = w->nchw ? 2 : 1;
    if (strides[0] != 1 || strides[channel_axis] != 1)
        return fail(err, INVALID,
                    "Current implementation does not yet support strides in the "
                    "batch and depth dimensions.");
    if (explicit_pads && pads_count != 8)
        return fail(err, INVALID,
                    "explicit_paddings attribute must contain 8 values, but got: %d",
                    pads_count);
    w->batch = input->dims[0];
    w->channels = input->dims[channel_axis];
    for (int i = 0; i < 2; i++) {
        w->size[i] = input->dims[first + i];
        w->window[i] = window ? window[i] : ksize[first + i];
        w->stride[i] = strides[first + i];
        w->dilation[i] = dilations_count == 4 ? dilations[first + i] : 1;
        if (w->stride[i] <= 0 || w->dilation[i] <= 0 || (!window && w->window[i] <= 0))
            return fail(err, INVALID, "strides, dilations and window sizes must be positive");
        const int64_t *own = explicit_pads ? pads + 2 * (first + i) : NULL;
        if (own && (own[0] < 0 || own[1] < 0))
            return fail(err, INVALID, "All elements of explicit_paddings must be nonnegative");
        if (!place(node, w, own, own ? own[1] : 0, i, err))
            return false;
    }
    return true;
}

bool kernel_window(const struct node *node, const struct shape *input, const int64_t *window,
                   struct window *w, struct error *err)
{
    const int64_t *strides, *ksize = NULL;
    return four(node, "strides", &strides, err) &&
           (window || four(node, "ksize", &ksize, err)) &&
           work_out(node, input, window, strides, ksize, w, err);
}

bool kernel_window_inputs(const struct kernel_call *call, int index, const struct shape *input,
                          struct window *w, struct error *err)
{
    int64_t sizes[2][4];
    for (int i = 0; i < 2; i++) {
        const struct tensor *in = kernel_in(call, index + i);
        if (in->shape.rank != 1 || in->count != 4)
            return fail(err, INVALID, "Sliding window %s field must specify 4 dimensions",
                        i ? "strides" : "ksize");
        for (int d = 0; d < 4; d++)
            sizes[i][d] = tensor_integer(in, d);
    }
    return work_out(call->node, input, NULL, sizes[1], sizes[0], w, err);
}

struct shape kernel_window_out(const struct window *w, int64_t channels)
{
    return w->nchw ? SHAPE(w->batch, channels, w->out[0], w->out[1])
                   : SHAPE(w->batch, w->out[0], w->out[1], channels);
}
