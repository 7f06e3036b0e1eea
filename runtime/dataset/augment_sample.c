/*
 * augment_sample.c - RandomTranslation, RandomRotation, RandomZoom: each pixel is taken from
 * where a linear map puts it.
 */

#include <math.h>

#include "runtime/dataset/augment_internal.h"

static const char *const fill_modes[] = {"constant", "reflect", "wrap", "nearest", NULL};
enum fill { FILL_CONSTANT, FILL_REFLECT, FILL_WRAP, FILL_NEAREST };
static const char *const interpolations[] = {"nearest", "bilinear", NULL};

#define FACTOR(name_, initial_, min_, max_, wanted_)                                           \
    {                                                                                          \
        CONFIG_ARG(name_, CONFIG_REALS, initial_), CONFIG_RANGE(min_, max_),                   \
            .count = 0, .wanted = (wanted_)                                                    \
    }
#define SAMPLE_ARGUMENTS                                                                       \
    {CONFIG_ARG("fill_mode", CONFIG_CHOICE, "\"reflect\""), .choices = fill_modes},            \
        {CONFIG_ARG("interpolation", CONFIG_CHOICE, "\"bilinear\""),                           \
         .choices = interpolations},                                                           \
    {                                                                                          \
        CONFIG_ARG("fill_value", CONFIG_REAL, "0")                                             \
    }

static const struct config_argument translation_arguments[] = {
    FACTOR("height_factor", NULL, -1, 1, "by which share of the height to move, at most"),
    FACTOR("width_factor", NULL, -1, 1, "by which share of the width to move, at most"),
    SAMPLE_ARGUMENTS};
static const struct config_argument rotation_arguments[] = {
    FACTOR("factor", NULL, -1, 1, "by which share of a full turn to rotate, at most"),
    SAMPLE_ARGUMENTS};
static const struct config_argument zoom_arguments[] = {
    FACTOR("height_factor", NULL, -0.99, 10, "by which share to grow or shrink, at most"),
    FACTOR("width_factor", "null", -0.99, 10, NULL), SAMPLE_ARGUMENTS};

/* A factor is one number, for -factor to factor, or two. */
static bool check_factors(const struct config *config, struct error *err)
{
    static const char *const names[] = {"height_factor", "width_factor", "factor"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        int count;
        if (!config_has(config, names[i]) || config_is_null(config, names[i]))
            continue;
        const double *values = config_reals(config, names[i], &count);
        if (count < 1 || count > 2 || (count == 1 && values[0] < 0) ||
            (count == 2 && values[0] > values[1]))
            return error_at(err, config->pointer, INVALID,
                            "%s's %s must be one number of at least 0, or two, the lower one "
                            "first",
                            config->class->name, names[i]);
    }
    return true;
}

static double draw_factor(const struct augment_step *step, struct augment_draw *draw,
                          const char *name)
{
    int count;
    const double *values = config_reals(step->config, name, &count);
    double low = count == 1 ? -values[0] : values[0], high = values[count - 1];
    return low + augment_uniform(draw) * (high - low);
}

/* --- sampling --- */

/* A pixel of the result at (x, y) comes from (xx x + xy y + x0, yx x + yy y + y0). */
struct map {
    double xx, xy, x0, yx, yy, y0;
};

/* Which pixel stands for one that may lie outside; -1: none does. */
static int64_t inside(int64_t at, int64_t size, enum fill fill)
{
    if (at >= 0 && at < size)
        return at;
    switch (fill) {
    case FILL_CONSTANT:
        return -1;
    case FILL_NEAREST:
        return at < 0 ? 0 : size - 1;
    case FILL_WRAP:
        at %= size;
        return at < 0 ? at + size : at;
    case FILL_REFLECT:
        at %= 2 * size;
        at = at < 0 ? at + 2 * size : at;
        return at < size ? at : 2 * size - 1 - at;
    }
    return -1;
}

struct sampler {
    const struct augment_step *step;
    const float *from;
    enum fill fill;
    float value;
    bool bilinear;
};

