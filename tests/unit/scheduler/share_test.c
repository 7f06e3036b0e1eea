/* share_test.c - whose turn it is: queues, projects, reservations, preemption. */

#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

struct submitted {
    int64_t number;
    const char *queue;
    const char *project;
    int priority;
    int cpus;
    int gpus;
    uint64_t stop_s;
};

static void submits(struct world *world, struct submitted job)
{
    struct scheduler_need need = {
        .role = "worker", .replicas = 1, .each = {1000 * job.cpus, 0, job.gpus}};
    struct scheduler_job_info info = {.number = job.number,
                                      .queue = job.queue,
                                      .project = job.project,
                                      .priority = job.priority,
                                      .reason = "",
                                      .needs = &need,
                                      .needs_count = 1,
                                      .stop_us = job.stop_s * SECOND};
    happens(world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &info});
}

static void project_is(struct world *world, const char *name, int weight,
                       struct scheduler_amount quota)
{
    struct scheduler_project_info info = {.name = name, .weight = weight, .quota = quota};
    happens(world, &(struct scheduler_event){.kind = ON_PROJECT, .project = &info});
}

static void queue_is(struct world *world, const char *name, int priority, int weight,
                     bool preempt)
{
    struct scheduler_queue_info info = {name, priority, weight, preempt};
    happens(world, &(struct scheduler_event){.kind = ON_QUEUE, .queue = &info});
}

/* The jobs that started with the last event, in order. */
static void started(const struct world *world, const char *expected)
{
    char text[200] = "";
    for (int i = 0; action(world, DO_START, i); i++) {
        size_t size = strlen(text);
        snprintf(text + size, sizeof(text) - size, "%s%lld", i ? " " : "",
                 (long long)action(world, DO_START, i)->job);
    }
    CHECK_TEXT(text, expected);
}

static void ends(struct world *world, int64_t session, int64_t job)
{
    const struct job *found = scheduler_find_job(world->scheduler, job);
    CHECK(found);
    reports(world, session, job, found->epoch, TASK_EXITED, EXIT_OK);
}

TEST(share_alternates_between_projects)
{
    struct world world = world_new();
    for (int64_t n = 1; n <= 3; n++)
        submits(&world, (struct submitted){.number = n, .project = "a", .cpus = 1});
    submits(&world, (struct submitted){.number = 4, .project = "b", .cpus = 1});
    submits(&world, (struct submitted){.number = 5, .project = "b", .cpus = 1});
    joins(&world, 1, 5, 0);
    started(&world, "1 4 2 5 3");
    world_free(&world);
}

/* Three times the weight, three times the jobs. */
TEST(share_goes_by_weight)
{
    struct world world = world_new();
    project_is(&world, "a", 300, scheduler_no_quota);
    for (int64_t n = 1; n <= 6; n++)
        submits(&world, (struct submitted){.number = n, .project = "a", .cpus = 1});
    for (int64_t n = 7; n <= 8; n++)
        submits(&world, (struct submitted){.number = n, .project = "b", .cpus = 1});
    joins(&world, 1, 4, 0);
    started(&world, "1 7 2 3");
    world_free(&world);
}

/* Who has had much waits for who has had little, until it is forgotten. */
TEST(share_remembers_what_was_used)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submits(&world, (struct submitted){.number = 1, .project = "a", .cpus = 1});
    passes(&world, 1000, session);
    submits(&world, (struct submitted){.number = 2, .project = "a", .cpus = 1});
    submits(&world, (struct submitted){.number = 3, .project = "b", .cpus = 1});
    ends(&world, session, 1);
    const struct scheduler_action *usage = action(&world, DO_USAGE, 0);
    CHECK_TEXT(usage->project, "a");
    CHECK_INT(usage->cpu_ms, 1000 * 1000);
    CHECK_INT(usage->usage, UINT64_C(1000000) * 1000 * 1000);
    started(&world, "3");
    CHECK_INT(scheduler_share_faded(1000, 0, 100), 1000);
    CHECK_INT(scheduler_share_faded(1000, 50, 100), 750);
    CHECK_INT(scheduler_share_faded(1000, 100, 100), 500);
    CHECK_INT(scheduler_share_faded(1000, 6400, 100), 0);
    CHECK_INT(scheduler_share_faded(UINT64_MAX / 2, 99, 100),
              UINT64_MAX / 4 + 46116860184273880);
    world_free(&world);
}

TEST(share_lets_queues_of_higher_priority_go_first)
{
    struct world world = world_new();
    queue_is(&world, "urgent", 90, 100, false);
    queue_is(&world, "night", 10, 100, false);
    submits(&world,
            (struct submitted){.number = 1, .queue = "night", .priority = 99, .cpus = 1});
    submits(&world, (struct submitted){.number = 2, .priority = 1, .cpus = 1});
    submits(&world, (struct submitted){.number = 3, .queue = "urgent", .cpus = 1});
    joins(&world, 1, 3, 0);
    started(&world, "3 2 1");
    world_free(&world);
}

