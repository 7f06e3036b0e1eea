/* report.c - changes since a number, turned into points, lines and times. */

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "db/artifacts.h"
#include "db/logs.h"
#include "db/metrics.h"
#include "db/ship.h"
#include "server/report.h"

#define REPORT_CHANGES_MAX 1000
#define REPORT_POINTS_MAX                                                                      \
    4000 /* in one batch: more is a gap, and read through REST in buckets */
#define REPORT_LOG_BYTES_MAX 262144 /* the same of log bytes */

void report_number(struct str *out, double value)
{
    if (isnan(value))
        str_add(out, "\"NaN\"");
    else if (isinf(value))
        str_add(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        str_printf(out, "%.9g", value);
}

/* --- metrics --- */

static void add_point(struct str *out, const struct db_series *series, int64_t step,
                      int64_t wall_us, double value)
{
    char time[32];
    clock_rfc3339((uint64_t)wall_us, time, sizeof(time));
    str_printf(out, "{\"task\":\"%s/%d\",\"name\":", series->role, series->index);
    str_add_json(out, series->name, strlen(series->name));
    str_printf(out, ",\"step\":%lld,\"time\":\"%s\",\"value\":", (long long)step, time);
    report_number(out, value);
    str_add_char(out, '}');
}

static void begin_event(struct str *out, const struct topic *topic, int64_t seq,
                        const char *data)
{
    str_printf(out,
               "{\"seq\":%lld,\"topic\":\"%s\",\"job\":\"%s\",\"number\":%lld,\"data\":{%s",
               (long long)seq, topic_name(topic->kind), topic->id, (long long)topic->job, data);
}

/* Reads the range of steps that `changes` name for one series. */
static bool add_range(struct db_conn *conn, struct arena *arena, const struct db_series *series,
                      const struct db_change *changes, int changes_count, struct str *out,
                      int *total, struct error *err)
{
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    for (int i = 0; i < changes_count; i++) {
        if (changes[i].kind != DB_CHANGE_POINTS || changes[i].series != series->id)
            continue;
        first = changes[i].first < first ? changes[i].first : first;
        last = changes[i].last > last ? changes[i].last : last;
    }
    if (first > last)
        return true;
    struct db_point *points;
    int count;
    int room = REPORT_POINTS_MAX + 1 - *total;
    if (!db_metrics_points(conn, series->id, first, last, room, arena, &points, &count, err))
        return false;
    for (int i = 0; i < count; i++) {
        if ((*total)++)
            str_add_char(out, ',');
        add_point(out, series, points[i].step, points[i].wall_us, points[i].value);
    }
    return true;
}

static bool add_metrics(struct db_conn *conn, struct arena *arena, const struct topic *topic,
                        const struct db_change *changes, int changes_count, struct str *out,
                        struct topic_batch *batch, struct error *err)
{
    struct db_series *series;
    int series_count;
    if (!db_metrics_series(conn, topic->job, topic->kind == TOPIC_HARDWARE, arena, &series,
                           &series_count, err))
        return false;
    size_t before = out->size;
    int total = 0;
    begin_event(out, topic, batch->seq, "\"points\":[");
    for (int i = 0; i < series_count && total <= REPORT_POINTS_MAX; i++)
        if (!add_range(conn, arena, &series[i], changes, changes_count, out, &total, err))
            return false;
    str_add(out, "]}}");
    batch->gap = total > REPORT_POINTS_MAX;
    batch->events_count = total && !batch->gap;
    if (!batch->events_count) {
        out->size = before;
        if (out->data)
            out->data[before] = 0;
    }
    return true;
}

/* --- logs --- */

bool report_lines(struct db_conn *conn, const struct db_log *log, int64_t first, int64_t last,
                  struct arena *arena, struct str *out, int *lines_count, struct error *err)
{
    /* The line that ends first may have begun before. */
    int64_t from = first > LIMIT_LOG_LINE_BYTES ? first - LIMIT_LOG_LINE_BYTES : 0;
    const char *bytes;
    size_t size;
    if (!db_logs_read(conn, log->id, from, (size_t)(last - from), arena, &bytes, &size, err))
        return false;
    size_t start = (size_t)(first - from); /* of the line that ends first */
    while (start > 0 && start <= size && bytes[start - 1] != '\n')
        start--;
    while (start < size) {
        const char *newline = memchr(bytes + start, '\n', size - start);
        if (!newline)
            break;
        size_t end = (size_t)(newline - bytes);
        size_t text_end = end > start && bytes[end - 1] == '\r' ? end - 1 : end;
        if ((*lines_count)++)
            str_add_char(out, ',');
        str_printf(out, "{\"task\":\"%s/%d\",\"stream\":\"%s\",\"text\":", log->role,
                   log->index, log->name);
        str_add_json(out, bytes + start, text_end - start);
        str_add_char(out, '}');
        start = end + 1;
    }
    return true;
}

static bool add_logs(struct db_conn *conn, struct arena *arena, const struct topic *topic,
                     const struct db_change *changes, int changes_count, struct str *out,
                     struct topic_batch *batch, struct error *err)
{
    struct db_log *logs;
    int logs_count;
    if (!db_logs_list(conn, topic->job, arena, &logs, &logs_count, err))
        return false;
    int64_t bytes = 0;
    for (int i = 0; i < changes_count; i++)
        bytes += changes[i].kind == DB_CHANGE_LOG ? changes[i].last - changes[i].first : 0;
    if (bytes > REPORT_LOG_BYTES_MAX) {
        batch->gap = true;
        return true;
    }
    struct str lines = {0};
    int count = 0;
    bool ok = true;
    for (int i = 0; i < changes_count && ok; i++)
        for (int l = 0; l < logs_count && ok; l++)
            if (changes[i].kind == DB_CHANGE_LOG && logs[l].id == changes[i].series)
                ok = report_lines(conn, &logs[l], changes[i].first, changes[i].last, arena,
                                  &lines, &count, err);
    if (ok && count) {
        begin_event(out, topic, batch->seq, "\"lines\":[");
        str_add_bytes(out, lines.data, lines.size);
        str_add(out, "]}}");
        batch->events_count = 1;
    }
    str_release(&lines);
    return ok;
}

/* --- placement and graph --- */

static void add_placement(const struct topic *topic, const struct db_change *changes,
                          int changes_count, const char *separator, struct str *out,
                          struct topic_batch *batch)
{
    for (int i = 0; i < changes_count; i++) {
        if (changes[i].kind != DB_CHANGE_ARTIFACT)
            continue;
        const char *slash = strchr(changes[i].name, '/');
        size_t size = slash ? (size_t)(slash - changes[i].name) : strlen(changes[i].name);
        if (batch->events_count++)
            str_add(out, separator);
        begin_event(out, topic, changes[i].seq, "\"kind\":");
        str_add_json(out, changes[i].name, size);
        str_add(out, "}}");
    }
}

/* --- where the time of steps goes --- */

/* What is stored now, with the number of the last change: who was away gets no older ones. */
static bool add_timeline(struct db_conn *conn, struct arena *arena, const struct topic *topic,
                         int64_t seq, struct str *out, struct topic_batch *batch,
                         struct error *err)
{
    struct db_artifact artifact;
    if (!db_artifacts_find(conn, topic->job, "times", "", arena, &artifact, err))
        return err->code == NOT_FOUND;
    json_t *times = json_loadb(artifact.bytes, artifact.size, 0, NULL);
    char *text = json_is_array(json_object_get(times, "tasks")) /* else another program's */
                     ? json_dumps(times, JSON_COMPACT)
                     : NULL;
    json_decref(times);
    if (!text)
        return true;
    begin_event(out, topic, seq, "");
    str_add(out, text + 1); /* past its "{" */
    str_add_char(out, '}');
    batch->events_count = 1;
    free(text);
    return true;
}

static bool add_new_timeline(struct db_conn *conn, struct arena *arena,
                             const struct topic *topic, const struct db_change *changes,
                             int changes_count, struct str *out, struct topic_batch *batch,
                             struct error *err)
{
    for (int i = changes_count - 1; i >= 0; i--)
        if (changes[i].kind == DB_CHANGE_ARTIFACT && !strcmp(changes[i].name, "times/"))
            return add_timeline(conn, arena, topic, changes[i].seq, out, batch, err);
    return true;
}

/* --- how things stand --- */

static bool add_last_points(struct db_conn *conn, struct arena *arena,
                            const struct topic *topic, struct str *events,
                            struct topic_batch *batch, struct error *err)
{
    struct db_series *series;
    int count = 0;
    if (!db_metrics_series(conn, topic->job, topic->kind == TOPIC_HARDWARE, arena, &series,
                           &count, err))
        return false;
    if (!count)
        return true;
    begin_event(events, topic, batch->seq, "\"points\":[");
    for (int i = 0; i < count; i++) {
        if (i)
            str_add_char(events, ',');
        add_point(events, &series[i], series[i].last_step, series[i].last_wall_us,
                  series[i].last_value);
    }
    str_add(events, "]}}");
    batch->events_count = 1;
    return true;
}

bool report_snapshot(struct db *db, const struct topic *topic, struct str *events,
                     struct topic_batch *batch, struct error *err)
{
    struct db_conn *conn = db_read(db, DB_METRICS, err);
    if (!conn)
        return false;
    struct arena *arena = arena_new();
    bool ok = topic->kind == TOPIC_TIMELINE
                  ? add_timeline(conn, arena, topic, batch->seq, events, batch, err)
                  : add_last_points(conn, arena, topic, events, batch, err);
    arena_free(arena);
    db_read_done(db, conn);
    return ok;
}

/* --- all of them --- */

/*
 * Reads the changes after `after_seq`.  A number is delivered whole or not at all: when there
 * are more changes than fit, those of the last number are left for the next time.
 */
static bool read_changes(struct db_conn *conn, struct arena *arena, const struct topic *topic,
                         int64_t after_seq, struct db_change **changes, int *count,
                         struct topic_batch *batch, struct error *err)
{
    for (int limit = REPORT_CHANGES_MAX;; limit *= 4) {
        if (!db_ship_since(conn, topic->job, after_seq, limit, arena, changes, count, err))
            return false;
        batch->more = *count == limit;
        if (!batch->more)
            break;
        int64_t cut = (*changes)[*count - 1].seq;
        if ((*changes)[0].seq == cut)
            continue; /* all of one number: read more */
        while ((*changes)[*count - 1].seq == cut)
            (*count)--;
        break;
    }
    if (*count)
        batch->seq = (*changes)[*count - 1].seq;
    return true;
}

bool report_read(struct db *db, struct feed *feed, const struct topic *topic, int64_t after_seq,
                 const char *separator, struct str *events, struct topic_batch *batch,
                 struct error *err)
{
    int64_t reached = feed_seq(feed, FEED_REPORTS, topic->job);
    int64_t newest = feed_seq(feed, FEED_REPORTS, 0);
    if (after_seq > newest) { /* a number of another database */
        batch->gap = true;
        batch->seq = newest;
        return true;
    }
    struct db_conn *conn = db_read(db, DB_METRICS, err);
    if (!conn)
        return false;
    struct arena *arena = arena_new();
    struct db_change *changes;
    int count;
    bool ok = read_changes(conn, arena, topic, after_seq, &changes, &count, batch, err);
    if (ok && !batch->more && batch->seq < reached)
        batch->seq = reached;
    if (ok && !batch->gap && count) {
        if (topic->kind == TOPIC_METRICS || topic->kind == TOPIC_HARDWARE)
            ok = add_metrics(conn, arena, topic, changes, count, events, batch, err);
        else if (topic->kind == TOPIC_LOGS)
            ok = add_logs(conn, arena, topic, changes, count, events, batch, err);
        else if (topic->kind == TOPIC_TIMELINE)
            ok = add_new_timeline(conn, arena, topic, changes, count, events, batch, err);
        else
            add_placement(topic, changes, count, separator, events, batch);
    }
    if (batch->gap) {
        batch->seq = newest;
        batch->more = false;
    }
    arena_free(arena);
    db_read_done(db, conn);
    return ok;
}
