/*
 * rate.h - how often one may ask.
 *
 * Everyone who is known by a number has a bucket that holds one second's worth of requests and
 * fills up again steadily.  Numbers share a fixed table: two that fall on one place share a
 * bucket, which is at worst too strict.
 */
#pragma once

#include "base/base.h"

struct rate;

/* `per_second` 0: no limit. */
struct rate *rate_new(int64_t per_second);
void rate_free(struct rate *rate); /* NULL is fine */

/* Takes one request out of the bucket of `key` at `now_us` (monotonic).  False: it is empty. */
bool rate_take(struct rate *rate, int64_t key, uint64_t now_us);
