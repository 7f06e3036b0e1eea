/* fuzz_bundle.c - checkpoints: two bytes with the size of the index, the index, the data file.
 */

#include "runtime/io/bundle.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WITHOUT_CHECKSUMS

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t index_size = (size_t)data[0] | (size_t)data[1] << 8;
    if (index_size > size - 2)
        index_size = size - 2;
    char index[64], shard[64], prefix[64];
    fuzz_path(prefix, "b");
    fuzz_file(fuzz_path(index, "b.index"), data + 2, index_size);
    fuzz_file(fuzz_path(shard, "b.data-00000-of-00001"), data + 2 + index_size,
              size - 2 - index_size);

    struct error err;
    struct bundle_reader *reader = bundle_reader_open(prefix, &err);
    const struct bundle_item *items;
    int count = 0;
    if (reader && bundle_reader_list(reader, &items, &count, &err)) {
        for (int i = 0; i < count && i < 64; i++) {
            struct tensor tensor, part;
            if (shape_count(&items[i].shape) > 1 << 20)
                continue;
            if (bundle_reader_read(reader, items[i].name, &tensor, &err)) {
                FUZZ_CHECK(shape_equal(&tensor.shape, &items[i].shape));
                tensor_release(&tensor);
            }
            struct bundle_slice slice = {.rank = items[i].shape.rank};
            for (int d = 0; d < slice.rank; d++)
                slice.length[d] = items[i].shape.dims[d] > 1 ? 1 : -1;
            if (bundle_reader_read_slice(reader, items[i].name, &slice, &part, &err))
                tensor_release(&part);
        }
    }
    bundle_reader_close(reader);
    unlink(index);
    unlink(shard);
    return 0;
}
