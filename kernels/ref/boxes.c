/* boxes.c - boxes in images: random crops that cover enough of them, and the best of many. */

#include "kernels/ref/random.h"

#include <math.h>

/* --- random crops --- */

/* In pixels; max is one beyond. */
struct rectangle {
    int64_t min_x, min_y, max_x, max_y;
};

struct distortion {
    int height, width;
    float aspect[2], area[2], covered;
    int64_t attempts;
    const struct rectangle *objects;
    int64_t objects_count;
};

static float area_of(const struct rectangle *r)
{
    return (float)((r->max_x - r->min_x) * (r->max_y - r->min_y));
}

static float common_area(const struct rectangle *a, const struct rectangle *b)
{
    const struct rectangle both = {
        a->min_x > b->min_x ? a->min_x : b->min_x, a->min_y > b->min_y ? a->min_y : b->min_y,
        a->max_x < b->max_x ? a->max_x : b->max_x, a->max_y < b->max_y ? a->max_y : b->max_y};
    return both.max_x <= both.min_x || both.max_y <= both.min_y ? 0 : area_of(&both);
}

static bool covers_enough(const struct distortion *d, const struct rectangle *crop)
{
    if (area_of(crop) < 1)
        return false;
    for (int64_t i = 0; i < d->objects_count; i++) {
        float area = area_of(&d->objects[i]);
        if (area >= 1 && common_area(crop, &d->objects[i]) / area >= d->covered)
            return true;
    }
    return false;
}

/* The greatest height whose width still fits. */
static int greatest_height(const struct distortion *d, float greatest_area, float aspect)
{
    int height = (int)lrintf(sqrtf(greatest_area / aspect));
    if (lrintf((float)height * aspect) > d->width) {
        height = (int)(((double)d->width + 0.5 - (double)0.0000001F) / (double)aspect);
        if (lrintf((float)height * aspect) > d->width)
            height--;
    }
    return height > d->height ? d->height : height;
}

/* A crop of that aspect ratio with an area in bounds; false when there is none. */
static bool draw_crop(const struct distortion *d, float aspect, struct random_words *words,
                      struct rectangle *crop)
{
    if (d->area[1] <= 0 || aspect <= 0 || d->width <= 0 || d->height <= 0 ||
        d->area[0] > d->area[1])
        return false;
    float least = d->area[0] * (float)d->width * (float)d->height;
    float greatest = d->area[1] * (float)d->width * (float)d->height;
    int height = (int)lrintf(sqrtf(least / aspect));
    int height_max = greatest_height(d, greatest, aspect);
    if (height >= height_max)
        height = height_max;
    else
        height += (int)kernel_random_below32(words, (uint32_t)(height_max - height + 1));
    int width = (int)lrintf((float)height * aspect);
    float area = (float)(width * height);
    /* Rounding may have brought the area out of its bounds: one row more, or less. */
    for (int step = 1; step >= -1; step -= 2)
        if (step > 0 ? area < least : area > greatest) {
            height += step;
            width = (int)lrintf((float)height * aspect);
            area = (float)(width * height);
        }
    if (area < least || area > greatest || width > d->width || height > d->height ||
        width <= 0 || height <= 0)
        return false;
    int64_t y =
        height < d->height ? kernel_random_below32(words, (uint32_t)(d->height - height)) : 0;
    int64_t x =
        width < d->width ? kernel_random_below32(words, (uint32_t)(d->width - width)) : 0;
    *crop = (struct rectangle){x, y, x + width, y + height};
    return true;
}

/* A number in [0, 1) of one word. */
static float draw_fraction(struct random_words *words)
{
    union {
        uint32_t bits;
        float number;
    } u;
    u.bits = UINT32_C(127) << 23 | (kernel_random_word(words) & 0x7fffff);
    return u.number - 1;
}

#define TURNS 1024 /* attempts, from one look at whether the run is to end to the next */

/* The first crop that will do, or the whole image. */
static bool find_crop(struct kernel_call *call, const struct distortion *d,
                      struct random_words *words, struct rectangle *crop, struct error *err)
{
    for (int64_t i = 0; i < d->attempts; i++) {
        if (i % TURNS == TURNS - 1 && !kernel_go_on(call, err))
            return false;
        float aspect = draw_fraction(words) * (d->aspect[1] - d->aspect[0]) + d->aspect[0];
        if (draw_crop(d, aspect, words, crop) && covers_enough(d, crop))
            return true;
    }
    *crop = (struct rectangle){0, 0, d->width, d->height};
    return true;
}

