/*
 * conv2d.h - what the three convolution kernels share: attributes, geometry, the oneDNN parts.
 *
 * Images are NHWC and filters HWIO, TensorFlow's; oneDNN takes images as they are (its "acdb")
 * and says itself how it wants filters, which are copied into that layout at each step.
 */
#pragma once

#include "kernels/cpu/onednn.h"
#include "runtime/shape.h"

struct conv2d_part;
struct kernel_call;
struct node;
struct tensor;

/* One convolution in all its sizes; equal ones share a primitive. */
struct conv2d_shape {
    int64_t batch, in_height, in_width, in_channels;
    int64_t filter_height, filter_width, out_channels, groups;
    int64_t out_height, out_width;
    int64_t stride_height, stride_width, dilation_height, dilation_width;
    int64_t pad_top, pad_bottom, pad_left, pad_right;
};

/* State of a node. */
struct conv2d {
    int64_t strides[2], dilations[2];
    int64_t explicit_pads[4]; /* top, bottom, left, right */
    bool same, is_explicit;
    bool bias, relu;
    bool winograd;            /* where it suits; see winograd.h */
    dnnl_data_type_t factors; /* what they are multiplied in; sums are float */

    /* Made at the first run, and again when sizes or threads change. */
    struct conv2d_shape made_for;
    int threads;
    struct onednn_primitive main, filter_in, filter_out;
    void *packed; /* the filter in oneDNN's layout; NULL when it is ours */

    /* The filter's gradient: primitives for parts of the sum; see conv2d_filter_grad.c. */
    struct conv2d_part *parts;
    int parts_count, parts_capacity;
    dnnl_memory_desc_t given; /* the layout that all parts write */
    int64_t given_count;      /* its floats; 0: no part is made yet */
};

/* Layouts that all three directions agree on. */
struct conv2d_layouts {
    dnnl_memory_desc_t image, result, filter_any, filter_ours, bias;
    dnnl_dims_t strides, dilations, pad_before, pad_after;
};

/* kernel.accepts: NHWC, batch and channels neither strided nor dilated. */
bool conv2d_accepts(const struct node *node);

bool conv2d_prepare(const struct node *node, void **state, struct error *err);
void conv2d_release(void *state);

/* Computes all sizes from those of image and filter, which kernel_conv_rules() has let pass. */
void conv2d_shape(const struct conv2d *c, const struct shape *image, const struct shape *filter,
                  struct conv2d_shape *shape);

/*
 * Sets c->factors: bfloat16 where the call wants it and there are instructions for it.  Grouped
 * filters are multiplied in float in any case.
 */
void conv2d_set_factors(struct conv2d *c, const struct kernel_call *call,
                        const struct conv2d_shape *shape);

/*
 * A factor as the primitives take it: `x` itself; or if the call wants bfloat16, `count`
 * rounded elements of c->factors in scratch memory.  NULL (EXHAUSTED) without memory.
 */
const void *conv2d_factor(const struct conv2d *c, struct kernel_call *call, const float *x,
                          int64_t count, struct error *err) CHECKED;

/* The same of a filter that is packed: the packing rounds to bfloat16 by itself. */
const void *conv2d_filter(const struct conv2d *c, struct kernel_call *call,
                          const struct tensor *filter, struct error *err) CHECKED;

/* All but filter_ours and bias are of c->factors; who writes sums into one makes it float. */
bool conv2d_layouts(const struct conv2d *c, const struct conv2d_shape *shape,
                    struct conv2d_layouts *layouts, struct error *err) CHECKED;

/* Forgets the primitives; true when there are none for this shape and these threads. */
bool conv2d_is_stale(struct conv2d *c, const struct conv2d_shape *shape, int threads);

/* Memory for the filter in layout `wanted`, unless that is `ours`. */
bool conv2d_pack(struct conv2d *c, const dnnl_memory_desc_t *ours,
                 const dnnl_memory_desc_t *wanted, struct error *err) CHECKED;

/* The description of the forward pass, which those of the others are hints for.  Owned. */
bool conv2d_forward(const struct conv2d *c, const struct conv2d_layouts *layouts,
                    dnnl_primitive_desc_t *desc, struct error *err) CHECKED;

/* Frees c->parts. */
void conv2d_forget_parts(struct conv2d *c);
