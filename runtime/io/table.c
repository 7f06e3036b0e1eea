/* table.c - reads sorted tables; what a damaged or hostile one claims is checked before use. */

#include "runtime/io/table.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "proto/crc32c.h"
#include "runtime/io/internal.h"

#define TABLE_KEY_BYTES_MAX 65536
/* Keys share prefixes with up to 15 others; more growth than this is not a table of ours. */
#define TABLE_GROWTH_MAX 64
#define TABLE_GROWTH_BASE (1 << 20)

struct table_part { /* a data block, parsed when first asked for */
    uint64_t offset;
    uint64_t size;
    const char *last_key; /* no key of the block is greater */
    size_t last_key_size;
    struct table_entry *entries; /* NULL: not yet */
    int entries_count;
};

struct table {
    const char *bytes;
    size_t size;
    struct arena *arena;
    struct table_part *parts;
    int parts_count;
};

void table_add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

bool table_read_varint(const char **at, const char *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        unsigned char byte = (unsigned char)*(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static int key_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    if (order)
        return order;
    return a_size < b_size ? -1 : a_size > b_size;
}

/* Checks frame and checksum of a block; `*end` is set behind its last entry. */
static bool block_check(const struct table *table, uint64_t offset, uint64_t size,
                        const char **start, const char **end, struct error *err)
{
    size_t room = table->size - TABLE_FOOTER_BYTES;
    if (offset > room || size > room - offset || room - offset - size < 5 || size < 4)
        return fail(err, DATA_LOSS, "bad block handle");
    const char *bytes = table->bytes + offset;
    uint32_t crc;
    memcpy(&crc, bytes + size + 1, 4);
    if (crc32c_unmask(crc) != crc32c(bytes, size + 1))
        return fail(err, DATA_LOSS, "block checksum mismatch");
    if (bytes[size] != 0)
        return fail(err, UNIMPLEMENTED, "compressed blocks (type %d) are not supported",
                    bytes[size]);
    uint32_t restarts;
    memcpy(&restarts, bytes + size - 4, 4);
    if (restarts > (size - 4) / 4)
        return fail(err, DATA_LOSS, "bad block contents");
    *start = bytes;
    *end = bytes + size - 4 - 4 * (size_t)restarts;
    return true;
}

static bool entry_parse(struct table *table, const char **at, const char *end,
                        const struct table_entry *before, struct table_entry *entry)
{
    uint64_t shared, unshared, value_size;
    if (!table_read_varint(at, end, &shared) || !table_read_varint(at, end, &unshared) ||
        !table_read_varint(at, end, &value_size))
        return false;
    size_t left = (size_t)(end - *at);
    if (shared > (before ? before->key_size : 0) || unshared > left ||
        value_size > left - unshared || shared + unshared > TABLE_KEY_BYTES_MAX)
        return false;

    char *key = arena_try(table->arena, shared + unshared + 1);
    if (!key)
        return false;
    if (shared)
        memcpy(key, before->key, shared);
    memcpy(key + shared, *at, unshared);
    *entry = (struct table_entry){key, shared + unshared, *at + unshared, value_size};
    *at += unshared + value_size;
    return !before || key_compare(before->key, before->key_size, key, entry->key_size) < 0;
}

static bool entries_parse(struct table *table, uint64_t offset, uint64_t size,
                          struct table_entry **entries, int *entries_count, struct error *err)
{
    const char *at = NULL, *end = NULL;
    if (!block_check(table, offset, size, &at, &end, err))
        return false;
    struct table_entry *list = NULL;
    int count = 0, capacity = 0;
    while (at < end) {
        list = alloc_grow(list, count, &capacity, sizeof(*list));
        if (!entry_parse(table, &at, end, count ? &list[count - 1] : NULL, &list[count])) {
            free(list);
            return fail(err, DATA_LOSS, "bad entry in block");
        }
        count++;
    }
    *entries = list ? list : alloc_bytes(sizeof(*list));
    *entries_count = count;
    return true;
}

static bool index_parse(struct table *table, struct error *err)
{
    const char *footer = table->bytes + table->size - TABLE_FOOTER_BYTES;
    const char *end = footer + TABLE_FOOTER_BYTES - 8;
    uint64_t skipped, offset, size;
    if (!table_read_varint(&footer, end, &skipped) ||
        !table_read_varint(&footer, end, &skipped) ||
        !table_read_varint(&footer, end, &offset) || !table_read_varint(&footer, end, &size))
        return fail(err, DATA_LOSS, "bad block handle");

    struct table_entry *entries;
    int count;
    if (!entries_parse(table, offset, size, &entries, &count, err))
        return false;
    table->parts = alloc_array((size_t)count + 1, sizeof(*table->parts));
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        struct table_part *part = &table->parts[table->parts_count++];
        const char *at = entries[i].value;
        const char *value_end = at + entries[i].value_size;
        part->last_key = entries[i].key;
        part->last_key_size = entries[i].key_size;
        if (!table_read_varint(&at, value_end, &part->offset) ||
            !table_read_varint(&at, value_end, &part->size))
            ok = fail(err, DATA_LOSS, "bad block handle");
    }
    free(entries);
    return ok;
}

