/* input.c - the input thread: examples gathered and batched ahead of the trainer. */

#include "runtime/train/input.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/mailbox.h"
#include "runtime/dataset/shuffle.h"

#define INPUT_BATCHES 4
#define INPUT_WAIT_MS 1000

struct made {
    struct dataset_batch batch; /* first: what is lent */
    bool failed;                /* it is no batch, but: */
    struct error error;
};

struct input {
    struct input_options options;
    struct made batches[INPUT_BATCHES];
    struct mailbox *empty;
    struct mailbox *full;
    pthread_t thread;
    bool started;

    /* of the input thread */
    int32_t *order;
    int64_t epoch; /* that `order` is for */
    int64_t position;
};

static bool fill(struct input *input, struct dataset_batch *batch, struct error *err)
{
    const struct input_options *options = &input->options;
    int64_t count = options->part->count;
    for (int64_t row = 0; row < options->batch_size; row++) {
        int64_t epoch = input->position / count;
        if (epoch != input->epoch) {
            shuffle_order(options->seed, epoch, options->shuffle, input->order, count);
            input->epoch = epoch;
        }
        int64_t example = input->order[input->position % count];
        if (!dataset_batch_put(batch, row, options->dataset, options->part, example,
                               input->position, err))
            return false;
        input->position++;
    }
    return true;
}

static void *input_main(void *arg)
{
    struct input *input = arg;
    bool ok = true;
    while (ok && !mailbox_closed(input->empty)) {
        struct made *made = mailbox_take(input->empty, INPUT_WAIT_MS);
        if (!made)
            continue;
        ok = fill(input, &made->batch, &made->error);
        made->failed = !ok;
        /* There is room for every batch, so this fails only when all is over. */
        if (!mailbox_post(input->full, made))
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
        if (!dataset_batch_init(&input->batches[i].batch, options->dataset, options->batch_size,
                                err))
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

struct dataset_batch *input_take(struct input *input, struct error *err)
{
    struct made *made = NULL;
    while (!made)
        made = mailbox_take(input->full, INPUT_WAIT_MS);
    if (!made->failed)
        return &made->batch;
    *err = made->error;
    bool posted = mailbox_post(input->full, made); /* whoever asks again gets the same */
    assert(posted);
    return NULL;
}

void input_give_back(struct input *input, struct dataset_batch *batch)
{
    for (int i = 0; i < batch->feeds_count; i++)
        assert(tensor_is_exclusive(&batch->feeds[i])); /* nobody reads what is filled next */
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
        dataset_batch_release(&input->batches[i].batch);
    mailbox_free(input->empty);
    mailbox_free(input->full);
    free(input->order);
    free(input);
}
