/* jobs_test.c - jobs, attempts, tasks, nodes, users and tokens in control.db. */
/* Faults of docs/reliability.md: F31 F33. */

#include "base/arena.h"
#include "db/events.h"
#include "db/jobs_change.h"
#include "db/nodes.h"
#include "db/tokens.h"
#include "db/trim.h"
#include "tests/unit/db/folder.h"

struct world {
    char *folder;
    struct db *db;
    struct arena *arena;
};

static struct world world_open(void)
{
    struct error err;
    struct world world = {.folder = folder_new(), .arena = arena_new()};
    world.db = db_open(world.folder, &err);
    if (!world.db)
        CHECK_STOP("%s", err.text);
    return world;
}

static void world_close(struct world *world)
{
    db_close(world->db);
    arena_free(world->arena);
    folder_free(world->folder);
}

static const struct db_need needs[] = {
    {.role = "worker", .replicas = 2, .cpu_millis = 1000, .memory_bytes = 1 << 20, .gpus = 1},
    {.role = "ps", .replicas = 1, .cpu_millis = 500, .memory_bytes = 1 << 10, .gpus = 0}};

static struct db_job_new a_job(const char *name)
{
    return (struct db_job_new){
        .user_id = DB_USER_ADMIN,
        .name = name,
        .project = "demo",
        .queue = "default",
        .priority = 50,
        .spec = "{\"name\": \"it\"}",
        .dataset = "mnist",
        .needs = needs,
        .needs_count = 2,
        .restart_max = 2,
    };
}

static int64_t add(struct world *world, const char *name)
{
    struct error err;
    struct db_job_new job = a_job(name);
    struct db_job_added added;
    CHECK_OK(db_jobs_add(world->db, &job, &added, &err), &err);
    return added.number;
}

static struct db_job find(struct world *world, int64_t number)
{
    struct error err;
    struct db_job job;
    struct db_conn *conn = db_read(world->db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_find(conn, number, world->arena, &job, &err), &err);
    db_read_done(world->db, conn);
    return job;
}

TEST(jobs_are_added_and_found)
{
    struct error err;
    struct world world = world_open();
    struct db_job_new new_job = a_job("mnist-cnn");
    struct db_job_added added;
    CHECK_OK(db_jobs_add(world.db, &new_job, &added, &err), &err);
    CHECK_INT(added.number, 1);
    CHECK(!added.existed);
    CHECK_INT(strlen(added.id), 30);

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_job job;
    const char *const names[] = {"1", added.id, "mnist-cnn"};
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_OK(db_jobs_find_text(conn, names[i], NULL, world.arena, &job, &err), &err);
        CHECK_INT(job.number, 1);
        CHECK_TEXT(job.id, added.id);
        CHECK_TEXT(job.user, "admin");
        CHECK_TEXT(job.spec, "{\"name\": \"it\"}");
        CHECK_INT(job.state, JOB_QUEUED);
        CHECK_INT(job.tasks_count, 3);
        CHECK_INT(job.seq, 1);
    }
    CHECK_FAILS(db_jobs_find_text(conn, "nobody", NULL, world.arena, &job, &err), &err,
                NOT_FOUND);
    CHECK_FAILS(db_jobs_find_text(conn, "99999999999999999999", NULL, world.arena, &job, &err),
                &err, NOT_FOUND);

    struct db_need *stored;
    int stored_count;
    CHECK_OK(db_jobs_needs(conn, 1, world.arena, &stored, &stored_count, &err), &err);
    CHECK_INT(stored_count, 2);
    CHECK_TEXT(stored[1].role, "ps");
    CHECK_INT(stored[0].gpus, 1);
    db_read_done(world.db, conn);
    world_close(&world);
}

