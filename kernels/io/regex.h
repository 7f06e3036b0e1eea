/*
 * regex.h - regular expressions in the syntax of RE2, matched in time linear in the text.
 *
 * A pattern is compiled to a program whose alternatives all run in step (Thompson, 1968; Pike),
 * so that no pattern and no text can make a match take for ever.  Among the leftmost matches
 * the one is taken that Perl would find first.  Text is UTF-8; a byte that is none matches
 * nothing, but for \C, which takes one byte.
 */
#pragma once

#include "base/base.h"

struct error;

/* A compiled pattern; immutable, so that any number of threads may use it. */
struct kernel_regex;

/* Bytes [from, to) of the text; from -1: the group took no part in the match. */
struct kernel_regex_span {
    int64_t from, to;
};

#define KERNEL_REGEX_GROUPS 10 /* whose places a match tells: \0 to \9 */

/* Fails with INVALID and what is wrong with the pattern. */
struct kernel_regex *kernel_regex_new(const char *pattern, size_t size,
                                      struct error *err) CHECKED;
void kernel_regex_free(struct kernel_regex *regex); /* NULL is fine */

/* Groups in parentheses. */
int kernel_regex_groups(const struct kernel_regex *regex);

/*
 * The leftmost match that begins at `start` or behind (`whole`: one that begins there and ends
 * with the text).  `spans` has one for the match and one for each group, `count` at most
 * KERNEL_REGEX_GROUPS; NULL with 0 when only the answer matters.
 */
bool kernel_regex_match(const struct kernel_regex *regex, const char *text, size_t size,
                        size_t start, bool whole, struct kernel_regex_span *spans, int count);
