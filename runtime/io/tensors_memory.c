/* tensors_memory.c - formats that are read whole: NPY, NPZ, HDF5 and Keras's models. */

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/archive.h"
#include "runtime/io/hdf5.h"
#include "runtime/io/npy.h"
#include "runtime/io/tensors_internal.h"

struct memory {
    struct tensor *values; /* of the items, by their indexes */
    char **names;
    int count, values_capacity, names_capacity;
};

/* Takes `value`; copies `name`. */
static void add(struct tensors *tensors, const char *name, size_t name_size,
                struct tensor value)
{
    struct memory *memory = tensors->source;
    memory->values =
        alloc_grow(memory->values, memory->count, &memory->values_capacity, sizeof(value));
    memory->names =
        alloc_grow(memory->names, memory->count, &memory->names_capacity, sizeof(char *));
    memory->values[memory->count] = value;
    memory->names[memory->count] = alloc_text_n(name, name_size);
    tensors_add(tensors, memory->names[memory->count], value.dtype, &value.shape);
    memory->count++;
}

static bool memory_piece(struct tensors *tensors, const struct tensors_item *item, int64_t from,
                         int64_t count, void *out, struct error *err)
{
    const struct memory *memory = tensors->source;
    size_t size = dtype_size(item->dtype);
    (void)err;
    if (count)
        memcpy(out, (const char *)memory->values[item->index].data + (size_t)from * size,
               (size_t)count * size);
    return true;
}

static bool memory_read(struct tensors *tensors, const struct tensors_item *item,
                        struct tensor *out, struct error *err)
{
    const struct memory *memory = tensors->source;
    (void)err;
    tensor_share(out, &memory->values[item->index]);
    return true;
}

static void memory_close(struct tensors *tensors)
{
    struct memory *memory = tensors->source;
    for (int i = 0; i < memory->count; i++) {
        tensor_release(&memory->values[i]);
        free(memory->names[i]);
    }
    free(memory->values);
    free(memory->names);
    free(memory);
}

/* --- NPY and NPZ --- */

static bool npy_open(struct tensors *tensors, struct error *err)
{
    struct tensor value;
    tensors->source = alloc_bytes(sizeof(struct memory));
    if (!npy_read(tensors->path, &value, err))
        return false;
    const char *slash = strrchr(tensors->path, '/');
    const char *name = slash ? slash + 1 : tensors->path;
    size_t size = strlen(name);
    bool ends = size > 4 && !strcmp(name + size - 4, ".npy");
    add(tensors, name, ends ? size - 4 : size, value);
    return true;
}

static bool npz_open(struct tensors *tensors, struct error *err)
{
    struct str bytes = {0};
    struct archive *archive = archive_open(tensors->path, err);
    bool ok = archive != NULL;
    tensors->source = alloc_bytes(sizeof(struct memory));
    for (int i = 0; ok && i < archive_count(archive); i++) {
        struct tensor value;
        const char *name = archive_name(archive, i);
        size_t size = strlen(name);
        if (size < 5 || strcmp(name + size - 4, ".npy") != 0) {
            ok = fail(err, INVALID, "%s: its entry '%s' is no array of NPY", tensors->path,
                      name);
            break;
        }
        ok = archive_read(archive, i, LIMIT_TENSOR_BYTES, &bytes, err) &&
             (npy_parse(bytes.data, bytes.size, &value, err) ||
              error_prefix(err, "%s: %s: ", tensors->path, name));
        if (ok)
            add(tensors, name, size - 4, value);
    }
    str_release(&bytes);
    archive_close(archive);
    return ok;
}

/* --- HDF5 --- */

static void take_datasets(struct tensors *tensors, struct hdf5 *file)
{
    for (int i = 0; i < file->items_count; i++) {
        struct hdf5_item *item = &file->items[i];
        if (item->attribute || item->group || item->value.dtype == DTYPE_NONE)
            continue;
        add(tensors, item->path, strlen(item->path), item->value);
        item->value = (struct tensor){0};
    }
}

static bool hdf5_open(struct tensors *tensors, struct error *err)
{
    struct hdf5 file = {0};
    tensors->source = alloc_bytes(sizeof(struct memory));
    if (!hdf5_read(tensors->path, &file, err))
        return false;
    take_datasets(tensors, &file);
    hdf5_release(&file);
    return true;
}

static bool keras_open(struct tensors *tensors, struct error *err)
{
    static const char weights[] = "model.weights.h5";
    struct str bytes = {0};
    struct hdf5 file = {0};
    tensors->source = alloc_bytes(sizeof(struct memory));
    char *name = alloc_printf("%s: %s", tensors->path, weights);
    struct archive *archive = archive_open(tensors->path, err);
    int index = archive ? archive_find(archive, weights) : -1;
    bool ok = index >= 0 ? archive_read(archive, index, LIMIT_TENSOR_BYTES, &bytes, err) &&
                               hdf5_read_bytes(name, bytes.data, bytes.size, &file, err)
                         : archive && fail(err, INVALID, "%s has no entry '%s'", tensors->path,
                                           weights);
    if (ok)
        take_datasets(tensors, &file);
    hdf5_release(&file);
    str_release(&bytes);
    archive_close(archive);
    free(name);
    return ok;
}

#define MEMORY_FORMAT(symbol, name_, open_)                                                    \
    const struct tensors_format symbol = {.name = name_,                                       \
                                          .open = open_,                                       \
                                          .piece = memory_piece,                               \
                                          .read = memory_read,                                 \
                                          .close = memory_close}

MEMORY_FORMAT(tensors_npy, "NPY", npy_open);
MEMORY_FORMAT(tensors_npz, "NPZ", npz_open);
MEMORY_FORMAT(tensors_hdf5, "HDF5", hdf5_open);
MEMORY_FORMAT(tensors_keras, "Keras model", keras_open);
