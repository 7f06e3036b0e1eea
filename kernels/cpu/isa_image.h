/* isa_image.h - what the inner loops for images are given; see isa.h. */
#pragma once

#include "base/base.h"

struct isa_pool {
    int64_t height, width, channels; /* of one input image */
    int64_t out_height, out_width;
    int64_t window_height, window_width, stride_height, stride_width;
    int64_t pad_top, pad_left;
};

/* Which of the gradients of a normalised image count: those that Relu let through. */
enum isa_norm_mask {
    ISA_NORM_PLAIN, /* all */
    ISA_NORM_BY_X,  /* where x * slope + shift > 0 */
    ISA_NORM_BY_Y,  /* where y > 0; the others are 0 in `masked` */
};

/* The gradient of batch normalisation for a block (rows,columns). */
struct isa_norm_grad {
    int64_t rows, columns;
    enum isa_norm_mask mask;
    const float *grad, *x, *y;         /* (rows,columns); y for BY_Y */
    const float *mean, *slope, *shift; /* (columns) */
    float *masked;                     /* (rows,columns), for BY_Y; may be `grad` */
};

/*
 * Winograd's convolution (winograd.h): a patch of an image, (n,n) places, is brought to 36
 * points and back.  Channels are whole vectors.
 */
struct isa_winograd {
    int64_t channels;
    float *const *space; /* (n,n): where the channels of each place are */
    float *const *later; /* the same of a patch that is to come, or `space`; for spread */
    float *points;       /* vector v of point p at points[p * stride + v * advance] */
    int64_t stride, advance;
    const float *bias; /* (channels), added on the way back; NULL: none */
    bool relu;         /* max(., 0), after the bias */
};

/*
 * The products of all patches of a block at one point.  Channels c .. c + lanes of patch t are
 * at x[(c * room + t * lanes)], those of y alike.
 */
struct isa_winograd_product {
    int64_t patches, room; /* room: a multiple of tile_rows, as there may be more written */
    int64_t in, out;       /* channels of x and y */
    float *x, *y;
    const float *filter; /* (in,out); of winograd_product() */
    float *sums;         /* (in,out); of winograd_sums() */
    bool add;            /* to what is there */
};
