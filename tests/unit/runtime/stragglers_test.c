/* stragglers_test.c - who is told to be slower than the others, and when. */

#include "runtime/train/stragglers.h"

#include "base/str.h"
#include "runtime/waits.h"
#include "tests/unit/test.h"

static bool look(struct stragglers *all, double a, double b, double c, struct str *notice)
{
    const struct account_arrival arrivals[] = {
        {.task = "worker:0", .us = a, .max_us = a, .steps = 10},
        {.task = "worker:1", .us = b, .max_us = b, .steps = 10},
        {.task = "worker:2", .us = c, .max_us = 2 * c, .steps = 10}};
    str_clear(notice);
    return stragglers_look(all, arrivals, 3, 40, notice);
}

TEST(straggler_is_told_once_and_when_it_has_caught_up)
{
    struct stragglers all = {0};
    struct str notice = {0};
    CHECK(!look(&all, 2000, 2100, 1900, &notice));
    CHECK(!look(&all, 2000, 2100, 5000, &notice)); /* one window may be chance */
    CHECK(look(&all, 2000, 2000, 5000, &notice));
    CHECK_TEXT(str_text(&notice),
               "worker:2 is a straggler: its share of a step takes 5.0 ms (at most 10.0), the "
               "others' 2.0 ms, 2.5 times as long (mean of 10 steps, up to step 40)");
    CHECK(!look(&all, 2000, 2000, 5000, &notice));
    CHECK(look(&all, 2000, 2000, 2100, &notice));
    CHECK_TEXT(str_text(&notice),
               "worker:2 has caught up: its share of a step takes 2.1 ms, the others' 2.0");
    CHECK(!look(&all, 2000, 2000, 2100, &notice));
    str_release(&notice);
}

TEST(straggler_of_short_steps_is_none)
{
    struct stragglers all = {0};
    struct str notice = {0};
    for (int i = 0; i < 5; i++)
        CHECK(!look(&all, 100, 100, 400, &notice));
    str_release(&notice);
}

/* What a worker waits for another is not its own; what it waits for a server is. */
TEST(arrival_is_a_workers_own_time)
{
    struct account *account = account_new();
    struct account_arrival arrivals[4];
    for (int i = 1; i <= 2; i++) {
        struct waits waits = {.total_ns = 900000};
        waits_of(&waits, "/job:worker/replica:0/task:0")->wait_ns = 300000;
        waits_of(&waits, "/job:ps/replica:0/task:0")->wait_ns = 100000;
        account_part(account, "/job:worker/replica:0/task:1", &waits, (uint64_t)i * 1000000);
        account_part(account, "/job:ps/replica:0/task:0", &waits, 1000000);
        account_step(account);
        waits_release(&waits);
    }
    CHECK_INT(account_arrivals(account, arrivals, 4), 1);
    CHECK_TEXT(arrivals[0].task, "worker:1");
    CHECK(arrivals[0].us == 1200 && arrivals[0].max_us == 1700);
    CHECK_INT(arrivals[0].steps, 2);
    CHECK_INT(arrivals[0].recent_count, 2);
    CHECK(arrivals[0].recent_us[0] == 700 && arrivals[0].recent_us[1] == 1700);
    account_free(account);
}

/* The last steps one by one, the oldest first, and which a worker had no part in. */
TEST(arrivals_of_the_last_steps_are_told)
{
    struct account *account = account_new();
    struct account_arrival arrivals[4];
    struct waits waits = {.total_ns = 1000};
    for (int i = 0; i < 100; i++) {
        if (i != 90)
            account_part(account, "/job:worker/replica:0/task:0", &waits, (uint64_t)i * 1000);
        account_step(account);
    }
    CHECK_INT(account_arrivals(account, arrivals, 4), 1);
    CHECK_INT(arrivals[0].recent_count, ACCOUNT_RECENT - 1);
    for (int i = 0; i < ACCOUNT_RECENT - 1; i++) {
        int step = 100 - ACCOUNT_RECENT + 1 + i;
        CHECK(arrivals[0].recent_us[i] == (step == 90 ? -1 : (float)step));
    }
    account_free(account);
}
