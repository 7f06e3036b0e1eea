/* logs.c - what the tasks of a job wrote. */

#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/logs.h"
#include "server/api/api.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/request.h"

#define LOGS_TAIL_MAX 100000
#define LOGS_BYTES_MAX (8 << 20) /* in one reply */

struct logs_query {
    const char *task;   /* "worker/0"; NULL: all */
    const char *stream; /* "stdout"; NULL: both */
    int64_t attempt;    /* 0: the newest that has written */
    int64_t tail;       /* lines of each log */
    int64_t offset;     /* -1: not asked; else bytes of the one log that was chosen */
};

static bool read_query(struct request *req, struct logs_query *query, struct error *err)
{
    query->task = request_query(req, "task");
    query->stream = request_query(req, "stream");
    if (query->stream && strcmp(query->stream, "stdout") != 0 &&
        strcmp(query->stream, "stderr") != 0)
        return fail(err, INVALID, "stream is '%.40s'; it can be stdout or stderr",
                    query->stream);
    return request_query_int(req, "attempt", 1, INT32_MAX, 0, &query->attempt, err) &&
           request_query_int(req, "tail", 1, LOGS_TAIL_MAX, 1000, &query->tail, err) &&
           request_query_int(req, "offset", 0, INT64_MAX, -1, &query->offset, err);
}

/* The epochs of an attempt and its tasks, which may have been placed anew: from `*first` to
 * before `*end`.  `attempt` 0: of the newest that begins up to `newest`. */
static bool epochs_of(struct request *req, int64_t job, int64_t attempt, int64_t newest,
                      int64_t *first, int64_t *end, struct error *err)
{
    struct db_conn *conn = db_read(req->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct db_attempt *attempts;
    int count = 0;
    bool ok = db_attempts_list(conn, job, req->arena, &attempts, &count, err);
    db_read_done(req->services->db, conn);
    *first = 0;
    *end = INT64_MAX;
    for (int i = 0; ok && i < count; i++) {
        if (attempt ? attempts[i].attempt != attempt : attempts[i].epoch > newest)
            continue;
        *first = attempts[i].epoch;
        *end = i + 1 < count ? attempts[i + 1].epoch : INT64_MAX;
    }
    if (ok && attempt && !*first)
        return fail(err, NOT_FOUND, "job %lld has no attempt %lld", (long long)job,
                    (long long)attempt);
    return ok;
}

/* Keeps the logs that the query means, in place. */
static bool choose(struct request *req, int64_t job, const struct logs_query *query,
                   struct db_log *logs, int *count, struct error *err)
{
    int64_t newest = 0, first, end;
    for (int i = 0; i < *count; i++)
        newest = logs[i].epoch > newest ? logs[i].epoch : newest;
    if (!epochs_of(req, job, query->attempt, newest, &first, &end, err))
        return false;
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const char *task = arena_printf(req->arena, "%s/%d", logs[i].role, logs[i].index);
        bool of_it = logs[i].epoch >= first && logs[i].epoch < end;
        if (of_it && (!query->task || strcmp(query->task, task) == 0) &&
            (!query->stream || strcmp(query->stream, logs[i].name) == 0))
            logs[kept++] = logs[i];
    }
    *count = kept;
    return true;
}

/* The last lines of each log as JSON objects. */
static bool add_lines(struct request *req, struct db_conn *conn, const struct logs_query *query,
                      const struct db_log *logs, int count, struct str *out, struct error *err)
{
    int lines = 0;
    for (int i = 0; i < count; i++) {
        int64_t start;
        if (!db_logs_tail(conn, logs[i].id, (int)query->tail, LOGS_BYTES_MAX, req->arena,
                          &start, err) ||
            !report_lines(conn, &logs[i], start, logs[i].size, req->arena, out, &lines, err))
            return false;
    }
    return true;
}

