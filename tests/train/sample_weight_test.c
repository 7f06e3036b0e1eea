/* sample_weight_test.c - examples that count more or less: losses and metrics as Keras has
 * them.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "kernels/list.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/io/npy.h"
#include "runtime/spec/spec.h"
#include "runtime/train/train.h"
#include "tests/train/example.h"
#include "tests/unit/folder.h"

static const char table[] = "a,b,c,w,y,r\n"
                            "0.1,0.43,0.21,1.84,1,-0.36\n"
                            "0.09,-0.15,0.29,1.85,0,0.84\n"
                            "-0.12,0.78,0.93,2.83,2,-0.91\n"
                            "-0.23,0.58,0.06,0,1,-1.06\n"
                            "0.14,0.85,-0.86,1.08,1,-1.69\n"
                            "-0.83,-0.96,0.67,1.31,1,1.72\n"
                            "0.56,0.74,0.96,2.09,2,-0.14\n"
                            "0.6,-0.08,0.56,0.18,2,1.34\n"
                            "-0.76,0.28,-0.71,2,0,-1.37\n"
                            "0.89,0.04,-0.17,2.01,1,1.02\n"
                            "-0.47,0.55,-0.09,0.63,1,-1.32\n"
                            "0.14,-0.96,0.24,0.39,0,2.48\n";

static const struct spec *parse(struct arena *arena, const char *json)
{
    struct error err;
    const struct spec *spec = spec_parse(arena, json, strlen(json), &err);
    CHECK_OK(spec, &err);
    return spec;
}

/* The metrics of step `steps`, and of the evaluation after it. */
static void run(const char *json, int64_t steps, double *values, double *evaluated)
{
    static bool added;
    struct error err;
    struct train_report report;
    struct arena *arena = arena_new();
    if (!added)
        kernels_add(false);
    added = true;
    const struct train_options options = {
        .spec = parse(arena, json), .data = folder_path("table"), .threads = 1, .steps = steps};
    struct train *train = train_open(&options, &err);
    CHECK_OK(train, &err);
    size_t size = (size_t)train_facts(train)->metrics_count * sizeof(*values);
    do {
        CHECK_OK(train_next(train, &report, &err), &err);
        if (report.what == TRAIN_POINT)
            memcpy(values, report.values, size);
        if (report.what == TRAIN_EVALUATED)
            memcpy(evaluated, report.val_values, size);
    } while (report.what != TRAIN_ENDED);
    train_close(train);
    arena_free(arena);
}

enum { STEPS = 3, METRICS_MAX = 4 };

/* `wanted`: of each step, then of the evaluation: the loss, then the metrics; as
 * train_on_batch() and evaluate() of Keras 3 give them with sample_weight. */
static void check(const char *json, const double wanted[][METRICS_MAX], int metrics)
{
    folder_put_text("table", "train.csv", table);
    folder_put_text("table", "test.csv", table);
    for (int step = 1; step <= STEPS; step++) {
        double values[METRICS_MAX] = {0}, evaluated[METRICS_MAX] = {0};
        run(json, step, values, evaluated);
        for (int i = 0; i < metrics; i++)
            assert_float_equal(values[i], wanted[step - 1][i], 1e-5);
        for (int i = 0; i < metrics && step == STEPS; i++)
            assert_float_equal(evaluated[i], wanted[STEPS][i], 1e-5);
    }
}

#define CLASSES(loss)                                                                          \
    "{\"model\": {\"layers\": [{\"layer\": \"Dense\", \"units\": 3, \"activation\": "          \
    "\"softmax\", "                                                                            \
    "\"kernel_initializer\": \"zeros\"}]}, \"data\": {\"dataset\": \"t\", \"batch_size\": 4, " \
    "\"shuffle\": false, \"target\": \"y\", \"weight\": \"w\", \"columns\": {\"r\": "          \
    "\"ignored\"}}, \"train\": {\"steps\": 3, \"optimizer\": {\"name\": \"SGD\", "             \
    "\"learning_rate\": 0.5}, \"loss\": {\"name\": \"SparseCategoricalCrossentropy\" " loss    \
    "},"                                                                                       \
    " \"metrics\": [\"accuracy\"], \"weighted_metrics\": [\"accuracy\", "                      \
    "\"SparseCategoricalCrossentropy\"]}}"

TEST(sample_weights_of_classes_are_as_in_keras)
{
    static const double mean[][METRICS_MAX] = {{1.790738, 0.25, 0.2837423, 1.098612},
                                               {1.136301, 0.5, 0.4871245, 0.9753656},
                                               {1.470204, 0, 0, 1.169148},
                                               {1.221043, 0.75, 0.8507095, 0.9039185}};
    check(CLASSES(""), mean, 4);
    static const double weighted[][METRICS_MAX] = {
        {1.098612, 0.25, 0.2837423, 1.098612},
        {1.019021, 0.5, 0.4871245, 1.019021},
        {1.157552, 0, 0, 1.157552},
        {0.9421899, 0.6666667, 0.7273288, 0.9421899}};
    check(CLASSES(", \"reduction\": \"mean_with_sample_weight\""), weighted, 4);
}

