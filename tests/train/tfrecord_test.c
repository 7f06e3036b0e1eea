/* tfrecord_test.c - datasets of tf.Examples: what their features become, and what is damaged.
 */
/* Faults of docs/reliability.md: F25. */

#include <sys/stat.h>

#include "base/alloc.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/io/image.h"
#include "runtime/spec/spec.h"
#include "tests/train/example.h"
#include "tests/unit/folder.h"

#define AS(...)                                                                                \
    &(struct spec_data)                                                                        \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

/* Example i: id i, xs (i, 2i), raw bytes, a word. */
static void put_features(struct str *features, int i)
{
    static const char *const words[] = {"pear", "apple", "fig"};
    const float xs[] = {(float)i, (float)(2 * i)};
    const uint8_t raw[] = {(uint8_t)i, 255, 0, 7};
    int64_t label = i % 3, wide[] = {-i, 1000000};
    example_integers(features, "label", &label, 1);
    example_floats(features, "xs", xs, 2);
    example_bytes(features, "raw", raw, 4);
    example_bytes(features, "word", words[i % 3], strlen(words[i % 3]));
    example_integers(features, "wide", wide, 2);
}

static void put_file(const char *folder, const char *name, enum stream_format format, int first,
                     int count)
{
    struct str features = {0}, example = {0};
    struct error err;
    char *path = folder_file(folder, name);
    struct record_file_writer *writer = record_file_create(path, format, &err);
    CHECK_OK(writer, &err);
    for (int i = first; i < first + count; i++) {
        put_features(&features, i);
        example_finish(&features, &example);
        CHECK_OK(record_file_add(writer, example.data, example.size, &err), &err);
    }
    CHECK_OK(record_file_finish(writer, &err), &err);
    str_release(&features);
    str_release(&example);
    free(path);
}

static const struct spec_column word_column = {
    .name = "word", .type = COLUMN_CATEGORICAL, .rank = -1, .pointer = "/data/columns/word"};

static void check_refused(const char *folder, const struct spec_data *data,
                          enum error_code code, const char *text)
{
    struct dataset dataset;
    struct error err;
    CHECK_FAILS(dataset_open(folder_path(folder), data, 1, &dataset, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
}

/* Pieces, compressions, parts by their names; columns in the order of the features' names. */
TEST(tfrecord_reads_features_as_columns)
{
    put_file("all", "train.tfrecord-00000-of-00003", STREAM_PLAIN, 0, 5);
    put_file("all", "train.tfrecord-00001-of-00003", STREAM_GZIP, 5, 5);
    put_file("all", "train.tfrecord-00002-of-00003", STREAM_ZLIB, 10, 2);
    put_file("all", "test.tfrecords.gz", STREAM_GZIP, 20, 2);
    put_file("all", "my_validation.tfrecord", STREAM_PLAIN, 30, 1);
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("all"), AS(.columns = &word_column, .columns_count = 1),
                          1, &dataset, &err),
             &err);
    CHECK_INT(dataset.train.count, 12);
    CHECK_INT(dataset.test.count, 2);
    CHECK_INT(dataset.validation.count, 1);
    const struct model_data *data = &dataset.feeds.data;
    CHECK_INT(data->features_count, 4);
    CHECK_TEXT(data->features[0].name, "raw");
    CHECK_TEXT(data->features[1].name, "wide");
    CHECK_TEXT(data->features[2].name, "word");
    CHECK_TEXT(data->features[3].name, "xs");
    CHECK(shape_equal(&data->features[0].shape, &SHAPE(4)));
    CHECK(shape_equal(&data->features[2].shape, &SHAPE_SCALAR));
    CHECK_TEXT(data->target.name, "label");
    CHECK_INT(data->classes, 3);
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 9, 3, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[4] == 10 * (1.0f / 255));
    CHECK_INT(tensor_i32(&batch.feeds[1])[2], -10);
    CHECK_INT(tensor_i32(&batch.feeds[1])[3], 1000000);
    CHECK_INT(tensor_i32(&batch.feeds[2])[0], 3); /* [UNK], apple, fig, pear */
    CHECK_INT(tensor_i32(&batch.feeds[2])[1], 1);
    CHECK(tensor_f32(&batch.feeds[3])[5] == 22);
    CHECK_INT(tensor_i32(&batch.feeds[4])[2], 2);
    dataset_batch_release(&batch);
    CHECK_INT(dataset.columns[3].classes, 4);
    CHECK_TEXT(dataset.columns[3].vocabulary[2], "fig");
    dataset_close(&dataset);
    check_refused("all", NULL, INVALID,
                  "feature \"word\" holds texts of different lengths; say whether");
    /* What is not asked for need not be understood. */
    CHECK_OK(dataset_open(folder_path("all"),
                          AS(.features = (const char *const[]){"xs"}, .features_count = 1), 1,
                          &dataset, &err),
             &err);
    CHECK_INT(dataset.feeds.count, 2);
    dataset_close(&dataset);
}