TEST(jobs_with_a_key_are_added_once)
{
    struct error err;
    struct world world = world_open();
    uint8_t hash[DB_HASH_BYTES] = {1}, other[DB_HASH_BYTES] = {2};
    struct db_job_new job = a_job("a");
    job.idempotency_key = "key";
    job.body_hash = hash;
    struct db_job_added first, again;
    CHECK_OK(db_jobs_add(world.db, &job, &first, &err), &err);
    CHECK_OK(db_jobs_add(world.db, &job, &again, &err), &err);
    CHECK(again.existed);
    CHECK_INT(again.number, first.number);
    CHECK_TEXT(again.id, first.id);
    job.body_hash = other;
    CHECK_FAILS(db_jobs_add(world.db, &job, &again, &err), &err, PRECONDITION);
    job.idempotency_key = "other";
    CHECK_OK(db_jobs_add(world.db, &job, &again, &err), &err);
    CHECK_INT(again.number, first.number + 1);
    world_close(&world);
}

TEST(jobs_are_listed_in_pages)
{
    struct error err;
    struct world world = world_open();
    for (int i = 0; i < 7; i++)
        add(&world, i % 2 ? "odd-one" : "even");

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_jobs_filter filter = {.limit = 3};
    struct db_job *jobs;
    int count;
    int64_t next, expected = 7;
    do {
        CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
        for (int i = 0; i < count; i++, expected--)
            CHECK_INT(jobs[i].number, expected);
        filter.before = next;
    } while (next);
    CHECK_INT(expected, 0);

    filter = (struct db_jobs_filter){.limit = 100, .text = "ONE"};
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 3);
    CHECK_INT(next, 0);
    filter = (struct db_jobs_filter){.limit = 100, .name = "even", .states = BIT(JOB_QUEUED)};
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 4);
    filter = (struct db_jobs_filter){.limit = 100, .states = BIT(JOB_RUNNING)};
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 0);

    int64_t counts[JOB_STATES_COUNT];
    CHECK_OK(db_jobs_count(conn, counts, &err), &err);
    CHECK_INT(counts[JOB_QUEUED], 7);
    db_read_done(world.db, conn);
    world_close(&world);
}

static bool change(struct db_conn *conn, void *arg, struct error *err)
{
    return db_jobs_change(conn, arg, err);
}

/* Every edge that the state machine has is possible, and no other. */
TEST(jobs_change_along_legal_edges_only)
{
    static const bool legal[JOB_STATES_COUNT][JOB_STATES_COUNT] = {
        [JOB_QUEUED] = {[JOB_ALLOCATED] = true, [JOB_FAILED] = true, [JOB_CANCELLED] = true},
        [JOB_ALLOCATED] = {[JOB_STARTING] = true, [JOB_STOPPING] = true},
        [JOB_STARTING] = {[JOB_RUNNING] = true, [JOB_STOPPING] = true},
        [JOB_RUNNING] = {[JOB_STOPPING] = true},
        [JOB_STOPPING] = {[JOB_QUEUED] = true,
                          [JOB_SUCCEEDED] = true,
                          [JOB_FAILED] = true,
                          [JOB_CANCELLED] = true},
    };
    /* How to get to a state. */
    static const enum job_state paths[JOB_STATES_COUNT][6] = {
        [JOB_ALLOCATED] = {JOB_ALLOCATED},
        [JOB_STARTING] = {JOB_ALLOCATED, JOB_STARTING},
        [JOB_RUNNING] = {JOB_ALLOCATED, JOB_STARTING, JOB_RUNNING},
        [JOB_STOPPING] = {JOB_ALLOCATED, JOB_STOPPING},
        [JOB_SUCCEEDED] = {JOB_ALLOCATED, JOB_STOPPING, JOB_SUCCEEDED},
        [JOB_FAILED] = {JOB_ALLOCATED, JOB_STOPPING, JOB_FAILED},
        [JOB_CANCELLED] = {JOB_CANCELLED},
    };
    struct error err;
    struct world world = world_open();
    for (int from = 0; from < JOB_STATES_COUNT; from++) {
        for (int to = 0; to < JOB_STATES_COUNT; to++) {
            if (from == to)
                continue;
            struct db_job_change c = {.job = add(&world, "j"), .from = JOB_QUEUED};
            for (int i = 0; i < 6 && paths[from][i]; i++) {
                c.to = paths[from][i];
                CHECK_OK(db_write(world.db, DB_CONTROL, change, &c, &err), &err);
                c.from = c.to;
            }
            c.to = (enum job_state)to;
            CHECK_INT(db_write(world.db, DB_CONTROL, change, &c, &err), legal[from][to]);
            CHECK_INT(find(&world, c.job).state, legal[from][to] ? to : from);
        }
    }
    world_close(&world);
}

