/*
 * submit.h - from a spec, as a person wrote it, to a job on disk.
 */
#pragma once

#include "db/jobs.h"
#include "runtime/spec/spec.h"
#include "server/plan.h"

struct error;
struct request;

/* A spec that has been looked at whole; all of it lives in the request's arena. */
struct submission {
    struct spec spec; /* other jobs in it are named by their numbers */
    struct plan plan;
    int64_t *after; /* numbers, each once */
    int after_count;
    const char *parameters; /* of one of an array: {pointer: value} */
};

struct submissions {
    struct submission *list;
    int count;
    bool array; /* the spec has one: `list` are its jobs */
};

/*
 * Parses a spec, or all the specs of an array, and checks what can be known before it is a job:
 * its model, dataset, files, queue, nodes, and the jobs that it names.  Fails with a pointer.
 */
bool submit_prepare(struct request *req, const char *text, size_t size,
                    struct submissions *submissions, struct error *err) CHECKED;

/*
 * Makes it what a job is that is queued.  Fails with INVALID and the pointer of what may not
 * change: once it has run, all that its checkpoints are of; PRECONDITION when it is not queued,
 * or its last change was not `seq` (0: any).
 */
bool submit_edit(struct request *req, const struct db_job *job, int64_t seq,
                 const struct submissions *submissions, struct error *err) CHECKED;

/* An Idempotency-Key, and what it is the key of. */
struct submit_key {
    const char *text; /* "": there is none */
    uint8_t hash[DB_HASH_BYTES];
};

/* The request's; `what` is done by it beside what its body says ("": a new job). */
bool submit_key_read(const struct request *req, const char *what, struct submit_key *key,
                     struct error *err) CHECKED;

/* The job that this very request made before; added->existed is false when there is none.
 * PRECONDITION, and 422, when another request had the key. */
bool submit_key_find(struct request *req, const struct submit_key *key,
                     struct db_job_added *added, struct error *err) CHECKED;

/*
 * Makes it a job (or all of them, or none) and wakes the scheduler.  Returns when it is on
 * disk.  With a key the same request makes one job however often it is sent.
 */
bool submit_send(struct request *req, const struct submissions *submissions,
                 const struct submit_key *key, struct db_job_added *added,
                 struct error *err) CHECKED;
