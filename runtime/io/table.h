/*
 * table.h - sorted tables from key to value, in LevelDB's format: the index of a checkpoint.
 *
 * Blocks of about 256 KiB hold entries with prefix-compressed keys; an index block tells the
 * last key of each; a footer finds the index.  Each block has a checksum.  We write what
 * TensorFlow writes, byte for byte.
 */
#pragma once

#include "base/str.h"

struct arena;
struct error;

/* --- writing --- */

struct table_block {
    struct str bytes;
    uint32_t *restarts;
    int restarts_count;
    int restarts_capacity;
    int interval; /* entries between restarts */
    int since_restart;
    struct str last_key;
};

struct table_writer {
    struct str out;
    struct table_block data;
    struct table_block index;
    bool index_pending; /* the last block awaits the next key to be named after */
    uint64_t pending_offset;
    uint64_t pending_size;
    struct str last_key;
};

void table_writer_init(struct table_writer *writer);
void table_writer_release(struct table_writer *writer);

/* Adds an entry; each key is greater than the one before (asserted). */
void table_writer_add(struct table_writer *writer, const void *key, size_t key_size,
                      const void *value, size_t value_size);

/* Ends the table; its bytes are then in writer->out. */
void table_writer_finish(struct table_writer *writer);

/* --- reading --- */

struct table_entry {
    const char *key; /* a NUL follows */
    size_t key_size;
    const char *value; /* borrowed from the table's bytes */
    size_t value_size;
};

struct table;

/*
 * A table over `bytes` (borrowed for its life); owned by the caller.  Checks footer, index and
 * the first block.  Fails with DATA_LOSS.
 */
struct table *table_open(const void *bytes, size_t size, struct error *err) CHECKED;
void table_close(struct table *table); /* NULL is fine */

/*
 * The entry of that key, `*entry` NULL if there is none.  Reads at most one more block, and
 * fails with DATA_LOSS when that one is damaged.  Borrowed from the table.
 */
bool table_find(struct table *table, const void *key, size_t key_size,
                const struct table_entry **entry, struct error *err) CHECKED;

/* All entries of block `index`, in order of their keys; borrowed from the table. */
int table_blocks_count(const struct table *table);
bool table_block_entries(struct table *table, int index, const struct table_entry **entries,
                         int *entries_count, struct error *err) CHECKED;
