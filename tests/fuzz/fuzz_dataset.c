/* fuzz_dataset.c - folders of a table or of tf.Examples: the first byte says which. */

#include <sys/stat.h>

#include "runtime/dataset/dataset_batch.h"
#include "runtime/spec/spec.h"
#include "tests/fuzz/fuzz.h"

FUZZ_WITHOUT_CHECKSUMS

static void read_all(const struct dataset *dataset)
{
    struct dataset_batch batch;
    struct error err;
    FUZZ_CHECK(dataset->train.count > 0 && dataset->feeds.count > 1);
    FUZZ_CHECK(dataset_batch_read(&batch, dataset, &dataset->train, 0, 1, &err));
    dataset_batch_release(&batch);
    FUZZ_CHECK(dataset_batch_read(&batch, dataset, &dataset->train, dataset->train.count - 1, 1,
                                  &err));
    dataset_batch_release(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[64], path[100];
    struct error err;
    struct dataset dataset;
    if (!size)
        return 0;
    fuzz_path(folder, "dataset");
    mkdir(folder, 0700);
    snprintf(path, sizeof(path), "%s/train.%s", folder, *data & 1 ? "csv" : "tfrecord");
    fuzz_file(path, data + 1, size - 1);
    const struct spec_data spec = {.skip_damaged = *data & 2 ? -1 : 0};
    if (dataset_open(folder, &spec, 1, &dataset, &err)) {
        FUZZ_CHECK(!dataset.skipped || spec.skip_damaged);
        read_all(&dataset);
        dataset_close(&dataset);
    } else {
        FUZZ_CHECK(err.code == DATA_LOSS || err.code == INVALID || err.code == EXHAUSTED);
    }
    unlink(path);
    rmdir(folder);
    return 0;
}
