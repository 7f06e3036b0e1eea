/* safetensors.c - opens, reads and lays out safetensors files. */

#include "runtime/io/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/safetensors_internal.h"

enum { FRONT_BYTES = 8, ALIGN = 8 };

struct safetensors {
    char *path;
    int fd;
    int64_t data; /* where the elements begin */
    struct arena *arena;
    struct safetensors_header header;
};

/* --- reading --- */

static bool read_at(const struct safetensors *file, void *out, size_t size, int64_t offset,
                    struct error *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count =
            pread(file->fd, (char *)out + done, size - done, offset + (int64_t)done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_errno(err, UNKNOWN, "cannot be read");
        if (!count)
            return fail(err, DATA_LOSS, "ends at byte %lld, within what is to be read",
                        (long long)(offset + (int64_t)done));
        done += (size_t)count;
    }
    return true;
}

static bool header_read(struct safetensors *file, struct error *err)
{
    struct stat status;
    unsigned char front[FRONT_BYTES];
    if (fstat(file->fd, &status) < 0)
        return error_errno(err, UNKNOWN, "cannot be read");
    if (!S_ISREG(status.st_mode))
        return fail(err, INVALID, "this is not a file");
    if (status.st_size < FRONT_BYTES)
        return fail(err, DATA_LOSS, "ends at byte %lld, a safetensors file has at least %d",
                    (long long)status.st_size, FRONT_BYTES);
    if (!read_at(file, front, FRONT_BYTES, 0, err))
        return false;
    uint64_t size = 0;
    for (int i = FRONT_BYTES - 1; i >= 0; i--)
        size = size << 8 | front[i];
    if (size > SAFETENSORS_HEADER_BYTES_MAX)
        return fail(err, DATA_LOSS, "at byte 0: a header of %llu bytes, at most %d are allowed",
                    (unsigned long long)size, SAFETENSORS_HEADER_BYTES_MAX);
    if ((int64_t)size > status.st_size - FRONT_BYTES)
        return fail(err, DATA_LOSS, "at byte 0: a header of %llu bytes in a file of %lld",
                    (unsigned long long)size, (long long)status.st_size);
    file->data = FRONT_BYTES + (int64_t)size;
    char *text = alloc_bytes((size_t)size);
    bool ok = read_at(file, text, (size_t)size, FRONT_BYTES, err) &&
              safetensors_header_parse(text, (size_t)size, status.st_size - file->data,
                                       file->arena, &file->header, err);
    free(text);
    return ok;
}

struct safetensors *safetensors_open(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        file_error(err, "read", path);
        return NULL;
    }
    struct safetensors *file = alloc_bytes(sizeof(*file));
    file->path = alloc_text(path);
    file->fd = fd;
    file->arena = arena_new();
    if (header_read(file, err))
        return file;
    error_prefix(err, "%s: ", path);
    safetensors_close(file);
    return NULL;
}

void safetensors_close(struct safetensors *file)
{
    if (!file)
        return;
    close(file->fd);
    free(file->header.items);
    free(file->header.notes);
    arena_free(file->arena);
    free(file->path);
    free(file);
}

const struct safetensors_item *safetensors_items(const struct safetensors *file, int *count)
{
    *count = file->header.items_count;
    return file->header.items;
}

const struct safetensors_note *safetensors_notes(const struct safetensors *file, int *count)
{
    *count = file->header.notes_count;
    return file->header.notes;
}

bool safetensors_read(struct safetensors *file, const struct safetensors_item *item,
                      int64_t from, void *out, size_t size, struct error *err)
{
    assert(from >= 0 && from <= item->bytes);
    assert((int64_t)size <= item->bytes - from);
    if (!read_at(file, out, size, file->data + item->offset + from, err))
        return error_prefix(err, "%s: tensor '%.200s': ", file->path, item->name);
    const unsigned char *bytes = out;
    for (size_t i = 0; item->dtype == BOOL && i < size; i++) {
        if (bytes[i] > 1)
            return fail(err, DATA_LOSS,
                        "%s: tensor '%.200s': at byte %lld: 0x%02x is no boolean", file->path,
                        item->name, (long long)(file->data + item->offset + from + (int64_t)i),
                        bytes[i]);
    }
    return true;
}