TEST(jobs_change_only_from_what_they_are)
{
    struct error err;
    struct world world = world_open();
    struct db_job_change c = {.job = add(&world, "j"), .from = JOB_RUNNING, .to = JOB_STOPPING};
    CHECK_FAILS(db_write(world.db, DB_CONTROL, change, &c, &err), &err, INTERNAL);
    c = (struct db_job_change){.job = c.job,
                               .to = JOB_CANCELLED,
                               .reason = "CANCELLED",
                               .text = "cancelled by ana",
                               .now_us = 7};
    CHECK_OK(db_write(world.db, DB_CONTROL, change, &c, &err), &err);
    struct db_job job = find(&world, c.job);
    CHECK_TEXT(job.text, "cancelled by ana");
    CHECK_INT(job.ended_us, 7);
    CHECK_INT(job.started_us, 0);

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_event *events;
    int count;
    CHECK_OK(db_events_since(conn, c.job, 0, 10, world.arena, &events, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_TEXT(events[1].kind, "job.state");
    CHECK_INT(events[1].state, JOB_CANCELLED);
    CHECK_INT(events[1].seq, job.seq);
    db_read_done(world.db, conn);
    world_close(&world);
}

struct attempt {
    int64_t job;
    int64_t epoch;
};

static bool attempt_with_task(struct db_conn *conn, void *arg, struct error *err)
{
    const struct attempt *a = arg;
    struct db_node node = {.id = 3,
                           .name = "n3",
                           .identity = "i",
                           .boot_id = "b",
                           .version = "1",
                           .labels = "{}",
                           .gpu_type = "",
                           .cpu_millis = 4000,
                           .gpu_memory_bytes = 1,
                           .joined_us = 2,
                           .asked_us = 3};
    struct db_attempt attempt = {
        .epoch = a->epoch, .job = a->job, .attempt = 1, .created_us = 5};
    struct db_task task = {.epoch = a->epoch, .job = a->job, .role = "worker", .node_id = 3};
    return db_nodes_set(conn, &node, "joined", 5, err) && db_epoch_write(conn, a->epoch, err) &&
           db_attempts_add(conn, &attempt, err) && db_tasks_set(conn, &task, 5, err);
}

static bool task_exits(struct db_conn *conn, void *arg, struct error *err)
{
    struct db_task *task = arg;
    return db_tasks_set(conn, task, 9, err);
}

static bool attempt_ends(struct db_conn *conn, void *arg, struct error *err)
{
    const struct attempt *a = arg;
    return db_attempts_end(conn, a->epoch, EXIT_CRASH, "it crashed", 9, err);
}

static bool failures_add(struct db_conn *conn, void *arg, struct error *err)
{
    struct db_failure once = {3, 1}, twice = {3, 2};
    int64_t *job = arg;
    return db_failures_set(conn, *job, &once, err) && db_failures_set(conn, *job, &twice, err);
}

TEST(jobs_come_after_others)
{
    struct error err;
    struct world world = world_open();
    struct db_after *after;
    int count;
    int64_t first = add(&world, "a"), second = add(&world, "b");
    struct db_job_new job = a_job("c");
    struct db_job_added added;
    job.after = (int64_t[]){second, first};
    job.after_count = 2;
    CHECK_OK(db_jobs_add(world.db, &job, &added, &err), &err);
    struct db_job_change c = {.job = first, .from = JOB_QUEUED, .to = JOB_FAILED};
    CHECK_OK(db_write(world.db, DB_CONTROL, change, &c, &err), &err);
    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_after(conn, added.number, world.arena, &after, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_INT(after[0].job, first);
    CHECK_INT(after[0].state, JOB_FAILED);
    CHECK_INT(after[1].state, JOB_QUEUED);
    db_read_done(world.db, conn);
    job.after = (int64_t[]){1000};
    job.after_count = 1;
    CHECK(!db_jobs_add(world.db, &job, &added, &err)); /* there is none */
    world_close(&world);
}

TEST(arrays_are_added_whole)
{
    struct error err;
    struct world world = world_open();
    struct db_job_new list[3] = {a_job("a-0"), a_job("a-1"), a_job("a-2")};
    uint8_t hash[DB_HASH_BYTES] = {1};
    struct db_job_added added, again;
    struct db_job *jobs;
    int count;
    list[1].parameters = "{\"/seed\":2}";
    list[0].idempotency_key = "k";
    list[0].body_hash = hash;
    int64_t before = add(&world, "other");
    CHECK_OK(db_jobs_add_array(world.db, list, 3, &added, &err), &err);
    CHECK_INT(added.number, before + 1);
    CHECK_OK(db_jobs_add_array(world.db, list, 3, &again, &err), &err);
    CHECK(again.existed && again.number == added.number);
    list[0].idempotency_key = NULL;
    list[2].after = &(int64_t){1000};
    list[2].after_count = 1;
    CHECK(!db_jobs_add_array(world.db, list, 3, &again, &err)); /* then none of it is there */

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_of_array(conn, added.number, world.arena, &jobs, &count, &err), &err);
    CHECK_INT(count, 3);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(jobs[i].number, added.number + i);
        CHECK_INT(jobs[i].array, added.number);
        CHECK_INT(jobs[i].array_index, i);
    }
    CHECK_TEXT(jobs[0].parameters, "");
    CHECK_TEXT(jobs[1].parameters, "{\"/seed\":2}");
    int64_t next;
    struct db_jobs_filter filter = {.limit = 10, .array = added.number};
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 3);
    filter.array = 0;
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 4);
    CHECK_OK(db_jobs_of_array(conn, 0, world.arena, &jobs, &count, &err), &err);
    CHECK_INT(count, 0);
    db_read_done(world.db, conn);
    world_close(&world);
}

