/* dataset_test.c - what a folder holds, and what is said of one that is damaged. */

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/spec/spec.h"
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
    CHECK_FAILS(dataset_open(folder, NULL, 0, &dataset, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
}

TEST(dataset_reads_idx)
{
    struct dataset dataset;
    struct error err;
    put_mnist("idx", 3, 5);
    CHECK_OK(dataset_open(folder_path("idx"), NULL, 0, &dataset, &err), &err);
    const struct model_data *data = &dataset.feeds.data;
    CHECK_INT(data->features_count, 1);
    CHECK_TEXT(data->features[0].name, "images");
    CHECK_INT(data->features[0].dtype, F32);
    CHECK(shape_equal(&data->features[0].shape, &SHAPE(5, 5, 1)));
    CHECK_TEXT(data->target.name, "labels");
    CHECK_INT(data->target.dtype, I32);
    CHECK_INT(data->target.shape.rank, 0);
    CHECK_INT(data->classes, 7);
    CHECK_INT(dataset.train.count, 3);
    CHECK_INT(dataset.test.count, 2);
    CHECK(dataset_eval(&dataset) == &dataset.test);
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
    CHECK_OK(dataset_open(folder_path("cifar"), NULL, 0, &dataset, &err), &err);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(32, 32, 3)));
    CHECK_INT(dataset.train.count, 3);
    CHECK_INT(dataset.feeds.data.classes, 8);
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 2, &err), &err);
    CHECK_INT(tensor_i32(&batch.feeds[1])[1], 2);
    const float *pixel = tensor_f32(&batch.feeds[0]) + 33 * 3;
    CHECK(pixel[0] == 11 * (1.0f / 255));
    CHECK(pixel[1] == 20 * (1.0f / 255));
    CHECK(pixel[2] == 30 * (1.0f / 255));
    dataset_batch_release(&batch);
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

/* A folder of five examples by their labels 0 .. 4; each image is its label, twice. */
static const char *put_numbered(void)
{
    static const char *const sets[] = {"train", "t10k"};
    for (int s = 0; s < 2; s++) {
        uint8_t images[26] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 1};
        uint8_t labels[13] = {0, 0, 8, 1, 0, 0, 0, 5};
        for (uint8_t i = 0; i < 5; i++)
            images[16 + 2 * i] = images[17 + 2 * i] = labels[8 + i] = i;
        char *of_images = alloc_printf("numbered/%s-images-idx3-ubyte", sets[s]);
        char *of_labels = alloc_printf("numbered/%s-labels-idx1-ubyte", sets[s]);
        mkdir(folder_path("numbered"), 0755);
        put_file(folder_path(of_images), images, sizeof(images));
        put_file(folder_path(of_labels), labels, sizeof(labels));
        free(of_images);
        free(of_labels);
    }
    return folder_path("numbered");
}

/* Adds up in which part each example is; it has its own image, and the order is the files'. */
static int look_at_part(const struct dataset *dataset, const struct dataset_part *part,
                        int *held)
{
    struct dataset_batch batch;
    struct error err;
    int seen = 0, before = -1;
    CHECK_OK(dataset_batch_read(&batch, dataset, part, 0, part->count, &err), &err);
    for (int64_t i = 0; i < part->count; i++) {
        int label = tensor_i32(&batch.feeds[1])[i];
        CHECK(before < label);
        CHECK(tensor_f32(&batch.feeds[0])[2 * i] == (float)label * (1.0f / 255));
        CHECK(tensor_f32(&batch.feeds[0])[2 * i + 1] == (float)label * (1.0f / 255));
        seen |= 1 << label;
        before = label;
        if (held)
            held[label]++;
    }
    dataset_batch_release(&batch);
    return seen;
}

