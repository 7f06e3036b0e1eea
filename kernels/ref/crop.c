/* crop.c - boxes cut out of images and resized to one size, and their gradients. */

#include "kernels/ref/numbers.h"
#include "kernels/ref/sums.h"

#include <math.h>

struct crop {
    int64_t batch, image[2], channels; /* of the images: height, width */
    int64_t boxes, size[2];            /* of the crops */
    const float *box;                  /* (boxes, 4): y1, x1, y2, x2, in parts of the image */
    const int32_t *image_of;           /* (boxes) */
    bool nearest;
};

/* Where a pixel of a crop lies in the image along one axis. */
struct spot {
    bool outside;
    int64_t lower, upper, nearest;
    float part; /* how far beyond lower */
};

/* Boxes in input `index`, the images they belong to in the next. */
static bool read_boxes(const struct kernel_call *call, int index, struct crop *c,
                       struct error *err)
{
    const struct tensor *boxes = kernel_in(call, index), *owner = kernel_in(call, index + 1);
    c->nearest = strcmp(node_attr_string(call->node, "method", "bilinear"), "nearest") == 0;
    bool forward = strstr(call->node->op->name, "Grad") == NULL;
    char text[SHAPE_TEXT_BYTES];
    if (owner->shape.rank != 1)
        return fail(err, INVALID,
                    forward ? "box_indices must be rank 1 but is shape %s"
                            : "box_index must be 1-D%s",
                    shape_text(&owner->shape, text, sizeof(text)));
    if (boxes->shape.rank != 2)
        return fail(err, INVALID,
                    forward ? "boxes must be 2-D, got: %s" : "boxes must be 2-D%s",
                    shape_text(&boxes->shape, text, sizeof(text)));
    if (boxes->shape.dims[1] != 4)
        return fail(err, INVALID, "boxes must have 4 columns");
    if (owner->shape.rank != 1 || owner->count != boxes->shape.dims[0])
        return fail(err, INVALID, "box_index has incompatible shape");
    c->boxes = boxes->shape.dims[0];
    c->box = tensor_f32(boxes);
    c->image_of = tensor_i32(owner);
    return true;
}

static bool check_owners(const struct crop *c, struct error *err)
{
    for (int64_t b = 0; b < c->boxes; b++)
        if (c->image_of[b] < 0 || c->image_of[b] >= c->batch)
            return fail(err, OUT_OF_RANGE, "box_index has values outside [0, batch_size)");
    return true;
}

static bool read_image(struct crop *c, const struct shape *image, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (image->rank != 4)
        return fail(err, INVALID, "input image must be 4-D%s",
                    shape_text(image, text, sizeof(text)));
    c->batch = image->dims[0];
    c->image[0] = image->dims[1];
    c->image[1] = image->dims[2];
    c->channels = image->dims[3];
    if (c->image[0] <= 0 || c->image[1] <= 0)
        return fail(err, INVALID, "image dimensions must be positive");
    return true;
}

static bool read_crops(struct crop *c, const struct shape *grads, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (grads->rank != 4)
        return fail(err, INVALID, "grads image must be 4-D%s",
                    shape_text(grads, text, sizeof(text)));
    c->size[0] = grads->dims[1];
    c->size[1] = grads->dims[2];
    if (c->size[0] <= 0 || c->size[1] <= 0)
        return fail(err, INVALID, "grads dimensions must be positive");
    if (grads->dims[0] != c->boxes)
        return fail(err, INVALID, "boxes and grads have incompatible shape");
    if (grads->dims[3] != c->channels)
        return fail(err, INVALID, "image_size and grads are incompatible");
    return true;
}

static struct spot find_spot(const struct crop *c, int64_t box, int axis, int64_t i)
{
    float begin = c->box[box * 4 + axis], end = c->box[box * 4 + 2 + axis];
    float last = (float)(c->image[axis] - 1);
    float scale = c->size[axis] > 1 ? (end - begin) * last / (float)(c->size[axis] - 1) : 0;
    float place = c->size[axis] > 1 ? begin * last + (float)i * scale
                                    : (float)(0.5 * (double)(begin + end) * (double)last);
    if (!(place >= 0 && place <= last))
        return (struct spot){.outside = true};
    return (struct spot){false, (int64_t)floorf(place), (int64_t)ceilf(place),
                         (int64_t)roundf(place), place - floorf(place)};
}

static int64_t image_at(const struct crop *c, int64_t box, int64_t y, int64_t x,
                        int64_t channel)
{
    return ((c->image_of[box] * c->image[0] + y) * c->image[1] + x) * c->channels + channel;
}

#define EACH_PIXEL(c, box, y, x)                                                               \
    for (int64_t box = 0; box < (c)->boxes; box++)                                             \
        for (int64_t y = 0; y < (c)->size[0]; y++)                                             \
            for (int64_t x = 0; x < (c)->size[1]; x++)

