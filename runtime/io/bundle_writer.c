/* bundle_writer.c - writes a checkpoint of one data file. */

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "runtime/io/bulk.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/table.h"

#define WRITER_BUFFER_BYTES (1 << 20)

struct writer_entry {
    struct str key;
    struct bundle_entry entry;
    int slices_capacity;
};

struct bundle_writer {
    char *prefix;
    char *data_temporary;
    char *index_temporary;
    int fd;
    struct str buffer; /* not yet written */
    int64_t offset;    /* in the data file, the buffer counted */
    struct writer_entry **entries;
    int entries_count;
    int entries_capacity;
    struct map *by_key; /* by key_text() */
    bool failed;
    struct error failure;
};

/* --- the data file --- */

static bool data_flush(struct bundle_writer *writer, const void *bytes, size_t size,
                       struct error *err)
{
    const char *at = bytes;
    while (size) {
        size_t part = size < (1u << 30) ? size : 1u << 30;
        ssize_t count = write(writer->fd, at, part);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return file_error(err, "write", writer->data_temporary);
        at += count;
        size -= (size_t)count;
    }
    return true;
}

static bool data_add(struct bundle_writer *writer, const void *bytes, size_t size,
                     struct error *err)
{
    writer->offset += (int64_t)size;
    if (writer->buffer.size + size < WRITER_BUFFER_BYTES) {
        str_add_bytes(&writer->buffer, bytes, size);
        return true;
    }
    if (!data_flush(writer, writer->buffer.data, writer->buffer.size, err))
        return false;
    str_clear(&writer->buffer);
    if (size < WRITER_BUFFER_BYTES) {
        str_add_bytes(&writer->buffer, bytes, size);
        return true;
    }
    return data_flush(writer, bytes, size, err);
}

/* Large ones go to the file at once, by all threads. */
static bool data_add_plain(struct bundle_writer *writer, const void *bytes, size_t size,
                           uint32_t *crc, struct error *err)
{
    if (size < WRITER_BUFFER_BYTES) {
        *crc = crc32c(bytes, size);
        return data_add(writer, bytes, size, err);
    }
    if (!data_flush(writer, writer->buffer.data, writer->buffer.size, err))
        return false;
    str_clear(&writer->buffer);
    if (!bulk_write(writer->fd, writer->offset, bytes, size, crc))
        return file_error(err, "write", writer->data_temporary);
    writer->offset += (int64_t)size;
    return lseek(writer->fd, writer->offset, SEEK_SET) >= 0 ||
           file_error(err, "write", writer->data_temporary);
}

/* Lengths as varints, their masked sum, all bytes; the sums run over fixed-size lengths. */
static bool data_add_strings(struct bundle_writer *writer, const struct tensor *tensor,
                             uint32_t *crc, struct error *err)
{
    const struct tensor_string *strings = tensor_strings(tensor);
    struct str lengths = {0};
    *crc = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        uint64_t size = strings[i].size;
        table_add_varint(&lengths, size);
        *crc = crc32c_extend(*crc, &size, size <= UINT32_MAX ? 4 : 8);
    }
    uint32_t masked = crc32c_mask(*crc);
    str_add_bytes(&lengths, &masked, 4);
    *crc = crc32c_extend(*crc, &masked, 4);
    bool ok = data_add(writer, lengths.data, lengths.size, err);
    str_release(&lengths);
    for (int64_t i = 0; ok && i < tensor->count; i++) {
        *crc = crc32c_extend(*crc, strings[i].data, strings[i].size);
        ok = data_add(writer, strings[i].data, strings[i].size, err);
    }
    return ok;
}

/* --- entries --- */

/* The key without NULs, which keys of slices hold and those of a map cannot. */
static char *key_text(const char *key, size_t size)
{
    struct str text = {0};
    for (size_t i = 0; i < size; i++) {
        if (key[i] && key[i] != '\x01')
            str_add_char(&text, key[i]);
        else
            str_printf(&text, "\x01%c", key[i] ? 'b' : 'a');
    }
    return str_take(&text);
}

