/*
 * volume.h - windows that slide over volumes: convolutions and pooling in three dimensions.
 *
 * Volumes are seen as (batch, planes, height, width, channels) whatever their data format.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct volume {
    bool channels_first;
    int64_t batch, channels; /* of the input */
    int64_t size[3];         /* of the input: planes, height, width */
    int64_t window[3];
    int64_t stride[3];
    int64_t before[3]; /* padding in front; negative: as much is skipped */
    int64_t out[3];
};

/*
 * Reads the attributes of the node and works out the windows on an input of shape `input`.
 * `window` is the size of the filter, or NULL: then from the attribute ksize.  Fails with
 * INVALID.
 */
bool kernel_volume(const struct node *node, const struct shape *input, const int64_t *window,
                   struct volume *v, struct error *err) CHECKED;

/*
 * Nothing is skipped any more.  With strides larger than windows, TensorFlow centres windows in
 * the input for "SAME" on the way forward, but not on the way back: its gradients begin at the
 * first element.
 */
void kernel_volume_pad(struct volume *v);

/* The shape of a volume of `channels` channels and the windows' output size. */
struct shape kernel_volume_out(const struct volume *v, int64_t channels);

static inline int64_t volume_at(const struct volume *v, const int64_t size[3], int64_t channels,
                                int64_t n, const int64_t place[3], int64_t c)
{
    int64_t first = v->channels_first ? n * channels + c : n;
    int64_t at = ((first * size[0] + place[0]) * size[1] + place[1]) * size[2] + place[2];
    return v->channels_first ? at : at * channels + c;
}

/* Number `index` of the places of a volume of that size, row-major. */
static inline void volume_place(const int64_t size[3], int64_t index, int64_t place[3])
{
    for (int d = 2; d >= 0; d--) {
        place[d] = index % size[d];
        index /= size[d];
    }
}

static inline int64_t volume_places(const int64_t size[3])
{
    return size[0] * size[1] * size[2];
}
