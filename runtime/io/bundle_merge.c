/* bundle_merge.c - one checkpoint out of the parts that several tasks saved. */

#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/io/file.h"
#include "runtime/io/internal.h"
#include "runtime/io/table.h"

struct merge_entry {
    const char *key;
    size_t key_size;
    struct bundle_entry entry;
    int order; /* of its part: slices are joined in the order of the parts */
};

struct merge_shard { /* a data file and the number that it gets */
    char *path;
    int part;
    int old_shard;
};

struct merge {
    struct arena *arena;
    struct merge_entry *entries;
    int entries_count;
    int entries_capacity;
    struct merge_shard *shards;
    int shards_count;
    int shards_capacity;
    int shards_total; /* as the headers say */
};

/* The new number of data file `shard` of part `part`. */
static int shard_number(struct merge *merge, const char *prefix, int part, int shard,
                        int part_shards_count)
{
    for (int i = merge->shards_count - 1; i >= 0 && merge->shards[i].part == part; i--) {
        if (merge->shards[i].old_shard == shard)
            return i;
    }
    merge->shards = alloc_grow(merge->shards, merge->shards_count, &merge->shards_capacity,
                               sizeof(*merge->shards));
    merge->shards[merge->shards_count] =
        (struct merge_shard){.path = bundle_entry_shard_path(prefix, shard, part_shards_count),
                             .part = part,
                             .old_shard = shard};
    return merge->shards_count++;
}

static bool entry_take(struct merge *merge, const struct table_entry *from, const char *prefix,
                       int part, int part_shards_count, struct error *err)
{
    struct merge_entry entry = {.key_size = from->key_size, .order = part};
    entry.key = arena_text_n(merge->arena, from->key, from->key_size);
    if (!bundle_entry_parse(from->value, from->value_size, merge->arena, &entry.entry, err))
        return false;
    if (entry.entry.shard >= part_shards_count)
        return fail(err, DATA_LOSS, "'%s' is in data file %d of %d", from->key,
                    entry.entry.shard, part_shards_count);
    if (!entry.entry.slices_count)
        entry.entry.shard =
            shard_number(merge, prefix, part, entry.entry.shard, part_shards_count);
    merge->entries = alloc_grow(merge->entries, merge->entries_count, &merge->entries_capacity,
                                sizeof(*merge->entries));
    merge->entries[merge->entries_count++] = entry;
    return true;
}

static bool part_take(struct merge *merge, const char *prefix, int part, struct error *err)
{
    char *path = alloc_printf("%s.index", prefix);
    struct str bytes = {0};
    struct table *table = NULL;
    int shards_count = 0;
    bool ok = file_read(path, LIMIT_CHECKPOINT_INDEX_BYTES, &bytes, err);
    if (ok)
        ok = (table = table_open(bytes.data, bytes.size, err)) != NULL;
    for (int block = 0; ok && block < table_blocks_count(table); block++) {
        const struct table_entry *entries;
        int count = 0;
        ok = table_block_entries(table, block, &entries, &count, err);
        for (int i = 0; ok && i < count; i++) {
            if (entries[i].key_size)
                ok = entry_take(merge, &entries[i], prefix, part, shards_count, err);
            else
                ok = bundle_entry_parse_header(entries[i].value, entries[i].value_size,
                                               &shards_count, err);
        }
    }
    merge->shards_total += shards_count;
    if (!ok && err->code == NOT_FOUND)
        err->code = INVALID; /* what is to be merged must be there */
    if (!ok)
        error_prefix(err, "cannot merge %s: ", path);
    table_close(table);
    str_release(&bytes);
    free(path);
    return ok;
}

static int compare_entries(const void *a, const void *b)
{
    const struct merge_entry *left = a, *right = b;
    size_t shorter = left->key_size < right->key_size ? left->key_size : right->key_size;
    int order = memcmp(left->key, right->key, shorter);
    if (order)
        return order;
    if (left->key_size != right->key_size)
        return left->key_size < right->key_size ? -1 : 1;
    return left->order - right->order;
}

