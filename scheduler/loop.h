/*
 * loop.h - the thread that owns the scheduler's state.
 *
 * DESIGN: loop_main takes events from a mailbox, feeds them to the pure core (scheduler.h),
 * stores all that it decides in one transaction, and only then lets anybody know: agents
 * through the interface below, callers by their answer.  At start, and whenever a commit
 * failed, it builds its state anew from the database.
 */
#pragma once

#include "db/db.h"
#include "db/jobs.h"
#include "scheduler/explain.h"

struct arena;
struct loop;

struct loop_options {
    struct db *db;
    /* In milliseconds; 0 takes the default. */
    int64_t suspect_ms; /* 6000: a node silent for so long gets nothing new */
    int64_t lost_ms;    /* 300000: ... and its tasks are given up */
    int64_t grace_ms;   /* 30000: from TERM to KILL */
    int64_t backoff_ms; /* 10000: before the second attempt; doubles, to 36 times this */
};

/* --- for server/serve.c --- */

/* Builds the state from the database; the thread starts with loop_start(). */
struct loop *loop_new(const struct loop_options *options, struct error *err) CHECKED;
bool loop_start(struct loop *loop, struct error *err) CHECKED;

/* Ends the thread; later calls fail with UNAVAILABLE.  Then no caller may be left when freed.
 */
void loop_stop(struct loop *loop);
void loop_free(struct loop *loop); /* NULL is fine */

/* --- for the REST API, from any thread --- */

/* A job was added: look at the queue now.  (The loop would find it within a second anyway.) */
void loop_wake(struct loop *loop);

/*
 * Cancels a job (TERM, time for a checkpoint, then KILL), or kills it (KILL at once).  Returns
 * when that is on disk, with the state it has then: cancelled, or stopping until its tasks have
 * ended. The same call on a job that is cancelled (or being) succeeds again.  PRECONDITION when
 * it has succeeded or failed, NOT_FOUND when there is none.
 */
bool loop_cancel(struct loop *loop, int64_t job, bool kill, enum job_state *state,
                 struct error *err) CHECKED;

/* Why the job waits.  For one that does not, code NOT_WAITING.  NOT_FOUND when there is none.
 */
bool loop_explain(struct loop *loop, int64_t job, struct explain *out,
                  struct error *err) CHECKED;

/*
 * Asks, before a job is added, whether it could ever run.  Fails with INVALID, the pointer of
 * the field and the largest value possible, when nodes have joined and none is large enough;
 * with no nodes anything passes.
 */
bool loop_check(struct loop *loop, const struct db_need *needs, int needs_count,
                struct error *err) CHECKED;

/* From now on nothing new is started on the node, or it is again.  NOT_FOUND. */
bool loop_drain(struct loop *loop, int64_t node, bool drain, struct error *err) CHECKED;

/* A node as the scheduler sees it now. */
struct loop_node {
    int64_t id;
    enum node_state state;
    bool session;  /* its agent has joined since the server started */
    bool cleaning; /* tasks of before are being killed there: nothing new until they are gone */
    bool draining;
    int64_t cpu_millis_free;
    int64_t memory_bytes_free;
    int gpus_free;
    int tasks_count;
    int64_t silent_us; /* since its agent was last heard of; -1: not yet */
};

/* All nodes, by id; `*nodes` lives in the arena. */
bool loop_nodes(struct loop *loop, struct arena *arena, struct loop_node **nodes,
                int *nodes_count, struct error *err) CHECKED;
