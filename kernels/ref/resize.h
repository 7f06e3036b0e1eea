/*
 * resize.h - where the pixels of a resized image come from.
 *
 * Places are computed in float, step by step as TensorFlow does: a rounding here picks another
 * pixel.
 */
#pragma once

#include "kernels/ref/numbers.h"

struct resize {
    bool align_corners, half_pixel;
    int64_t batch, channels;
    int64_t in[2]; /* height, width of the original image */
    int64_t out[2];
    float scale[2]; /* original pixels per pixel */
};

/* Of a forward operation: images in input 0, (height, width) in input 1.  Fails with INVALID.
 */
bool kernel_resize(const struct kernel_call *call, struct resize *r, struct error *err) CHECKED;

/* From the shapes of the original and the resized image; same failures. */
bool kernel_resize_shapes(const struct kernel_call *call, const struct shape *original,
                          const struct shape *resized, struct resize *r,
                          struct error *err) CHECKED;

static inline struct shape resize_shape(const struct resize *r, const int64_t size[2])
{
    return SHAPE(r->batch, size[0], size[1], r->channels);
}

/* The place in the original image of pixel i along axis 0 (y) or 1 (x). */
static inline float resize_place(const struct resize *r, int axis, int64_t i)
{
    return r->half_pixel ? ((float)i + 0.5F) * r->scale[axis] - 0.5F
                         : (float)i * r->scale[axis];
}

static inline int64_t resize_at(const struct resize *r, const int64_t size[2], int64_t n,
                                int64_t y, int64_t x, int64_t c)
{
    return ((n * size[0] + y) * size[1] + x) * r->channels + c;
}

/* How many images to walk: none that have no elements, however large their other sizes are. */
static inline int64_t resize_images(const struct resize *r, const int64_t size[2])
{
    return size[0] && size[1] && r->channels ? r->batch : 0;
}

/* Walks images of that size in the order (batch, y, x, channel). */
#define RESIZE_EACH(r, size, n, y, x, c)                                                       \
    for (int64_t n = 0; n < resize_images((r), (size)); n++)                                   \
        for (int64_t y = 0; y < (size)[0]; y++)                                                \
            for (int64_t x = 0; x < (size)[1]; x++)                                            \
                for (int64_t c = 0; c < (r)->channels; c++)