static bool pause_run(struct db_conn *conn, void *arg, struct error *err)
{
    int64_t *job = arg;
    return db_jobs_pause(conn, *job, 0, true, "PAUSED", "paused by a user", 7, err);
}

TEST(jobs_rest_and_are_archived)
{
    struct error err;
    struct world world = world_open();
    int64_t first = add(&world, "a"), second = add(&world, "b");
    CHECK_OK(db_write(world.db, DB_CONTROL, pause_run, &first, &err), &err);
    CHECK(find(&world, first).paused && !find(&world, second).paused);
    CHECK_TEXT(find(&world, first).reason, "PAUSED");
    CHECK_FAILS(db_jobs_archive(world.db, first, true, &err), &err, PRECONDITION);
    CHECK_FAILS(db_jobs_archive(world.db, 1000, true, &err), &err, NOT_FOUND);
    struct db_job_change c = {.job = first, .from = JOB_QUEUED, .to = JOB_CANCELLED};
    CHECK_OK(db_write(world.db, DB_CONTROL, change, &c, &err), &err);
    CHECK_OK(db_jobs_archive(world.db, first, true, &err), &err);
    CHECK_OK(db_jobs_archive(world.db, first, true, &err), &err);

    struct db_job *jobs;
    int count;
    int64_t next;
    struct db_jobs_filter filter = {.limit = 10};
    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 1);
    CHECK_INT(jobs[0].number, second);
    filter.archived = true;
    CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
    CHECK_INT(count, 1);
    CHECK_INT(jobs[0].number, first);
    db_read_done(world.db, conn);
    CHECK_OK(db_jobs_archive(world.db, first, false, &err), &err);
    CHECK(!find(&world, first).archived);

    /* Removed: its row is there, and nobody finds it. */
    int64_t removed;
    struct db_job job;
    CHECK_FAILS(db_jobs_remove(world.db, second, &err), &err, PRECONDITION);
    CHECK_OK(db_jobs_remove(world.db, first, &err), &err);
    CHECK_OK(db_jobs_archive(world.db, first, false, &err), &err); /* changes nothing */
    conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_jobs_find(conn, first, world.arena, &job, &err), &err);
    CHECK_FAILS(db_jobs_find_text(conn, "a", NULL, world.arena, &job, &err), &err, NOT_FOUND);
    CHECK_FAILS(db_jobs_find_text(conn, job.id, NULL, world.arena, &job, &err), &err,
                NOT_FOUND);
    for (int archived = 0; archived < 2; archived++) {
        filter.archived = archived;
        CHECK_OK(db_jobs_list(conn, &filter, world.arena, &jobs, &count, &next, &err), &err);
        CHECK_INT(count, 1 - archived);
    }
    CHECK_OK(db_trim_removed(conn, 0, &removed, &err), &err);
    CHECK_INT(removed, first);
    db_read_done(world.db, conn);
    CHECK_OK(db_trim_all(world.db, first, &err), &err);
    conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_trim_removed(conn, 0, &removed, &err), &err);
    CHECK_INT(removed, 0);
    db_read_done(world.db, conn);
    world_close(&world);
}

