/*
 * tables_test.c - the shipped examples of tables, and the autoencoder, reach on data made here
 * what their notes say of them.
 */

#include <math.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "cli/tables.c"
#include "kernels/list.h"
#include "runtime/model/model.h"
#include "runtime/spec/spec.h"
#include "runtime/train/train.h"
#include "tests/unit/folder.h"

#define METRICS_MAX 8

/* Trains an example to its end; its metrics of training and of the last evaluation. */
static void run(const char *json, const char *data, double *first, double *last,
                double evaluated[METRICS_MAX])
{
    static bool added;
    struct error err;
    struct train_report report;
    struct arena *arena = arena_new();
    if (!added)
        kernels_add(false);
    added = true;
    const struct spec *spec = spec_parse(arena, json, strlen(json), &err);
    CHECK_OK(spec, &err);
    struct train *train =
        train_open(&(struct train_options){.spec = spec, .data = data, .threads = 1}, &err);
    CHECK_OK(train, &err);
    int metrics = train_facts(train)->metrics_count;
    *first = -1;
    do {
        CHECK_OK(train_next(train, &report, &err), &err);
        if (report.what == TRAIN_POINT) {
            *first = *first < 0 ? report.values[0] : *first;
            *last = report.values[0];
        }
        if (report.what == TRAIN_EVALUATED)
            memcpy(evaluated, report.val_values, (size_t)metrics * sizeof(*evaluated));
    } while (report.what != TRAIN_ENDED);
    CHECK_INT(report.end, TRAIN_FINISHED);
    train_close(train);
    arena_free(arena);
}

static const char *make(const char *name,
                        bool (*write)(const char *, int64_t, int64_t, uint64_t, struct error *),
                        int64_t train_count, int64_t test_count)
{
    struct error err;
    const char *folder = folder_path(name);
    mkdir(folder, 0755);
    CHECK_OK(write(folder, train_count, test_count, 42, &err), &err);
    return folder;
}

/* The noise alone is left: a variance of 0.01. */
TEST(linear_finds_the_weights)
{
    double first, last, evaluated[METRICS_MAX];
    run("{\"example\": \"linear\"}", make("linear", tables_linear, 2000, 500), &first, &last,
        evaluated);
    CHECK(first > 5);
    CHECK(evaluated[0] > 0.008 && evaluated[0] < 0.0125);
}

/* The best that is possible is 87.4 %; one class for all is right in about half. */
TEST(wide_and_deep_learns_pairs)
{
    double first, last, evaluated[METRICS_MAX];
    run("{\"example\": \"wide-and-deep\", \"train\": {\"epochs\": 4}}",
        make("census", tables_census, 20000, 4000), &first, &last, evaluated);
    CHECK(evaluated[1] > 0.86 && evaluated[1] < 0.9);
    CHECK(evaluated[2] > 0.93);
}

/* Each of five centroids finds its blob: what is left is their spread, 0.09 in each number. */
TEST(k_means_finds_the_blobs)
{
    double first, last, evaluated[METRICS_MAX];
    run("{\"example\": \"k-means\"}", make("blobs", tables_blobs, 3000, 600), &first, &last,
        evaluated);
    CHECK(first > 0.3);
    CHECK(evaluated[0] > 0.07 && evaluated[0] < 0.1);
}

/* Pictures of one of four bars, as MNIST has them. */
static const char *make_bars(void)
{
    static const char *const sets[] = {"train", "t10k"};
    mkdir(folder_path("bars"), 0755);
    for (int s = 0; s < 2; s++) {
        char *images = alloc_printf("%s/%s-images-idx3-ubyte", folder_path("bars"), sets[s]);
        char *labels = alloc_printf("%s/%s-labels-idx1-ubyte", folder_path("bars"), sets[s]);
        FILE *pictures = fopen(images, "w"), *classes = fopen(labels, "w");
        CHECK(pictures && classes);
        const unsigned char head[16] = {0, 0, 8, 3, 0, 0, 0, 200, 0, 0, 0, 28, 0, 0, 0, 28};
        CHECK_INT(fwrite(head, 1, 16, pictures), 16);
        CHECK_INT(fwrite((unsigned char[]){0, 0, 8, 1, 0, 0, 0, 200}, 1, 8, classes), 8);
        for (int i = 0; i < 200; i++) {
            for (int p = 0; p < 784; p++)
                fputc(p / 28 / 7 == i % 4 ? 255 : 0, pictures);
            fputc(i % 4, classes);
        }
        CHECK(!fclose(pictures) && !fclose(classes));
        free(images);
        free(labels);
    }
    return folder_path("bars");
}

TEST(autoencoder_gives_pictures_back)
{
    double first, last, evaluated[METRICS_MAX];
    run("{\"example\": \"autoencoder\", \"data\": {\"batch_size\": 40}, \"train\": "
        "{\"epochs\": "
        "20, \"eval_every\": 0}}",
        make_bars(), &first, &last, evaluated);
    CHECK(first > 0.2);
    CHECK(evaluated[0] < 0.02);
}

/* Centroids are points: pictures must be laid flat first. */
TEST(k_means_refuses_pictures)
{
    struct error err;
    struct arena *arena = arena_new();
    const char json[] = "{\"model\": {\"layers\": [{\"layer\": \"KMeans\", \"clusters\": 3}]}, "
                        "\"data\": {\"dataset\": \"bars\", \"target\": \"images\"}, \"train\": "
                        "{\"loss\": \"mean_squared_error\"}}";
    const struct spec *spec = spec_parse(arena, json, strlen(json), &err);
    CHECK_OK(spec, &err);
    CHECK_FAILS(
        train_open(&(struct train_options){.spec = spec, .data = make_bars(), .threads = 1},
                   &err),
        &err, INVALID);
    CHECK(strstr(err.text, "put Flatten before it"));
    arena_free(arena);
}
