/* loop_test.c - the loop over a real database, with agents made of test code. */
/* Faults of docs/reliability.md: F1 F8 F29. */

#include <unistd.h>

#include "base/arena.h"
#include "base/mailbox.h"
#include "db/events.h"
#include "db/nodes.h"
#include "scheduler/loop.h"
#include "tests/unit/db/folder.h"

/* What the loop told the agents, in order. */
struct told {
    char what[16]; /* "joined", "refused", "start", "stop", "kill", "ack", "heard", "forget" */
    int64_t node;
    int64_t epoch;
    int64_t job;
    int attempt;
    char role[16];
    int discards;
};

struct world {
    char *folder;
    struct db *db;
    struct loop *loop;
    struct mailbox *told;
};

static struct told *tell(const char *what, int64_t node, const struct loop_task *task)
{
    struct told *told = alloc_bytes(sizeof(*told));
    snprintf(told->what, sizeof(told->what), "%s", what);
    told->node = node;
    if (task) {
        told->job = task->job;
        told->epoch = task->epoch;
        told->attempt = task->attempt;
        snprintf(told->role, sizeof(told->role), "%s", task->role);
    }
    return told;
}

static void post(struct world *world, struct told *told)
{
    CHECK(mailbox_post(world->told, told));
}

static void on_joined(void *self, struct loop_join *join, const struct loop_task *discard,
                      int discard_count, const struct error *err)
{
    (void)discard;
    struct told *told = tell(err ? "refused" : "joined", join->node_id, NULL);
    told->epoch = join->node_epoch;
    told->discards = discard_count;
    loop_join_free(join);
    post(self, told);
}

static void on_start(void *self, int64_t node, const struct loop_task *task)
{
    post(self, tell("start", node, task));
}

static void on_stop(void *self, int64_t node, const struct loop_task *task, bool kill,
                    int64_t grace_ms)
{
    CHECK_INT(grace_ms, 30000);
    post(self, tell(kill ? "kill" : "stop", node, task));
}

static void on_acknowledge(void *self, int64_t node, const struct loop_task *task)
{
    post(self, tell("ack", node, task));
}

static void on_heard(void *self, void *call, int64_t node, int64_t epoch,
                     const struct error *err)
{
    (void)call;
    struct told *told = tell(err ? "unheard" : "heard", node, NULL);
    told->epoch = epoch;
    post(self, told);
}

static void on_forget(void *self, int64_t node)
{
    post(self, tell("forget", node, NULL));
}

static uint64_t on_flush(void *self)
{
    (void)self;
    return UINT64_MAX;
}

static void loop_begin_with(struct world *world, int64_t suspect_ms, int64_t lost_ms)
{
    struct error err;
    struct loop_options options = {
        .db = world->db, .suspect_ms = suspect_ms, .lost_ms = lost_ms, .backoff_ms = 50};
    world->loop = loop_new(&options, &err);
    if (!world->loop)
        CHECK_STOP("%s", err.text);
    struct loop_agents agents = {.self = world,
                                 .joined = on_joined,
                                 .start = on_start,
                                 .stop = on_stop,
                                 .acknowledge = on_acknowledge,
                                 .heard = on_heard,
                                 .forget = on_forget,
                                 .flush = on_flush};
    loop_set_agents(world->loop, &agents);
    CHECK_OK(loop_start(world->loop, &err), &err);
}

static void loop_begin(struct world *world)
{
    loop_begin_with(world, 60000, 600000);
}

static void loop_end(struct world *world)
{
    loop_stop(world->loop);
    loop_free(world->loop);
    struct told *told;
    while ((told = mailbox_take(world->told, 0)))
        free(told);
}

static struct world world_open(void)
{
    struct error err;
    struct world world = {.folder = folder_new(), .told = mailbox_new(1000)};
    world.db = db_open(world.folder, &err);
    if (!world.db)
        CHECK_STOP("%s", err.text);
    return world;
}

static void world_close(struct world *world)
{
    loop_end(world);
    mailbox_free(world->told);
    db_close(world->db);
    folder_free(world->folder);
}

/* The next thing said must be this. */
static struct told expect(struct world *world, const char *what)
{
    struct told *told = mailbox_take(world->told, 5000);
    if (!told)
        CHECK_STOP("nothing was said, expected %s", what);
    struct told copy = *told;
    free(told);
    CHECK_TEXT(copy.what, what);
    return copy;
}

