/* fuzz_slice.c - checkpoints of the V1 format: a table of names, and of the slices of each. */

#include "runtime/io/slice_file.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WITHOUT_CHECKSUMS

static void read_tensor(struct slice_file_reader *reader, const char *name)
{
    struct error err;
    int dtype;
    struct shape shape;
    struct tensor tensor;
    if (!slice_file_reader_find(reader, name, &dtype, &shape, &err))
        return;
    if (shape_count(&shape) > 1 << 20)
        return;
    if (slice_file_reader_read(reader, name, NULL, &tensor, &err)) {
        FUZZ_CHECK(shape_equal(&tensor.shape, &shape));
        tensor_release(&tensor);
    }
    struct bundle_slice slice = {.rank = shape.rank};
    for (int d = 0; d < slice.rank; d++)
        slice.length[d] = shape.dims[d] > 1 ? 1 : -1;
    if (slice_file_reader_read(reader, name, &slice, &tensor, &err))
        tensor_release(&tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    char path[64];
    fuzz_file(fuzz_path(path, "slice"), data, size);
    struct slice_file_reader *reader = slice_file_reader_open(path, &err);
    if (reader) {
        /* The names that the seeds have. */
        static const char *const names[] = {"a", "b", "c", "d"};
        for (int i = 0; i < ARRAY_LEN(names); i++)
            read_tensor(reader, names[i]);
    } else {
        FUZZ_CHECK(err.code && strstr(err.text, path));
    }
    slice_file_reader_close(reader);
    unlink(path);
    return 0;
}
