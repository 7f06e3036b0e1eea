/* input.c - the input threads: examples gathered and batched ahead of the trainer. */

#include "runtime/train/input.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/dataset/shuffle.h"
#include "runtime/machine.h"

#define INPUT_BATCHES 3 /* beside those that threads are at */
#define INPUT_THREADS_MAX 8

enum state { EMPTY, MAKING, MADE, LENT };

struct made {
    struct dataset_batch batch; /* first: what is lent */
    enum state state;
    int64_t number;    /* of the batch, from 0 */
    int64_t position;  /* of its first example */
    int32_t *examples; /* of each row */
    bool failed;       /* it is no batch, but: */
    struct error error;
};

struct input {
    struct input_options options;
    pthread_t threads[INPUT_THREADS_MAX];
    int threads_count;

    pthread_mutex_t lock; /* guards what follows, save a batch that is being made or lent */
    pthread_cond_t changed;
    struct made *batches;
    int batches_count;
    int64_t begun, taken; /* batches */
    int64_t position;     /* of the next batch */
    int32_t *order;
    int64_t epoch; /* that `order` is for */
    bool stopped;
};

/* --- the threads --- */

/* Which examples the next batch has. */
static void plan_locked(struct input *input, struct made *made)
{
    const struct input_options *options = &input->options;
    int64_t count = options->part->count;
    made->state = MAKING;
    made->number = input->begun++;
    made->position = input->position;
    for (int64_t row = 0; row < options->batch_size; row++, input->position++) {
        int64_t epoch = input->position / count;
        if (epoch != input->epoch) {
            shuffle_order(options->seed, epoch, options->shuffle, input->order, count);
            input->epoch = epoch;
        }
        made->examples[row] = input->order[input->position % count];
    }
}

/* What another task still has on its way stays as it is: the batch gets other memory. */
static bool renew(struct dataset_batch *batch, struct error *err)
{
    for (int i = 0; i < batch->feeds_count; i++) {
        struct tensor *feed = &batch->feeds[i], other;
        if (tensor_is_exclusive(feed))
            continue;
        if (!tensor_init(&other, feed->dtype, &feed->shape, err))
            return false;
        tensor_release(feed);
        *feed = other;
    }
    return true;
}

static bool fill(const struct input_options *options, struct made *made)
{
    if (!renew(&made->batch, &made->error))
        return false;
    for (int64_t row = 0; row < options->batch_size; row++) {
        if (!dataset_batch_put(&made->batch, row, options->dataset, options->part,
                               made->examples[row], made->position + row, &made->error))
            return false;
    }
    return true;
}

static struct made *find_locked(struct input *input, enum state state, int64_t number)
{
    for (int i = 0; i < input->batches_count; i++) {
        struct made *made = &input->batches[i];
        if (made->state == state && (state == EMPTY || made->number == number))
            return made;
    }
    return NULL;
}

static void *input_main(void *arg)
{
    struct input *input = arg;
    bool ok = true;
    pthread_mutex_lock(&input->lock);
    while (ok && !input->stopped) {
        struct made *made = find_locked(input, EMPTY, 0);
        if (!made) {
            pthread_cond_wait(&input->changed, &input->lock);
            continue;
        }
        plan_locked(input, made);
        pthread_mutex_unlock(&input->lock);
        ok = fill(&input->options, made);
        pthread_mutex_lock(&input->lock);
        made->failed = !ok;
        made->state = MADE;
        pthread_cond_broadcast(&input->changed);
    }
    pthread_mutex_unlock(&input->lock);
    return NULL;
}

/* --- the trainer's side --- */

static bool add_batch(struct input *input, struct error *err)
{
    const struct input_options *options = &input->options;
    struct made *made = &input->batches[input->batches_count++];
    made->examples = alloc_array((size_t)options->batch_size, sizeof(*made->examples));
    return dataset_batch_init(&made->batch, options->dataset, options->batch_size, err);
}

/* What lies in memory one thread gathers faster than several; what is read and decoded they
 * share. */
static int threads_wanted(const struct input_options *options)
{
    int processors = machine_processors();
    if (!options->part->examples->is_made)
        return 1;
    return processors < INPUT_THREADS_MAX ? processors : INPUT_THREADS_MAX;
}

struct input *input_start(const struct input_options *options, struct error *err)
{
    assert(options->part->count > 0);
    struct input *input = alloc_bytes(sizeof(*input));
    int threads = threads_wanted(options);
    input->options = *options;
    input->position = options->position;
    input->epoch = -1;
    input->order = alloc_array((size_t)options->part->count, sizeof(*input->order));
    pthread_mutex_init(&input->lock, NULL);
    pthread_cond_init(&input->changed, NULL);
    bool ok = true;
    int batches = INPUT_BATCHES + threads + (options->takers ? options->takers - 1 : 0);
    input->batches = alloc_array((size_t)batches, sizeof(*input->batches));
    while (ok && input->batches_count < batches)
        ok = add_batch(input, err);
    while (ok && input->threads_count < threads &&
           !pthread_create(&input->threads[input->threads_count], NULL, input_main, input))
        input->threads_count++;
    if (ok && !input->threads_count)
        ok = fail(err, EXHAUSTED, "cannot start the input thread");
    if (ok)
        return input;
    input_stop(input);
    return NULL;
}

struct dataset_batch *input_take(struct input *input, struct error *err)
{
    struct made *made;
    pthread_mutex_lock(&input->lock);
    while (!(made = find_locked(input, MADE, input->taken)))
        pthread_cond_wait(&input->changed, &input->lock);
    bool failed = made->failed; /* whoever asks again gets the same */
    if (!failed) {
        made->state = LENT;
        input->taken++;
    }
    pthread_mutex_unlock(&input->lock);
    if (!failed)
        return &made->batch;
    *err = made->error;
    return NULL;
}

void input_give_back(struct input *input, struct dataset_batch *batch)
{
    pthread_mutex_lock(&input->lock);
    assert(((struct made *)batch)->state == LENT);
    ((struct made *)batch)->state = EMPTY;
    pthread_cond_broadcast(&input->changed);
    pthread_mutex_unlock(&input->lock);
}

void input_stop(struct input *input)
{
    if (!input)
        return;
    pthread_mutex_lock(&input->lock);
    input->stopped = true;
    pthread_cond_broadcast(&input->changed);
    pthread_mutex_unlock(&input->lock);
    for (int i = 0; i < input->threads_count; i++)
        pthread_join(input->threads[i], NULL);
    for (int i = 0; i < input->batches_count; i++) {
        dataset_batch_release(&input->batches[i].batch);
        free(input->batches[i].examples);
    }
    pthread_cond_destroy(&input->changed);
    pthread_mutex_destroy(&input->lock);
    free(input->batches);
    free(input->order);
    free(input);
}
