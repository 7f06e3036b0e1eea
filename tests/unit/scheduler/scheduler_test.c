/* scheduler_test.c - the pure core, one event at a time, with a clock of its own. */

#include "base/arena.h"
#include "scheduler/explain.h"
#include "scheduler/fit.h"
#include "tests/unit/test.h"

#define SECOND UINT64_C(1000000)

struct world {
    struct scheduler *scheduler;
    struct scheduler_actions actions;
    uint64_t now_us;
};

static struct world world_new(void)
{
    struct world world = {.now_us = 1000 * SECOND};
    world.actions.arena = arena_new();
    world.scheduler = scheduler_new(&scheduler_defaults, world.now_us);
    return world;
}

static void world_free(struct world *world)
{
    scheduler_check(world->scheduler);
    scheduler_free(world->scheduler);
    arena_free(world->actions.arena);
    scheduler_actions_release(&world->actions);
}

/* One event and a tick; the actions of before are forgotten. */
static void happens(struct world *world, const struct scheduler_event *event)
{
    scheduler_actions_clear(&world->actions);
    if (event)
        scheduler_step(world->scheduler, event, world->now_us, &world->actions);
    scheduler_step(world->scheduler, &(struct scheduler_event){.kind = ON_TICK}, world->now_us,
                   &world->actions);
    scheduler_check(world->scheduler);
}

/* Lets time pass in steps of a second, with the heartbeat of node 1 when it has a session. */
static void passes(struct world *world, int seconds, int64_t session)
{
    for (int i = 0; i < seconds; i++) {
        world->now_us += SECOND;
        happens(world,
                session ? &(struct scheduler_event){.kind = ON_SEEN, .id = 1, .epoch = session}
                        : NULL);
    }
}

static int64_t joins(struct world *world, int64_t id, int cpus, int gpus)
{
    struct scheduler_node_info node = {
        .id = id, .name = id == 1 ? "n1" : "n2", .capacity = {1000 * cpus, 1 << 30, gpus}};
    happens(world, &(struct scheduler_event){.kind = ON_JOIN, .node = &node});
    return world->actions.list[0].epoch;
}

static void submit_with(struct world *world, int64_t number, int priority, int replicas,
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

static void submit(struct world *world, int64_t number, int cpus)
{
    submit_with(world, number, 50, 1, cpus, 0, 5, 0);
}

static void reports(struct world *world, int64_t session, int64_t job, int64_t epoch,
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
static const struct scheduler_action *action(const struct world *world,
                                             enum scheduler_action_kind kind, int n)
{
    for (int i = 0; i < world->actions.count; i++) {
        if (world->actions.list[i].kind == kind && n-- == 0)
            return &world->actions.list[i];
    }
    return NULL;
}

static int64_t started_epoch(const struct world *world, int64_t job)
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
static const struct scheduler_action *became(const struct world *world, int64_t job)
{
    const struct scheduler_action *last = NULL;
    for (int i = 0; i < world->actions.count; i++) {
        if (world->actions.list[i].kind == DO_JOB && world->actions.list[i].job == job)
            last = &world->actions.list[i];
    }
    CHECK(last);
    return last;
}

static struct explain explained(struct world *world, int64_t job)
{
    struct explain explain;
    CHECK(explain_job(world->scheduler, job, world->now_us, &explain));
    return explain;
}

/* --- fit --- */

TEST(fit_places_all_tasks_or_none)
{
    struct scheduler_need need = {.role = "worker", .replicas = 3, .each = {0, 0, 2}};
    struct fit_node nodes[2] = {{true, {0, 0, 4}}, {false, {0, 0, 8}}}, scratch[2];
    int placement[3];
    CHECK(!fit_job(&need, 1, nodes, 2, scratch, placement));
    nodes[1].offered = true;
    CHECK(fit_job(&need, 1, nodes, 2, scratch, placement));
    CHECK_INT(placement[0], 0); /* where it leaves the fewest idle */
    CHECK_INT(placement[1], 0);
    CHECK_INT(placement[2], 1);
    CHECK(!fit_job(&need, 1, nodes, 0, scratch, placement));
}

/* The large task would find no room any more if the small one went first. */
TEST(fit_places_large_tasks_first)
{
    struct scheduler_need needs[] = {
        {.role = "ps", .replicas = 2, .each = {1000, 0, 0}},
        {.role = "worker", .replicas = 1, .each = {4000, 0, 0}},
    };
    struct fit_node nodes[] = {{true, {4000, 0, 0}}, {true, {2000, 0, 0}}}, scratch[2];
    int placement[3];
    CHECK(fit_job(needs, 2, nodes, 2, scratch, placement));
    CHECK_INT(placement[2], 0);
    CHECK_INT(placement[0], 1);
    CHECK_INT(placement[1], 1);
}

/* --- the queue --- */

TEST(queue_goes_by_priority_then_by_number)
{
    struct world world = world_new();
    submit_with(&world, 1, 10, 1, 1, 0, 0, 0);
    submit_with(&world, 2, 90, 1, 1, 0, 0, 0);
    submit_with(&world, 3, 90, 1, 1, 0, 0, 0);
    CHECK_INT(explained(&world, 2).ahead_count, 0);
    CHECK_INT(explained(&world, 3).ahead_count, 1);
    CHECK_INT(explained(&world, 1).ahead_count, 2);
    joins(&world, 1, 2, 0);
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    CHECK_INT(action(&world, DO_START, 1)->job, 3);
    CHECK(!action(&world, DO_START, 2));
    world_free(&world);
}

/* Small jobs pass a large one that does not fit, but not for ever. */
TEST(queue_lets_nobody_starve)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submit(&world, 1, 3);
    int64_t epoch = started_epoch(&world, 1);
    submit(&world, 2, 4); /* waits for all of the node */
    submit(&world, 3, 1);
    int64_t third = started_epoch(&world, 3);
    passes(&world, 601, session);
    reports(&world, session, 3, third, TASK_EXITED, EXIT_OK);
    submit(&world, 4, 1);
    CHECK(!action(&world, DO_START, 0));
    struct explain why = explained(&world, 4);
    CHECK_TEXT(explain_code_name(why.code), "PRIORITY");
    CHECK(strstr(why.next, "job 2"));
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_OK);
    started_epoch(&world, 2);
    world_free(&world);
}

