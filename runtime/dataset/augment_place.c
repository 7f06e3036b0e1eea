/* augment_place.c - RandomFlip, RandomCrop: pixels elsewhere, unchanged. */

#include "base/error.h"
#include "runtime/dataset/augment_internal.h"

#define SIDE_MAX 65536

/* --- flip --- */

static const char *const flip_modes[] = {"horizontal", "vertical", "horizontal_and_vertical",
                                         NULL};
static const struct config_argument flip_arguments[] = {
    {CONFIG_ARG("mode", CONFIG_CHOICE, "\"horizontal_and_vertical\""), .choices = flip_modes}};

static void flip(const struct augment_step *step, struct augment_draw *draw, const float *from,
                 float *to)
{
    const char *mode = config_choice(step->config, "mode");
    bool mirror = strstr(mode, "horizontal") && augment_uniform(draw) < 0.5;
    bool turn = strstr(mode, "vertical") && augment_uniform(draw) < 0.5;
    int64_t height = step->from.dims[0], width = step->from.dims[1], depth = step->from.dims[2];
    for (int64_t y = 0; y < height; y++) {
        const float *row = from + (turn ? height - 1 - y : y) * width * depth;
        float *target = to + y * width * depth;
        if (!mirror) {
            memcpy(target, row, (size_t)(width * depth) * sizeof(*target));
            continue;
        }
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < depth; c++)
                target[x * depth + c] = row[(width - 1 - x) * depth + c];
    }
}

/* --- crop --- */

static const struct config_argument crop_arguments[] = {
    {CONFIG_ARG("height", CONFIG_INT, NULL), CONFIG_RANGE(1, SIDE_MAX),
     .wanted = "how high the part is"},
    {CONFIG_ARG("width", CONFIG_INT, NULL), CONFIG_RANGE(1, SIDE_MAX),
     .wanted = "how wide the part is"},
    {CONFIG_ARG("padding", CONFIG_INT, "0"), CONFIG_RANGE(0, SIDE_MAX)}};

static bool crop_prepare(struct augment_step *step, struct error *err)
{
    static const char *const sides[] = {"height", "width"};
    int64_t padding = config_int(step->config, "padding");
    for (int i = 0; i < 2; i++) {
        int64_t wanted = config_int(step->config, sides[i]), has = step->from.dims[i];
        if (wanted > has + 2 * padding)
            return error_at(err, step->config->pointer, INVALID,
                            "RandomCrop's %s is %lld, allowed: at most %lld, which the image "
                            "has%s",
                            sides[i], (long long)wanted, (long long)(has + 2 * padding),
                            padding ? " with its padding" : "");
        step->to.dims[i] = wanted;
    }
    return true;
}

/* A window, zeros where it reaches over the image; in evaluations the one in the middle. */
static void crop(const struct augment_step *step, struct augment_draw *draw, const float *from,
                 float *to)
{
    int64_t padding = config_int(step->config, "padding"), depth = step->from.dims[2];
    int64_t height = step->to.dims[0], width = step->to.dims[1], begin[2];
    for (int i = 0; i < 2; i++) {
        int64_t room = step->from.dims[i] - step->to.dims[i];
        begin[i] = draw->fixed ? (room - (room < 0)) / 2
                               : augment_between(draw, -padding, room + padding);
    }
    int64_t left = begin[1] < 0 ? -begin[1] : 0;
    int64_t right = step->from.dims[1] - begin[1];
    right = right > width ? width : right;
    memset(to, 0, (size_t)(height * width * depth) * sizeof(*to));
    for (int64_t y = 0; y < height; y++) {
        int64_t source = begin[0] + y;
        if (source < 0 || source >= step->from.dims[0] || left >= right)
            continue;
        memcpy(to + (y * width + left) * depth,
               from + (source * step->from.dims[1] + begin[1] + left) * depth,
               (size_t)((right - left) * depth) * sizeof(*to));
    }
}

const struct augment_class augment_random_flip = {
    .config = {.name = "RandomFlip", CONFIG_ARGUMENTS(flip_arguments)}, .run = flip};
const struct augment_class augment_random_crop = {
    .config = {.name = "RandomCrop", CONFIG_ARGUMENTS(crop_arguments)},
    .prepare = crop_prepare,
    .changes_size = true,
    .run = crop};
