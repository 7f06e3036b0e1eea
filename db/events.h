/*
 * events.h - the log of everything that happened, append-only.
 *
 * Sequence numbers rise by one without gaps, in the order of commits: a stream that was cut
 * resumes after any of them.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct db_event {
    int64_t seq;
    int64_t wall_us;
    const char *kind; /* "job.submitted", "job.state", "job.note", "job.notice", "task.state",
                         "node.state" */
    int64_t job;      /* 0 when it is about no job */
    int attempt;      /* 0 */
    int64_t node_id;  /* 0 */
    int state;        /* new state for *.state, else -1 */
    int state_from;   /* of job.state: the state before; else -1 */
    const char *role; /* of the task, "" */
    int index;
    const char *reason; /* stable code, "" */
    const char *text;   /* for people */
};

/* Appends; fills event->seq.  Inside a db_write_fn of DB_CONTROL. */
bool db_events_add(struct db_conn *conn, struct db_event *event, struct error *err) CHECKED;

/* What a task of a job wants people to know: "job.notice". */
bool db_events_notice(struct db *db, int64_t job, const char *role, int index, const char *text,
                      int64_t now_us, struct error *err) CHECKED;

/* Events after `after_seq`, oldest first, at most `limit`; of one job, or of all with job 0. */
bool db_events_since(struct db_conn *conn, int64_t job, int64_t after_seq, int limit,
                     struct arena *arena, struct db_event **events, int *events_count,
                     struct error *err) CHECKED;

/* The newest sequence number, 0 when there is none; and the oldest that is still kept. */
bool db_events_range(struct db_conn *conn, int64_t *oldest, int64_t *newest,
                     struct error *err) CHECKED;
