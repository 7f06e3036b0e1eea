/*
 * window.h - how a window moves over an image: what convolutions and poolings have in common.
 */
#pragma once

#include "runtime/onnx/internal.h"

#define WINDOW_DIMS_MAX 3

struct window {
    int dims; /* height and width, or depth too */
    int64_t size[WINDOW_DIMS_MAX], strides[WINDOW_DIMS_MAX], rates[WINDOW_DIMS_MAX];
    int64_t pads[2 * WINDOW_DIMS_MAX]; /* before each dimension, then after */
    const char *auto_pad;              /* in place of pads: NULL, or as ONNX names it */
};

/*
 * Reads strides, dilations and padding of the node, whose image is input `input`; `size` is the
 * window's.  Refuses what is not channels last, and strides over examples or channels.
 */
bool window_read(struct onnx *o, int input, const int64_t *size, int dims, struct window *out);

/* Adds the attributes that ONNX has for it; returns how many there are then. */
int window_attrs(const struct window *window, bool rates, struct onnx_attr *attrs, int count);
#define WINDOW_ATTRS_MAX 4
