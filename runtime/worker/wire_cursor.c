/* wire_cursor.c - a protobuf message that lies in several places, read where it is. */

#include "runtime/worker/wire_cursor.h"

#include "base/str.h"

struct wire_cursor wire_cursor_of(const struct rpc_span *spans, int count)
{
    struct wire_cursor cursor = {.spans = spans, .count = count};
    for (int i = 0; i < count; i++)
        cursor.end += spans[i].size;
    return cursor;
}

/* On to a span in which something is left. */
static void settle(struct wire_cursor *cursor)
{
    while (cursor->index < cursor->count &&
           cursor->offset == cursor->spans[cursor->index].size) {
        cursor->index++;
        cursor->offset = 0;
    }
}

bool wire_cursor_varint(struct wire_cursor *cursor, uint64_t *value)
{
    uint8_t byte = 0x80;
    *value = 0;
    for (int shift = 0; byte & 0x80 && shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        settle(cursor);
        byte = ((const uint8_t *)cursor->spans[cursor->index].data)[cursor->offset++];
        cursor->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return !(byte & 0x80);
}

bool wire_cursor_length(struct wire_cursor *cursor, size_t *length)
{
    uint64_t value;
    if (!wire_cursor_varint(cursor, &value) || value > cursor->end - cursor->at)
        return false;
    *length = (size_t)value;
    return true;
}

void wire_cursor_copy(struct wire_cursor *cursor, size_t size, void *to)
{
    char *at = to;
    assert(size <= cursor->end - cursor->at);
    while (size) {
        settle(cursor);
        const struct rpc_span *span = &cursor->spans[cursor->index];
        size_t here = span->size - cursor->offset;
        if (here > size)
            here = size;
        if (to) {
            memcpy(at, (const char *)span->data + cursor->offset, here);
            at += here;
        }
        size -= here;
        cursor->at += here;
        cursor->offset += here;
    }
}

bool wire_cursor_skip(struct wire_cursor *cursor, uint64_t tag)
{
    uint64_t value;
    size_t size;
    switch (tag & 7) {
    case 0:
        return wire_cursor_varint(cursor, &value);
    case 2:
        if (!wire_cursor_length(cursor, &size))
            return false;
        break;
    case 1:
    case 5:
        size = (tag & 7) == 1 ? 8 : 4;
        if (size > cursor->end - cursor->at)
            return false;
        break;
    default:
        return false;
    }
    wire_cursor_copy(cursor, size, NULL);
    return true;
}

/* --- writing --- */

void wire_add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

size_t wire_varint_bytes(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}
