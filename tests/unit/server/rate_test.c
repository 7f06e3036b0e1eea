/* rate_test.c - buckets of requests: one second's worth at once, then as fast as they fill. */

#include "server/rate.h"
#include "tests/unit/test.h"

static int take_all(struct rate *rate, int64_t key, uint64_t now_us)
{
    int taken = 0;
    while (taken < 1000 && rate_take(rate, key, now_us))
        taken++;
    return taken;
}

TEST(a_bucket_holds_one_second_and_fills_up)
{
    struct rate *rate = rate_new(20);
    uint64_t now_us = 5000000;
    CHECK_INT(take_all(rate, 7, now_us), 20);
    CHECK_INT(take_all(rate, 7, now_us), 0);
    CHECK_INT(take_all(rate, 7, now_us + 49999), 0);
    CHECK_INT(take_all(rate, 7, now_us + 50000), 1);
    CHECK_INT(take_all(rate, 7, now_us + 200000), 3);
    CHECK_INT(take_all(rate, 7, now_us + 60000000), 20); /* never more */
    rate_free(rate);
}

TEST(each_has_his_own_bucket)
{
    struct rate *rate = rate_new(3);
    CHECK_INT(take_all(rate, 1, 1000000), 3);
    CHECK_INT(take_all(rate, 2, 1000000), 3);
    CHECK_INT(take_all(rate, 1, 1000000), 0);
    rate_free(rate);
}

TEST(no_limit_is_none)
{
    struct rate *rate = rate_new(0);
    CHECK_INT(take_all(rate, 1, 1000000), 1000);
    rate_free(rate);
}
