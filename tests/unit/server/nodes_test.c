/* nodes_test.c - pb.Agent as an agent sees it, in process and over a socket. */
/* Faults of docs/reliability.md: F29. */

#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/tokens.h"
#include "scheduler/loop.h"
#include "server/nodes.h"
#include "tests/unit/db/folder.h"

struct world {
    char *folder;
    struct db *db;
    struct loop *loop;
    struct nodes *nodes;
    struct rpc_server *server;
    struct rpc_client *client;
    struct arena *arena;
    int64_t shipped; /* bytes */
    int64_t suspect_ms;
};

static bool store(void *self, const struct agent_ship_request *ship, int64_t *cursor,
                  struct error *err)
{
    struct world *world = self;
    if (strcmp(ship->file, "bad") == 0)
        return fail(err, DATA_LOSS, "as asked");
    if (ship->offset == world->shipped)
        world->shipped += (int64_t)ship->data_size;
    *cursor = world->shipped;
    return true;
}

static void begin(struct world *world, bool remote)
{
    struct error err;
    struct loop_options options = {
        .db = world->db, .backoff_ms = 50, .suspect_ms = world->suspect_ms};
    CHECK((world->loop = loop_new(&options, &err)));
    struct nodes_options nodes = {.db = world->db,
                                  .loop = world->loop,
                                  .folder = world->folder,
                                  .ship = store,
                                  .ship_self = world,
                                  .suspect_ms = world->suspect_ms};
    CHECK((world->nodes = nodes_new(&nodes, &err)));
    CHECK_OK(loop_start(world->loop, &err), &err);
    struct rpc_server_options serve = {.address = remote ? "127.0.0.1:0" : "local:nodes-test",
                                       .message_bytes_max = 16 << 20};
    world->server = rpc_server_start(
        &serve, remote ? nodes_methods_remote : nodes_methods_local, world->nodes, &err);
    if (!world->server)
        CHECK_STOP("%s", err.text);
    struct rpc_client_options client = {.address = rpc_server_address(world->server),
                                        .message_bytes_max = 16 << 20};
    CHECK((world->client = rpc_client_new(&client, &err)));
}

static void end(struct world *world)
{
    rpc_client_free(world->client);
    loop_stop(world->loop);
    nodes_stop(world->nodes);
    rpc_server_stop(world->server);
    nodes_free(world->nodes);
    loop_free(world->loop);
}

static void world_open(struct world *world, bool remote)
{
    struct error err;
    *world = (struct world){.folder = folder_new(), .arena = arena_new()};
    CHECK((world->db = db_open(world->folder, &err)));
    begin(world, remote);
}

static void world_close(struct world *world)
{
    end(world);
    db_close(world->db);
    arena_free(world->arena);
    folder_free(world->folder);
}