struct table *table_open(const void *bytes, size_t size, struct error *err)
{
    if (size < TABLE_FOOTER_BYTES)
        return fail_null(err, DATA_LOSS, "file is too short to be an sstable");
    uint64_t magic;
    memcpy(&magic, (const char *)bytes + size - 8, 8);
    if (magic != TABLE_MAGIC)
        return fail_null(err, DATA_LOSS, "not an sstable (bad magic number)");

    struct table *table = alloc_bytes(sizeof(*table));
    table->bytes = bytes;
    table->size = size;
    table->arena = arena_new_limited(size * TABLE_GROWTH_MAX + TABLE_GROWTH_BASE);
    const struct table_entry *entries;
    int count;
    bool ok = index_parse(table, err) &&
              (!table->parts_count || table_block_entries(table, 0, &entries, &count, err));
    if (ok)
        return table;
    table_close(table);
    return NULL;
}

void table_close(struct table *table)
{
    if (!table)
        return;
    for (int i = 0; i < table->parts_count; i++)
        free(table->parts[i].entries);
    free(table->parts);
    arena_free(table->arena);
    free(table);
}

int table_blocks_count(const struct table *table)
{
    return table->parts_count;
}

/* That the keys of block `index` lie between those of its neighbours, as the index says: else
 * table_find would not see what table_block_entries lists. */
static bool block_in_order(const struct table *table, int index)
{
    const struct table_part *part = &table->parts[index];
    if (!part->entries_count)
        return true;
    const struct table_entry *first = part->entries;
    const struct table_entry *last = &part->entries[part->entries_count - 1];
    if (key_compare(last->key, last->key_size, part->last_key, part->last_key_size) > 0)
        return false;
    return !index || key_compare(part[-1].last_key, part[-1].last_key_size, first->key,
                                 first->key_size) < 0;
}

bool table_block_entries(struct table *table, int index, const struct table_entry **entries,
                         int *entries_count, struct error *err)
{
    assert(index >= 0 && index < table->parts_count);
    struct table_part *part = &table->parts[index];
    if (!part->entries) {
        if (!entries_parse(table, part->offset, part->size, &part->entries,
                           &part->entries_count, err))
            return false;
        if (!block_in_order(table, index)) {
            free(part->entries);
            part->entries = NULL;
            return fail(err, DATA_LOSS, "block %d holds keys out of order", index);
        }
    }
    *entries = part->entries;
    *entries_count = part->entries_count;
    return true;
}

bool table_find(struct table *table, const void *key, size_t key_size,
                const struct table_entry **entry, struct error *err)
{
    *entry = NULL;
    int low = 0, high = table->parts_count; /* the first block whose last key is not less */
    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct table_part *part = &table->parts[middle];
        if (key_compare(part->last_key, part->last_key_size, key, key_size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == table->parts_count)
        return true;

    const struct table_entry *entries;
    int count;
    if (!table_block_entries(table, low, &entries, &count, err))
        return false;
    for (low = 0, high = count; low < high;) {
        int middle = low + (high - low) / 2;
        int order = key_compare(entries[middle].key, entries[middle].key_size, key, key_size);
        if (!order) {
            *entry = &entries[middle];
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return true;
}