TEST(share_goes_by_the_weight_of_queues)
{
    struct world world = world_new();
    queue_is(&world, "big", 50, 200, false);
    for (int64_t n = 1; n <= 3; n++)
        submits(&world, (struct submitted){.number = n, .cpus = 1});
    for (int64_t n = 4; n <= 7; n++)
        submits(&world, (struct submitted){.number = n, .queue = "big", .cpus = 1});
    joins(&world, 1, 6, 0);
    started(&world, "1 4 5 2 6 7");
    world_free(&world);
}

TEST(share_keeps_a_project_within_its_quota)
{
    struct world world = world_new();
    project_is(&world, "a", 100, (struct scheduler_amount){2000, -1, -1, -1});
    int64_t session = joins(&world, 1, 8, 2);
    submits(&world, (struct submitted){.number = 1, .project = "a", .cpus = 1});
    submits(&world, (struct submitted){.number = 2, .project = "a", .cpus = 2});
    started(&world, "");
    struct explain why = explained(&world, 2);
    CHECK_TEXT(explain_code_name(why.code), "QUOTA");
    CHECK_TEXT(why.text,
               "Waiting: it needs 2 CPUs; project a holds 1 CPU, and its quota is 2 CPUs.");
    submits(&world, (struct submitted){.number = 3, .project = "a", .cpus = 1});
    started(&world, "3"); /* one that waits for its quota holds nobody up */
    CHECK_INT(scheduler_project_held(world.scheduler, "a").cpu_millis, 2000);
    ends(&world, session, 1);
    ends(&world, session, 3);
    started(&world, "2");
    submits(&world, (struct submitted){.number = 4, .project = "a", .cpus = 3});
    CHECK(strstr(explained(&world, 4).next, "at most 2 CPUs"));
    project_is(&world, "a", 100, (struct scheduler_amount){-1, -1, -1, 2});
    started(&world, "4");
    submits(&world, (struct submitted){.number = 5, .project = "a", .cpus = 1});
    CHECK(strstr(explained(&world, 5).text, "runs 2 jobs"));
    world_free(&world);
}

TEST(share_takes_another_priority)
{
    struct world world = world_new();
    for (int64_t n = 1; n <= 3; n++)
        submits(&world, (struct submitted){.number = n, .priority = 50, .cpus = 1});
    happens(&world,
            &(struct scheduler_event){.kind = ON_PRIORITY, .number = 3, .priority = 60});
    CHECK_INT(action(&world, DO_PRIORITY, 0)->priority, 60);
    happens(&world,
            &(struct scheduler_event){.kind = ON_PRIORITY, .number = 1, .priority = 40});
    joins(&world, 1, 3, 0);
    started(&world, "3 2 1");
    happens(&world,
            &(struct scheduler_event){.kind = ON_PRIORITY, .number = 1, .priority = 90});
    CHECK(!action(&world, DO_PRIORITY, 0)); /* it has started */
    world_free(&world);
}

/* --- the reservation of the head --- */

static void runs(struct world *world, int64_t session, int64_t job)
{
    reports(world, session, job, scheduler_find_job(world->scheduler, job)->epoch, TASK_RUNNING,
            EXIT_NONE);
}

TEST(reserve_never_delays_the_head)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submits(&world, (struct submitted){.number = 1, .cpus = 3, .stop_s = 1000});
    runs(&world, session, 1);
    submits(&world, (struct submitted){.number = 2, .cpus = 4}); /* the head: 1030 s from now */
    CHECK_INT(explained(&world, 2).start_us, 1030 * SECOND);
    submits(&world, (struct submitted){.number = 3, .cpus = 1}); /* might run for ever */
    submits(&world, (struct submitted){.number = 4, .cpus = 1, .stop_s = 1001});
    started(&world, "");
    struct explain why = explained(&world, 4);
    CHECK_TEXT(explain_code_name(why.code), "PRIORITY");
    CHECK(strstr(why.text, "kept for job 2, which starts in 1030 s"));
    submits(&world, (struct submitted){.number = 5, .cpus = 1, .stop_s = 1000});
    started(&world, "5");
    passes(&world, 100, session);
    ends(&world, session, 5);
    started(&world, "");
    submits(&world, (struct submitted){.number = 6, .cpus = 1, .stop_s = 900});
    started(&world, "6");
    ends(&world, session, 6);
    ends(&world, session, 1);
    started(&world, "2");
    world_free(&world);
}

/* What the head leaves may be held for ever. */
TEST(reserve_lends_what_the_head_leaves)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 2);
    submits(&world, (struct submitted){.number = 1, .cpus = 3, .gpus = 1, .stop_s = 1000});
    runs(&world, session, 1);
    submits(&world, (struct submitted){.number = 2, .cpus = 2, .gpus = 1});
    CHECK_INT(scheduler_find_job(world.scheduler, 2)->state, JOB_QUEUED);
    submits(&world, (struct submitted){.number = 3, .cpus = 1, .gpus = 0});
    started(&world, "3"); /* 4 CPUs, of which the head takes 2 */
    submits(&world, (struct submitted){.number = 4, .cpus = 0, .gpus = 1});
    started(&world, "4"); /* the head gets the GPU of job 1 */
    submits(&world, (struct submitted){.number = 5, .cpus = 0, .gpus = 1});
    started(&world, "");
    ends(&world, session, 1);
    started(&world, "2");
    world_free(&world);
}

