/* record.c - frames and unframes records, byte for byte as TensorFlow's TFRecord. */

#include "proto/record.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/crc32c.h"

void record_add(struct str *out, const void *data, size_t size)
{
    uint64_t length = size;
    uint32_t length_crc = crc32c_mask(crc32c(&length, sizeof(length)));
    uint32_t data_crc = crc32c_mask(crc32c(data, size));

    char *frame = str_extend(out, RECORD_HEADER_BYTES + size + RECORD_FOOTER_BYTES);
    memcpy(frame, &length, 8);
    memcpy(frame + 8, &length_crc, 4);
    if (size)
        memcpy(frame + RECORD_HEADER_BYTES, data, size);
    memcpy(frame + RECORD_HEADER_BYTES + size, &data_crc, 4);
}

static enum record_result record_bad(struct error *err, int64_t place)
{
    fail(err, DATA_LOSS, "corrupted record at %lld%s", (long long)place,
         place ? "" : " (Is this even a TFRecord file?)");
    return RECORD_BAD;
}

enum record_result record_parse(const void *bytes, size_t size, int64_t offset,
                                const void **data, size_t *data_size, size_t *used,
                                struct error *err)
{
    const char *frame = bytes;
    if (size < RECORD_HEADER_BYTES)
        return RECORD_MORE;

    uint64_t length;
    uint32_t length_crc;
    memcpy(&length, frame, 8);
    memcpy(&length_crc, frame + 8, 4);
    if (crc32c_unmask(length_crc) != crc32c(frame, 8))
        return record_bad(err, offset);
    if (length > LIMIT_RECORD_BYTES) {
        fail(err, DATA_LOSS, "record at %lld claims %llu bytes, more than the limit of %lld",
             (long long)offset, (unsigned long long)length, (long long)LIMIT_RECORD_BYTES);
        return RECORD_BAD;
    }
    if (size - RECORD_HEADER_BYTES < length + RECORD_FOOTER_BYTES)
        return RECORD_MORE;

    const char *start = frame + RECORD_HEADER_BYTES;
    uint32_t data_crc;
    memcpy(&data_crc, start + length, 4);
    if (crc32c_unmask(data_crc) != crc32c(start, length))
        return record_bad(err, offset + RECORD_HEADER_BYTES);

    *data = start;
    *data_size = length;
    *used = RECORD_HEADER_BYTES + length + RECORD_FOOTER_BYTES;
    return RECORD_OK;
}
