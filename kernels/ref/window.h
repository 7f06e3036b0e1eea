/*
 * window.h - windows that slide over images and volumes: what convolutions and pooling have
 * in common.
 *
 * All is seen as (batch, planes, height, width, channels) whatever its data format; an image
 * is a volume of one plane.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct window {
    int dims; /* 2: images, 3: volumes */
    bool channels_first;
    int64_t batch, channels; /* of the input */
    int64_t size[3];         /* of the input: planes, height, width */
    int64_t window[3];       /* of the filter */
    int64_t stride[3];
    int64_t dilation[3];
    int64_t before[3]; /* padding in front; negative: as much is skipped */
    int64_t out[3];
};

/*
 * Reads the attributes of the node and works out the windows on an input of shape `input`.
 * `window` is the size of the filter, or NULL: then from the attribute ksize.  Ops on volumes
 * have "3D" in their names.  Fails with INVALID and, as TensorFlow does, UNIMPLEMENTED.
 */
bool kernel_window(const struct node *node, const struct shape *input, const int64_t *window,
                   struct window *w, struct error *err) CHECKED;

/*
 * The same for the second version of pooling ops, which have window and strides in the inputs
 * `index` and `index` + 1.
 */
bool kernel_window_inputs(const struct kernel_call *call, int index, const struct shape *input,
                          struct window *w, struct error *err) CHECKED;

/*
 * Nothing is skipped any more.  With strides larger than windows, TensorFlow centres windows in
 * a volume for "SAME" on the way forward, but not on the way back: its gradients begin at the
 * first element.
 */
void kernel_window_pad(struct window *w);

/* The shape of an output of `channels` channels. */
struct shape kernel_window_out(const struct window *w, int64_t channels);

/* Where the element (n, place, c) of a tensor of that size is. */
static inline int64_t window_at(const struct window *w, const int64_t size[3], int64_t channels,
                                int64_t n, const int64_t place[3], int64_t c)
{
    int64_t first = w->channels_first ? n * channels + c : n;
    int64_t at = ((first * size[0] + place[0]) * size[1] + place[1]) * size[2] + place[2];
    return w->channels_first ? at : at * channels + c;
}

static inline int64_t window_places(const int64_t size[3])
{
    return size[0] * size[1] * size[2];
}

/* The next place of the box from `begin` to `end`, row-major; behind the last the first. */
static inline void window_step(const int64_t begin[3], const int64_t end[3], int64_t place[3])
{
    for (int d = 2; d >= 0; d--) {
        if (++place[d] < end[d])
            return;
        place[d] = begin[d];
    }
}
