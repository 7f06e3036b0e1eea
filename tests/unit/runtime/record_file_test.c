/* record_file_test.c - files of records: all three forms, and how they end. */

#include "base/alloc.h"
#include "base/str.h"
#include "proto/crc32c.h"
#include "proto/record.h"
#include "runtime/io/file.h"
#include "runtime/io/record_file.h"
#include "tests/unit/folder.h"
#include "tests/unit/test.h"

TEST(record_file_reads_what_it_writes)
{
    const enum stream_format formats[] = {STREAM_PLAIN, STREAM_GZIP, STREAM_ZLIB};
    struct error err;
    char *big = alloc_bytes(700000);
    for (int i = 0; i < 700000; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    for (int i = 0; i < 3; i++) {
        const char *path = folder_path("r");
        struct record_file_writer *writer = record_file_create(path, formats[i], &err);
        CHECK_OK(writer, &err);
        for (size_t size = 0; size < 700000; size = size * 3 + 1)
            CHECK_OK(record_file_add(writer, big, size, &err), &err);
        CHECK_OK(record_file_finish(writer, &err), &err);

        struct record_file *file = record_file_open(path, formats[i], &err);
        const void *data;
        size_t size;
        CHECK_OK(file, &err);
        for (size_t wanted = 0; wanted < 700000; wanted = wanted * 3 + 1) {
            CHECK_OK(record_file_next(file, &data, &size, &err), &err);
            CHECK_INT(size, wanted);
            CHECK(!memcmp(data, big, size));
        }
        CHECK_FAILS(record_file_next(file, &data, &size, &err), &err, OUT_OF_RANGE);
        CHECK_FAILS(record_file_next(file, &data, &size, &err), &err, OUT_OF_RANGE);
        CHECK_TEXT(err.text, "end of file");
        record_file_close(file);
    }
    free(big);
}

/* Cut after `size` bytes: the number of records that come and the code at the end. */
static void check_end(const struct str *bytes, size_t size, int records, enum error_code code)
{
    struct error err;
    const void *data;
    size_t data_size;
    CHECK_OK(file_write(folder_path("cut"), bytes->data, size, &err), &err);
    struct record_file *file = record_file_open(folder_path("cut"), STREAM_PLAIN, &err);
    CHECK_OK(file, &err);
    for (int i = 0; i < records; i++)
        CHECK_OK(record_file_next(file, &data, &data_size, &err), &err);
    CHECK_FAILS(record_file_next(file, &data, &data_size, &err), &err, code);
    if (code == DATA_LOSS)
        CHECK(strstr(err.text, "truncated record at 21"));
    record_file_close(file);
}

TEST(record_file_ends_as_tensorflows)
{
    struct str bytes = {0};
    record_add(&bytes, "first", 5);
    record_add(&bytes, "second", 6);
    for (size_t size = 0; size < bytes.size; size++) {
        if (size < 12)
            check_end(&bytes, size, 0, OUT_OF_RANGE);
        else if (size >= 21 && size < 33)
            check_end(&bytes, size, 1, OUT_OF_RANGE);
        else if (size >= 33)
            check_end(&bytes, size, 1, DATA_LOSS);
    }
    str_release(&bytes);
}

/* 2^40 bytes are claimed, with a right checksum: found out before memory is taken. */
TEST(record_file_does_not_believe_lengths)
{
    struct str bytes = {0};
    struct error err;
    record_add(&bytes, "first", 5);
    uint64_t length = UINT64_C(1) << 40;
    uint32_t crc = crc32c_mask(crc32c(&length, 8));
    str_add_bytes(&bytes, &length, 8);
    str_add_bytes(&bytes, &crc, 4);
    str_add(&bytes, "some bytes");
    const enum stream_format formats[] = {STREAM_PLAIN, STREAM_GZIP};
    for (int i = 0; i < 2; i++) {
        struct stream_writer *writer = stream_create(folder_path("l"), formats[i], &err);
        CHECK_OK(stream_write(writer, bytes.data, bytes.size, &err), &err);
        CHECK_OK(stream_finish(writer, &err), &err);
        struct record_file *file = record_file_open(folder_path("l"), formats[i], &err);
        const void *data;
        size_t size;
        CHECK_OK(record_file_next(file, &data, &size, &err), &err);
        CHECK_FAILS(record_file_next(file, &data, &size, &err), &err, DATA_LOSS);
        CHECK(strstr(err.text, "at 21"));
        record_file_close(file);
    }
    str_release(&bytes);
}
