/* fuzz_hdf5.c - HDF5 files: whatever becomes of the process that reads one, we get an answer.
 */

#include "runtime/io/hdf5.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct hdf5 file;
    if (!hdf5_read_bytes("fuzz.h5", data, size, &file, &err)) {
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
