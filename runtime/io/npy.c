/* npy.c - reads and writes NPY files. */

#include "runtime/io/npy.h"

#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/output.h"

/* --- elements as a tensor has them --- */

static void swap_elements(struct tensor *tensor)
{
    bool is_complex = (BIT(tensor->dtype) & DTYPES_COMPLEX) != 0;
    int64_t count = tensor->count * (is_complex ? 2 : 1);
    switch (dtype_size(tensor->dtype) / (is_complex ? 2 : 1)) {
    case 2:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)tensor->data)[i] = bswap_16(((uint16_t *)tensor->data)[i]);
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)tensor->data)[i] = bswap_32(((uint32_t *)tensor->data)[i]);
        break;
    case 8:
        for (int64_t i = 0; i < count; i++)
            ((uint64_t *)tensor->data)[i] = bswap_64(((uint64_t *)tensor->data)[i]);
        break;
    }
}

/* Columns first to rows first: `source` has the elements of `target` with dimensions reversed.
 */
static void turn(const char *source, struct tensor *target)
{
    size_t size = dtype_size(target->dtype);
    int rank = target->shape.rank;
    int64_t index[LIMIT_TENSOR_RANK] = {0}, stride[LIMIT_TENSOR_RANK], from = 0, step = 1;
    if (!target->count)
        return; /* the other dimensions may be of any size */
    for (int d = 0; d < rank; d++) {
        stride[d] = step;
        step *= target->shape.dims[d];
    }
    for (int64_t i = 0; i < target->count; i++) {
        memcpy((char *)target->data + (size_t)i * size, source + (size_t)from * size, size);
        int d = rank - 1;
        for (; d >= 0 && ++index[d] == target->shape.dims[d]; d--) {
            from -= stride[d] * (index[d] - 1);
            index[d] = 0;
        }
        if (d >= 0)
            from += stride[d];
    }
}

/* What was read becomes what the header says; releases `tensor` when it fails. */
static bool settle(const struct npy_header *header, struct tensor *tensor, struct error *err)
{
    if (header->is_swapped)
        swap_elements(tensor);
    const unsigned char *bytes = tensor->data;
    for (int64_t i = 0; tensor->dtype == BOOL && i < tensor->count; i++) {
        if (bytes[i] > 1) {
            fail(err, DATA_LOSS, "at byte %lld: 0x%02x is no boolean",
                 (long long)(header->bytes + i), bytes[i]);
            tensor_release(tensor);
            return false;
        }
    }
    if (!header->is_fortran || tensor->shape.rank < 2)
        return true;
    struct tensor turned;
    bool ok = tensor_init(&turned, tensor->dtype, &tensor->shape, err);
    if (ok)
        turn(tensor->data, &turned);
    tensor_release(tensor);
    if (ok)
        *tensor = turned;
    return ok;
}

/* --- reading --- */

static bool size_check(const struct npy_header *header, int64_t bytes, struct error *err)
{
    char text[SHAPE_TEXT_BYTES];
    int64_t room = bytes - header->bytes;
    if (room == header->data_bytes)
        return true;
    shape_text(&header->shape, text, sizeof(text));
    if (room < header->data_bytes)
        return fail(err, DATA_LOSS,
                    "ends at byte %lld: %lld bytes for its dimensions %s of %s, "
                    "which need %lld",
                    (long long)bytes, (long long)room, text, dtype_name(header->dtype),
                    (long long)header->data_bytes);
    return fail(err, DATA_LOSS, "at byte %lld: there is more than its dimensions %s of %s tell",
                (long long)(header->bytes + header->data_bytes), text,
                dtype_name(header->dtype));
}

bool npy_parse(const void *bytes, size_t size, struct tensor *out, struct error *err)
{
    struct npy_header header;
    struct tensor tensor;
    if (!npy_header_parse(bytes, size, &header, err) ||
        !size_check(&header, (int64_t)size, err) ||
        !tensor_init_copy(&tensor, header.dtype, &header.shape,
                          (const char *)bytes + header.bytes, err) ||
        !settle(&header, &tensor, err))
        return false;
    *out = tensor;
    return true;
}

/* Reads until `size` bytes are there or the file ends; how many, or -1. */
static ssize_t read_some(int fd, void *out, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = pread(fd, (char *)out + done, size - done, offset + (int64_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -1;
        if (!count)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

static bool content_read(int fd, int64_t bytes, struct tensor *out, struct error *err)
{
    struct npy_header header;
    struct tensor tensor;
    char *front = alloc_bytes(NPY_HEADER_BYTES_MAX);
    ssize_t front_size = read_some(fd, front, NPY_HEADER_BYTES_MAX, 0);
    bool ok = front_size >= 0 ? npy_header_parse(front, (size_t)front_size, &header, err)
                              : error_errno(err, UNKNOWN, "cannot be read");
    free(front);
    if (!ok || !size_check(&header, bytes, err) ||
        !tensor_init(&tensor, header.dtype, &header.shape, err))
        return false;
    ssize_t count = read_some(fd, tensor.data, (size_t)header.data_bytes, header.bytes);
    if (count != header.data_bytes) {
        tensor_release(&tensor);
        return count < 0 ? error_errno(err, UNKNOWN, "cannot be read")
                         : fail(err, DATA_LOSS, "ends at byte %lld, it was shortened meanwhile",
                                (long long)(header.bytes + count));
    }
    if (!settle(&header, &tensor, err))
        return false;
    *out = tensor;
    return true;
}

bool npy_read(const char *path, struct tensor *out, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_error(err, "read", path);
    bool ok = fstat(fd, &status) == 0 || error_errno(err, UNKNOWN, "cannot be read");
    if (ok && !S_ISREG(status.st_mode))
        ok = fail(err, INVALID, "this is not a file");
    ok = ok && content_read(fd, status.st_size, out, err);
    close(fd);
    return ok || error_prefix(err, "%s: ", path);
}

/* --- writing --- */

bool npy_write(const char *path, const struct tensor *tensor, struct error *err)
{
    struct str header = {0};
    if (!npy_header_add(&header, tensor->dtype, &tensor->shape, err))
        return error_prefix(err, "%s: ", path);
    struct output *output = output_open(path, err);
    bool ok = output && output_write(output, header.data, header.size, err) &&
              output_write(output, tensor->data,
                           (size_t)tensor->count * dtype_size(tensor->dtype), err);
    str_release(&header);
    if (ok)
        return output_finish(output, err);
    output_discard(output);
    return false;
}
