/* image_encode.c - tensors become files of images. */

#include "kernels/list.h"

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/image.h"
#include "runtime/op.h"

static bool encode_png_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int compression = (int)node_attr_int(call->node, "compression", -1);
    int rank = in->shape.rank;
    char text[SHAPE_TEXT_BYTES];
    if (compression < -1 || compression > 9)
        return fail(err, INVALID, "compression should be in [-1,9], got %d", compression);
    if (rank < 3)
        return fail(err, INVALID, "images must be at least rank 3%s",
                    shape_text(&in->shape, text, sizeof(text)));
    struct shape images = in->shape;
    images.rank -= 3;
    const int64_t *dims = in->shape.dims + images.rank;
    if (dims[2] < 1 || dims[2] > 4)
        return fail(err, INVALID, "image must have 1, 2, 3, or 4 channels, got %lld",
                    (long long)dims[2]);
    if (dims[0] > INT32_MAX || dims[1] > INT32_MAX)
        return fail(err, INVALID, "image too large for int: %s",
                    shape_text(&in->shape, text, sizeof(text)));
    struct tensor *out = kernel_output(call, 0, &images, err);
    if (!out)
        return false;
    struct image image = {.frames = 1,
                          .height = dims[0],
                          .width = dims[1],
                          .channels = (int)dims[2],
                          .bits = in->dtype == U16 ? 16 : 8};
    size_t size = (size_t)(dims[0] * dims[1] * dims[2]) * dtype_size(in->dtype);
    struct str file = {0};
    bool ok = true;
    for (int64_t i = 0; i < out->count && ok; i++) {
        image.pixels = (char *)in->data + (size_t)i * size;
        str_clear(&file);
        if (size == 0)
            ok = fail(err, INTERNAL, "PNG encoding failed: image %lld is empty", (long long)i);
        else
            ok = image_write_png(&image, compression, &file, err);
        if (ok)
            tensor_set_string(out, i, str_text(&file), file.size);
    }
    str_release(&file);
    return ok;
}

/* The format that the attribute asks for must be the one of the channels. */
static bool check_jpeg(const struct kernel_call *call, const struct shape *shape,
                       const char *format, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    (void)call;
    shape_text(shape, text, sizeof(text));
    if (shape->rank != 3)
        return fail(err, INVALID, "image must be 3-dimensional%s", text);
    int64_t channels = shape->dims[2];
    if (strcmp(format, "rgb") == 0 && channels != 3)
        return fail(err, INVALID, "format rgb expects 3 channels, got %s", text);
    if (strcmp(format, "grayscale") == 0 && channels != 1)
        return fail(err, INVALID, "format grayscale expects 1 channels, got %s", text);
    if (channels != 1 && channels != 3)
        return fail(err, INVALID, "image must have 1 or 3 channels, got %s", text);
    if (shape->dims[0] < 1 || shape->dims[1] < 1)
        return fail(err, INTERNAL, "JPEG encoding failed");
    return (shape->dims[0] <= 65500 && shape->dims[1] <= 65500) ||
           fail(err, INVALID, "image too large for a JPEG file: %s", text);
}

static bool encode_jpeg(struct kernel_call *call, const struct jpeg_quality *quality,
                        const char *format, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    if (quality->quality < 0 || quality->quality > 100)
        return fail(err, INVALID, "quality must be in [0,100], got %d", quality->quality);
    if (!check_jpeg(call, &in->shape, format, err))
        return false;
    struct image image = {.frames = 1,
                          .height = in->shape.dims[0],
                          .width = in->shape.dims[1],
                          .channels = (int)in->shape.dims[2],
                          .bits = 8,
                          .pixels = in->data};
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    struct str file = {0};
    bool ok = out && image_write_jpeg(&image, quality, &file, err);
    if (ok)
        tensor_set_string(out, 0, str_text(&file), file.size);
    str_release(&file);
    return ok;
}

static bool encode_jpeg_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const char *xmp = node_attr_string(node, "xmp_metadata", "");
    struct jpeg_quality quality = {
        .quality = (int)node_attr_int(node, "quality", 95),
        .progressive = node_attr_bool(node, "progressive", false),
        .optimize_size = node_attr_bool(node, "optimize_size", false),
        .chroma_downsampling = node_attr_bool(node, "chroma_downsampling", true),
        .per_centimetre = strcmp(node_attr_string(node, "density_unit", "in"), "cm") == 0,
        .x_density = (int)node_attr_int(node, "x_density", 300),
        .y_density = (int)node_attr_int(node, "y_density", 300),
        .xmp = xmp,
        .xmp_size = strlen(xmp),
    };
    return encode_jpeg(call, &quality, node_attr_string(node, "format", ""), err);
}

static bool encode_jpeg_quality_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 1);
    if (in->shape.rank != 0)
        return fail(err, INVALID, "quality must be scalar");
    struct jpeg_quality quality = {.quality = (int)tensor_integer(in, 0),
                                   .chroma_downsampling = true,
                                   .x_density = 300,
                                   .y_density = 300};
    return encode_jpeg(call, &quality, "", err);
}

#define ENCODE(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_encode_png = ENCODE("EncodePng", encode_png_run);
const struct kernel kernel_encode_jpeg = ENCODE("EncodeJpeg", encode_jpeg_run);
const struct kernel kernel_encode_jpeg_variable_quality =
    ENCODE("EncodeJpegVariableQuality", encode_jpeg_quality_run);
