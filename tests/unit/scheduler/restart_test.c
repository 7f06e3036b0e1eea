/* restart_test.c - after what a job is tried again, and where. */
/* Faults of docs/reliability.md: F8. */

#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

struct asked {
    uint32_t retry_on;
    int exclude_bad;
    const struct scheduler_failure *failures;
    int failures_count;
};

static void submits(struct world *world, int64_t number, const struct asked *asked)
{
    struct scheduler_need need = {.role = "worker", .replicas = 1, .each = {1000, 0, 0}};
    struct scheduler_job_info job = {.number = number,
                                     .priority = 50,
                                     .reason = "",
                                     .needs = &need,
                                     .needs_count = 1,
                                     .restart_max = 5,
                                     .retry_on = asked->retry_on,
                                     .exclude_bad = asked->exclude_bad,
                                     .failures = asked->failures,
                                     .failures_count = asked->failures_count};
    happens(world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
}

/* The job's task ends, on the node where it is. */
static void ends(struct world *world, const int64_t sessions[2], int64_t number,
                 enum exit_reason reason)
{
    const struct job *job = scheduler_find_job(world->scheduler, number);
    CHECK(job && job->tasks_count == 1);
    struct scheduler_report report = {.job = number,
                                      .epoch = job->epoch,
                                      .role = "worker",
                                      .state = TASK_EXITED,
                                      .reason = reason,
                                      .error = ""};
    int64_t node = job->tasks[0].node->id;
    happens(world, &(struct scheduler_event){.kind = ON_REPORT,
                                             .id = node,
                                             .epoch = sessions[node - 1],
                                             .reports = &report,
                                             .reports_count = 1});
}

static void heartbeats(struct world *world, const int64_t sessions[2], int seconds)
{
    for (int i = 0; i < seconds; i++) {
        world->now_us += SECOND;
        for (int n = 0; n < 2; n++)
            happens(world, &(struct scheduler_event){
                               .kind = ON_SEEN, .id = n + 1, .epoch = sessions[n]});
    }
}

/* As by the engine that takes the machine away: its checkpoint is written. */
TEST(restart_is_not_used_up_by_a_stop_from_outside)
{
    struct world world = world_new();
    int64_t sessions[2] = {joins(&world, 1, 4, 0)};
    submits(&world, 1, &(struct asked){0});
    for (int i = 1; i <= 8; i++) { /* more often than it may be restarted */
        ends(&world, sessions, 1, EXIT_STOPPED);
        CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
        CHECK_TEXT(became(&world, 1)->reason, "PREEMPTED");
        CHECK_INT(became(&world, 1)->restarts, 0);
        CHECK_INT(became(&world, 1)->preemptions, i);
        CHECK(became(&world, 1)->retry_in_us > 0);
        passes(&world, 60, sessions[0]);
    }
    submits(&world, 2, &(struct asked){.retry_on = BIT(EXIT_LOST)});
    ends(&world, sessions, 2, EXIT_STOPPED);
    CHECK_INT(became(&world, 2)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 2)->reason, "STOPPED");
    world_free(&world);
}

TEST(restart_only_on_what_the_spec_says)
{
    struct world world = world_new();
    int64_t sessions[2] = {joins(&world, 1, 4, 0)};
    submits(&world, 1, &(struct asked){.retry_on = BIT(EXIT_LOST)});
    ends(&world, sessions, 1, EXIT_CRASH);
    CHECK_INT(became(&world, 1)->to, JOB_FAILED);
    CHECK_TEXT(became(&world, 1)->reason, "CRASH");
    CHECK_TEXT(became(&world, 1)->text,
               "worker:0 on n1 crashed; its spec has no restart on \"crash\"");
    submits(&world, 2, &(struct asked){.retry_on = BIT(EXIT_USER)});
    ends(&world, sessions, 2, EXIT_USER);
    CHECK_INT(became(&world, 2)->to, JOB_QUEUED);
    CHECK_INT(became(&world, 2)->restarts, 1);
    submits(&world, 3, &(struct asked){0}); /* by default not after the job's own error */
    ends(&world, sessions, 3, EXIT_USER);
    CHECK_INT(became(&world, 3)->to, JOB_FAILED);
    submits(&world, 4, &(struct asked){0});
    ends(&world, sessions, 4, EXIT_START);
    CHECK_INT(became(&world, 4)->to, JOB_QUEUED);
    world_free(&world);
}

