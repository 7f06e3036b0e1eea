/*
 * main.c - how fast data comes in: records of a file, tf.Examples into columns, batches.
 *
 *   build/bench/input FOLDER     writes its files there (about 300 MB), reads them, removes
 * them
 */

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/train/input.h"
#include "tests/train/example.h"

enum { RECORDS = 1000000, RECORD_BYTES = 100, EXAMPLES = 60000, PIXELS = 784, BATCH = 100 };

static void check(bool ok, const struct error *err)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s\n", err->text);
    exit(1);
}

static double seconds_since(uint64_t start_us)
{
    return (double)(clock_monotonic_us() - start_us) * 1e-6;
}

/* --- records --- */

static void write_records(const char *path)
{
    struct error err;
    char record[RECORD_BYTES] = "";
    struct record_file_writer *writer = record_file_create(path, STREAM_PLAIN, &err);
    check(writer, &err);
    for (int i = 0; i < RECORDS; i++) {
        memcpy(record, &i, sizeof(i));
        check(record_file_add(writer, record, sizeof(record), &err), &err);
    }
    check(record_file_finish(writer, &err), &err);
}

static void read_records(const char *path)
{
    struct error err;
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        const void *data;
        size_t size;
        int count = 0;
        uint64_t start_us = clock_monotonic_us();
        struct record_file *file = record_file_open(path, STREAM_PLAIN, &err);
        check(file, &err);
        while (record_file_next(file, &data, &size, &err))
            count++;
        check(count == RECORDS && err.code == OUT_OF_RANGE, &err);
        record_file_close(file);
        double seconds = seconds_since(start_us);
        best = seconds < best ? seconds : best;
    }
    printf("records of %d bytes            %10.0f records/s\n", RECORD_BYTES, RECORDS / best);
}

/* --- examples --- */

static void write_examples(const char *path)
{
    struct error err;
    struct str features = {0}, example = {0};
    unsigned char pixels[PIXELS];
    struct record_file_writer *writer = record_file_create(path, STREAM_PLAIN, &err);
    check(writer, &err);
    for (int i = 0; i < EXAMPLES; i++) {
        const int64_t label = i % 10;
        memset(pixels, i, sizeof(pixels));
        example_bytes(&features, "image", pixels, sizeof(pixels));
        example_integers(&features, "label", &label, 1);
        example_finish(&features, &example);
        check(record_file_add(writer, example.data, example.size, &err), &err);
    }
    check(record_file_finish(writer, &err), &err);
    str_release(&features);
    str_release(&example);
}

static double batches_per_second(const struct dataset *dataset)
{
    struct error err;
    double best = 1e9;
    const struct input_options options = {.dataset = dataset,
                                          .part = &dataset->train,
                                          .batch_size = BATCH,
                                          .shuffle = 10000,
                                          .seed = 1};
    struct input *input = input_start(&options, &err);
    check(input, &err);
    for (int round = 0; round < 5; round++) {
        uint64_t start_us = clock_monotonic_us();
        for (int i = 0; i < EXAMPLES / BATCH; i++) {
            struct dataset_batch *batch = input_take(input, &err);
            check(batch, &err);
            input_give_back(input, batch);
        }
        double seconds = seconds_since(start_us);
        best = seconds < best ? seconds : best;
    }
    input_stop(input);
    return EXAMPLES / best;
}

/* Held as numbers, and with a byte of memory for them, so that they are read again. */
static void read_examples(const char *folder)
{
    struct error err;
    struct dataset dataset;
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        uint64_t start_us = clock_monotonic_us();
        check(dataset_open(folder, NULL, 1, &dataset, &err), &err);
        double seconds = seconds_since(start_us);
        best = seconds < best ? seconds : best;
        if (round < 4)
            dataset_close(&dataset);
    }
    printf("tf.Examples of %d bytes, parsed %8.0f examples/s\n", PIXELS, EXAMPLES / best);
    printf("batches of %d, shuffled       %10.0f examples/s\n", BATCH,
           batches_per_second(&dataset));
    dataset_close(&dataset);
    check(dataset_open_from(&(struct dataset_source){.folder = folder, .memory = 4}, &dataset,
                            &err),
          &err);
    printf("the same, from the file        %9.0f examples/s\n", batches_per_second(&dataset));
    dataset_close(&dataset);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    char *folder = alloc_printf("%s/bench-input", argv[1]);
    char *records = alloc_printf("%s/records", folder);
    char *examples = alloc_printf("%s/train.tfrecord", folder);
    mkdir(folder, 0700);
    write_records(records);
    read_records(records);
    unlink(records);
    write_examples(examples);
    read_examples(folder);
    unlink(examples);
    rmdir(folder);
    free(records);
    free(examples);
    free(folder);
    return 0;
}
