/* input.c - the input thread: examples gathered, scaled and batched ahead of the trainer. */

#include "runtime/train/input.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "runtime/train/shuffle.h"

#define INPUT_BATCHES 4
#define INPUT_WAIT_MS 1000

struct input {
    struct input_options options;
    struct input_batch batches[INPUT_BATCHES];
    struct mailbox *empty;
    struct mailbox *full;
    pthread_t thread;
    bool started;

    /* of the input thread */
    int32_t *order;
    int64_t epoch; /* that `order` is for */
    int64_t position;
};

/* --- batches --- */

static bool batch_init(struct input_batch *batch, const struct shape *image, int64_t count,
                       struct error *err)
{
    struct shape images = {.rank = image->rank + 1, .dims = {count}};
    memcpy(images.dims + 1, image->dims, (size_t)image->rank * sizeof(*images.dims));
    *batch = (struct input_batch){0};
    if (!tensor_init(&batch->feeds[0], F32, &images, err))
        return false;
    if (tensor_init(&batch->feeds[1], I32, &SHAPE(count), err))
        return true;
    tensor_release(&batch->feeds[0]);
    return false;
}

void input_batch_release(struct input_batch *batch)
{
    tensor_release(&batch->feeds[0]);
    tensor_release(&batch->feeds[1]);
}

static void put_example(const struct dataset_part *part, int64_t pixels, int64_t example,
                        struct input_batch *batch, int64_t row)
{
    const uint8_t *source = part->images + example * pixels;
    float *target = tensor_f32_mut(&batch->feeds[0]) + row * pixels;
    for (int64_t i = 0; i < pixels; i++)
        target[i] = (float)source[i] * (1.0f / 255);
    ((int32_t *)batch->feeds[1].data)[row] = part->labels[example];
}

bool input_read(const struct dataset_part *part, const struct shape *shape, int64_t first,
                int64_t count, struct input_batch *batch, struct error *err)
{
    assert(first >= 0 && first + count <= part->count);
    if (!batch_init(batch, shape, count, err))
        return false;
    for (int64_t i = 0; i < count; i++)
        put_example(part, shape_count(shape), first + i, batch, i);
    return true;
}

/* --- the thread --- */

static void fill(struct input *input, struct input_batch *batch)
{
    const struct input_options *options = &input->options;
    int64_t pixels = shape_count(&options->shape);
    for (int64_t row = 0; row < options->batch_size; row++) {
        int64_t epoch = input->position / options->part->count;
        if (epoch != input->epoch) {
            shuffle_order(options->seed, epoch, options->shuffle, input->order,
                          options->part->count);
            input->epoch = epoch;
        }
        int64_t example = input->order[input->position % options->part->count];
        put_example(options->part, pixels, example, batch, row);
        input->position++;
    }
}

static void *input_main(void *arg)
{
    struct input *input = arg;
    while (!mailbox_closed(input->empty)) {
        struct input_batch *batch = mailbox_take(input->empty, INPUT_WAIT_MS);
        if (!batch)
            continue;
        fill(input, batch);
        /* There is room for every batch, so this fails only when all is over. */
        if (!mailbox_post(input->full, batch))
            break;
    }
    return NULL;
}

struct input *input_start(const struct input_options *options, struct error *err)
{
    assert(options->part->count > 0);
    struct input *input = alloc_bytes(sizeof(*input));
    input->options = *options;
    input->position = options->position;
    input->epoch = -1;
    input->order = alloc_array((size_t)options->part->count, sizeof(*input->order));
    input->empty = mailbox_new(INPUT_BATCHES);
    input->full = mailbox_new(INPUT_BATCHES);
    for (int i = 0; i < INPUT_BATCHES; i++) {
        if (!batch_init(&input->batches[i], &options->shape, options->batch_size, err))
            goto failed;
        bool posted = mailbox_post(input->empty, &input->batches[i]);
        assert(posted);
    }
    if (pthread_create(&input->thread, NULL, input_main, input)) {
        fail(err, EXHAUSTED, "cannot start the input thread");
        goto failed;
    }
    input->started = true;
    return input;
failed:
    input_stop(input);
    return NULL;
}

struct input_batch *input_take(struct input *input)
{
    struct input_batch *batch = NULL;
    while (!batch)
        batch = mailbox_take(input->full, INPUT_WAIT_MS);
    return batch;
}

void input_give_back(struct input *input, struct input_batch *batch)
{
    assert(tensor_is_exclusive(&batch->feeds[0])); /* nobody reads what is filled next */
    assert(tensor_is_exclusive(&batch->feeds[1]));
    bool posted = mailbox_post(input->empty, batch);
    assert(posted);
}

void input_stop(struct input *input)
{
    if (!input)
        return;
    mailbox_close(input->empty);
    mailbox_close(input->full);
    if (input->started)
        pthread_join(input->thread, NULL);
    while (mailbox_take(input->empty, 0) || mailbox_take(input->full, 0))
        continue;
    for (int i = 0; i < INPUT_BATCHES; i++)
        input_batch_release(&input->batches[i]);
    mailbox_free(input->empty);
    mailbox_free(input->full);
    free(input->order);
    free(input);
}
