/* stream.c - subscriptions of one client. */

#include <jansson.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "db/jobs.h"
#include "server/recent.h"
#include "server/request.h"
#include "server/stream.h"
#include "server/tickets.h"
#include "server/topic.h"

#define STREAM_HZ_DEFAULT 25
#define STREAM_HZ_MAX 100

struct subscription {
    struct subscription *next;
    json_int_t id; /* the client's own number for it */
    struct topic topic;
    char job_id[DB_JOB_ID_BYTES];
    int64_t cursor;
    bool new;     /* its snapshot was not sent yet */
    bool resumes; /* it came with after_seq: its first answer is a batch from there */
    uint64_t interval_us;
    uint64_t next_us; /* not before this */
};

struct stream {
    const struct services *services;
    struct recent *recent;
    struct arena *arena; /* of the identity */
    struct auth_identity user;
    struct subscription *subscriptions;
    int subscriptions_count;
    struct subscription *last_served;
    char *answers[STREAM_ANSWERS_MAX];
    int answers_count;
    bool ping;
};

static void answer(struct stream *stream, char *message)
{
    if (stream->answers_count < STREAM_ANSWERS_MAX)
        stream->answers[stream->answers_count++] = message;
    else
        free(message);
}

static void greet(struct stream *stream)
{
    struct str message = {0};
    str_add(&message, "{\"op\":\"hello\",\"user\":");
    str_add_json(&message, stream->user.user, strlen(stream->user.user));
    str_add(&message, "}");
    answer(stream, str_take(&message));
}

static void answer_error(struct stream *stream, json_int_t id, const struct error *err)
{
    struct str message = {0};
    str_printf(&message,
               "{\"op\":\"error\",\"id\":%lld,\"code\":\"%s\",\"detail\":", (long long)id,
               error_code_name(err->code));
    str_add_json(&message, err->text, strlen(err->text));
    str_add(&message, "}");
    answer(stream, str_take(&message));
}

struct stream *stream_new(const struct services *services, struct recent *recent,
                          const struct auth_identity *user)
{
    struct stream *stream = alloc_bytes(sizeof(*stream));
    stream->services = services;
    stream->recent = recent;
    stream->arena = arena_new();
    stream->user = *user;
    stream->user.user = arena_text(stream->arena, user->user ? user->user : "");
    stream->user.csrf = "";
    if (stream_signed_in(stream))
        greet(stream);
    return stream;
}

void stream_free(struct stream *stream)
{
    if (!stream)
        return;
    while (stream->subscriptions) {
        struct subscription *next = stream->subscriptions->next;
        free(stream->subscriptions);
        stream->subscriptions = next;
    }
    for (int i = 0; i < stream->answers_count; i++)
        free(stream->answers[i]);
    arena_free(stream->arena);
    free(stream);
}

bool stream_signed_in(const struct stream *stream)
{
    return stream->user.way != AUTH_BY_NOTHING;
}

bool stream_still(struct stream *stream)
{
    return auth_still(stream->services->auth, &stream->user);
}

void stream_ping(struct stream *stream)
{
    stream->ping = true;
}

/* --- what the client says --- */

static void unsubscribe(struct stream *stream, json_int_t id)
{
    for (struct subscription **link = &stream->subscriptions; *link; link = &(*link)->next) {
        struct subscription *found = *link;
        if (found->id != id)
            continue;
        *link = found->next;
        free(found);
        stream->subscriptions_count--;
        stream->last_served = NULL;
        return;
    }
}

static bool find_job(struct stream *stream, json_t *job, struct subscription *subscription,
                     struct error *err)
{
    char number[32];
    const char *text = json_string_value(job);
    if (json_is_integer(job)) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(job));
        text = number;
    }
    if (!text)
        return fail(err, INVALID, "'job' must be the id or the number of a job");
    struct db_conn *conn = db_read(stream->services->db, DB_CONTROL, err);
    if (!conn)
        return false;
    struct arena *arena = arena_new();
    struct db_job found;
    struct db_viewer viewer = auth_viewer(&stream->user);
    bool ok = db_jobs_find_text(conn, text, &viewer, arena, &found, err);
    if (ok) {
        subscription->topic.job = found.number;
        snprintf(subscription->job_id, sizeof(subscription->job_id), "%s", found.id);
    }
    arena_free(arena);
    db_read_done(stream->services->db, conn);
    return ok;
}

