/*
 * fuzz_hdf5.c - HDF5 files: whatever becomes of the process that reads one, we get an answer.
 *
 * A process for each input is slow.  So most inputs are what such a process might say, which is
 * all that reaches this one; of those that begin as a file does one in 32 is read as a file.
 */

#include "runtime/io/hdf5.h"
#include "runtime/io/hdf5_internal.h"
#include "tests/fuzz/fuzz.h"

static bool take_said(const uint8_t *data, size_t size, struct hdf5 *file, struct error *err)
{
    int ends[2];
    FUZZ_CHECK(!pipe(ends));
    FUZZ_CHECK(write(ends[1], data, size) == (ssize_t)size); /* less than a pipe holds */
    close(ends[1]);
    bool ok = hdf5_take("fuzz.h5", ends[0], size, file, err);
    close(ends[0]);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t signature[] = "\x89HDF\r\n\x1a\n";
    struct error err;
    struct hdf5 file;
    uint32_t hash = 0;
    for (size_t i = 0; i < size; i++)
        hash = hash * 31 + data[i];
    bool whole = size >= 8 && !memcmp(data, signature, 8) && (hash ^ hash >> 16) % 32 == 0;
    if (!(whole ? hdf5_read_bytes("fuzz.h5", data, size, &file, &err)
                : take_said(data, size, &file, &err))) {
        FUZZ_CHECK(err.code == DATA_LOSS || err.code == EXHAUSTED);
        FUZZ_CHECK(strstr(err.text, "fuzz.h5"));
        return 0;
    }
    size_t bytes = 0;
    for (int i = 0; i < file.items_count; i++)
        bytes += file.items[i].value.dtype == STRING ? 0 : tensor_bytes(&file.items[i].value);
    FUZZ_CHECK(bytes <= size * 1032);
    hdf5_release(&file);
    return 0;
}
