/* input_test.c - the order of examples, and the batches that the input thread makes of them. */

#include "base/alloc.h"
#include "runtime/train/input.h"
#include "runtime/train/shuffle.h"
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

static struct dataset_part make_part(int count, uint8_t *images, uint8_t *labels)
{
    for (int i = 0; i < count; i++) {
        images[2 * i] = (uint8_t)i;
        images[2 * i + 1] = 255;
        labels[i] = (uint8_t)i;
    }
    return (struct dataset_part){images, labels, count};
}

/* Takes `count` batches and appends their labels to `out`. */
static void take_labels(const struct input_options *options, int count, int32_t *out)
{
    struct error err;
    struct input *input = input_start(options, &err);
    CHECK_OK(input, &err);
    for (int i = 0; i < count; i++) {
        struct input_batch *batch = input_take(input);
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

/* Epochs follow without a seam, and starting in the middle gives what was still to come. */
TEST(input_goes_on_from_any_position)
{
    enum { COUNT = 10, BATCH = 4, BATCHES = 12 };
    uint8_t images[2 * COUNT], labels[COUNT];
    struct dataset_part part = make_part(COUNT, images, labels);
    struct input_options options = {
        .part = &part, .shape = SHAPE(2, 1, 1), .batch_size = BATCH, .shuffle = -1, .seed = 5};
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
}

/* Stopping while batches are ready, or none was taken, neither hangs nor leaks. */
TEST(input_stops_at_any_time)
{
    uint8_t images[20], labels[10];
    struct dataset_part part = make_part(10, images, labels);
    const struct input_options options = {
        .part = &part, .shape = SHAPE(2, 1, 1), .batch_size = 3, .shuffle = 4, .seed = 5};
    struct error err;
    for (int i = 0; i < 20; i++) {
        struct input *input = input_start(&options, &err);
        CHECK_OK(input, &err);
        if (i % 2)
            input_give_back(input, input_take(input));
        input_stop(input);
    }
    input_stop(NULL);
}

TEST(input_reads_in_order)
{
    uint8_t images[20], labels[10];
    struct dataset_part part = make_part(10, images, labels);
    struct input_batch batch;
    struct error err;
    CHECK_OK(input_read(&part, &SHAPE(2, 1, 1), 7, 3, &batch, &err), &err);
    CHECK(shape_equal(&batch.feeds[0].shape, &SHAPE(3, 2, 1, 1)));
    CHECK_INT(tensor_i32(&batch.feeds[1])[2], 9);
    input_batch_release(&batch);
}