static bool call_join(struct world *world, const char *token,
                      const struct agent_task_report *tasks, int tasks_count,
                      struct agent_join_response *response, struct error *err)
{
    struct agent_join_request request = {
        .token = token,
        .node_name = "n1",
        .boot_id = "boot",
        .version = "1",
        .identity = "me",
        .capacity = {.cpu_millis = 2000, .memory_bytes = 1 << 30, .gpu_type = ""},
        .tasks = tasks,
        .tasks_count = tasks_count,
    };
    struct str bytes = {0}, answer = {0};
    agent_join_request_pack(&request, &bytes);
    bool ok = rpc_client_call(world->client, AGENT_PATH_JOIN, &bytes, &answer, 5000, err) &&
              agent_join_response_unpack(answer.data, answer.size, world->arena, response, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

static bool call_sync(struct world *world, const struct agent_join_response *session,
                      const struct agent_task_report *reports, int reports_count, int64_t done,
                      struct agent_sync_response *response, struct error *err)
{
    struct agent_sync_request request = {
        .node_id = session->node_id,
        .node_epoch = session->node_epoch,
        .node_key = session->node_key,
        .reports = reports,
        .reports_count = reports_count,
        .commands_done = done,
    };
    struct str bytes = {0}, answer = {0};
    agent_sync_request_pack(&request, &bytes);
    bool ok = rpc_client_call(world->client, AGENT_PATH_SYNC, &bytes, &answer, 5000, err) &&
              agent_sync_response_unpack(answer.data, answer.size, world->arena, response, err);
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

static bool call_ship(struct world *world, const struct agent_join_response *session,
                      const struct agent_task_ref *task, const char *file, int64_t offset,
                      int64_t *cursor, struct error *err)
{
    struct agent_ship_request request = {
        .node_id = session->node_id,
        .node_epoch = session->node_epoch,
        .node_key = session->node_key,
        .task = *task,
        .file = file,
        .offset = offset,
        .data = "hello",
        .data_size = 5,
    };
    struct agent_ship_response response;
    struct str bytes = {0}, answer = {0};
    agent_ship_request_pack(&request, &bytes);
    bool ok =
        rpc_client_call(world->client, AGENT_PATH_SHIP, &bytes, &answer, 5000, err) &&
        agent_ship_response_unpack(answer.data, answer.size, world->arena, &response, err);
    if (ok)
        *cursor = response.offset;
    str_release(&bytes);
    str_release(&answer);
    return ok;
}

static int64_t submit(struct world *world)
{
    struct error err;
    struct db_need need = {.role = "worker",
                           .replicas = 1,
                           .cpu_millis = 1000,
                           .memory_bytes = 1 << 20,
                           .gpus = 0};
    struct db_job_new job = {.user_id = 1,
                             .name = "j",
                             .project = "p",
                             .queue = "default",
                             .priority = 50,
                             .spec = "{\"a\": 1}",
                             .dataset = "mnist",
                             .needs = &need,
                             .needs_count = 1,
                             .restart_max = 3};
    struct db_job_added added;
    CHECK_OK(db_jobs_add(world->db, &job, &added, &err), &err);
    loop_wake(world->loop);
    return added.number;
}

static enum job_state state_of(struct world *world, int64_t number)
{
    struct error err;
    struct db_job job;
    struct db_conn *conn = db_read(world->db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_find(conn, number, world->arena, &job, &err), &err);
    db_read_done(world->db, conn);
    return job.state;
}

static struct agent_task_report report_of(const struct agent_task_ref *task,
                                          enum agent_task_state state,
                                          enum agent_exit_reason reason)
{
    return (struct agent_task_report){
        .task = *task, .state = state, .reason = reason, .error = "", .step = -1};
}

/* A long poll that must bring one command to start. */
static struct agent_start_task
sync_start(struct world *world, const struct agent_join_response *session, int64_t done)
{
    struct error err;
    struct agent_sync_response response;
    CHECK_OK(call_sync(world, session, NULL, 0, done, &response, &err), &err);
    CHECK_INT(response.commands_count, 1);
    CHECK_INT(response.commands[0].kind, AGENT_COMMAND_START);
    CHECK_INT(response.commands[0].sequence, done + 1);
    return response.commands[0].start;
}

static void runs_a_job(bool remote)
{
    struct error err;
    struct world world;
    world_open(&world, remote);
    char token[DB_TOKEN_BYTES];
    CHECK_OK(db_tokens_add(world.db,
                           &(struct db_token_new){1, TOKEN_JOIN, ROLE_ADMIN, NULL, "n", 0},
                           token, &err),
             &err);
    struct agent_join_response session;
    CHECK_OK(call_join(&world, token, NULL, 0, &session, &err), &err);
    int64_t number = submit(&world);
    struct agent_start_task start = sync_start(&world, &session, 0);
    CHECK_INT(start.task.job_id, number);
    CHECK_TEXT(start.task.role, "worker");
    CHECK_TEXT(start.spec, "{\"a\": 1}");
    const char *jobs = arena_printf(world.arena, "%s/jobs/1", world.folder);
    CHECK_TEXT(start.job_folder, jobs);
    const char *dataset = arena_printf(world.arena, "%s/datasets/mnist", world.folder);
    CHECK_TEXT(start.dataset_folder, dataset);
    CHECK_INT(strlen(start.server_folder_id), 32);
    CHECK_INT(start.attempt, 1);

    /* Reports are answered when they are stored. */
    struct agent_sync_response response;
    struct agent_task_report report =
        report_of(&start.task, AGENT_TASK_RUNNING, AGENT_EXIT_NONE);
    CHECK_OK(call_sync(&world, &session, &report, 1, 1, &response, &err), &err);
    CHECK_INT(response.commands_count, 0);
    CHECK_INT(state_of(&world, number), JOB_RUNNING);

    int64_t cursor;
    CHECK_OK(call_ship(&world, &session, &start.task, "stdout.log", 0, &cursor, &err), &err);
    CHECK_INT(cursor, 5);
    CHECK_OK(call_ship(&world, &session, &start.task, "stdout.log", 0, &cursor, &err), &err);
    CHECK_INT(cursor, 5);
    CHECK_FAILS(call_ship(&world, &session, &start.task, "bad", 5, &cursor, &err), &err,
                DATA_LOSS);
    struct agent_task_ref other = start.task;
    other.index = 1;
    CHECK_FAILS(call_ship(&world, &session, &other, "stdout.log", 5, &cursor, &err), &err,
                NOT_FOUND);

    report = report_of(&start.task, AGENT_TASK_EXITED, AGENT_EXIT_OK);
    CHECK_OK(call_sync(&world, &session, &report, 1, 1, &response, &err), &err);
    CHECK_INT(response.acknowledged_count, 1);
    CHECK(agent_task_ref_equal(&response.acknowledged[0], &start.task));
    CHECK_INT(state_of(&world, number), JOB_SUCCEEDED);
    world_close(&world);
}

TEST(nodes_run_a_job_in_process)
{
    runs_a_job(false);
}

TEST(nodes_run_a_job_over_a_socket)
{
    runs_a_job(true);
}

TEST(nodes_ask_strangers_for_a_token)
{
    struct error err;
    struct world world;
    struct agent_join_response session;
    world_open(&world, true);
    CHECK_FAILS(call_join(&world, "", NULL, 0, &session, &err), &err, UNAUTHENTICATED);
    CHECK_FAILS(call_join(&world, "ty_no", NULL, 0, &session, &err), &err, UNAUTHENTICATED);
    world_close(&world);
}

TEST(nodes_fence_old_sessions)
{
    struct error err;
    struct world world;
    struct agent_join_response old, new;
    struct agent_sync_response response;
    world_open(&world, false);
    CHECK_OK(call_join(&world, "", NULL, 0, &old, &err), &err);
    CHECK_OK(call_join(&world, "", NULL, 0, &new, &err), &err);
    CHECK_INT(new.node_id, old.node_id);
    CHECK(new.node_epoch > old.node_epoch);
    CHECK_FAILS(call_sync(&world, &old, NULL, 0, 0, &response, &err), &err, PRECONDITION);
    struct agent_join_response forged = new;
    forged.node_key = old.node_key;
    CHECK_FAILS(call_sync(&world, &forged, NULL, 0, 0, &response, &err), &err, PRECONDITION);
    world_close(&world);
}

/* A command that was not carried out is said again; after a new start of the server, too. */
TEST(nodes_repeat_commands)
{
    struct error err;
    struct world world;
    struct agent_join_response session;
    struct agent_sync_response response;
    world_open(&world, false);
    CHECK_OK(call_join(&world, "", NULL, 0, &session, &err), &err);
    int64_t number = submit(&world);
    struct agent_start_task first = sync_start(&world, &session, 0);
    uint64_t from_us = clock_monotonic_us();
    struct agent_start_task again = sync_start(&world, &session, 0);
    CHECK(clock_monotonic_us() - from_us > 1500000); /* no hurry: it may be on its way */
    CHECK_INT(again.task.attempt_epoch, first.task.attempt_epoch);
    CHECK_OK(call_sync(&world, &session, NULL, 0, 1, &response, &err), &err);
    CHECK_INT(response.commands_count, 0);
    end(&world);

    begin(&world, false);
    CHECK_FAILS(call_sync(&world, &session, NULL, 0, 1, &response, &err), &err, PRECONDITION);
    CHECK_OK(call_join(&world, "", NULL, 0, &session, &err), &err);
    again = sync_start(&world, &session, 0);
    CHECK_INT(again.task.attempt_epoch, first.task.attempt_epoch);

    enum job_state state;
    CHECK_OK(loop_cancel(world.loop, number, false, &state, &err), &err);
    CHECK_OK(call_sync(&world, &session, NULL, 0, 1, &response, &err), &err);
    CHECK_INT(response.commands_count, 1);
    CHECK_INT(response.commands[0].kind, AGENT_COMMAND_STOP);
    CHECK_INT(response.commands[0].stop.grace_ms, 30000);
    CHECK(!response.commands[0].stop.kill);
    world_close(&world);
}

TEST(nodes_discard_what_nobody_knows)
{
    struct error err;
    struct world world;
    struct agent_join_response session;
    struct agent_sync_response response;
    world_open(&world, false);
    struct agent_task_ref task = {9, 9, "worker", 0};
    struct agent_task_report report = report_of(&task, AGENT_TASK_RUNNING, AGENT_EXIT_NONE);
    CHECK_OK(call_join(&world, "", &report, 1, &session, &err), &err);
    CHECK_INT(session.discard_count, 1);
    CHECK(agent_task_ref_equal(&session.discard[0], &task));
    /* Nothing is started beside it; only when it is gone. */
    submit(&world);
    CHECK_OK(call_sync(&world, &session, NULL, 0, 0, &response, &err), &err);
    CHECK_INT(response.commands_count, 0);
    report = report_of(&task, AGENT_TASK_EXITED, AGENT_EXIT_CRASH);
    CHECK_OK(call_sync(&world, &session, &report, 1, 0, &response, &err), &err);
    CHECK_INT(response.acknowledged_count, 1);
    if (!response.commands_count)
        sync_start(&world, &session, 0);
    world_close(&world);
}

/* An agent whose polls were held for longer would be suspected each time. */
TEST(nodes_answer_before_they_suspect)
{
    struct error err;
    struct agent_join_response session;
    struct agent_sync_response response;
    struct world world;
    world_open(&world, false);
    end(&world);
    world.suspect_ms = 900;
    begin(&world, false);
    CHECK_OK(call_join(&world, "", NULL, 0, &session, &err), &err);
    uint64_t start_us = clock_monotonic_us();
    CHECK_OK(call_sync(&world, &session, NULL, 0, 0, &response, &err), &err);
    uint64_t us = clock_monotonic_us() - start_us;
    CHECK(us >= 250000 && us < 900000);
    world_close(&world);
}

TEST(nodes_refuse_nonsense)
{
    struct error err;
    struct world world;
    world_open(&world, false);
    struct str bytes = {0}, answer = {0};
    str_add(&bytes, "\xff\xff\xff");
    const char *const paths[] = {AGENT_PATH_JOIN, AGENT_PATH_SYNC, AGENT_PATH_SHIP};
    for (int i = 0; i < ARRAY_LEN(paths); i++)
        CHECK_FAILS(rpc_client_call(world.client, paths[i], &bytes, &answer, 5000, &err), &err,
                    INVALID);
    struct agent_join_request request = {.node_name = "../n", .capacity = {.cpu_millis = 1}};
    str_clear(&bytes);
    agent_join_request_pack(&request, &bytes);
    CHECK_FAILS(rpc_client_call(world.client, AGENT_PATH_JOIN, &bytes, &answer, 5000, &err),
                &err, INVALID);
    CHECK(strstr(err.text, "../n"));
    str_release(&bytes);
    str_release(&answer);
    world_close(&world);
}
