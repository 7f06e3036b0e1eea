/* image_decode.c - files of images become tensors, whatever their format. */

#include "kernels/list.h"

#include <math.h>

#include "base/error.h"
#include "runtime/io/image.h"
#include "runtime/op.h"

/* Each op reads more than its name says, but not everything. */
static bool check_format(const struct node *node, enum image_format format, struct error *err)
{
    static const char *const ops[] = {
        [IMAGE_PNG] = "decode_png",
        [IMAGE_JPEG] = "decode_jpeg",
        [IMAGE_GIF] = "decode_gif",
        [IMAGE_BMP] = "decode_bmp",
    };
    bool is_bmp = strcmp(node->op->name, "DecodeBmp") == 0;
    if (format == IMAGE_NONE)
        return fail(err, INVALID,
                    "Unknown image file format. One of JPEG, JPEG XL, PNG, GIF, BMP, WebP "
                    "required.");
    if (strcmp(node->op->name, "DecodeImage") == 0 || is_bmp == (format == IMAGE_BMP))
        return true;
    return fail(err, INVALID,
                "Trying to decode %s format using %s op. Use `%s` or `decode_image` instead.",
                image_format_name(format), node->op->name, ops[format]);
}

static bool check_channels(const struct node *node, int channels, enum image_format format,
                           struct error *err)
{
    (void)node;
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return fail(err, INVALID, "`channels` must be 0, 1, 3 or 4 but got %d", channels);
    if (format == IMAGE_JPEG && channels == 4)
        return fail(err, INVALID, "JPEG does not support 4 channels");
    if (format == IMAGE_GIF && channels != 0 && channels != 3)
        return fail(err, INVALID, "channels must be 0 or 3 for GIF, got %d", channels);
    if (format == IMAGE_BMP && channels == 1)
        return fail(err, INVALID, "`channels` must be 0, 3 or 4 for BMP, but got %d", channels);
    return true;
}