/* --- lives of jobs --- */

TEST(scheduler_waits_longer_after_each_crash)
{
    static const int waits[] = {10, 20, 40, 80, 160};
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    int64_t epoch = started_epoch(&world, 1);
    for (int i = 0; i < 5; i++) {
        reports(&world, session, 1, epoch, TASK_EXITED, EXIT_CRASH);
        CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
        CHECK_INT(became(&world, 1)->retry_in_us, (uint64_t)waits[i] * SECOND);
        CHECK_TEXT(explain_code_name(explained(&world, 1).code), "BACKOFF");
        passes(&world, waits[i] - 1, session);
        CHECK(!action(&world, DO_START, 0));
        passes(&world, 1, session);
        CHECK(started_epoch(&world, 1) > epoch);
        epoch = started_epoch(&world, 1);
    }
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_MEMORY);
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 1)->reason, "MEMORY");
    CHECK(strstr(became(&world, 1)->text, "all 5 restarts are used up"));
    world_free(&world);
}

TEST(scheduler_stops_a_job_when_its_time_is_up)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit_with(&world, 1, 50, 1, 1, 0, 0, 60 * SECOND);
    int64_t epoch = started_epoch(&world, 1);
    passes(&world, 100, session); /* waiting to start does not count */
    reports(&world, session, 1, epoch, TASK_RUNNING, EXIT_NONE);
    passes(&world, 59, session);
    CHECK(!action(&world, DO_STOP, 0));
    passes(&world, 1, session);
    CHECK(action(&world, DO_STOP, 0));
    CHECK(!action(&world, DO_STOP, 0)->kill);
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_STOPPED);
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    CHECK_TEXT(became(&world, 1)->reason, "TIME");
    world_free(&world);
}

TEST(scheduler_finishes_when_the_workers_have)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    struct scheduler_need needs[] = {{.role = "worker", .replicas = 1, .each = {1000, 0, 0}},
                                     {.role = "ps", .replicas = 1, .each = {1000, 0, 0}}};
    struct scheduler_job_info job = {
        .number = 1, .reason = "", .needs = needs, .needs_count = 2, .restart_max = 1};
    happens(&world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    int64_t epoch = started_epoch(&world, 1);
    reports(&world, session, 1, epoch, TASK_EXITED, EXIT_OK);
    CHECK_INT(became(&world, 1)->to, JOB_STOPPING);
    CHECK_TEXT(action(&world, DO_STOP, 0)->role, "ps");
    /* How the server of parameters ends does not matter any more; nor does a late cancel. */
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1});
    struct scheduler_report ps = {.job = 1,
                                  .epoch = epoch,
                                  .role = "ps",
                                  .state = TASK_EXITED,
                                  .reason = EXIT_CRASH,
                                  .error = ""};
    happens(
        &world,
        &(struct scheduler_event){
            .kind = ON_REPORT, .id = 1, .epoch = session, .reports = &ps, .reports_count = 1});
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    world_free(&world);
}

