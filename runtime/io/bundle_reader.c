/* bundle_reader.c - reads checkpoints; nothing the files claim is believed unchecked. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "runtime/io/bulk.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/table.h"

struct reader_shard {
    int fd; /* -1: not open */
    int64_t size;
};

struct bundle_reader {
    char *prefix;
    struct str index;
    struct table *table;
    struct arena *arena;
    struct reader_shard *shards;
    int shards_count;
    struct bundle_item *items; /* NULL until listed */
    int items_count;
};

/* --- opening --- */

static bool header_read(struct bundle_reader *reader, struct error *err)
{
    const struct table_entry *entry;
    if (!table_find(reader->table, "", 0, &entry, err))
        return false;
    if (!entry)
        return fail(err, DATA_LOSS, "it has no header entry");
    return bundle_entry_parse_header(entry->value, entry->value_size, &reader->shards_count,
                                     err);
}

struct bundle_reader *bundle_reader_open(const char *prefix, struct error *err)
{
    struct bundle_reader *reader = alloc_bytes(sizeof(*reader));
    reader->prefix = alloc_text(prefix);
    reader->arena = arena_new();
    char *path = alloc_printf("%s.index", prefix);
    bool ok = file_read(path, LIMIT_CHECKPOINT_INDEX_BYTES, &reader->index, err);
    if (!ok && err->code == NOT_FOUND)
        error_prefix(err, "there is no checkpoint '%s': ", prefix);
    if (ok) {
        reader->table = table_open(reader->index.data, reader->index.size, err);
        ok = reader->table && header_read(reader, err);
        if (!ok)
            error_prefix(err, "%s is damaged: ", path);
    }
    free(path);
    if (!ok) {
        bundle_reader_close(reader);
        return NULL;
    }
    reader->shards = alloc_array((size_t)reader->shards_count, sizeof(*reader->shards));
    for (int i = 0; i < reader->shards_count; i++)
        reader->shards[i].fd = -1;
    return reader;
}

void bundle_reader_close(struct bundle_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; reader->shards && i < reader->shards_count; i++) {
        if (reader->shards[i].fd >= 0)
            close(reader->shards[i].fd);
    }
    free(reader->shards);
    free(reader->items);
    table_close(reader->table);
    arena_free(reader->arena);
    str_release(&reader->index);
    free(reader->prefix);
    free(reader);
}

/* --- entries --- */

static bool entry_read(struct bundle_reader *reader, const char *key, size_t key_size,
                       const char *name, struct bundle_entry *entry, struct error *err)
{
    const struct table_entry *found;
    if (!table_find(reader->table, key, key_size, &found, err))
        return error_prefix(err, "%s.index is damaged: ", reader->prefix);
    if (!found)
        return fail(err, NOT_FOUND, "Key %s not found in checkpoint %s", name, reader->prefix);
    if (!bundle_entry_parse(found->value, found->value_size, reader->arena, entry, err))
        return error_prefix(err, "%s.index is damaged: tensor '%s': ", reader->prefix, name);
    return true;
}

static bool name_entry(struct bundle_reader *reader, const char *name,
                       struct bundle_entry *entry, struct error *err)
{
    if (!name[0])
        return fail(err, NOT_FOUND, "Key %s not found in checkpoint %s", name, reader->prefix);
    return entry_read(reader, name, strlen(name), name, entry, err);
}

static void item_take(struct bundle_item *item, const char *name,
                      const struct bundle_entry *entry)
{
    item->name = name;
    item->dtype = entry->dtype;
    item->shape = entry->shape;
    item->slices_count = entry->slices_count;
    item->shard = entry->shard;
    item->offset = entry->offset;
    item->size = entry->size;
    item->crc = entry->crc;
}

bool bundle_reader_find(struct bundle_reader *reader, const char *name,
                        struct bundle_item *item, struct error *err)
{
    struct bundle_entry entry;
    if (!name_entry(reader, name, &entry, err))
        return false;
    item_take(item, name, &entry);
    return true;
}