/* --- writing --- */

const char *safetensors_note_of(enum dtype dtype)
{
    static const struct {
        enum dtype dtype;
        const char *text;
    } notes[] = {
        {QI8, "int8 with the bits of qint8"},    {QU8, "uint8 with the bits of quint8"},
        {QI16, "int16 with the bits of qint16"}, {QU16, "uint16 with the bits of quint16"},
        {QI32, "int32 with the bits of qint32"},
    };
    for (int i = 0; i < ARRAY_LEN(notes); i++) {
        if (notes[i].dtype == dtype)
            return notes[i].text;
    }
    return NULL;
}

static int compare_places(const void *a, const void *b)
{
    const struct safetensors_item *x = a, *y = b;
    size_t x_size = dtype_size(x->dtype), y_size = dtype_size(y->dtype);
    if (x_size != y_size)
        return x_size > y_size ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct safetensors_item *)a)->name,
                  ((const struct safetensors_item *)b)->name);
}

bool safetensors_layout(struct safetensors_item *items, int count, struct error *err)
{
    if (count)
        qsort(items, (size_t)count, sizeof(*items), compare_names);
    for (int i = 0; i < count; i++) {
        const char *name = items[i].name;
        if (!safetensors_header_type(items[i].dtype))
            return fail(err, UNIMPLEMENTED,
                        "tensor '%.200s': a safetensors file cannot hold elements of type %s",
                        name, dtype_name(items[i].dtype));
        if (!str_is_utf8(name, strlen(name)))
            return fail(err, INVALID, "tensor '%.200s': its name is not UTF-8", name);
        if (!strcmp(name, "__metadata__"))
            return fail(err, INVALID, "the name '%s' is taken by the format", name);
        if (i && !strcmp(name, items[i - 1].name))
            return fail(err, INVALID, "tensor '%.200s' is there twice", name);
        int64_t elements = shape_count(&items[i].shape);
        if (elements < 0 || __builtin_mul_overflow(
                                elements, (int64_t)dtype_size(items[i].dtype), &items[i].bytes))
            return fail(err, INVALID, "tensor '%.200s': its shape is too large", name);
    }
    if (count)
        qsort(items, (size_t)count, sizeof(*items), compare_places);
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        items[i].offset = at;
        if (__builtin_add_overflow(at, items[i].bytes, &at))
            return fail(err, INVALID, "its tensors are too large together");
    }
    return true;
}

void safetensors_add_header(struct str *out, const struct safetensors_item *items, int count,
                            const struct safetensors_note *notes, int notes_count)
{
    struct str text = {0};
    str_add_char(&text, '{');
    for (int i = 0; i < notes_count; i++) {
        str_add(&text, i ? "," : "\"__metadata__\":{");
        str_add_json(&text, notes[i].key, strlen(notes[i].key));
        str_add_char(&text, ':');
        str_add_json(&text, notes[i].value, strlen(notes[i].value));
    }
    if (notes_count)
        str_add(&text, count ? "}," : "}");
    for (int i = 0; i < count; i++) {
        str_add(&text, i ? "," : "");
        str_add_json(&text, items[i].name, strlen(items[i].name));
        str_printf(&text, ":{\"dtype\":\"%s\",\"shape\":[",
                   safetensors_header_type(items[i].dtype));
        for (int d = 0; d < items[i].shape.rank; d++)
            str_printf(&text, "%s%lld", d ? "," : "", (long long)items[i].shape.dims[d]);
        str_printf(&text, "],\"data_offsets\":[%lld,%lld]}", (long long)items[i].offset,
                   (long long)(items[i].offset + items[i].bytes));
    }
    str_add_char(&text, '}');
    while (text.size % ALIGN)
        str_add_char(&text, ' ');
    for (int i = 0; i < FRONT_BYTES; i++)
        str_add_char(out, (char)((uint64_t)text.size >> 8 * i));
    str_add_bytes(out, text.data, text.size);
    str_release(&text);
}
