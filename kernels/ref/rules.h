/*
 * rules.h - what TensorFlow refuses of convolutions and pooling: its checks, in its order, its
 * codes and its words.  What passes can be computed.
 */
#pragma once

#include "kernels/list.h"

/* A dimension of 2 or 3 that windows slide along. */
struct slide {
    int64_t size, window, dilation, stride;
    int64_t before, after; /* explicit padding */
    bool same;             /* padding "SAME" */
};

/* The size of the output.  Fails with INVALID where it is negative, or a stride is not. */
bool kernel_slide(const struct slide *slide, int64_t *out, struct error *err) CHECKED;

/*
 * A convolution's or its gradients' attributes and inputs.  `input` and `filter` are set to the
 * shapes of the image and the filter, also where an input holds the numbers.
 */
bool kernel_conv_rules(const struct kernel_call *call, struct shape *input,
                       struct shape *filter, struct error *err) CHECKED;

/*
 * The same of a pooling op of any version: of images and volumes, maxima and means, their
 * gradients.  `input` is set to the shape of what the windows slide over.
 */
bool kernel_pool_rules(const struct kernel_call *call, struct shape *input,
                       struct error *err) CHECKED;
