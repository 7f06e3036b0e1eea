/*
 * npz.c - see npz.h.
 *
 * An entry's checksum and size are known at its end only, so the place for them in front of it
 * is filled in afterwards.  Sizes are written in the fields of Zip64, which hold any.
 */

#include "runtime/io/npz.h"

#include <zlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/io/npy.h"
#include "runtime/io/output.h"

enum {
    VERSION = 45, /* of zip: the first with Zip64 */
    DATE_1980 = 0x21,
    FLAG_UTF8 = 0x800,
    LOCAL_BYTES = 30,
    EXTRA_BYTES = 20,
    NAME_BYTES_MAX = 4096,
};

struct entry {
    char *name;
    int64_t offset, bytes;
    uint32_t crc;
};

struct npz_writer {
    struct output *output;
    struct map *names;
    struct entry *entries;
    int count, capacity;
};

static void add_number(struct str *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        str_add_char(out, (char)(value >> 8 * i));
}

struct npz_writer *npz_writer_open(const char *path, struct error *err)
{
    struct output *output = output_open(path, err);
    if (!output)
        return NULL;
    struct npz_writer *writer = alloc_bytes(sizeof(*writer));
    writer->output = output;
    writer->names = map_new();
    return writer;
}

static void writer_free(struct npz_writer *writer)
{
    for (int i = 0; i < writer->count; i++)
        free(writer->entries[i].name);
    free(writer->entries);
    map_free(writer->names);
    free(writer);
}

void npz_writer_discard(struct npz_writer *writer)
{
    if (!writer)
        return;
    output_discard(writer->output);
    writer_free(writer);
}

/* The local header: what is in front of an entry. */
static void add_local(struct str *out, const struct entry *entry)
{
    add_number(out, 0x04034b50, 4);
    add_number(out, VERSION, 2);
    add_number(out, FLAG_UTF8, 2);
    add_number(out, 0, 2); /* stored */
    add_number(out, 0, 2);
    add_number(out, DATE_1980, 2);
    add_number(out, entry->crc, 4);
    add_number(out, UINT32_MAX, 4); /* the sizes are in the extra field */
    add_number(out, UINT32_MAX, 4);
    add_number(out, strlen(entry->name), 2);
    add_number(out, EXTRA_BYTES, 2);
    str_add(out, entry->name);
    add_number(out, 1, 2); /* Zip64 */
    add_number(out, EXTRA_BYTES - 4, 2);
    add_number(out, (uint64_t)entry->bytes, 8);
    add_number(out, (uint64_t)entry->bytes, 8);
}

/* Fills in what is known now of the last entry. */
static bool entry_end(struct npz_writer *writer, struct error *err)
{
    if (!writer->count)
        return true;
    const struct entry *entry = &writer->entries[writer->count - 1];
    struct str local = {0};
    add_local(&local, entry);
    bool ok = output_rewrite(writer->output, entry->offset, local.data, local.size, err);
    str_release(&local);
    return ok;
}

bool npz_writer_begin(struct npz_writer *writer, const char *name, enum dtype dtype,
                      const struct shape *shape, struct error *err)
{
    struct str header = {0}, local = {0};
    size_t size = strlen(name);
    if (!size || size > NAME_BYTES_MAX || !str_is_utf8(name, size))
        return fail(err, INVALID,
                    "an entry of an NPZ file cannot be named \"%.100s\": allowed are 1 to %d "
                    "bytes of UTF-8",
                    name, NAME_BYTES_MAX);
    if (map_has(writer->names, name))
        return fail(err, INVALID, "\"%s\" is there twice", name);
    if (!npy_header_add(&header, dtype, shape, err))
        return error_prefix(err, "tensor '%s': ", name);
    bool ok = entry_end(writer, err);
    if (ok) {
        map_set(writer->names, name, NULL);
        writer->entries = alloc_grow(writer->entries, writer->count, &writer->capacity,
                                     sizeof(*writer->entries));
        struct entry *entry = &writer->entries[writer->count++];
        entry->name = alloc_printf("%s.npy", name);
        entry->offset = output_bytes(writer->output);
        add_local(&local, entry);
        ok = output_write(writer->output, local.data, local.size, err) &&
             npz_writer_add(writer, header.data, header.size, err);
    }
    str_release(&local);
    str_release(&header);
    return ok;
}

bool npz_writer_add(struct npz_writer *writer, const void *bytes, size_t size,
                    struct error *err)
{
    assert(writer->count);
    struct entry *entry = &writer->entries[writer->count - 1];
    entry->crc = size ? (uint32_t)crc32_z(entry->crc, bytes, size) : entry->crc;
    entry->bytes += (int64_t)size;
    return output_write(writer->output, bytes, size, err);
}

static void add_central(struct str *out, const struct entry *entry)
{
    add_number(out, 0x02014b50, 4);
    add_number(out, VERSION | 3 << 8, 2); /* made on Unix */
    add_number(out, VERSION, 2);
    add_number(out, FLAG_UTF8, 2);
    add_number(out, 0, 2);
    add_number(out, 0, 2);
    add_number(out, DATE_1980, 2);
    add_number(out, entry->crc, 4);
    add_number(out, UINT32_MAX, 4);
    add_number(out, UINT32_MAX, 4);
    add_number(out, strlen(entry->name), 2);
    add_number(out, 28, 2);
    add_number(out, 0, 2); /* no comment */
    add_number(out, 0, 2); /* on the first disk */
    add_number(out, 0, 2);
    add_number(out, (uint64_t)0100644 << 16, 4);
    add_number(out, UINT32_MAX, 4);
    str_add(out, entry->name);
    add_number(out, 1, 2);
    add_number(out, 24, 2);
    add_number(out, (uint64_t)entry->bytes, 8);
    add_number(out, (uint64_t)entry->bytes, 8);
    add_number(out, (uint64_t)entry->offset, 8);
}

/* The end of the archive, in the old form too, which says to look for the new one. */
static void add_end(struct str *out, uint64_t entries, uint64_t size, uint64_t offset)
{
    add_number(out, 0x06064b50, 4);
    add_number(out, 44, 8);
    add_number(out, VERSION | 3 << 8, 2);
    add_number(out, VERSION, 2);
    add_number(out, 0, 4);
    add_number(out, 0, 4);
    add_number(out, entries, 8);
    add_number(out, entries, 8);
    add_number(out, size, 8);
    add_number(out, offset, 8);
    add_number(out, 0x07064b50, 4);
    add_number(out, 0, 4);
    add_number(out, offset + size, 8);
    add_number(out, 1, 4);
    add_number(out, 0x06054b50, 4);
    add_number(out, 0, 4);
    add_number(out, entries < UINT16_MAX ? entries : UINT16_MAX, 2);
    add_number(out, entries < UINT16_MAX ? entries : UINT16_MAX, 2);
    add_number(out, size < UINT32_MAX ? size : UINT32_MAX, 4);
    add_number(out, offset < UINT32_MAX ? offset : UINT32_MAX, 4);
    add_number(out, 0, 2);
}

bool npz_writer_finish(struct npz_writer *writer, struct error *err)
{
    struct str end = {0};
    bool ok = entry_end(writer, err);
    int64_t offset = output_bytes(writer->output);
    for (int i = 0; i < writer->count; i++)
        add_central(&end, &writer->entries[i]);
    add_end(&end, (uint64_t)writer->count, end.size, (uint64_t)offset);
    ok = ok && output_write(writer->output, end.data, end.size, err);
    str_release(&end);
    if (ok)
        ok = output_finish(writer->output, err);
    else
        output_discard(writer->output);
    writer_free(writer);
    return ok;
}