/* Damages one byte of a file. */
static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    CHECK(file);
    CHECK(!fseek(file, at, SEEK_SET));
    int byte = fgetc(file);
    CHECK(!fseek(file, at, SEEK_SET));
    fputc(byte ^ 0x55, file);
    CHECK(!fclose(file));
}

static int64_t trained(const char *folder, const struct spec_data *data, int64_t *skipped)
{
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path(folder), data, 1, &dataset, &err), &err);
    int64_t count = dataset.train.count;
    *skipped = dataset.skipped;
    dataset_close(&dataset);
    return count;
}

TEST(tfrecord_skips_damaged_records_as_the_spec_allows)
{
    const char *const xs[] = {"xs"};
    struct spec_data data = {.features = xs, .features_count = 1};
    int64_t skipped;
    put_file("damaged", "train.tfrecord", STREAM_PLAIN, 0, 6);
    char *path = alloc_printf("%s/train.tfrecord", folder_path("damaged"));
    struct stat status;
    CHECK(!stat(path, &status));
    flip(path, 40);
    flip(path, status.st_size - 20);
    char text[200];
    snprintf(text, sizeof(text), "record 1: %s: corrupted record at 12", path);
    check_refused("damaged", &data, DATA_LOSS, text);
    data.skip_damaged = 1;
    check_refused("damaged", &data, DATA_LOSS,
                  "more than the 1 damaged records that may be skipped, the last: record 6");
    data.skip_damaged = 2;
    CHECK_INT(trained("damaged", &data, &skipped), 4);
    CHECK_INT(skipped, 2);
    data.skip_damaged = -1;
    CHECK_INT(trained("damaged", &data, &skipped), 4);
    /* A length that is wrong ends its file. */
    flip(path, 2);
    check_refused("damaged", &data, DATA_LOSS,
                  "no record of the files to train on can be read");
    put_file("damaged", "train2.tfrecord", STREAM_PLAIN, 0, 3);
    CHECK_INT(trained("damaged", &data, &skipped), 3);
    CHECK_INT(skipped, 1);
    free(path);
}

/* Writes one file of hand-made Examples. */
static void put_examples(const char *folder, struct str *features, int count)
{
    struct error err;
    struct str example = {0};
    char *path = folder_file(folder, "train.tfrecord");
    struct record_file_writer *writer = record_file_create(path, STREAM_PLAIN, &err);
    CHECK_OK(writer, &err);
    for (int i = 0; i < count; i++) {
        example_finish(&features[i], &example);
        CHECK_OK(record_file_add(writer, example.data, example.size, &err), &err);
        str_release(&features[i]);
    }
    CHECK_OK(record_file_finish(writer, &err), &err);
    str_release(&example);
    free(path);
}

