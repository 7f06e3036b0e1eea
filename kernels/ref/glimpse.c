/* glimpse.c - windows cut out of images, with noise where they look past the edge. */

#include "kernels/ref/random.h"

#include <math.h>

enum noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO };

struct glimpse {
    bool first_version, normalized, centered;
    enum noise noise;
};

/* Where a window of `size` begins along a dimension of `input`. */
static int64_t place(const struct glimpse *g, float at, int64_t input, int64_t size)
{
    float whole = (float)input, window = (float)size;
    if (g->normalized)
        at *= whole;
    if (g->centered && (g->first_version || g->normalized))
        at = at / 2.0F + whole / 2.0F;
    else if (g->centered)
        at += whole / 2.0F;
    if (g->first_version || (g->normalized && g->centered))
        at -= window / 2.0F;
    /* What is far outside, or nowhere, shows nothing of the image. */
    return at > -1e9F && at < 1e9F ? (int64_t)at : INT32_MIN;
}

/* The part that both have: `count` from `from` of the image to `to` of the window. */
struct overlap {
    int64_t from, to, count;
    bool whole;
};

static struct overlap overlap_of(int64_t offset, int64_t input, int64_t size)
{
    struct overlap o = {.from = offset, .count = size, .whole = true};
    if (offset < 0) {
        o = (struct overlap){.count = size + offset > 0 ? size + offset : 0};
        o.to = size - o.count;
    } else if (offset + size >= input) {
        o = (struct overlap){.from = offset, .count = input > offset ? input - offset : 0};
    }
    o.count = o.count < input ? o.count : input;
    return o;
}

/* Of every `channels`-th element from `first` on. */
struct spread {
    float mean, deviation, low, high;
};

static struct spread spread_of(const float *image, int64_t count, int64_t first,
                               int64_t channels)
{
    struct spread s = {.low = INFINITY, .high = -INFINITY};
    double sum = 0, squares = 0;
    int64_t used = (count - first + channels - 1) / channels;
    for (int64_t i = first; i < count; i += channels) {
        sum += (double)image[i];
        s.low = fminf(s.low, image[i]);
        s.high = fmaxf(s.high, image[i]);
    }
    s.mean = (float)(sum / (double)used);
    for (int64_t i = first; i < count; i += channels)
        squares += (double)(image[i] - s.mean) * (double)(image[i] - s.mean);
    s.deviation = (float)sqrt(squares / (double)used);
    return s;
}

/* Numbers like those of the image: between its ends, or of each channel's mean and spread. */
static void fill(const struct glimpse *g, const float *image, int64_t image_count,
                 float *window, int64_t count, int64_t channels, struct random_pairs *pairs)
{
    if (g->noise == NOISE_ZERO) {
        memset(window, 0, (size_t)count * sizeof(*window));
        return;
    }
    if (g->noise == NOISE_UNIFORM) {
        struct spread s = spread_of(image, image_count, 0, 1);
        for (int64_t i = 0; i < count; i++)
            window[i] = s.low + (float)kernel_random_uniform(pairs) * (s.high - s.low);
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        struct spread s = spread_of(image, image_count, c, channels);
        for (int64_t i = c; i < count; i += channels) {
            float x = s.mean + (float)kernel_random_normal(pairs) * s.deviation;
            window[i] = fmaxf(fminf(x, s.high), s.low);
        }
    }
}

static bool read_node(struct glimpse *g, const struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const char *noise = node_attr_string(node, "noise", "uniform");
    bool uniform = node_attr_bool(node, "uniform_noise", true);
    if (uniform && *noise && strcmp(noise, "uniform") != 0)
        return fail(err, INVALID,
                    "The uniform_noise and noise could not be specified at the same time");
    if (*noise && strcmp(noise, "uniform") != 0 && strcmp(noise, "gaussian") != 0 &&
        strcmp(noise, "zero") != 0)
        return fail(err, INVALID, "The noise could only be uniform, gaussian, or zero, got%s",
                    noise);
    *g = (struct glimpse){.first_version = !strcmp(node->op->name, "ExtractGlimpse"),
                          .normalized = node_attr_bool(node, "normalized", true),
                          .centered = node_attr_bool(node, "centered", true),
                          .noise = !strcmp(noise, "gaussian") || (!*noise && !uniform)
                                       ? NOISE_GAUSSIAN
                                   : !strcmp(noise, "zero") ? NOISE_ZERO
                                                            : NOISE_UNIFORM};
    return true;
}

