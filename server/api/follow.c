/* follow.c - the live stream: websocket, server-sent events, NDJSON. */

#include <inttypes.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "db/jobs.h"
#include "server/api/api.h"
#include "server/http.h"
#include "server/job.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/tickets.h"
#include "server/topic.h"

#define FOLLOW_PING_US 14000000

/* --- websocket --- */

static bool has_word(const char *list, const char *word)
{
    size_t size = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,");
        size_t length = strcspn(list, " \t,");
        if (length == size && strncasecmp(list, word, size) == 0)
            return true;
        list += length;
    }
    return false;
}

/*
 * GET /api/v1/stream: becomes a websocket (stream.h says what is spoken there).  Who is known
 * by cookie or header is signed in at once; who is not must begin with {"op": "auth"}.
 */
static bool follow_websocket(struct request *req, struct error *err)
{
    const char *key = request_header(req, "Sec-WebSocket-Key");
    const char *version = request_header(req, "Sec-WebSocket-Version");
    if (req->local)
        return fail(err, UNIMPLEMENTED,
                    "no websocket on this socket; use the TCP port, or /events of a job");
    if (!has_word(request_header(req, "Upgrade"), "websocket") ||
        !has_word(request_header(req, "Connection"), "upgrade") || !key || strlen(key) != 24 ||
        !version || strcmp(version, "13") != 0) {
        req->reply.status = 426;
        reply_header(req, "Upgrade", "websocket");
        return fail(err, INVALID,
                    "this is a websocket, version 13; server-sent events are at "
                    "/api/v1/jobs/{id}/events");
    }
    struct error why;
    if (!auth_request(req->services->auth, req, ROLE_NONE, &why)) {
        if (why.code == DENIED) {
            *err = why;
            return false;
        }
        req->user = (struct auth_identity){.way = AUTH_BY_NOTHING};
    }
    req->reply.websocket = true;
    return true;
}

/* POST /api/v1/stream-tickets: what opens one websocket, by {"op": "auth", "ticket": …}. */
static bool follow_ticket(struct request *req, struct error *err)
{
    char text[DB_TOKEN_BYTES];
    tickets_add(req->services->tickets, &req->user, clock_monotonic_us(), text);
    return reply_json(req, 201,
                      json_pack("{s:s, s:i}", "ticket", text, "seconds", TICKET_SECONDS), err);
}

/* --- server-sent events and NDJSON --- */

struct follow {
    const struct services *services;
    struct auth_identity user; /* asked for again when something is revoked */
    char job_id[DB_JOB_ID_BYTES];
    struct topic topics[TOPIC_KINDS];
    int64_t cursors[TOPIC_KINDS];
    bool fresh[TOPIC_KINDS]; /* begins with how things stand */
    int topics_count;
    bool ndjson;
    struct str out;
    size_t sent; /* of out */
    uint64_t spoke_us;
    struct feed_watcher watcher;
    struct http_waker *waker;
};

/* Where every topic is: "12-345-345", which a client gives back as Last-Event-ID. */
static void add_position(const struct follow *follow, struct str *out)
{
    for (int i = 0; i < follow->topics_count; i++)
        str_printf(out, "%s%" PRId64, i ? "-" : "", follow->cursors[i]);
}

static bool parse_position(struct follow *follow, const char *text, struct error *err)
{
    const char *at = text;
    for (int i = 0; i < follow->topics_count; i++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        bool last = i == follow->topics_count - 1;
        if (end == at || *at == '-' || *at == '+' || value < 0 || *end != (last ? 0 : '-'))
            return fail(
                err, INVALID,
                "'%.80s' is no position in these topics; it is the id of an event of the same "
                "topics, or left out",
                text);
        follow->cursors[i] = value;
        follow->fresh[i] = false;
        at = end + 1;
    }
    return true;
}

/* Wraps what topic_read() wrote, one event a line, into the form of the stream. */
static void add_lines(struct follow *follow, const struct topic *topic, const char *lines)
{
    while (*lines) {
        size_t size = strcspn(lines, "\n");
        bool last = lines[size] == 0;
        if (follow->ndjson) {
            str_add_bytes(&follow->out, lines, size);
            str_add(&follow->out, "\n");
        } else {
            /* Only the last event of a batch has the position after the batch. */
            if (last) {
                str_add(&follow->out, "id: ");
                add_position(follow, &follow->out);
                str_add(&follow->out, "\n");
            }
            str_printf(&follow->out, "event: %s\ndata: ", topic_name(topic->kind));
            str_add_bytes(&follow->out, lines, size);
            str_add(&follow->out, "\n\n");
        }
        lines += size + !last;
    }
}

static bool read_topic(struct follow *follow, int index)
{
    const struct services *services = follow->services;
    const struct topic *topic = &follow->topics[index];
    int64_t from = follow->cursors[index];
    struct topic_batch batch;
    struct error err;
    struct str lines = {0};
    bool ok =
        follow->fresh[index]
            ? topic_snapshot(services->db, services->feed, topic, &lines, &batch, &err)
            : topic_read(services->db, services->feed, topic, from, "\n", &lines, &batch, &err);
    follow->fresh[index] = false;
    if (ok) {
        follow->cursors[index] = batch.seq;
        if (batch.gap) {
            str_clear(&lines);
            str_printf(&lines,
                       "{\"topic\":\"%s\",\"gap\":true,\"from\":%" PRId64 ",\"to\":%" PRId64
                       ",\"seq\":%" PRId64 "}",
                       topic_name(topic->kind), from + 1, batch.seq, batch.seq);
        }
        add_lines(follow, topic, str_text(&lines));
    }
    str_release(&lines);
    return ok;
}

