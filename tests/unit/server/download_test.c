/* download_test.c - which part of a file a header asks for. */

#include "server/download.h"
#include "tests/unit/test.h"

static void check(const char *header, int64_t size, enum download_part wanted, int64_t first,
                  int64_t count)
{
    int64_t found_first = 0, found_count = 0;
    enum download_part part = download_range(header, size, &found_first, &found_count);
    if (part != wanted ||
        (part == DOWNLOAD_PART && (found_first != first || found_count != count)))
        CHECK_STOP("%s of %lld: %d, %lld from %lld on", header ? header : "nothing",
                   (long long)size, (int)part, (long long)found_count, (long long)found_first);
}

TEST(parts_are_cut_to_the_file)
{
    check("bytes=0-0", 10, DOWNLOAD_PART, 0, 1);
    check("bytes=2-5", 10, DOWNLOAD_PART, 2, 4);
    check("bytes=2-", 10, DOWNLOAD_PART, 2, 8);
    check("bytes=9-99", 10, DOWNLOAD_PART, 9, 1);
    check("bytes=-3", 10, DOWNLOAD_PART, 7, 3);
    check("bytes=-99", 10, DOWNLOAD_PART, 0, 10);
    check("bytes=0-9223372036854775807", 10, DOWNLOAD_PART, 0, 10);
}

TEST(what_lies_behind_the_end_is_nothing)
{
    check("bytes=10-", 10, DOWNLOAD_NOTHING, 0, 0);
    check("bytes=10-12", 10, DOWNLOAD_NOTHING, 0, 0);
    check("bytes=-0", 10, DOWNLOAD_NOTHING, 0, 0);
    check("bytes=0-", 0, DOWNLOAD_NOTHING, 0, 0);
    check("bytes=-5", 0, DOWNLOAD_NOTHING, 0, 0);
}

TEST(what_is_no_single_part_is_the_whole)
{
    static const char *const other[] = {
        NULL,
        "",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5-2",
        "bytes=1-2,4-5",
        "items=0-1",
        "bytes=0-1 ",
        "bytes=+1-2",
        "bytes=--1",
        "bytes= 0-1",
        "bytes=0x1-2",
        "bytes=99999999999999999999-",
        "bytes=0-99999999999999999999",
    };
    for (int i = 0; i < ARRAY_LEN(other); i++)
        check(other[i], 10, DOWNLOAD_WHOLE, 0, 0);
}
