/* topic.c - topics of the event log; those of reports are in report.c. */

#include "server/topic.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "db/events.h"
#include "db/jobs.h"
#include "db/nodes.h"
#include "server/report.h"

#define TOPIC_EVENTS_MAX 200   /* in one batch */
#define TOPIC_BEHIND_MAX 20000 /* further behind than this: a gap */

static const struct {
    const char *name;
    bool needs_job;
    enum feed_line line;
} topics[TOPIC_KINDS] = {
    [TOPIC_STATE] = {"job.state", false, FEED_EVENTS},
    [TOPIC_EVENTS] = {"job.events", false, FEED_EVENTS},
    [TOPIC_METRICS] = {"job.metrics", true, FEED_REPORTS},
    [TOPIC_HARDWARE] = {"job.hw", true, FEED_REPORTS},
    [TOPIC_LOGS] = {"job.logs", true, FEED_REPORTS},
    [TOPIC_PLACEMENT] = {"job.placement", true, FEED_REPORTS},
    [TOPIC_TIMELINE] = {"job.timeline", true, FEED_REPORTS},
    [TOPIC_QUEUE] = {"queue", false, FEED_EVENTS},
    [TOPIC_NODES] = {"nodes", false, FEED_EVENTS},
};

const char *topic_name(enum topic_kind kind)
{
    return topics[kind].name;
}

int topic_find(const char *name)
{
    for (int i = 0; i < TOPIC_KINDS; i++)
        if (strcmp(topics[i].name, name) == 0 ||
            (strncmp(topics[i].name, "job.", 4) == 0 && strcmp(topics[i].name + 4, name) == 0))
            return i;
    return -1;
}

bool topic_needs_job(enum topic_kind kind)
{
    return topics[kind].needs_job;
}

enum feed_line topic_line(enum topic_kind kind)
{
    return topics[kind].line;
}

static void add_text(struct str *out, const char *key, const char *text)
{
    str_printf(out, "\"%s\":", key);
    str_add_json(out, text, strlen(text));
}

static bool wanted(const struct topic *topic, const struct db_event *event)
{
    bool state =
        strcmp(event->kind, "job.state") == 0 || strcmp(event->kind, "job.submitted") == 0;
    switch (topic->kind) {
    case TOPIC_STATE:
    case TOPIC_QUEUE:
        return state;
    case TOPIC_EVENTS:
        return event->job != 0;
    case TOPIC_NODES:
        return strncmp(event->kind, "node.", 5) == 0;
    default:
        return false;
    }
}

/* What the number of a state means depends on what it is the state of. */
static const char *state_name(const struct db_event *event, int state)
{
    if (state < 0)
        return "";
    if (strncmp(event->kind, "task.", 5) == 0)
        return db_task_state_name((enum task_state)state);
    if (strncmp(event->kind, "node.", 5) == 0)
        return db_node_state_name((enum node_state)state);
    return db_job_state_name((enum job_state)state);
}

static void add_event(struct str *out, const struct topic *topic, const struct db_event *event,
                      const char *id)
{
    char time[32];
    clock_rfc3339((uint64_t)event->wall_us, time, sizeof(time));
    str_printf(out, "{\"seq\":%lld,\"topic\":\"%s\",", (long long)event->seq,
               topic_name(topic->kind));
    if (event->job) {
        add_text(out, "job", id);
        str_printf(out, ",\"number\":%lld,\"attempt\":%d,", (long long)event->job,
                   event->attempt);
    }
    str_add(out, "\"data\":{");
    add_text(out, "kind", event->kind);
    str_add_char(out, ',');
    add_text(out, "state", state_name(event, event->state));
    str_add_char(out, ',');
    if (event->state_from >= 0) {
        add_text(out, "from", state_name(event, event->state_from));
        str_add_char(out, ',');
    }
    if (*event->role)
        str_printf(out, "\"task\":\"%s/%d\",", event->role, event->index);
    if (event->node_id)
        str_printf(out, "\"node_id\":%lld,", (long long)event->node_id);
    add_text(out, "reason", event->reason);
    str_add_char(out, ',');
    add_text(out, "text", event->text);
    str_add_char(out, ',');
    add_text(out, "time", time);
    str_add(out, "}}");
}

