/*
 * waiting_test.c - runs of a session that wait for each other: in queues, for sums of
 * gradients, at readers; and that are ended while they wait.
 */

#include <pthread.h>
#include <unistd.h>

#include "kernels/state/accumulator.h"
#include "runtime/cancel.h"
#include "runtime/turn.h"
#include "tests/unit/kernels/world.h"

static struct error err;
static const struct session_options two_threads = {.threads = 2};

static const int one_i64[] = {I64};
static const int one_string[] = {STRING};

/* q: a queue of scalars; x and n are fed; enqueue, many, dequeue, some, close use it. */
static void add_queue(struct world *world, const int *types, int64_t capacity)
{
    struct builder *b = &world->b;
    struct shape scalar = SHAPE_SCALAR;
    struct edge q = builder_add(b, "FIFOQueueV2", "q", NO_INPUTS,
                                ATTRS(attr_type_list("component_types", types, 1),
                                      ((struct attr){.name = "shapes",
                                                     .kind = ATTR_SHAPE,
                                                     .is_list = true,
                                                     .count = 1,
                                                     .shapes = &scalar}),
                                      attr_int("capacity", capacity)));
    struct edge x =
        builder_add(b, "Placeholder", "x", NO_INPUTS, ATTRS(attr_type("dtype", types[0])));
    struct edge n =
        builder_add(b, "Placeholder", "n", NO_INPUTS, ATTRS(attr_type("dtype", I32)));
    builder_add(b, "QueueEnqueueV2", "enqueue", INPUTS(q, x),
                ATTRS(attr_type_list("Tcomponents", types, 1)));
    builder_add(b, "QueueEnqueueManyV2", "many", INPUTS(q, x),
                ATTRS(attr_type_list("Tcomponents", types, 1)));
    builder_add(b, "QueueDequeueV2", "dequeue", INPUTS(q),
                ATTRS(attr_type_list("component_types", types, 1)));
    builder_add(b, "QueueDequeueUpToV2", "some", INPUTS(q, n),
                ATTRS(attr_type_list("component_types", types, 1)));
    builder_add(b, "QueueCloseV2", "close", INPUTS(q), NO_ATTRS);
}

/* Runs `target` with one feed (NULL: none); returns the code. */
static int run_target(struct session *session, const char *feed, const struct tensor *value,
                      const char *target)
{
    struct error own;
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = value,
                                    .feeds_count = feed ? 1 : 0,
                                    .targets = &target,
                                    .targets_count = 1};
    return session_run(session, &run, NULL, &own) ? OK : (int)own.code;
}

static int put_number(struct session *session, const char *target, int64_t first, int64_t count)
{
    struct tensor value;
    struct error own;
    CHECK_OK(tensor_init(&value, I64, count < 0 ? &SHAPE_SCALAR : &SHAPE(count), &own), &own);
    for (int64_t i = 0; i < value.count; i++)
        ((int64_t *)value.data)[i] = first + i;
    int code = run_target(session, "x", &value, target);
    tensor_release(&value);
    return code;
}

/* --- many runs at once --- */

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 60 };

struct worker {
    pthread_t thread;
    struct session *session;
    int64_t first;
    int64_t sum;
    int64_t count;
    int code;
    struct cancel *cancel;
    int64_t timeout_ms;
};

static void *produce_main(void *arg)
{
    struct worker *worker = arg;
    for (int64_t i = 0; i < EACH; i += 3) {
        int64_t at = worker->first + i;
        CHECK_INT(put_number(worker->session, "many", at, 2), OK);
        CHECK_INT(put_number(worker->session, "enqueue", at + 2, -1), OK);
    }
    return NULL;
}

/* Fetches until it fails, adding up. */
static void *consume_main(void *arg)
{
    struct worker *worker = arg;
    const char *fetch = worker->first % 2 ? "dequeue" : "some", *feed = "n";
    struct tensor n;
    struct error own;
    CHECK_OK(tensor_init_scalar(&n, I32, 2, &own), &own);
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = &n,
                                    .feeds_count = fetch[0] == 's',
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .cancel = worker->cancel,
                                    .timeout_ms = worker->timeout_ms};
    struct tensor got;
    while (session_run(worker->session, &run, &got, &own)) {
        worker->count += got.count;
        for (int64_t i = 0; i < got.count; i++)
            worker->sum += tensor_i64(&got)[i];
        tensor_release(&got);
    }
    worker->code = (int)own.code;
    tensor_release(&n);
    return NULL;
}

