/* jobs.c - jobs: added, found, listed, and edited while they wait. */

#include <sodium.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "db/events.h"
#include "db/internal.h"
#include "db/jobs.h"

/* "job_" and a ULID: 48 bits of milliseconds and 80 random ones, in Crockford's base 32. */
static void job_id(uint64_t now_us, char id[DB_JOB_ID_BYTES])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint8_t bytes[16];
    randombytes_buf(bytes, sizeof(bytes));
    uint64_t ms = now_us / 1000;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        bytes[i] = (uint8_t)ms;

    memcpy(id, "job_", 4);
    /* 128 bits in 26 digits of 5: the first has only 3. */
    for (int i = 0; i < 26; i++) {
        int value = 0;
        for (int bit = i * 5 - 2; bit < i * 5 + 3; bit++) {
            int one = bit < 0 ? 0 : bytes[bit / 8] >> (7 - bit % 8) & 1;
            value = value << 1 | one;
        }
        id[4 + i] = digits[value];
    }
    id[30] = '\0';
}

struct add {
    const struct db_job_new *job; /* the next one */
    int count;
    bool array;
    int index;
    int64_t first;
    struct db_job_added *added;
};

bool db_jobs_find_key(struct db_conn *conn, int64_t user_id, const char *key,
                      const uint8_t *body_hash, struct db_job_added *added, struct error *err)
{
    added->existed = false;
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT number, id, body_hash FROM jobs"
                                  " WHERE user_id = ?1 AND idempotency_key = ?2",
                                  "it", user_id, key);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row <= 0)
        return row == 0;

    added->existed = true;
    added->number = sqlite3_column_int64(stmt, 0);
    snprintf(added->id, sizeof(added->id), "%s", (const char *)sqlite3_column_text(stmt, 1));
    bool same = sqlite3_column_bytes(stmt, 2) == DB_HASH_BYTES &&
                memcmp(sqlite3_column_blob(stmt, 2), body_hash, DB_HASH_BYTES) == 0;
    db_query_end(stmt);
    if (same)
        return true;
    return fail(
        err, PRECONDITION,
        "this Idempotency-Key came with another body before, for job %lld: use a new key",
        (long long)added->number);
}

static int tasks_of(const struct db_job_new *job)
{
    int count = 0;
    for (int i = 0; i < job->needs_count; i++)
        count += job->needs[i].replicas;
    return count;
}

static bool add_needs(struct db_conn *conn, const struct add *add, struct error *err)
{
    for (int i = 0; i < add->job->needs_count; i++) {
        const struct db_need *need = &add->job->needs[i];
        if (!db_run(
                conn, err,
                "INSERT INTO needs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                "iitiiiiititi", add->added->number, (int64_t)i, need->role,
                (int64_t)need->replicas, need->cpu_millis, need->memory_bytes,
                (int64_t)need->gpus, (int64_t)need->gpu_share,
                need->gpu_type ? need->gpu_type : "", need->gpu_memory_bytes,
                need->node_labels ? need->node_labels : "{}", (int64_t)need->alone))
            return false;
    }
    return true;
}

static bool add_after(struct db_conn *conn, const struct add *add, struct error *err)
{
    for (int i = 0; i < add->job->after_count; i++) {
        if (!db_run(conn, err, "INSERT INTO dependencies VALUES (?1, ?2)", "ii",
                    add->added->number, add->job->after[i]))
            return false;
    }
    return true;
}