bool bundle_reader_list(struct bundle_reader *reader, const struct bundle_item **items,
                        int *items_count, struct error *err)
{
    struct bundle_item *list = NULL;
    int count = 0, capacity = 0;
    if (reader->items)
        goto out;
    for (int block = 0; block < table_blocks_count(reader->table); block++) {
        const struct table_entry *entries;
        int entries_count;
        if (!table_block_entries(reader->table, block, &entries, &entries_count, err)) {
            free(list);
            return error_prefix(err, "%s.index is damaged: ", reader->prefix);
        }
        for (int i = 0; i < entries_count; i++) {
            struct bundle_entry entry;
            if (!entries[i].key_size || !entries[i].key[0])
                continue; /* the header, and keys of slices */
            if (memchr(entries[i].key, '\0', entries[i].key_size)) {
                free(list);
                return fail(err, DATA_LOSS,
                            "%s.index is damaged: the name '%s' goes on after "
                            "a zero byte",
                            reader->prefix, entries[i].key);
            }
            if (!bundle_entry_parse(entries[i].value, entries[i].value_size, reader->arena,
                                    &entry, err)) {
                free(list);
                return error_prefix(err, "%s.index is damaged: tensor '%s': ", reader->prefix,
                                    entries[i].key);
            }
            list = alloc_grow(list, count, &capacity, sizeof(*list));
            item_take(&list[count++], entries[i].key, &entry);
        }
    }
    reader->items = list ? list : alloc_bytes(sizeof(*list));
    reader->items_count = count;
out:
    *items = reader->items;
    *items_count = reader->items_count;
    return true;
}

/* --- data --- */

static bool shard_open(struct bundle_reader *reader, int index, struct error *err)
{
    struct reader_shard *shard = &reader->shards[index];
    if (shard->fd >= 0)
        return true;
    char *path = bundle_entry_shard_path(reader->prefix, index, reader->shards_count);
    struct stat status;
    shard->fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = shard->fd >= 0 && fstat(shard->fd, &status) == 0;
    if (ok)
        shard->size = status.st_size;
    else
        file_error(err, "read", path);
    free(path);
    return ok;
}

