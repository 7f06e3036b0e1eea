/* stream_test.c - data that is larger than what is held: the same batches, read from the files.
 */

#include "base/alloc.h"
#include "runtime/dataset/format.h"
#include "runtime/io/npy.h"
#include "runtime/spec/spec.h"
#include "runtime/train/input.h"
#include "tests/train/example.h"
#include "tests/unit/folder.h"

enum { ROWS = 3000 };

static const struct spec_column columns[] = {
    {.name = "word", .type = COLUMN_CATEGORICAL, .rank = -1, .pointer = "/data/columns/word"}};
static const struct spec_data data = {
    .columns = columns, .columns_count = 1, .validation = 500, .skip_damaged = 1};

static const char *word_of(int i)
{
    static const char *const words[] = {"pear", "apple, red", "fig\nor two"};
    return words[i * i % 3];
}

/* Rows `first` .. + count of a table. */
static void put_table(const char *folder, const char *file, enum stream_format format,
                      int first, int count)
{
    struct error err;
    struct str text = {0};
    char *path = folder_file(folder, file);
    char separator = strstr(file, ".tsv") ? '\t' : ',';
    str_printf(&text, "x%cword%cy%clabel\r\n\n", separator, separator, separator);
    for (int i = first; i < first + count; i++)
        str_printf(&text, "%d.5%c\"%s\"%c%d%c%d\n%s", i, separator, word_of(i), separator, -i,
                   separator, i % 7, i % 100 ? "" : "\n");
    struct stream_writer *writer = stream_create(path, format, &err);
    CHECK_OK(writer, &err);
    CHECK_OK(stream_write(writer, text.data, text.size, &err), &err);
    CHECK_OK(stream_finish(writer, &err), &err);
    str_release(&text);
    free(path);
}

static void put_records(const char *folder, const char *file, enum stream_format format,
                        int first, int count)
{
    struct error err;
    struct str features = {0}, example = {0};
    char *path = folder_file(folder, file);
    struct record_file_writer *writer = record_file_create(path, format, &err);
    CHECK_OK(writer, &err);
    for (int i = first; i < first + count; i++) {
        const float xs[] = {(float)i, (float)(2 * i)};
        const int64_t label = i % 7;
        example_integers(&features, "label", &label, 1);
        example_bytes(&features, "word", word_of(i), strlen(word_of(i)));
        if (i % 5)
            example_floats(&features, "xs", xs, 2);
        else
            example_floats(&features, "xs", (const float[]){0, 1}, 2);
        example_finish(&features, &example);
        CHECK_OK(record_file_add(writer, example.data, example.size, &err), &err);
    }
    CHECK_OK(record_file_finish(writer, &err), &err);
    str_release(&features);
    str_release(&example);
    free(path);
}

static void put_array(const char *folder, const char *file, enum dtype dtype,
                      const struct shape *shape)
{
    struct error err;
    struct tensor tensor;
    char *path = folder_file(folder, file);
    CHECK_OK(tensor_init(&tensor, dtype, shape, &err), &err);
    for (int64_t i = 0; i < tensor.count; i++)
        tensor_set_number(&tensor, i, (double)(i % 200));
    CHECK_OK(npy_write(path, &tensor, &err), &err);
    tensor_release(&tensor);
    free(path);
}

/* --- the same, held and read again --- */

static void open_with(const char *folder, const struct spec_data *spec, int64_t memory,
                      struct dataset *dataset)
{
    struct error err;
    const struct dataset_source source = {.folder = folder_path(folder),
                                          .data = spec,
                                          .seed = 3,
                                          .memory = memory,
                                          .spool = folder_path("spool")};
    mkdir(folder_path("spool"), 0755);
    CHECK_OK(dataset_open_from(&source, dataset, &err), &err);
}

static void check_columns(const struct dataset *a, const struct dataset *b)
{
    CHECK_INT(a->columns_count, b->columns_count);
    CHECK_INT(a->skipped, b->skipped);
    for (int i = 0; i < a->columns_count; i++) {
        CHECK_TEXT(a->columns[i].name, b->columns[i].name);
        CHECK_INT(a->columns[i].classes, b->columns[i].classes);
        for (int w = 0; a->columns[i].vocabulary && w < a->columns[i].classes; w++)
            CHECK_TEXT(a->columns[i].vocabulary[w], b->columns[i].vocabulary[w]);
    }
}

static void check_batches(struct dataset *const datasets[2], int64_t position)
{
    struct input *inputs[2];
    struct error err;
    for (int d = 0; d < 2; d++) {
        const struct input_options options = {.dataset = datasets[d],
                                              .part = &datasets[d]->train,
                                              .batch_size = 64,
                                              .shuffle = -1,
                                              .seed = 5,
                                              .position = position};
        inputs[d] = input_start(&options, &err);
        CHECK_OK(inputs[d], &err);
    }
    for (int i = 0; i < 100; i++) {
        struct dataset_batch *batches[2];
        for (int d = 0; d < 2; d++) {
            batches[d] = input_take(inputs[d], &err);
            CHECK_OK(batches[d], &err);
        }
        for (int f = 0; f < batches[0]->feeds_count; f++) {
            CHECK_INT(tensor_bytes(&batches[0]->feeds[f]), tensor_bytes(&batches[1]->feeds[f]));
            CHECK(!memcmp(batches[0]->feeds[f].data, batches[1]->feeds[f].data,
                          tensor_bytes(&batches[0]->feeds[f])));
        }
        for (int d = 0; d < 2; d++)
            input_give_back(inputs[d], batches[d]);
    }
    for (int d = 0; d < 2; d++)
        input_stop(inputs[d]);
}