static bool read_subscription(struct stream *stream, json_t *message,
                              struct subscription *subscription, struct error *err)
{
    const char *name = json_string_value(json_object_get(message, "topic"));
    int kind = name ? topic_find(name) : -1;
    if (kind < 0)
        return fail(err, INVALID,
                    "unknown topic '%.60s'; there are job.state, job.events, job.metrics, "
                    "job.hw, job.logs, job.placement, job.timeline, queue, nodes",
                    name ? name : "");
    subscription->topic.kind = (enum topic_kind)kind;
    subscription->topic.viewer = auth_viewer(&stream->user);
    json_t *job = json_object_get(message, "job");
    if (job && !json_is_null(job)) {
        if (!find_job(stream, job, subscription, err))
            return false;
    } else if (topic_needs_job((enum topic_kind)kind)) {
        return fail(err, INVALID, "the topic %s needs a job", name);
    }
    json_t *after = json_object_get(message, "after_seq");
    subscription->resumes = json_is_integer(after);
    subscription->cursor = json_integer_value(after);
    json_t *hz = json_object_get(message, "max_hz");
    double rate = json_is_number(hz) ? json_number_value(hz) : STREAM_HZ_DEFAULT;
    if (!(rate > 0 && rate <= STREAM_HZ_MAX))
        return fail(err, INVALID, "max_hz must be above 0 and at most %d", STREAM_HZ_MAX);
    subscription->interval_us = (uint64_t)(1000000 / rate);
    return true;
}

static void subscribe(struct stream *stream, json_int_t id, json_t *message)
{
    struct error err;
    unsubscribe(stream, id);
    if (stream->subscriptions_count == STREAM_SUBSCRIPTIONS_MAX) {
        fail(&err, EXHAUSTED, "at most %d subscriptions on one connection",
             STREAM_SUBSCRIPTIONS_MAX);
        answer_error(stream, id, &err);
        return;
    }
    struct subscription *subscription = alloc_bytes(sizeof(*subscription));
    subscription->id = id;
    subscription->new = true;
    subscription->topic.id = subscription->job_id;
    if (!read_subscription(stream, message, subscription, &err)) {
        answer_error(stream, id, &err);
        free(subscription);
        return;
    }
    subscription->next = stream->subscriptions;
    stream->subscriptions = subscription;
    stream->subscriptions_count++;
}

static int sign_in(struct stream *stream, json_t *message)
{
    struct error err;
    const struct services *services = stream->services;
    const char *token = json_string_value(json_object_get(message, "token"));
    const char *ticket = json_string_value(json_object_get(message, "ticket"));
    struct auth_identity user;
    bool ok = token ? auth_token(services->auth, token, stream->arena, &user, &err)
                    : ticket && tickets_take(services->tickets, ticket, clock_monotonic_us(),
                                             stream->arena, &user, &err);
    if (!ok)
        return STREAM_CLOSE_SIGNED_OUT;
    stream->user = user;
    greet(stream);
    return 0;
}

int stream_receive(struct stream *stream, const char *text, size_t size)
{
    json_error_t where;
    json_t *message = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    const char *op = json_string_value(json_object_get(message, "op"));
    json_int_t id = json_integer_value(json_object_get(message, "id"));
    int close_code = 0;
    if (stream->answers_count == STREAM_ANSWERS_MAX)
        close_code = STREAM_CLOSE_POLICY; /* it asks, and does not read */
    else if (!op)
        close_code = STREAM_CLOSE_POLICY;
    else if (strcmp(op, "auth") == 0)
        close_code = sign_in(stream, message);
    else if (!stream_signed_in(stream))
        close_code = STREAM_CLOSE_SIGNED_OUT;
    else if (strcmp(op, "subscribe") == 0)
        subscribe(stream, id, message);
    else if (strcmp(op, "unsubscribe") == 0)
        unsubscribe(stream, id);
    else if (strcmp(op, "ping") == 0)
        answer(stream, alloc_text("{\"op\":\"pong\"}"));
    else if (strcmp(op, "pong") != 0) {
        struct error err;
        fail(&err, INVALID, "unknown op '%.40s'", op);
        answer_error(stream, id, &err);
    }
    json_decref(message);
    return close_code;
}

/* --- what it is told --- */

