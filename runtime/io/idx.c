/* idx.c - reads IDX files. */

#include <byteswap.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/io/idx.h"
#include "runtime/io/stream.h"

#define DEFLATE_RATIO_MAX 1032 /* no deflated byte becomes more */

static enum dtype element_type(unsigned char code)
{
    switch (code) {
    case 0x08:
        return U8;
    case 0x09:
        return I8;
    case 0x0b:
        return I16;
    case 0x0c:
        return I32;
    case 0x0d:
        return F32;
    case 0x0e:
        return F64;
    default:
        return DTYPE_NONE;
    }
}

/* Reads exactly `size` bytes; the error says where the file ends. */
static bool read_all(struct stream *stream, void *out, size_t size, struct error *err)
{
    int64_t start = stream_offset(stream);
    size_t count;
    if (!stream_read(stream, out, size, &count, err))
        return error_prefix(err, "damaged at byte %lld of the compressed file: ",
                            (long long)stream_place(stream));
    if (count == size)
        return true;
    return fail(err, DATA_LOSS, "ends at byte %lld, expected are at least %lld",
                (long long)stream_offset(stream), (long long)(start + (int64_t)size));
}

static bool header_read(struct stream *stream, enum dtype *dtype, struct shape *shape,
                        struct error *err)
{
    unsigned char magic[4], dims[4 * LIMIT_TENSOR_RANK];
    if (!read_all(stream, magic, 4, err))
        return false;
    *dtype = element_type(magic[2]);
    if (magic[0] || magic[1] || *dtype == DTYPE_NONE)
        return fail(err, DATA_LOSS, "at byte 0: %02x%02x%02x%02x does not begin an IDX file",
                    magic[0], magic[1], magic[2], magic[3]);
    if (magic[3] > LIMIT_TENSOR_RANK)
        return fail(err, DATA_LOSS, "at byte 3: %d dimensions, at most %d are possible",
                    magic[3], LIMIT_TENSOR_RANK);
    shape->rank = magic[3];
    if (!read_all(stream, dims, 4 * (size_t)shape->rank, err))
        return false;
    for (int d = 0; d < shape->rank; d++)
        shape->dims[d] = (int64_t)dims[4 * d] << 24 | dims[4 * d + 1] << 16 |
                         dims[4 * d + 2] << 8 | dims[4 * d + 3];
    return true;
}

/* Whether a file of this size can hold what its header claims. */
static bool size_check(struct stream *stream, enum dtype dtype, const struct shape *shape,
                       struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    int64_t count = shape_count(shape), header = 4 + 4 * shape->rank, data;
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)dtype_size(dtype), &data))
        return fail(err, DATA_LOSS, "at byte 4: the dimensions %s are too large",
                    shape_text(shape, text, sizeof(text)));
    int64_t bytes = stream_bytes(stream);
    if (stream_is_plain(stream)) {
        if (bytes - header < data)
            return fail(err, DATA_LOSS, "ends at byte %lld, its dimensions %s need %lld",
                        (long long)bytes, shape_text(shape, text, sizeof(text)),
                        (long long)(header + data));
    } else if (data / DEFLATE_RATIO_MAX > bytes) {
        return fail(err, DATA_LOSS,
                    "at byte 4: the dimensions %s cannot be in %lld compressed bytes",
                    shape_text(shape, text, sizeof(text)), (long long)bytes);
    }
    return true;
}

static void swap_elements(struct tensor *tensor)
{
    switch (dtype_size(tensor->dtype)) {
    case 2:
        for (int64_t i = 0; i < tensor->count; i++)
            ((uint16_t *)tensor->data)[i] = bswap_16(((uint16_t *)tensor->data)[i]);
        break;
    case 4:
        for (int64_t i = 0; i < tensor->count; i++)
            ((uint32_t *)tensor->data)[i] = bswap_32(((uint32_t *)tensor->data)[i]);
        break;
    case 8:
        for (int64_t i = 0; i < tensor->count; i++)
            ((uint64_t *)tensor->data)[i] = bswap_64(((uint64_t *)tensor->data)[i]);
        break;
    }
}

static bool content_read(struct stream *stream, struct tensor *out, struct error *err)
{
    enum dtype dtype;
    struct shape shape;
    if (!header_read(stream, &dtype, &shape, err) || !size_check(stream, dtype, &shape, err) ||
        !tensor_init(out, dtype, &shape, err))
        return false;
    char extra;
    size_t extra_count = 0;
    bool ok = read_all(stream, out->data, (size_t)out->count * dtype_size(dtype), err);
    /* Reading on also makes zlib compare its checksum. */
    if (ok && !stream_read(stream, &extra, 1, &extra_count, err))
        ok = error_prefix(err, "damaged at byte %lld of the compressed file: ",
                          (long long)stream_place(stream));
    if (ok && extra_count)
        ok = fail(err, DATA_LOSS, "at byte %lld: there is more than its dimensions tell",
                  (long long)stream_offset(stream) - 1);
    if (ok && !stream_is_whole(stream))
        ok = fail(err, DATA_LOSS, "the compressed file ends at byte %lld, before its checksum",
                  (long long)stream_bytes(stream));
    if (ok)
        swap_elements(out);
    else
        tensor_release(out);
    return ok;
}

bool idx_read(const char *path, struct tensor *out, struct error *err)
{
    struct stream *stream = stream_open(path, STREAM_AUTO, err);
    if (!stream)
        return false;
    bool ok = content_read(stream, out, err);
    stream_close(stream);
    return ok || error_prefix(err, "%s: ", path);
}

/* The path of FOLDER/NAME or FOLDER/NAME.gz, whichever is there; owned by the caller. */
static char *find_file(const char *folder, const char *set, const char *rest)
{
    char *path = alloc_printf("%s/%s-%s", folder, set, rest);
    if (access(path, F_OK) == 0)
        return path;
    char *compressed = alloc_printf("%s.gz", path);
    if (access(compressed, F_OK) == 0) {
        free(path);
        return compressed;
    }
    free(compressed);
    return path;
}

bool idx_read_set(const char *folder, const char *set, struct tensor *images,
                  struct tensor *labels, struct error *err)
{
    char *images_path = find_file(folder, set, "images-idx3-ubyte");
    char *labels_path = find_file(folder, set, "labels-idx1-ubyte");
    *images = (struct tensor){0};
    *labels = (struct tensor){0};
    bool ok = idx_read(images_path, images, err) && idx_read(labels_path, labels, err);
    if (ok && (images->dtype != U8 || images->shape.rank != 3))
        ok = fail(err, DATA_LOSS, "%s: at byte 0: images have type uint8 and 3 dimensions",
                  images_path);
    if (ok && (labels->dtype != U8 || labels->shape.rank != 1))
        ok = fail(err, DATA_LOSS, "%s: at byte 0: labels have type uint8 and 1 dimension",
                  labels_path);
    if (ok && images->shape.dims[0] != labels->count)
        ok = fail(err, DATA_LOSS, "%s: at byte 4: %lld labels for %lld images", labels_path,
                  (long long)labels->count, (long long)images->shape.dims[0]);
    if (!ok) {
        tensor_release(images);
        tensor_release(labels);
    }
    free(images_path);
    free(labels_path);
    return ok;
}
