/* queue_test.c - queues: order, waiting, closing and cancelling, alone and from many threads.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "kernels/state/queue.h"
#include "runtime/cancel.h"
#include "tests/unit/test.h"

static struct error err;

static const int types_i64[] = {I64};
static const struct shape scalar[] = {{.rank = 0}};

static struct queue *queue_new(enum queue_kind kind, int64_t capacity, int64_t stay)
{
    struct queue *queue = kernel_queue_new(&(struct queue_spec){.kind = kind,
                                                                .name = "q",
                                                                .components = 1,
                                                                .types = types_i64,
                                                                .shapes = scalar,
                                                                .capacity = capacity,
                                                                .min_after_dequeue = stay,
                                                                .seed = 1},
                                           &err);
    CHECK(queue);
    return queue;
}

static void queue_unref(struct queue *queue)
{
    resource_unref(kernel_queue_resource(queue));
}

/* --- the end of an attempt --- */

struct end {
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t told;
    int count; /* how often it was told */
    int code;
    int64_t values[64];
    int values_count;
};

static struct end *end_new(void)
{
    struct end *end = alloc_bytes(sizeof(*end));
    pthread_mutex_init(&end->lock, NULL);
    pthread_cond_init(&end->told, NULL);
    return end;
}

static void end_free(struct end *end)
{
    pthread_mutex_destroy(&end->lock);
    pthread_cond_destroy(&end->told);
    free(end);
}

static void on_end(void *arg, struct tensor *tuple, const struct error *error)
{
    struct end *end = arg;
    pthread_mutex_lock(&end->lock);
    end->count++;
    end->code = error ? (int)error->code : OK;
    for (int64_t i = 0; tuple && i < tuple[0].count && i < 64; i++)
        end->values[end->values_count++] = tensor_i64(&tuple[0])[i];
    pthread_cond_signal(&end->told);
    pthread_mutex_unlock(&end->lock);
}

static int code_of(struct end *end)
{
    pthread_mutex_lock(&end->lock);
    while (!end->count)
        pthread_cond_wait(&end->told, &end->lock);
    CHECK_INT(end->count, 1);
    int code = end->code;
    pthread_mutex_unlock(&end->lock);
    return code;
}

static bool ended(struct end *end)
{
    pthread_mutex_lock(&end->lock);
    bool is = end->count > 0;
    pthread_mutex_unlock(&end->lock);
    return is;
}

/* --- short forms; those that wait return before the end --- */

static struct end *put(struct queue *queue, int64_t first, int64_t count, struct cancel *cancel)
{
    struct end *end = end_new();
    struct tensor batch;
    const struct tensor *tuple[] = {&batch};
    struct shape shape = count < 0 ? SHAPE_SCALAR : SHAPE(count);
    CHECK_OK(tensor_init(&batch, I64, &shape, &err), &err);
    for (int64_t i = 0; i < batch.count; i++)
        ((int64_t *)batch.data)[i] = first + i;
    kernel_queue_put(queue, tuple, count >= 0, cancel, on_end, end);
    tensor_release(&batch);
    return end;
}

static struct end *take(struct queue *queue, int64_t count, bool up_to, struct cancel *cancel)
{
    struct end *end = end_new();
    if (count < 0)
        kernel_queue_take(queue, cancel, on_end, end);
    else
        kernel_queue_take_many(queue, count, up_to, cancel, on_end, end);
    return end;
}

static struct end *shut(struct queue *queue, bool cancel_pending)
{
    struct end *end = end_new();
    kernel_queue_shut(queue, cancel_pending, NULL, on_end, end);
    return end;
}

static void expect(struct end *end, int code, int count, int64_t first)
{
    CHECK_INT(code_of(end), code);
    CHECK_INT(end->values_count, count);
    for (int i = 0; i < count; i++)
        CHECK_INT(end->values[i], first + i);
    end_free(end);
}

static void expect_waits(struct end *end)
{
    CHECK(!ended(end));
}

/* --- one thread --- */

TEST(what_is_put_first_is_taken_first)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 40, 0);
    for (int i = 0; i < 3; i++) { /* the ring turns and grows */
        expect(put(queue, 0, 25, NULL), OK, 0, 0);
        expect(take(queue, 20, false, NULL), OK, 20, 0);
        expect(take(queue, -1, false, NULL), OK, 1, 20);
        expect(take(queue, 4, true, NULL), OK, 4, 21);
    }
    CHECK_INT(kernel_queue_rows(queue), 0);
    queue_unref(queue);
}

TEST(a_batch_larger_than_the_queue_goes_in_bit_by_bit)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 2, 0);
    struct end *all = put(queue, 0, 5, NULL), *next = put(queue, 5, -1, NULL);
    expect_waits(all);
    CHECK_INT(kernel_queue_rows(queue), 2);
    expect(take(queue, 3, false, NULL), OK, 3, 0);
    expect(all, OK, 0, 0);
    expect_waits(next);
    struct end *rest = take(queue, 3, false, NULL);
    expect(rest, OK, 3, 3);
    expect(next, OK, 0, 0);
    queue_unref(queue);
}

