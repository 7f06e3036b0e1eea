/* weights.c - opening files of weights, by kind. */

#include "runtime/train/weights.h"

#include <jansson.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/io/archive.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "runtime/io/safetensors.h"
#include "runtime/train/weights_internal.h"

#define WEIGHTS_ARCHIVE_ENTRY "model.weights.h5"

struct weights_entry *weights_add(struct weights *weights, const char *shown,
                                  const struct tensor *value)
{
    weights->entries = alloc_grow(weights->entries, weights->count, &weights->capacity,
                                  sizeof(*weights->entries));
    struct weights_entry *entry = &weights->entries[weights->count++];
    *entry = (struct weights_entry){.shown = shown, .number = -1, .index = -1, .value = value};
    return entry;
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), end_size = strlen(end);
    return size > end_size && !strcasecmp(path + size - end_size, end);
}

/* --- .keras --- */

static bool open_archive(struct weights *weights, struct error *err)
{
    struct archive *archive = archive_open(weights->path, err);
    if (!archive)
        return false;
    struct str bytes = {0};
    int index = archive_find(archive, WEIGHTS_ARCHIVE_ENTRY);
    bool ok = index >= 0 || fail(err, INVALID, "%s has no entry \"" WEIGHTS_ARCHIVE_ENTRY "\"",
                                 weights->path);
    ok = ok && archive_read(archive, index, LIMIT_TENSOR_BYTES, &bytes, err) &&
         hdf5_read_bytes(
             arena_printf(weights->arena, "%s: " WEIGHTS_ARCHIVE_ENTRY, weights->path),
             bytes.data, bytes.size, &weights->h5, err);
    archive_close(archive);
    str_release(&bytes);
    return ok;
}

/* --- checkpoints --- */

/* The best of the folder that "FOLDER/best" is in. */
static bool find_best(struct weights *weights, struct error *err)
{
    char *folder = file_folder(weights->path), *prefix = checkpoint_best(folder, err);
    if (prefix)
        weights->path = arena_text(weights->arena, prefix);
    free(folder);
    free(prefix);
    return prefix;
}

/* The newest of a folder, of a run too, or the prefix as it is. */
static bool find_prefix(struct weights *weights, struct error *err)
{
    struct stat info;
    bool there = !stat(weights->path, &info);
    if (there && S_ISREG(info.st_mode) && ends_with(weights->path, "/best"))
        return find_best(weights, err);
    if (!there || !S_ISDIR(info.st_mode))
        return true;
    const char *inside = arena_printf(weights->arena, "%s/checkpoints", weights->path);
    struct checkpoint checkpoint;
    if (!checkpoint_load(stat(inside, &info) ? weights->path : inside, &checkpoint, err))
        return false;
    weights->path = arena_text(weights->arena, checkpoint.prefix);
    checkpoint_release(&checkpoint);
    return true;
}

static bool read_items(struct weights *weights, struct bundle_reader *reader, struct error *err)
{
    const struct bundle_item *items;
    int count;
    if (!bundle_reader_list(reader, &items, &count, err))
        return false;
    weights->tensors = alloc_array((size_t)count + 1, sizeof(*weights->tensors));
    for (int i = 0; i < count; i++) {
        struct tensor *value = &weights->tensors[weights->tensors_count];
        if (!dtype_known(items[i].dtype) || !(BIT(items[i].dtype) & DTYPES_REAL))
            continue;
        if (!bundle_reader_read(reader, items[i].name, value, err))
            return error_prefix(err, "%s: ", weights->path);
        weights->tensors_count++;
        const char *name = arena_text(weights->arena, items[i].name);
        weights_add(weights, name, value)->name = name;
    }
    return true;
}

/* What the manifest tells of the tokens, read and written as tokenizers do. */
static const char *find_vocabulary(const struct weights *weights)
{
    struct str json = {0};
    struct error ignored;
    char *model = checkpoint_model(weights->path);
    json_t *root = model ? json_loads(model, 0, NULL) : NULL;
    char *text = json_dumps(json_object_get(json_object_get(root, "data"), "vocabulary"), 0);
    struct tokenizer *tokenizer = text ? tokenizer_read(text, strlen(text), &ignored) : NULL;
    if (tokenizer)
        tokenizer_write(tokenizer, &json);
    const char *found = tokenizer ? arena_text(weights->arena, str_text(&json)) : NULL;
    tokenizer_free(tokenizer);
    free(text);
    json_decref(root);
    free(model);
    str_release(&json);
    return found;
}

static bool open_checkpoint(struct weights *weights, struct error *err)
{
    if (!find_prefix(weights, err))
        return false;
    struct bundle_reader *reader = bundle_reader_open(weights->path, err);
    if (!reader)
        return err->code == NOT_FOUND
                   ? fail(err, NOT_FOUND,
                          "there is no file of weights %s, and no checkpoint %s.index",
                          weights->path, weights->path)
                   : false;
    bool ok = read_items(weights, reader, err);
    bundle_reader_close(reader);
    weights->vocabulary = find_vocabulary(weights);
    return ok;
}

/* --- .safetensors --- */

static bool open_safetensors(struct weights *weights, struct error *err)
{
    struct safetensors *file = safetensors_open(weights->path, err);
    int count = 0;
    const struct safetensors_item *items = file ? safetensors_items(file, &count) : NULL;
    bool ok = file;
    weights->tensors = alloc_array((size_t)count + 1, sizeof(*weights->tensors));
    for (int i = 0; ok && i < count; i++) {
        struct tensor *value = &weights->tensors[weights->tensors_count];
        if (!(BIT(items[i].dtype) & DTYPES_REAL))
            continue;
        ok = tensor_init(value, items[i].dtype, &items[i].shape, err);
        if (!ok)
            break;
        weights->tensors_count++;
        ok = safetensors_read(file, &items[i], 0, value->data, (size_t)items[i].bytes, err);
        const char *name = arena_text(weights->arena, items[i].name);
        weights_add(weights, name, value)->name = name;
    }
    safetensors_close(file);
    return ok;
}

struct weights *weights_open(const char *path, struct error *err)
{
    struct arena *arena = arena_new();
    struct weights *weights = alloc_bytes(sizeof(*weights));
    *weights = (struct weights){.arena = arena, .path = arena_text(arena, path)};
    bool ok;
    if (ends_with(path, ".keras"))
        ok = open_archive(weights, err) && weights_list_keras(weights, err);
    else if (ends_with(path, ".h5") || ends_with(path, ".hdf5"))
        ok = hdf5_read(path, &weights->h5, err) && weights_list_keras(weights, err);
    else if (ends_with(path, ".safetensors"))
        ok = open_safetensors(weights, err);
    else
        ok = open_checkpoint(weights, err);
    if (ok)
        return weights;
    weights_close(weights);
    return NULL;
}

void weights_close(struct weights *weights)
{
    if (!weights)
        return;
    for (int i = 0; i < weights->tensors_count; i++)
        tensor_release(&weights->tensors[i]);
    free(weights->tensors);
    hdf5_release(&weights->h5);
    free(weights->entries);
    arena_free(weights->arena);
    free(weights);
}

const char *weights_vocabulary(const struct weights *weights)
{
    return weights->vocabulary;
}

int weights_count(const struct weights *weights)
{
    return weights->count;
}

const struct weights_entry *weights_at(const struct weights *weights, int index)
{
    return &weights->entries[index];
}