static float pixel(const struct sampler *s, int64_t x, int64_t y, int64_t c)
{
    const int64_t *dims = s->step->from.dims;
    y = inside(y, dims[0], s->fill);
    x = inside(x, dims[1], s->fill);
    return x < 0 || y < 0 ? s->value : s->from[(y * dims[1] + x) * dims[2] + c];
}

static void sample_at(const struct sampler *s, double x, double y, float *to)
{
    int64_t depth = s->step->from.dims[2];
    if (!s->bilinear) {
        for (int64_t c = 0; c < depth; c++)
            to[c] = pixel(s, (int64_t)floor(x + 0.5), (int64_t)floor(y + 0.5), c);
        return;
    }
    int64_t left = (int64_t)floor(x), top = (int64_t)floor(y);
    float right = (float)(x - (double)left), below = (float)(y - (double)top);
    for (int64_t c = 0; c < depth; c++) {
        float upper = pixel(s, left, top, c) * (1 - right);
        float lower = pixel(s, left, top + 1, c) * (1 - right);
        upper += right > 0 ? pixel(s, left + 1, top, c) * right : 0;
        lower += right > 0 ? pixel(s, left + 1, top + 1, c) * right : 0;
        to[c] = below > 0 ? upper * (1 - below) + lower * below : upper;
    }
}

static void sample(const struct augment_step *step, const struct map *map, const float *from,
                   float *to)
{
    const char *mode = config_choice(step->config, "fill_mode");
    struct sampler s = {.step = step,
                        .from = from,
                        .fill = FILL_CONSTANT,
                        .value = (float)config_real(step->config, "fill_value"),
                        .bilinear =
                            !strcmp(config_choice(step->config, "interpolation"), "bilinear")};
    while (strcmp(fill_modes[s.fill], mode) != 0)
        s.fill++;
    int64_t height = step->to.dims[0], width = step->to.dims[1], depth = step->to.dims[2];
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            sample_at(&s, map->xx * (double)x + map->xy * (double)y + map->x0,
                      map->yx * (double)x + map->yy * (double)y + map->y0,
                      to + (y * width + x) * depth);
}

/* --- the classes --- */

static void translate(const struct augment_step *step, struct augment_draw *draw,
                      const float *from, float *to)
{
    double down = draw_factor(step, draw, "height_factor") * (double)step->from.dims[0];
    double right = draw_factor(step, draw, "width_factor") * (double)step->from.dims[1];
    const struct map map = {.xx = 1, .x0 = -right, .yy = 1, .y0 = -down};
    sample(step, &map, from, to);
}

/* Around the middle. */
static void turn(const struct augment_step *step, const struct map *linear, const float *from,
                 float *to)
{
    struct map map = *linear;
    double x = (double)(step->from.dims[1] - 1) / 2, y = (double)(step->from.dims[0] - 1) / 2;
    map.x0 = x - (map.xx * x + map.xy * y);
    map.y0 = y - (map.yx * x + map.yy * y);
    sample(step, &map, from, to);
}

static void rotate(const struct augment_step *step, struct augment_draw *draw,
                   const float *from, float *to)
{
    double angle = 2 * M_PI * draw_factor(step, draw, "factor");
    const struct map map = {
        .xx = cos(angle), .xy = -sin(angle), .yx = sin(angle), .yy = cos(angle)};
    turn(step, &map, from, to);
}

static void zoom(const struct augment_step *step, struct augment_draw *draw, const float *from,
                 float *to)
{
    double height = 1 + draw_factor(step, draw, "height_factor"), width = height;
    if (!config_is_null(step->config, "width_factor"))
        width = 1 + draw_factor(step, draw, "width_factor");
    const struct map map = {.xx = width, .yy = height};
    turn(step, &map, from, to);
}

#define SAMPLED(name_, table_, run_)                                                           \
    {                                                                                          \
        .config = {.name = (name_), CONFIG_ARGUMENTS(table_), .check = check_factors},         \
        .run = (run_)                                                                          \
    }

const struct augment_class augment_random_translation =
    SAMPLED("RandomTranslation", translation_arguments, translate);
const struct augment_class augment_random_rotation =
    SAMPLED("RandomRotation", rotation_arguments, rotate);
const struct augment_class augment_random_zoom = SAMPLED("RandomZoom", zoom_arguments, zoom);
