/* cursor_test.c - what of a file is sent next. */

#include "base/limits.h"
#include "scheduler/agent/cursor.h"
#include "tests/unit/test.h"

TEST(cursor_goes_on_where_the_server_is)
{
    struct cursor cursor;
    cursor_init(&cursor, true);
    CHECK_INT(cursor_next(&cursor, 100), 100);
    CHECK_INT(cursor_advance(&cursor, 60, 100, 100), CURSOR_OK);
    CHECK_INT(cursor_next(&cursor, 100), 40);
    /* It keeps the start of a record; nothing is sent before the file has grown. */
    CHECK_INT(cursor_advance(&cursor, 60, 100, 40), CURSOR_OK);
    CHECK_INT(cursor_next(&cursor, 100), 0);
    CHECK_INT(cursor_next(&cursor, 130), 70);
    CHECK_INT(cursor_advance(&cursor, 130, 130, 70), CURSOR_OK);
    CHECK_INT(cursor_next(&cursor, 130), 0);
}

TEST(cursor_says_a_lost_start_again)
{
    struct cursor cursor;
    cursor_init(&cursor, true);
    CHECK_INT(cursor_advance(&cursor, 90, 100, 90), CURSOR_OK);
    CHECK_INT(cursor_advance(&cursor, 50, 100, 10), CURSOR_LOST);
    CHECK_INT(cursor.at, 50);
    CHECK_INT(cursor_next(&cursor, 100), 50);
}

TEST(cursor_takes_no_answer_that_cannot_be)
{
    struct cursor cursor;
    cursor_init(&cursor, true);
    CHECK_INT(cursor_advance(&cursor, 101, 100, 100), CURSOR_BEYOND);
    CHECK_INT(cursor_advance(&cursor, -1, 100, 100), CURSOR_BEYOND);
    CHECK_INT(cursor.at, 0);
    cursor_init(&cursor, false);
    CHECK_INT(cursor.at, -1);
}

TEST(cursor_sends_more_until_a_record_fits)
{
    struct cursor cursor;
    const int64_t size = INT64_C(1) << 40;
    cursor_init(&cursor, true);
    size_t before = cursor_next(&cursor, size);
    CHECK_INT(before, LIMIT_SHIP_BYTES);
    enum cursor_result result;
    int rounds = 0;
    while ((result = cursor_advance(&cursor, 0, size, before)) == CURSOR_OK) {
        CHECK(cursor_next(&cursor, size) > before);
        CHECK(cursor_next(&cursor, size) < LIMIT_CONTROL_MESSAGE_BYTES);
        before = cursor_next(&cursor, size);
        CHECK(++rounds < 30);
    }
    CHECK_INT(result, CURSOR_STUCK);
}
