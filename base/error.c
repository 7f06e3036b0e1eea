/*
 * error.c - fills struct error; nothing is allocated but for texts that are too long.
 *
 * Texts quote what users gave, whatever its bytes; but they go into JSON and messages whose
 * texts are UTF-8, where bad bytes would cost all of the answer.
 */

#include <errno.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/error_whole.h"
#include "base/str.h"

/* What was cut off can be had for a while (error_whole.h). */
static void keep_whole(const struct error *err, int size, const char *format, va_list args)
{
    size_t room = size < ERROR_WHOLE_BYTES ? (size_t)size + 1 : ERROR_WHOLE_BYTES;
    char *whole = alloc_bytes(room);
    vsnprintf(whole, room, format, args);
    error_whole_keep(err, whole, strlen(whole));
    free(whole);
}

static void error_set(struct error *err, const char *pointer, enum error_code code,
                      const char *format, va_list args)
{
    assert(err);
    assert(code != OK);
    err->code = code;
    snprintf(err->pointer, sizeof(err->pointer), "%s", pointer);
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(err->text, sizeof(err->text), format, args);
    str_make_utf8(err->text);
    str_make_utf8(err->pointer);
    if (size >= (int)sizeof(err->text))
        keep_whole(err, size, format, again);
    va_end(again);
}

bool fail(struct error *err, enum error_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set(err, "", code, format, args);
    va_end(args);
    return false;
}

void *fail_null(struct error *err, enum error_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set(err, "", code, format, args);
    va_end(args);
    return NULL;
}

bool error_at(struct error *err, const char *pointer, enum error_code code, const char *format,
              ...)
{
    va_list args;
    va_start(args, format);
    error_set(err, pointer, code, format, args);
    va_end(args);
    return false;
}

bool error_errno(struct error *err, enum error_code code, const char *format, ...)
{
    int number = errno;
    va_list args;
    va_start(args, format);
    error_set(err, "", code, format, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", strerror(number));
    return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
    const struct error before = *err;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    str_make_utf8(err->text);
    size_t used = strlen(err->text), room = sizeof(err->text) - used;
    if (snprintf(err->text + used, room, "%s", before.text) < (int)room)
        return false;
    struct str whole = {0};
    str_add_bytes(&whole, err->text, used);
    error_whole_add(&before, &whole);
    str_make_utf8(err->text);
    error_whole_keep(err, str_text(&whole), whole.size);
    str_release(&whole);
    return false;
}

const char *error_code_name(enum error_code code)
{
    switch (code) {
#define ERROR_CODE_NAME(name, number, text)                                                    \
    case name:                                                                                 \
        return text;
        ERROR_CODES(ERROR_CODE_NAME)
#undef ERROR_CODE_NAME
    }
    return "UNKNOWN";
}
