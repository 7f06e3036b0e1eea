/*
 * winograd.c - Winograd's convolution and its gradients; see winograd.h.
 *
 * Each thread takes patches, a block at a time that stays in its second cache: patches of the
 * image to the points, a product for each point, and back.  The image's gradient is the
 * convolution of the result's gradient with the filter turned round.
 */
#include "kernels/cpu/winograd.h"

#include "base/error.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "runtime/kernel.h"

/* Places of a patch along an axis, its points, patches of a block, and how many are fetched
 * ahead. */
enum { PATCH = 6, POINTS = 36, BLOCK = 24, CHANNELS = 16, AHEAD = 2 };

/* Images (count,height,width,channels). */
struct images {
    float *data;
    int64_t height, width, channels;
};

struct winograd {
    int taps, step; /* of the filter, and places that a patch makes: their sum 7 */
    int64_t down, across, patches; /* of an image along its axes; of all images */
    int64_t top, left;             /* where the first patch begins, before the image */
    struct images from, to;
    int64_t room; /* see isa_winograd_product */
    bool pairs;   /* what is at the points is rounded to bfloat16: isa_bf16.h */
    int threads;
};

static int64_t patches_along(int64_t size, int64_t taps)
{
    return (size + 6 - taps) / (7 - taps);
}

static bool in_pairs(const struct kernel_call *call)
{
    return call->precision == BF16;
}

/* Fewer patches are not worth bringing the filter to the points. */
bool winograd_suits(const struct kernel_call *call, const struct conv2d_shape *s)
{
    return (!in_pairs(call) || isa()->bf16.instructions) &&
           s->filter_height == s->filter_width &&
           (s->filter_height == 3 || s->filter_height == 5) && s->groups == 1 &&
           s->stride_height == 1 && s->stride_width == 1 && s->dilation_height == 1 &&
           s->dilation_width == 1 && s->in_channels % CHANNELS == 0 &&
           s->out_channels % CHANNELS == 0 && s->in_channels > 0 && s->out_channels > 0 &&
           s->batch * patches_along(s->out_height, s->filter_height) *
                   patches_along(s->out_width, s->filter_height) >=
               BLOCK;
}

static struct winograd plan(const struct kernel_call *call, const struct conv2d_shape *s,
                            int64_t to_height, int64_t to_width)
{
    struct winograd w = {.taps = (int)s->filter_height,
                         .step = 7 - (int)s->filter_height,
                         .pairs = in_pairs(call)};
    w.down = patches_along(to_height, w.taps);
    w.across = patches_along(to_width, w.taps);
    w.patches = s->batch * w.down * w.across;
    w.threads = parallel_threads(call, w.patches * POINTS * s->in_channels);
    w.room = (BLOCK + isa()->tile_rows - 1) / isa()->tile_rows * isa()->tile_rows;
    return w;
}

/* Where the (n,n) places of patch `patch` are, whose first one is at (top,left) before that of
 * the image; `outside` for those that the image does not have. */
static void find_places(const struct winograd *w, const struct images *images, int n,
                        int64_t patch, int64_t top, int64_t left, float *outside, float **at)
{
    int64_t image = patch / (w->down * w->across), place = patch % (w->down * w->across);
    int64_t y = place / w->across * w->step - top, x = place % w->across * w->step - left;
    int64_t first = ((image * images->height + y) * images->width + x) * images->channels;
    bool inside = y >= 0 && y + n <= images->height && x >= 0 && x + n <= images->width;
    for (int i = 0; i < n; i++, at += n, first += images->width * images->channels) {
        bool row = y + i >= 0 && y + i < images->height;
        for (int j = 0; j < n; j++) {
            bool has = inside || (row && x + j >= 0 && x + j < images->width);
            at[j] = has ? images->data + first + j * images->channels : outside;
        }
    }
}

/* What a number at the points takes of a float's room, as a divisor. */
static int halves(const struct winograd *w)
{
    return w->pairs ? 2 : 1;
}

