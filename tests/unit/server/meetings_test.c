/* meetings_test.c - tasks that meet, also when the server dies after the first has been told.
 */
/* Faults of docs/reliability.md: F1. */

#include "base/arena.h"
#include "base/str.h"
#include "db/jobs.h"
#include "db/nodes.h"
#include "db/tokens.h"
#include "proto/agent_pb.h"
#include "server/meetings.h"
#include "tests/unit/db/folder.h"

#define EPOCH 7
#define FIRST_NODE 3

struct world {
    char *folder;
    struct db *db;
    struct meetings *meetings;
    struct arena *arena;
    struct db_job_added job;
    bool apart; /* the second worker has a node of its own */
};

static bool node_add(struct db_conn *conn, int64_t id, struct error *err)
{
    char name[8];
    snprintf(name, sizeof(name), "n%lld", (long long)id);
    const struct db_node node = {.id = id,
                                 .name = name,
                                 .identity = name,
                                 .boot_id = "b",
                                 .version = "1",
                                 .labels = "{}",
                                 .gpu_type = "",
                                 .cpu_millis = 4000};
    return db_nodes_set(conn, &node, "joined", 5, err);
}

static bool task_add(struct db_conn *conn, const struct world *w, const char *role, int index,
                     int64_t node, struct error *err)
{
    const struct db_task task = {
        .epoch = EPOCH, .job = w->job.number, .role = role, .index = index, .node_id = node};
    return db_tasks_set(conn, &task, 5, err);
}

static bool attempt_add(struct db_conn *conn, void *arg, struct error *err)
{
    const struct world *w = arg;
    const struct db_attempt attempt = {
        .epoch = EPOCH, .job = w->job.number, .attempt = 1, .created_us = 5};
    return node_add(conn, FIRST_NODE, err) && node_add(conn, FIRST_NODE + 1, err) &&
           db_epoch_write(conn, EPOCH, err) && db_attempts_add(conn, &attempt, err) &&
           task_add(conn, w, "ps", 0, FIRST_NODE, err) &&
           task_add(conn, w, "worker", 0, FIRST_NODE, err) &&
           task_add(conn, w, "worker", 1, FIRST_NODE + w->apart, err);
}

/* A job of a model over a parameter server and two workers, which has been placed. */
static void world_open(struct world *w, bool apart)
{
    struct error err;
    *w = (struct world){.folder = folder_new(), .arena = arena_new(), .apart = apart};
    CHECK_OK((w->db = db_open(w->folder, &err)) != NULL, &err);
    static const struct db_need needs[] = {
        {.role = "ps", .replicas = 1, .cpu_millis = 1000},
        {.role = "worker", .replicas = 2, .cpu_millis = 1000},
    };
    const struct db_job_new job = {.user_id = DB_USER_ADMIN,
                                   .name = "j",
                                   .project = "p",
                                   .queue = "default",
                                   .spec = "{}",
                                   .dataset = "digits",
                                   .needs = needs,
                                   .needs_count = 2};
    CHECK_OK(db_jobs_add(w->db, &job, &w->job, &err), &err);
    CHECK_OK(db_write(w->db, DB_CONTROL, attempt_add, w, &err), &err);
    w->meetings = meetings_new(w->db, w->folder);
}

static void world_close(struct world *w)
{
    meetings_free(w->meetings);
    db_close(w->db);
    arena_free(w->arena);
    folder_free(w->folder);
}

/* All that was in its memory is gone. */
static void restart(struct world *w)
{
    meetings_free(w->meetings);
    w->meetings = meetings_new(w->db, w->folder);
}

