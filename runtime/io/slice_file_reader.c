/* slice_file_reader.c - files of the V1 format: tensors put together from slices in any of
 * them.
 */

#include "runtime/io/slice_file.h"

#include <glob.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/table.h"

struct part { /* one file */
    struct str bytes;
    struct table *table;
    struct slice_file_tensor *tensors;
    int tensors_count;
};

struct slice_file_reader {
    struct arena *arena;
    struct part *parts;
    int parts_count;
    struct map *names; /* of all parts */
};

static bool open_part(struct slice_file_reader *reader, struct part *part, const char *path,
                      struct error *err)
{
    const struct table_entry *meta = NULL;
    if (!file_read(path, LIMIT_TENSOR_BYTES, &part->bytes, err))
        return false;
    part->table = table_open(part->bytes.data, part->bytes.size, err);
    if (!part->table || !table_find(part->table, "", 0, &meta, err))
        return error_prefix(err, "Unable to open table file %s: ", path);
    if (!meta)
        return fail(err, DATA_LOSS, "%s does not say what is in it", path);
    return slice_file_parse_meta(meta->value, meta->value_size, reader->arena, &part->tensors,
                                 &part->tensors_count, err) ||
           error_prefix(err, "%s: ", path);
}

struct slice_file_reader *slice_file_reader_open(const char *pattern, struct error *err)
{
    glob_t found = {0};
    bool ok = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (!ok)
        fail(
            err, NOT_FOUND,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
            "%s",
            pattern);
    struct slice_file_reader *reader = alloc_bytes(sizeof(*reader));
    reader->arena = arena_new();
    reader->parts = alloc_array(found.gl_pathc + 1, sizeof(*reader->parts));
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        ok = open_part(reader, &reader->parts[reader->parts_count++], found.gl_pathv[i], err);
    globfree(&found);
    reader->names = map_new();
    for (int i = 0; ok && i < reader->parts_count; i++)
        for (int t = 0; t < reader->parts[i].tensors_count; t++)
            map_set(reader->names, reader->parts[i].tensors[t].name, NULL);
    if (!ok) {
        slice_file_reader_close(reader);
        return NULL;
    }
    return reader;
}

void slice_file_reader_close(struct slice_file_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; i < reader->parts_count; i++) {
        table_close(reader->parts[i].table);
        str_release(&reader->parts[i].bytes);
    }
    free(reader->parts);
    map_free(reader->names);
    arena_free(reader->arena);
    free(reader);
}

int slice_file_reader_count(const struct slice_file_reader *reader)
{
    return map_count(reader->names);
}

const char *slice_file_reader_name(const struct slice_file_reader *reader, int index)
{
    return map_key(reader->names, index);
}

static const struct slice_file_tensor *tensor_in(const struct part *part, const char *name)
{
    for (int i = 0; i < part->tensors_count; i++)
        if (strcmp(part->tensors[i].name, name) == 0)
            return &part->tensors[i];
    return NULL;
}

bool slice_file_reader_find(const struct slice_file_reader *reader, const char *name,
                            int *dtype, struct shape *shape, struct error *err)
{
    bool found = false;
    for (int i = 0; i < reader->parts_count; i++) {
        const struct slice_file_tensor *tensor = tensor_in(&reader->parts[i], name);
        if (!tensor)
            continue;
        if (found && (*dtype != tensor->dtype || !shape_equal(shape, &tensor->shape)))
            return fail(err, INTERNAL, "the files do not agree about tensor \"%s\"", name);
        *dtype = tensor->dtype;
        *shape = tensor->shape;
        found = true;
    }
    return found ||
           fail(err, NOT_FOUND, "Tensor name \"%s\" not found in checkpoint files", name);
}

/* Copies what one stored slice has of `wanted`; adds to `*copied`. */
static bool read_slice(struct part *part, const struct slice_file_tensor *tensor,
                       const struct bundle_slice *stored, const struct bundle_slice *wanted,
                       struct tensor *out, int64_t *copied, struct error *err)
{
    struct shape shape;
    struct str key = {0};
    const struct table_entry *entry = NULL;
    struct tensor elements = {0};
    if (!bundle_slice_common(&tensor->shape, stored, wanted) ||
        !bundle_slice_shape(stored, &tensor->shape, &shape))
        return true;
    bundle_slice_key(tensor->name, strlen(tensor->name), stored, &key);
    bool ok = table_find(part->table, key.data, key.size, &entry, err);
    if (ok && !entry)
        ok = fail(err, DATA_LOSS, "a slice of tensor \"%s\" is not there", tensor->name);
    ok = ok && slice_file_parse_data(entry->value, entry->value_size, (enum dtype)tensor->dtype,
                                     &shape, &elements, err);
    if (ok)
        *copied += bundle_slice_copy(&tensor->shape, stored, &elements, wanted, out);
    tensor_release(&elements);
    str_release(&key);
    return ok;
}

bool slice_file_reader_read(struct slice_file_reader *reader, const char *name,
                            const struct bundle_slice *slice, struct tensor *out,
                            struct error *err)
{
    struct shape full, shape;
    int dtype;
    if (!slice_file_reader_find(reader, name, &dtype, &full, err))
        return false;
    struct bundle_slice all = {.rank = full.rank};
    for (int d = 0; d < full.rank; d++)
        all.length[d] = -1;
    if (!slice)
        slice = &all;
    if (!dtype_known(dtype) || dtype_is_ref(dtype) || !bundle_slice_shape(slice, &full, &shape))
        return fail(err, INVALID,
                    "tensor \"%s\": the slice does not fit, or the type is not known", name);
    struct tensor value;
    if (!tensor_init(&value, (enum dtype)dtype, &shape, err))
        return false;
    int64_t copied = 0;
    bool ok = true;
    for (int i = 0; i < reader->parts_count; i++) {
        const struct slice_file_tensor *tensor = tensor_in(&reader->parts[i], name);
        for (int k = 0; ok && tensor && k < tensor->slices_count; k++)
            ok = read_slice(&reader->parts[i], tensor, &tensor->slices[k], slice, &value,
                            &copied, err);
    }
    if (ok && copied != value.count)
        ok = fail(err, INVALID, "Error copying slice data of tensor \"%s\"", name);
    if (ok)
        *out = value;
    else
        tensor_release(&value);
    return ok;
}
