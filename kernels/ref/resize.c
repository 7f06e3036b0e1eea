/* resize.c - images made larger and smaller: between pixels, nearest pixel; and gradients. */

#include "kernels/ref/resize.h"
#include "kernels/ref/sums.h"

#include <math.h>

static float scale_of(const struct resize *r, int axis)
{
    return r->align_corners && r->out[axis] > 1
               ? (float)(r->in[axis] - 1) / (float)(r->out[axis] - 1)
               : (float)r->in[axis] / (float)r->out[axis];
}

/* `both`: TensorFlow takes both attributes for the gradient of the nearest pixel. */
static bool finish(struct resize *r, bool both, struct error *err)
{
    if (r->align_corners && r->half_pixel && !both)
        return fail(err, INVALID,
                    "If half_pixel_centers is True, align_corners must be False.");
    for (int axis = 0; axis < 2; axis++) {
        if (r->out[axis] <= 0)
            return fail(err, INVALID, "output dimensions must be positive");
        if (r->in[axis] <= 0)
            return fail(err, INVALID, "input image must be of non-zero size");
        if (r->in[axis] > INT32_MAX || r->out[axis] > INT32_MAX)
            return fail(err, INVALID, "image sizes must be less than 2^31");
        r->scale[axis] = scale_of(r, axis);
    }
    return true;
}

static void read_attrs(const struct node *node, struct resize *r)
{
    r->align_corners = node_attr_bool(node, "align_corners", false);
    r->half_pixel = node_attr_bool(node, "half_pixel_centers", false);
}

bool kernel_resize(const struct kernel_call *call, struct resize *r, struct error *err)
{
    const struct shape *in = &kernel_in(call, 0)->shape;
    const struct tensor *size = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    read_attrs(call->node, r);
    if (in->rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(in, text, sizeof(text)));
    if (size->shape.rank != 1)
        return fail(err, INVALID, "shape_t must be 1-dimensional%s",
                    shape_text(&size->shape, text, sizeof(text)));
    if (size->count != 2)
        return fail(err, INVALID, "shape_t must have two elements%s",
                    shape_text(&size->shape, text, sizeof(text)));
    r->batch = in->dims[0];
    r->channels = in->dims[3];
    for (int axis = 0; axis < 2; axis++) {
        r->in[axis] = in->dims[1 + axis];
        r->out[axis] = tensor_integer(size, axis);
    }
    if (strcmp(call->node->op->name, "ResizeBicubic") == 0 && r->channels == 0)
        return fail(err, INVALID, "image must have at least one channel");
    return finish(r, false, err);
}

bool kernel_resize_shapes(const struct kernel_call *call, const struct shape *original,
                          const struct shape *resized, struct resize *r, struct error *err)
{
    read_attrs(call->node, r);
    if (resized->rank != 4)
        return fail(err, INVALID, "input_grad must be 4-dimensional");
    if (original->rank != 4)
        return fail(err, INVALID, "original_image must be 4-dimensional");
    if (original->dims[0] != resized->dims[0] || original->dims[3] != resized->dims[3])
        return fail(err, INVALID, "batch and channels of the images differ");
    r->batch = original->dims[0];
    r->channels = original->dims[3];
    for (int axis = 0; axis < 2; axis++) {
        r->in[axis] = original->dims[1 + axis];
        r->out[axis] = resized->dims[1 + axis];
    }
    return finish(r, strcmp(call->node->op->name, "ResizeNearestNeighborGrad") == 0, err);
}

/* --- between pixels --- */

/* Two neighbours and how far the place is from the lower one. */
struct between {
    int64_t lower, upper;
    float part;
};

static struct between find_between(const struct resize *r, int axis, int64_t i)
{
    float place = resize_place(r, axis, i), floor_of = floorf(place);
    int64_t lower = floor_of > 0 ? (int64_t)floor_of : 0;
    int64_t upper = (int64_t)ceilf(place);
    upper = upper < r->in[axis] - 1 ? upper : r->in[axis] - 1;
    return (struct between){lower < upper ? lower : upper, upper, place - floor_of};
}

static float mix(float a, float b, float part)
{
    return a + (b - a) * part;
}

