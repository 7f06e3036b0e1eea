/* dataset_test.c - pipelines in sessions: ends, threads that share them, cancelling, depth. */

#include <pthread.h>
#include <unistd.h>

#include "kernels/data/dataset.h"
#include "tests/unit/kernels/world.h"

static struct error err;
static const struct session_options two_threads = {.threads = 2};

/* --- datasets of int64 scalars --- */

static const int one_int[] = {I64};
static const struct shape one_scalar[] = {{.rank = 0}};

#define LOOKS                                                                                  \
    attr_type_list("output_types", one_int, 1), (struct attr)                                  \
    {                                                                                          \
        .name = "output_shapes", .kind = ATTR_SHAPE, .is_list = true, .count = 1,              \
        .shapes = one_scalar                                                                   \
    }

static struct edge constant(struct world *world, int64_t value)
{
    struct tensor tensor;
    CHECK_OK(tensor_init_copy(&tensor, I64, &SHAPE_SCALAR, &value, &err), &err);
    struct edge edge = builder_const(&world->b, "number", &tensor);
    tensor_release(&tensor);
    return edge;
}

static struct edge range(struct world *world, int64_t stop)
{
    return builder_add(&world->b, "RangeDataset", "range",
                       INPUTS(constant(world, 0), constant(world, stop), constant(world, 1)),
                       ATTRS(LOOKS));
}

/* RepeatDataset, TakeDataset, SkipDataset, PrefetchDataset. */
static struct edge counted(struct world *world, const char *op, struct edge input,
                           int64_t count)
{
    return builder_add(&world->b, op, "counted", INPUTS(input, constant(world, count)),
                       ATTRS(LOOKS));
}

static struct edge shuffle(struct world *world, struct edge input, int64_t size)
{
    return builder_add(
        &world->b, "ShuffleDataset", "shuffle",
        INPUTS(input, constant(world, size), constant(world, 1), constant(world, 2)),
        ATTRS(LOOKS));
}

/* Nodes "iterator", "next" and (if there is a dataset) "make". */
static void iterate(struct world *world, struct edge dataset)
{
    struct edge iterator =
        builder_add(&world->b, "IteratorV2", "iterator", NO_INPUTS,
                    ATTRS(attr_string("shared_name", ""), attr_string("container", ""), LOOKS));
    builder_add(&world->b, "IteratorGetNext", "next", INPUTS(iterator), ATTRS(LOOKS));
    if (dataset.from)
        builder_add(&world->b, "MakeIterator", "make", INPUTS(dataset, iterator), NO_ATTRS);
}

/* --- running --- */

static bool run_for(struct world *world, const char *fetch, const char *target,
                    struct cancel *cancel, struct tensor *out, struct error *error)
{
    const struct session_run run = {.fetches = &fetch,
                                    .fetches_count = fetch ? 1 : 0,
                                    .targets = &target,
                                    .targets_count = target ? 1 : 0,
                                    .cancel = cancel};
    return session_run(world->session, &run, out, error);
}

static void make(struct world *world, const char *target)
{
    CHECK_OK(run_for(world, NULL, target, NULL, NULL, &err), &err);
}

/* The next element, -1 when it failed with `*error`. */
static int64_t next(struct world *world, struct error *error)
{
    struct tensor out;
    if (!run_for(world, "next:0", NULL, NULL, &out, error))
        return -1;
    int64_t value = tensor_i64(&out)[0];
    tensor_release(&out);
    return value;
}

static void check_end(struct world *world)
{
    CHECK_INT(next(world, &err), -1);
    CHECK_INT(err.code, OUT_OF_RANGE);
}

TEST(a_pipeline_ends_and_begins_anew)
{
    struct world *world = world_new(&two_threads);
    struct edge some = counted(world, "SkipDataset", range(world, 5), 2);
    iterate(world, counted(world, "RepeatDataset", some, 2));
    world_begin(world);
    CHECK_INT(next(world, &err), -1);
    CHECK_INT(err.code, PRECONDITION);
    for (int round = 0; round < 2; round++) {
        make(world, "make");
        for (int i = 0; i < 6; i++)
            CHECK_INT(next(world, &err), 2 + i % 3);
        check_end(world);
        check_end(world);
    }
    world_free(world);
}