static void start(struct worker *worker, void *(*main)(void *arg))
{
    pthread_create(&worker->thread, NULL, main, worker);
}

TEST(runs_that_put_and_runs_that_take_overlap)
{
    struct world *world = world_new(&two_threads);
    add_queue(world, one_i64, 4);
    world_begin(world);
    struct worker workers[PRODUCERS + CONSUMERS] = {0};
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        workers[i].session = world->session;
        workers[i].first = i < PRODUCERS ? (int64_t)i * EACH : i;
        start(&workers[i], i < PRODUCERS ? produce_main : consume_main);
    }
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(workers[i].thread, NULL);
    CHECK_INT(run_target(world->session, NULL, NULL, "close"), OK);
    int64_t sum = 0, count = 0, all = PRODUCERS * EACH;
    for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].code, OUT_OF_RANGE);
        sum += workers[i].sum;
        count += workers[i].count;
    }
    CHECK_INT(count, all);
    CHECK_INT(sum, all * (all - 1) / 2);
    CHECK_INT(put_number(world->session, "enqueue", 1, -1), CANCELLED);
    CHECK_INT(run_target(world->session, NULL, NULL, "close"), CANCELLED);
    world_free(world);
}

/* --- ends while waiting --- */

TEST(a_run_that_waits_is_cancelled_or_runs_out_of_time)
{
    struct world *world = world_new(&two_threads);
    add_queue(world, one_i64, 4);
    world_begin(world);
    struct worker cancelled = {.session = world->session, .first = 1, .cancel = cancel_new()};
    struct worker late = {.session = world->session, .timeout_ms = 30};
    start(&cancelled, consume_main);
    start(&late, consume_main);
    pthread_join(late.thread, NULL);
    CHECK_INT(late.code, DEADLINE);
    cancel_now(cancelled.cancel);
    pthread_join(cancelled.thread, NULL);
    CHECK_INT(cancelled.code, CANCELLED);
    cancel_free(cancelled.cancel);

    CHECK_INT(put_number(world->session, "enqueue", 5, -1), OK); /* nobody takes it */
    CHECK_INT(run_target(world->session, NULL, NULL, "dequeue"), OK);
    world_free(world);
}

TEST(closing_a_session_ends_runs_that_wait)
{
    struct world *world = world_new(&two_threads);
    add_queue(world, one_i64, 4);
    world_begin(world);
    struct worker workers[2] = {{.session = world->session, .first = 1},
                                {.session = world->session, .first = 2}};
    start(&workers[0], consume_main);
    start(&workers[1], consume_main);
    usleep(20000); /* so that they wait, most likely; the result is the same if not */
    session_close(world->session);
    for (int i = 0; i < 2; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].code, CANCELLED);
    }
    world_free(world);
}

/* --- sums of gradients --- */

static void *apply_main(void *arg)
{
    struct worker *worker = arg;
    worker->code = run_target(worker->session, NULL, NULL, "apply");
    return NULL;
}

TEST(a_sum_of_gradients_waits_for_enough_of_them)
{
    struct world *world = world_new(&two_threads);
    struct builder *b = &world->b;
    struct shape scalar = SHAPE_SCALAR;
    struct edge h = builder_add(b, "ConditionalAccumulator", "h", NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", &scalar)));
    struct edge step = builder_scalar(b, "step", I64, 0), g = builder_scalar(b, "g", F32, 3);
    builder_add(b, "AccumulatorApplyGradient", "apply", INPUTS(h, step, g), NO_ATTRS);
    builder_add(b, "AccumulatorTakeGradient", "take", INPUTS(h, builder_scalar(b, "k", I32, 3)),
                ATTRS(attr_type("dtype", F32)));
    world_begin(world);
    struct worker workers[3] = {0};
    for (int i = 0; i < 3; i++) {
        workers[i].session = world->session;
        start(&workers[i], apply_main);
    }
    const char *fetch = "take";
    struct tensor average;
    CHECK_OK(session_run(world->session,
                         &(struct session_run){.fetches = &fetch, .fetches_count = 1}, &average,
                         &err),
             &err);
    CHECK(tensor_f32(&average)[0] == 3);
    tensor_release(&average);
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].code, OK);
    }
    world_free(world);
}

