/* input_test.c - the order of examples, and the batches that the input thread makes of them. */

#include "base/alloc.h"
#include "base/arena.h"
#include "runtime/dataset/format.h"
#include "runtime/dataset/shuffle.h"
#include "runtime/spec/spec.h"
#include "runtime/train/input.h"
#include "tests/unit/test.h"

static void check_permutation(const int32_t *order, int count)
{
    char *seen = alloc_bytes((size_t)count);
    for (int i = 0; i < count; i++) {
        CHECK(order[i] >= 0 && order[i] < count);
        CHECK(!seen[order[i]]);
        seen[order[i]] = 1;
    }
    free(seen);
}

TEST(shuffle_gives_permutations_by_seed_and_epoch)
{
    enum { COUNT = 1000 };
    int32_t a[COUNT], b[COUNT];
    shuffle_order(7, 0, -1, a, COUNT);
    check_permutation(a, COUNT);
    shuffle_order(7, 0, COUNT + 1, b, COUNT);
    CHECK(!memcmp(a, b, sizeof(a)));
    shuffle_order(7, 1, -1, b, COUNT);
    check_permutation(b, COUNT);
    CHECK(memcmp(a, b, sizeof(a)));
    shuffle_order(8, 0, -1, b, COUNT);
    CHECK(memcmp(a, b, sizeof(a)));
    shuffle_order(7, 3, 0, b, COUNT);
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(b[i], i);
}

/* As in tf.data: output i is one of the first i + buffer. */
TEST(shuffle_buffer_bounds_how_early_an_example_comes)
{
    enum { COUNT = 500, BUFFER = 20 };
    int32_t order[COUNT];
    int moved = 0;
    shuffle_order(1, 0, BUFFER, order, COUNT);
    check_permutation(order, COUNT);
    for (int i = 0; i < COUNT; i++) {
        CHECK(order[i] < i + BUFFER);
        moved += order[i] != i;
    }
    CHECK(moved > COUNT / 2);
}

/* Every example is equally likely to come first: 4000 draws of 8, each within five deviations.
 */
TEST(shuffle_is_fair)
{
    int first[8] = {0};
    for (int seed = 0; seed < 4000; seed++) {
        int32_t order[8];
        shuffle_order(seed, 0, -1, order, 8);
        first[order[0]]++;
    }
    for (int i = 0; i < 8; i++)
        CHECK(first[i] > 395 && first[i] < 605);
}

/* `count` examples by their labels; an image is its label and 255. */
static struct dataset make_dataset(int count)
{
    struct dataset dataset = {.arena = arena_new()};
    struct tensor tensors[2];
    struct error err;
    format_add_pictures(&dataset, &SHAPE(2, 1, 1));
    CHECK_OK(tensor_init(&tensors[0], U8, &SHAPE(count, 2, 1, 1), &err), &err);
    CHECK_OK(tensor_init(&tensors[1], U8, &SHAPE(count), &err), &err);
    for (int i = 0; i < count; i++) {
        ((uint8_t *)tensors[0].data)[2 * i] = ((uint8_t *)tensors[1].data)[i] = (uint8_t)i;
        ((uint8_t *)tensors[0].data)[2 * i + 1] = 255;
    }
    CHECK_OK(format_memory(&dataset, &dataset.train, tensors, "here", &err), &err);
    CHECK_OK(feeds_choose(dataset.columns, 2, &(struct spec_data){0}, dataset.arena,
                          &dataset.feeds, &err),
             &err);
    dataset.transforms = arena_array(dataset.arena, 2, sizeof(void *));
    return dataset;
}

/* Takes `count` batches and appends their labels to `out`. */
static void take_labels(const struct input_options *options, int count, int32_t *out)
{
    struct error err;
    struct input *input = input_start(options, &err);
    CHECK_OK(input, &err);
    for (int i = 0; i < count; i++) {
        struct dataset_batch *batch = input_take(input, &err);
        CHECK_OK(batch, &err);
        CHECK(shape_equal(&batch->feeds[0].shape, &SHAPE(options->batch_size, 2, 1, 1)));
        for (int64_t row = 0; row < options->batch_size; row++) {
            int32_t label = tensor_i32(&batch->feeds[1])[row];
            const float *pixels = tensor_f32(&batch->feeds[0]) + 2 * row;
            CHECK(pixels[0] == (float)label * (1.0f / 255));
            CHECK(pixels[1] == 1);
            *out++ = label;
        }
        input_give_back(input, batch);
    }
    input_stop(input);
}

/* What a step has sent to another task may be read for longer than the step. */
TEST(input_leaves_what_is_still_read)
{
    enum { BATCH = 4, BATCHES = 20 };
    struct error err;
    struct dataset dataset = make_dataset(BATCH * BATCHES);
    const struct input_options options = {
        .dataset = &dataset, .part = &dataset.train, .batch_size = BATCH};
    struct tensor read[BATCHES];
    struct input *input = input_start(&options, &err);
    CHECK_OK(input, &err);
    for (int i = 0; i < BATCHES; i++) {
        struct dataset_batch *batch = input_take(input, &err);
        CHECK_OK(batch, &err);
        tensor_share(&read[i], &batch->feeds[1]);
        input_give_back(input, batch);
    }
    input_stop(input);
    for (int i = 0; i < BATCHES; i++) {
        for (int row = 0; row < BATCH; row++)
            CHECK_INT(tensor_i32(&read[i])[row], i * BATCH + row);
        tensor_release(&read[i]);
    }
    dataset_close(&dataset);
}

