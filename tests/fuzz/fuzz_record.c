/* fuzz_record.c - files of records, plain and compressed; the first byte says which. */

#include "proto/record.h"
#include "runtime/io/record_file.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WITHOUT_CHECKSUMS

/* The same bytes as the server gets them: in memory, with the parser that asks for more. */
static int count_in_memory(const uint8_t *bytes, size_t size)
{
    struct error err;
    const void *data;
    size_t data_size, used;
    int count = 0;
    for (size_t place = 0; record_parse(bytes + place, size - place, (int64_t)place, &data,
                                        &data_size, &used, &err) == RECORD_OK;
         place += used) {
        FUZZ_CHECK(used == data_size + RECORD_HEADER_BYTES + RECORD_FOOTER_BYTES);
        count++;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum stream_format formats[] = {STREAM_PLAIN, STREAM_GZIP, STREAM_ZLIB};
    if (!size)
        return 0;
    char path[64];
    fuzz_file(fuzz_path(path, "record"), data + 1, size - 1);
    enum stream_format format = formats[data[0] % ARRAY_LEN(formats)];
    struct error err;
    struct record_file *file = record_file_open(path, format, &err);
    FUZZ_CHECK(file);
    const void *record;
    size_t record_size;
    int count = 0;
    while (record_file_next(file, &record, &record_size, &err))
        count++;
    FUZZ_CHECK(err.code == OUT_OF_RANGE || err.code == DATA_LOSS || err.code == EXHAUSTED);
    if (format == STREAM_PLAIN)
        FUZZ_CHECK(count == count_in_memory(data + 1, size - 1));
    record_file_close(file);
    unlink(path);
    return 0;
}