/* Where the job is; 0 while it waits. */
static int64_t node_of(const struct world *world, int64_t number)
{
    const struct job *job = scheduler_find_job(world->scheduler, number);
    CHECK(job);
    return job->tasks_count ? job->tasks[0].node->id : 0;
}

TEST(restart_passes_over_nodes_that_failed_it)
{
    struct world world = world_new();
    int64_t sessions[2] = {joins(&world, 1, 4, 0), 0};
    sessions[1] = joins(&world, 2, 4, 0);
    submits(&world, 1, &(struct asked){.exclude_bad = 2});
    for (int i = 1; i <= 2; i++) {
        CHECK_INT(node_of(&world, 1), 1);
        ends(&world, sessions, 1, EXIT_CRASH);
        CHECK_INT(action(&world, DO_FAILURE, 0)->node, 1);
        CHECK_INT(action(&world, DO_FAILURE, 0)->count, i);
        heartbeats(&world, sessions, 10 * i);
    }
    CHECK_INT(node_of(&world, 1), 2);
    ends(&world, sessions, 1, EXIT_CRASH);
    CHECK_INT(action(&world, DO_FAILURE, 0)->count, 1);
    heartbeats(&world, sessions, 40);
    CHECK_INT(node_of(&world, 1), 2);
    ends(&world, sessions, 1, EXIT_CRASH);
    heartbeats(&world, sessions, 80);
    CHECK_INT(node_of(&world, 1), 0);
    struct explain why = explained(&world, 1);
    CHECK_TEXT(explain_code_name(why.code), "EXCLUDED");
    CHECK_TEXT(why.text,
               "Waiting: it passes over n1 and 1 more, where it has failed 2 times or "
               "more, and does not fit on the other nodes even when they are empty.");

    /* It speaks for nobody else: an equal one that may go anywhere starts. */
    submits(&world, 2, &(struct asked){0});
    CHECK_INT(action(&world, DO_START, 0)->job, 2);
    world_free(&world);
}

TEST(restart_remembers_bad_nodes_as_they_were_stored)
{
    struct world world = world_new();
    joins(&world, 1, 4, 0);
    static const struct scheduler_failure failures[] = {{1, 1}};
    struct asked asked = {.exclude_bad = 1, .failures = failures, .failures_count = 1};
    submits(&world, 1, &asked);
    CHECK(!action(&world, DO_START, 0));
    CHECK_INT(explained(&world, 1).code, EXPLAIN_EXCLUDED);
    joins(&world, 2, 4, 0);
    CHECK_INT(action(&world, DO_START, 0)->node, 2);

    /* Where there is no room for it, it is said what it passes over. */
    asked.failures_count = 1;
    for (int64_t n = 2; n <= 9; n++)
        submits(&world, n, &asked);
    struct explain why = explained(&world, 9);
    CHECK_INT(why.code, EXPLAIN_RESOURCES);
    CHECK(strstr(why.text, "It passes over n1, where it has failed."));

    /* A copy has it, too, and is a state of its own. */
    struct scheduler *copy = scheduler_copy(world.scheduler);
    const struct job *job = scheduler_find_job(copy, 9);
    CHECK_INT(job->excluded_count, 1);
    CHECK_INT(job->excluded[0], 1);
    scheduler_check(copy);
    scheduler_free(copy);
    world_free(&world);
}

TEST(restart_does_not_blame_a_node_for_the_jobs_own_error)
{
    struct world world = world_new();
    int64_t sessions[2] = {joins(&world, 1, 4, 0)};
    submits(
        &world, 1,
        &(struct asked){.retry_on = EXIT_REASONS_RETRIED | BIT(EXIT_USER), .exclude_bad = 1});
    ends(&world, sessions, 1, EXIT_USER);
    CHECK_INT(became(&world, 1)->to, JOB_QUEUED);
    CHECK(!action(&world, DO_FAILURE, 0));
    world_free(&world);
}
