/* tensors_safetensors.c - safetensors files as tensors.h gives them. */

#include "base/error.h"
#include "runtime/io/safetensors.h"
#include "runtime/io/tensors_internal.h"

static bool file_open(struct tensors *tensors, struct error *err)
{
    struct safetensors *file = safetensors_open(tensors->path, err);
    tensors->source = file;
    if (!file)
        return false;
    int count;
    const struct safetensors_item *items = safetensors_items(file, &count);
    for (int i = 0; i < count; i++)
        tensors_add(tensors, items[i].name, items[i].dtype, &items[i].shape);
    return true;
}

static bool file_piece(struct tensors *tensors, const struct tensors_item *item, int64_t from,
                       int64_t count, void *out, struct error *err)
{
    int items_count;
    const struct safetensors_item *items = safetensors_items(tensors->source, &items_count);
    int64_t size = (int64_t)dtype_size(item->dtype);
    return safetensors_read(tensors->source, &items[item->index], from * size, out,
                            (size_t)(count * size), err);
}

static bool file_read(struct tensors *tensors, const struct tensors_item *item,
                      struct tensor *out, struct error *err)
{
    if (!tensor_init(out, (enum dtype)item->dtype, &item->shape, err))
        return false;
    if (file_piece(tensors, item, 0, out->count, out->data, err))
        return true;
    tensor_release(out);
    return false;
}

static void file_close(struct tensors *tensors)
{
    safetensors_close(tensors->source);
}

const struct tensors_format tensors_safetensors = {.name = "safetensors",
                                                   .open = file_open,
                                                   .piece = file_piece,
                                                   .read = file_read,
                                                   .close = file_close};
