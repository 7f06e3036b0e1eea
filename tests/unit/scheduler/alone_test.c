/* alone_test.c - a task that is lost while the others go on without it is placed anew. */
/* Faults of docs/reliability.md: F48. */

#include "scheduler/internal.h"
#include "tests/unit/scheduler/core.h"

#define NODES 3

struct yard {
    struct world world;
    int64_t sessions[NODES];
};

/* Nodes of two CPUs each. */
static struct yard yard_new(int nodes)
{
    struct yard yard = {.world = world_new()};
    for (int i = 0; i < nodes; i++)
        yard.sessions[i] = joins(&yard.world, i + 1, 2, 0);
    return yard;
}

static struct job *the_job(struct yard *yard)
{
    return scheduler_find_job(yard->world.scheduler, 1);
}

static struct task *worker(struct yard *yard, int index)
{
    struct job *job = the_job(yard);
    for (int i = 0; job && i < job->tasks_count; i++) {
        if (job->tasks[i].index == index && !strcmp(job->tasks[i].role, "worker"))
            return &job->tasks[i];
    }
    return NULL;
}

static void tells(struct yard *yard, const struct task *task, int64_t epoch, int64_t node,
                  enum task_state state, enum exit_reason reason)
{
    struct scheduler_report report = {.job = 1,
                                      .epoch = epoch,
                                      .index = task->index,
                                      .state = state,
                                      .reason = reason,
                                      .error = ""};
    memcpy(report.role, task->role, sizeof(report.role));
    happens(&yard->world, &(struct scheduler_event){.kind = ON_REPORT,
                                                    .id = node,
                                                    .epoch = yard->sessions[node - 1],
                                                    .reports = &report,
                                                    .reports_count = 1});
}

/* A parameter server and three workers of one CPU each, all of which run. */
static void runs(struct yard *yard, int restart_max, int exclude_bad)
{
    struct scheduler_need needs[] = {
        {.role = "worker", .replicas = 3, .each = {1000, 0, 0}, .alone = true},
        {.role = "ps", .replicas = 1, .each = {1000, 0, 0}}};
    struct scheduler_job_info job = {.number = 1,
                                     .priority = 50,
                                     .reason = "",
                                     .needs = needs,
                                     .needs_count = 2,
                                     .restart_max = restart_max,
                                     .exclude_bad = exclude_bad};
    happens(&yard->world, &(struct scheduler_event){.kind = ON_SUBMIT, .job = &job});
    for (int i = 0; i < the_job(yard)->tasks_count; i++) {
        const struct task *task = &the_job(yard)->tasks[i];
        tells(yard, task, task->epoch, task->node->id, TASK_RUNNING, EXIT_NONE);
    }
    CHECK_INT(the_job(yard)->state, JOB_RUNNING);
    CHECK_INT(worker(yard, 0)->node->id, 1);
    CHECK_INT(worker(yard, 2)->node->id, 2);
}

static void node_goes(struct yard *yard, int64_t node)
{
    happens(&yard->world,
            &(struct scheduler_event){.kind = ON_GONE, .id = node, .text = "its machine"});
}

TEST(scheduler_places_a_lost_worker_anew_alone)
{
    struct yard yard = yard_new(3);
    struct task *two;
    runs(&yard, 5, 0);
    two = worker(&yard, 2);
    int64_t epoch = two->epoch;
    CHECK_INT(the_job(&yard)->tasks[3].node->id, 2); /* the server: it would go, too */
    tells(&yard, two, epoch, 2, TASK_EXITED, EXIT_LOST);
    CHECK_INT(the_job(&yard)->state, JOB_RUNNING);
    CHECK_INT(the_job(&yard)->restarts, 1);
    CHECK_INT(two->state, TASK_WAITING);
    CHECK(two->epoch > epoch);
    CHECK(action(&yard.world, DO_START, 0));
    CHECK(!action(&yard.world, DO_START, 1));
    CHECK(!action(&yard.world, DO_STOP, 0));
    CHECK_INT(action(&yard.world, DO_START, 0)->task_epoch, two->epoch);
    CHECK_INT(action(&yard.world, DO_START, 0)->epoch, epoch);
    CHECK_TEXT(action(&yard.world, DO_NOTE, 0)->reason, "TASK_AWAY");
    CHECK_TEXT(action(&yard.world, DO_NOTE, 1)->reason, "PLACED_ANEW");

    /* What is still said of the one before is of nobody. */
    tells(&yard, two, epoch, two->node->id, TASK_RUNNING, EXIT_NONE);
    CHECK_INT(two->state, TASK_WAITING);
    CHECK(action(&yard.world, DO_STOP, 0)->kill);

    /* When the others have finished nobody waits for the one that came later. */
    for (int i = 0; i < 2; i++)
        tells(&yard, worker(&yard, i), epoch, 1, TASK_EXITED, EXIT_OK);
    CHECK_INT(the_job(&yard)->state, JOB_STOPPING);
    CHECK_INT(the_job(&yard)->intent, INTENT_DONE);
    world_free(&yard.world);
}

