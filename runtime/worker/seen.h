/*
 * seen.h - the numbers of requests that came before, so that one that a transport repeats is
 * not done twice.  Not for several threads at a time.
 */
#pragma once

#include "base/base.h"

struct seen;

struct seen *seen_new(int count);
void seen_free(struct seen *seen);

/* Whether it is new among the last `count`; remembers it.  0 always is. */
bool seen_first(struct seen *seen, uint64_t number);
