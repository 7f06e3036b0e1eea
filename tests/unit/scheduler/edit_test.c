/* edit_test.c - jobs that ask for something else while they wait. */

#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

static void edits(struct world *world, int64_t number, int attempt, int cpus, int restart_max,
                  const char *queue)
{
    static const char mark[] = "as it was stored";
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {1000 * cpus, 0, 0}};
    struct scheduler_job_info job = {.number = number,
                                     .attempt = attempt,
                                     .queue = queue,
                                     .priority = 70,
                                     .needs = &need,
                                     .needs_count = 1,
                                     .restart_max = restart_max};
    happens(world, &(struct scheduler_event){.kind = ON_EDIT, .job = &job, .edit = mark});
    if (action(world, DO_EDIT, 0))
        CHECK(action(world, DO_EDIT, 0)->edit == mark);
}

TEST(edit_changes_what_a_queued_job_asks_for)
{
    struct world world = world_new();
    joins(&world, 1, 4, 0);
    submit(&world, 1, 8);
    CHECK_INT(explained(&world, 1).code, EXPLAIN_TOO_LARGE);
    edits(&world, 1, 0, 3, 5, "other");
    CHECK_INT(action(&world, DO_EDIT, 0)->job, 1);
    CHECK_INT(action(&world, DO_START, 0)->job, 1);
    CHECK_INT(action(&world, DO_START, 0)->resources.cpu_millis, 3000);
    const struct job *job = scheduler_find_job(world.scheduler, 1);
    CHECK_TEXT(job->lane->name, "other");
    CHECK_INT(job->priority, 70);
    edits(&world, 1, 1, 1, 5, NULL);
    CHECK(!action(&world, DO_EDIT, 0)); /* it runs */
    edits(&world, 2, 0, 1, 5, NULL);
    CHECK(!action(&world, DO_EDIT, 0)); /* there is none */
    world_free(&world);
}

TEST(edit_does_not_undo_what_was)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    reports(&world, session, 1, started_epoch(&world, 1), TASK_EXITED, EXIT_CRASH);
    edits(&world, 1, 0, 1, 5, NULL);
    CHECK(!action(&world, DO_EDIT, 0)); /* seen before it was tried */
    edits(&world, 1, 1, 1, 0, NULL);
    CHECK(action(&world, DO_EDIT, 0));
    passes(&world, 10, session);
    CHECK_INT(action(&world, DO_START, 0)->attempt, 2); /* the restart that was granted */
    reports(&world, session, 1, started_epoch(&world, 1), TASK_EXITED, EXIT_CRASH);
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    world_free(&world);
}
