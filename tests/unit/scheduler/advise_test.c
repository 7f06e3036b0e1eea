/* advise_test.c - when a job will start, and what would start it now. */
/* Faults of docs/reliability.md: F39. */

#include "scheduler/advise.h"
#include "scheduler/forecast.h"
#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

static struct explain advised(struct world *world, int64_t job)
{
    struct explain why = explained(world, job);
    advise_job(world->scheduler, job, world->now_us, &why);
    scheduler_check(world->scheduler);
    return why;
}

static const struct explain_change *change_of(const struct explain *why, const char *field)
{
    for (int i = 0; i < why->changes_count; i++)
        if (strcmp(why->changes[i].field, field) == 0)
            return &why->changes[i];
    return NULL;
}

static void changes_to(const struct explain *why, const char *field, const char *to)
{
    const struct explain_change *change = change_of(why, field);
    if (!change)
        CHECK_STOP("no change of %s among %d", field, why->changes_count);
    CHECK_TEXT(change->to, to);
}

/* A scheduler and its copy decide the same. */
TEST(a_copy_goes_the_same_way)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 8, 2);
    submit_with(&world, 1, 50, 2, 2, 1, 3, 60 * SECOND);
    submit(&world, 2, 6);
    submit(&world, 3, 4);
    struct world twin = {.now_us = world.now_us, .scheduler = scheduler_copy(world.scheduler)};
    twin.actions.arena = arena_new();
    scheduler_check(twin.scheduler);
    struct world *both[] = {&world, &twin};
    for (int i = 0; i < 2; i++) {
        passes(both[i], 200, session);
        CHECK(action(both[i], DO_STOP, 0) == NULL);
        submit(both[i], 4, 1);
        CHECK_INT(started_epoch(both[i], 4), 3);
    }
    world_free(&world);
    world_free(&twin);
}

/* A node that failed the job is passed over by its copy, too. */
TEST(a_copy_knows_what_failed)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 8, 0);
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {1000, 0, 0}};
    struct scheduler_job_info job = {.number = 1,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .restart_max = 5,
                                     .exclude_bad = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    reports(&world, session, 1, started_epoch(&world, 1), TASK_EXITED, EXIT_CRASH);
    struct world twin = {.now_us = world.now_us, .scheduler = scheduler_copy(world.scheduler)};
    twin.actions.arena = arena_new();
    passes(&twin, 60, session);
    CHECK(!action(&twin, DO_START, 0));
    joins(&twin, 2, 8, 0);
    CHECK_INT(action(&twin, DO_START, 0)->node, 2);
    world_free(&world);
    world_free(&twin);
}

TEST(a_start_is_told_by_time_limits)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 8, 0, 0, 100 * SECOND);
    submit_with(&world, 2, 50, 1, 8, 0, 0, 50 * SECOND);
    submit(&world, 3, 8);
    uint64_t grace_us = scheduler_defaults.grace_us;
    struct explain why = advised(&world, 2);
    CHECK_INT(why.start_us, 100 * SECOND + grace_us);
    CHECK_TEXT(why.start_node, "n1");
    why = advised(&world, 3);
    CHECK_INT(why.start_us, 150 * SECOND + 2 * grace_us);
    world_free(&world);
}

TEST(a_job_after_another_starts_when_that_ends)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 1, 0, 0, 100 * SECOND);
    struct scheduler_after after = {1, JOB_RUNNING};
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {1000, 0, 0}};
    struct scheduler_job_info job = {.number = 2,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .after = &after,
                                     .after_count = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    struct explain why = advised(&world, 2);
    CHECK_INT(why.start_us, 100 * SECOND + scheduler_defaults.grace_us);
    CHECK_INT(why.changes_count, 0);
    world_free(&world);
}

TEST(without_a_limit_nobody_knows)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    submit(&world, 1, 8);
    submit(&world, 2, 8);
    CHECK_INT(advised(&world, 2).start_us, -1);
    world_free(&world);
}

/* Plays `count` jobs second by second: each runs as long as it may, and stops at the end of its
 * grace.  Into when each started, from now. */
