/* clock.c - the two clocks, and a way for tests to hold them. */

#include <time.h>

#include "base/clock.h"

static uint64_t clock_frozen_us;

static uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    uint64_t frozen = __atomic_load_n(&clock_frozen_us, __ATOMIC_RELAXED);
    return frozen ? frozen * 1000 : clock_ns(CLOCK_BOOTTIME);
}

uint64_t clock_monotonic_us(void)
{
    return clock_monotonic_ns() / 1000;
}

uint64_t clock_wall_us(void)
{
    uint64_t frozen = __atomic_load_n(&clock_frozen_us, __ATOMIC_RELAXED);
    return frozen ? frozen : clock_ns(CLOCK_REALTIME) / 1000;
}

void clock_freeze(uint64_t now_us)
{
    __atomic_store_n(&clock_frozen_us, now_us, __ATOMIC_RELAXED);
}

const char *clock_rfc3339(uint64_t wall_us, char *out, size_t out_size)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    size_t used = strftime(out, out_size, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, out_size - used, ".%03uZ", (unsigned)(wall_us / 1000 % 1000));
    return out;
}
