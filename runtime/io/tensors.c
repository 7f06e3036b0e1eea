/* tensors.c - finds the format of what a path names; reads its tensors. */

#include "runtime/io/tensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/tensors_internal.h"

enum { STATE_BYTES_MAX = 1 << 20 };

/* --- which checkpoint --- */

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The first text in quotes after `key`, with C's simple escapes; owned, NULL if there is none.
 */
static char *quoted_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    at = at ? strchr(at + strlen(key), '"') : NULL;
    if (!at)
        return NULL;
    struct str out = {0};
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        str_add_char(&out, *at);
    }
    str_add(&out, "");
    return *at ? str_take(&out) : (str_release(&out), NULL);
}

/* The prefix that FOLDER/checkpoint names; owned, NULL when it names none. */
static char *newest_prefix(const char *folder)
{
    struct error err;
    struct str text = {0};
    char *path = alloc_printf("%s/checkpoint", folder), *prefix = NULL;
    if (file_read(path, STATE_BYTES_MAX, &text, &err))
        prefix = quoted_after(str_text(&text), "model_checkpoint_path:");
    if (prefix && *prefix != '/') {
        char *joined = alloc_printf("%s/%s", folder, prefix);
        free(prefix);
        prefix = joined;
    }
    str_release(&text);
    free(path);
    return prefix;
}

static char *prefix_in(const char *folder, struct error *err)
{
    static const char *const places[] = {".", "checkpoints"};
    for (int i = 0; i < ARRAY_LEN(places); i++) {
        char *inside = i ? alloc_printf("%s/%s", folder, places[i]) : alloc_text(folder);
        char *prefix = newest_prefix(inside);
        free(inside);
        if (prefix)
            return prefix;
    }
    char *prefix = alloc_printf("%s/variables/variables", folder);
    char *index = alloc_printf("%s.index", prefix);
    bool is_model = is_there(index);
    free(index);
    if (is_model)
        return prefix;
    free(prefix);
    return fail_null(err, NOT_FOUND,
                     "%s is a folder without a checkpoint: it has no file 'checkpoint' that "
                     "names one, here or in checkpoints/, and no variables/variables.index",
                     folder);
}

/* PREFIX of PREFIX.index or PREFIX.data-00000-of-00001; NULL if it is none of them. */
static char *prefix_of_part(const char *path)
{
    size_t size = strlen(path);
    if (size > 6 && !strcmp(path + size - 6, ".index"))
        return alloc_text_n(path, size - 6);
    static const char pattern[] = ".data-#####-of-#####";
    size_t length = sizeof(pattern) - 1;
    for (size_t i = 0; size > length && i < length; i++) {
        char c = path[size - length + i];
        if (pattern[i] == '#' ? c < '0' || c > '9' : c != pattern[i])
            return NULL;
    }
    return size > length ? alloc_text_n(path, size - length) : NULL;
}

/* --- which format --- */

static bool ends_with_magic(int fd, int64_t size)
{
    uint64_t magic;
    return size >= TABLE_FOOTER_BYTES && pread(fd, &magic, sizeof(magic), size - 8) == 8 &&
           magic == TABLE_MAGIC;
}

static bool begins(const char *front, ssize_t size, const char *magic, size_t magic_size)
{
    return size >= (ssize_t)magic_size && !memcmp(front, magic, magic_size);
}

/* What the first bytes of a file say; NULL when they say nothing. */
static const struct tensors_format *format_of(const char *path, const char *front,
                                              ssize_t front_size, int fd, int64_t size)
{
    size_t length = strlen(path);
    if (begins(front, front_size, "\x93NUMPY", 6))
        return &tensors_npy;
    if (begins(front, front_size, "\x89HDF\r\n\x1a\n", 8))
        return &tensors_hdf5;
    if (begins(front, front_size, "PK\3\4", 4) || begins(front, front_size, "PK\5\6", 4))
        return length > 6 && !strcmp(path + length - 6, ".keras") ? &tensors_keras
                                                                  : &tensors_npz;
    if (ends_with_magic(fd, size))
        return &tensors_slices;
    bool named = length > 12 && !strcmp(path + length - 12, ".safetensors");
    return named || (front_size > 8 && front[8] == '{') ? &tensors_safetensors : NULL;
}

static bool file_open(struct tensors *tensors, struct error *err)
{
    char front[16];
    struct stat status;
    const char *path = tensors->path;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        file_error(err, "read", path);
        if (fd >= 0)
            close(fd);
        return false;
    }
    ssize_t size = pread(fd, front, sizeof(front), 0);
    tensors->format = format_of(path, front, size, fd, status.st_size);
    close(fd);
    if (tensors->format)
        return tensors->format->open(tensors, err);
    return fail(
        err, INVALID,
        "%s holds no tensors that can be read: it is %s; wanted: a TensorFlow checkpoint "
        "(prefix, .index or folder), .safetensors, .npy, .npz, .h5 or .keras",
        path, status.st_size ? "none of the formats known" : "empty");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct tensors_item *)a)->name,
                  ((const struct tensors_item *)b)->name);
}