static void play_slowly(struct world *world, int64_t session, int count, uint64_t *starts_us)
{
    uint64_t begin_us = world->now_us, stops_us[20] = {0};
    for (int i = 0; i < 1000; i++) {
        for (int j = 1; j <= count; j++) {
            const struct job *job = scheduler_find_job(world->scheduler, j);
            if (job && job->state == JOB_ALLOCATED) {
                starts_us[j] = world->now_us - begin_us;
                reports(world, session, j, job->epoch, TASK_RUNNING, EXIT_NONE);
            }
            if (job && job->state == JOB_STOPPING && !stops_us[j])
                stops_us[j] = world->now_us + scheduler_defaults.grace_us;
            if (job && job->state == JOB_STOPPING && world->now_us >= stops_us[j])
                reports(world, session, j, job->epoch, TASK_EXITED, EXIT_STOPPED);
        }
        passes(world, 1, session);
    }
}

/* How far what was told of 12 jobs is from what comes; in all, and at most. */
static void compare_slowly(int cpus_least, uint64_t *sum_us, uint64_t *off_us, uint64_t *most)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 10, 0);
    for (int i = 1; i <= 12; i++)
        submit_with(&world, i, 40 + i * 7 % 20, 1, cpus_least + i * 5 % (11 - cpus_least), 0, 0,
                    (uint64_t)(10 + i * 13 % 50) * SECOND);
    struct arena *arena = arena_new();
    struct forecast forecast;
    struct scheduler *copy = scheduler_copy(world.scheduler);
    int64_t work = FORECAST_WORK;
    forecast_play(copy, world.now_us, 0, &work, arena, &forecast);
    CHECK(forecast.complete);
    scheduler_free(copy);
    uint64_t starts_us[20] = {0};
    play_slowly(&world, session, 12, starts_us);
    *sum_us = *off_us = *most = 0;
    for (int i = 0; i < forecast.count; i++) {
        uint64_t told = forecast.jobs[i].start_us, came = starts_us[forecast.jobs[i].number];
        uint64_t off = told > came ? told - came : came - told;
        CHECK(told != FORECAST_NEVER);
        *sum_us += came;
        *off_us += off;
        if (off * 1000 / (came + 1) > *most)
            *most = off * 1000 / (came + 1);
    }
    arena_free(arena);
    world_free(&world);
}

/* What the forecast says comes true when everybody runs as long as he may. */
TEST(a_forecast_comes_true)
{
    uint64_t sum_us, off_us, most;
    compare_slowly(6, &sum_us, &off_us, &most); /* one after the other */
    CHECK(sum_us > 1000 * SECOND);
    CHECK(most < 70);                           /* a sixteenth, and the seconds of this test */
    compare_slowly(1, &sum_us, &off_us, &most); /* filling in may go another way */
    CHECK(off_us < sum_us / 4);
}

TEST(less_is_advised_as_far_as_it_must_be)
{
    struct world world = world_new();
    joins(&world, 1, 8, 4);
    submit_with(&world, 1, 50, 1, 5, 2, 0, 0);
    submit_with(&world, 2, 50, 1, 6, 2, 0, 0);
    struct explain why = advised(&world, 2);
    CHECK(why.code == EXPLAIN_RESOURCES);
    changes_to(&why, "/tasks/worker/cpus", "3");
    CHECK(!change_of(&why, "/tasks/worker/gpus")); /* they are free */
    changes_to(&why, "job 1", "ended");
    CHECK_TEXT(why.changes[0].field, "/tasks/worker/cpus");
    CHECK_TEXT(why.changes[0].text,
               "With 3 CPUs for each worker task in place of 6, it would start now on n1.");

    submit_with(&world, 3, 50, 5, 1, 0, 0, 0);
    why = advised(&world, 3);
    changes_to(&why, "/tasks/worker/replicas", "3");
    changes_to(&why, "/tasks/worker/cpus", "0.5");
    world_free(&world);
}

