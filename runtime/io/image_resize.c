/* image_resize.c - images in another size, rows and columns one after the other. */

#include "runtime/io/image.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"

/* Which pixels of the source a pixel is made of: `count` from `first` on. */
struct taps {
    int64_t first;
    int count;
    float *weights; /* they sum up to 1 */
};

struct side {
    struct taps *taps; /* one for each pixel of the result */
    float *weights;
};

/* Weights along one side: a triangle around the pixel's middle in the source. */
static struct side side_new(int64_t from, int64_t to)
{
    double scale = (double)from / (double)to, reach = scale > 1 ? scale : 1;
    int most = (int)(2 * ceil(reach)) + 2;
    struct side side = {alloc_array((size_t)to, sizeof(*side.taps)),
                        alloc_array((size_t)to * (size_t)most, sizeof(*side.weights))};
    for (int64_t i = 0; i < to; i++) {
        struct taps *taps = &side.taps[i];
        double middle = ((double)i + 0.5) * scale, sum = 0;
        int64_t first = (int64_t)floor(middle - reach), last = (int64_t)ceil(middle + reach);
        first = first < 0 ? 0 : first;
        last = last > from ? from : last;
        taps->first = first;
        taps->count = (int)(last - first);
        taps->weights = side.weights + i * most;
        assert(taps->count > 0 && taps->count <= most);
        for (int t = 0; t < taps->count; t++) {
            double away = fabs((double)(first + t) + 0.5 - middle) / reach;
            taps->weights[t] = away < 1 ? (float)(1 - away) : 0;
            sum += taps->weights[t];
        }
        for (int t = 0; t < taps->count; t++)
            taps->weights[t] = (float)(taps->weights[t] / sum);
    }
    return side;
}

static void side_release(struct side *side)
{
    free(side->taps);
    free(side->weights);
}

/* One row of the source at the width of the result. */
static void narrow(const uint8_t *row, int channels, const struct side *side, int64_t width,
                   float *out)
{
    for (int64_t x = 0; x < width; x++) {
        const struct taps *taps = &side->taps[x];
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int t = 0; t < taps->count; t++)
                sum += taps->weights[t] * (float)row[(taps->first + t) * channels + c];
            out[x * channels + c] = sum;
        }
    }
}

/* The rows (H,w,C) at the height of the result. */
static void lower(const float *rows, int64_t row, const struct side *side, struct image *out)
{
    uint8_t *pixels = out->pixels;
    for (int64_t y = 0; y < out->height; y++) {
        const struct taps *taps = &side->taps[y];
        for (int64_t i = 0; i < row; i++) {
            float sum = 0;
            for (int t = 0; t < taps->count; t++)
                sum += taps->weights[t] * rows[(taps->first + t) * row + i];
            sum = sum < 0 ? 0 : sum > 255 ? 255 : sum;
            pixels[y * row + i] = (uint8_t)(sum + 0.5f);
        }
    }
}

bool image_resize(const struct image *image, int64_t height, int64_t width, struct image *out,
                  struct error *err)
{
    assert(image->bits == 8 && image->height > 0 && image->width > 0);
    assert(height > 0 && height <= IMAGE_SIDE_MAX);
    assert(width > 0 && width <= IMAGE_SIDE_MAX);
    *out = (struct image){
        .frames = 1, .height = height, .width = width, .channels = image->channels, .bits = 8};
    if (image->height > IMAGE_SIDE_MAX || image->width > IMAGE_SIDE_MAX)
        return fail(err, INVALID, "an image of %lld x %lld, allowed: sides of at most %d",
                    (long long)image->height, (long long)image->width, IMAGE_SIDE_MAX);
    int64_t row = width * image->channels, values = row * image->height;
    if (values > LIMIT_IMAGE_BYTES / (int64_t)sizeof(float))
        return fail(err, INVALID, "an image %lld high is too large to be made %lld wide",
                    (long long)image->height, (long long)width);
    float *rows = malloc((size_t)values * sizeof(*rows));
    if (!rows)
        return fail(err, EXHAUSTED, "no memory to resize an image of %lld x %lld",
                    (long long)image->height, (long long)image->width);
    if (!image_alloc(out, err)) {
        free(rows);
        return false;
    }
    struct side columns = side_new(image->width, width),
                lines = side_new(image->height, height);
    for (int64_t y = 0; y < image->height; y++)
        narrow((const uint8_t *)image->pixels + y * image->width * image->channels,
               image->channels, &columns, width, rows + y * row);
    lower(rows, row, &lines, out);
    side_release(&columns);
    side_release(&lines);
    free(rows);
    return true;
}
