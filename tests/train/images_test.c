/* images_test.c - folders of images as examples: classes, sizes, damage. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "runtime/dataset/dataset_batch.h"
#include "runtime/dataset/images.h"
#include "runtime/io/image.h"
#include "runtime/spec/spec.h"
#include "tests/unit/folder.h"

static const struct spec *spec_of(struct arena *arena, const char *data, struct error *err)
{
    char *json = alloc_printf("{\"name\": \"t\", \"model\": {\"layers\": [{\"layer\": "
                              "\"Flatten\"}]}, \"data\": {\"dataset\": \"d\"%s%s}}",
                              *data ? ", " : "", data);
    const struct spec *spec = spec_parse(arena, json, strlen(json), err);
    free(json);
    return spec;
}

/* ROOT/CLASS/FILE, a PNG of one grey. */
static void put(const char *root, const char *class, const char *file, int height, int width,
                int grey)
{
    struct error err;
    struct str bytes = {0};
    struct image image = {
        .frames = 1, .height = height, .width = width, .channels = 3, .bits = 8};
    CHECK_OK(image_alloc(&image, &err), &err);
    memset(image.pixels, grey, (size_t)(height * width * 3));
    CHECK_OK(image_write_png(&image, -1, &bytes, &err), &err);
    char *name = alloc_printf("%s/%s", class, file);
    folder_put(root, name, bytes.data, bytes.size);
    free(name);
    image_release(&image);
    str_release(&bytes);
}

static bool open_images(const char *root, const char *data, struct dataset *dataset,
                        struct error *err)
{
    struct arena *arena = arena_new();
    struct error wrong;
    const struct spec *spec = spec_of(arena, data, &wrong);
    CHECK_OK(spec, &wrong);
    bool ok = dataset_open(folder_path(root), &spec->data, 0, dataset, err);
    arena_free(arena);
    return ok;
}

static void check_refused(const char *root, const char *data, enum error_code code,
                          const char *text)
{
    struct dataset dataset;
    struct error err;
    CHECK_FAILS(open_images(root, data, &dataset, &err), &err, code);
    if (!strstr(err.text, text))
        CHECK_STOP("%s, not: %s", err.text, text);
}

static void check_cut(const char *root, const char *file, long size)
{
    char *path = folder_file(root, file);
    CHECK_INT(truncate(path, size), 0);
    free(path);
}

static void check_first(const struct dataset *dataset, const struct dataset_part *part,
                        int64_t row, int grey, int label)
{
    struct error err;
    struct dataset_batch batch;
    CHECK_OK(dataset_batch_read(&batch, dataset, part, row, 1, &err), &err);
    float pixel = ((float *)batch.feeds[0].data)[0];
    CHECK(pixel > (float)grey / 255 - 1e-6f && pixel < (float)grey / 255 + 1e-6f);
    CHECK_INT(((int32_t *)batch.feeds[1].data)[0], label);
    dataset_batch_release(&batch);
}

TEST(images_have_the_classes_of_their_folders)
{
    struct dataset dataset;
    struct error err;
    put("split", "train/dogs", "2.png", 4, 5, 20);
    put("split", "train/dogs", "1.PNG", 4, 5, 10);
    put("split", "train/cats", "a.png", 4, 5, 30);
    put("split", "test/dogs", "x.png", 4, 5, 40);
    folder_put_text("split", "train/dogs/notes.txt", "x");
    CHECK_OK(open_images("split", "", &dataset, &err), &err);
    const struct model_data *data = &dataset.feeds.data;
    CHECK(shape_equal(&data->features[0].shape, &SHAPE(4, 5, 3)));
    CHECK_INT(data->classes, 2);
    CHECK_TEXT(dataset.columns[1].vocabulary[0], "cats");
    CHECK_INT(dataset.train.count, 3);
    CHECK_INT(dataset.test.count, 1);
    check_first(&dataset, &dataset.train, 0, 30, 0);
    check_first(&dataset, &dataset.train, 1, 10, 1);
    check_first(&dataset, &dataset.train, 2, 20, 1);
    check_first(&dataset, &dataset.test, 0, 40, 1);
    dataset_close(&dataset);
}

TEST(images_are_brought_to_one_size)
{
    struct dataset dataset;
    struct error err;
    put("sizes", "a", "1.png", 8, 8, 50);
    put("sizes", "b", "1.png", 5, 9, 60);
    CHECK_FAILS(open_images("sizes", "", &dataset, &err), &err, INVALID);
    CHECK(strstr(err.text, "/b/1.png is 5 x 9, others are 8 x 8"));
    CHECK_TEXT(err.pointer, "/data/image_size");
    check_refused("sizes", "\"skip_damaged\": true", INVALID, "image_size brings them to one");
    CHECK_OK(open_images("sizes",
                         "\"image_size\": [3, 4], \"image_channels\": 1, \"validation\": 1",
                         &dataset, &err),
             &err);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(3, 4, 1)));
    CHECK_INT(dataset.train.count, 1);
    CHECK_INT(dataset.validation.count, 1);
    dataset_close(&dataset);
}