TEST(scheduler_goes_on_without_a_worker_that_has_no_room)
{
    struct yard yard = yard_new(2);
    runs(&yard, 5, 0);
    struct task *one = worker(&yard, 2);
    int64_t epoch = one->epoch;
    happens(&yard.world, &(struct scheduler_event){.kind = ON_DRAIN, .id = 2, .drain = true});
    tells(&yard, one, epoch, 2, TASK_EXITED, EXIT_LOST);
    CHECK(one->away);
    CHECK_INT(the_job(&yard)->state, JOB_RUNNING);
    CHECK_INT(the_job(&yard)->restarts, 0);
    struct explain why = explained(&yard.world, 1);
    CHECK_TEXT(explain_code_name(why.code), "TASK_AWAY");
    CHECK(strstr(why.text, "worker:2") && strstr(why.text, "needs 1 CPU"));
    yard.sessions[2] = joins(&yard.world, 3, 1, 0);
    CHECK(!one->away);
    CHECK_INT(one->node->id, 3);
    CHECK_TEXT(explain_code_name(explained(&yard.world, 1).code), "NOT_WAITING");
    world_free(&yard.world);
}

/* Its node stays, and so does what was wrong there. */
TEST(scheduler_places_a_worker_anew_where_it_has_not_failed)
{
    struct yard yard = yard_new(3);
    runs(&yard, 5, 1);
    struct task *two = worker(&yard, 2);
    tells(&yard, two, two->epoch, 2, TASK_EXITED, EXIT_CRASH);
    CHECK(two->away);
    CHECK_INT(action(&yard.world, DO_FAILURE, 0)->node, 2);
    CHECK_TEXT(explain_code_name(explained(&yard.world, 1).code), "TASK_AWAY");
    for (int i = 0; i < 20 && two->away; i++) {
        yard.world.now_us += SECOND;
        for (int n = 0; n < 3; n++)
            happens(&yard.world, &(struct scheduler_event){
                                     .kind = ON_SEEN, .id = n + 1, .epoch = yard.sessions[n]});
        CHECK(i > 5 || two->away); /* after a crash it waits */
    }
    CHECK_INT(two->node->id, 3);
    world_free(&yard.world);
}

TEST(scheduler_starts_all_again_when_one_is_lost_that_must_be_there)
{
    for (int gone = 1; gone <= 2; gone++) { /* of the first worker; of the server */
        struct yard yard = yard_new(3);
        runs(&yard, 1, 0);
        node_goes(&yard, gone);
        CHECK_INT(the_job(&yard)->state, JOB_STOPPING);
        CHECK_INT(the_job(&yard)->intent, INTENT_FAULT);
        CHECK_INT(the_job(&yard)->restarts, 0); /* what was lost beside it costs nothing */
        CHECK(!action(&yard.world, DO_START, 0));
        world_free(&yard.world);
    }
}

TEST(scheduler_places_anew_no_more_often_than_it_restarts)
{
    struct yard yard = yard_new(3);
    runs(&yard, 1, 0);
    struct task *two = worker(&yard, 2);
    tells(&yard, two, two->epoch, two->node->id, TASK_EXITED, EXIT_LOST);
    CHECK_INT(the_job(&yard)->restarts, 1);
    tells(&yard, two, two->epoch, two->node->id, TASK_EXITED, EXIT_LOST);
    CHECK_INT(the_job(&yard)->intent, INTENT_FAULT);
    world_free(&yard.world);
}
