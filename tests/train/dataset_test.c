/* dataset_test.c - what a folder holds, and what is said of one that is damaged. */

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/train/dataset.h"
#include "tests/unit/folder.h"

static void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    CHECK(file);
    CHECK_INT(fwrite(bytes, 1, size, file), size);
    CHECK_INT(fclose(file), 0);
}

static char *in_folder(const char *name, const char *file)
{
    mkdir(folder_path(name), 0755);
    return alloc_printf("%s/%s", folder_path(name), file);
}

static void put_idx(const char *folder, const char *file, int rank, int count, int side,
                    int label)
{
    uint8_t bytes[4096] = {0, 0, 8, (uint8_t)rank, 0, 0, 0, (uint8_t)count};
    size_t size = 8;
    if (rank == 3) {
        bytes[11] = bytes[15] = (uint8_t)side;
        size = 16 + (size_t)(count * side * side);
    } else {
        memset(bytes + 8, label, (size_t)count);
        size += (size_t)count;
    }
    char *path = in_folder(folder, file);
    put_file(path, bytes, size);
    free(path);
}

static void put_mnist(const char *folder, int count, int test_side)
{
    put_idx(folder, "train-images-idx3-ubyte", 3, count, 5, 0);
    put_idx(folder, "train-labels-idx1-ubyte", 1, count, 0, 6);
    put_idx(folder, "t10k-images-idx3-ubyte", 3, 2, test_side, 0);
    put_idx(folder, "t10k-labels-idx1-ubyte", 1, 2, 0, 3);
}

static void check_refused(const char *folder, enum error_code code, const char *text)
{
    struct dataset dataset;
    struct error err;
    CHECK_FAILS(dataset_open(folder, &dataset, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
}

TEST(dataset_reads_idx)
{
    struct dataset dataset;
    struct error err;
    put_mnist("idx", 3, 5);
    CHECK_OK(dataset_open(folder_path("idx"), &dataset, &err), &err);
    CHECK(shape_equal(&dataset.shape, &SHAPE(5, 5, 1)));
    CHECK_INT(dataset.train.count, 3);
    CHECK_INT(dataset.test.count, 2);
    CHECK_INT(dataset.classes, 7);
    dataset_close(&dataset);
}

TEST(dataset_refuses_what_does_not_fit)
{
    check_refused("/nonexistent", NOT_FOUND, "there is no folder /nonexistent");
    put_mnist("sides", 3, 6);
    check_refused(folder_path("sides"), INVALID,
                  "images to train on are [5,5,1], those to test on [6,6,1]");
    put_mnist("empty", 0, 5);
    check_refused(folder_path("empty"), INVALID, "holds no examples");
    put_mnist("partial", 3, 5);
    char *path = in_folder("partial", "t10k-labels-idx1-ubyte");
    CHECK_INT(unlink(path), 0);
    free(path);
    check_refused(folder_path("partial"), NOT_FOUND, "t10k-labels-idx1-ubyte");
}

/* Planes of red, green and blue become pixels; batches follow each other. */
TEST(dataset_reads_cifar)
{
    static uint8_t record[2 * 3073];
    record[0] = 7;
    memset(record + 1, 10, 1024);
    memset(record + 1025, 20, 1024);
    memset(record + 2049, 30, 1024);
    record[1 + 33] = 11;
    record[3073] = 2;
    char *first = in_folder("cifar", "data_batch_1.bin"),
         *second = in_folder("cifar", "data_batch_2.bin"),
         *test = in_folder("cifar", "test_batch.bin");
    put_file(first, record, sizeof(record));
    put_file(second, record, 3073);
    put_file(test, record, 3073);
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("cifar"), &dataset, &err), &err);
    CHECK(shape_equal(&dataset.shape, &SHAPE(32, 32, 3)));
    CHECK_INT(dataset.train.count, 3);
    CHECK_INT(dataset.classes, 8);
    CHECK_INT(dataset.train.labels[1], 2);
    const uint8_t *pixel = dataset.train.images + 33 * 3;
    CHECK_INT(pixel[0], 11);
    CHECK_INT(pixel[1], 20);
    CHECK_INT(pixel[2], 30);
    dataset_close(&dataset);

    record[3073] = 10;
    put_file(first, record, sizeof(record));
    check_refused(folder_path("cifar"), DATA_LOSS, "data_batch_1.bin: at byte 3073: label 10");
    put_file(first, record, 4000);
    check_refused(folder_path("cifar"), DATA_LOSS, "data_batch_1.bin: ends at byte 4000");
    put_file(first, record, 3073);
    CHECK_INT(unlink(test), 0);
    check_refused(folder_path("cifar"), NOT_FOUND, "test_batch.bin");
    free(first);
    free(second);
    free(test);
}

/* Examples by their labels 0 .. 4; each image is its label, twice. */
static void put_numbered(struct dataset *dataset, uint8_t images[10], uint8_t labels[5])
{
    for (uint8_t i = 0; i < 5; i++)
        images[2 * i] = images[2 * i + 1] = labels[i] = i;
    struct error err;
    *dataset = (struct dataset){.shape = SHAPE(2, 1, 1), .classes = 5};
    CHECK_OK(tensor_init_copy(&dataset->owned[0], U8, &SHAPE(5, 2, 1, 1), images, &err), &err);
    CHECK_OK(tensor_init_copy(&dataset->owned[1], U8, &SHAPE(5), labels, &err), &err);
    dataset->train = (struct dataset_part){dataset->owned[0].data, dataset->owned[1].data, 5};
}

/* Every example is in one of the two parts, with its own image; the seed says in which. */
TEST(dataset_holds_out_by_seed)
{
    uint8_t images[10], labels[5];
    int held[5] = {0};
    for (int64_t seed = 0; seed < 200; seed++) {
        struct dataset dataset;
        struct error err;
        put_numbered(&dataset, images, labels);
        CHECK_OK(dataset_hold_out(&dataset, 2, seed, &err), &err);
        CHECK_INT(dataset.train.count, 3);
        CHECK_INT(dataset.validation.count, 2);
        int seen = 0;
        const struct dataset_part *parts[2] = {&dataset.train, &dataset.validation};
        for (int p = 0; p < 2; p++)
            for (int64_t i = 0; i < parts[p]->count; i++) {
                int label = parts[p]->labels[i];
                CHECK(i == 0 || parts[p]->labels[i - 1] < label);
                CHECK_INT(parts[p]->images[2 * i], label);
                CHECK_INT(parts[p]->images[2 * i + 1], label);
                seen |= 1 << label;
                held[label] += p;
            }
        CHECK_INT(seen, 31);
        dataset_close(&dataset);
    }
    for (int i = 0; i < 5; i++)
        CHECK(held[i] > 50 && held[i] < 110); /* 80 of 200, within five deviations */
}

TEST(dataset_holds_out_all_but_one_at_most)
{
    uint8_t images[10], labels[5];
    struct dataset dataset;
    struct error err;
    put_numbered(&dataset, images, labels);
    CHECK_OK(dataset_hold_out(&dataset, 0, 1, &err), &err);
    CHECK_INT(dataset.train.count, 5);
    CHECK_FAILS(dataset_hold_out(&dataset, 5, 1, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/data/validation");
    CHECK_OK(dataset_hold_out(&dataset, 4, 1, &err), &err);
    CHECK_INT(dataset.train.count, 1);
    dataset_close(&dataset);
}
