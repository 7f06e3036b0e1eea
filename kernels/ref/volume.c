/* volume.c - the geometry of windows over volumes, from a node's attributes. */

#include "kernels/ref/volume.h"

static bool five(const struct node *node, const char *name, const int64_t **values,
                 struct error *err)
{
    int count;
    *values = node_attr_ints(node, name, &count);
    return count == 5 ||
           fail(err, INVALID, "Sliding window %s field must specify 5 dimensions", name);
}

static bool place_windows(struct volume *v, int d, bool same, struct error *err)
{
    v->before[d] = 0;
    v->out[d] = (v->size[d] - v->window[d] + v->stride[d]) / v->stride[d];
    if (same) {
        v->out[d] = (v->size[d] + v->stride[d] - 1) / v->stride[d];
        v->before[d] = ((v->out[d] - 1) * v->stride[d] + v->window[d] - v->size[d]) / 2;
    }
    return v->out[d] >= 0 || fail(err, INVALID, "Computed output size would be negative: %lld",
                                  (long long)v->out[d]);
}

bool kernel_volume(const struct node *node, const struct shape *input, const int64_t *window,
                   struct volume *v, struct error *err)
{
    const int64_t *strides, *ksize = NULL;
    int dilations_count;
    const int64_t *dilations = node_attr_ints(node, "dilations", &dilations_count);
    bool same = strcmp(node_attr_string(node, "padding", "VALID"), "SAME") == 0;
    char text[SHAPE_TEXT_BYTES];
    if (input->rank != 5)
        return fail(err, INVALID, "input must be 5-dimensional, got %s",
                    shape_text(input, text, sizeof(text)));
    if (!five(node, "strides", &strides, err) || (!window && !five(node, "ksize", &ksize, err)))
        return false;
    v->channels_first = strcmp(node_attr_string(node, "data_format", "NDHWC"), "NCDHW") == 0;
    int channel_axis = v->channels_first ? 1 : 4, first = v->channels_first ? 2 : 1;
    if (strides[0] != 1 || strides[channel_axis] != 1 ||
        (ksize && (ksize[0] != 1 || ksize[channel_axis] != 1)))
        return fail(err, INVALID,
                    "Current implementation does not yet support strides in the batch and "
                    "depth dimensions.");
    v->batch = input->dims[0];
    v->channels = input->dims[channel_axis];
    for (int d = 0; d < 3; d++) {
        v->size[d] = input->dims[first + d];
        v->window[d] = window ? window[d] : ksize[first + d];
        v->stride[d] = strides[first + d];
        if (v->stride[d] <= 0 || (!window && v->window[d] <= 0))
            return fail(err, INVALID, "strides and window sizes must be positive");
        if (dilations_count == 5 && dilations[first + d] != 1)
            return fail(err, INVALID,
                        "CPU implementation of %s currently only supports dilated rates of 1.",
                        node->op->name);
        if (!place_windows(v, d, same, err))
            return false;
    }
    return true;
}

void kernel_volume_pad(struct volume *v)
{
    for (int d = 0; d < 3; d++)
        v->before[d] = v->before[d] < 0 ? 0 : v->before[d];
}

struct shape kernel_volume_out(const struct volume *v, int64_t channels)
{
    return v->channels_first ? SHAPE(v->batch, channels, v->out[0], v->out[1], v->out[2])
                             : SHAPE(v->batch, v->out[0], v->out[1], v->out[2], channels);
}
