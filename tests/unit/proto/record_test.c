/* record_test.c - framing: known bytes, cut records, damaged records. */
/* Faults of docs/reliability.md: F25. */

#include "base/str.h"
#include "proto/crc32c.h"
#include "proto/record.h"
#include "tests/unit/test.h"

TEST(record_frames_as_tensorflow)
{
    struct str out = {0};
    record_add(&out, "abc", 3);
    CHECK_INT(out.size, 19);
    CHECK(!memcmp(out.data,
                  "\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
                  "abc\x6e\x57\xf1\x21",
                  19));
    str_clear(&out);
    record_add(&out, NULL, 0);
    CHECK_INT(out.size, 16);
    CHECK(!memcmp(out.data, "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16));
    str_release(&out);
}

TEST(record_waits_for_the_rest)
{
    struct str out = {0};
    struct error err;
    const void *data;
    size_t data_size, used;
    record_add(&out, "hello", 5);
    for (size_t size = 0; size < out.size; size++)
        CHECK_INT(record_parse(out.data, size, 0, &data, &data_size, &used, &err), RECORD_MORE);
    CHECK_INT(record_parse(out.data, out.size, 0, &data, &data_size, &used, &err), RECORD_OK);
    CHECK_INT(data_size, 5);
    CHECK_INT(used, out.size);
    CHECK(!memcmp(data, "hello", 5));
    str_release(&out);
}

/* A flipped bit anywhere is found, and the text tells where. */
TEST(record_finds_every_flipped_bit)
{
    struct str out = {0};
    struct error err;
    const void *data;
    size_t data_size, used;
    record_add(&out, "hello", 5);
    for (size_t i = 0; i < out.size * 8; i++) {
        out.data[i / 8] = (char)(out.data[i / 8] ^ (1 << (i % 8)));
        CHECK_INT(record_parse(out.data, out.size, 1000, &data, &data_size, &used, &err),
                  RECORD_BAD);
        CHECK_INT(err.code, DATA_LOSS);
        CHECK_TEXT(err.text, i < 96 ? "corrupted record at 1000" : "corrupted record at 1012");
        out.data[i / 8] = (char)(out.data[i / 8] ^ (1 << (i % 8)));
    }
    out.data[0] = 1;
    CHECK_INT(record_parse(out.data, out.size, 0, &data, &data_size, &used, &err), RECORD_BAD);
    CHECK_TEXT(err.text, "corrupted record at 0 (Is this even a TFRecord file?)");
    str_release(&out);
}

/* A length whose checksum is right is still not believed beyond the limit. */
TEST(record_refuses_a_huge_length)
{
    struct error err;
    const void *data;
    size_t data_size, used;
    char frame[20] = {0};
    uint64_t length = UINT64_C(1) << 40;
    memcpy(frame, &length, 8);
    uint32_t crc = crc32c_mask(crc32c(frame, 8));
    memcpy(frame + 8, &crc, 4);
    CHECK_INT(record_parse(frame, sizeof(frame), 5, &data, &data_size, &used, &err),
              RECORD_BAD);
    CHECK_INT(err.code, DATA_LOSS);
    CHECK(strstr(err.text, "1099511627776"));
}
