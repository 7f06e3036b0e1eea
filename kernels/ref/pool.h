/*
 * pool.h - walks over the windows of a pooling op and over the elements of a window.
 */
#pragma once

#include "kernels/ref/window.h"

/* For gradients TensorFlow takes windows of no size, and less, where nothing goes to. */
static inline bool pool_has_windows(const struct node *node)
{
    int count;
    const int64_t *ksize = node_attr_ints(node, "ksize", &count);
    for (int i = 0; i < count; i++)
        if (ksize[i] <= 0)
            return false;
    return true;
}

/* An element of the output. */
struct spot {
    int64_t n, place[3], c;
};

/* Walks the output: for each example and place all channels. */
#define POOL_EACH(w, spot) for (struct spot spot = {0}; pool_in(w, &spot); pool_step(w, &spot))

static inline bool pool_in(const struct window *w, const struct spot *spot)
{
    return spot->n < w->batch && w->channels > 0 && window_places(w->out) > 0;
}

static inline void pool_step(const struct window *w, struct spot *spot)
{
    if (++spot->c < w->channels)
        return;
    spot->c = 0;
    window_step((const int64_t[3]){0}, w->out, spot->place);
    if (spot->place[0] + spot->place[1] + spot->place[2] == 0)
        spot->n++;
}

/* Where the element is in the output. */
static inline int64_t pool_out(const struct window *w, const struct spot *spot)
{
    return window_at(w, w->out, w->channels, spot->n, spot->place, spot->c);
}

/* The part of a window that lies within the input, and how much of it is not walked yet. */
struct part {
    int64_t begin[3], end[3], at[3];
    int64_t left;
};

static inline struct part pool_part(const struct window *w, const struct spot *spot)
{
    struct part part = {.left = 1};
    for (int d = 0; d < 3; d++) {
        int64_t from = spot->place[d] * w->stride[d] - w->before[d], to = from + w->window[d];
        part.begin[d] = part.at[d] = from < 0 ? 0 : from;
        part.end[d] = to > w->size[d] ? w->size[d] : to;
        part.left *= part.end[d] > part.begin[d] ? part.end[d] - part.begin[d] : 0;
    }
    return part;
}

/* The next element, row-major: where it is in the input.  False when there is none left. */
static inline bool pool_next(const struct window *w, const struct spot *spot, struct part *part,
                             int64_t *at)
{
    if (part->left == 0)
        return false;
    *at = window_at(w, w->size, w->channels, spot->n, part->at, spot->c);
    window_step(part->begin, part->end, part->at);
    part->left--;
    return true;
}