TEST(failures_are_counted_for_each_node)
{
    struct error err;
    struct world world = world_open();
    struct db_failure *list;
    int count;
    struct attempt a = {add(&world, "j"), 10};
    CHECK_INT(find(&world, a.job).retry_on, EXIT_REASONS_RETRIED);
    CHECK_INT(find(&world, a.job).exclude_bad, 0);
    CHECK_OK(db_write(world.db, DB_CONTROL, attempt_with_task, &a, &err), &err);
    CHECK_OK(db_write(world.db, DB_CONTROL, failures_add, &a.job, &err), &err);
    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    CHECK_OK(db_failures_list(conn, a.job, world.arena, &list, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_INT(list[0].node_id, 3);
    CHECK_INT(list[0].count, 2);
    db_read_done(world.db, conn);
    world_close(&world);
}

TEST(attempts_and_tasks)
{
    struct error err;
    struct world world = world_open();
    struct attempt a = {add(&world, "j"), 10};
    CHECK_OK(db_write(world.db, DB_CONTROL, attempt_with_task, &a, &err), &err);
    /* An epoch is given once. */
    CHECK_FAILS(db_write(world.db, DB_CONTROL, attempt_with_task, &a, &err), &err, INTERNAL);
    /* A second attempt cannot live beside the first. */
    struct attempt second = {a.job, 11};
    CHECK(!db_write(world.db, DB_CONTROL, attempt_with_task, &second, &err));

    struct db_task task = {.epoch = 10,
                           .job = a.job,
                           .role = "worker",
                           .node_id = 3,
                           .state = TASK_EXITED,
                           .reason = EXIT_CRASH,
                           .signal = 9,
                           .error = "killed"};
    CHECK_OK(db_write(world.db, DB_CONTROL, task_exits, &task, &err), &err);
    struct db_task back = task;
    back.state = TASK_RUNNING;
    CHECK(!db_write(world.db, DB_CONTROL, task_exits, &back, &err));
    CHECK_OK(db_write(world.db, DB_CONTROL, attempt_ends, &a, &err), &err);
    CHECK_FAILS(db_write(world.db, DB_CONTROL, attempt_ends, &a, &err), &err, INTERNAL);

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_attempt *attempts;
    struct db_task *tasks, found;
    int count;
    int64_t epoch;
    CHECK_OK(db_attempts_list(conn, a.job, world.arena, &attempts, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_TEXT(attempts[0].text, "it crashed");
    CHECK_INT(attempts[0].reason, EXIT_CRASH);
    CHECK_OK(db_tasks_list(conn, 10, world.arena, &tasks, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_TEXT(tasks[0].node, "n3");
    CHECK_INT(tasks[0].signal, 9);
    CHECK_OK(db_tasks_find(conn, 10, "worker", 0, world.arena, &found, &err), &err);
    CHECK_FAILS(db_tasks_find(conn, 10, "worker", 1, world.arena, &found, &err), &err,
                NOT_FOUND);
    CHECK_OK(db_epoch_read(conn, &epoch, &err), &err);
    CHECK_INT(epoch, 10);
    struct db_node *nodes, node;
    CHECK_OK(db_nodes_list(conn, world.arena, &nodes, &count, &err), &err);
    CHECK_INT(count, 1);
    CHECK_OK(db_nodes_find(conn, "n3", world.arena, &node, &err), &err);
    CHECK_INT(node.cpu_millis, 4000);
    CHECK_TEXT(node.labels, "{}");
    CHECK_INT(node.gpu_memory_bytes, 1);
    CHECK_INT(node.joined_us, 2);
    CHECK_INT(node.asked_us, 3);
    db_read_done(world.db, conn);
    world_close(&world);
}

static bool token_is(struct world *world, const char *token, enum token_kind kind,
                     int64_t now_us)
{
    struct error err;
    struct db_token found;
    struct db_conn *conn = db_read(world->db, DB_CONTROL, &err);
    bool ok = db_tokens_find(conn, token, kind, now_us, world->arena, &found, &err);
    CHECK(ok || err.code == UNAUTHENTICATED);
    if (ok)
        CHECK_INT(found.role, ROLE_ADMIN);
    db_read_done(world->db, conn);
    return ok;
}

TEST(tokens_are_known_by_hash)
{
    struct error err;
    struct world world = world_open();
    char token[DB_TOKEN_BYTES], login[DB_TOKEN_BYTES], session[DB_TOKEN_BYTES];
    CHECK_OK(db_tokens_add(
                 world.db,
                 &(struct db_token_new){DB_USER_ADMIN, TOKEN_API, ROLE_ADMIN, NULL, "ci", 100},
                 token, &err),
             &err);
    CHECK_INT(strncmp(token, "ty_", 3), 0);
    CHECK_INT(strlen(token), 46);
    CHECK(token_is(&world, token, TOKEN_API, 99));
    CHECK(!token_is(&world, token, TOKEN_API, 100));
    CHECK(!token_is(&world, token, TOKEN_SESSION, 99));
    CHECK(!token_is(&world, "ty_", TOKEN_API, 99));

    CHECK_OK(db_tokens_add(world.db,
                           &(struct db_token_new){DB_USER_ADMIN, TOKEN_LOGIN, ROLE_ADMIN, NULL,
                                                  "first", 100},
                           login, &err),
             &err);
    CHECK_OK(db_tokens_exchange(world.db, login, 50, 0, session, &err), &err);
    CHECK(token_is(&world, session, TOKEN_SESSION, 1000000));
    CHECK_FAILS(db_tokens_exchange(world.db, login, 50, 0, session, &err), &err,
                UNAUTHENTICATED);

    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_token *tokens;
    int count;
    CHECK_OK(db_tokens_list(conn, DB_USER_ADMIN, world.arena, &tokens, &count, &err), &err);
    CHECK_INT(count, 2);
    db_read_done(world.db, conn);
    CHECK_OK(db_tokens_revoke(world.db, tokens[0].id, 0, &err), &err);
    CHECK_FAILS(db_tokens_revoke(world.db, tokens[0].id, 0, &err), &err, NOT_FOUND);
    CHECK(!token_is(&world, token, TOKEN_API, 99));
    world_close(&world);
}

TEST(users_have_names_of_their_own)
{
    struct error err;
    struct world world = world_open();
    int64_t id;
    CHECK_OK(db_users_add(world.db, "ana", ROLE_MEMBER, "", &id, &err), &err);
    CHECK_FAILS(db_users_add(world.db, "ana", ROLE_VIEWER, "", &id, &err), &err, EXISTS);
    struct db_conn *conn = db_read(world.db, DB_CONTROL, &err);
    struct db_user *users;
    int count;
    CHECK_OK(db_users_list(conn, world.arena, &users, &count, &err), &err);
    CHECK_INT(count, 2);
    CHECK_TEXT(users[1].name, "ana");
    db_read_done(world.db, conn);
    world_close(&world);
}