/* A list(float) attribute of two numbers. */
static bool read_pair(const struct node *node, const char *name, float limit, float pair[2],
                      struct error *err)
{
    const struct attr *attr = node_attr(node, name);
    bool area = limit == 1;
    const char *what = area ? "Area range" : "Aspect ratio range";
    if (!attr || attr->count != 2)
        return fail(err, INVALID, "%s field must specify 2 dimensions", what);
    for (int i = 0; i < 2; i++)
        pair[i] = attr->floats[i];
    if (!(pair[0] > 0 && pair[1] > 0))
        return fail(err, INVALID, "%s must be non-negative: [%g, %g]", what, (double)pair[0],
                    (double)pair[1]);
    return !(pair[0] > limit || pair[1] > limit) ||
           fail(err, INVALID, "%s must be less then or equal to 1.0: [%g, %g]", what,
                (double)pair[0], (double)pair[1]);
}

static bool read_size(const struct tensor *size, struct distortion *d, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    if (size->shape.rank != 1)
        return fail(err, INVALID, "image_size must be 1-dimensional%s",
                    shape_text(&size->shape, text, sizeof(text)));
    if (size->count != 3)
        return fail(err, INVALID, "image_size must contain 3 elements%s",
                    shape_text(&size->shape, text, sizeof(text)));
    int64_t height = tensor_integer(size, 0), width = tensor_integer(size, 1);
    if (height < 0 || width < 0)
        return fail(err, INVALID, "image %s cannot be >= int32 max",
                    height < 0 ? "height" : "width");
    if (height <= 0 || width <= 0 || height > 32768 || width > 32768)
        return fail(err, INVALID,
                    "Image height and width must be in [1, 32768], got %lld x %lld",
                    (long long)height, (long long)width);
    d->height = (int)height;
    d->width = (int)width;
    return true;
}

static bool read_objects(struct kernel_call *call, struct distortion *d, struct error *err)
{
    const struct tensor *boxes = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (boxes->shape.rank != 3)
        return fail(err, INVALID,
                    "input boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                    shape_text(&boxes->shape, text, sizeof(text)));
    if (boxes->shape.dims[2] != 4)
        return fail(err, INVALID, "bounding boxes must have shape [4] or [*, 4], got %s",
                    shape_text(&boxes->shape, text, sizeof(text)));
    bool all = boxes->count == 0;
    if (all && !node_attr_bool(call->node, "use_image_if_no_bounding_boxes", false))
        return fail(err, INVALID,
                    "No bounding boxes provided as input. One must enable "
                    "use_image_if_no_bounding_boxes if you wish to not provide any bounding "
                    "boxes.");
    d->objects_count = all ? 1 : boxes->count / 4;
    struct rectangle *objects =
        kernel_scratch(call, (size_t)d->objects_count * sizeof(*objects), err);
    if (!objects)
        return false;
    d->objects = objects;
    objects[0] = (struct rectangle){0, 0, d->width, d->height};
    for (int64_t b = 0; b < boxes->count / 4; b++) {
        const float *box = tensor_f32(boxes) + 4 * b;
        for (int i = 0; i < 4; i++)
            if (!(box[i] >= 0 && box[i] <= 1))
                return fail(err, INVALID,
                            "All bounding box coordinates must be in [0.0, 1.0]: %g",
                            (double)box[i]);
        objects[b] = (struct rectangle){
            (int64_t)(box[1] * (float)d->width), (int64_t)(box[0] * (float)d->height),
            (int64_t)(box[3] * (float)d->width), (int64_t)(box[2] * (float)d->height)};
    }
    return true;
}

static bool give_crop(struct kernel_call *call, const struct distortion *d,
                      const struct rectangle *crop, struct error *err)
{
    const int64_t begin[3] = {crop->min_y, crop->min_x, 0};
    const int64_t size[3] = {crop->max_y - crop->min_y, crop->max_x - crop->min_x, -1};
    struct tensor *out[3];
    for (int i = 0; i < 3; i++) {
        const struct shape shape = i < 2 ? SHAPE(3) : SHAPE(1, 1, 4);
        out[i] = kernel_output(call, i, &shape, err);
        if (!out[i])
            return false;
    }
    kernel_store_bits *store = kernel_store_bits_for(out[0]->dtype);
    for (int i = 0; i < 3; i++) {
        store(out[0]->data, i, (uint64_t)begin[i]);
        store(out[1]->data, i, (uint64_t)size[i]);
    }
    float *box = tensor_f32_mut(out[2]);
    box[0] = (float)crop->min_y / (float)d->height;
    box[1] = (float)crop->min_x / (float)d->width;
    box[2] = (float)crop->max_y / (float)d->height;
    box[3] = (float)crop->max_x / (float)d->width;
    return true;
}

static bool sample_distorted_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    struct distortion d = {.attempts = node_attr_int(node, "max_attempts", 100)};
    if (!read_pair(node, "aspect_ratio_range", INFINITY, d.aspect, err) ||
        !read_pair(node, "area_range", 1, d.area, err))
        return false;
    if (d.attempts <= 0)
        return fail(err, INVALID, "Max attempts must be non-negative: %lld",
                    (long long)d.attempts);
    d.covered = node_attr_float(node, "min_object_covered", 0.1F);
    if (call->in_count > 2) {
        const struct tensor *covered = kernel_in(call, 2);
        char text[SHAPE_TEXT_BYTES];
        if (covered->shape.rank != 0)
            return fail(err, INVALID, "min_object_covered must be 0-D, got shape %s",
                        shape_text(&covered->shape, text, sizeof(text)));
        d.covered = tensor_f32(covered)[0];
    }
    if (!(d.covered >= 0))
        return fail(err, INVALID, "Min object covered must be non-negative: %g",
                    (double)d.covered);
    if (!read_size(kernel_in(call, 0), &d, err) || !read_objects(call, &d, err))
        return false;
    struct random_words words = {.philox =
                                     kernel_stream_take(call->state, (uint64_t)d.attempts)};
    struct rectangle crop;
    return find_crop(call, &d, &words, &crop, err) && give_crop(call, &d, &crop, err);
}