/* Every example is in one of the two parts; the seed says in which. */
TEST(dataset_holds_out_by_seed)
{
    const char *folder = put_numbered();
    int held[5] = {0};
    const struct spec_data data = {.validation = 2};
    for (int64_t seed = 0; seed < 200; seed++) {
        struct dataset dataset;
        struct error err;
        CHECK_OK(dataset_open(folder, &data, seed, &dataset, &err), &err);
        CHECK_INT(dataset.train.count, 3);
        CHECK_INT(dataset.validation.count, 2);
        CHECK(dataset_eval(&dataset) == &dataset.validation);
        int seen = look_at_part(&dataset, &dataset.train, NULL);
        int out = look_at_part(&dataset, &dataset.validation, held);
        CHECK_INT(seen & out, 0);
        CHECK_INT(seen | out, 31);
        dataset_close(&dataset);
    }
    for (int i = 0; i < 5; i++)
        CHECK(held[i] > 50 && held[i] < 110); /* 80 of 200, within five deviations */
}

TEST(dataset_holds_out_all_but_one_at_most)
{
    static const struct {
        int64_t count;
        double fraction;
        int64_t left; /* to train on; 0: refused */
    } rows[] = {{0, 0, 5},   {4, 0, 1},    {5, 0, 0},   {6, 0, 0},
                {0, 0.2, 4}, {0, 0.01, 4}, {0, 0.99, 0}};
    const char *folder = put_numbered();
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        const struct spec_data data = {.validation = rows[i].count,
                                       .validation_fraction = rows[i].fraction};
        struct dataset dataset;
        struct error err;
        if (rows[i].left) {
            CHECK_OK(dataset_open(folder, &data, 1, &dataset, &err), &err);
            CHECK_INT(dataset.train.count, rows[i].left);
            CHECK_INT(dataset.validation.count, 5 - rows[i].left);
            dataset_close(&dataset);
            continue;
        }
        CHECK_FAILS(dataset_open(folder, &data, 1, &dataset, &err), &err, INVALID);
        CHECK_TEXT(err.pointer, "/data/validation");
    }
}

/* A spec may name target and features; a target that is the only feature is both. */
TEST(dataset_feeds_what_the_spec_names)
{
    const char *folder = put_numbered();
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder, &(struct spec_data){.target = "images"}, 1, &dataset, &err),
             &err);
    CHECK_INT(dataset.feeds.count, 2);
    CHECK_TEXT(dataset.feeds.data.features[0].name, "images");
    CHECK_TEXT(dataset.feeds.data.target.name, "target");
    CHECK(shape_equal(&dataset.feeds.data.target.shape, &SHAPE(2, 1, 1)));
    CHECK_INT(dataset.feeds.data.classes, 0);
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.test, 2, 3, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[4] == 4 * (1.0f / 255));
    CHECK(tensor_f32(&batch.feeds[1])[4] == 4 * (1.0f / 255));
    dataset_batch_release(&batch);
    dataset_close(&dataset);

    const char *const both[] = {"labels", "images"};
    const struct spec_data named = {.features = both, .features_count = 2};
    CHECK_OK(dataset_open(folder, &named, 1, &dataset, &err), &err);
    CHECK_INT(dataset.feeds.count, 3);
    CHECK_TEXT(dataset.feeds.data.features[0].name, "labels");
    CHECK_TEXT(dataset.feeds.data.target.name, "target");
    dataset_close(&dataset);

    CHECK_FAILS(dataset_open(folder, &(struct spec_data){.target = "price"}, 1, &dataset, &err),
                &err, INVALID);
    CHECK_TEXT(err.pointer, "/data/target");
    CHECK(strstr(err.text, "no column \"price\", allowed: \"images\", \"labels\""));
    CHECK_FAILS(dataset_open(folder, &(struct spec_data){.format = "tape"}, 1, &dataset, &err),
                &err, INVALID);
    CHECK_TEXT(err.pointer, "/data/format");
    check_refused(folder_path("."), NOT_FOUND, "no dataset of a known format");
}