static bool add_one(struct db_conn *conn, const struct add *add, struct error *err)
{
    const struct db_job_new *job = add->job;
    int64_t waiting;
    if (!db_number(conn, err, &waiting, 0, "SELECT value FROM meta WHERE name = 'waiting'", ""))
        return false;
    if (waiting >= LIMIT_JOBS_QUEUED)
        return fail(err, EXHAUSTED, "%lld jobs are waiting already: no more than that",
                    (long long)waiting);

    int tasks_count = tasks_of(job);
    int64_t now_us = (int64_t)clock_wall_us();
    job_id((uint64_t)now_us, add->added->id);
    if (!db_run(
            conn, err,
            "INSERT INTO jobs (id, user_id, name, project, queue, priority, state, reason, "
            "text,"
            " spec, dataset, restart_max, restarts, attempt, epoch, stop_us, retry_us,"
            " created_us, started_us, ended_us, tasks_count, seq, idempotency_key, body_hash,"
            " spread, program, retry_on, exclude_bad, array, array_index, parameters)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, '', '', ?7, ?8, ?9, 0, 0, 0, ?10, 0, ?11, 0, "
            "0,"
            " ?12, 0, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
            "titttittiiiitbitiiiit", add->added->id, job->user_id, job->name, job->project,
            job->queue, (int64_t)job->priority, job->spec, job->dataset,
            (int64_t)job->restart_max, job->stop_us, now_us, (int64_t)tasks_count,
            job->idempotency_key, job->body_hash, (size_t)DB_HASH_BYTES, (int64_t)job->spread,
            job->program ? job->program : "",
            (int64_t)(job->retry_on ? job->retry_on : EXIT_REASONS_RETRIED),
            (int64_t)job->exclude_bad, add->first, (int64_t)add->index,
            job->parameters ? job->parameters : ""))
        return false;
    add->added->number = db_inserted(conn);

    struct db_event event = {.wall_us = now_us,
                             .kind = "job.submitted",
                             .job = add->added->number,
                             .state = JOB_QUEUED,
                             .state_from = -1};
    return add_needs(conn, add, err) && add_after(conn, add, err) &&
           db_events_add(conn, &event, err) &&
           db_run(conn, err, "UPDATE jobs SET seq = ?1 WHERE number = ?2", "ii", event.seq,
                  add->added->number);
}

static bool add_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct add *all = arg;
    const struct db_job_new *first = all->job;
    struct db_job_added *added = all->added, other;
    added->existed = false;
    if (first->idempotency_key &&
        !db_jobs_find_key(conn, first->user_id, first->idempotency_key, first->body_hash, added,
                          err))
        return false;
    if (added->existed)
        return true;
    for (int i = 0; i < all->count; i++) {
        struct add one = {.job = &first[i],
                          .index = i,
                          .first = i ? added->number : 0,
                          .added = i ? &other : added};
        if (!add_one(conn, &one, err))
            return false;
    }
    return !all->array || db_run(conn, err, "UPDATE jobs SET array = number WHERE number = ?1",
                                 "i", added->number);
}

bool db_jobs_add(struct db *db, const struct db_job_new *job, struct db_job_added *added,
                 struct error *err)
{
    assert(job->needs_count > 0);
    assert(!job->idempotency_key || job->body_hash);
    struct add add = {.job = job, .count = 1, .added = added};
    return db_write(db, DB_CONTROL, add_run, &add, err);
}

bool db_jobs_add_array(struct db *db, const struct db_job_new *jobs, int jobs_count,
                       struct db_job_added *added, struct error *err)
{
    assert(jobs_count > 0);
    struct add add = {.job = jobs, .count = jobs_count, .array = true, .added = added};
    return db_write(db, DB_CONTROL, add_run, &add, err);
}

/* --- reading --- */

#define JOB_COLUMNS                                                                            \
    "number, j.id, user_id, u.name, j.name, project, queue, priority, state, reason, text,"    \
    " dataset, restart_max, restarts, attempt, epoch, stop_us, retry_us, j.created_us,"        \
    " started_us, ended_us, tasks_count, seq, spread, preemptions, program, retry_on,"         \
    " exclude_bad, array, array_index, parameters, paused, archived"
#define JOB_TABLES " FROM jobs j JOIN users u ON u.id = j.user_id "

static void job_read(sqlite3_stmt *stmt, struct arena *arena, struct db_job *job)
{
    int c = 0;
    *job = (struct db_job){0};
    job->number = sqlite3_column_int64(stmt, c++);
    job->id = db_column_text(stmt, c++, arena);
    job->user_id = sqlite3_column_int64(stmt, c++);
    job->user = db_column_text(stmt, c++, arena);
    job->name = db_column_text(stmt, c++, arena);
    job->project = db_column_text(stmt, c++, arena);
    job->queue = db_column_text(stmt, c++, arena);
    job->priority = sqlite3_column_int(stmt, c++);
    job->state = (enum job_state)sqlite3_column_int(stmt, c++);
    job->reason = db_column_text(stmt, c++, arena);
    job->text = db_column_text(stmt, c++, arena);
    job->dataset = db_column_text(stmt, c++, arena);
    job->restart_max = sqlite3_column_int(stmt, c++);
    job->restarts = sqlite3_column_int(stmt, c++);
    job->attempt = sqlite3_column_int(stmt, c++);
    job->epoch = sqlite3_column_int64(stmt, c++);
    job->stop_us = sqlite3_column_int64(stmt, c++);
    job->retry_us = sqlite3_column_int64(stmt, c++);
    job->created_us = sqlite3_column_int64(stmt, c++);
    job->started_us = sqlite3_column_int64(stmt, c++);
    job->ended_us = sqlite3_column_int64(stmt, c++);
    job->tasks_count = sqlite3_column_int(stmt, c++);
    job->seq = sqlite3_column_int64(stmt, c++);
    job->spread = sqlite3_column_int(stmt, c++) != 0;
    job->preemptions = sqlite3_column_int(stmt, c++);
    job->program = db_column_text(stmt, c++, arena);
    job->retry_on = (uint32_t)sqlite3_column_int64(stmt, c++);
    job->exclude_bad = sqlite3_column_int(stmt, c++);
    job->array = sqlite3_column_int64(stmt, c++);
    job->array_index = sqlite3_column_int(stmt, c++);
    job->parameters = db_column_text(stmt, c++, arena);
    job->paused = sqlite3_column_int(stmt, c++) != 0;
    job->archived = sqlite3_column_int(stmt, c++) != 0;
    if (c < sqlite3_column_count(stmt))
        job->spec = db_column_text(stmt, c, arena);
}