/* The prefix of the checkpoint that the path names, owned; NULL when it is a file to look into,
 * or with `*failed` a folder without one. */
static char *find_prefix(const char *path, bool *failed, struct error *err)
{
    struct stat status;
    char *index = alloc_printf("%s.index", path);
    bool is_prefix = is_there(index), exists = stat(path, &status) == 0;
    size_t size = strlen(path);
    free(index);
    *failed = false;
    if (is_prefix)
        return alloc_text(path);
    if (exists &&
        (S_ISDIR(status.st_mode) || (size > 10 && !strcmp(path + size - 11, "/checkpoint")))) {
        char *folder =
            S_ISDIR(status.st_mode) ? alloc_text(path) : alloc_text_n(path, size - 11);
        char *prefix = prefix_in(folder, err);
        free(folder);
        *failed = !prefix;
        return prefix;
    }
    char *prefix = prefix_of_part(path);
    return prefix || exists ? prefix : alloc_text(path);
}

struct tensors *tensors_open(const char *path, struct error *err)
{
    bool failed;
    char *prefix = find_prefix(path, &failed, err);
    if (failed)
        return NULL;
    struct tensors *tensors = alloc_bytes(sizeof(*tensors));
    tensors->path = prefix ? prefix : alloc_text(path);
    tensors->format = prefix ? &tensors_bundle : NULL;
    bool ok = prefix ? tensors_bundle.open(tensors, err) : file_open(tensors, err);
    if (!ok) {
        tensors_close(tensors);
        return NULL;
    }
    if (tensors->items_count)
        qsort(tensors->items, (size_t)tensors->items_count, sizeof(*tensors->items),
              compare_names);
    return tensors;
}

void tensors_close(struct tensors *tensors)
{
    if (!tensors)
        return;
    if (tensors->format && tensors->source)
        tensors->format->close(tensors);
    free(tensors->items);
    free(tensors->path);
    free(tensors);
}

/* --- what there is --- */

struct tensors_item *tensors_add(struct tensors *tensors, const char *name, int dtype,
                                 const struct shape *shape)
{
    tensors->items = alloc_grow(tensors->items, tensors->items_count, &tensors->items_capacity,
                                sizeof(*tensors->items));
    struct tensors_item *item = &tensors->items[tensors->items_count];
    item->name = name;
    item->dtype = dtype;
    item->shape = *shape;
    item->index = tensors->items_count++;
    int64_t count = shape_count(shape);
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)dtype_size(dtype), &item->bytes))
        item->bytes = 0;
    return item;
}

const struct tensors_item *tensors_items(const struct tensors *tensors, int *count)
{
    *count = tensors->items_count;
    return tensors->items;
}

const struct tensors_item *tensors_find(const struct tensors *tensors, const char *name)
{
    struct tensors_item wanted = {.name = name};
    if (!tensors->items_count)
        return NULL;
    return bsearch(&wanted, tensors->items, (size_t)tensors->items_count,
                   sizeof(*tensors->items), compare_names);
}

const char *tensors_path(const struct tensors *tensors)
{
    return tensors->path;
}

const char *tensors_format(const struct tensors *tensors)
{
    return tensors->format->name;
}

/* --- reading --- */

bool tensors_read(struct tensors *tensors, const struct tensors_item *item, struct tensor *out,
                  struct error *err)
{
    return tensors->format->read(tensors, item, out, err);
}

bool tensors_begin(struct tensors_cursor *cursor, struct tensors *tensors,
                   const struct tensors_item *item, struct error *err)
{
    if (!dtype_known(item->dtype) || !(BIT(dtype_base(item->dtype)) & DTYPES_PLAIN))
        return fail(err, UNIMPLEMENTED, "tensor '%s': elements of type %s are no numbers",
                    item->name, dtype_name(item->dtype));
    *cursor = (struct tensors_cursor){
        .tensors = tensors, .item = item, .count = shape_count(&item->shape)};
    return cursor->count >= 0 ||
           fail(err, DATA_LOSS, "tensor '%s': its shape is too large", item->name);
}

bool tensors_next(struct tensors_cursor *cursor, void *out, int64_t max, int64_t *count,
                  struct error *err)
{
    const struct tensors_item *item = cursor->item;
    int64_t part = cursor->count - cursor->at < max ? cursor->count - cursor->at : max;
    *count = 0;
    if (!part && (cursor->count || cursor->at))
        return true;
    if (!cursor->tensors->format->piece(cursor->tensors, item, cursor->at, part, out, err))
        return false;
    cursor->crc = crc32c_extend(cursor->crc, out, (size_t)part * dtype_size(item->dtype));
    cursor->at += part;
    if (cursor->at == cursor->count && item->has_crc && cursor->crc != item->crc)
        return fail(err, DATA_LOSS,
                    "%s: tensor '%s': its checksum is %08x, that of its bytes %08x",
                    cursor->tensors->path, item->name, item->crc, cursor->crc);
    *count = part;
    return true;
}
