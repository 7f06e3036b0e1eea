/* npy.c - reads and writes NPY files. */

#include "runtime/io/npy.h"

#include <byteswap.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/io/npy_file.h"
#include "runtime/io/output.h"

/* --- elements as a tensor has them --- */

static void swap_elements(enum dtype dtype, void *elements, int64_t count)
{
    bool is_complex = (BIT(dtype) & DTYPES_COMPLEX) != 0;
    count *= is_complex ? 2 : 1;
    switch (dtype_size(dtype) / (is_complex ? 2 : 1)) {
    case 2:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)elements)[i] = bswap_16(((uint16_t *)elements)[i]);
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            ((uint32_t *)elements)[i] = bswap_32(((uint32_t *)elements)[i]);
        break;
    case 8:
        for (int64_t i = 0; i < count; i++)
            ((uint64_t *)elements)[i] = bswap_64(((uint64_t *)elements)[i]);
        break;
    }
}

bool npy_settle(const struct npy_header *header, void *elements, int64_t first, int64_t count,
                struct error *err)
{
    const unsigned char *bytes = elements;
    if (header->is_swapped)
        swap_elements(header->dtype, elements, count);
    for (int64_t i = 0; header->dtype == BOOL && i < count; i++) {
        if (bytes[i] > 1)
            return fail(err, DATA_LOSS, "at byte %lld: 0x%02x is no boolean",
                        (long long)(header->bytes + first + i), bytes[i]);
    }
    return true;
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

/* Rows first, if they were not; releases `tensor` when it fails. */
static bool turn_rows(const struct npy_header *header, struct tensor *tensor, struct error *err)
{
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

bool npy_check_size(const struct npy_header *header, int64_t bytes, struct error *err)
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
        !npy_check_size(&header, (int64_t)size, err) ||
        !tensor_init_copy(&tensor, header.dtype, &header.shape,
                          (const char *)bytes + header.bytes, err))
        return false;
    if (!npy_settle(&header, tensor.data, 0, tensor.count, err)) {
        tensor_release(&tensor);
        return false;
    }
    if (!turn_rows(&header, &tensor, err))
        return false;
    *out = tensor;
    return true;
}

bool npy_read(const char *path, struct tensor *out, struct error *err)
{
    struct npy_file *file = npy_file_open(path, err);
    if (!file)
        return false;
    const struct npy_header *header = npy_file_header(file);
    struct tensor tensor;
    bool ok = tensor_init(&tensor, header->dtype, &header->shape, err) ||
              error_prefix(err, "%s: ", path);
    if (ok && !npy_file_read(file, 0, tensor.count, tensor.data, err)) {
        tensor_release(&tensor);
        ok = false;
    }
    ok = ok && (turn_rows(header, &tensor, err) || error_prefix(err, "%s: ", path));
    npy_file_close(file);
    if (ok)
        *out = tensor;
    return ok;
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
