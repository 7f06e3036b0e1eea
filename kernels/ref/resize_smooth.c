/* resize_smooth.c - images resized by cubic curves through four pixels, and by areas. */

#include "kernels/ref/resize.h"
#include "kernels/ref/sums.h"

#include <float.h>
#include <math.h>

/* --- cubic --- */

#define STEPS 1024 /* places between two pixels that weights are kept for */

/* Weights of the pixels at distance i / STEPS (first) and 1 + i / STEPS (second). */
struct curve {
    float near[STEPS + 1], far[STEPS + 1];
};

/* Four pixels and their weights. */
struct four {
    int64_t pixel[4];
    float weight[4];
};

static void draw_curve(struct curve *curve, double a)
{
    for (int i = 0; i <= STEPS; i++) {
        float x = (float)(i * 1.0 / STEPS);
        curve->near[i] = (float)(((a + 2) * x - (a + 3)) * x * x + 1);
        x = (float)(x + 1.0);
        curve->far[i] = (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
    }
}

static void find_four(const struct resize *r, const struct curve *curve, int axis, int64_t i,
                      struct four *four)
{
    float place = resize_place(r, axis, i), sum = 0;
    int64_t base = (int64_t)floorf(place), last = r->in[axis] - 1;
    int offset = (int)lrintf((place - (float)base) * STEPS);
    const float weights[4] = {curve->far[offset], curve->near[offset],
                              curve->near[STEPS - offset], curve->far[STEPS - offset]};
    for (int k = 0; k < 4; k++) {
        int64_t wanted = base - 1 + k;
        four->pixel[k] = wanted < 0 ? 0 : (wanted > last ? last : wanted);
        /* With half pixels, what lies outside has no weight; else the border is repeated. */
        bool outside = r->half_pixel && four->pixel[k] != wanted;
        four->weight[k] = outside ? 0 : weights[k];
        sum += four->weight[k];
    }
    for (int k = 0; k < 4 && r->half_pixel && fabsf(sum) >= 1000 * FLT_MIN; k++)
        four->weight[k] *= 1 / sum;
}

/* The fours of all output places along both axes. */
static struct four *all_fours(struct kernel_call *call, const struct resize *r,
                              struct error *err)
{
    struct curve curve;
    draw_curve(&curve, r->half_pixel ? -0.5 : -0.75);
    struct four *fours =
        kernel_scratch(call, (size_t)(r->out[0] + r->out[1]) * sizeof(*fours), err);
    for (int64_t i = 0; fours && i < r->out[0] + r->out[1]; i++)
        find_four(r, &curve, i >= r->out[0], i < r->out[0] ? i : i - r->out[0], fours + i);
    return fours;
}

static bool resize_bicubic_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct resize r;
    if (!kernel_resize(call, &r, err))
        return false;
    struct shape shape = resize_shape(&r, r.out);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    struct four *fours = out ? all_fours(call, &r, err) : NULL;
    if (!fours)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    float *target = tensor_f32_mut(out);
    RESIZE_EACH(&r, r.out, n, oy, ox, c)
    {
        const struct four *y = fours + oy, *x = fours + r.out[0] + ox;
        double sum = 0;
        for (int i = 0; i < 16; i++)
            sum += load(in->data, resize_at(&r, r.in, n, y->pixel[i / 4], x->pixel[i % 4], c)) *
                   (double)y->weight[i / 4] * (double)x->weight[i % 4];
        *target++ = (float)sum;
    }
    return true;
}

static bool resize_bicubic_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0), *original = kernel_in(call, 1);
    struct resize r;
    if (!kernel_resize_shapes(call, &original->shape, &grads->shape, &r, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &original->shape, err);
    struct four *fours = out ? all_fours(call, &r, err) : NULL;
    double *sums = fours ? kernel_sums(call, out, err) : NULL;
    if (!sums)
        return false;
    RESIZE_EACH(&r, r.out, n, oy, ox, c)
    {
        const struct four *y = fours + oy, *x = fours + r.out[0] + ox;
        double dy = tensor_f32(grads)[resize_at(&r, r.out, n, oy, ox, c)];
        for (int i = 0; i < 16; i++)
            sums[resize_at(&r, r.in, n, y->pixel[i / 4], x->pixel[i % 4], c)] +=
                dy * (double)y->weight[i / 4] * (double)x->weight[i % 4];
    }
    kernel_sums_store(out, sums);
    return true;
}

/* --- areas --- */

/* How much of original pixel i lies within [begin, end). */
static float covered(int64_t i, float begin, float end)
{
    float from = (float)i < begin ? begin : (float)i;
    float to = (float)(i + 1) > end ? end : (float)(i + 1);
    return to - from;
}

static bool resize_area_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct resize r;
    if (!kernel_resize(call, &r, err))
        return false;
    struct shape shape = resize_shape(&r, r.out);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    float *target = tensor_f32_mut(out);
    for (int axis = 0; axis < 2; axis++) /* one pixel has no distance to its corners */
        if (r.scale[axis] == 0)
            r.scale[axis] = (float)r.in[axis] / (float)r.out[axis];
    double area = (double)r.scale[0] * (double)r.scale[1];
    RESIZE_EACH(&r, r.out, n, oy, ox, c)
    {
        float y0 = (float)oy * r.scale[0], y1 = (float)(oy + 1) * r.scale[0];
        float x0 = (float)ox * r.scale[1], x1 = (float)(ox + 1) * r.scale[1];
        double sum = 0;
        for (int64_t y = (int64_t)floorf(y0); y < (int64_t)ceilf(y1); y++)
            for (int64_t x = (int64_t)floorf(x0); x < (int64_t)ceilf(x1); x++) {
                int64_t row = y < r.in[0] ? y : r.in[0] - 1;
                int64_t column = x < r.in[1] ? x : r.in[1] - 1;
                sum += load(in->data, resize_at(&r, r.in, n, row, column, c)) *
                       (double)covered(y, y0, y1) * (double)covered(x, x0, x1);
            }
        *target++ = (float)(sum / area);
    }
    return true;
}

#define RESIZE_TYPES (DTYPES_FLOAT | DTYPES_SIGNED | BIT(U8) | BIT(U16))
#define RESIZE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_resize_bicubic_ref =
    RESIZE("ResizeBicubic", RESIZE_TYPES, resize_bicubic_run);
const struct kernel kernel_resize_bicubic_grad_ref =
    RESIZE("ResizeBicubicGrad", BIT(F32) | BIT(F64), resize_bicubic_grad_run);
const struct kernel kernel_resize_area_ref =
    RESIZE("ResizeArea", RESIZE_TYPES, resize_area_run);