static bool reply_lines(struct request *req, struct db_conn *conn,
                        const struct logs_query *query, const struct db_log *logs, int count,
                        int64_t seq, struct error *err)
{
    struct str out = {0};
    str_printf(&out, "{\"seq\":%lld,\"items\":[", (long long)seq);
    bool ok = add_lines(req, conn, query, logs, count, &out, err);
    str_add(&out, "],\"logs\":[");
    for (int i = 0; i < count; i++)
        str_printf(&out,
                   "%s{\"task\":\"%s/%d\",\"stream\":\"%s\",\"size\":%lld,\"lines\":%lld}",
                   i ? "," : "", logs[i].role, logs[i].index, logs[i].name,
                   (long long)logs[i].size, (long long)logs[i].lines_count);
    str_add(&out, "]}");
    size_t size = out.size;
    char *text = str_take(&out);
    if (!ok) {
        free(text);
        return false;
    }
    return reply_owned(req, 200, "application/json", text, size);
}

/* The bytes themselves; of several logs one after the other, each under a line that names it.
 */
static bool reply_text(struct request *req, struct db_conn *conn,
                       const struct logs_query *query, const struct db_log *logs, int count,
                       struct error *err)
{
    struct str out = {0};
    bool ok = true;
    for (int i = 0; ok && i < count; i++) {
        int64_t start = query->offset;
        const char *bytes;
        size_t size;
        if (start < 0)
            ok = db_logs_tail(conn, logs[i].id, (int)query->tail, LOGS_BYTES_MAX, req->arena,
                              &start, err);
        ok = ok && db_logs_read(conn, logs[i].id, start, LOGS_BYTES_MAX, req->arena, &bytes,
                                &size, err);
        if (!ok)
            break;
        if (count > 1)
            str_printf(&out, "==> %s/%d %s <==\n", logs[i].role, logs[i].index, logs[i].name);
        str_add_bytes(&out, bytes, size);
        if (count == 1)
            reply_header(req, "X-Next-Offset",
                         arena_printf(req->arena, "%lld", (long long)(start + (int64_t)size)));
    }
    size_t size = out.size;
    char *text = str_take(&out);
    if (!ok) {
        free(text);
        return false;
    }
    return reply_owned(req, 200, "text/plain; charset=utf-8", text, size);
}

/*
 * GET /api/v1/jobs/{id}/logs: the end of the output as {seq, items: [{task, stream, text}]};
 * with `Accept: text/plain` or an offset the bytes themselves.
 */
static bool logs_show(struct request *req, struct error *err)
{
    struct logs_query query;
    struct db_job job;
    if (!job_find(req, &job, err) || !read_query(req, &query, err))
        return false;
    int64_t seq = feed_seq(req->services->feed, FEED_REPORTS, job.number);
    struct db_conn *conn = db_read(req->services->db, DB_METRICS, err);
    if (!conn)
        return false;
    struct db_log *logs;
    int count = 0;
    const char *accept = request_header(req, "Accept");
    bool text = query.offset >= 0 || (accept && strncasecmp(accept, "text/plain", 10) == 0);
    bool ok = db_logs_list(conn, job.number, req->arena, &logs, &count, err) &&
              choose(req, job.number, &query, logs, &count, err);
    if (ok && query.offset >= 0 && count != 1)
        ok = fail(err, INVALID, "offset needs task= and stream=, to choose one log; %d fit",
                  count);
    ok = ok && (text ? reply_text(req, conn, &query, logs, count, err)
                     : reply_lines(req, conn, &query, logs, count, seq, err));
    db_read_done(req->services->db, conn);
    return ok;
}

const struct route logs_routes[] = {
    {"GET", "/api/v1/jobs/{id}/logs", AUTH_IN_PROJECT(ROLE_VIEWER), logs_show,
     "Output of the tasks",
     "task:string stream:string attempt:integer tail:integer offset:integer", NULL, 200,
     "Logs"},
    {0},
};