static void starts_on(const struct world *world, int64_t node)
{
    CHECK(action(world, DO_START, 0));
    CHECK_INT(action(world, DO_START, 0)->node, node);
}

/* Small jobs without a time limit come and go on two nodes: one of these is emptied for the job
 * that needs it whole, once that has waited ten minutes. */
TEST(reserve_keeps_a_node_for_a_job_that_needs_it_whole)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    joins(&world, 2, 4, 0);
    for (int64_t number = 1; number <= 7; number++)
        submits(&world, (struct submitted){.number = number, .cpus = 1});
    submits(&world, (struct submitted){.number = 8, .cpus = 3}); /* takes a whole node */
    submits(&world, (struct submitted){.number = 9, .cpus = 1});
    starts_on(&world, 2); /* passes it, as yet: now both nodes are full */
    submits(&world, (struct submitted){.number = 10, .cpus = 1});
    for (int64_t number = 1; number <= 3; number++)
        runs(&world, session, number);
    ends(&world, session, 1);
    started(&world, "10");
    runs(&world, session, 10);
    world.scheduler->options.suspect_us = world.scheduler->options.lost_us = 3600 * SECOND;
    passes(&world, 600, session);
    submits(&world, (struct submitted){.number = 11, .cpus = 1});
    ends(&world, session, 2);
    started(&world, "");
    struct explain why = explained(&world, 11);
    CHECK_TEXT(explain_code_name(why.code), "PRIORITY");
    CHECK(strstr(why.text, "job 8 waits so long"));
    ends(&world, session, 3);
    started(&world, ""); /* two of four CPUs are free */
    ends(&world, session, 10);
    started(&world, "8");
    starts_on(&world, 1);
    world_free(&world);
}

/* --- preemption --- */

TEST(preempt_ends_the_least_and_keeps_its_budget)
{
    struct world world = world_new();
    queue_is(&world, "urgent", 90, 100, true);
    int64_t session = joins(&world, 1, 4, 0);
    submits(&world, (struct submitted){.number = 1, .priority = 60, .cpus = 1});
    submits(&world, (struct submitted){.number = 2, .priority = 10, .cpus = 1});
    submits(&world, (struct submitted){.number = 3, .priority = 20, .cpus = 2});
    runs(&world, session, 2);
    submits(&world, (struct submitted){.number = 4, .queue = "urgent", .cpus = 2});
    /* Job 2 is of lower rank, but its end is not needed once that of job 3 is. */
    CHECK(action(&world, DO_STOP, 0));
    CHECK_INT(action(&world, DO_STOP, 0)->job, 3);
    CHECK(!action(&world, DO_STOP, 0)->kill);
    CHECK(!action(&world, DO_STOP, 1));
    struct explain why = explained(&world, 4);
    CHECK_TEXT(explain_code_name(why.code), "PREEMPTING");
    CHECK_INT(why.start_us, 30 * SECOND);
    passes(&world, 5, session);
    CHECK(!action(&world, DO_STOP, 0)); /* one is enough */
    submits(&world, (struct submitted){.number = 5, .cpus = 1});
    started(&world, "");
    reports(&world, session, 3, scheduler_find_job(world.scheduler, 3)->epoch, TASK_EXITED,
            EXIT_STOPPED);
    CHECK_TEXT(action(&world, DO_JOB, 0)->reason, "PREEMPTED");
    CHECK_INT(action(&world, DO_JOB, 0)->to, JOB_QUEUED);
    CHECK_INT(action(&world, DO_JOB, 0)->restarts, 0);
    CHECK_INT(action(&world, DO_JOB, 0)->preemptions, 1);
    started(&world, "4");
    ends(&world, session, 4);
    started(&world, "3");
    world_free(&world);
}

/* Jobs of the same rank, and those of queues that do not preempt, wait. */
TEST(preempt_needs_a_higher_rank_and_leave)
{
    struct world world = world_new();
    queue_is(&world, "urgent", 50, 100, true);
    joins(&world, 1, 1, 0);
    submits(&world, (struct submitted){.number = 1, .priority = 50, .cpus = 1});
    submits(&world, (struct submitted){.number = 2, .priority = 90, .cpus = 1});
    CHECK(!action(&world, DO_STOP, 0));
    submits(&world,
            (struct submitted){.number = 3, .queue = "urgent", .priority = 50, .cpus = 1});
    CHECK(!action(&world, DO_STOP, 0));
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 2});
    submits(&world,
            (struct submitted){.number = 4, .queue = "urgent", .priority = 51, .cpus = 1});
    CHECK_INT(action(&world, DO_STOP, 0)->job, 1);
    world_free(&world);
}