static int64_t submit(struct world *world, int cpus, int restart_max)
{
    struct error err;
    struct db_need need = {.role = "worker",
                           .replicas = 1,
                           .cpu_millis = 1000 * cpus,
                           .memory_bytes = 1 << 20,
                           .gpus = 0};
    struct db_job_new job = {.user_id = 1,
                             .name = "j",
                             .project = "p",
                             .queue = "default",
                             .priority = 50,
                             .spec = "{}",
                             .dataset = "",
                             .needs = &need,
                             .needs_count = 1,
                             .restart_max = restart_max};
    struct db_job_added added;
    CHECK_OK(db_jobs_add(world->db, &job, &added, &err), &err);
    loop_wake(world->loop);
    return added.number;
}

static void join_as(struct world *world, const char *name, const char *identity,
                    const struct scheduler_report *tasks, int tasks_count)
{
    struct arena *arena = arena_new();
    struct loop_join *join = arena_alloc(arena, sizeof(*join));
    *join = (struct loop_join){
        .arena = arena,
        .name = arena_text(arena, name),
        .identity = arena_text(arena, identity),
        .boot_id = "b",
        .version = "1",
        .labels = "{}",
        .capacity = {4000, INT64_C(1) << 30, 0},
        .gpu_type = "",
        .tasks = arena_copy(arena, tasks, (size_t)tasks_count * sizeof(*tasks)),
        .tasks_count = tasks_count,
    };
    CHECK(loop_join(world->loop, join));
}

static struct scheduler_report report_of(const struct told *start, enum task_state state,
                                         enum exit_reason reason)
{
    struct scheduler_report report = {.job = start->job,
                                      .epoch = start->epoch,
                                      .state = state,
                                      .reason = reason,
                                      .pid = 77,
                                      .error = reason == EXIT_USER ? "loss is NaN" : "",
                                      .step = -1};
    memcpy(report.role, start->role, sizeof(report.role));
    return report;
}

static void report(struct world *world, const struct told *session, const struct told *start,
                   enum task_state state, enum exit_reason reason)
{
    struct scheduler_report report = report_of(start, state, reason);
    struct arena *arena = arena_new();
    struct loop_heard heard = {.node = session->node,
                               .node_epoch = session->epoch,
                               .arena = arena,
                               .reports = arena_copy(arena, &report, sizeof(report)),
                               .reports_count = 1,
                               .call = world};
    CHECK(loop_hear(world->loop, &heard));
}

static struct db_job find(struct world *world, struct arena *arena, int64_t number)
{
    struct error err;
    struct db_job job;
    struct db_conn *conn = db_read(world->db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_find(conn, number, arena, &job, &err), &err);
    db_read_done(world->db, conn);
    return job;
}

static enum job_state state_of(struct world *world, int64_t number)
{
    struct arena *arena = arena_new();
    enum job_state state = find(world, arena, number).state;
    arena_free(arena);
    return state;
}

TEST(loop_runs_a_job_to_its_end)
{
    struct world world = world_open();
    loop_begin(&world);
    join_as(&world, "n1", "a", NULL, 0);
    struct told session = expect(&world, "joined");
    CHECK_INT(session.node, 1);
    int64_t number = submit(&world, 1, 0);
    struct told start = expect(&world, "start");
    CHECK_INT(start.job, number);
    CHECK_INT(start.attempt, 1);
    CHECK_INT(state_of(&world, number), JOB_ALLOCATED);
    report(&world, &session, &start, TASK_STARTING, EXIT_NONE);
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_STARTING);
    report(&world, &session, &start, TASK_RUNNING, EXIT_NONE);
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_RUNNING);
    report(&world, &session, &start, TASK_EXITED, EXIT_OK);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_SUCCEEDED);
    /* What is said twice is acknowledged twice, and changes nothing. */
    report(&world, &session, &start, TASK_EXITED, EXIT_CRASH);
    expect(&world, "ack");
    CHECK_INT(state_of(&world, number), JOB_SUCCEEDED);
    world_close(&world);
}

