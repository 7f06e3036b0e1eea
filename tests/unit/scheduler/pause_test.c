/* pause_test.c - jobs that a person holds, and lets go. */

#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

static void pauses(struct world *world, int64_t number, bool pause)
{
    happens(world,
            &(struct scheduler_event){.kind = ON_PAUSE, .number = number, .pause = pause});
}

static void ends(struct world *world, int64_t session, int64_t number, enum exit_reason reason)
{
    const struct job *job = scheduler_find_job(world->scheduler, number);
    CHECK(job);
    reports(world, session, number, job->epoch, TASK_EXITED, reason);
}

TEST(pause_holds_a_queued_job)
{
    struct world world = world_new();
    submit(&world, 1, 1);
    submit(&world, 2, 1);
    pauses(&world, 1, true);
    CHECK(action(&world, DO_PAUSE, 0)->pause);
    CHECK_TEXT(explain_code_name(explained(&world, 1).code), "PAUSED");
    CHECK_TEXT(explained(&world, 1).next, "trainyard resume 1");
    pauses(&world, 1, true);
    CHECK(!action(&world, DO_PAUSE, 0)); /* once is enough */
    joins(&world, 1, 2, 0);
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    CHECK(!action(&world, DO_START, 1));
    pauses(&world, 1, false);
    CHECK(!action(&world, DO_PAUSE, 0)->pause);
    CHECK_INT(action(&world, DO_START, 0)->job, 1);
    world_free(&world);
}

TEST(pause_ends_an_attempt_and_frees_its_nodes)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit_with(&world, 1, 50, 1, 1, 0, 0, 0); /* no restart is left to it */
    submit(&world, 2, 1);
    pauses(&world, 1, true);
    CHECK_INT(became(&world, 1)->to, JOB_STOPPING);
    CHECK_TEXT(became(&world, 1)->reason, "PAUSE");
    CHECK(!action(&world, DO_STOP, 0)->kill);
    ends(&world, session, 1, EXIT_STOPPED);
    CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
    CHECK_TEXT(became(&world, 1)->reason, "PAUSED");
    CHECK_INT(became(&world, 1)->restarts, 0);
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    ends(&world, session, 2, EXIT_OK);
    CHECK(!action(&world, DO_START, 0));
    pauses(&world, 1, false);
    CHECK_INT(action(&world, DO_START, 0)->attempt, 2);
    ends(&world, session, 1, EXIT_OK);
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    world_free(&world);
}

TEST(pause_comes_too_late_for_what_has_finished)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 2, 0);
    submit(&world, 1, 1);
    pauses(&world, 1, true);
    ends(&world, session, 1, EXIT_OK);
    CHECK_INT(became(&world, 1)->to, JOB_SUCCEEDED);
    submit(&world, 2, 1);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 2});
    pauses(&world, 2, true);
    CHECK(!action(&world, DO_PAUSE, 0));
    ends(&world, session, 2, EXIT_STOPPED);
    CHECK_INT(became(&world, 2)->to, JOB_CANCELLED);
    world_free(&world);
}

TEST(pause_and_cancel_ends_in_cancelled)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    pauses(&world, 1, true);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 1});
    CHECK_TEXT(action(&world, DO_NOTE, 0)->reason, "CANCEL");
    ends(&world, session, 1, EXIT_STOPPED);
    CHECK_INT(became(&world, 1)->to, JOB_CANCELLED);
    submit(&world, 2, 1);
    pauses(&world, 2, true);
    ends(&world, session, 2, EXIT_STOPPED);
    happens(&world, &(struct scheduler_event){.kind = ON_CANCEL, .number = 2});
    CHECK_INT(became(&world, 2)->to, JOB_CANCELLED);
    world_free(&world);
}

TEST(pause_taken_back_while_the_job_stops)
{
    struct world world = world_new();
    int64_t session = joins(&world, 1, 1, 0);
    submit(&world, 1, 1);
    pauses(&world, 1, true);
    pauses(&world, 1, false);
    ends(&world, session, 1, EXIT_STOPPED);
    CHECK_TEXT(action(&world, DO_JOB, 0)->reason, "RESUMED");
    CHECK_INT(action(&world, DO_START, 0)->attempt, 2);

    /* A fault while it stops for another reason: it is tried again, but held. */
    ends(&world, session, 1, EXIT_CRASH);
    pauses(&world, 1, true);
    passes(&world, 30, session);
    CHECK(!action(&world, DO_START, 0));
    pauses(&world, 1, false);
    CHECK_INT(action(&world, DO_START, 0)->attempt, 3);
    world_free(&world);
}
