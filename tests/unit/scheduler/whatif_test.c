/* whatif_test.c - what would happen, and that it does. */

#include "scheduler/forecast.h"
#include "scheduler/internal.h"
#include "scheduler/whatif.h"
#include "tests/unit/scheduler/core.h"

struct question {
    int cpus; /* 0: no job */
    int priority;
    const char *queue;
    uint64_t stop_s;
    struct whatif_node node;
    int nodes_count;
};

static bool asks(struct world *world, struct question question, struct arena *arena,
                 struct whatif *out, struct error *err)
{
    struct scheduler_need need = {
        .role = "worker", .replicas = 1, .each = {1000 * question.cpus, 0, 0}};
    struct scheduler_job_info job = {.queue = question.queue,
                                     .priority = question.priority ? question.priority : 50,
                                     .needs = &need,
                                     .needs_count = 1,
                                     .stop_us = question.stop_s * SECOND};
    bool ok = whatif_ask(world->scheduler, question.cpus ? &job : NULL, &question.node,
                         question.nodes_count, world->now_us, arena, out, err);
    scheduler_check(world->scheduler);
    return ok;
}

static struct whatif asked(struct world *world, struct question question, struct arena *arena)
{
    struct whatif what;
    struct error err;
    CHECK_OK(asks(world, question, arena, &what, &err), &err);
    return what;
}

TEST(a_job_that_fits_starts_now)
{
    struct world world = world_new();
    struct arena *arena = arena_new();
    joins(&world, 1, 8, 0);
    struct whatif what = asked(&world, (struct question){.cpus = 4}, arena);
    CHECK(what.has_job && what.starts);
    CHECK_INT(what.start_us, 0);
    CHECK_INT(what.places_count, 1);
    CHECK_TEXT(what.places[0].node, "n1");
    CHECK_INT(what.delayed_count + what.sooner_count + what.stopped_count, 0);
    CHECK(what.complete);
    CHECK_INT(scheduler_nodes_count(world.scheduler), 1);
    arena_free(arena);
    world_free(&world);
}

/* What is ahead and what is delayed, and by how much. */
TEST(a_job_of_higher_priority_delays_others)
{
    struct world world = world_new();
    struct arena *arena = arena_new();
    uint64_t grace_us = scheduler_defaults.grace_us;
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 8, 0, 0, 100 * SECOND);
    submit_with(&world, 2, 50, 1, 8, 0, 0, 100 * SECOND);
    struct whatif what =
        asked(&world, (struct question){.cpus = 8, .priority = 60, .stop_s = 1000}, arena);
    CHECK_INT(what.start_us, 100 * SECOND + grace_us);
    CHECK(what.why.code == EXPLAIN_RESOURCES);
    CHECK_INT(what.delayed_count, 1);
    CHECK_INT(what.delayed[0].job, 2);
    CHECK_INT(what.delayed[0].before_us, 100 * SECOND + grace_us);
    CHECK_INT(what.delayed[0].after_us, 1100 * SECOND + 2 * grace_us);

    what = asked(&world, (struct question){.cpus = 8, .stop_s = 1000}, arena);
    CHECK_INT(what.start_us, 200 * SECOND + 2 * grace_us);
    CHECK_INT(what.delayed_count, 0);

    /* One without a limit holds the node for ever. */
    what = asked(&world, (struct question){.cpus = 8, .priority = 60}, arena);
    CHECK_INT(what.delayed_count, 1);
    CHECK(what.delayed[0].after_us == FORECAST_NEVER);
    arena_free(arena);
    world_free(&world);
}

TEST(a_queue_that_preempts_stops_others)
{
    struct world world = world_new();
    struct arena *arena = arena_new();
    struct scheduler_queue_info urgent = {"urgent", 90, 100, true};
    happens(&world, &(struct scheduler_event){.kind = ON_QUEUE, .queue = &urgent});
    joins(&world, 1, 8, 0);
    submit(&world, 1, 8);
    struct whatif what =
        asked(&world, (struct question){.cpus = 8, .queue = "urgent", .stop_s = 100}, arena);
    CHECK_INT(what.start_us, scheduler_defaults.grace_us);
    CHECK_INT(what.stopped_count, 1);
    CHECK_INT(what.stopped[0].job, 1);
    /* ... as it then comes. */
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {8000, 0, 0}};
    struct scheduler_job_info job = {
        .number = 2, .queue = "urgent", .reason = "", .needs = &need, .needs_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    CHECK_TEXT(became(&world, 1)->reason, "PREEMPT");
    arena_free(arena);
    world_free(&world);
}

TEST(nodes_come_and_go)
{
    struct world world = world_new();
    struct arena *arena = arena_new();
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 8, 0, 5, 100 * SECOND);
    submit(&world, 2, 8);
    struct question more = {.node = {.kind = WHATIF_ADD, .name = "new", .count = 1},
                            .nodes_count = 1};
    more.node.like.capacity.cpu_millis = 8000;
    struct whatif what = asked(&world, more, arena);
    CHECK(!what.has_job);
    CHECK_INT(what.sooner_count, 1);
    CHECK_INT(what.sooner[0].job, 2);
    CHECK_INT(what.sooner[0].after_us, 0);

    struct question less = {.node = {.kind = WHATIF_REMOVE, .name = "n1"}, .nodes_count = 1};
    what = asked(&world, less, arena);
    CHECK_INT(what.stopped_count, 1);
    CHECK_INT(what.stopped[0].job, 1);
    CHECK(what.stopped[0].after_us == FORECAST_NEVER);
    CHECK_INT(what.delayed_count, 1);
    CHECK_INT(what.delayed[0].job, 2);

    struct question drained = {.node = {.kind = WHATIF_DRAIN, .name = "n1"}, .nodes_count = 1};
    what = asked(&world, drained, arena);
    CHECK_INT(what.stopped_count, 0);
    CHECK_INT(what.delayed_count, 1);

    /* A job that no node can hold may be asked about with one that can. */
    struct error err;
    CHECK(!asks(&world, (struct question){.cpus = 16}, arena, &what, &err));
    CHECK_TEXT(err.pointer, "/tasks/worker/cpus");
    more.cpus = 16;
    more.priority = 60; /* before job 2, which would take the half of it */
    more.node.like.capacity.cpu_millis = 16000;
    what = asked(&world, more, arena);
    CHECK_TEXT(what.places[0].node, "new");
    CHECK_INT(what.start_us, 0);
    arena_free(arena);
    world_free(&world);
}

TEST(what_is_wrong_with_nodes_is_named)
{
    struct world world = world_new();
    struct arena *arena = arena_new();
    struct whatif what;
    struct error err;
    joins(&world, 1, 8, 0);
    struct question question = {.node = {.kind = WHATIF_DRAIN, .name = "n7"}, .nodes_count = 1};
    CHECK(!asks(&world, question, arena, &what, &err));
    CHECK_TEXT(err.text, "there is no node 'n7'");
    CHECK_TEXT(err.pointer, "/nodes/0/name");
    question.node = (struct whatif_node){.kind = WHATIF_ADD, .name = "n1", .count = 1};
    CHECK(!asks(&world, question, arena, &what, &err));
    CHECK_TEXT(err.pointer, "/nodes/0/name");
    question.node = (struct whatif_node){.kind = WHATIF_ADD, .name = "x", .count = 10000};
    CHECK(!asks(&world, question, arena, &what, &err));
    CHECK_TEXT(err.pointer, "/nodes/0/count");
    arena_free(arena);
    world_free(&world);
}
