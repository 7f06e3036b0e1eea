/* tensors_bundle.c - TensorFlow's checkpoints, of both versions, as tensors.h gives them. */

#include "base/alloc.h"
#include "base/error.h"
#include "proto/crc32c.h"
#include "runtime/io/bundle.h"
#include "runtime/io/slice_file.h"
#include "runtime/io/tensors_internal.h"

/* --- version 2 --- */

static bool bundle_open(struct tensors *tensors, struct error *err)
{
    struct bundle_reader *reader = bundle_reader_open(tensors->path, err);
    const struct bundle_item *items;
    int count;
    tensors->source = reader;
    if (!reader || !bundle_reader_list(reader, &items, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        struct tensors_item *item =
            tensors_add(tensors, items[i].name, items[i].dtype, &items[i].shape);
        item->slices_count = items[i].slices_count;
        item->shard = items[i].shard;
        item->has_crc = !items[i].slices_count;
        item->crc = crc32c_unmask(items[i].crc);
        if (!items[i].slices_count)
            item->bytes = items[i].size;
    }
    return true;
}

/* Whole rows around the piece, put together from the slices that have some of them. */
static bool sliced_piece(struct bundle_reader *reader, const struct tensors_item *item,
                         int64_t from, int64_t count, char *out, struct error *err)
{
    struct bundle_slice slice = {.rank = item->shape.rank};
    size_t size = dtype_size(item->dtype);
    int64_t row = 1, first = 0;
    struct tensor rows;
    if (!count)
        return true;
    for (int d = 1; d < item->shape.rank; d++) {
        row *= item->shape.dims[d];
        slice.length[d] = -1;
    }
    if (item->shape.rank) {
        first = from / row;
        slice.start[0] = first;
        slice.length[0] = (from + count - 1) / row - first + 1;
    }
    if (!bundle_reader_read_slice(reader, item->name, &slice, &rows, err))
        return false;
    memcpy(out, (const char *)rows.data + (size_t)(from - first * row) * size,
           (size_t)count * size);
    tensor_release(&rows);
    return true;
}

static bool bundle_piece(struct tensors *tensors, const struct tensors_item *item, int64_t from,
                         int64_t count, void *out, struct error *err)
{
    int64_t size = (int64_t)dtype_size(item->dtype);
    if (item->slices_count)
        return sliced_piece(tensors->source, item, from, count, out, err);
    return bundle_reader_read_bytes(tensors->source, item->name, from * size, out,
                                    (size_t)(count * size), err);
}

static bool bundle_read(struct tensors *tensors, const struct tensors_item *item,
                        struct tensor *out, struct error *err)
{
    return bundle_reader_read(tensors->source, item->name, out, err);
}

static void bundle_close(struct tensors *tensors)
{
    bundle_reader_close(tensors->source);
}

const struct tensors_format tensors_bundle = {.name = "TensorFlow checkpoint (V2)",
                                              .open = bundle_open,
                                              .piece = bundle_piece,
                                              .read = bundle_read,
                                              .close = bundle_close};

/* --- version 1: small files, each tensor is read whole --- */

static bool slices_open(struct tensors *tensors, struct error *err)
{
    struct slice_file_reader *reader = slice_file_reader_open(tensors->path, err);
    tensors->source = reader;
    for (int i = 0; reader && i < slice_file_reader_count(reader); i++) {
        int dtype;
        struct shape shape;
        const char *name = slice_file_reader_name(reader, i);
        if (!slice_file_reader_find(reader, name, &dtype, &shape, err))
            return false;
        tensors_add(tensors, name, dtype, &shape);
    }
    return reader != NULL;
}

static bool slices_read(struct tensors *tensors, const struct tensors_item *item,
                        struct tensor *out, struct error *err)
{
    return slice_file_reader_read(tensors->source, item->name, NULL, out, err);
}

static bool slices_piece(struct tensors *tensors, const struct tensors_item *item, int64_t from,
                         int64_t count, void *out, struct error *err)
{
    struct tensor whole;
    size_t size = dtype_size(item->dtype);
    if (!slices_read(tensors, item, &whole, err))
        return false;
    if (count)
        memcpy(out, (const char *)whole.data + (size_t)from * size, (size_t)count * size);
    tensor_release(&whole);
    return true;
}

static void slices_close(struct tensors *tensors)
{
    slice_file_reader_close(tensors->source);
}

const struct tensors_format tensors_slices = {.name = "TensorFlow checkpoint (V1)",
                                              .open = slices_open,
                                              .piece = slices_piece,
                                              .read = slices_read,
                                              .close = slices_close};