static bool shard_read(struct bundle_reader *reader, const struct bundle_entry *entry,
                       char *out, struct error *err)
{
    int64_t done = 0;
    while (done < entry->size) {
        int64_t part = entry->size - done;
        if (part > 1 << 30)
            part = 1 << 30;
        ssize_t count = pread(reader->shards[entry->shard].fd, out + done, (size_t)part,
                              entry->offset + done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_errno(err, UNKNOWN, "cannot read data file %d of %s", entry->shard,
                               reader->prefix);
        if (!count)
            return fail(err, OUT_OF_RANGE, "Read less bytes than requested");
        done += count;
    }
    return true;
}

static bool sum_check(const struct bundle_entry *entry, uint32_t crc, struct error *err)
{
    if (crc32c_unmask(entry->crc) == crc)
        return true;
    return fail(err, DATA_LOSS,
                "Checksum does not match: stored %u vs. calculated on the restored bytes %u",
                crc32c_unmask(entry->crc), crc);
}

static bool plain_read(struct bundle_reader *reader, const struct bundle_entry *entry,
                       struct tensor *out, struct error *err)
{
    if (!tensor_init(out, (enum dtype)entry->dtype, &entry->shape, err))
        return false;
    uint32_t crc;
    bool ok = bulk_read(reader->shards[entry->shard].fd, entry->offset, out->data,
                        (size_t)entry->size, &crc, err)
                  ? sum_check(entry, crc, err)
                  : error_prefix(err, "data file %d of %s: ", entry->shard, reader->prefix);
    if (!ok) {
        tensor_release(out);
        return false;
    }
    uint8_t *bytes = out->data; /* a bool is 0 or 1, whatever the file has */
    for (int64_t i = 0; out->dtype == BOOL && i < out->count; i++)
        bytes[i] = bytes[i] != 0;
    return true;
}

/* Takes apart what data_add_strings() of the writer put together. */
static bool strings_parse(const struct bundle_entry *entry, const char *bytes,
                          struct tensor *out, struct error *err)
{
    const char *at = bytes, *end = bytes + entry->size;
    uint64_t *sizes = alloc_array((size_t)out->count, sizeof(*sizes));
    uint64_t total = 0;
    uint32_t crc = 0, masked;
    bool ok = true;
    for (int64_t i = 0; ok && i < out->count; i++) {
        ok = table_read_varint(&at, end, &sizes[i]) && sizes[i] <= (uint64_t)(end - at) &&
             (total += sizes[i]) <= (uint64_t)(end - at);
        crc = crc32c_extend(crc, &sizes[i], sizes[i] <= UINT32_MAX ? 4 : 8);
    }
    if (!ok || (uint64_t)(end - at) != total + 4) {
        ok = fail(err, DATA_LOSS, "the lengths of its strings do not match its size");
        goto out;
    }
    memcpy(&masked, at, 4);
    if (crc32c_unmask(masked) != crc) {
        ok = fail(err, DATA_LOSS, "the checksum of the lengths of its strings does not match");
        goto out;
    }
    crc = crc32c_extend(crc, at, 4 + total);
    ok = sum_check(entry, crc, err);
    at += 4;
    for (int64_t i = 0; ok && i < out->count; i++) {
        tensor_set_string(out, i, at, sizes[i]);
        at += sizes[i];
    }
out:
    free(sizes);
    return ok;
}

static bool strings_read(struct bundle_reader *reader, const struct bundle_entry *entry,
                         struct tensor *out, struct error *err)
{
    char *bytes = malloc((size_t)entry->size + 1);
    if (!bytes)
        return fail(err, EXHAUSTED, "no memory for %lld bytes", (long long)entry->size);
    bool ok =
        shard_read(reader, entry, bytes, err) && tensor_init(out, STRING, &entry->shape, err);
    if (ok && !strings_parse(entry, bytes, out, err)) {
        tensor_release(out);
        ok = false;
    }
    free(bytes);
    return ok;
}

static bool dtype_savable(int dtype)
{
    return dtype_known(dtype) && !dtype_is_ref(dtype) &&
           (DTYPES_PLAIN | BIT(STRING)) & BIT(dtype);
}

/* Opens the data file of an entry without slices; all its bytes are there. */
static bool data_find(struct bundle_reader *reader, const struct bundle_entry *entry,
                      struct error *err)
{
    if (!dtype_savable(entry->dtype))
        return fail(err, UNIMPLEMENTED, "type %d cannot be restored", entry->dtype);
    if (entry->shard >= reader->shards_count)
        return fail(err, DATA_LOSS, "it is in data file %d of %d", entry->shard,
                    reader->shards_count);
    if (!shard_open(reader, entry->shard, err))
        return false;
    int64_t count = shape_count(&entry->shape), wanted;
    bool is_string = entry->dtype == STRING;
    if (__builtin_mul_overflow(count, (int64_t)dtype_size(entry->dtype), &wanted))
        wanted = -1;
    if (is_string ? entry->size < 4 || count > entry->size - 4 : entry->size != wanted)
        return fail(err, DATA_LOSS, "its size of %lld bytes does not match its shape",
                    (long long)entry->size);
    int64_t room = reader->shards[entry->shard].size;
    if (entry->offset > room || entry->size > room - entry->offset)
        return fail(err, OUT_OF_RANGE, "Read less bytes than requested");
    return true;
}

static bool data_read(struct bundle_reader *reader, const struct bundle_entry *entry,
                      struct tensor *out, struct error *err)
{
    if (!data_find(reader, entry, err))
        return false;
    return entry->dtype == STRING ? strings_read(reader, entry, out, err)
                                  : plain_read(reader, entry, out, err);
}

/* --- slices --- */

/* Parts that share elements are damage; they would hide that others are not covered. */
static bool slices_disjoint(const struct bundle_entry *entry)
{
    for (int i = 0; i < entry->slices_count; i++) {
        for (int j = 0; j < i; j++) {
            if (bundle_slice_common(&entry->shape, &entry->slices[i], &entry->slices[j]))
                return false;
        }
    }
    return true;
}

/* Copies what the stored slice `part` has of `slice`. */
static bool part_copy(struct bundle_reader *reader, const char *name,
                      const struct bundle_entry *whole, const struct bundle_slice *part,
                      const struct bundle_slice *slice, struct tensor *out, struct error *err)
{
    struct shape shape;
    struct str key = {0};
    struct bundle_entry entry;
    struct tensor stored;
    bundle_slice_key(name, strlen(name), part, &key);
    bool ok = entry_read(reader, key.data, key.size, name, &entry, err);
    str_release(&key);
    if (!ok)
        return false;
    if (entry.dtype != whole->dtype || entry.slices_count ||
        !bundle_slice_shape(part, &whole->shape, &shape) || !shape_equal(&entry.shape, &shape))
        return fail(err, DATA_LOSS, "a slice has another type or shape than its tensor says");
    if (!data_read(reader, &entry, &stored, err))
        return false;
    bundle_slice_copy(&whole->shape, part, &stored, slice, out);
    tensor_release(&stored);
    return true;
}

static bool slices_read(struct bundle_reader *reader, const char *name,
                        const struct bundle_entry *entry, const struct bundle_slice *slice,
                        struct tensor *out, struct error *err)
{
    if (!dtype_savable(entry->dtype))
        return fail(err, UNIMPLEMENTED, "type %d cannot be restored", entry->dtype);
    if (!slices_disjoint(entry))
        return fail(err, INTERNAL, "its slices overlap");
    int64_t covered = 0;
    for (int i = 0; i < entry->slices_count; i++)
        covered += bundle_slice_common(&entry->shape, &entry->slices[i], slice);
    if (covered != bundle_slice_common(&entry->shape, slice, slice))
        return fail(err, INVALID, "the slices stored do not cover what is asked for");

    struct shape shape;
    bool fits = bundle_slice_shape(slice, &entry->shape, &shape);
    assert(fits);
    if (!tensor_init(out, (enum dtype)entry->dtype, &shape, err))
        return false;
    for (int i = 0; i < entry->slices_count; i++) {
        if (!bundle_slice_common(&entry->shape, &entry->slices[i], slice))
            continue;
        if (!part_copy(reader, name, entry, &entry->slices[i], slice, out, err)) {
            tensor_release(out);
            return false;
        }
    }
    return true;
}

bool bundle_reader_read(struct bundle_reader *reader, const char *name, struct tensor *out,
                        struct error *err)
{
    struct bundle_entry entry;
    if (!name_entry(reader, name, &entry, err))
        return false;
    struct bundle_slice all = {.rank = entry.shape.rank};
    for (int d = 0; d < all.rank; d++)
        all.length[d] = -1;
    bool ok = entry.slices_count ? slices_read(reader, name, &entry, &all, out, err)
                                 : data_read(reader, &entry, out, err);
    return ok || error_prefix(err, "checkpoint %s, tensor '%s': ", reader->prefix, name);
}

bool bundle_reader_read_bytes(struct bundle_reader *reader, const char *name, int64_t from,
                              void *out, size_t size, struct error *err)
{
    struct bundle_entry entry;
    if (!name_entry(reader, name, &entry, err))
        return false;
    assert(!entry.slices_count);
    bool ok = data_find(reader, &entry, err);
    if (ok) {
        assert(from >= 0 && from <= entry.size);
        assert((int64_t)size <= entry.size - from);
        entry.offset += from;
        entry.size = (int64_t)size;
        ok = shard_read(reader, &entry, out, err);
    }
    return ok || error_prefix(err, "checkpoint %s, tensor '%s': ", reader->prefix, name);
}

bool bundle_reader_read_slice(struct bundle_reader *reader, const char *name,
                              const struct bundle_slice *slice, struct tensor *out,
                              struct error *err)
{
    struct bundle_entry entry;
    if (!name_entry(reader, name, &entry, err))
        return false;
    struct shape shape;
    char text[SHAPE_TEXT_BYTES];
    bool ok;
    if (!bundle_slice_shape(slice, &entry.shape, &shape)) {
        ok = fail(err, INVALID, "its shape %s does not hold the slice",
                  shape_text(&entry.shape, text, sizeof(text)));
    } else if (entry.slices_count) {
        ok = slices_read(reader, name, &entry, slice, out, err);
    } else {
        struct bundle_slice all = {.rank = entry.shape.rank};
        struct tensor whole;
        ok = data_read(reader, &entry, &whole, err);
        if (ok) {
            ok = tensor_init(out, whole.dtype, &shape, err);
            if (ok)
                bundle_slice_copy(&entry.shape, &all, &whole, slice, out);
            tensor_release(&whole);
        }
    }
    return ok || error_prefix(err, "checkpoint %s, tensor '%s': ", reader->prefix, name);
}
