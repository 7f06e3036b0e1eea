/* str.c - growable bytes. */

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"

void str_init(struct str *str)
{
    *str = (struct str){0};
}

void str_release(struct str *str)
{
    free(str->data);
    *str = (struct str){0};
}

void str_clear(struct str *str)
{
    str->size = 0;
    if (str->data)
        str->data[0] = 0;
}

const char *str_text(const struct str *str)
{
    return str->data ? str->data : "";
}

char *str_extend(struct str *str, size_t size)
{
    assert(size < SIZE_MAX / 4);
    size_t wanted = str->size + size + 1;
    if (wanted > str->capacity) {
        size_t capacity = str->capacity ? str->capacity : 64;
        while (capacity < wanted)
            capacity *= 2;
        str->data = alloc_resize(str->data, capacity);
        str->capacity = capacity;
    }
    char *start = str->data + str->size;
    str->size += size;
    str->data[str->size] = 0;
    return start;
}

void str_add_bytes(struct str *str, const void *bytes, size_t size)
{
    char *room = str_extend(str, size);
    if (size)
        memcpy(room, bytes, size);
}

void str_add(struct str *str, const char *text)
{
    str_add_bytes(str, text, strlen(text));
}

void str_add_char(struct str *str, char c)
{
    str_add_bytes(str, &c, 1);
}

void str_printf(struct str *str, const char *format, ...)
{
    size_t room = str->capacity - str->size; /* 0: none was taken yet */
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(room ? str->data + str->size : NULL, room, format, args);
    va_end(args);
    assert(size >= 0);
    char *text = str_extend(str, (size_t)size);
    if ((size_t)size >= room)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
}

void str_drop(struct str *str, size_t size)
{
    assert(size <= str->size);
    if (!size)
        return;
    memmove(str->data, str->data + size, str->size - size);
    str->size -= size;
    str->data[str->size] = 0;
}

char *str_take(struct str *str)
{
    char *data = str->data ? str->data : alloc_text("");
    *str = (struct str){0};
    return data;
}

/* Length of the valid UTF-8 sequence at `s`, 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t size)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

bool str_is_utf8(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length((const unsigned char *)bytes + i, size - i);
        if (!length)
            return false;
        i += length;
    }
    return true;
}

void str_make_utf8(char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length((const unsigned char *)text + i, size - i);
        if (!length)
            text[i] = '?';
        i += length ? length : 1;
    }
}

void str_add_json(struct str *str, const char *text, size_t size)
{
    str_add_char(str, '"');
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)text[i];
        size_t length = utf8_length((const unsigned char *)text + i, size - i);
        if (!length) {
            str_add(str, "\xef\xbf\xbd"); /* U+FFFD */
            i++;
        } else if (c == '"' || c == '\\') {
            str_add_char(str, '\\');
            str_add_char(str, (char)c);
            i++;
        } else if (c < 0x20 || c == 0x7f) {
            str_printf(str, "\\u%04x", c);
            i++;
        } else {
            str_add_bytes(str, text + i, length);
            i += length;
        }
    }
    str_add_char(str, '"');
}