/* Fills `out` with what is new.  False: the stream cannot go on. */
static bool fill(struct follow *follow)
{
    follow->sent = 0;
    str_clear(&follow->out);
    for (int i = 0; i < follow->topics_count; i++) {
        const struct topic *topic = &follow->topics[i];
        int64_t newest = feed_seq(follow->services->feed, topic_line(topic->kind), topic->job);
        if ((follow->fresh[i] || newest > follow->cursors[i]) && !read_topic(follow, i))
            return false;
    }
    uint64_t now = clock_monotonic_us();
    if (follow->out.size == 0 && now - follow->spoke_us >= FOLLOW_PING_US)
        str_add(&follow->out, follow->ndjson ? "{}\n" : ": ping\n\n");
    if (follow->out.size)
        follow->spoke_us = now;
    return true;
}

static int64_t follow_read(void *self, char *bytes, size_t size)
{
    struct follow *follow = self;
    if (follow->sent == follow->out.size)
        if (feed_closed(follow->services->feed) ||
            !auth_still(follow->services->auth, &follow->user) || !fill(follow))
            return -1;
    size_t left = follow->out.size - follow->sent;
    size_t count = left < size ? left : size;
    if (count)
        memcpy(bytes, follow->out.data + follow->sent, count);
    follow->sent += count;
    return (int64_t)count;
}

static void follow_wake(void *self)
{
    struct follow *follow = self;
    http_wake(follow->waker);
}

static void follow_start(void *self, struct http_waker *waker)
{
    struct follow *follow = self;
    follow->waker = waker;
    follow->watcher = (struct feed_watcher){.wake = follow_wake, .self = follow};
    feed_watch(follow->services->feed, &follow->watcher);
}

static void follow_free(void *self)
{
    struct follow *follow = self;
    if (follow->waker)
        feed_unwatch(follow->services->feed, &follow->watcher);
    str_release(&follow->out);
    free(follow);
}

/* "state,metrics,logs" into topics, in the order given. */
static bool choose_topics(struct follow *follow, int64_t job, const char *names,
                          struct error *err)
{
    while (*names) {
        char name[40];
        size_t size = strcspn(names, ",");
        snprintf(name, sizeof(name), "%.*s", (int)(size < 39 ? size : 39), names);
        int kind = topic_find(name);
        if (kind < 0 || kind == TOPIC_QUEUE || kind == TOPIC_NODES)
            return fail(
                err, INVALID,
                "unknown topic '%s'; there are state, events, metrics, logs, placement, "
                "timeline",
                name);
        if (follow->topics_count == TOPIC_KINDS)
            return fail(err, INVALID, "too many topics");
        enum feed_line line = topic_line((enum topic_kind)kind);
        follow->cursors[follow->topics_count] = feed_seq(follow->services->feed, line, 0);
        follow->fresh[follow->topics_count] = true;
        follow->topics[follow->topics_count++] =
            (struct topic){.kind = (enum topic_kind)kind, .job = job, .id = follow->job_id};
        names += size + (names[size] == ',');
    }
    return follow->topics_count || fail(err, INVALID, "no topics");
}

/*
 * GET /api/v1/jobs/{id}/events: server-sent events, or NDJSON with `Accept:
 * application/x-ndjson`.  Begins with how things stand, or after Last-Event-ID (or after=). The
 * stream stays open until the client leaves.
 */
static bool follow_events(struct request *req, struct error *err)
{
    struct db_job job;
    if (!job_find(req, &job, err))
        return false;
    struct follow *follow = alloc_bytes(sizeof(*follow));
    follow->services = req->services;
    follow->user = req->user;
    follow->user.user = follow->user.csrf = NULL; /* the request's */
    follow->spoke_us = clock_monotonic_us();
    snprintf(follow->job_id, sizeof(follow->job_id), "%s", job.id);
    const char *topics = request_query(req, "topics");
    const char *after = request_header(req, "Last-Event-ID");
    if (!after)
        after = request_query(req, "after");
    if (!choose_topics(follow, job.number, topics ? topics : "state,metrics,logs,placement",
                       err) ||
        (after && !parse_position(follow, after, err))) {
        follow_free(follow);
        return false;
    }
    const char *accept = request_header(req, "Accept");
    follow->ndjson = accept && strcasecmp(accept, "application/x-ndjson") == 0;
    struct reply_stream *stream = arena_alloc(req->arena, sizeof(*stream));
    *stream = (struct reply_stream){follow, follow_read, follow_start, follow_free};
    req->reply.status = 200;
    req->reply.type = follow->ndjson ? "application/x-ndjson" : "text/event-stream";
    req->reply.stream = stream;
    return true;
}

const struct route follow_routes[] = {
    {"GET", "/api/v1/stream", AUTH_PUBLIC, follow_websocket,
     "Websocket with everything that happens", NULL, NULL, 101, NULL},
    {"POST", "/api/v1/stream-tickets", ROLE_NONE, follow_ticket,
     "What opens one websocket within half a minute, in place of a token", NULL, NULL, 201,
     "StreamTicket"},
    {"GET", "/api/v1/jobs/{id}/events", AUTH_IN_PROJECT(ROLE_VIEWER), follow_events,
     "Server-sent events of a job",
     "topics:string after:string Last-Event-ID:header Accept:header", NULL, 200,
     "text/event-stream"},
    {0},
};