TEST(loop_tells_a_users_error)
{
    struct world world = world_open();
    struct arena *arena = arena_new();
    loop_begin(&world);
    join_as(&world, "n1", "a", NULL, 0);
    struct told session = expect(&world, "joined");
    int64_t number = submit(&world, 1, 5);
    struct told start = expect(&world, "start");
    report(&world, &session, &start, TASK_EXITED, EXIT_USER);
    expect(&world, "ack");
    expect(&world, "heard");
    struct db_job job = find(&world, arena, number);
    CHECK_INT(job.state, JOB_FAILED);
    CHECK_TEXT(job.reason, "USER");
    CHECK(strstr(job.text, "worker:0 on n1"));

    struct error err;
    struct db_task task;
    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_tasks_find(conn, job.epoch, "worker", 0, arena, &task, &err), &err);
    CHECK_TEXT(task.error, "loss is NaN");
    CHECK_INT(task.pid, 77);
    db_read_done(world.db, conn);
    arena_free(arena);
    world_close(&world);
}

TEST(loop_tries_again_after_a_crash)
{
    struct world world = world_open();
    loop_begin(&world);
    join_as(&world, "n1", "a", NULL, 0);
    struct told session = expect(&world, "joined");
    int64_t number = submit(&world, 1, 1);
    struct told first = expect(&world, "start");
    report(&world, &session, &first, TASK_EXITED, EXIT_CRASH);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_QUEUED);
    struct told second = expect(&world, "start");
    CHECK_INT(second.attempt, 2);
    CHECK(second.epoch > first.epoch);
    report(&world, &session, &second, TASK_EXITED, EXIT_CRASH);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_FAILED);
    world_close(&world);
}

TEST(loop_cancels)
{
    struct error err;
    enum job_state state;
    struct world world = world_open();
    loop_begin(&world);
    int64_t waiting = submit(&world, 1, 0);
    CHECK_OK(loop_cancel(world.loop, waiting, false, &state, &err), &err);
    CHECK_INT(state, JOB_CANCELLED);
    CHECK_INT(state_of(&world, waiting), JOB_CANCELLED);
    CHECK_OK(loop_cancel(world.loop, waiting, true, &state, &err), &err);
    CHECK_FAILS(loop_cancel(world.loop, 99, false, &state, &err), &err, NOT_FOUND);

    join_as(&world, "n1", "a", NULL, 0);
    struct told session = expect(&world, "joined");
    int64_t number = submit(&world, 1, 5);
    struct told start = expect(&world, "start");
    CHECK_OK(loop_cancel(world.loop, number, false, &state, &err), &err);
    CHECK_INT(state, JOB_STOPPING);
    expect(&world, "stop");
    CHECK_OK(loop_cancel(world.loop, number, true, &state, &err), &err);
    expect(&world, "kill");
    report(&world, &session, &start, TASK_EXITED, EXIT_CRASH);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_INT(state_of(&world, number), JOB_CANCELLED);

    number = submit(&world, 1, 5);
    start = expect(&world, "start");
    report(&world, &session, &start, TASK_EXITED, EXIT_OK);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_FAILS(loop_cancel(world.loop, number, false, &state, &err), &err, PRECONDITION);
    world_close(&world);
}

/* After a restart the node's inventory decides: what runs is adopted, the rest is started once.
 */
TEST(loop_adopts_after_a_restart)
{
    struct world world = world_open();
    loop_begin(&world);
    join_as(&world, "n1", "a", NULL, 0);
    struct told session = expect(&world, "joined");
    int64_t runs = submit(&world, 1, 0);
    struct told running = expect(&world, "start");
    report(&world, &session, &running, TASK_RUNNING, EXIT_NONE);
    expect(&world, "heard");
    int64_t starts = submit(&world, 1, 0);
    struct told lost_start = expect(&world, "start");
    CHECK_INT(lost_start.job, starts);
    loop_end(&world);

    loop_begin(&world);
    struct scheduler_report tasks[] = {report_of(&running, TASK_RUNNING, EXIT_NONE),
                                       report_of(&running, TASK_RUNNING, EXIT_NONE)};
    tasks[1].job = 77; /* nobody knows it */
    join_as(&world, "n1", "a", tasks, 2);
    struct told again = expect(&world, "joined");
    CHECK(again.epoch > session.epoch);
    CHECK_INT(again.discards, 1);
    /* Nothing is started beside the one that is being killed. */
    struct told ghost = running;
    ghost.job = 77;
    report(&world, &again, &ghost, TASK_EXITED, EXIT_CRASH);
    expect(&world, "ack");
    struct told start = expect(&world, "start");
    expect(&world, "heard");
    CHECK_INT(start.job, starts);
    CHECK_INT(start.epoch, lost_start.epoch);
    CHECK_INT(state_of(&world, runs), JOB_RUNNING);
    report(&world, &again, &running, TASK_EXITED, EXIT_OK);
    expect(&world, "ack");
    expect(&world, "heard");
    CHECK_INT(state_of(&world, runs), JOB_SUCCEEDED);
    world_close(&world);
}

