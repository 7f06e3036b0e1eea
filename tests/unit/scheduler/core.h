/* core.h - the pure core with a clock of its own, one event at a time: for its tests. */
#pragma once

#include "base/arena.h"
#include "scheduler/explain.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)

struct world {
    struct scheduler *scheduler;
    struct scheduler_actions actions;
    uint64_t now_us;
};

static inline struct world world_new(void)
{
    struct world world = {.now_us = 1000 * SECOND};
    world.actions.arena = arena_new();
    world.scheduler = scheduler_new(&scheduler_defaults, world.now_us);
    return world;
}

static inline void world_free(struct world *world)
{
    scheduler_check(world->scheduler);
    scheduler_free(world->scheduler);
    arena_free(world->actions.arena);
    scheduler_actions_release(&world->actions);
}

/* One event and a tick; the actions of before are forgotten. */
static inline void happens(struct world *world, const struct scheduler_event *event)
{
    scheduler_actions_clear(&world->actions);
    if (event)
        scheduler_step(world->scheduler, event, world->now_us, &world->actions);
    scheduler_step(world->scheduler, &(struct scheduler_event){.kind = ON_TICK}, world->now_us,
                   &world->actions);
    scheduler_check(world->scheduler);
}

/* Lets time pass in steps of a second, with the heartbeat of node 1 when it has a session. */
static inline void passes(struct world *world, int seconds, int64_t session)
{
    for (int i = 0; i < seconds; i++) {
        world->now_us += SECOND;
        happens(world,
                session ? &(struct scheduler_event){.kind = ON_SEEN, .id = 1, .epoch = session}
                        : NULL);
    }
}

static inline int64_t joins(struct world *world, int64_t id, int cpus, int gpus)
{
    struct scheduler_node_info node = {
        .id = id, .name = id == 1 ? "n1" : "n2", .capacity = {1000 * cpus, 1 << 30, gpus}};
    happens(world, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
    return world->actions.list[0].epoch;
}

static inline void submit_with(struct world *world, int64_t number, int priority, int replicas,
                               int cpus, int gpus, int restart_max, uint64_t stop_us)
{
    struct scheduler_need need = {
        .role = "worker", .replicas = replicas, .each = {1000 * cpus, 0, gpus}};
    struct scheduler_job_info job = {.number = number,
                                     .priority = priority,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .restart_max = restart_max,
                                     .stop_us = stop_us};
    happens(world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
}

static inline void submit(struct world *world, int64_t number, int cpus)
{
    submit_with(world, number, 50, 1, cpus, 0, 5, 0);
}

static inline void reports(struct world *world, int64_t session, int64_t job, int64_t epoch,
                           enum task_state state, enum exit_reason reason)
{
    struct scheduler_report report = {.job = job,
                                      .epoch = epoch,
                                      .role = "worker",
                                      .state = state,
                                      .reason = reason,
                                      .error = ""};
    happens(world, &(struct scheduler_event){.kind = ON_REPORT,
                                             .id = 1,
                                             .epoch = session,
                                             .reports = &report,
                                             .reports_count = 1});
}

/* The n-th action of a kind; NULL when there are fewer. */
static inline const struct scheduler_action *action(const struct world *world,
                                                    enum scheduler_action_kind kind, int n)
{
    for (int i = 0; i < world->actions.count; i++) {
        if (world->actions.list[i].kind == kind && n-- == 0)
            return &world->actions.list[i];
    }
    return NULL;
}

static inline int64_t started_epoch(const struct world *world, int64_t job)
{
    for (int i = 0; i < world->actions.count; i++) {
        const struct scheduler_action *a = &world->actions.list[i];
        if (a->kind == DO_START && a->job == job)
            return a->epoch;
    }
    CHECK_STOP("job %lld was not started", (long long)job);
    return 0;
}

/* The last state that a job was given. */
static inline const struct scheduler_action *became(const struct world *world, int64_t job)
{
    const struct scheduler_action *last = NULL;
    for (int i = 0; i < world->actions.count; i++) {
        if (world->actions.list[i].kind == DO_JOB && world->actions.list[i].job == job)
            last = &world->actions.list[i];
    }
    CHECK(last);
    return last;
}

static inline struct explain explained(struct world *world, int64_t job)
{
    struct explain explain;
    CHECK(explain_job(world->scheduler, job, world->now_us, &explain));
    return explain;
}
