/* fuzz_idx.c - IDX files, plain and gzip. */

#include "runtime/io/idx.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct error err;
    struct tensor tensor;
    fuzz_file(fuzz_path(path, "idx"), data, size);
    if (idx_read(path, &tensor, &err)) {
        FUZZ_CHECK((size_t)tensor.count * dtype_size(tensor.dtype) <= 1032 * size);
        tensor_release(&tensor);
    } else {
        FUZZ_CHECK(err.code == DATA_LOSS || err.code == EXHAUSTED || err.code == INVALID);
        FUZZ_CHECK(strstr(err.text, path));
    }
    unlink(path);
    return 0;
}
