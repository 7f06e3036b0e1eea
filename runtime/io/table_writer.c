/* table_writer.c - writes sorted tables. */

#include "base/alloc.h"
#include "proto/crc32c.h"
#include "runtime/io/internal.h"
#include "runtime/io/table.h"

static int compare(const struct str *a, const void *key, size_t key_size)
{
    size_t shorter = a->size < key_size ? a->size : key_size;
    int order = shorter ? memcmp(a->data, key, shorter) : 0;
    if (order)
        return order;
    return a->size < key_size ? -1 : a->size > key_size;
}

/* --- one block --- */

static void block_restart(struct table_block *block)
{
    block->restarts = alloc_grow(block->restarts, block->restarts_count,
                                 &block->restarts_capacity, sizeof(*block->restarts));
    block->restarts[block->restarts_count++] = (uint32_t)block->bytes.size;
    block->since_restart = 0;
}

static void block_clear(struct table_block *block)
{
    str_clear(&block->bytes);
    str_clear(&block->last_key);
    block->restarts_count = 0;
    block_restart(block);
}

static void block_add(struct table_block *block, const void *key, size_t key_size,
                      const void *value, size_t value_size)
{
    const char *text = key;
    size_t shared = 0;
    if (block->since_restart < block->interval) {
        while (shared < block->last_key.size && shared < key_size &&
               block->last_key.data[shared] == text[shared])
            shared++;
    } else {
        block_restart(block);
    }
    table_add_varint(&block->bytes, shared);
    table_add_varint(&block->bytes, key_size - shared);
    table_add_varint(&block->bytes, value_size);
    str_add_bytes(&block->bytes, text + shared, key_size - shared);
    str_add_bytes(&block->bytes, value, value_size);
    str_clear(&block->last_key);
    str_add_bytes(&block->last_key, key, key_size);
    block->since_restart++;
}

static size_t block_size(const struct table_block *block)
{
    return block->bytes.size + 4 * (size_t)block->restarts_count + 4;
}

/* Appends the block with its trailer to `out` and empties it. */
static void block_write(struct table_block *block, struct str *out, uint64_t *offset,
                        uint64_t *size)
{
    *offset = out->size;
    *size = block_size(block);
    uint32_t count = (uint32_t)block->restarts_count;
    str_add_bytes(out, block->bytes.data, block->bytes.size);
    str_add_bytes(out, block->restarts, 4 * (size_t)count);
    str_add_bytes(out, &count, 4);
    str_add_char(out, 0); /* not compressed */
    uint32_t crc = crc32c_mask(crc32c(out->data + *offset, *size + 1));
    str_add_bytes(out, &crc, 4);
    block_clear(block);
}

/* --- the table --- */

void table_writer_init(struct table_writer *writer)
{
    *writer = (struct table_writer){.data.interval = 16, .index.interval = 1};
    block_clear(&writer->data);
    block_clear(&writer->index);
}

void table_writer_release(struct table_writer *writer)
{
    str_release(&writer->out);
    str_release(&writer->last_key);
    str_release(&writer->data.bytes);
    str_release(&writer->data.last_key);
    free(writer->data.restarts);
    str_release(&writer->index.bytes);
    str_release(&writer->index.last_key);
    free(writer->index.restarts);
}

/* Makes `last` the shortest key that is >= itself and < `next`. */
static void separator_shorten(struct str *last, const unsigned char *next, size_t next_size)
{
    unsigned char *bytes = (unsigned char *)last->data;
    size_t shorter = last->size < next_size ? last->size : next_size;
    size_t same = 0;
    while (same < shorter && bytes[same] == next[same])
        same++;
    if (same < shorter && bytes[same] < 0xff && bytes[same] + 1 < next[same]) {
        bytes[same]++;
        last->size = same + 1;
    }
}

/* Makes `last` a short key that is >= itself. */
static void successor_shorten(struct str *last)
{
    unsigned char *bytes = (unsigned char *)last->data;
    for (size_t i = 0; i < last->size; i++) {
        if (bytes[i] != 0xff) {
            bytes[i]++;
            last->size = i + 1;
            return;
        }
    }
}

static void pending_write(struct table_writer *writer)
{
    struct str handle = {0};
    table_add_varint(&handle, writer->pending_offset);
    table_add_varint(&handle, writer->pending_size);
    block_add(&writer->index, writer->last_key.data, writer->last_key.size, handle.data,
              handle.size);
    str_release(&handle);
    writer->index_pending = false;
}

static void data_flush(struct table_writer *writer)
{
    if (!writer->data.bytes.size)
        return;
    block_write(&writer->data, &writer->out, &writer->pending_offset, &writer->pending_size);
    writer->index_pending = true;
}

void table_writer_add(struct table_writer *writer, const void *key, size_t key_size,
                      const void *value, size_t value_size)
{
    bool first = !writer->out.size && !writer->data.bytes.size;
    assert(first || compare(&writer->last_key, key, key_size) < 0);
    if (key_size + value_size >= 2 * TABLE_BLOCK_BYTES)
        data_flush(writer);
    if (writer->index_pending) {
        separator_shorten(&writer->last_key, key, key_size);
        pending_write(writer);
    }
    str_clear(&writer->last_key);
    str_add_bytes(&writer->last_key, key, key_size);
    block_add(&writer->data, key, key_size, value, value_size);
    if (block_size(&writer->data) >= TABLE_BLOCK_BYTES)
        data_flush(writer);
}

void table_writer_finish(struct table_writer *writer)
{
    data_flush(writer);
    struct table_block meta = {.interval = 16};
    block_clear(&meta);
    uint64_t meta_offset, meta_size, index_offset, index_size;
    block_write(&meta, &writer->out, &meta_offset, &meta_size);
    free(meta.restarts);

    if (writer->index_pending) {
        successor_shorten(&writer->last_key);
        pending_write(writer);
    }
    block_write(&writer->index, &writer->out, &index_offset, &index_size);

    size_t footer = writer->out.size;
    table_add_varint(&writer->out, meta_offset);
    table_add_varint(&writer->out, meta_size);
    table_add_varint(&writer->out, index_offset);
    table_add_varint(&writer->out, index_size);
    while (writer->out.size - footer < TABLE_FOOTER_BYTES - 8)
        str_add_char(&writer->out, 0);
    uint64_t magic = TABLE_MAGIC;
    str_add_bytes(&writer->out, &magic, 8);
}