/* Of the patch that is `index`-th in its block to the points; of patches in pairs `by_patch`.
 */
static void spread_one(const struct winograd *w, int n, int64_t index, bool by_patch,
                       float *points, struct isa_winograd *patch)
{
    const struct isa *isa_now = isa();
    if (!w->pairs || by_patch) {
        patch->points = points + index / (by_patch ? 2 : 1) * isa_now->lanes;
        (by_patch && index % 2 ? isa_now->bf16.winograd_spread_patches
                               : isa_now->winograd_spread)(n, patch);
        return;
    }
    patch->points = points + index * isa_now->lanes / 2;
    isa_now->bf16.winograd_spread_channels(n, patch);
}

/*
 * Patches [from,to) to the points at `points`; with w->pairs, in pairs of channels, or, if they
 * are to be summed over patches, of these: the last one alone is paired with zeros.  What the
 * patch after the next will read is fetched meanwhile: processors do not see where rows of
 * patches go on.
 */
static void spread(const struct winograd *w, const struct images *images, int n, int64_t from,
                   int64_t to, int64_t top, int64_t left, bool summed, float *outside,
                   float *points)
{
    float *at[AHEAD + 1][POINTS];
    bool by_patch = w->pairs && summed;
    int64_t end = by_patch ? from + (to - from + 1) / 2 * 2 : to;
    struct isa_winograd patch = {.channels = images->channels,
                                 .stride = w->room * images->channels / halves(w),
                                 .advance = w->room * isa()->lanes / halves(w)};
    for (int64_t t = from; t < end + AHEAD; t++) {
        if (t < to)
            find_places(w, images, n, t, top, left, outside, at[t % (AHEAD + 1)]);
        else if (t < end)
            for (int i = 0; i < n * n; i++)
                at[t % (AHEAD + 1)][i] = outside;
        if (t - from < AHEAD)
            continue;
        patch.space = at[(t - AHEAD) % (AHEAD + 1)];
        patch.later = t < end ? at[t % (AHEAD + 1)] : patch.space;
        spread_one(w, n, t - AHEAD - from, by_patch, points, &patch);
    }
}

/* --- the filter --- */

/* Filters (taps,taps,in,out) to the points, (in,out) at each, or pairs of the rows of these;
 * `turned` ones read from their end. */
static void spread_filter(const struct winograd *w, const float *filter, int64_t in,
                          int64_t out, bool turned, float *points)
{
    int places = w->taps * w->taps;
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t c = 0; c < in; c++) {
        float *at[POINTS];
        for (int i = 0; i < places; i++)
            at[turned ? places - 1 - i : i] = (float *)(uintptr_t)filter + (i * in + c) * out;
        const struct isa_winograd row = {.channels = out,
                                         .space = at,
                                         .later = at,
                                         .points = points + c * out,
                                         .stride = in * out,
                                         .advance = isa()->lanes};
        isa()->winograd_spread(w->taps, &row);
    }
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int p = 0; p < (w->pairs ? POINTS : 0); p++) /* in place: a row is read before */
        isa()->bf16.pair_rows(in, out, points + p * in * out, out, points + p * in * out, out);
}

/* --- results --- */

/* What a thread works with. */
struct bench {
    float *x, *y; /* a block at the points */
    float *no_x,
        *no_y; /* of places that the images do not have: zero, until results go there */
};

static size_t bench_floats(const struct winograd *w, int64_t in, int64_t out)
{
    return (size_t)((POINTS * w->room + 1) * (in + out));
}

static struct bench bench_at(const struct winograd *w, float *memory, int64_t in, int64_t out)
{
    struct bench b = {.x = memory, .y = memory + POINTS * w->room * in};
    b.no_x = b.y + POINTS * w->room * out;
    b.no_y = b.no_x + in;
    memset(b.no_x, 0, (size_t)(in + out) * sizeof(float));
    return b;
}