static struct writer_entry *entry_find(struct bundle_writer *writer, const char *key,
                                       size_t size)
{
    char *text = key_text(key, size);
    struct writer_entry *found = map_find(writer->by_key, text);
    free(text);
    return found;
}

static struct writer_entry *entry_new(struct bundle_writer *writer, const char *key,
                                      size_t size, int dtype, const struct shape *shape)
{
    struct writer_entry *entry = alloc_bytes(sizeof(*entry));
    str_add_bytes(&entry->key, key, size);
    entry->entry.dtype = dtype;
    entry->entry.shape = *shape;
    writer->entries = alloc_grow(writer->entries, writer->entries_count,
                                 &writer->entries_capacity, sizeof(*writer->entries));
    writer->entries[writer->entries_count++] = entry;
    char *text = key_text(key, size);
    map_set(writer->by_key, text, entry);
    free(text);
    return entry;
}

static bool key_add(struct bundle_writer *writer, const char *key, size_t key_size,
                    const char *name, const struct tensor *tensor, struct error *err)
{
    if (!(DTYPES_PLAIN & BIT(tensor->dtype)) && tensor->dtype != STRING)
        return fail(err, UNIMPLEMENTED, "tensor '%s' of type %s cannot be saved", name,
                    dtype_name(tensor->dtype));
    if (!key_size)
        return fail(err, INVALID, "a tensor without a name cannot be saved");
    if (entry_find(writer, key, key_size))
        return fail(err, INVALID, "tensor '%s' is added to %s twice", name, writer->prefix);

    struct writer_entry *entry =
        entry_new(writer, key, key_size, tensor->dtype, &tensor->shape);
    entry->entry.offset = writer->offset;
    uint32_t crc = 0;
    if (tensor->dtype == STRING) {
        if (!data_add_strings(writer, tensor, &crc, err))
            return false;
    } else {
        size_t size = (size_t)tensor->count * dtype_size(tensor->dtype);
        if (!data_add_plain(writer, tensor->data, size, &crc, err))
            return false;
    }
    entry->entry.size = writer->offset - entry->entry.offset;
    entry->entry.crc = crc32c_mask(crc);
    return true;
}

static bool slice_add(struct bundle_writer *writer, const char *name, const struct shape *full,
                      const struct bundle_slice *slice, const struct tensor *tensor,
                      struct error *err)
{
    struct shape shape;
    char text[SHAPE_TEXT_BYTES];
    if (!bundle_slice_shape(slice, full, &shape) || !shape_equal(&shape, &tensor->shape))
        return fail(err, INVALID, "tensor '%s': its shape %s is not that of the slice", name,
                    shape_text(&tensor->shape, text, sizeof(text)));
    if (shape_equal(&shape, full)) /* all of it: no slice, to those who merge it */
        return key_add(writer, name, strlen(name), name, tensor, err);
    struct writer_entry *whole = entry_find(writer, name, strlen(name));
    if (!whole)
        whole = entry_new(writer, name, strlen(name), tensor->dtype, full);
    else if (whole->entry.dtype != (int)tensor->dtype ||
             !shape_equal(&whole->entry.shape, full))
        return fail(err, INVALID, "tensor '%s': its slices differ in type or full shape", name);

    struct bundle_entry *entry = &whole->entry;
    entry->slices = alloc_grow(entry->slices, entry->slices_count, &whole->slices_capacity,
                               sizeof(*entry->slices));
    entry->slices[entry->slices_count++] = *slice;
    struct str key = {0};
    bundle_slice_key(name, strlen(name), slice, &key);
    bool ok = key_add(writer, key.data, key.size, name, tensor, err);
    str_release(&key);
    return ok;
}

/* --- the writer --- */

struct bundle_writer *bundle_writer_open(const char *prefix, struct error *err)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) < 0)
        random = (uint64_t)getpid();
    struct bundle_writer *writer = alloc_bytes(sizeof(*writer));
    writer->prefix = alloc_text(prefix);
    writer->data_temporary = alloc_printf("%s.data-00000-of-00001.tempstate%llu", prefix,
                                          (unsigned long long)random);
    writer->index_temporary =
        alloc_printf("%s.index.tempstate%llu", prefix, (unsigned long long)random);
    writer->by_key = map_new();
    writer->fd = open(writer->data_temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->fd >= 0)
        return writer;
    file_error(err, "create", writer->data_temporary);
    bundle_writer_discard(writer);
    return NULL;
}

