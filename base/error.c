/* error.c - fills struct error; formatting only, no allocation. */

#include <errno.h>

#include "base/error.h"

static void error_set(struct error *err, const char *pointer, enum error_code code,
                      const char *format, va_list args)
{
    assert(err);
    assert(code != OK);
    err->code = code;
    snprintf(err->pointer, sizeof(err->pointer), "%s", pointer);
    vsnprintf(err->text, sizeof(err->text), format, args);
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
    char rest[sizeof(err->text)];
    memcpy(rest, err->text, sizeof(rest));

    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, "%s", rest);
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