TEST(who_waits_is_served_in_order)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 10, 0);
    struct end *first = take(queue, 3, false, NULL), *second = take(queue, -1, false, NULL);
    expect(put(queue, 0, 2, NULL), OK, 0, 0);
    expect_waits(first);
    expect_waits(second); /* though there would be enough for it */
    expect(put(queue, 2, 2, NULL), OK, 0, 0);
    expect(first, OK, 3, 0);
    expect(second, OK, 1, 3);
    queue_unref(queue);
}

TEST(closing_lets_who_waits_to_put_finish)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 1, 0);
    expect(put(queue, 0, -1, NULL), OK, 0, 0);
    struct end *pending = put(queue, 1, -1, NULL), *closed = shut(queue, false);
    struct end *late = put(queue, 2, -1, NULL);
    expect_waits(closed);
    CHECK(!kernel_queue_is_shut(queue));
    expect(take(queue, -1, false, NULL), OK, 1, 0);
    expect(pending, OK, 0, 0);
    expect(closed, OK, 0, 0);
    expect(late, CANCELLED, 0, 0);
    expect(take(queue, -1, false, NULL), OK, 1, 1);
    expect(take(queue, -1, false, NULL), OUT_OF_RANGE, 0, 0);
    expect(shut(queue, false), CANCELLED, 0, 0);
    expect(shut(queue, true), OK, 0, 0);
    queue_unref(queue);
}

TEST(closing_at_once_cancels_who_waits_to_put)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 1, 0);
    expect(put(queue, 0, -1, NULL), OK, 0, 0);
    struct end *pending = put(queue, 1, 3, NULL), *closing = shut(queue, false);
    expect(shut(queue, true), OK, 0, 0);
    expect(pending, CANCELLED, 0, 0);
    expect(closing, CANCELLED, 0, 0);
    expect(take(queue, -1, false, NULL), OK, 1, 0);
    queue_unref(queue);
}

TEST(a_closed_queue_puts_back_what_was_too_little)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 10, 0);
    expect(put(queue, 0, 3, NULL), OK, 0, 0);
    struct end *many = take(queue, 5, false, NULL), *some = take(queue, 5, true, NULL);
    CHECK_INT(kernel_queue_rows(queue), 0);
    expect(shut(queue, false), OK, 0, 0);
    expect(many, OUT_OF_RANGE, 0, 0);
    expect(some, OK, 3, 0);
    expect(take(queue, 1, true, NULL), OUT_OF_RANGE, 0, 0);
    expect(take(queue, 0, true, NULL), OK, 0, 0);
    expect(put(queue, 0, 0, NULL), OK, 0, 0);
    queue_unref(queue);
}

TEST(some_stay_in_a_shuffled_queue_until_it_is_closed)
{
    struct queue *queue = queue_new(QUEUE_SHUFFLE, 100, 2);
    expect(put(queue, 0, 3, NULL), OK, 0, 0);
    struct end *one = take(queue, -1, false, NULL), *two = take(queue, 2, false, NULL);
    CHECK_INT(code_of(one), OK);
    expect_waits(two);
    expect(shut(queue, false), OK, 0, 0);
    CHECK_INT(code_of(two), OK);
    CHECK_INT(one->values[0] + two->values[0] + two->values[1], 0 + 1 + 2);
    end_free(one);
    end_free(two);
    queue_unref(queue);
}

TEST(the_least_priority_is_taken_first)
{
    struct queue *queue = queue_new(QUEUE_PRIORITY, 100, 0);
    for (int i = 0; i < 50; i++)
        expect(put(queue, i * 37 % 50, -1, NULL), OK, 0, 0);
    expect(take(queue, 50, false, NULL), OK, 50, 0);
    expect(put(queue, 3, -1, NULL), OK, 0, 0);
    expect(shut(queue, false), OK, 0, 0);
    expect(take(queue, 2, false, NULL), OUT_OF_RANGE, 0, 0);
    CHECK_INT(kernel_queue_rows(queue), 1);
    expect(take(queue, 2, true, NULL), OUT_OF_RANGE, 0, 0);
    CHECK_INT(kernel_queue_rows(queue), 0); /* as TensorFlow has it */
    queue_unref(queue);
}

static void keep(void *arg, struct tensor *tuple, const struct error *error)
{
    CHECK(!error);
    *(struct tensor *)arg = tuple[0];
    tuple[0] = (struct tensor){0};
}