/* A failure is kept: a checkpoint that lacks something must not be finished. */
static bool keep_failure(struct bundle_writer *writer, bool ok, const struct error *err)
{
    if (!ok && !writer->failed) {
        writer->failed = true;
        writer->failure = *err;
    }
    return ok;
}

bool bundle_writer_add(struct bundle_writer *writer, const char *name,
                       const struct tensor *tensor, struct error *err)
{
    return keep_failure(writer, key_add(writer, name, strlen(name), name, tensor, err), err);
}

bool bundle_writer_add_slice(struct bundle_writer *writer, const char *name,
                             const struct shape *full, const struct bundle_slice *slice,
                             const struct tensor *tensor, struct error *err)
{
    return keep_failure(writer, slice_add(writer, name, full, slice, tensor, err), err);
}

static int compare_entries(const void *a, const void *b)
{
    const struct str *left = &(*(struct writer_entry *const *)a)->key;
    const struct str *right = &(*(struct writer_entry *const *)b)->key;
    size_t shorter = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->data, right->data, shorter);
    if (order)
        return order;
    return left->size < right->size ? -1 : left->size > right->size;
}

static void index_build(struct bundle_writer *writer, struct table_writer *table)
{
    struct str value = {0};
    bundle_entry_add_header(&value, 1);
    table_writer_add(table, "", 0, value.data, value.size);
    if (writer->entries_count)
        qsort(writer->entries, (size_t)writer->entries_count, sizeof(*writer->entries),
              compare_entries);
    for (int i = 0; i < writer->entries_count; i++) {
        str_clear(&value);
        bundle_entry_add(&value, &writer->entries[i]->entry);
        table_writer_add(table, writer->entries[i]->key.data, writer->entries[i]->key.size,
                         value.data, value.size);
    }
    table_writer_finish(table);
    str_release(&value);
}

static bool data_finish(struct bundle_writer *writer, struct error *err)
{
    if (!data_flush(writer, writer->buffer.data, writer->buffer.size, err))
        return false;
    if (fsync(writer->fd) < 0)
        return file_error(err, "sync", writer->data_temporary);
    int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) < 0)
        return file_error(err, "write", writer->data_temporary);
    return true;
}

/* Both files are complete under temporary names: now the renames, which cannot be half done. */
static bool publish(struct bundle_writer *writer, struct error *err)
{
    char *data = bundle_entry_shard_path(writer->prefix, 0, 1);
    char *index = alloc_printf("%s.index", writer->prefix);
    bool ok = file_rename(writer->data_temporary, data, err) &&
              file_rename(writer->index_temporary, index, err) && file_sync_folder(index, err);
    free(data);
    free(index);
    return ok;
}

bool bundle_writer_finish(struct bundle_writer *writer, struct error *err)
{
    bool ok = !writer->failed;
    if (!ok)
        *err = writer->failure;
    struct table_writer table;
    table_writer_init(&table);
    if (ok) {
        index_build(writer, &table);
        ok = data_finish(writer, err) &&
             file_write(writer->index_temporary, table.out.data, table.out.size, err) &&
             publish(writer, err);
    }
    table_writer_release(&table);
    bundle_writer_discard(writer);
    return ok;
}

void bundle_writer_discard(struct bundle_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    unlink(writer->data_temporary);
    unlink(writer->index_temporary);
    for (int i = 0; i < writer->entries_count; i++) {
        str_release(&writer->entries[i]->key);
        free(writer->entries[i]->entry.slices);
        free(writer->entries[i]);
    }
    free(writer->entries);
    map_free(writer->by_key);
    str_release(&writer->buffer);
    free(writer->data_temporary);
    free(writer->index_temporary);
    free(writer->prefix);
    free(writer);
}
