/*
 * base.h - what every file sees: the standard headers, a few words, and what is banned.
 *
 * base/ includes nobody.  It is a closed list: error, limits, arena, alloc, str, map, mailbox,
 * log, clock, failpoint.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define BIT(index) (UINT64_C(1) << (index))

/* The caller must look at the result. */
#define CHECKED __attribute__((warn_unused_result))
/* Argument `text` (1-based) and those from `first` on are printf's. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* O(n) checks, in debug builds only; plain assert() stays on everywhere. */
#ifdef DEBUG
#define assert_slow(condition) assert(condition)
#else
#define assert_slow(condition) ((void)0)
#endif

/* Functions that cannot be used safely: the compiler refuses them. */
#pragma GCC poison strcpy strncpy strcat strncat sprintf vsprintf strtok atoi atol atof rand   \
    srand gets