/* What is advised, when it is done, does it. */
TEST(a_priority_is_advised_that_does)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 4, 0, 0, 100 * SECOND);
    submit_with(&world, 2, 60, 1, 8, 0, 0, 100 * SECOND); /* the head: keeps the room */
    submit_with(&world, 3, 40, 1, 4, 0, 0, 0);
    struct explain why = advised(&world, 3);
    CHECK(why.code == EXPLAIN_PRIORITY);
    changes_to(&why, "/priority", "61");
    changes_to(&why, "/stop/max_seconds", "100");
    happens(&world,
            &(struct scheduler_event){.kind = ON_PRIORITY, .number = 3, .priority = 61});
    CHECK(action(&world, DO_START, 0) != NULL);
    world_free(&world);
}

TEST(another_queue_may_preempt)
{
    struct world world = world_new();
    struct scheduler_queue_info urgent = {"urgent", 90, 100, true};
    happens(&world, &(struct scheduler_event){.kind = ON_QUEUE, .queue = &urgent});
    joins(&world, 1, 8, 0);
    submit(&world, 1, 8);
    submit(&world, 2, 8);
    struct explain why = advised(&world, 2);
    changes_to(&why, "/queue", "urgent");
    CHECK_INT(change_of(&why, "/queue")->start_us, scheduler_defaults.grace_us);
    world_free(&world);
}

TEST(another_label_is_named)
{
    static const struct scheduler_label zones[] = {{"zone", "a"}, {"zone", "b"}};
    struct world world = world_new();
    for (int i = 0; i < 2; i++) {
        struct scheduler_node_info node = {.id = i + 1,
                                           .name = i ? "n2" : "n1",
                                           .capacity = {4000, 1 << 30, 0},
                                           .labels = &zones[i],
                                           .labels_count = 1};
        happens(&world, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
    }
    struct scheduler_need need = {.role = "worker",
                                  .replicas = 1,
                                  .each = {4000, 0, 0},
                                  .labels = &zones[0],
                                  .labels_count = 1};
    struct scheduler_job_info job = {.reason = "", .needs = &need, .needs_count = 1};
    for (job.number = 1; job.number <= 2; job.number++)
        happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    struct explain why = advised(&world, 2);
    changes_to(&why, "/tasks/worker/node_labels/zone", "b");
    CHECK_TEXT(why.changes[0].text,
               "With node label zone=b in place of a, it would start now on n2.");
    world_free(&world);
}

TEST(quota_and_drained_nodes_are_named)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    struct scheduler_project_info project = {"default", 100, {4000, -1, -1, -1}, 0, 0};
    happens(&world, &(struct scheduler_event){.kind = ON_PROJECT, .project = &project});
    submit(&world, 1, 4);
    submit(&world, 2, 4);
    struct explain why = advised(&world, 2);
    CHECK(why.code == EXPLAIN_QUOTA);
    CHECK(change_of(&why, "project default"));
    happens(&world, &(struct scheduler_event){.kind = ON_DRAIN, .id = 1, .drain = true});
    project.quota = scheduler_no_quota;
    happens(&world, &(struct scheduler_event){.kind = ON_PROJECT, .project = &project});
    why = advised(&world, 2);
    CHECK(why.code == EXPLAIN_DRAINING);
    changes_to(&why, "node n1", "undrained");
    CHECK_INT(why.start_us, -1);
    world_free(&world);
}

/* A long queue: the work has a bound, and what was not looked at is not said. */
TEST(work_is_bounded)
{
    struct world world = world_new();
    joins(&world, 1, 8, 0);
    submit_with(&world, 1, 50, 1, 8, 0, 0, 100 * SECOND);
    for (int i = 2; i < 200; i++)
        submit_with(&world, i, 50, 1, 8, 0, 0, 100 * SECOND);
    struct arena *arena = arena_new();
    struct forecast forecast;
    int64_t work = 1000;
    struct scheduler *copy = scheduler_copy(world.scheduler);
    forecast_play(copy, world.now_us, 0, &work, arena, &forecast);
    scheduler_free(copy);
    CHECK(!forecast.complete);
    CHECK(work <= 0);
    CHECK(forecast_find(&forecast, 199)->start_us == FORECAST_NEVER);
    CHECK(forecast_find(&forecast, 2)->start_us == 100 * SECOND + scheduler_defaults.grace_us);
    arena_free(arena);
    world_free(&world);
}