static bool add_events(struct db_conn *conn, struct arena *arena, const struct topic *topic,
                       int64_t after_seq, const char *separator, struct str *out,
                       struct topic_batch *batch, struct error *err)
{
    struct db_event *events;
    int count;
    if (!db_events_since(conn, topic->job, after_seq, TOPIC_EVENTS_MAX, arena, &events, &count,
                         err))
        return false;
    for (int i = 0; i < count; i++) {
        batch->seq = events[i].seq > batch->seq || i == 0 ? events[i].seq : batch->seq;
        if (!wanted(topic, &events[i]))
            continue;
        const char *id = topic->id;
        struct db_job job;
        if (!topic->job && events[i].job) {
            if (!db_jobs_find(conn, events[i].job, arena, &job, err))
                return false;
            bool sees;
            if (!db_viewer_sees(conn, &topic->viewer, job.project, &sees, err))
                return false;
            if (!sees)
                continue;
            id = job.id;
        }
        if (batch->events_count++)
            str_add(out, separator);
        add_event(out, topic, &events[i], id);
    }
    batch->more = count == TOPIC_EVENTS_MAX;
    return true;
}

static bool read_events(struct db *db, struct feed *feed, const struct topic *topic,
                        int64_t after_seq, const char *separator, struct str *out,
                        struct topic_batch *batch, struct error *err)
{
    int64_t reached = feed_seq(feed, FEED_EVENTS, 0);
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct arena *arena = arena_new();
    int64_t oldest;
    int64_t newest;
    bool ok = db_events_range(conn, &oldest, &newest, err);
    bool far = !topic->job && newest - after_seq > TOPIC_BEHIND_MAX;
    if (ok && (after_seq > newest || (after_seq + 1 < oldest && newest) || far)) {
        batch->gap = newest != after_seq;
        batch->seq = newest;
    } else if (ok) {
        ok = add_events(conn, arena, topic, after_seq, separator, out, batch, err);
        if (!batch->more && batch->seq < reached)
            batch->seq = reached;
    }
    arena_free(arena);
    db_read_done(db, conn);
    return ok;
}

bool topic_read(struct db *db, struct feed *feed, const struct topic *topic, int64_t after_seq,
                const char *separator, struct str *events, struct topic_batch *batch,
                struct error *err)
{
    *batch = (struct topic_batch){.seq = after_seq};
    if (topic_line(topic->kind) == FEED_REPORTS)
        return report_read(db, feed, topic, after_seq, separator, events, batch, err);
    return read_events(db, feed, topic, after_seq, separator, events, batch, err);
}

/* The state of a job, in the form of the event that brought it. */
static bool snapshot_state(struct db *db, const struct topic *topic, struct str *out,
                           struct topic_batch *batch, struct error *err)
{
    struct db_conn *conn = db_read(db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct arena *arena = arena_new();
    struct db_job job;
    bool ok = db_jobs_find(conn, topic->job, arena, &job, err);
    if (ok) {
        struct db_event event = {
            .seq = job.seq,
            .wall_us = (int64_t)clock_wall_us(),
            .kind = "job.state",
            .job = job.number,
            .attempt = job.attempt,
            .state = (int)job.state,
            .state_from = -1,
            .role = "",
            .reason = job.reason,
            .text = job.text,
        };
        add_event(out, topic, &event, topic->id);
        batch->events_count = 1;
    }
    arena_free(arena);
    db_read_done(db, conn);
    return ok;
}

bool topic_snapshot(struct db *db, struct feed *feed, const struct topic *topic,
                    struct str *events, struct topic_batch *batch, struct error *err)
{
    *batch = (struct topic_batch){.seq = feed_seq(feed, topic_line(topic->kind), 0)};
    if (topic->kind == TOPIC_STATE && topic->job)
        return snapshot_state(db, topic, events, batch, err);
    if (topic->kind == TOPIC_METRICS || topic->kind == TOPIC_HARDWARE ||
        topic->kind == TOPIC_TIMELINE)
        return report_snapshot(db, topic, events, batch, err);
    return true;
}