/* `memory` is that of the one which is read again. */
static void check_same(const char *folder, const struct spec_data *spec, int64_t memory)
{
    struct dataset held, read;
    struct dataset *const both[2] = {&held, &read};
    open_with(folder, spec, 0, &held);
    open_with(folder, spec, memory, &read);
    CHECK(!held.train.examples->is_made);
    check_columns(&held, &read);
    const struct dataset_part *a = &held.train, *b = &read.train;
    for (int part = 0; part < 3; part++, a++, b++)
        CHECK_INT(a->count, b->count);
    check_batches(both, 0);
    check_batches(both, 1777);
    struct dataset_batch batches[2];
    struct error err;
    for (int d = 0; d < 2; d++)
        CHECK_OK(dataset_batch_read(&batches[d], both[d], &both[d]->validation, 100, 200, &err),
                 &err);
    for (int f = 0; f < batches[0].feeds_count; f++)
        CHECK(!memcmp(batches[0].feeds[f].data, batches[1].feeds[f].data,
                      tensor_bytes(&batches[0].feeds[f])));
    for (int d = 0; d < 2; d++) {
        dataset_batch_release(&batches[d]);
        dataset_close(both[d]);
    }
    CHECK(!rmdir(folder_path("spool"))); /* nothing is left there */
}

static void append(const char *folder, const char *file, const char *text)
{
    char *path = folder_file(folder, file);
    FILE *out = fopen(path, "a");
    CHECK(out);
    CHECK(fputs(text, out) >= 0);
    CHECK(!fclose(out));
    free(path);
}

TEST(stream_reads_tables_again)
{
    put_table("tables", "a_train.csv", STREAM_PLAIN, 0, 1000);
    put_table("tables", "b_train.csv.gz", STREAM_GZIP, 1000, 1000);
    put_table("tables", "c_train.tsv", STREAM_PLAIN, 2000, 1000);
    put_table("tables", "test.csv", STREAM_PLAIN, 10, 70);
    append("tables", "a_train.csv", "what is this\n");
    check_same("tables", &data, 4);
    check_same("tables", &data, 4 * 16 * 1500); /* it is full after one and a half files */
    struct dataset dataset;
    open_with("tables", &data, 4, &dataset);
    CHECK(dataset.train.examples->is_made);
    CHECK(dataset.test.examples->is_made);
    CHECK_INT(dataset.skipped, 1);
    dataset_close(&dataset);
    rmdir(folder_path("spool"));
}

TEST(stream_reads_records_again)
{
    put_records("records", "train.tfrecord-00000-of-00003", STREAM_PLAIN, 0, 1000);
    put_records("records", "train.tfrecord-00001-of-00003", STREAM_GZIP, 1000, 1000);
    put_records("records", "train.tfrecord-00002-of-00003", STREAM_ZLIB, 2000, 1000);
    check_same("records", &data, 4);
    check_same("records", &data, 4 * 16 * 1500);
}

TEST(stream_reads_arrays_again)
{
    const struct spec_data plain = {.validation = 500};
    put_array("arrays", "x_train.npy", F32, &SHAPE(ROWS, 3, 2));
    put_array("arrays", "a_train.npy", U8, &SHAPE(ROWS, 5, 5));
    put_array("arrays", "y_train.npy", I64, &SHAPE(ROWS, 1));
    check_same("arrays", &plain, 4);
    check_same("arrays", &plain, 4 * 8 * ROWS); /* y and a fit, x does not */
}

/* --- what changes while it is read --- */

static void check_first_fails(struct dataset *dataset, enum error_code code, const char *text)
{
    struct dataset_batch batch;
    struct error err;
    CHECK_FAILS(dataset_batch_read(&batch, dataset, &dataset->train, 0, 1, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
    dataset_close(dataset);
}

TEST(stream_tells_what_was_changed)
{
    const struct spec_data spec = {.columns = columns, .columns_count = 1};
    struct dataset dataset;
    put_records("changed", "train.tfrecord", STREAM_PLAIN, 0, 10);
    open_with("changed", &spec, 4, &dataset);
    char *path = folder_file("changed", "train.tfrecord");
    CHECK(!truncate(path, 30));
    check_first_fails(&dataset, DATA_LOSS,
                      "train.tfrecord, the record at byte 0: the file ends within it");
    put_records("changed", "train.tfrecord", STREAM_PLAIN, 0, 10);
    open_with("changed", &spec, 4, &dataset);
    FILE *file = fopen(path, "r+");
    CHECK(file && !fseek(file, 20, SEEK_SET) && fputc('!', file) == '!' && !fclose(file));
    check_first_fails(&dataset, DATA_LOSS, "the record at byte 0: it is damaged, and was not");
    free(path);
    put_table("turned", "train.csv", STREAM_PLAIN, 0, 10);
    open_with("turned", &spec, 4, &dataset);
    path = folder_file("turned", "train.csv");
    file = fopen(path, "r+");
    CHECK(file && !fseek(file, 17, SEEK_SET) && fputs("zer", file) >= 0 && !fclose(file));
    check_first_fails(&dataset, INVALID, "train.csv, the record at byte 17: column \"x\": ");
    free(path);
    rmdir(folder_path("spool"));
}

/* A place where nothing can be put is named. */
TEST(stream_names_where_it_cannot_decompress_to)
{
    struct dataset dataset;
    struct error err;
    put_table("packed", "train.csv.gz", STREAM_GZIP, 0, 10);
    const struct dataset_source source = {.folder = folder_path("packed"),
                                          .data = &data,
                                          .memory = 4,
                                          .spool = folder_path("nowhere")};
    CHECK_FAILS(dataset_open_from(&source, &dataset, &err), &err, NOT_FOUND);
    CHECK(strstr(err.text, "nowhere/train.csv.gz."));
}