TEST(sample_weights_of_numbers_are_as_in_keras)
{
    static const double wanted[][METRICS_MAX] = {{0.9718367, 0.7925, 0.7349234},
                                                 {2.562557, 1.573976, 1.4394},
                                                 {1.19554, 0.9444001, 0.9379049},
                                                 {0.5049695, 0.3818978, 0.469932}};
    check("{\"model\": {\"layers\": [{\"layer\": \"Dense\", \"units\": 1, "
          "\"kernel_initializer\": \"zeros\"}]}, \"data\": {\"dataset\": \"t\", "
          "\"batch_size\": 4, "
          "\"shuffle\": false, \"target\": \"r\", \"weight\": \"w\", \"columns\": {\"y\": "
          "\"ignored\"}}, \"train\": {\"steps\": 3, \"optimizer\": {\"name\": \"SGD\", "
          "\"learning_rate\": 0.5}, \"loss\": \"MeanSquaredError\", \"metrics\": "
          "[\"MeanAbsoluteError\"], \"weighted_metrics\": [\"MeanAbsoluteError\"]}}",
          wanted, 3);
}

/* A table's weight is no part of its numbers, and no target even where it is the last column.
 */
TEST(sample_weights_are_no_features)
{
    struct dataset dataset;
    struct error err;
    const struct spec_data data = {.weight = "w"};
    folder_put_text("last", "train.csv", "x,y,w\n1,0,2\n3,1,0.5\n");
    CHECK_OK(dataset_open(folder_path("last"), &data, 1, &dataset, &err), &err);
    CHECK_TEXT(dataset.feeds.data.target.name, "y");
    CHECK_INT(dataset.feeds.data.features_count, 1);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(1)));
    CHECK_TEXT(dataset.feeds.data.weight.name, "w");
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 2, &err), &err);
    CHECK_INT(batch.feeds_count, 3);
    CHECK(tensor_f32(&batch.feeds[2])[1] == 0.5f);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
}

static void put_record(struct record_file_writer *writer, int64_t weight)
{
    struct str features = {0}, example = {0};
    struct error err;
    const float x = 1;
    example_floats(&features, "x", &x, 1);
    example_integers(&features, "label", &weight, 1);
    example_integers(&features, "count", &weight, 1);
    example_finish(&features, &example);
    CHECK_OK(record_file_add(writer, example.data, example.size, &err), &err);
    str_release(&features);
    str_release(&example);
}

/* Whole numbers are weights too. */
TEST(sample_weights_are_in_records_and_arrays)
{
    struct dataset dataset;
    struct error err;
    const struct spec_data data = {.weight = "count"};
    char *path = folder_file("records", "train.tfrecord");
    struct record_file_writer *writer = record_file_create(path, STREAM_PLAIN, &err);
    CHECK_OK(writer, &err);
    put_record(writer, 2);
    put_record(writer, 7);
    CHECK_OK(record_file_finish(writer, &err), &err);
    free(path);
    const char *const names[] = {"x", "y", "count"};
    for (int i = 0; i < 3; i++) {
        struct tensor tensor;
        CHECK_OK(tensor_init(&tensor, i ? I64 : F32, &SHAPE(2, 1), &err), &err);
        tensor_set_number(&tensor, 0, 2);
        tensor_set_number(&tensor, 1, 7);
        char *file = alloc_printf("%s_train.npy", names[i]);
        path = folder_file("arrays", file);
        CHECK_OK(npy_write(path, &tensor, &err), &err);
        tensor_release(&tensor);
        free(path);
        free(file);
    }
    const char *const folders[] = {"records", "arrays"};
    for (int i = 0; i < 2; i++) {
        struct dataset_batch batch;
        CHECK_OK(dataset_open(folder_path(folders[i]), &data, 1, &dataset, &err), &err);
        CHECK_INT(dataset.feeds.data.features_count, 1);
        CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 0, 2, &err), &err);
        CHECK(shape_equal(&batch.feeds[2].shape, &SHAPE(2)));
        CHECK(tensor_f32(&batch.feeds[2])[1] == 7);
        dataset_batch_release(&batch);
        dataset_close(&dataset);
    }
}

TEST(sample_weights_that_cannot_be_are_refused)
{
    struct dataset dataset;
    struct error err;
    folder_put_text("words", "train.csv", "x,y,w\n1,0,much\n3,1,little\n");
    CHECK_FAILS(dataset_open(folder_path("words"), &(struct spec_data){.weight = "w"}, 1,
                             &dataset, &err),
                &err, INVALID);
    CHECK(strstr(err.text, "line 2: column \"w\": \"much\" is no number"));
    CHECK_FAILS(dataset_open(folder_path("words"), &(struct spec_data){.weight = "v"}, 1,
                             &dataset, &err),
                &err, INVALID);
    CHECK_TEXT(err.pointer, "/data/weight");
    CHECK(strstr(err.text, "the data has no column \"v\", allowed: "));
}
