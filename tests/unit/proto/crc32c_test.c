/* crc32c_test.c - published vectors; the fast way against the plain one. */

#include "base/alloc.h"
#include "proto/crc32c.h"
#include "tests/unit/test.h"

TEST(crc32c_gives_the_published_sums)
{
    unsigned char bytes[32];
    CHECK_INT(crc32c("123456789", 9), 0xe3069283u);
    CHECK_INT(crc32c(memset(bytes, 0, 32), 32), 0x8a9136aau);
    CHECK_INT(crc32c(memset(bytes, 0xff, 32), 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    CHECK_INT(crc32c(bytes, 32), 0x46dd794eu);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    CHECK_INT(crc32c(bytes, 32), 0x113fdb5cu);
    CHECK_INT(crc32c("abc", 3), 0x364b3fb7u);
    CHECK_INT(crc32c(NULL, 0), 0);
}

TEST(crc32c_mask_and_unmask)
{
    CHECK_INT(crc32c_mask(0x364b3fb7u), 0x21f1576eu);
    CHECK_INT(crc32c_mask(0), 0xa282ead8u);
    CHECK_INT(crc32c_unmask(0x21f1576eu), 0x364b3fb7u);
}

/* Sizes around every loop's end, from odd addresses, in one go and in two. */
TEST(crc32c_fast_equals_plain)
{
    unsigned char *bytes = alloc_bytes(20000);
    uint32_t state = 1;
    for (int i = 0; i < 20000; i++)
        bytes[i] = (unsigned char)((state = state * 1664525u + 1013904223u) >> 24);
    const size_t sizes[] = {0,    1,    7,    8,    9,     63,    64,    2047,
                            2048, 6143, 6144, 6145, 12287, 12288, 12295, 18500};
    for (int i = 0; i < ARRAY_LEN(sizes); i++) {
        for (size_t offset = 0; offset < 9; offset++) {
            uint32_t plain = crc32c_extend_portable(7, bytes + offset, sizes[i]);
            CHECK_INT(crc32c_extend(7, bytes + offset, sizes[i]), plain);
            uint32_t first = crc32c_extend(7, bytes + offset, sizes[i] / 3);
            size_t rest = sizes[i] - sizes[i] / 3;
            CHECK_INT(crc32c_extend(first, bytes + offset + sizes[i] / 3, rest), plain);
        }
    }
    free(bytes);
}

TEST(sums_of_parts_combine)
{
    unsigned char bytes[5000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * i * 31 + i / 7);
    static const size_t cuts[] = {0, 1, 7, 8, 255, 4096, 4999, 5000};
    for (int i = 0; i < ARRAY_LEN(cuts); i++) {
        uint32_t first = crc32c(bytes, cuts[i]);
        uint32_t second = crc32c(bytes + cuts[i], sizeof(bytes) - cuts[i]);
        CHECK(crc32c_combine(first, second, sizeof(bytes) - cuts[i]) ==
              crc32c(bytes, sizeof(bytes)));
    }
}