static void convolve_block(const struct winograd *w, const struct bench *b, int64_t from,
                           int64_t to, const float *filter, const float *bias, bool relu)
{
    const struct isa *isa_now = isa();
    int64_t in = w->from.channels, out = w->to.channels;
    spread(w, &w->from, PATCH, from, to, w->top, w->left, false, b->no_x, b->x);
    for (int p = 0; p < POINTS; p++) {
        const struct isa_winograd_product product = {.patches = to - from,
                                                     .room = w->room,
                                                     .in = in,
                                                     .out = out,
                                                     .x = b->x + p * w->room * in / halves(w),
                                                     .filter = filter + p * in * out,
                                                     .y = b->y + p * w->room * out};
        (w->pairs ? isa_now->bf16.winograd_product : isa_now->winograd_product)(&product);
    }
    float *at[POINTS];
    struct isa_winograd patch = {.channels = out,
                                 .space = at,
                                 .points = b->y,
                                 .stride = w->room * out,
                                 .advance = w->room * isa_now->lanes,
                                 .bias = bias,
                                 .relu = relu};
    for (int64_t t = from; t < to; t++, patch.points += isa_now->lanes) {
        find_places(w, &w->to, w->step, t, 0, 0, b->no_y, at);
        isa_now->winograd_gather(w->step, &patch);
    }
}

static bool convolve(struct kernel_call *call, const struct winograd *w, const float *filter,
                     const float *bias, bool relu, struct error *err)
{
    int64_t in = w->from.channels, out = w->to.channels;
    size_t floats = bench_floats(w, in, out);
    float *memory = kernel_scratch(call, (size_t)w->threads * floats * sizeof(float), err);
    if (!memory)
        return false;
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int t = 0; t < w->threads; t++) {
        struct range r = parallel_range(w->patches, BLOCK, w->threads, t);
        struct bench b = bench_at(w, memory + (size_t)t * floats, in, out);
        for (int64_t from = r.from; from < r.to; from += BLOCK)
            convolve_block(w, &b, from, from + BLOCK < r.to ? from + BLOCK : r.to, filter, bias,
                           relu);
    }
    return true;
}

bool winograd_forward(struct kernel_call *call, const struct conv2d_shape *s,
                      const float *image, const float *filter, const float *bias, bool relu,
                      float *result, struct error *err)
{
    struct winograd w = plan(call, s, s->out_height, s->out_width);
    w.top = s->pad_top;
    w.left = s->pad_left;
    w.from =
        (struct images){(float *)(uintptr_t)image, s->in_height, s->in_width, s->in_channels};
    w.to = (struct images){result, s->out_height, s->out_width, s->out_channels};
    int64_t each = s->in_channels * s->out_channels;
    float *points = kernel_scratch(call, (size_t)(POINTS * each) * sizeof(float), err);
    if (!points)
        return false;
    spread_filter(&w, filter, s->in_channels, s->out_channels, false, points);
    return convolve(call, &w, points, bias, relu, err);
}

bool winograd_image_grad(struct kernel_call *call, const struct conv2d_shape *s,
                         const float *filter, const float *grad, float *image_grad,
                         struct error *err)
{
    struct winograd w = plan(call, s, s->in_height, s->in_width);
    w.top = s->filter_height - 1 - s->pad_top;
    w.left = s->filter_width - 1 - s->pad_left;
    w.from =
        (struct images){(float *)(uintptr_t)grad, s->out_height, s->out_width, s->out_channels};
    w.to = (struct images){image_grad, s->in_height, s->in_width, s->in_channels};
    int64_t each = s->in_channels * s->out_channels;
    int64_t places = s->filter_height * s->filter_width;
    float *turned =
        kernel_scratch(call, (size_t)((places + POINTS) * each) * sizeof(float), err);
    if (!turned)
        return false;
    for (int64_t i = 0; i < places; i++) /* (in,out) to (out,in) */
        isa()->transpose(s->in_channels, s->out_channels, filter + i * each, s->out_channels,
                         turned + i * each, s->in_channels);
    float *points = turned + places * each;
    spread_filter(&w, turned, s->out_channels, s->in_channels, true, points);
    return convolve(call, &w, points, NULL, false, err);
}

