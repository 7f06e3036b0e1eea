/* rate.c - buckets, each kept as the one moment at which it will be full again. */

#include <pthread.h>

#include "base/alloc.h"
#include "server/rate.h"

#define RATE_BUCKETS 4096
#define RATE_SECOND_NS UINT64_C(1000000000)

struct rate {
    uint64_t interval_ns;           /* that one request costs; 0: no limit */
    pthread_mutex_t lock;           /* guards: full_ns */
    uint64_t full_ns[RATE_BUCKETS]; /* when the bucket is full; one second ahead: empty */
};

struct rate *rate_new(int64_t per_second)
{
    assert(per_second >= 0);
    struct rate *rate = alloc_bytes(sizeof(*rate));
    rate->interval_ns = per_second ? RATE_SECOND_NS / (uint64_t)per_second : 0;
    pthread_mutex_init(&rate->lock, NULL);
    return rate;
}

void rate_free(struct rate *rate)
{
    if (!rate)
        return;
    pthread_mutex_destroy(&rate->lock);
    free(rate);
}

bool rate_take(struct rate *rate, int64_t key, uint64_t now_us)
{
    uint64_t now_ns = now_us * 1000;
    if (!rate->interval_ns)
        return true;
    uint64_t *full_ns = &rate->full_ns[(uint64_t)key % RATE_BUCKETS];
    pthread_mutex_lock(&rate->lock);
    if (*full_ns < now_ns)
        *full_ns = now_ns;
    bool room = *full_ns + rate->interval_ns <= now_ns + RATE_SECOND_NS;
    if (room)
        *full_ns += rate->interval_ns;
    pthread_mutex_unlock(&rate->lock);
    return room;
}
