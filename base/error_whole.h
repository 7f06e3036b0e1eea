/*
 * error_whole.h - texts of errors that are longer than struct error holds.
 *
 * An error is on its holder's stack and is copied as it is; what is cut off its text is kept
 * here, found by what is left of it.  The last ERROR_WHOLE_MAX of a process are: whoever wants
 * the whole of one (a client far away, who compares it) asks soon.
 */
#pragma once

#include "base/base.h"

struct error;
struct str;

#define ERROR_WHOLE_MAX 64
#define ERROR_WHOLE_BYTES (64 << 10) /* of one; the rest is cut off here too */

/* `whole` is the text of which `err` has a part; copies.  From any thread. */
void error_whole_keep(const struct error *err, const char *whole, size_t size);

/* Appends the whole text, or what `err` has when no more is known. */
void error_whole_add(const struct error *err, struct str *out);