static bool same_key(const struct merge_entry *a, const struct merge_entry *b)
{
    return a->key_size == b->key_size && !memcmp(a->key, b->key, a->key_size);
}

/* Sorts the entries and joins those of tensors in slices. */
static bool entries_join(struct merge *merge, struct error *err)
{
    if (merge->entries_count)
        qsort(merge->entries, (size_t)merge->entries_count, sizeof(*merge->entries),
              compare_entries);
    int kept = 0;
    for (int i = 0; i < merge->entries_count; i++) {
        struct merge_entry *entry = &merge->entries[i];
        struct merge_entry *last = kept ? &merge->entries[kept - 1] : NULL;
        if (!last || !same_key(last, entry)) {
            merge->entries[kept++] = *entry;
            continue;
        }
        struct bundle_entry *into = &last->entry, *from = &entry->entry;
        if (into->slices_count && !from->slices_count)
            return fail(
                err, INTERNAL,
                "Duplicate tensor keyed by %s; attempting to merge in a non-slice bundle "
                "entry",
                entry->key);
        if (!into->slices_count || into->dtype != from->dtype ||
            !shape_equal(&into->shape, &from->shape))
            return fail(err, INVALID, "cannot merge: two parts hold tensor '%s'", entry->key);
        int count = into->slices_count + from->slices_count;
        struct bundle_slice *slices = arena_array(merge->arena, (size_t)count, sizeof(*slices));
        memcpy(slices, into->slices, sizeof(*slices) * (size_t)into->slices_count);
        memcpy(slices + into->slices_count, from->slices,
               sizeof(*slices) * (size_t)from->slices_count);
        into->slices = slices;
        into->slices_count = count;
    }
    merge->entries_count = kept;
    return true;
}

static bool index_write(const struct merge *merge, const char *prefix, struct error *err)
{
    struct table_writer table;
    struct str value = {0};
    table_writer_init(&table);
    bundle_entry_add_header(&value, merge->shards_total);
    table_writer_add(&table, "", 0, value.data, value.size);
    for (int i = 0; i < merge->entries_count; i++) {
        str_clear(&value);
        bundle_entry_add(&value, &merge->entries[i].entry);
        table_writer_add(&table, merge->entries[i].key, merge->entries[i].key_size, value.data,
                         value.size);
    }
    table_writer_finish(&table);
    char *path = alloc_printf("%s.index", prefix);
    bool ok = file_write(path, table.out.data, table.out.size, err);
    free(path);
    str_release(&value);
    table_writer_release(&table);
    return ok;
}

static bool shards_rename(const struct merge *merge, const char *prefix, struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < merge->shards_count; i++) {
        char *to = bundle_entry_shard_path(prefix, i, merge->shards_total);
        ok = file_rename(merge->shards[i].path, to, err);
        free(to);
    }
    return ok;
}

/* What is left of the parts; a folder that is not empty stays. */
static void parts_remove(const char *const *prefixes, int count, bool delete_old_folders)
{
    for (int i = 0; i < count; i++) {
        char *path = alloc_printf("%s.index", prefixes[i]);
        unlink(path);
        free(path);
    }
    for (int i = 0; delete_old_folders && i < count; i++) {
        char *folder = file_folder(prefixes[i]);
        rmdir(folder);
        free(folder);
    }
}

bool bundle_merge(const char *const *prefixes, int prefixes_count, const char *prefix,
                  bool delete_old_folders, struct error *err)
{
    struct merge merge = {.arena = arena_new()};
    bool ok = true;
    for (int i = 0; ok && i < prefixes_count; i++)
        ok = part_take(&merge, prefixes[i], i, err);
    ok = ok && entries_join(&merge, err) && shards_rename(&merge, prefix, err) &&
         index_write(&merge, prefix, err);
    if (ok)
        parts_remove(prefixes, prefixes_count, delete_old_folders);
    for (int i = 0; i < merge.shards_count; i++)
        free(merge.shards[i].path);
    free(merge.shards);
    free(merge.entries);
    arena_free(merge.arena);
    return ok;
}