/* Adds `gradient`, which is the accumulator's to keep only if nobody else needs it. */
static void add_gradient(struct accumulator *sums, struct tensor *gradient, bool last_use)
{
    const struct tensor *in[] = {NULL, NULL, gradient};
    struct kernel_call call = {
        .in = in, .in_count = 3, .reusable = last_use ? BIT(2) : 0, .threads = 2};
    CHECK_OK(kernel_accumulator_add_dense(sums, &call, false, &err), &err);
    sums->count++;
}

TEST(the_first_gradient_becomes_the_sum)
{
    struct tensor gradients[3], other, mean;
    for (int i = 0; i < ARRAY_LEN(gradients); i++) {
        CHECK_OK(tensor_init(&gradients[i], F32, &SHAPE(2), &err), &err);
        tensor_set_number(&gradients[i], 0, i + 1);
        tensor_set_number(&gradients[i], 1, 10 * (i + 1));
    }
    struct accumulator sums = {.spec = {.dtype = F32, .shape = SHAPE(2), .mean = true}};
    const void *memory = gradients[0].data;
    add_gradient(&sums, &gradients[0], true);
    CHECK(sums.sum.data == memory && !gradients[0].buffer);
    add_gradient(&sums, &gradients[1], true);
    CHECK(tensor_number(&gradients[1], 0) == 2); /* only read */
    CHECK_OK(kernel_accumulator_take_dense(&sums, &mean, &err), &err);
    CHECK(mean.data == memory);
    CHECK(tensor_number(&mean, 0) == 1.5 && tensor_number(&mean, 1) == 15);
    tensor_release(&mean);

    /* One that is read again, and one that another sees, stay as they are. */
    sums.count = 0;
    add_gradient(&sums, &gradients[1], false);
    add_gradient(&sums, &gradients[2], false);
    CHECK(tensor_number(&sums.sum, 0) == 5);
    CHECK(tensor_number(&gradients[1], 0) == 2);
    tensor_release(&sums.sum);
    sums.count = 0;
    tensor_share(&other, &gradients[1]);
    add_gradient(&sums, &gradients[1], true);
    add_gradient(&sums, &gradients[2], true);
    CHECK(tensor_number(&other, 0) == 2);
    tensor_release(&other);
    tensor_release(&sums.sum);
    tensor_release(&gradients[1]);
    tensor_release(&gradients[2]);
}

/* Three gradients of `count` numbers; whether the last is known to be that. */
static void mean_of_three(enum dtype dtype, int64_t count, bool known, struct tensor *mean)
{
    struct accumulator sums = {.spec = {.dtype = dtype, .shape = SHAPE(count), .mean = true}};
    for (int i = 0; i < 3; i++) {
        struct tensor gradient;
        const struct tensor *in[] = {NULL, NULL, &gradient};
        struct kernel_call call = {.in = in, .in_count = 3, .threads = 2};
        CHECK_OK(tensor_init(&gradient, dtype, &SHAPE(count), &err), &err);
        for (int64_t k = 0; k < count; k++)
            tensor_set_number(&gradient, k, (double)((k * 7919 + i * 104729) % 1000) / 7);
        CHECK_OK(kernel_accumulator_add_dense(&sums, &call, known && i == 2, &err), &err);
        tensor_release(&gradient);
        sums.count++;
    }
    CHECK_OK(kernel_accumulator_take_dense(&sums, mean, &err), &err);
}

TEST(a_mean_that_is_waited_for_has_the_same_bits)
{
    const enum dtype dtypes[] = {F32, F64, F16};
    for (int i = 0; i < ARRAY_LEN(dtypes); i++) {
        struct tensor waited, late;
        mean_of_three(dtypes[i], 100003, true, &waited);
        mean_of_three(dtypes[i], 100003, false, &late);
        CHECK(tensor_equal(&waited, &late));
        CHECK(tensor_number(&late, 0) > 0);
        tensor_release(&waited);
        tensor_release(&late);
    }
}