TEST(elements_of_different_sizes_are_padded)
{
    const int types[] = {F32};
    const struct shape shapes[] = {{.rank = 2, .dims = {-1, 2}}};
    struct queue *queue = kernel_queue_new(&(struct queue_spec){.kind = QUEUE_PADDING,
                                                                .name = "q",
                                                                .components = 1,
                                                                .types = types,
                                                                .shapes = shapes,
                                                                .capacity = 5},
                                           &err);
    for (int rows = 1; rows <= 2; rows++) {
        struct tensor tensor;
        const struct tensor *tuple[] = {&tensor};
        CHECK_OK(tensor_init(&tensor, F32, &SHAPE(rows, 2), &err), &err);
        for (int64_t i = 0; i < tensor.count; i++)
            tensor_f32_mut(&tensor)[i] = (float)(rows * 10 + i);
        struct end *end = end_new();
        kernel_queue_put(queue, tuple, false, NULL, on_end, end);
        expect(end, OK, 0, 0);
        tensor_release(&tensor);
    }
    struct tensor got = {0};
    kernel_queue_take_many(queue, 2, false, NULL, keep, &got);
    static const float want[] = {10, 11, 0, 0, 20, 21, 22, 23};
    CHECK(shape_equal(&got.shape, &SHAPE(2, 2, 2)));
    for (int i = 0; i < 8; i++)
        CHECK(tensor_f32(&got)[i] == want[i]);
    tensor_release(&got);
    queue_unref(queue);
}

/* --- cancelling --- */

TEST(a_cancelled_attempt_leaves_the_line)
{
    struct queue *queue = queue_new(QUEUE_FIFO, 1, 0);
    struct cancel *cancel = cancel_new(), *other = cancel_new();
    struct end *first = take(queue, -1, false, cancel), *second = take(queue, -1, false, other);
    cancel_now(cancel);
    expect(first, CANCELLED, 0, 0);
    expect_waits(second);
    expect(put(queue, 7, -1, NULL), OK, 0, 0);
    expect(second, OK, 1, 7);
    expect(take(queue, -1, false, cancel), CANCELLED, 0, 0); /* too late for this run */
    cancel_free(cancel);
    cancel_free(other);
    queue_unref(queue);
}

/* --- many threads --- */

enum { PRODUCERS = 4, CONSUMERS = 4, EACH = 400 };

struct work {
    struct queue *queue;
    int64_t first;
    int64_t sum;
    int64_t count;
    bool some; /* takes several now and then */
};

static void *produce_main(void *arg)
{
    struct work *work = arg;
    for (int i = 0; i < EACH; i += 5) {
        struct end *end = put(work->queue, work->first + i, 5, NULL);
        CHECK_INT(code_of(end), OK);
        end_free(end);
    }
    return NULL;
}

static void *consume_main(void *arg)
{
    struct work *work = arg;
    for (int turn = 0;; turn++) {
        struct end *end = take(work->queue, work->some && turn % 2 ? 3 : -1, true, NULL);
        int code = code_of(end);
        for (int i = 0; i < end->values_count; i++)
            work->sum += end->values[i];
        work->count += end->values_count;
        end_free(end);
        if (code != OK) {
            CHECK_INT(code, OUT_OF_RANGE);
            return NULL;
        }
    }
}

static void run_threads(enum queue_kind kind)
{
    struct queue *queue = queue_new(kind, 7, kind == QUEUE_SHUFFLE ? 3 : 0);
    struct work work[PRODUCERS + CONSUMERS] = {0};
    pthread_t threads[PRODUCERS + CONSUMERS];
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        work[i] = (struct work){
            .queue = queue, .first = (int64_t)i * EACH, .some = kind != QUEUE_PRIORITY};
        pthread_create(&threads[i], NULL, i < PRODUCERS ? produce_main : consume_main,
                       &work[i]);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    expect(shut(queue, false), OK, 0, 0);
    int64_t sum = 0, count = 0, all = PRODUCERS * EACH;
    for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
        pthread_join(threads[i], NULL);
        sum += work[i].sum;
        count += work[i].count;
    }
    CHECK_INT(count, all);
    CHECK_INT(sum, all * (all - 1) / 2);
    queue_unref(queue);
}

TEST(nothing_is_lost_or_doubled_between_threads)
{
    run_threads(QUEUE_FIFO);
    run_threads(QUEUE_SHUFFLE);
    run_threads(QUEUE_PRIORITY);
}

struct race {
    struct queue *queue;
    struct cancel *cancel;
};

static void *cancel_main(void *arg)
{
    cancel_now(((struct race *)arg)->cancel);
    return NULL;
}

static void *put_main(void *arg)
{
    struct race *race = arg;
    struct end *end = put(race->queue, 1, -1, NULL);
    CHECK_INT(code_of(end), OK);
    end_free(end);
    return NULL;
}

/* Either the row is taken or it stays: never both, never neither. */
TEST(cancelling_while_a_row_comes_ends_once)
{
    for (int i = 0; i < 200; i++) {
        struct race race = {queue_new(QUEUE_FIFO, 4, 0), cancel_new()};
        struct end *taken = take(race.queue, -1, false, race.cancel);
        pthread_t cancels, puts;
        pthread_create(&puts, NULL, put_main, &race);
        pthread_create(&cancels, NULL, cancel_main, &race);
        int code = code_of(taken);
        pthread_join(cancels, NULL);
        pthread_join(puts, NULL);
        CHECK_INT(kernel_queue_rows(race.queue), code == OK ? 0 : 1);
        CHECK(code == OK || code == CANCELLED);
        CHECK_INT(taken->count, 1);
        end_free(taken);
        cancel_free(race.cancel);
        queue_unref(race.queue);
    }
}
