/*
 * error.h - how a function says what went wrong.
 *
 * A function that can fail returns bool (or a pointer) and takes `struct error *err` last:
 * never NULL, on the caller's stack, nothing to free.  Codes are gRPC's and TensorFlow's, with
 * equal numbers.  The text is read by the person at the web page: it names the field or node,
 * the value found and the limit.
 */
#pragma once

#include <stdarg.h>

#include "base/base.h"

/* name, number, TensorFlow's spelling */
#define ERROR_CODES(X)                                                                         \
    X(OK, 0, "OK")                                                                             \
    X(CANCELLED, 1, "CANCELLED")                                                               \
    X(UNKNOWN, 2, "UNKNOWN")                                                                   \
    X(INVALID, 3, "INVALID_ARGUMENT")                                                          \
    X(DEADLINE, 4, "DEADLINE_EXCEEDED")                                                        \
    X(NOT_FOUND, 5, "NOT_FOUND")                                                               \
    X(EXISTS, 6, "ALREADY_EXISTS")                                                             \
    X(DENIED, 7, "PERMISSION_DENIED")                                                          \
    X(EXHAUSTED, 8, "RESOURCE_EXHAUSTED")                                                      \
    X(PRECONDITION, 9, "FAILED_PRECONDITION")                                                  \
    X(ABORTED, 10, "ABORTED")                                                                  \
    X(OUT_OF_RANGE, 11, "OUT_OF_RANGE")                                                        \
    X(UNIMPLEMENTED, 12, "UNIMPLEMENTED")                                                      \
    X(INTERNAL, 13, "INTERNAL")                                                                \
    X(UNAVAILABLE, 14, "UNAVAILABLE")                                                          \
    X(DATA_LOSS, 15, "DATA_LOSS")                                                              \
    X(UNAUTHENTICATED, 16, "UNAUTHENTICATED")

enum error_code {
#define ERROR_CODE_ENUM(name, number, text) name = number,
    ERROR_CODES(ERROR_CODE_ENUM)
#undef ERROR_CODE_ENUM
};

struct error {
    enum error_code code;
    char text[1000];   /* UTF-8, cut at the end if too long (the whole: error_whole.h) */
    char pointer[200]; /* JSON pointer of the field at fault, "" when there is none */
};

/* Sets `err` and returns false, so that `return fail(err, ...)` is the whole exit. */
bool fail(struct error *err, enum error_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* The same for functions that return a pointer. */
void *fail_null(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As fail(), and names the JSON field at fault ("/train/steps"). */
bool error_at(struct error *err, const char *pointer, enum error_code code, const char *format,
              ...) PRINTF_LIKE(4, 5);

/* As fail(), appending ": " and the text of errno. */
bool error_errno(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts text in front of what `err` says already ("node 'x': ...").  Returns false. */
bool error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number that is no code. */
const char *error_code_name(enum error_code code);
