/* image_bmp.c - BMP files: rows of plain pixels behind a header. */

#include "runtime/io/image.h"

#include "base/error.h"

static int64_t number_at(const unsigned char *bytes, size_t at, int size)
{
    uint32_t value = 0;
    for (int i = size - 1; i >= 0; i--)
        value = value << 8 | bytes[at + (size_t)i];
    return size == 4 ? (int64_t)(int32_t)value : (int64_t)value;
}

/*
 * One pixel of `has` bytes, blue first, as `wants` channels: grey is all three colours, what
 * has no opacity is opaque.
 */
static unsigned char *take_pixel(const unsigned char *from, int has, int wants,
                                 unsigned char *to)
{
    for (int c = 0; c < wants; c++)
        *to++ = has == 1 && c < 3 ? from[0] : c == 3 ? (has == 4 ? from[3] : 255) : from[2 - c];
    return to;
}

/* Rows stand bottom up (unless the height is negative), blue first, padded to 4 bytes. */
bool image_read_bmp(const void *data, size_t size, int channels, struct image *out,
                    struct error *err)
{
    const unsigned char *bytes = data;
    *out = (struct image){.frames = 1, .bits = 8};
    if (size < 32)
        return fail(err, INVALID,
                    "Incomplete bmp content, requires at least 32 bytes to find the header "
                    "size, width, height, and bpp, got %zu bytes",
                    size);
    int64_t begin = number_at(bytes, 10, 4), height = number_at(bytes, 22, 4);
    int64_t depth = number_at(bytes, 28, 2);
    bool top_down = height < 0;
    out->width = number_at(bytes, 18, 4);
    out->height = top_down ? -height : height;
    int has = (int)(depth / 8);
    out->channels = channels ? channels : has;
    if (out->channels < has && out->channels != 3)
        return fail(err, INVALID,
                    "channels attribute %d does not match bits per pixel from file %lld",
                    channels, (long long)depth);
    if (depth != 8 && depth != 24 && depth != 32)
        return fail(err, INVALID,
                    "Number of channels inherent in the image must be 1, 3 or 4, "
                    "was %d",
                    has);
    if (out->width <= 0 || begin < 0)
        return fail(err, INVALID, "BMP width must be positive");
    int64_t row = (has * out->width + 3) / 4 * 4;
    if (out->height > ((int64_t)size - begin) / row)
        return fail(err, INVALID,
                    "Input size should match (header_size + row_size * abs_height) but they "
                    "differ by %lld",
                    (long long)((uint64_t)size - (uint64_t)begin -
                                (uint64_t)row * (uint64_t)out->height));
    if (!image_alloc(out, err))
        return false;
    unsigned char *to = out->pixels;
    for (int64_t y = 0; y < out->height; y++) {
        const unsigned char *from = bytes + begin + (top_down ? y : out->height - 1 - y) * row;
        for (int64_t x = 0; x < out->width; x++, from += has)
            to = take_pixel(from, has, out->channels, to);
    }
    return true;
}