TEST(loop_gives_up_silent_nodes)
{
    struct error err;
    struct world world = world_open();
    loop_begin_with(&world, 200, 600);
    join_as(&world, "n1", "a", NULL, 0);
    expect(&world, "joined");
    int64_t number = submit(&world, 1, 3);
    expect(&world, "start");
    struct told gone = expect(&world, "forget");
    CHECK_INT(gone.node, 1);
    CHECK_INT(state_of(&world, number), JOB_QUEUED);
    struct explain explain;
    CHECK_OK(loop_explain(world.loop, number, &explain, &err), &err);
    CHECK(explain.code == EXPLAIN_BACKOFF || explain.code == EXPLAIN_NODES_AWAY);
    world_close(&world);
}

TEST(loop_refuses_a_second_machine_of_the_name)
{
    struct error err;
    struct world world = world_open();
    loop_begin(&world);
    join_as(&world, "n1", "a", NULL, 0);
    expect(&world, "joined");
    join_as(&world, "n1", "b", NULL, 0);
    expect(&world, "refused");
    join_as(&world, "n1", "a", NULL, 0);
    expect(&world, "joined");
    struct arena *arena = arena_new();
    struct loop_node *nodes;
    int count;
    CHECK_OK(loop_nodes(world.loop, arena, &nodes, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_INT(nodes[0].cpu_millis_free, 4000);
    CHECK(nodes[0].session);
    arena_free(arena);
    world_close(&world);
}

TEST(loop_checks_and_drains)
{
    struct error err;
    struct world world = world_open();
    loop_begin(&world);
    struct db_need need = {
        .role = "worker", .replicas = 1, .cpu_millis = 8000, .memory_bytes = 0, .gpus = 0};
    CHECK_OK(loop_check(world.loop, "default", &need, 1, &err),
             &err); /* no node yet: anything may come */
    CHECK_OK(loop_check(world.loop, "default", &need, 1, &err), &err); /* remembered ... */
    join_as(&world, "n1", "a", NULL, 0);
    expect(&world, "joined"); /* ... until a node joins */
    CHECK_FAILS(loop_check(world.loop, "default", &need, 1, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/tasks/worker/cpus");
    CHECK(strstr(err.text, "4.000"));
    need = (struct db_need){
        .role = "worker", .replicas = 1, .cpu_millis = 1000, .memory_bytes = 0, .gpus = 2};
    CHECK_FAILS(loop_check(world.loop, "default", &need, 1, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/tasks/worker/gpus");
    need = (struct db_need){
        .role = "worker", .replicas = 5, .cpu_millis = 1000, .memory_bytes = 0, .gpus = 0};
    CHECK_FAILS(loop_check(world.loop, "default", &need, 1, &err), &err, INVALID);
    CHECK_TEXT(err.pointer, "/tasks");
    need.replicas = 4;
    CHECK_OK(loop_check(world.loop, "default", &need, 1, &err), &err);
    CHECK_OK(loop_check(world.loop, "default", &need, 1, &err), &err); /* remembered */
    need.replicas = 5;
    CHECK_FAILS(loop_check(world.loop, "default", &need, 1, &err), &err, INVALID);

    CHECK_OK(loop_drain(world.loop, 1, true, &err), &err);
    CHECK_FAILS(loop_drain(world.loop, 9, true, &err), &err, NOT_FOUND);
    int64_t number = submit(&world, 1, 0);
    struct explain explain;
    CHECK_OK(loop_explain(world.loop, number, &explain, &err), &err);
    CHECK_TEXT(explain_code_name(explain.code), "DRAINING");
    CHECK_OK(loop_drain(world.loop, 1, false, &err), &err);
    expect(&world, "start");
    CHECK_OK(loop_explain(world.loop, number, &explain, &err), &err);
    CHECK_TEXT(explain_code_name(explain.code), "NOT_WAITING");
    CHECK_FAILS(loop_explain(world.loop, 99, &explain, &err), &err, NOT_FOUND);
    world_close(&world);
}