static bool jpeg_options(const struct node *node, int channels, struct jpeg_options *options,
                         struct error *err)
{
    const char *dct = node_attr_string(node, "dct_method", "");
    *options = (struct jpeg_options){
        .channels = channels,
        .ratio = (int)node_attr_int(node, "ratio", 1),
        .fancy_upscaling = node_attr_bool(node, "fancy_upscaling", true),
        .recover_truncated = node_attr_bool(node, "try_recover_truncated", false),
        .acceptable_fraction = node_attr_float(node, "acceptable_fraction", 1),
        .accurate_dct = strcmp(dct, "INTEGER_ACCURATE") == 0,
    };
    if (dct[0] && !options->accurate_dct && strcmp(dct, "INTEGER_FAST") != 0)
        return fail(err, INVALID,
                    "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
    int ratio = options->ratio;
    return ratio == 1 || ratio == 2 || ratio == 4 || ratio == 8 ||
           fail(err, INVALID, "ratio must be 1, 2, 4, or 8, got %d", ratio);
}

/* 8 bits to the type of the output; PNG has come with 16 where they are wanted. */
static void store_pixels(const struct image *image, struct tensor *out)
{
    const uint8_t *narrow = image->pixels;
    const uint16_t *wide = image->pixels;
    for (int64_t i = 0; i < out->count; i++) {
        if (out->dtype == U8)
            ((uint8_t *)out->data)[i] = narrow[i];
        else if (out->dtype == U16)
            ((uint16_t *)out->data)[i] =
                image->bits == 16 ? wide[i] : (uint16_t)(narrow[i] << 8);
        else
            ((float *)out->data)[i] =
                image->bits == 16 ? (float)wide[i] / 65535 : (float)narrow[i] / 255;
    }
}

/* GIF: (frames, height, width, channels), unless one frame alone is wanted. */
static bool give_image(struct kernel_call *call, const struct image *image,
                       enum image_format format, struct error *err)
{
    const char *op = call->node->op->name;
    bool expand = node_attr_bool(call->node, "expand_animations", true);
    struct shape shape = SHAPE(image->height, image->width, image->channels);
    bool frames = strcmp(op, "DecodeGif") == 0 ||
                  (format == IMAGE_GIF && strcmp(op, "DecodeImage") == 0 && expand);
    if (frames)
        shape = SHAPE(image->frames, image->height, image->width, image->channels);
    else if (image->frames > 1 && strcmp(op, "DecodeImage") != 0)
        return fail(
            err, INVALID,
            "Got %lld frames, but animated gifs can only be decoded by tf.io.decode_gif "
            "or tf.io.decode_image",
            (long long)image->frames);
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (out)
        store_pixels(image, out);
    return out != NULL;
}

/* What is wrong with a file, in the words of TensorFlow's ops. */
static void tell_as_stock(enum image_format format, size_t size, struct error *err)
{
    /* With the chunks that a decoder of each looks at first. */
    enum { PNG_HEADER = 41, GIF_SIGNATURE = 6, GIF_HEADER = 19 };
    if (err->code != INVALID || strncmp(err->text, "Invalid ", strlen("Invalid ")) != 0)
        return;
    if (format == IMAGE_PNG && size < PNG_HEADER)
        (void)fail(err, INVALID, "Invalid PNG. Failed to initialize decoder.");
    else if (format == IMAGE_PNG)
        (void)fail(err, INVALID, "Invalid PNG data, size %zu", size);
    else if (format == IMAGE_JPEG)
        (void)fail(err, INVALID, "jpeg::Uncompress failed. Invalid JPEG data or crop window.");
    else if (format == IMAGE_GIF)
        (void)fail(err, INVALID, "Invalid GIF data (size %zu), failed to %s", size,
                   size < GIF_SIGNATURE ? "open gif file: Failed to read from given file"
                   : size < GIF_HEADER  ? "open gif file: No screen descriptor detected"
                                        : "slurp gif file: Failed to read from given file");
}

/* Nothing may follow the rows. */
static bool check_bmp(const char *bytes, size_t size, const struct image *image,
                      struct error *err)
{
    const unsigned char *head = (const unsigned char *)bytes;
    int64_t begin = head[10] | head[11] << 8 | head[12] << 16 | (int64_t)head[13] << 24;
    int64_t row = (((head[28] | head[29] << 8) / 8) * image->width + 3) / 4 * 4;
    int64_t beyond = (int64_t)size - begin - row * image->height;
    return beyond == 0 ||
           fail(err, INVALID,
                "Input size should match (header_size + row_size * abs_height) but they differ "
                "by %lld",
                (long long)beyond);
}

static bool decode_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const struct tensor *contents = kernel_in(call, 0);
    int channels = (int)node_attr_int(node, "channels", 0);
    struct jpeg_options options;
    struct image image = {0};
    char text[SHAPE_TEXT_BYTES];
    if (!check_channels(node, channels, IMAGE_NONE, err) ||
        !jpeg_options(node, channels, &options, err))
        return false;
    if (contents->shape.rank != 0)
        return fail(err, INVALID, "`contents` must be scalar but got shape%s",
                    shape_text(&contents->shape, text, sizeof(text)));
    const struct tensor_string *bytes = tensor_strings(contents);
    if (bytes->size == 0)
        return fail(err, INVALID, "Input is empty.");
    enum image_format format = image_format(bytes->data, bytes->size);
    if (!check_format(node, format, err) || !check_channels(node, channels, format, err))
        return false;
    bool wide = dtype_base(node->output_types[0]) != U8, ok = false;
    if (format == IMAGE_PNG)
        ok = image_read_png(bytes->data, bytes->size, channels, wide ? 16 : 8, &image, err);
    else if (format == IMAGE_JPEG)
        ok = image_read_jpeg(bytes->data, bytes->size, &options, &image, err);
    else if (format == IMAGE_GIF)
        ok = image_read_gif(bytes->data, bytes->size, &image, err);
    else
        ok = image_read_bmp(bytes->data, bytes->size, channels, &image, err);
    if (!ok)
        tell_as_stock(format, bytes->size, err);
    if (ok && format == IMAGE_BMP)
        ok = check_bmp(bytes->data, bytes->size, &image, err);
    ok = ok && give_image(call, &image, format, err);
    image_release(&image);
    return ok;
}

/* (height, width, channels) of a file, by its header alone. */
static bool extract_jpeg_shape_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *contents = kernel_in(call, 0);
    struct image image;
    char text[SHAPE_TEXT_BYTES];
    if (contents->shape.rank != 0)
        return fail(err, INVALID, "contents must be scalar, got shape %s",
                    shape_text(&contents->shape, text, sizeof(text)));
    const struct tensor_string *bytes = tensor_strings(contents);
    if (!image_jpeg_size(bytes->data, bytes->size, &image, err))
        return fail(err, INVALID, "Invalid JPEG data, size %zu", bytes->size);
    const double sizes[] = {(double)image.height, (double)image.width, image.channels};
    struct tensor *out = kernel_output(call, 0, &SHAPE(3), err);
    for (int i = 0; out && i < 3; i++)
        tensor_set_number(out, i, sizes[i]);
    return out != NULL;
}

#define DECODE(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_decode_png = DECODE("DecodePng", decode_run);
const struct kernel kernel_decode_jpeg = DECODE("DecodeJpeg", decode_run);
const struct kernel kernel_decode_bmp = DECODE("DecodeBmp", decode_run);
const struct kernel kernel_decode_gif = DECODE("DecodeGif", decode_run);
const struct kernel kernel_decode_image = DECODE("DecodeImage", decode_run);
const struct kernel kernel_extract_jpeg_shape =
    DECODE("ExtractJpegShape", extract_jpeg_shape_run);