/* The one job of a query; 0 rows leave `*found` false. */
static bool job_one(struct db_conn *conn, sqlite3_stmt *stmt, struct arena *arena,
                    struct db_job *job, bool *found, struct error *err)
{
    int row = stmt ? db_row(conn, stmt, err) : -1;
    *found = row > 0;
    if (row > 0) {
        job_read(stmt, arena, job);
        db_query_end(stmt);
    }
    return row >= 0;
}

bool db_jobs_find(struct db_conn *conn, int64_t number, struct arena *arena, struct db_job *job,
                  struct error *err)
{
    bool found;
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT " JOB_COLUMNS ", spec" JOB_TABLES "WHERE number = ?1", "i", number);
    if (!job_one(conn, stmt, arena, job, &found, err))
        return false;
    return found || fail(err, NOT_FOUND, "there is no job %lld", (long long)number);
}

/* The number that all of `text` spells, 0 when it spells none. */
static int64_t text_number(const char *text)
{
    int64_t number = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || number > INT64_MAX / 10 - 10)
            return 0;
        number = number * 10 + (*c - '0');
    }
    return number;
}

/* Not removed, and in a project of the viewer's. */
#define JOB_SEEN                                                                               \
    " AND archived < 2 AND (?2 = 0 OR project IN (SELECT project FROM members WHERE user_id "  \
    "= ?2)) AND (?3 IS NULL OR project = ?3) "

bool db_jobs_find_text(struct db_conn *conn, const char *text, const struct db_viewer *viewer,
                       struct arena *arena, struct db_job *job, struct error *err)
{
    static const struct db_viewer all;
    int64_t number = text_number(text);
    viewer = viewer ? viewer : &all;
    bool found;
    sqlite3_stmt *stmt;
    if (number) {
        stmt = db_query(conn, err,
                        "SELECT " JOB_COLUMNS ", spec" JOB_TABLES "WHERE number = ?1" JOB_SEEN,
                        "iit", number, viewer->member, viewer->project);
        if (!job_one(conn, stmt, arena, job, &found, err))
            return false;
        return found || fail(err, NOT_FOUND, "there is no job %lld", (long long)number);
    }

    stmt = db_query(conn, err,
                    "SELECT " JOB_COLUMNS ", spec" JOB_TABLES "WHERE j.id = ?1" JOB_SEEN, "tit",
                    text, viewer->member, viewer->project);
    if (!job_one(conn, stmt, arena, job, &found, err))
        return false;
    if (found)
        return true;

    stmt = db_query(conn, err,
                    "SELECT " JOB_COLUMNS ", spec" JOB_TABLES "WHERE j.name = ?1" JOB_SEEN
                    "ORDER BY number DESC LIMIT 1",
                    "tit", text, viewer->member, viewer->project);
    if (!job_one(conn, stmt, arena, job, &found, err))
        return false;
    return found || fail(err, NOT_FOUND, "there is no job '%.100s'", text);
}

/* What a filter lets through; ?1 and ?6 are the caller's. */
#define JOB_FILTER                                                                             \
    " AND (?2 >> state & 1 OR (?2 >> 30 & 1 AND paused AND state = 0))"                        \
    " AND (?3 IS NULL OR j.name = ?3) AND (?4 IS NULL OR project = ?4)"                        \
    " AND (?5 IS NULL OR instr(lower(j.name), lower(?5)) > 0)"                                 \
    " AND (?7 = 0 OR array = ?7) AND archived = ?8"                                            \
    " AND (?9 = 0 OR project IN (SELECT project FROM members WHERE user_id = ?9))"             \
    " AND (?10 IS NULL OR project = ?10)"