/* Epochs follow without a seam, and starting in the middle gives what was still to come. */
TEST(input_goes_on_from_any_position)
{
    enum { COUNT = 10, BATCH = 4, BATCHES = 12 };
    struct dataset dataset = make_dataset(COUNT);
    struct input_options options = {.dataset = &dataset,
                                    .part = &dataset.train,
                                    .batch_size = BATCH,
                                    .shuffle = -1,
                                    .seed = 5};
    int32_t all[BATCH * BATCHES], rest[BATCH * BATCHES];
    take_labels(&options, BATCHES, all);
    for (int epoch = 0; epoch < BATCH * BATCHES / COUNT; epoch++)
        check_permutation(all + epoch * COUNT, COUNT);
    for (int skip = 0; skip < BATCHES; skip++) {
        options.position = skip * BATCH;
        take_labels(&options, BATCHES - skip, rest);
        CHECK(!memcmp(rest, all + skip * BATCH,
                      sizeof(*rest) * (size_t)(BATCHES - skip) * BATCH));
    }
    dataset_close(&dataset);
}

/* Stopping while batches are ready, or none was taken, neither hangs nor leaks. */
TEST(input_stops_at_any_time)
{
    struct dataset dataset = make_dataset(10);
    const struct input_options options = {
        .dataset = &dataset, .part = &dataset.train, .batch_size = 3, .shuffle = 4, .seed = 5};
    struct error err;
    for (int i = 0; i < 20; i++) {
        struct input *input = input_start(&options, &err);
        CHECK_OK(input, &err);
        if (i % 2) {
            struct dataset_batch *batch = input_take(input, &err);
            CHECK_OK(batch, &err);
            input_give_back(input, batch);
        }
        input_stop(input);
    }
    input_stop(NULL);
    dataset_close(&dataset);
}

TEST(batch_reads_in_order)
{
    struct dataset dataset = make_dataset(10);
    struct dataset_batch batch;
    struct error err;
    CHECK_OK(dataset_batch_read(&batch, &dataset, &dataset.train, 7, 3, &err), &err);
    CHECK(shape_equal(&batch.feeds[0].shape, &SHAPE(3, 2, 1, 1)));
    CHECK_INT(tensor_i32(&batch.feeds[1])[2], 9);
    dataset_batch_release(&batch);
    dataset_close(&dataset);
}

/* --- examples that are made when asked for, and changed on the way --- */

static const void *failing_at(const struct dataset_examples *examples, int column, int64_t row,
                              void *scratch, struct error *err)
{
    (void)examples;
    if (row == 7)
        return fail_null(err, DATA_LOSS, "example 7 is damaged");
    memset(scratch, (int)row, column ? 1 : 2);
    return scratch;
}

static void failing_free(struct dataset_examples *examples)
{
    (void)examples;
}

/* The batches before it come; then the error, however often one asks. */
TEST(input_ends_at_an_example_that_cannot_be_had)
{
    struct dataset dataset = make_dataset(10);
    struct dataset_examples failing = {.count = 10, .at = failing_at, .free = failing_free};
    struct dataset_part part = {.count = 10, .examples = &failing};
    const struct input_options options = {
        .dataset = &dataset, .part = &part, .batch_size = 3, .shuffle = 0};
    struct error err;
    struct input *input = input_start(&options, &err);
    CHECK_OK(input, &err);
    for (int i = 0; i < 2; i++) {
        struct dataset_batch *batch = input_take(input, &err);
        CHECK_OK(batch, &err);
        CHECK_INT(tensor_i32(&batch->feeds[1])[2], 3 * i + 2);
        input_give_back(input, batch);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(input_take(input, &err), &err, DATA_LOSS);
        CHECK_TEXT(err.text, "example 7 is damaged");
    }
    input_stop(input);
    dataset_close(&dataset);
}

static void number_run(const struct dataset_transform *transform,
                       const struct dataset_column *column, const void *from, void *to,
                       int64_t position)
{
    CHECK(shape_equal(&transform->shape, &SHAPE(3)));
    CHECK(shape_equal(&column->shape, &SHAPE(2, 1, 1)));
    ((float *)to)[0] = (float)position;
    ((float *)to)[1] = ((const uint8_t *)from)[0];
    ((float *)to)[2] = ((const uint8_t *)from)[1];
}

/* A transform sees the bytes as stored and the position in the run, also after a resume. */
TEST(input_transforms_by_position)
{
    struct dataset dataset = make_dataset(10);
    struct dataset_transform transform = {.shape = SHAPE(3), .run = number_run};
    dataset.transforms[0] = &transform;
    ((struct model_feature *)dataset.feeds.data.features)->shape = transform.shape;
    for (int64_t position = 0; position < 40; position += 4) {
        const struct input_options options = {.dataset = &dataset,
                                              .part = &dataset.train,
                                              .batch_size = 4,
                                              .shuffle = -1,
                                              .position = position};
        struct error err;
        struct input *input = input_start(&options, &err);
        CHECK_OK(input, &err);
        struct dataset_batch *batch = input_take(input, &err);
        CHECK_OK(batch, &err);
        for (int row = 0; row < 4; row++) {
            const float *example = tensor_f32(&batch->feeds[0]) + 3 * row;
            CHECK(example[0] == (float)(position + row));
            CHECK(example[1] == (float)tensor_i32(&batch->feeds[1])[row]);
            CHECK(example[2] == 255);
        }
        input_give_back(input, batch);
        input_stop(input);
    }
    dataset.transforms[0] = NULL;
    dataset_close(&dataset);
}
