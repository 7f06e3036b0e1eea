/* account_test.c - where the time of steps over several tasks went, as it is told. */

#include "runtime/cluster/account.h"

#include "base/str.h"
#include "runtime/waits.h"
#include "tests/unit/test.h"

static void add(struct account *account, const char *task, uint64_t total_us, const char *from,
                uint64_t wait_us, int64_t bytes)
{
    struct waits waits = {.total_ns = total_us * 1000, .send_ns = 7000};
    struct waits_row *row = waits_of(&waits, from);
    row->wait_ns = wait_us * 1000;
    row->receive_ns = wait_us * 100;
    row->bytes = bytes;
    row->tensors = 1;
    account_part(account, task, &waits, total_us * 1000);
    waits_release(&waits);
}

TEST(account_tells_means_and_begins_anew)
{
    static const char ps[] = "/job:ps/replica:0/task:0",
                      worker[] = "/job:worker/replica:0/task:1";
    struct account *account = account_new();
    struct str json = {0};
    add(account, ps, 500, worker, 300, 64);
    add(account, ps, 700, worker, 500, 64);
    add(account, worker, 900, "/job:ps/replica:0/task:0/device:CPU:0", 100, 0);
    add(account, worker, 1100, worker, 40, 8); /* of itself: waited, but not shown from whom */
    account_take(account, 2, &json);
    CHECK_TEXT(str_text(&json), "[{\"task\": \"ps:0\", \"us\": 600.0, \"wait_us\": 400.0, "
                                "\"receive_us\": 40.0, \"send_us\": 7.0, \"from\": "
                                "[{\"task\": \"worker:1\", \"wait_us\": 400.0, \"receive_us\": "
                                "40.0, \"bytes\": 64, \"tensors\": 1.0}]},\n"
                                " {\"task\": \"worker:1\", \"us\": 1000.0, \"wait_us\": 70.0, "
                                "\"receive_us\": 7.0, \"send_us\": 7.0, \"from\": "
                                "[{\"task\": \"ps:0\", \"wait_us\": 50.0, \"receive_us\": 5.0, "
                                "\"bytes\": 0, \"tensors\": 0.5}]}]");
    str_clear(&json);
    account_take(account, 0, &json);
    CHECK_TEXT(str_text(&json), "[]");
    str_release(&json);
    account_free(account);
}

TEST(waits_are_told_by_task)
{
    struct waits waits = {0};
    char text[200];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    waits_of(&waits, "/job:ps/replica:0/task:1/device:CPU:0")->bytes += 1;
    waits_of(&waits, "/job:ps/replica:0/task:10/device:CPU:0")->bytes += 10;
    waits_of(&waits, "/job:ps/replica:0/task:1")->bytes += 2;
    waits_of(&waits, "")->bytes += 4;
    waits_of(&waits, text)->bytes += 8;
    waits_of(&waits, text)->bytes += 8;
    CHECK_INT(waits.rows_count, 4);
    CHECK_INT(waits.rows[0].bytes, 3);
    CHECK_INT(waits.rows[1].bytes, 10);
    CHECK_INT(waits.rows[2].bytes, 4);
    CHECK_INT(waits.rows[3].bytes, 16);
    CHECK_INT(strlen(waits.rows[3].task), WAITS_TASK_BYTES - 1);
    waits_release(&waits);
}