static bool has_news(struct stream *stream, const struct subscription *s)
{
    enum feed_line line = topic_line(s->topic.kind);
    return s->new || feed_seq(stream->services->feed, line, s->topic.job) > s->cursor;
}

static void add_gap(const struct subscription *s, const struct topic_batch *batch,
                    struct str *out)
{
    static const char *const parts[TOPIC_KINDS] = {
        [TOPIC_STATE] = "",           [TOPIC_EVENTS] = "/history",
        [TOPIC_METRICS] = "/metrics", [TOPIC_HARDWARE] = "/hardware",
        [TOPIC_LOGS] = "/logs",       [TOPIC_PLACEMENT] = "/placement",
        [TOPIC_TIMELINE] = "/times",
    };
    str_printf(out,
               "{\"op\":\"gap\",\"id\":%lld,\"from\":%lld,\"to\":%lld,\"seq\":%lld,\"fetch\":"
               "\"/api/v1/",
               (long long)s->id, (long long)s->cursor + 1, (long long)batch->seq,
               (long long)batch->seq);
    if (s->topic.job)
        str_printf(out, "jobs/%s%s\"}", s->topic.id,
                   parts[s->topic.kind] ? parts[s->topic.kind] : "");
    else
        str_printf(out, "%s\"}", s->topic.kind == TOPIC_NODES ? "nodes" : "jobs");
}

/* Appends what is new for one subscription.  False when nothing is. */
static bool serve(struct stream *stream, struct subscription *s, struct str *out)
{
    const struct services *services = stream->services;
    struct topic_batch batch;
    struct error err;
    bool snapshot = s->new && !s->resumes;
    bool first = s->new;
    size_t before = out->size;
    struct str standing = {0};
    const struct str *events = &standing;
    bool ok = snapshot ? topic_snapshot(services->db, services->feed, &s->topic, &standing,
                                        &batch, &err)
                       : recent_read(stream->recent, services->db, services->feed, &s->topic,
                                     s->cursor, &events, &batch, &err);
    s->new = false;
    if (!ok) {
        answer_error(stream, s->id, &err);
        unsubscribe(stream, s->id);
        str_release(&standing);
        return false;
    }
    if (batch.gap)
        add_gap(s, &batch, out);
    else if (first || batch.events_count) {
        str_printf(out, "{\"op\":\"%s\",\"id\":%lld,\"seq\":%lld,\"events\":[",
                   snapshot ? "snapshot" : "batch", (long long)s->id, (long long)batch.seq);
        str_add_bytes(out, events->data, events->size);
        str_add(out, "]}");
    }
    s->cursor = batch.seq;
    str_release(&standing);
    return out->size > before;
}

bool stream_pending(struct stream *stream)
{
    if (stream->answers_count || stream->ping)
        return true;
    for (struct subscription *s = stream->subscriptions; s; s = s->next)
        if (has_news(stream, s))
            return true;
    return false;
}

/* The next subscription in turn that has news and may speak; shortens `*wait_us` for those that
 * wait. */
static struct subscription *next_in_turn(struct stream *stream, uint64_t now_us,
                                         uint64_t *wait_us)
{
    struct subscription *start =
        stream->last_served ? stream->last_served->next : stream->subscriptions;
    struct subscription *s = start ? start : stream->subscriptions;
    for (int i = 0; i < stream->subscriptions_count; i++) {
        if (has_news(stream, s)) {
            if (s->new || s->next_us <= now_us)
                return s;
            uint64_t wait = s->next_us - now_us;
            if (!*wait_us || wait < *wait_us)
                *wait_us = wait;
        }
        s = s->next ? s->next : stream->subscriptions;
    }
    return NULL;
}

bool stream_next(struct stream *stream, uint64_t now_us, struct str *out, uint64_t *wait_us)
{
    *wait_us = 0;
    for (;;) {
        if (stream->answers_count) {
            str_add(out, stream->answers[0]);
            free(stream->answers[0]);
            stream->answers_count--;
            memmove(stream->answers, stream->answers + 1,
                    (size_t)stream->answers_count * sizeof(char *));
            return true;
        }
        if (stream->ping) {
            stream->ping = false;
            str_add(out, "{\"op\":\"ping\"}");
            return true;
        }
        struct subscription *s = next_in_turn(stream, now_us, wait_us);
        if (!s)
            return false;
        stream->last_served = s;
        s->next_us = now_us + s->interval_us;
        if (serve(stream, s, out))
            return true;
    }
}
