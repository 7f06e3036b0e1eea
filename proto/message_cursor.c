/* message_cursor.c - a protobuf message from outside, read where it lies. */

#include "proto/message_cursor.h"

#include "base/str.h"

struct message_cursor message_cursor_of(const void *bytes, size_t size)
{
    const uint8_t *start = size ? bytes : (const uint8_t *)"";
    return (struct message_cursor){start, start + size};
}

bool message_cursor_varint(struct message_cursor *cursor, uint64_t *value)
{
    uint8_t byte = 0x80;
    *value = 0;
    for (int shift = 0; byte & 0x80 && shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        byte = *cursor->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return !(byte & 0x80);
}

static bool take(struct message_cursor *cursor, uint64_t size, struct message_cursor *taken)
{
    if (size > (size_t)(cursor->end - cursor->at))
        return false;
    *taken = (struct message_cursor){cursor->at, cursor->at + size};
    cursor->at += size;
    return true;
}

bool message_cursor_enter(struct message_cursor *cursor, struct message_cursor *field)
{
    uint64_t size;
    return message_cursor_varint(cursor, &size) && take(cursor, size, field);
}

bool message_cursor_skip(struct message_cursor *cursor, uint64_t tag)
{
    struct message_cursor skipped;
    uint64_t value;
    switch (tag & 7) {
    case 0:
        return message_cursor_varint(cursor, &value);
    case 1:
        return take(cursor, 8, &skipped);
    case 2:
        return message_cursor_enter(cursor, &skipped);
    case 5:
        return take(cursor, 4, &skipped);
    default:
        return false;
    }
}

/* --- writing --- */

void message_add_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        str_add_char(out, (char)(value | 0x80));
    str_add_char(out, (char)value);
}

size_t message_varint_bytes(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}