/* --- the best of many boxes that do not overlap too much --- */

struct candidates {
    const struct tensor *boxes;
    double *scores;
    bool *gone;
    int64_t count;
    double overlap_max, score_min, sigma;
};

static double overlap(const struct tensor *boxes, int64_t i, int64_t j)
{
    double side[2][4];
    kernel_load *load = kernel_load_for(boxes->dtype);
    for (int b = 0; b < 2; b++)
        for (int axis = 0; axis < 2; axis++) {
            double from = load(boxes->data, (b ? j : i) * 4 + axis);
            double to = load(boxes->data, (b ? j : i) * 4 + 2 + axis);
            side[b][axis] = fmin(from, to);
            side[b][2 + axis] = fmax(from, to);
        }
    double area[2], common = 1;
    for (int b = 0; b < 2; b++)
        area[b] = (side[b][2] - side[b][0]) * (side[b][3] - side[b][1]);
    if (area[0] <= 0 || area[1] <= 0)
        return 0;
    for (int axis = 0; axis < 2; axis++)
        common *= fmax(
            fmin(side[0][2 + axis], side[1][2 + axis]) - fmax(side[0][axis], side[1][axis]), 0);
    return common / (area[0] + area[1] - common);
}

/* The highest score left, the first of equals; -1 when none is high enough. */
static int64_t best_left(const struct candidates *c)
{
    int64_t best = -1;
    for (int64_t i = 0; i < c->count; i++)
        if (!c->gone[i] && c->scores[i] > c->score_min &&
            (best < 0 || c->scores[i] > c->scores[best]))
            best = i;
    return best;
}

/* What the choice of a box means for the others: gone, or (soft) less. */
static void suppress(struct candidates *c, int64_t chosen)
{
    c->gone[chosen] = true;
    for (int64_t i = 0; i < c->count; i++) {
        double common = c->gone[i] ? 0 : overlap(c->boxes, chosen, i);
        if (c->sigma > 0)
            c->scores[i] *= c->gone[i] ? 1 : exp(-0.5 / c->sigma * common * common);
        else if (common > c->overlap_max)
            c->gone[i] = true;
    }
}

/* The third version says some of it twice. */
static bool fail_scalar(const struct kernel_call *call, const struct tensor *in,
                        const char *name, struct error *err)
{
    char text[SHAPE_TEXT_BYTES], twice[64] = "";
    if (strcmp(call->node->op->name, "NonMaxSuppressionV3") == 0 &&
        strcmp(name, "score_threshold") != 0)
        snprintf(twice, sizeof(twice), " (Shape must be rank 0 but is rank %d)",
                 in->shape.rank);
    return fail(err, INVALID, "%s must be 0-D, got shape %s%s", name,
                shape_text(&in->shape, text, sizeof(text)), twice);
}

/* A scalar of the versions that have it, else the fallback. */
static bool read_number(const struct kernel_call *call, int index, double fallback,
                        const char *name, double *value, struct error *err)
{
    *value = fallback;
    if (index >= call->in_count)
        return true;
    const struct tensor *in = kernel_in(call, index);
    if (in->shape.rank != 0)
        return fail_scalar(call, in, name, err);
    *value = tensor_number(in, 0);
    return true;
}