/* Binds a filter to a query that has JOB_FILTER. */
static sqlite3_stmt *query_filtered(struct db_conn *conn, const char *sql,
                                    const struct db_jobs_filter *filter, int64_t number,
                                    struct error *err)
{
    const struct db_viewer *viewer = filter->viewer;
    return db_query(conn, err, sql, "iitttiiiit", number,
                    (int64_t)(filter->states ? filter->states : UINT32_MAX), filter->name,
                    filter->project, filter->text, (int64_t)filter->limit + 1, filter->array,
                    (int64_t)filter->archived, viewer ? viewer->member : 0,
                    viewer ? viewer->project : NULL);
}

bool db_jobs_pick(struct db_conn *conn, const struct db_jobs_filter *filter, int64_t number,
                  struct arena *arena, struct db_job *job, bool *found, struct error *err)
{
    sqlite3_stmt *stmt = query_filtered(
        conn, "SELECT " JOB_COLUMNS JOB_TABLES "WHERE number = ?1" JOB_FILTER " LIMIT ?6",
        filter, number, err);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    *found = row > 0;
    if (*found) {
        job_read(stmt, arena, job);
        db_query_end(stmt);
    }
    return row >= 0;
}

bool db_jobs_total(struct db_conn *conn, const struct db_jobs_filter *filter, int64_t *total,
                   struct error *err)
{
    sqlite3_stmt *stmt = query_filtered(
        conn, "SELECT count(*)" JOB_TABLES "WHERE number > ?1" JOB_FILTER " LIMIT ?6", filter,
        0, err);
    if (!stmt || db_row(conn, stmt, err) <= 0)
        return false;
    *total = sqlite3_column_int64(stmt, 0);
    db_query_end(stmt);
    return true;
}

bool db_jobs_list(struct db_conn *conn, const struct db_jobs_filter *filter,
                  struct arena *arena, struct db_job **jobs, int *jobs_count, int64_t *next,
                  struct error *err)
{
    assert(filter->limit > 0 && filter->limit <= LIMIT_PAGE_ITEMS);
    sqlite3_stmt *stmt =
        query_filtered(conn,
                       "SELECT " JOB_COLUMNS JOB_TABLES "WHERE number < ?1" JOB_FILTER
                       " ORDER BY number DESC LIMIT ?6",
                       filter, filter->before ? filter->before : INT64_MAX, err);
    if (!stmt)
        return false;

    struct db_rows rows = {.row_size = sizeof(struct db_job)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        job_read(stmt, arena, db_rows_add(&rows));
    *jobs = db_rows_end(&rows, arena, jobs_count);
    *next = 0;
    if (*jobs_count > filter->limit) {
        /* The one too many says that there is another page. */
        *jobs_count = filter->limit;
        *next = (*jobs)[filter->limit - 1].number;
    }
    return row == 0;
}

bool db_jobs_of_array(struct db_conn *conn, int64_t array, struct arena *arena,
                      struct db_job **jobs, int *jobs_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " JOB_COLUMNS JOB_TABLES
                                  "WHERE array = ?1 AND array <> 0 ORDER BY array_index",
                                  "i", array);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_job)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        job_read(stmt, arena, db_rows_add(&rows));
    *jobs = db_rows_end(&rows, arena, jobs_count);
    return row == 0;
}

bool db_jobs_count(struct db_conn *conn, int64_t counts[JOB_STATES_COUNT], struct error *err)
{
    memset(counts, 0, JOB_STATES_COUNT * sizeof(counts[0]));
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT state, count(*) FROM jobs GROUP BY state", "");
    int row = -1;
    while (stmt && (row = db_row(conn, stmt, err)) > 0)
        counts[sqlite3_column_int(stmt, 0)] = sqlite3_column_int64(stmt, 1);
    return row == 0;
}

bool db_jobs_groups(struct db_conn *conn, struct arena *arena, struct db_job_group **groups,
                    int *groups_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT project, queue, state, count(*) FROM jobs"
                                  " WHERE state <= 4 GROUP BY project, queue, state",
                                  "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_job_group)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_job_group *)db_rows_add(&rows) = (struct db_job_group){
            .project = db_column_text(stmt, 0, arena),
            .queue = db_column_text(stmt, 1, arena),
            .state = (enum job_state)sqlite3_column_int(stmt, 2),
            .count = sqlite3_column_int64(stmt, 3),
        };
    *groups = db_rows_end(&rows, arena, groups_count);
    return row == 0;
}