/* TensorFlow 2.21's order for these seeds. */
TEST(seeds_give_one_order)
{
    static const int64_t expected[] = {0, 2, 1, 3, 5, 8, 6, 4, 7, 9};
    struct world *world = world_new(&two_threads);
    iterate(world, shuffle(world, range(world, 10), 4));
    world_begin(world);
    make(world, "make");
    for (int i = 0; i < 10; i++)
        CHECK_INT(next(world, &err), expected[i]);
    check_end(world);
    world_free(world);
}

/* --- threads --- */

enum { ELEMENTS = 2000, TAKERS = 4 };

struct taker {
    struct world *world;
    pthread_t thread;
    struct cancel *cancel;
    int *seen; /* __atomic, by element */
    bool ended;
};

static void *taker_main(void *arg)
{
    struct taker *taker = arg;
    struct error error;
    int64_t value;
    while ((value = next(taker->world, &error)) >= 0)
        __atomic_add_fetch(&taker->seen[value], 1, __ATOMIC_RELAXED);
    taker->ended = error.code == OUT_OF_RANGE;
    return NULL;
}

static void take_all(struct world *world)
{
    int *seen = alloc_array(ELEMENTS, sizeof(int));
    struct taker takers[TAKERS];
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.world = world, .seen = seen};
        CHECK_INT(pthread_create(&takers[i].thread, NULL, taker_main, &takers[i]), 0);
    }
    for (int i = 0; i < TAKERS; i++) {
        CHECK_INT(pthread_join(takers[i].thread, NULL), 0);
        CHECK(takers[i].ended);
    }
    for (int i = 0; i < ELEMENTS; i++)
        CHECK_INT(seen[i], 1);
    free(seen);
}

TEST(threads_share_an_iterator_element_by_element)
{
    struct world *world = world_new(&two_threads);
    iterate(world, shuffle(world, range(world, ELEMENTS), 50));
    world_begin(world);
    make(world, "make");
    take_all(world);
    world_free(world);
}

TEST(threads_share_what_is_prefetched)
{
    struct world *world = world_new(&two_threads);
    struct edge inner = counted(world, "PrefetchDataset", range(world, ELEMENTS), 3);
    iterate(world, counted(world, "PrefetchDataset", inner, 16));
    world_begin(world);
    make(world, "make");
    take_all(world);
    world_free(world);
}

/* --- ends that come from outside --- */

/* It skips for ever and gives nothing. */
static struct edge never(struct world *world)
{
    struct edge endless = counted(world, "RepeatDataset", range(world, 3), -1);
    return counted(world, "SkipDataset", endless, INT64_MAX);
}

static void *waiter_main(void *arg)
{
    struct taker *taker = arg;
    struct error error;
    struct tensor out;
    if (run_for(taker->world, "next:0", NULL, taker->cancel, &out, &error))
        tensor_release(&out);
    else
        taker->ended = error.code == CANCELLED;
    return NULL;
}

/* One is inside the pipeline, the other waits for it; either may be ended first. */
static void check_cancelling(struct world *world)
{
    for (int first = 0; first < 2; first++) {
        struct taker waiters[2] = {{.world = world}, {.world = world}};
        make(world, "make");
        for (int i = 0; i < 2; i++) {
            waiters[i].cancel = cancel_new();
            CHECK_INT(pthread_create(&waiters[i].thread, NULL, waiter_main, &waiters[i]), 0);
        }
        usleep(20000); /* so that they most likely wait: it must not matter */
        for (int i = 0; i < 2; i++) {
            struct taker *waiter = &waiters[i ^ first];
            cancel_now(waiter->cancel);
            CHECK_INT(pthread_join(waiter->thread, NULL), 0);
            CHECK(waiter->ended);
            cancel_free(waiter->cancel);
        }
    }
    world_free(world);
}

TEST(a_run_that_waits_for_an_element_can_be_ended)
{
    struct world *world = world_new(&two_threads);
    iterate(world, never(world));
    world_begin(world);
    check_cancelling(world);
}

/* The iterator is walked by the run's own thread, or waits for another. */
TEST(a_run_that_waits_for_an_element_ends_with_its_time)
{
    for (int prefetching = 0; prefetching < 2; prefetching++) {
        struct world *world = world_new(&two_threads);
        struct edge dataset = never(world);
        iterate(world, prefetching ? counted(world, "PrefetchDataset", dataset, 2) : dataset);
        world_begin(world);
        make(world, "make");
        const char *fetch = "next:0";
        const struct session_run run = {
            .fetches = &fetch, .fetches_count = 1, .timeout_ms = 30};
        struct tensor out;
        for (int round = 0; round < 3; round++)
            CHECK_FAILS(session_run(world->session, &run, &out, &err), &err, DEADLINE);
        world_free(world);
    }
}

