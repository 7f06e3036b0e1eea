/*
 * job.h - a job as the API shows it, in lists and alone.
 */
#pragma once

#include <jansson.h>

#include "db/jobs.h"

struct arena;
struct request;

/* The job that a path names: "7" or "job_01…" or a name, its number and row in the request's
 * arena. */
bool job_find(struct request *req, struct db_job *job, struct error *err) CHECKED;

/* Connections that job_json() reads with. */
struct job_reader {
    struct db_conn *control;
    struct db_conn *metrics;
};
bool job_reader_open(struct request *req, struct job_reader *reader, struct error *err) CHECKED;
void job_reader_close(struct request *req, struct job_reader *reader);

/*
 * {id, number, name, project, queue, priority, user, state, reason, code, created_at,
 * started_at, ended_at, attempt, restarts, restart_max, preemptions, step, steps, last:
 * {metric: value}, nodes, program, cluster, array, array_index, parameters, paused, archived},
 * and of one with its spec
 * {tags, after}; NULL and `err` on failure.  What is not known is null.
 */
json_t *job_json(struct request *req, const struct job_reader *reader, const struct db_job *job,
                 struct error *err) CHECKED;

/* Answers with the job as it is now; its ETag is the number of its last change. */
bool job_reply(struct request *req, int status, int64_t number, struct error *err) CHECKED;

/* What If-Match says: the ETag of a job, or 0 for any. */
bool job_match(const struct request *req, int64_t *seq, struct error *err) CHECKED;

/*
 * Why the job is in its state, for people: what the scheduler noted, and what the task that
 * failed said of itself.  "" when there is nothing to say; lives in the arena.
 */
const char *job_reason(const struct job_reader *reader, const struct db_job *job,
                       struct arena *arena);

/* A time of the wall clock as JSON; null for 0. */
json_t *job_time(int64_t wall_us);

/* A text as JSON; null for "" and NULL. */
json_t *job_text(const char *text);

/* A value as JSON; NaN and infinities as texts. */
json_t *job_number(double value);