/* Adds one that came from afar in its turn, which is over then. */
static void add_in_turn(struct accumulator *sums)
{
    struct tensor gradient;
    CHECK_OK(tensor_init(&gradient, F32, &SHAPE(TURN_BYTES_MIN / sizeof(float)), &err), &err);
    memset(gradient.data, 0, tensor_bytes(&gradient));
    uint64_t turn = turn_begin(1, tensor_bytes(&gradient));
    turn_give(turn, &gradient);
    add_gradient(sums, &gradient, true);
    CHECK_INT(turn_current(), sums->sum.buffer && gradient.buffer ? turn : 0);
    tensor_release(&gradient);
    CHECK_INT(turn_current(), 0);
}

/* A sum that waits for more holds nobody up, one that is used does. */
TEST(gradients_and_their_sums_take_turns)
{
    struct accumulator sums = {.spec = {.dtype = F32, .shape = SHAPE(-1), .mean = true}};
    struct tensor mean;
    for (int i = 0; i < 3; i++) {
        sums.count = 0;
        add_in_turn(&sums);
        add_in_turn(&sums);
        CHECK_OK(kernel_accumulator_take_dense(&sums, &mean, &err), &err);
        CHECK(turn_current());
        tensor_release(&mean);
        CHECK_INT(turn_current(), 0);
    }
}

/* --- readers --- */

enum { FILES = 6, LINES = 5 };

static void *read_main(void *arg)
{
    struct worker *worker = arg;
    const char *fetch = "read:1";
    struct tensor line;
    struct error own;
    const struct session_run run = {
        .fetches = &fetch, .fetches_count = 1, .timeout_ms = worker->timeout_ms};
    while (session_run(worker->session, &run, &line, &own)) {
        CHECK_INT(tensor_strings(&line)->size, 1);
        worker->sum += tensor_strings(&line)->data[0] - '0';
        worker->count++;
        tensor_release(&line);
    }
    worker->code = (int)own.code;
    return NULL;
}

/* The names come one by one while the readers wait; one of them gives up. */
TEST(runs_share_a_reader_that_waits_for_names)
{
    struct world *world = world_new(&two_threads);
    add_queue(world, one_string, 10);
    struct edge reader =
        builder_add(&world->b, "TextLineReaderV2", "reader", NO_INPUTS, NO_ATTRS);
    struct node *q = graph_find(world->graph, "q");
    builder_add(&world->b, "ReaderReadV2", "read", INPUTS(reader, {q, 0}), NO_ATTRS);
    world_begin(world);
    struct worker gives_up = {.session = world->session, .timeout_ms = 20};
    start(&gives_up, read_main);
    pthread_join(gives_up.thread, NULL);
    CHECK_INT(gives_up.code, DEADLINE);

    struct worker workers[3] = {0};
    for (int i = 0; i < 3; i++) {
        workers[i].session = world->session;
        start(&workers[i], read_main);
    }
    char paths[FILES][32];
    for (int i = 0; i < FILES; i++) {
        char *path = paths[i];
        snprintf(path, sizeof(paths[i]), "/tmp/waiting_test.XXXXXX");
        int fd = mkstemp(path);
        CHECK(fd >= 0);
        static const char lines[] = "1\n2\n3\n4\n5\n";
        CHECK(write(fd, lines, i % 3 ? sizeof(lines) - 1 : 0) >= 0); /* some are empty */
        close(fd);
        struct tensor name;
        CHECK_OK(tensor_init_string(&name, path, strlen(path), &err), &err);
        CHECK_INT(run_target(world->session, "x", &name, "enqueue"), OK);
        tensor_release(&name);
    }
    CHECK_INT(run_target(world->session, NULL, NULL, "close"), OK);
    int64_t sum = 0, count = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_INT(workers[i].code, OUT_OF_RANGE);
        sum += workers[i].sum;
        count += workers[i].count;
    }
    for (int i = 0; i < FILES; i++)
        unlink(paths[i]);
    CHECK_INT(count, (FILES - FILES / 3) * LINES);
    CHECK_INT(sum, (FILES - FILES / 3) * 15);
    world_free(world);
}