static bool resize_bilinear_run(struct kernel_call *call, struct error *err)
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
    bool same = r.in[0] == r.out[0] && r.in[1] == r.out[1];
    RESIZE_EACH(&r, r.out, n, oy, ox, c)
    {
        struct between y = find_between(&r, 0, oy), x = find_between(&r, 1, ox);
        if (same) {
            *target++ = (float)load(in->data, resize_at(&r, r.in, n, oy, ox, c));
            continue;
        }
        float corner[2][2];
        for (int i = 0; i < 4; i++)
            corner[i / 2][i % 2] =
                (float)load(in->data, resize_at(&r, r.in, n, i / 2 ? y.upper : y.lower,
                                                i % 2 ? x.upper : x.lower, c));
        *target++ = mix(mix(corner[0][0], corner[0][1], x.part),
                        mix(corner[1][0], corner[1][1], x.part), y.part);
    }
    return true;
}

static bool resize_bilinear_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0), *original = kernel_in(call, 1);
    struct resize r;
    if (!kernel_resize_shapes(call, &original->shape, &grads->shape, &r, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &original->shape, err);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    RESIZE_EACH(&r, r.out, n, oy, ox, c)
    {
        struct between y = find_between(&r, 0, oy), x = find_between(&r, 1, ox);
        float dy = tensor_f32(grads)[resize_at(&r, r.out, n, oy, ox, c)];
        for (int i = 0; i < 4; i++) {
            float share = dy * (i / 2 ? y.part : 1 - y.part) * (i % 2 ? x.part : 1 - x.part);
            sums[resize_at(&r, r.in, n, i / 2 ? y.upper : y.lower, i % 2 ? x.upper : x.lower,
                           c)] += (double)share;
        }
    }
    kernel_sums_store(out, sums);
    return true;
}

/* --- nearest pixel --- */

static int64_t nearest(const struct resize *r, int axis, int64_t i)
{
    float place =
        r->half_pixel ? ((float)i + 0.5F) * r->scale[axis] : (float)i * r->scale[axis];
    int64_t pixel = (int64_t)(r->align_corners ? roundf(place) : floorf(place));
    pixel = pixel < r->in[axis] - 1 ? pixel : r->in[axis] - 1;
    return pixel > 0 ? pixel : 0;
}

static bool resize_nearest_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    struct resize r;
    if (!kernel_resize(call, &r, err))
        return false;
    struct shape shape = resize_shape(&r, r.out);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    int64_t at = 0;
    RESIZE_EACH(&r, r.out, n, y, x, c)
    {
        int64_t from = resize_at(&r, r.in, n, nearest(&r, 0, y), nearest(&r, 1, x), c);
        kernel_copy(out, at++, in, from, 1);
    }
    return true;
}

static bool resize_nearest_grad_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0), *size = kernel_in(call, 1);
    struct resize r;
    char text[SHAPE_TEXT_BYTES];
    if (grads->shape.rank != 4)
        return fail(err, INVALID, "input must be 4-dimensional%s",
                    shape_text(&grads->shape, text, sizeof(text)));
    shape_text(&size->shape, text, sizeof(text));
    if (size->shape.rank != 1)
        return fail(err, INVALID, "shape_t must be 1-dimensional%s", text);
    if (size->count != 2)
        return fail(err, INVALID, "shape_t must have two elements%s", text);
    struct shape shape = grads->shape;
    shape.dims[1] = tensor_integer(size, 0);
    shape.dims[2] = tensor_integer(size, 1);
    if (shape.dims[1] <= 0 || shape.dims[2] <= 0)
        return fail(err, INVALID, "shape_t's elements must be positive");
    if (!kernel_resize_shapes(call, &shape, &grads->shape, &r, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(grads->dtype);
    int64_t at = 0;
    RESIZE_EACH(&r, r.out, n, y, x, c)
    {
        sums[resize_at(&r, r.in, n, nearest(&r, 0, y), nearest(&r, 1, x), c)] +=
            load(grads->data, at++);
    }
    kernel_sums_store(out, sums);
    return true;
}

#define RESIZE_TYPES (DTYPES_FLOAT | DTYPES_SIGNED | BIT(U8) | BIT(U16))
#define RESIZE(name_, dtypes_, run_)                                                           \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_resize_bilinear_ref =
    RESIZE("ResizeBilinear", RESIZE_TYPES, resize_bilinear_run);
const struct kernel kernel_resize_bilinear_grad_ref =
    RESIZE("ResizeBilinearGrad", DTYPES_FLOAT, resize_bilinear_grad_run);
const struct kernel kernel_resize_nearest_neighbor_ref =
    RESIZE("ResizeNearestNeighbor", RESIZE_TYPES, resize_nearest_run);
const struct kernel kernel_resize_nearest_neighbor_grad_ref =
    RESIZE("ResizeNearestNeighborGrad", DTYPES_FLOAT | BIT(U8) | BIT(I8) | BIT(I32),
           resize_nearest_grad_run);