static bool check_inputs(const struct kernel_call *call, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    const struct shape *image = &kernel_in(call, 0)->shape;
    const struct shape *size = &kernel_in(call, 1)->shape;
    const struct shape *offsets = &kernel_in(call, 2)->shape;
    if (image->rank != 4)
        return fail(err, INVALID,
                    "input must be 4-dimensional (batch_size, height, width, depth)%s",
                    shape_text(image, text, sizeof(text)));
    if (size->rank != 1 || size->dims[0] != 2)
        return fail(err, INVALID, "input must be a vector of size 2 (height, width)%s",
                    shape_text(size, text, sizeof(text)));
    if (offsets->rank != 2)
        return fail(err, INVALID, "input must be a matrix%s",
                    shape_text(offsets, text, sizeof(text)));
    if (offsets->dims[0] != image->dims[0])
        return fail(err, INVALID, "first dimension should be batch%s",
                    shape_text(offsets, text, sizeof(text)));
    return offsets->dims[1] == 2 ||
           fail(err, INVALID, "second dimension should be of size 2 (y,x)%s",
                shape_text(offsets, text, sizeof(text)));
}

static bool glimpse_run(struct kernel_call *call, struct error *err)
{
    struct glimpse g = {0};
    if (!read_node(&g, call, err) || !check_inputs(call, err))
        return false;
    const struct tensor *in = kernel_in(call, 0);
    const int64_t *dims = in->shape.dims, channels = dims[3];
    int64_t height = tensor_i32(kernel_in(call, 1))[0],
            width = tensor_i32(kernel_in(call, 1))[1];
    if (height < 0 || width < 0)
        return fail(err, INVALID, "Expected a non-negative size, got %lld",
                    (long long)(height < 0 ? height : width));
    struct tensor *out = kernel_output(call, 0, &SHAPE(dims[0], height, width, channels), err);
    if (!out || !out->count)
        return out != NULL;
    int64_t of_image = dims[1] * dims[2] * channels, of_window = height * width * channels;
    struct philox philox =
        kernel_stream_take(call->state, (uint64_t)out->count * RANDOM_BLOCKS_PER_NUMBER);
    struct random_pairs pairs = {.source = &philox};
    for (int64_t b = 0; b < dims[0]; b++) {
        const float *image = tensor_f32(in) + b * of_image;
        const float *at = tensor_f32(kernel_in(call, 2)) + b * 2;
        float *window = tensor_f32_mut(out) + b * of_window;
        struct overlap y = overlap_of(place(&g, at[0], dims[1], height), dims[1], height);
        struct overlap x = overlap_of(place(&g, at[1], dims[2], width), dims[2], width);
        if (!y.whole || !x.whole)
            fill(&g, image, of_image, window, of_window, channels, &pairs);
        for (int64_t row = 0; x.count && row < y.count; row++)
            memcpy(window + ((y.to + row) * width + x.to) * channels,
                   image + ((y.from + row) * dims[2] + x.from) * channels,
                   (size_t)(x.count * channels) * sizeof(*window));
    }
    return true;
}

#define GLIMPSE(name_)                                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = kernel_stream_prepare,                          \
        .release = kernel_stream_release, .run = glimpse_run                                   \
    }

const struct kernel kernel_extract_glimpse_ref = GLIMPSE("ExtractGlimpse");
const struct kernel kernel_extract_glimpse_v2_ref = GLIMPSE("ExtractGlimpseV2");
