/*
 * winograd.h - convolutions by Winograd's algorithm, images as they are (NHWC), filters HWIO.
 *
 * Patches of 6x6 places are brought to 36 points, where the convolution is a product of
 * matrices for each of them, and back: F(4x4,3x3) takes a quarter of the multiplications, and
 * F(2x2,5x5) 2.8 times fewer.  The error is some times that of the sum itself: about 1e-6 of
 * the largest result.  What becomes of a patch does not depend on the others, nor on the
 * threads; only the sums of the filter's gradient are put together by threads.
 *
 * Where the call wants bfloat16, it is the numbers at the points that are rounded to it.
 */
#pragma once

#include "base/base.h"

struct conv2d_shape;
struct error;
struct kernel_call;

/*
 * Filters of 3x3 or 5x5 that move by one place, channels in whole vectors of 16; and a call
 * that wants bfloat16 only where the machine has instructions for it.
 */
bool winograd_suits(const struct kernel_call *call, const struct conv2d_shape *shape);

/* With bias (NULL: none) and Relu.  Takes scratch memory: fails with EXHAUSTED. */
bool winograd_forward(struct kernel_call *call, const struct conv2d_shape *shape,
                      const float *image, const float *filter, const float *bias, bool relu,
                      float *result, struct error *err) CHECKED;

bool winograd_image_grad(struct kernel_call *call, const struct conv2d_shape *shape,
                         const float *filter, const float *grad, float *image_grad,
                         struct error *err) CHECKED;

bool winograd_filter_grad(struct kernel_call *call, const struct conv2d_shape *shape,
                          const float *image, const float *grad, float *filter_grad,
                          struct error *err) CHECKED;
