/* metrics.c - what a job reported, as series for charts. */

#include "db/metrics.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "server/api/api.h"
#include "server/feed.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/report.h"
#include "server/request.h"

#define METRICS_BUCKETS_MAX 10000

struct metrics_query {
    bool hardware;
    const char *names; /* "loss,accuracy"; NULL: all */
    const char *task;  /* "worker/0"; NULL: all */
    int64_t from, to;  /* steps */
    int64_t buckets;
};

static bool in_list(const char *list, const char *name)
{
    size_t size = strlen(name);
    while (*list) {
        size_t word = strcspn(list, ",");
        if (word == size && memcmp(list, name, size) == 0)
            return true;
        list += word + (list[word] == ',');
    }
    return false;
}

/* Writes one array of the buckets: "values":[…]. */
static void add_column(struct str *out, const char *name, const struct db_bucket *buckets,
                       int count, size_t offset)
{
    str_printf(out, ",\"%s\":[", name);
    for (int i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)&buckets[i] + offset, sizeof(value));
        if (i)
            str_add_char(out, ',');
        report_number(out, value);
    }
    str_add_char(out, ']');
}

static bool add_series(struct db_conn *conn, const struct db_series *series,
                       const struct metrics_query *query, struct arena *arena, struct str *out,
                       struct error *err)
{
    struct db_bucket *buckets;
    int count;
    if (!db_metrics_buckets(conn, series->id, query->from, query->to, (int)query->buckets,
                            arena, &buckets, &count, err))
        return false;
    str_add(out, "{\"name\":");
    str_add_json(out, series->name, strlen(series->name));
    str_printf(out, ",\"task\":\"%s/%d\",\"steps\":[", series->role, series->index);
    for (int i = 0; i < count; i++)
        str_printf(out, "%s%lld", i ? "," : "", (long long)buckets[i].step);
    str_add_char(out, ']');
    add_column(out, "values", buckets, count, offsetof(struct db_bucket, last));
    add_column(out, "min", buckets, count, offsetof(struct db_bucket, min));
    add_column(out, "max", buckets, count, offsetof(struct db_bucket, max));
    str_add(out, ",\"times\":[");
    for (int i = 0; i < count; i++)
        str_printf(out, "%s%.3f", i ? "," : "", (double)buckets[i].wall_us / 1e6);
    str_add(out, "]}");
    return true;
}

static bool add_all(struct request *req, struct db_conn *conn, int64_t job,
                    const struct metrics_query *query, struct str *out, struct error *err)
{
    struct db_series *series;
    int count;
    int added = 0;
    if (!db_metrics_series(conn, job, query->hardware, req->arena, &series, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        const char *task = arena_printf(req->arena, "%s/%d", series[i].role, series[i].index);
        if ((query->names && !in_list(query->names, series[i].name)) ||
            (query->task && strcmp(query->task, task) != 0))
            continue;
        if (added++)
            str_add_char(out, ',');
        if (!add_series(conn, &series[i], query, req->arena, out, err))
            return false;
    }
    return true;
}

/*
 * {seq, series: [{name, task, steps, values, min, max, times}]}.
 * With more points than buckets, each column holds the last, least and greatest value of its
 * steps, so no spike is lost.  A stream goes on without a hole after `seq`.
 */
static bool series_show(struct request *req, bool hardware, struct error *err)
{
    struct metrics_query query = {.hardware = hardware,
                                  .names = request_query(req, "names"),
                                  .task = request_query(req, "task")};
    struct db_job job;
    if (!job_find(req, &job, err) ||
        !request_query_int(req, "from", 0, INT64_MAX, 0, &query.from, err) ||
        !request_query_int(req, "to", 0, INT64_MAX, INT64_MAX, &query.to, err) ||
        !request_query_int(req, "buckets", 1, METRICS_BUCKETS_MAX, 1000, &query.buckets, err))
        return false;
    int64_t seq = feed_seq(req->services->feed, FEED_REPORTS, job.number);
    struct db_conn *conn = db_read(req->services->db, DB_METRICS, err);
    if (!conn)
        return false;
    struct str out = {0};
    str_printf(&out, "{\"seq\":%lld,\"series\":[", (long long)seq);
    bool ok = add_all(req, conn, job.number, &query, &out, err);
    db_read_done(req->services->db, conn);
    str_add(&out, "]}");
    size_t size = out.size;
    char *text = str_take(&out);
    if (!ok) {
        free(text);
        return false;
    }
    return reply_owned(req, 200, "application/json", text, size);
}

/* GET /api/v1/jobs/{id}/metrics: what the job reports. */
static bool metrics_show(struct request *req, struct error *err)
{
    return series_show(req, false, err);
}

/* GET /api/v1/jobs/{id}/hardware: what its tasks use; steps are seconds since 1970. */
static bool hardware_show(struct request *req, struct error *err)
{
    return series_show(req, true, err);
}

const struct route metrics_routes[] = {
    {"GET", "/api/v1/jobs/{id}/metrics", AUTH_IN_PROJECT(ROLE_VIEWER), metrics_show,
     "Series of a job, thinned for a chart",
     "names:string task:string from:integer to:integer buckets:integer", NULL, 200, "Metrics"},
    {"GET", "/api/v1/jobs/{id}/hardware", AUTH_IN_PROJECT(ROLE_VIEWER), hardware_show,
     "What the tasks of a job use of their machines, as series thinned for a chart",
     "names:string task:string from:integer to:integer buckets:integer", NULL, 200, "Metrics"},
    {0},
};
