/*
 * str.h - a string of bytes that grows.
 *
 * Embedded in its owner: str_init() (or {0}) and str_release().  `data` is always followed by a
 * NUL, so it can be used as text when it holds text.
 */
#pragma once

#include "base/base.h"

struct str {
    char *data; /* NULL while empty and never written */
    size_t size;
    size_t capacity;
};

void str_init(struct str *str);
void str_release(struct str *str);
void str_clear(struct str *str); /* empty, memory kept */

/* The bytes as text: "" when empty.  Borrowed, until the next change. */
const char *str_text(const struct str *str);

void str_add(struct str *str, const char *text);
void str_add_bytes(struct str *str, const void *bytes, size_t size);
void str_add_char(struct str *str, char c);
void str_printf(struct str *str, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds `size` bytes that the caller fills; borrowed until the next change. */
char *str_extend(struct str *str, size_t size);

/* Removes the first `size` bytes. */
void str_drop(struct str *str, size_t size);

/* Hands the bytes over: the caller owns them (free()), the str is empty again. */
char *str_take(struct str *str);

/* Adds `text` as a quoted JSON string, bad UTF-8 replaced. */
void str_add_json(struct str *str, const char *text, size_t size);

/* True when `bytes` is valid UTF-8 (no overlong forms, no surrogates). */
bool str_is_utf8(const char *bytes, size_t size);

/* Puts a question mark in the place of each byte of `text` that is not part of valid UTF-8. */
void str_make_utf8(char *text);
