/* after_test.c - jobs that come after others. */

#include "scheduler/advise.h"
#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

static void submits(struct world *world, int64_t number, const char *project,
                    const struct scheduler_after *after, int after_count)
{
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {1000, 0, 0}};
    struct scheduler_job_info job = {.number = number,
                                     .project = project,
                                     .priority = 50,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .after = after,
                                     .after_count = after_count};
    happens(world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
}

static void submits_after(struct world *world, int64_t number, int64_t other)
{
    submits(world, number, NULL, &(struct scheduler_after){other, JOB_QUEUED}, 1);
}

static void ends(struct world *world, int64_t session, int64_t number, enum exit_reason reason)
{
    const struct job *job = scheduler_find_job(world->scheduler, number);
    CHECK(job);
    reports(world, session, number, job->epoch, TASK_EXITED, reason);
}

TEST(after_success_a_job_starts)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submits(&world, 1, NULL, NULL, 0);
    submits(&world, 2, NULL, NULL, 0);
    const struct scheduler_after both[] = {{1, JOB_RUNNING}, {2, JOB_QUEUED}};
    submits(&world, 3, NULL, both, 2);
    CHECK(!action(&world, DO_START, 0));
    struct explain why = explained(&world, 3);
    CHECK_TEXT(explain_code_name(why.code), "DEPENDENCY");
    CHECK_TEXT(why.text, "Waiting: it comes after job 1 (allocated) and 1 more.");
    CHECK_INT(why.holders_count, 2);
    CHECK_INT(why.holders[1].job, 2);
    ends(&world, session, 1, EXIT_OK);
    CHECK(!action(&world, DO_START, 0));
    CHECK_TEXT(explained(&world, 3).text, "Waiting: it comes after job 2 (allocated).");
    ends(&world, session, 2, EXIT_OK);
    CHECK_INT(action(&world, DO_START, 0)->job, 3);
    world_free(&world);
}

TEST(after_failure_all_that_come_after_fail)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submits(&world, 1, NULL, NULL, 0);
    for (int64_t n = 2; n <= 1000; n++)
        submits_after(&world, n, n - 1);
    submits_after(&world, 1001, 1);
    submits(&world, 1002, NULL, NULL, 0); /* another */
    ends(&world, session, 1, EXIT_USER);
    CHECK_INT(became(&world, 2)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 2)->reason, "DEPENDENCY");
    CHECK_TEXT(became(&world, 2)->text, "it was to come after job 1, which has failed");
    CHECK_TEXT(became(&world, 1000)->text, "it was to come after job 999, which has failed");
    CHECK_INT(became(&world, 1001)->to, JOB_FAILED);
    enum job_state state;
    CHECK(!scheduler_job_state(world.scheduler, 500, &state));
    CHECK(scheduler_job_state(world.scheduler, 1002, &state));
    world_free(&world);
}

TEST(after_a_cancelled_job_comes_none)
{
    struct world world = world_new();
    submits(&world, 1, NULL, NULL, 0);
    submits_after(&world, 2, 1);
    submits_after(&world, 3, 2);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 2});
    CHECK_TEXT(became(&world, 3)->text, "it was to come after job 2, which was cancelled");
    enum job_state state;
    CHECK(scheduler_job_state(world.scheduler, 1, &state));
    world_free(&world);
}

/* How its predecessors stand is looked up before the scheduler hears of a job. */
TEST(after_is_loaded_as_it_is_stored)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submits(&world, 3, NULL, &(struct scheduler_after){1, JOB_SUCCEEDED}, 1);
    CHECK_INT(action(&world, DO_START, 0)->job, 3);
    submits(&world, 4, NULL, &(struct scheduler_after){2, JOB_CANCELLED}, 1);
    CHECK_INT(became(&world, 4)->to, JOB_FAILED);

    /* It ends in the batch in which one that comes after it is loaded as the store had it. */
    scheduler_actions_clear(&world.actions);
    struct scheduler_report report = {.job = 3,
                                      .epoch = scheduler_find_job(world.scheduler, 3)->epoch,
                                      .role = "worker",
                                      .state = TASK_EXITED,
                                      .reason = EXIT_OK,
                                      .error = ""};
    scheduler_step(world.scheduler,
                   &(struct scheduler_event){.kind = ON_REPORT,
                                             .id = 1,
                                             .epoch = session,
                                             .reports = &report,
                                             .reports_count = 1},
                   world.now_us, &world.actions);
    enum job_state state;
    CHECK(!scheduler_job_state(world.scheduler, 3, &state));
    submits(&world, 5, NULL, &(struct scheduler_after){3, JOB_RUNNING}, 1);
    CHECK_INT(action(&world, DO_START, 0)->job, 5);
    world_free(&world);
}

/* Those that are held take no turn of their project's other jobs. */
TEST(after_holds_nobody_else_up)
{
    struct world world = world_new();
    submits(&world, 1, "a", NULL, 0);
    for (int64_t n = 2; n <= 20; n++)
        submits(&world, n, "a", &(struct scheduler_after){1, JOB_QUEUED}, 1);
    submits(&world, 21, "a", NULL, 0);
    submits(&world, 22, "b", NULL, 0);
    submits(&world, 23, "b", NULL, 0);
    joins(&world, 1, 2, 0);
    CHECK_INT(action(&world, DO_START, 0)->job, 1);
    CHECK_INT(action(&world, DO_START, 1)->job, 22);
    CHECK_INT(explained(&world, 23).ahead_count, 1);
    CHECK_INT(explained(&world, 23).ahead_job, 21);
    world_free(&world);
}

/* What would start it is tried on a copy; nothing but the success of the other does. */
TEST(after_is_foreseen)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 4, 0);
    submit_with(&world, 1, 50, 1, 1, 0, 0, 60 * SECOND);
    reports(&world, session, 1, started_epoch(&world, 1), TASK_RUNNING, EXIT_NONE);
    submits_after(&world, 2, 1);
    submits_after(&world, 3, 2);
    struct explain why = explained(&world, 2);
    advise_job(world.scheduler, 2, world.now_us, &why);
    CHECK_INT(why.changes_count, 0);
    CHECK(why.start_us >= (int64_t)(60 * SECOND) && why.start_us <= (int64_t)(90 * SECOND));
    why = explained(&world, 3);
    advise_job(world.scheduler, 3, world.now_us, &why);
    CHECK_INT(why.start_us, -1); /* how long the second takes nobody knows */
    world_free(&world);
}
