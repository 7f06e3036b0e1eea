/*
 * topic.h - what can be followed, and what happened on it after a given number, as JSON.
 *
 * The same events go into websockets, server-sent events and NDJSON:
 *   {"seq": 184, "topic": "job.metrics", "job": "job_01…", "number": 7, "attempt": 1, "data":
 * {…}}
 *
 *   job.state     data {state, from, reason, text, time}
 *   job.events    data {kind, state, task, reason, text, time}, everything in the job's story
 *   job.metrics   data {points: [{task, name, step, time, value}]}; NaN, infinities are texts
 *   job.hw        the same of what the job's tasks use of their machines
 *   job.logs      data {lines: [{task, stream, text}]}
 *   job.placement data {kind}: the graph or the placement is there, or is new
 *   job.timeline  data as GET …/times: the newest, however many there were since
 *   queue         as job.state, of all jobs
 *   nodes         data {node, state, text, time}
 */
#pragma once

#include "db/members.h"
#include "server/feed.h"

struct arena;
struct str;

enum topic_kind {
    TOPIC_STATE,
    TOPIC_EVENTS,
    TOPIC_METRICS,
    TOPIC_HARDWARE,
    TOPIC_LOGS,
    TOPIC_PLACEMENT,
    TOPIC_TIMELINE,
    TOPIC_QUEUE,
    TOPIC_NODES,
    TOPIC_KINDS,
};

struct topic {
    enum topic_kind kind;
    int64_t job;    /* number; 0: all (state, events, queue, nodes only) */
    const char *id; /* of the job, "" with 0; borrowed by the topic for as long as it is used */
    struct db_viewer viewer; /* who follows all jobs; what it points to is borrowed */
};

/* "job.state" and so on; the kind of a name, with or without "job.", or -1. */
const char *topic_name(enum topic_kind kind);
int topic_find(const char *name);

/* Whether the topic needs a job. */
bool topic_needs_job(enum topic_kind kind);

/* The sequence that its numbers are of. */
enum feed_line topic_line(enum topic_kind kind);

struct topic_batch {
    int64_t seq;      /* read on after this */
    int events_count; /* may be 0: nothing that concerns the topic */
    bool gap; /* too much, or no longer kept: read it again through REST, from seq on it goes */
    bool more; /* there is more to read already */
};

/*
 * Appends the events after `after_seq` to `events`, separated by `separator`, oldest first.  On
 * a gap nothing is appended.
 */
bool topic_read(struct db *db, struct feed *feed, const struct topic *topic, int64_t after_seq,
                const char *separator, struct str *events, struct topic_batch *batch,
                struct error *err) CHECKED;

/*
 * How things stand now, for one who comes without a number: the state of the job, the last
 * value of each series, or where its steps' time went; nothing for the other topics.
 */
bool topic_snapshot(struct db *db, struct feed *feed, const struct topic *topic,
                    struct str *events, struct topic_batch *batch, struct error *err) CHECKED;