/* The tasks of a job die together; the one that failed by itself is named. */
TEST(scheduler_names_the_culprit)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submit_with(&world, 1, 50, 2, 1, 0, 5, 0);
    int64_t epoch = started_epoch(&world, 1);
    struct scheduler_report both[] = {
        {.job = 1,
         .epoch = epoch,
         .role = "worker",
         .index = 0,
         .state = TASK_EXITED,
         .reason = EXIT_CRASH,
         .error = ""},
        {.job = 1,
         .epoch = epoch,
         .role = "worker",
         .index = 1,
         .state = TASK_EXITED,
         .reason = EXIT_USER,
         .error = ""},
    };
    happens(
        &world,
        &(struct scheduler_event){
            .kind = ON_REPORT, .id = 1, .epoch = session, .reports = both, .reports_count = 2});
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 1)->reason, "USER");
    CHECK(strstr(became(&world, 1)->text, "worker:1 on n1"));
    world_free(&world);
}

/* --- nodes --- */

TEST(scheduler_suspects_then_gives_up)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    passes(&world, 6, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_SUSPECT);
    submit(&world, 2, 1);
    CHECK_TEXT(explain_code_name(explained(&world, 2).code), "NODES_AWAY");
    passes(&world, 1, session);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_JOINED);
    passes(&world, 299, 0);
    CHECK(!action(&world, DO_NODE, 0));
    passes(&world, 1, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_LOST);
    CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
    world_free(&world);
}

/* F2: when it was we who stood still, no node is blamed for it. */
TEST(scheduler_forgives_its_own_stall)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    passes(&world, 3, session);
    world.now_us += 3600 * SECOND;
    happens(&world, NULL);
    CHECK_INT(world.actions.count, 0);
    passes(&world, 5, 0);
    CHECK_INT(world.actions.count, 0);
    passes(&world, 1, 0);
    CHECK_INT(action(&world, DO_NODE, 0)->node_state, NODE_SUSPECT);
    world_free(&world);
}

TEST(scheduler_drains_the_node_of_an_unkillable_task)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 2, 0);
    submit(&world, 1, 1);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1, .kill = true});
    CHECK(action(&world, DO_STOP, 0)->kill);
    passes(&world, 89, session);
    CHECK(!action(&world, DO_NODE, 0));
    passes(&world, 1, session);
    CHECK(action(&world, DO_NODE, 0)->draining);
    enum job_state state;
    CHECK(scheduler_job_state(world.scheduler, 1, &state));
    CHECK_INT(state, JOB_STOPPING); /* its room is not given to others */
    world_free(&world);
}

/* --- explain --- */

TEST(explain_says_what_is_missing)
{
    struct world world = world_new();
    submit_with(&world, 1, 50, 1, 1, 2, 0, 0);
    CHECK_TEXT(explain_code_name(explained(&world, 1).code), "NO_NODES");
    int64_t session = joins(&world, 1, 4, 1);
    struct explain why = explained(&world, 1);
    CHECK_TEXT(explain_code_name(why.code), "TOO_LARGE");
    CHECK_TEXT(why.text, "Can never start on these nodes: each worker task needs 2 GPUs; the "
                         "largest node has 1 GPU.");
    CHECK_INT(why.needed, 2);
    CHECK_INT(why.largest, 1);
    CHECK_TEXT(explain_resource_name(why.resource), "gpus");

    submit(&world, 2, 3);
    int64_t epoch = started_epoch(&world, 2);
    submit(&world, 3, 2);
    why = explained(&world, 3);
    CHECK_TEXT(explain_code_name(why.code), "RESOURCES");
    CHECK_TEXT(why.text,
               "Waiting: each worker task needs 2 CPUs on one node; the best node, n1, "
               "has 1 CPU free.");
    CHECK_INT(why.holders_count, 1);
    CHECK_INT(why.holders[0].job, 2);
    CHECK_INT(why.holders[0].cpu_millis, 3000);
    CHECK(strstr(why.next, "job 2 holds 3 CPUs"));

    submit_with(&world, 4, 50, 5, 1, 0, 0, 0);
    CHECK(strstr(explained(&world, 4).text, "its 5 tasks do not fit"));
    happens(&world, &(struct scheduler_event){.kind = ON_DRAIN, .id = 1, .drain = true});
    CHECK_TEXT(explain_code_name(explained(&world, 3).code), "DRAINING");
    CHECK_TEXT(explain_code_name(explained(&world, 2).code), "NOT_WAITING");
    reports(&world, session, 2, epoch, TASK_EXITED, EXIT_OK);
    struct explain none;
    CHECK(!explain_job(world.scheduler, 2, world.now_us, &none));
    world_free(&world);
}
