/*
 * prompt.h - asks for what must not be seen: it is no argument, and a terminal does not show
 * it.
 */
#pragma once

#include "base/base.h"

/*
 * Standard input to its end, or one line of a terminal, after `label`, without the newline at
 * the end: into `value`, at most `size_max` bytes and one more, which says that it is too long;
 * a NUL follows.  Returns the size.
 */
size_t prompt_read(const char *label, char *value, size_t size_max);