TEST(tfrecord_takes_defaults_for_what_is_not_there)
{
    struct str features[3] = {{0}};
    const int64_t one = 1;
    const float x = 2.5f;
    for (int i = 0; i < 3; i++)
        example_integers(&features[i], "label", &one, 1);
    example_floats(&features[0], "x", &x, 1);
    example_floats(&features[2], "x", &x, 1);
    put_examples("gaps", features, 3);
    check_refused("gaps", NULL, INVALID,
                  "train.tfrecord: record 2 at byte 49: feature \"x\": is not there");
    struct spec_column column = {
        .name = "x", .rank = -1, .initial = "-3.5", .pointer = "/data/columns/x"};
    struct spec_data data = {.columns = &column, .columns_count = 1};
    struct dataset dataset;
    struct error err;
    CHECK_OK(dataset_open(folder_path("gaps"), &data, 1, &dataset, &err), &err);
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 3, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[1] == -3.5f);
    CHECK(tensor_f32(&batch.feeds[0])[2] == 2.5f);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
    column.initial = "many";
    check_refused("gaps", &data, INVALID, "the default \"many\"");
    const struct spec_data skipping = {.skip_damaged = -1};
    int64_t skipped;
    CHECK_INT(trained("gaps", &skipping, &skipped), 2);
    CHECK_INT(skipped, 1);
}

TEST(tfrecord_decodes_images)
{
    struct str features[2] = {{0}};
    struct error err;
    for (int i = 0; i < 2; i++) {
        struct image image = {
            .frames = 1, .height = 2, .width = 3 + i, .channels = 3, .bits = 8};
        struct str png = {0};
        const int64_t label = i;
        CHECK_OK(image_alloc(&image, &err), &err);
        memset(image.pixels, 100 + i, (size_t)(6 * (3 + i)));
        CHECK_OK(image_write_png(&image, -1, &png, &err), &err);
        example_bytes(&features[i], "image", png.data, png.size);
        example_integers(&features[i], "label", &label, 1);
        image_release(&image);
        str_release(&png);
    }
    put_examples("images", features, 2);
    check_refused("images", NULL, INVALID,
                  "feature \"image\": an image of 2 by 4 pixels, the first has 2 by 3");
    const struct spec_column column = {.name = "image",
                                       .type = COLUMN_IMAGE,
                                       .rank = 3,
                                       .dims = {4, 4, 1},
                                       .pointer = "/data/columns/image"};
    struct dataset dataset;
    CHECK_OK(dataset_open(folder_path("images"), AS(.columns = &column, .columns_count = 1), 1,
                          &dataset, &err),
             &err);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(4, 4, 1)));
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 1, 1, &err), &err);
    CHECK(tensor_f32(&batch.feeds[0])[7] == 101 * (1.0f / 255));
    dataset_batch_release(&batch);
    dataset_close(&dataset);
}

TEST(tfrecord_refuses_what_no_column_can_be)
{
    struct str features[2] = {{0}};
    const int64_t values[] = {1, INT64_C(1) << 40};
    const float x = 1;
    example_integers(&features[0], "a", values, 1);
    example_integers(&features[1], "a", values, 2);
    put_examples("lengths", features, 2);
    check_refused("lengths", AS(.target = "a"), INVALID,
                  "feature \"a\" has lists of different");
    example_integers(&features[0], "a", values, 1);
    example_floats(&features[1], "a", &x, 1);
    put_examples("types", features, 2);
    check_refused("types", AS(.target = "a"), INVALID,
                  "record 2 at byte 30: feature \"a\" is a list of float, before of int64");
    example_integers(&features[0], "a", values + 1, 1);
    put_examples("wide", features, 1);
    check_refused("wide", AS(.target = "a"), INVALID, "1099511627776, allowed: what int32");
    put_examples("empty", features, 1);
    check_refused("empty", NULL, INVALID, "no features");
    put_examples("none", features, 0);
    check_refused("none", NULL, INVALID, "train.tfrecord holds no examples");
    put_file("only-test", "test.tfrecord", STREAM_PLAIN, 0, 1);
    check_refused("only-test", NULL, NOT_FOUND, "no .tfrecord file to train on");
}