TEST(a_run_that_waits_for_prefetching_can_be_ended)
{
    struct world *world = world_new(&two_threads);
    iterate(world, counted(world, "PrefetchDataset", never(world), 2));
    world_begin(world);
    check_cancelling(world);
}

TEST(prefetching_stops_with_its_iterator)
{
    struct world *world = world_new(&two_threads);
    struct edge endless = counted(world, "RepeatDataset", range(world, 3), -1);
    iterate(world, counted(world, "PrefetchDataset", endless, 4));
    world_begin(world);
    for (int round = 0; round < 5; round++) {
        make(world, "make");
        CHECK_INT(next(world, &err), 0);
    }
    world_free(world);
}

/* --- what must not be --- */

TEST(datasets_may_be_deep_but_not_too_deep)
{
    struct world *world = world_new(&two_threads);
    struct edge dataset = range(world, 3);
    for (int depth = 1; depth < DATASET_DEPTH_MAX; depth++)
        dataset = counted(world, "TakeDataset", dataset, 2);
    iterate(world, dataset);
    world_begin(world);
    make(world, "make");
    CHECK_INT(next(world, &err), 0);
    world_free(world);

    world = world_new(&two_threads);
    dataset = range(world, 3);
    for (int depth = 0; depth < 4 * DATASET_DEPTH_MAX; depth++)
        dataset = counted(world, "TakeDataset", dataset, 2);
    iterate(world, dataset);
    world_begin(world);
    CHECK_FAILS(run_for(world, NULL, "make", NULL, NULL, &err), &err, EXHAUSTED);
    world_free(world);
}

TEST(an_iterator_takes_only_what_suits_it)
{
    struct world *world = world_new(&two_threads);
    struct edge text = builder_text(&world->b, "text", "x");
    const int types[] = {STRING};
    struct attr shapes = {.name = "output_shapes",
                          .kind = ATTR_SHAPE,
                          .is_list = true,
                          .count = 1,
                          .shapes = one_scalar};
    iterate(world, builder_add(&world->b, "TensorDataset", "tensors", INPUTS(text),
                               ATTRS(attr_type_list("Toutput_types", types, 1), shapes)));
    world_begin(world);
    CHECK_FAILS(run_for(world, NULL, "make", NULL, NULL, &err), &err, INVALID);
    CHECK_INT(next(world, &err), -1);
    CHECK_INT(err.code, PRECONDITION);
    world_free(world);
}

TEST(an_iterator_is_found_by_its_string)
{
    struct world *world = world_new(&two_threads);
    iterate(world, range(world, 3));
    struct edge iterator = {graph_find(world->graph, "iterator"), 0};
    builder_add(&world->b, "IteratorToStringHandle", "string", INPUTS(iterator), NO_ATTRS);
    struct edge fed = builder_add(&world->b, "Placeholder", "fed", NO_INPUTS,
                                  ATTRS(attr_type("dtype", STRING)));
    struct edge found = builder_add(&world->b, "IteratorFromStringHandleV2", "found",
                                    INPUTS(fed), ATTRS(LOOKS));
    builder_add(&world->b, "IteratorGetNext", "other", INPUTS(found), ATTRS(LOOKS));
    world_begin(world);
    make(world, "make");

    struct tensor handle, out;
    CHECK_OK(run_for(world, "string:0", NULL, NULL, &handle, &err), &err);
    const char *feed = "fed:0", *fetch = "other:0";
    struct session_run run = {.feeds = &feed,
                              .feed_values = &handle,
                              .feeds_count = 1,
                              .fetches = &fetch,
                              .fetches_count = 1};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(session_run(world->session, &run, &out, &err), &err);
        CHECK_INT(tensor_i64(&out)[0], i);
        tensor_release(&out);
    }
    CHECK_FAILS(session_run(world->session, &run, &out, &err), &err, OUT_OF_RANGE);
    tensor_set_string(&handle, 0, "\x1a\x7f", 2);
    CHECK_FAILS(session_run(world->session, &run, &out, &err), &err, INVALID);
    tensor_set_string(&handle, 0, "\x1a\x01x", 3);
    CHECK_FAILS(session_run(world->session, &run, &out, &err), &err, NOT_FOUND);
    tensor_release(&handle);
    world_free(world);
}
