/* mutex_test.c - one step at a time is in a critical section. */

#include <pthread.h>

#include "tests/unit/kernels/world.h"

enum { THREADS = 4, EACH = 50 };

static const struct session_options two_threads = {.threads = 2};

static struct edge number(struct builder *b, const char *name, int64_t value)
{
    return builder_scalar(b, name, I64, (double)value);
}

static struct edge read(struct builder *b, const char *name, struct edge v)
{
    return builder_add(b, "ReadVariableOp", name, INPUTS(v), ATTRS(attr_type("dtype", I64)));
}

static struct edge mutex_lock(struct builder *b, const char *name, struct edge mutex)
{
    return builder_add(b, "MutexLock", name, INPUTS(mutex), NO_ATTRS);
}

static struct node *consume(struct builder *b, const char *name, struct edge lock)
{
    return builder_add(b, "ConsumeMutexLock", name, INPUTS(lock), NO_ATTRS).from;
}

static void add_both(struct builder *b, struct edge mutex)
{
    struct edge first = mutex_lock(b, "first", mutex);
    struct edge second = mutex_lock(b, "second", mutex);
    struct node *both = builder_add(b, "NoOp", "both", NO_INPUTS, NO_ATTRS).from;
    graph_add_control(b->graph, second.from, first.from);
    graph_add_control(b->graph, both, consume(b, "end_first", first));
    graph_add_control(b->graph, both, consume(b, "end_second", second));
}

static void add_refused(struct builder *b, struct edge mutex)
{
    struct edge none = builder_add(b, "OptionalNone", "none", NO_INPUTS, NO_ATTRS);
    struct edge lock = mutex_lock(b, "packed", mutex);
    struct edge two =
        builder_add(b, "Pack", "two", INPUTS(lock, lock),
                    ATTRS(attr_int("N", 2), attr_type("T", VARIANT), attr_int("axis", 0)));
    consume(b, "of_none", none);
    consume(b, "of_two", two);
}

/*
 * inside: with the lock held, v becomes what it was read as and one more; wrong: fails with the
 * lock held.
 */
static struct world *make_world(void)
{
    struct world *world = world_new(&two_threads);
    struct builder *b = &world->b;
    struct edge v =
        builder_add(b, "VarHandleOp", "v", NO_INPUTS,
                    ATTRS(attr_type("dtype", I64), attr_shape("shape", &SHAPE_SCALAR)));
    struct edge mutex = builder_add(b, "MutexV2", "mutex", NO_INPUTS, NO_ATTRS);
    struct edge lock = mutex_lock(b, "lock", mutex);
    struct edge now = read(b, "now", v);
    struct edge more =
        builder_add(b, "AddV2", "more", INPUTS(now, number(b, "one", 1)), NO_ATTRS);
    struct edge set = builder_add(b, "AssignVariableOp", "set", INPUTS(v, more), NO_ATTRS);
    struct node *inside = consume(b, "inside", lock);
    struct edge again = mutex_lock(b, "again", mutex);
    struct edge ratio = builder_add(b, "FloorDiv", "ratio",
                                    INPUTS(number(b, "a", 1), number(b, "zero", 0)), NO_ATTRS);
    struct node *wrong = consume(b, "wrong", again);
    add_both(b, mutex);
    add_refused(b, mutex);
    builder_add(b, "AssignVariableOp", "begin", INPUTS(v, number(b, "start", 0)), NO_ATTRS);
    read(b, "end", v);
    CHECK_OK(builder_ok(b), &world->err);
    graph_add_control(world->graph, now.from, lock.from);
    graph_add_control(world->graph, inside, set.from);
    graph_add_control(world->graph, ratio.from, again.from);
    graph_add_control(world->graph, wrong, ratio.from);
    world_begin(world);
    CHECK_OK(world_run(world, "begin", NULL, &world->err), &world->err);
    return world;
}

static void *work_main(void *arg)
{
    struct error err;
    for (int i = 0; i < EACH; i++)
        CHECK_OK(world_run(arg, "inside", NULL, &err), &err);
    return NULL;
}

TEST(nobody_reads_what_another_is_about_to_change)
{
    struct world *world = make_world();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work_main, world);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct tensor end = {0};
    CHECK_OK(world_run(world, "end:0", &end, &world->err), &world->err);
    CHECK_INT(tensor_number(&end, 0), THREADS * EACH);
    tensor_release(&end);
    world_free(world);
}

TEST(a_step_that_fails_gives_its_lock_up)
{
    struct world *world = make_world();
    struct error err;
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(world_run(world, "wrong", NULL, &err), &err, INVALID);
        CHECK_OK(world_run(world, "inside", NULL, &err), &err);
    }
    world_free(world);
}

/* Of two that have the lock in one step the second waits for the first. */
TEST(a_step_has_the_lock_twice)
{
    struct world *world = make_world();
    for (int i = 0; i < 3; i++) {
        CHECK_OK(world_run(world, "both", NULL, &world->err), &world->err);
        CHECK_OK(world_run(world, "first", NULL, &world->err), &world->err);
    }
    world_free(world);
}

TEST(what_is_no_lock_is_refused)
{
    struct world *world = make_world();
    struct error err;
    CHECK_FAILS(world_run(world, "of_none", NULL, &err), &err, INVALID);
    CHECK(strstr(err.text, "Expected input to contain a SharedLockReleaser object"));
    CHECK_FAILS(world_run(world, "of_two", NULL, &err), &err, INVALID);
    CHECK(strstr(err.text, "Expected input to be a scalar, saw shape: [2]"));
    world_free(world);
}