static bool crop_and_resize_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0), *size = kernel_in(call, 3);
    float beyond = node_attr_float(call->node, "extrapolation_value", 0);
    struct crop c;
    if (!read_image(&c, &in->shape, err) || !read_boxes(call, 1, &c, err))
        return false;
    char text[SHAPE_TEXT_BYTES];
    shape_text(&size->shape, text, sizeof(text));
    if (size->shape.rank != 1)
        return fail(err, INVALID, "crop_size must be 1-D%s", text);
    if (size->count != 2)
        return fail(err, INVALID, "crop_size must have two elements%s", text);
    for (int axis = 0; axis < 2; axis++) {
        c.size[axis] = tensor_integer(size, axis);
        if (c.size[axis] <= 0)
            return fail(err, INVALID, "crop dimensions must be positive");
    }
    if (!check_owners(&c, err))
        return false;
    struct tensor *out =
        kernel_output(call, 0, &SHAPE(c.boxes, c.size[0], c.size[1], c.channels), err);
    if (!out)
        return false;
    kernel_load *load = kernel_load_for(in->dtype);
    float *target = tensor_f32_mut(out);
    EACH_PIXEL(&c, b, cy, cx)
    {
        struct spot y = find_spot(&c, b, 0, cy), x = find_spot(&c, b, 1, cx);
        for (int64_t d = 0; d < c.channels; d++) {
            if (y.outside || x.outside) {
                *target++ = beyond;
                continue;
            }
            if (c.nearest) {
                *target++ = (float)load(in->data, image_at(&c, b, y.nearest, x.nearest, d));
                continue;
            }
            float row[2];
            for (int i = 0; i < 2; i++) {
                int64_t at = i ? y.upper : y.lower;
                float left = (float)load(in->data, image_at(&c, b, at, x.lower, d));
                float right = (float)load(in->data, image_at(&c, b, at, x.upper, d));
                row[i] = left + (right - left) * x.part;
            }
            *target++ = row[0] + (row[1] - row[0]) * y.part;
        }
    }
    return true;
}

static bool image_size(const struct tensor *size, struct shape *shape, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    shape_text(&size->shape, text, sizeof(text));
    if (size->shape.rank != 1)
        return fail(err, INVALID, "image_size must be 1-D%s", text);
    if (size->count != 4)
        return fail(err, INVALID, "image_size must have 4 elements%s", text);
    for (int d = 0; d < 4; d++)
        if (tensor_integer(size, d) < 0)
            return fail(err, INVALID, "Expected a non-negative size, got %lld",
                        (long long)tensor_integer(size, d));
    return kernel_shape_of(size, shape, err);
}

static bool crop_and_resize_grad_image_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0);
    struct shape shape;
    struct crop c;
    if (!image_size(kernel_in(call, 3), &shape, err) || !read_image(&c, &shape, err) ||
        !read_boxes(call, 1, &c, err) || !read_crops(&c, &grads->shape, err) ||
        !check_owners(&c, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    const float *dy = tensor_f32(grads);
    EACH_PIXEL(&c, b, cy, cx)
    {
        struct spot y = find_spot(&c, b, 0, cy), x = find_spot(&c, b, 1, cx);
        for (int64_t d = 0; d < c.channels; d++, dy++) {
            if (y.outside || x.outside)
                continue;
            if (c.nearest) {
                sums[image_at(&c, b, y.nearest, x.nearest, d)] += *dy;
                continue;
            }
            for (int i = 0; i < 4; i++) {
                float row = (i / 2 ? y.part : 1 - y.part) * *dy;
                float share = (i % 2 ? x.part : 1 - x.part) * row;
                sums[image_at(&c, b, i / 2 ? y.upper : y.lower, i % 2 ? x.upper : x.lower,
                              d)] += (double)share;
            }
        }
    }
    kernel_sums_store(out, sums);
    return true;
}

/* How the place along `axis` moves with begin (0) and end (1) of the box. */
static double pull(const struct crop *c, int axis, int64_t i, int end)
{
    double last = (double)(c->image[axis] - 1);
    if (c->size[axis] <= 1)
        return 0.5 * last;
    double along = (double)i * last / (double)(c->size[axis] - 1);
    return end ? along : last - along;
}

static bool crop_and_resize_grad_boxes_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *grads = kernel_in(call, 0), *image = kernel_in(call, 1);
    struct crop c;
    if (!read_image(&c, &image->shape, err) || !read_boxes(call, 2, &c, err) ||
        !read_crops(&c, &grads->shape, err) || !check_owners(&c, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &SHAPE(c.boxes, 4), err);
    double *sums = kernel_sums(call, out, err);
    if (!sums)
        return false;
    kernel_load *load = kernel_load_for(image->dtype);
    const float *dy = tensor_f32(grads);
    EACH_PIXEL(&c, b, cy, cx)
    {
        struct spot y = find_spot(&c, b, 0, cy), x = find_spot(&c, b, 1, cx);
        for (int64_t d = 0; d < c.channels; d++, dy++) {
            if (y.outside || x.outside)
                continue;
            double at[4];
            for (int i = 0; i < 4; i++)
                at[i] = load(image->data, image_at(&c, b, i / 2 ? y.upper : y.lower,
                                                   i % 2 ? x.upper : x.lower, d));
            double slope_y =
                (1 - (double)x.part) * (at[2] - at[0]) + (double)x.part * (at[3] - at[1]);
            double slope_x =
                (1 - (double)y.part) * (at[1] - at[0]) + (double)y.part * (at[3] - at[2]);
            for (int end = 0; end < 2; end++) {
                sums[b * 4 + 2 * end] += (double)*dy * slope_y * pull(&c, 0, cy, end);
                sums[b * 4 + 2 * end + 1] += (double)*dy * slope_x * pull(&c, 1, cx, end);
            }
        }
    }
    kernel_sums_store(out, sums);
    return true;
}

#define IMAGE_TYPES (DTYPES_FLOAT | DTYPES_SIGNED | BIT(U8) | BIT(U16))
#define CROP(name_, dtypes_, run_)                                                             \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_crop_and_resize_ref =
    CROP("CropAndResize", IMAGE_TYPES, crop_and_resize_run);
const struct kernel kernel_crop_and_resize_grad_image_ref = CROP(
    "CropAndResizeGradImage", BIT(F16) | BIT(F32) | BIT(F64), crop_and_resize_grad_image_run);
const struct kernel kernel_crop_and_resize_grad_boxes_ref =
    CROP("CropAndResizeGradBoxes", IMAGE_TYPES, crop_and_resize_grad_boxes_run);