bool db_jobs_alive(struct db_conn *conn, int64_t after, struct arena *arena,
                   struct db_job **jobs, int *jobs_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT " JOB_COLUMNS JOB_TABLES
                                  "WHERE state <= 4 AND number > ?1 ORDER BY number",
                                  "i", after);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_job)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        job_read(stmt, arena, db_rows_add(&rows));
    *jobs = db_rows_end(&rows, arena, jobs_count);
    return row == 0;
}

bool db_jobs_using(struct db_conn *conn, const char *dataset, int64_t *count, struct error *err)
{
    return db_number(conn, err, count, 0,
                     "SELECT count(*) FROM jobs WHERE state <= 4 AND dataset = ?1", "t",
                     dataset);
}

bool db_jobs_needs(struct db_conn *conn, int64_t number, struct arena *arena,
                   struct db_need **needs, int *needs_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT role, replicas, cpu_millis, memory_bytes, gpus,"
                                  " gpu_share, gpu_type, gpu_memory_bytes, node_labels, alone"
                                  " FROM needs WHERE job = ?1 ORDER BY position",
                                  "i", number);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_need)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_need *)db_rows_add(&rows) = (struct db_need){
            .role = db_column_text(stmt, 0, arena),
            .replicas = sqlite3_column_int(stmt, 1),
            .cpu_millis = sqlite3_column_int64(stmt, 2),
            .memory_bytes = sqlite3_column_int64(stmt, 3),
            .gpus = sqlite3_column_int(stmt, 4),
            .gpu_share = sqlite3_column_int(stmt, 5),
            .gpu_type = db_column_text(stmt, 6, arena),
            .gpu_memory_bytes = sqlite3_column_int64(stmt, 7),
            .node_labels = db_column_text(stmt, 8, arena),
            .alone = sqlite3_column_int(stmt, 9) != 0,
        };
    *needs = db_rows_end(&rows, arena, needs_count);
    return row == 0;
}

bool db_jobs_after(struct db_conn *conn, int64_t number, struct arena *arena,
                   struct db_after **after, int *after_count, struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT d.after, j.state FROM dependencies d"
                                  " JOIN jobs j ON j.number = d.after"
                                  " WHERE d.job = ?1 ORDER BY d.after",
                                  "i", number);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_after)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_after *)db_rows_add(&rows) = (struct db_after){
            sqlite3_column_int64(stmt, 0), (enum job_state)sqlite3_column_int(stmt, 1)};
    *after = db_rows_end(&rows, arena, after_count);
    return row == 0;
}

bool db_jobs_edit(struct db_conn *conn, int64_t job, int attempt,
                  const struct db_job_new *edited, int64_t now_us, struct error *err)
{
    struct db_job_added added = {.number = job};
    struct add add = {.job = edited, .added = &added};
    struct db_event event = {
        .wall_us = now_us,
        .kind = "job.edited",
        .job = job,
        .attempt = attempt,
        .state = -1,
        .state_from = -1,
        .text = "edited by a user",
    };
    if (!db_events_add(conn, &event, err) ||
        !db_run(conn, err, "DELETE FROM needs WHERE job = ?1", "i", job) ||
        !add_needs(conn, &add, err) ||
        !db_run(conn, err,
                "UPDATE jobs SET name = ?2, project = ?3, queue = ?4, priority = ?5, spec = ?6,"
                " dataset = ?7, program = ?8, restart_max = max(?9, restarts), retry_on = ?10,"
                " exclude_bad = ?11, stop_us = ?12, spread = ?13, tasks_count = ?14, seq = ?15"
                " WHERE number = ?1 AND state = 0",
                "itttitttiiiiiii", job, edited->name, edited->project, edited->queue,
                (int64_t)edited->priority, edited->spec, edited->dataset,
                edited->program ? edited->program : "", (int64_t)edited->restart_max,
                (int64_t)(edited->retry_on ? edited->retry_on : EXIT_REASONS_RETRIED),
                (int64_t)edited->exclude_bad, edited->stop_us, (int64_t)edited->spread,
                (int64_t)tasks_of(edited), event.seq))
        return false;
    if (db_changes_count(conn) != 1)
        return fail(err, INTERNAL, "job %lld is not queued in the database", (long long)job);
    return true;
}
