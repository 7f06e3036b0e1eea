/* fuzz_npy.c - NPY files: what is read and written again is read as the same. */

#include "runtime/io/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct tensor tensor, again;
    if (!npy_parse(data, size, &tensor, &err)) {
        FUZZ_CHECK(err.code == DATA_LOSS || err.code == UNIMPLEMENTED || err.code == EXHAUSTED);
        FUZZ_CHECK(*err.text);
        return 0;
    }
    size_t bytes = (size_t)tensor.count * dtype_size(tensor.dtype);
    FUZZ_CHECK(bytes <= size);
    struct str file = {0};
    FUZZ_CHECK(npy_header_add(&file, tensor.dtype, &tensor.shape, &err));
    FUZZ_CHECK(file.size % 64 == 0);
    str_add_bytes(&file, tensor.data, bytes);
    FUZZ_CHECK(npy_parse(file.data, file.size, &again, &err));
    FUZZ_CHECK(tensor_equal(&tensor, &again));
    tensor_release(&tensor);
    tensor_release(&again);
    str_release(&file);
    return 0;
}
