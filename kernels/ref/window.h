/*
 * window.h - windows that slide over images: what convolutions and pooling have in common.
 *
 * Images are seen as (batch, height, width, channels) whatever their data format; the strides
 * say where the elements are.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct window {
    bool nchw;
    bool same; /* padding "SAME" */
    int64_t batch;
    int64_t size[2];   /* of the input: height, width */
    int64_t window[2]; /* of the filter */
    int64_t stride[2];
    int64_t dilation[2];
    int64_t before[2]; /* padding in front */
    int64_t out[2];
    int64_t channels; /* of the input */
};

/* An index (batch, y, x, channel) into a tensor of the window's data format. */
static inline int64_t window_at(const struct window *w, const int64_t size[2], int64_t channels,
                                int64_t n, int64_t y, int64_t x, int64_t c)
{
    return w->nchw ? ((n * channels + c) * size[0] + y) * size[1] + x
                   : ((n * size[0] + y) * size[1] + x) * channels + c;
}

/*
 * Reads the attributes of the node and works out the windows on an input of shape `input`.
 * `window` is the size of the filter, or NULL: then from the attribute ksize.  Fails with
 * INVALID.
 */
bool kernel_window(const struct node *node, const struct shape *input, const int64_t *window,
                   struct window *w, struct error *err) CHECKED;

/*
 * The same for the second version of pooling ops, which have window and strides in the inputs
 * `index` and `index` + 1.
 */
bool kernel_window_inputs(const struct kernel_call *call, int index, const struct shape *input,
                          struct window *w, struct error *err) CHECKED;

/* The shape of an image of `channels` channels and the window's output size. */
struct shape kernel_window_out(const struct window *w, int64_t channels);