TEST(images_that_are_damaged_are_named_or_passed_over)
{
    struct dataset dataset;
    struct error err;
    put("bad", "train/a", "1.png", 4, 4, 50);
    put("bad", "train/a", "2.png", 4, 4, 60);
    put("bad", "train/b", "3.png", 4, 4, 70);
    check_cut("bad", "train/a/1.png", 50);
    check_refused("bad", "", DATA_LOSS, "/train/a/1.png: ");
    CHECK_OK(open_images("bad", "\"skip_damaged\": 1", &dataset, &err), &err);
    CHECK_INT(dataset.skipped, 1);
    CHECK_INT(dataset.train.count, 2);
    check_first(&dataset, &dataset.train, 0, 60, 0);
    check_first(&dataset, &dataset.train, 1, 70, 1);
    dataset_close(&dataset);
    folder_put_text("bad", "train/a/1.png", "no image at all");
    folder_put_text("bad", "train/b/3.png", "");
    check_refused("bad", "\"skip_damaged\": 1", DATA_LOSS, "more than 1 damaged");
    CHECK_OK(open_images("bad", "\"skip_damaged\": true", &dataset, &err), &err);
    CHECK_INT(dataset.skipped, 2);
    dataset_close(&dataset);
}

TEST(images_that_are_all_damaged_are_told_by_the_first)
{
    put("worst", "a", "1.png", 4, 4, 50);
    put("worst", "b", "2.png", 4, 4, 60);
    check_cut("worst", "a/1.png", 20);
    check_cut("worst", "b/2.png", 20);
    check_refused("worst", "", DATA_LOSS, "/a/1.png: ");
    check_refused("worst", "\"image_size\": 4, \"skip_damaged\": true", DATA_LOSS,
                  "every image of");
}

TEST(images_of_classes_without_training_are_refused)
{
    put("classes", "train/a", "1.png", 4, 4, 50);
    put("classes", "test/b", "1.png", 4, 4, 50);
    check_refused("classes", "", INVALID, "/test/b: there are no images of this class");
}

/* More than may be kept is decoded again when asked for, with the same result. */
TEST(images_need_not_fit_memory)
{
    struct error err;
    for (int pass = 0; pass < 2; pass++) {
        struct images *images = images_new();
        struct images_options options = {
            .height = 2, .width = 2, .channels = 3, .memory = pass ? 20 : 1000};
        int64_t skipped = 0;
        put("large", "a", "1.png", 4, 4, 50);
        put("large", "a", "2.png", 4, 4, 60);
        images_add(images, alloc_printf("%s/a/1.png", folder_path("large")), 0);
        images_add(images, alloc_printf("%s/a/2.png", folder_path("large")), 7);
        CHECK_OK(images_check(images, "large", &options, &skipped, &err), &err);
        struct dataset_examples *examples = images_examples(images);
        uint8_t scratch[12] = {0};
        const uint8_t *pixels = examples->at(examples, 0, 1, scratch, &err);
        CHECK(pass == (pixels == scratch));
        for (int i = 0; i < 12; i++)
            CHECK_INT(pixels[i], 60);
        CHECK_INT(*(const int32_t *)examples->at(examples, 1, 1, scratch, &err), 7);
        char *gone = alloc_printf("%s/a/2.png", folder_path("large"));
        CHECK_INT(unlink(gone), 0);
        if (pass)
            CHECK_FAILS(examples->at(examples, 0, 1, scratch, &err), &err, NOT_FOUND);
        free(gone);
        examples->free(examples);
    }
}

/* The crop changes what the model gets; in evaluations the middle of the image. */
TEST(images_are_augmented_as_the_spec_says)
{
    struct dataset dataset;
    struct error err;
    put("crop", "a", "1.png", 6, 6, 50);
    put("crop", "b", "1.png", 6, 6, 60);
    struct arena *arena = arena_new();
    const struct spec *spec = spec_of(
        arena, "\"augment\": [{\"name\": \"RandomCrop\", \"height\": 4, \"width\": 3}]", &err);
    CHECK_OK(spec, &err);
    CHECK_OK(dataset_open(folder_path("crop"), &spec->data, 0, &dataset, &err), &err);
    CHECK(shape_equal(&dataset.feeds.data.features[0].shape, &SHAPE(4, 3, 3)));
    check_first(&dataset, &dataset.train, 1, 60, 1);
    dataset_close(&dataset);
    arena_free(arena);
    folder_put_text("text", "a.txt", "some text");
    CHECK_FAILS(open_images("text", "\"sequence_length\": 2, \"augment\": [\"RandomFlip\"]",
                            &dataset, &err),
                &err, INVALID);
    CHECK_TEXT(err.pointer, "/data/augment");
}