/* What the task is told, as "ROLE:INDEX=ADDRESS ..."; "" while it is to wait. */
static const char *meet(struct world *w, const char *role, int index, int port)
{
    struct error err;
    struct agent_meet_response met;
    const struct agent_meet_request request = {
        .task = {w->job.number, EPOCH, role, index}, .host = "10.0.0.5", .port = port};
    CHECK_OK(meetings_meet(w->meetings, &request, EPOCH, w->arena, &met, &err), &err);
    struct str text = {0};
    for (int i = 0; i < met.cluster_count; i++)
        str_printf(&text, "%s%s:%d=%s", i ? " " : "", met.cluster[i].role, met.cluster[i].index,
                   met.cluster[i].address);
    CHECK(!met.cluster_count || *met.certificate);
    const char *kept = arena_text(w->arena, str_text(&text));
    str_release(&text);
    return kept;
}

TEST(tasks_wait_until_all_have_come)
{
    struct world w;
    world_open(&w, false);
    CHECK_TEXT(meet(&w, "worker", 0, 70), "");
    CHECK_TEXT(meet(&w, "ps", 0, 50), "");
    CHECK_TEXT(meet(&w, "worker", 0, 70), "");
    CHECK_TEXT(meet(&w, "worker", 1, 71),
               "ps:0=127.0.0.1:50 worker:0=127.0.0.1:70 worker:1=127.0.0.1:71");
    CHECK_TEXT(meet(&w, "ps", 0, 50),
               "ps:0=127.0.0.1:50 worker:0=127.0.0.1:70 worker:1=127.0.0.1:71");
    world_close(&w);
}

TEST(tasks_of_two_nodes_meet_by_their_hosts)
{
    struct world w;
    world_open(&w, true);
    meet(&w, "worker", 0, 70);
    meet(&w, "ps", 0, 50);
    CHECK_TEXT(meet(&w, "worker", 1, 71),
               "ps:0=10.0.0.5:50 worker:0=10.0.0.5:70 worker:1=10.0.0.5:71");
    world_close(&w);
}

/* Those that have not met say again where they are, all of them. */
TEST(a_restart_before_all_have_come_forgets)
{
    struct world w;
    world_open(&w, false);
    meet(&w, "worker", 0, 70);
    meet(&w, "ps", 0, 50);
    restart(&w);
    CHECK_TEXT(meet(&w, "worker", 1, 71), "");
    CHECK_TEXT(meet(&w, "worker", 0, 70), "");
    CHECK(*meet(&w, "ps", 0, 50));
    world_close(&w);
}

/* The one that was told has begun, and never asks again. */
TEST(a_restart_after_one_was_told_keeps_where_it_is)
{
    struct world w;
    world_open(&w, false);
    meet(&w, "worker", 0, 70);
    meet(&w, "worker", 1, 71);
    CHECK(*meet(&w, "ps", 0, 50));
    restart(&w);
    CHECK_TEXT(meet(&w, "worker", 1, 71),
               "ps:0=127.0.0.1:50 worker:0=127.0.0.1:70 worker:1=127.0.0.1:71");
    restart(&w);
    CHECK_TEXT(meet(&w, "worker", 0, 70),
               "ps:0=127.0.0.1:50 worker:0=127.0.0.1:70 worker:1=127.0.0.1:71");
    world_close(&w);
}

TEST(addresses_that_are_none_are_refused)
{
    struct world w;
    world_open(&w, false);
    static const struct {
        const char *host;
        int port;
    } wrong[] = {{"", 50}, {"a b", 50}, {"10.0.0.5/x", 50}, {"10.0.0.5", 0}, {"h", 65536}};
    for (int i = 0; i < ARRAY_LEN(wrong); i++) {
        struct error err;
        struct agent_meet_response met;
        const struct agent_meet_request request = {.task = {w.job.number, EPOCH, "ps", 0},
                                                   .host = wrong[i].host,
                                                   .port = wrong[i].port};
        CHECK_FAILS(meetings_meet(w.meetings, &request, EPOCH, w.arena, &met, &err), &err,
                    INVALID);
        CHECK(strstr(err.text, "is no address"));
    }
    world_close(&w);
}