static bool read_candidates(struct kernel_call *call, struct candidates *c, struct error *err)
{
    const struct tensor *boxes = kernel_in(call, 0), *scores = kernel_in(call, 1);
    float attr = node_attr_float(call->node, "iou_threshold", 0.5F);
    char text[SHAPE_TEXT_BYTES];
    if (!read_number(call, 3, (double)attr, "iou_threshold", &c->overlap_max, err) ||
        !read_number(call, 4, -INFINITY, "score_threshold", &c->score_min, err) ||
        !read_number(call, 5, 0, "soft_nms_sigma", &c->sigma, err))
        return false;
    if (!(c->overlap_max >= 0 && c->overlap_max <= 1))
        return fail(err, INVALID, "iou_threshold must be in [0, 1]");
    if (c->sigma < 0)
        return fail(err, INVALID, "soft_nms_sigma_val must be non-negative");
    if (boxes->shape.rank != 2)
        return fail(err, INVALID, "boxes must be 2-D%s (Shape must be rank 2 but is rank %d)",
                    shape_text(&boxes->shape, text, sizeof(text)), boxes->shape.rank);
    if (boxes->shape.dims[1] != 4)
        return fail(err, INVALID, "boxes must have 4 columns (Dimension must be 4 but is %lld)",
                    (long long)boxes->shape.dims[1]);
    if (scores->shape.rank != 1)
        return fail(err, INVALID, "scores must be 1-D%s (Shape must be rank 1 but is rank %d)",
                    shape_text(&scores->shape, text, sizeof(text)), scores->shape.rank);
    c->boxes = boxes;
    c->count = boxes->shape.dims[0];
    if (scores->count != c->count)
        return fail(err, INVALID,
                    "scores has incompatible shape (Dimensions must be equal, but are %lld and "
                    "%lld)",
                    (long long)c->count, (long long)scores->count);
    c->scores = kernel_scratch(call, (size_t)c->count * sizeof(*c->scores) + 1, err);
    c->gone = c->scores ? kernel_scratch(call, (size_t)c->count + 1, err) : NULL;
    for (int64_t i = 0; c->gone && i < c->count; i++) {
        c->scores[i] = kernel_load_for(scores->dtype)(scores->data, i);
        c->gone[i] = false;
    }
    return c->gone != NULL;
}

static bool non_max_suppression_run(struct kernel_call *call, struct error *err)
{
    struct candidates c = {0};
    int64_t most = 0, taken = 0;
    if (kernel_in(call, 2)->shape.rank != 0)
        return fail_scalar(call, kernel_in(call, 2), "max_output_size", err);
    most = tensor_integer(kernel_in(call, 2), 0);
    if (!read_candidates(call, &c, err))
        return false;
    if (most < 0)
        return fail(err, INVALID, "output size must be non-negative");
    int64_t room = most < c.count ? most : c.count;
    int64_t *chosen = kernel_scratch(call, (size_t)room * sizeof(*chosen) + 1, err);
    double *scores =
        chosen ? kernel_scratch(call, (size_t)room * sizeof(*scores) + 1, err) : NULL;
    if (!scores)
        return false;
    for (int64_t best; taken < room && (best = best_left(&c)) >= 0; taken++) {
        chosen[taken] = best;
        scores[taken] = c.scores[best];
        suppress(&c, best);
    }
    bool pad = node_attr_bool(call->node, "pad_to_max_output_size", false);
    int outputs = call->node->outputs_count;
    struct shape shape = SHAPE(pad ? most : taken);
    for (int o = 0; o < outputs; o++) {
        bool valid = outputs > 1 && o == outputs - 1;
        struct tensor *out = kernel_output(call, o, valid ? &SHAPE_SCALAR : &shape, err);
        if (!out)
            return false;
        kernel_zero(out, 0, out->count);
        if (valid)
            tensor_set_number(out, 0, (double)taken);
        for (int64_t i = 0; !valid && i < taken; i++)
            tensor_set_number(out, i, o == 0 ? (double)chosen[i] : scores[i]);
    }
    return true;
}

#define SAMPLE(name_)                                                                          \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = kernel_stream_prepare,                          \
        .release = kernel_stream_release, .run = sample_distorted_run,                         \
    }
#define SUPPRESS(name_)                                                                        \
    {                                                                                          \
        .op = name_, .device = CPU, .run = non_max_suppression_run                             \
    }

const struct kernel kernel_sample_distorted_bounding_box_ref =
    SAMPLE("SampleDistortedBoundingBox");
const struct kernel kernel_sample_distorted_bounding_box_v2_ref =
    SAMPLE("SampleDistortedBoundingBoxV2");
const struct kernel kernel_non_max_suppression_ref = SUPPRESS("NonMaxSuppression");
const struct kernel kernel_non_max_suppression_v2_ref = SUPPRESS("NonMaxSuppressionV2");
const struct kernel kernel_non_max_suppression_v3_ref = SUPPRESS("NonMaxSuppressionV3");
const struct kernel kernel_non_max_suppression_v4_ref = SUPPRESS("NonMaxSuppressionV4");
const struct kernel kernel_non_max_suppression_v5_ref = SUPPRESS("NonMaxSuppressionV5");