/* --- the filter's gradient --- */

/* Adds what patches [from,to) give to the sums at the points. */
static void add_block(const struct winograd *w, const struct bench *b, int64_t from, int64_t to,
                      bool add, float *sums)
{
    const struct isa *isa_now = isa();
    int64_t in = w->from.channels, out = w->to.channels, room = w->room / halves(w);
    spread(w, &w->from, PATCH, from, to, w->top, w->left, true, b->no_x, b->x);
    spread(w, &w->to, w->step, from, to, 0, 0, true, b->no_y, b->y);
    for (int p = 0; p < POINTS; p++) {
        const struct isa_winograd_product product = {.patches = (to - from + halves(w) - 1) /
                                                                halves(w),
                                                     .room = room,
                                                     .in = in,
                                                     .out = out,
                                                     .x = b->x + p * room * in,
                                                     .y = b->y + p * room * out,
                                                     .sums = sums + p * in * out,
                                                     .add = add};
        (w->pairs ? isa_now->bf16.winograd_sums : isa_now->winograd_sums)(&product);
    }
}

/* The sums of the threads, one behind the other, become one filter in space. */
static void gather_filter(const struct winograd *w, float *sums, float *filter)
{
    int64_t in = w->from.channels, out = w->to.channels, all = POINTS * in * out;
    int places = w->taps * w->taps;
#pragma omp parallel for num_threads(w->threads) schedule(static) if (w->threads > 1)
    for (int64_t c = 0; c < in; c++) {
        for (int t = 1; t < w->threads; t++)
            for (int p = 0; p < POINTS; p++) {
                float *sum = sums + (p * in + c) * out;
                isa()->binary(ISA_ADD, out, sum, false, sum + t * all, false, sum);
            }
        float *at[POINTS];
        for (int i = 0; i < places; i++)
            at[i] = filter + (i * in + c) * out;
        const struct isa_winograd row = {.channels = out,
                                         .space = at,
                                         .points = sums + c * out,
                                         .stride = in * out,
                                         .advance = isa()->lanes};
        isa()->winograd_gather(w->taps, &row);
    }
}

bool winograd_filter_grad(struct kernel_call *call, const struct conv2d_shape *s,
                          const float *image, const float *grad, float *filter_grad,
                          struct error *err)
{
    struct winograd w = plan(call, s, s->out_height, s->out_width);
    w.top = s->pad_top;
    w.left = s->pad_left;
    w.from =
        (struct images){(float *)(uintptr_t)image, s->in_height, s->in_width, s->in_channels};
    w.to =
        (struct images){(float *)(uintptr_t)grad, s->out_height, s->out_width, s->out_channels};
    int64_t in = s->in_channels, out = s->out_channels, all = POINTS * in * out;
    size_t floats = bench_floats(&w, in, out);
    float *sums = kernel_scratch(call, (size_t)(w.threads * all) * sizeof(float), err);
    float *memory =
        sums ? kernel_scratch(call, (size_t)w.threads * floats * sizeof(float), err) : NULL;
    if (!memory)
        return false;
#pragma omp parallel for num_threads(w.threads) schedule(static) if (w.threads > 1)
    for (int t = 0; t < w.threads; t++) {
        struct range r = parallel_range(w.patches, BLOCK, w.threads, t);
        struct bench b = bench_at(&w, memory + (size_t)t * floats, in, out);
        float *sum = sums + t * all;
        if (r.from == r.to)
            memset(sum, 0, (size_t)all * sizeof(float));
        for (int64_t from = r.from; from < r.to; from += BLOCK)
            add_block(&w, &b, from, from + BLOCK < r.to ? from + BLOCK : r.to, from > r.from,
                      sum);
    }
    gather_filter(&w, sums, filter_grad);
    return true;
}
