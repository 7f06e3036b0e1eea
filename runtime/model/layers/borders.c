/* borders.c - ZeroPadding, Cropping, UpSampling: images and sequences made larger or smaller.
 */

#include "runtime/model/layer.h"

#define SIDES(name_, initial_, dims_)                                                          \
    {                                                                                          \
        CONFIG_ARG(name_, CONFIG_SIDES, initial_), CONFIG_RANGE(0, LAYER_WINDOW_MAX),          \
            .count = (dims_)                                                                   \
    }

static const char *const interpolations[] = {"nearest",  "bilinear", "bicubic",
                                             "lanczos3", "lanczos5", NULL};

static const struct config_argument padding_1d[] = {SIDES("padding", "1", 1),
                                                    LAYER_DATA_FORMAT};
static const struct config_argument padding_2d[] = {SIDES("padding", "1", 2),
                                                    LAYER_DATA_FORMAT};
static const struct config_argument cropping_1d[] = {SIDES("cropping", "1", 1)};
static const struct config_argument cropping_2d[] = {SIDES("cropping", "0", 2),
                                                     LAYER_DATA_FORMAT};
static const struct config_argument up_1d[] = {
    {CONFIG_ARG("size", CONFIG_INT, "2"), CONFIG_RANGE(1, LAYER_WINDOW_MAX)}};
static const struct config_argument up_2d[] = {
    {CONFIG_ARG("size", CONFIG_INTS, "2"), CONFIG_RANGE(1, LAYER_WINDOW_MAX), .count = 2},
    LAYER_DATA_FORMAT,
    LAYER_CHOICE("interpolation", "\"nearest\"", interpolations)};

static void pad(struct layer_call *call, int dims, const char *wanted)
{
    struct build *m = call->m;
    int64_t sides[2 * (LIMIT_TENSOR_RANK + 1)] = {0};
    if (!layer_examples(call, dims + 1, wanted))
        return;
    memcpy(sides + 2, config_ints(call->config, "padding", NULL),
           2 * (size_t)dims * sizeof(*sides));
    layer_give(call, build_pad(m, call->inputs[0], sides, dims + 2));
}

static void crop(struct layer_call *call, int dims, const char *wanted)
{
    const int64_t *sides = config_ints(call->config, "cropping", NULL);
    const struct shape *input = layer_examples(call, dims + 1, wanted);
    int64_t begin[5] = {0}, size[5] = {-1, -1, -1, -1, -1};
    for (int i = 0; input && i < dims; i++) {
        begin[i + 1] = sides[2 * i];
        size[i + 1] = input->dims[i + 1] - sides[2 * i] - sides[2 * i + 1];
        if (size[i + 1] < 1) {
            layer_refuse(call, "more than is cropped");
            return;
        }
    }
    if (input)
        layer_give(call, build_slice(call->m, call->inputs[0], begin, size, dims + 2));
}

static void padding1d(struct layer_call *call)
{
    pad(call, 1, "steps, channels (a sequence)");
}

static void padding2d(struct layer_call *call)
{
    pad(call, 2, "height, width, channels (images)");
}

static void cropping1d(struct layer_call *call)
{
    crop(call, 1, "steps, channels (a sequence)");
}

static void cropping2d(struct layer_call *call)
{
    crop(call, 2, "height, width, channels (images)");
}

/* Each step `size` times behind itself. */
static void up1d(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape *input = layer_examples(call, 2, "steps, channels (a sequence)");
    if (!input)
        return;
    int64_t size = config_int(call->config, "size");
    const int64_t times[4] = {1, 1, size, 1}, dims[2] = {input->dims[1] * size, input->dims[2]};
    struct edge x = build_expand(m, call->inputs[0], 2);
    x = build_binary(m, "Tile", x, build_ints(m, times, 4));
    layer_give(call, build_reshape_examples(m, x, dims, 2));
}

static void up2d(struct layer_call *call)
{
    struct build *m = call->m;
    const struct shape *input = layer_examples(call, 3, "height, width, channels (images)");
    const char *how = config_choice(call->config, "interpolation");
    if (!input)
        return;
    const int64_t *size = config_ints(call->config, "size", NULL);
    struct edge to =
        build_ints(m, (const int64_t[]){input->dims[1] * size[0], input->dims[2] * size[1]}, 2);
    if (!strcmp(how, "nearest")) {
        layer_give(call, build_binary(m, "ResizeNearestNeighbor", call->inputs[0], to));
        return;
    }
    if (strcmp(how, "bilinear") && strcmp(how, "bicubic")) {
        build_refuse(m, UNIMPLEMENTED,
                     "this version interpolates \"nearest\", \"bilinear\" and "
                     "\"bicubic\"");
        return;
    }
    layer_give(call,
               builder_add(&m->b, strcmp(how, "bicubic") ? "ResizeBilinear" : "ResizeBicubic",
                           "resize", INPUTS(call->inputs[0], to),
                           ATTRS(attr_bool("half_pixel_centers", true))));
}

const struct layer_class layer_zero_padding1d = {
    .config = {.name = "ZeroPadding1D", CONFIG_ARGUMENTS(padding_1d)}, .call = padding1d};
const struct layer_class layer_zero_padding2d = {
    .config = {.name = "ZeroPadding2D", CONFIG_ARGUMENTS(padding_2d)}, .call = padding2d};
const struct layer_class layer_cropping1d = {
    .config = {.name = "Cropping1D", CONFIG_ARGUMENTS(cropping_1d)}, .call = cropping1d};
const struct layer_class layer_cropping2d = {
    .config = {.name = "Cropping2D", CONFIG_ARGUMENTS(cropping_2d)}, .call = cropping2d};
const struct layer_class layer_up_sampling1d = {
    .config = {.name = "UpSampling1D", CONFIG_ARGUMENTS(up_1d)}, .call = up1d};
const struct layer_class layer_up_sampling2d = {
    .config = {.name = "UpSampling2D", CONFIG_ARGUMENTS(up_2d)}, .call = up2d};
