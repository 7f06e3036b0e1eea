/* image.c - files of images, whatever their format. */

#include "runtime/io/image.h"

#include "base/error.h"

static const struct {
    const char *name;
    const char *start; /* of the file */
    size_t size;
} formats[] = {
    [IMAGE_NONE] = {"none", "", 0},
    [IMAGE_PNG] = {"PNG", "\x89PNG\r\n\x1a\n", 8},
    [IMAGE_JPEG] = {"JPEG", "\xff\xd8\xff", 3},
    [IMAGE_GIF] = {"GIF", "GIF", 3},
    [IMAGE_BMP] = {"BMP", "BM", 2},
};

enum image_format image_format(const void *bytes, size_t size)
{
    int format = ARRAY_LEN(formats) - 1;
    while (format != IMAGE_NONE &&
           (size < formats[format].size ||
            memcmp(bytes, formats[format].start, formats[format].size) != 0))
        format--;
    return (enum image_format)format;
}

const char *image_format_name(enum image_format format)
{
    return formats[format].name;
}

/* Three colours become one, as JPEG has it, or one becomes three; what a fourth says of opacity
 * is left out. */
static bool set_channels(struct image *image, int channels, struct error *err)
{
    int has = image->channels;
    if (has == channels)
        return true;
    struct image out = {.frames = 1,
                        .height = image->height,
                        .width = image->width,
                        .channels = channels,
                        .bits = 8};
    if (!image_alloc(&out, err))
        return false;
    const uint8_t *from = image->pixels;
    uint8_t *to = out.pixels;
    for (int64_t i = 0; i < image->height * image->width; i++, from += has, to += channels) {
        if (channels == 1 && has >= 3)
            to[0] = (uint8_t)((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
        else
            for (int c = 0; c < channels; c++)
                to[c] = from[has >= 3 ? c : 0];
    }
    image_release(image);
    *image = out;
    return true;
}

bool image_read(const void *bytes, size_t size, int channels, struct image *out,
                struct error *err)
{
    assert(channels == 1 || channels == 3);
    const struct jpeg_options options = {
        .channels = channels, .ratio = 1, .fancy_upscaling = true, .acceptable_fraction = 1};
    bool ok = false;
    *out = (struct image){0};
    switch (image_format(bytes, size)) {
    case IMAGE_PNG:
        ok = image_read_png(bytes, size, channels, 8, out, err);
        break;
    case IMAGE_JPEG:
        ok = image_read_jpeg(bytes, size, &options, out, err);
        break;
    case IMAGE_GIF:
        ok = image_read_gif(bytes, size, out, err);
        break;
    case IMAGE_BMP:
        ok = image_read_bmp(bytes, size, 0, out, err);
        break;
    case IMAGE_NONE:
        return fail(err, INVALID, "this is no PNG, JPEG, GIF or BMP image");
    }
    ok = ok && set_channels(out, channels, err);
    if (!ok)
        image_release(out);
    return ok;
}
