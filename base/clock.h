/*
 * clock.h - time, in whole microseconds.
 *
 * Leases, timeouts and retries use the monotonic clock; the wall clock is for display and for
 * expiry dates.  Tests may turn both.
 */
#pragma once

#include "base/base.h"

uint64_t clock_monotonic_us(void);
uint64_t clock_monotonic_ns(void);
uint64_t clock_wall_us(void); /* since 1970, UTC */

/* Tests: both clocks stand still at `now_us`; 0 lets them run again. */
void clock_freeze(uint64_t now_us);

/* Writes "2026-11-21T12:00:00.123Z" (25 bytes with the NUL) and returns `out`. */
const char *clock_rfc3339(uint64_t wall_us, char *out, size_t out_size);
