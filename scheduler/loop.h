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
#include "scheduler/scheduler.h"
#include "scheduler/whatif.h"

struct passes;
struct arena;
struct loop;

struct loop_options {
    struct db *db;
    /* In milliseconds; 0 takes the default. */
    int64_t suspect_ms;    /* 6000: a node silent for so long gets nothing new */
    int64_t lost_ms;       /* 300000: ... and its tasks are given up */
    int64_t grace_ms;      /* 30000: from TERM to KILL */
    int64_t unkillable_ms; /* 60000: after KILL, until the node is drained */
    int64_t backoff_ms;    /* 10000: before the second attempt; doubles, to 36 times this */
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

/*
 * Makes another job of one that is queued and has made `attempt` attempts: all that `edited`
 * says but dependencies, array and key.  Returns when that is on disk.  NOT_FOUND; PRECONDITION
 * when it is not queued, has tried again meanwhile, or its last change was not `seq` (0: any).
 */
bool loop_edit(struct loop *loop, int64_t job, int attempt, int64_t seq,
               const struct db_job_new *edited, struct error *err) CHECKED;

/*
 * Pauses a job: what runs of it writes a checkpoint and leaves its nodes, and it waits, queued,
 * until it is resumed.  Returns when that is on disk; twice is as good as once.  NOT_FOUND;
 * PRECONDITION when it has ended or is ending.
 */
bool loop_pause(struct loop *loop, int64_t job, bool pause, enum job_state *state,
                struct error *err) CHECKED;

/*
 * The scheduler's state as it is now, owned, and its clock: to try things on (whatif.h).  The
 * caller does the work in his own thread; the loop's only copies.
 */
bool loop_copy(struct loop *loop, struct scheduler **copy, uint64_t *now_us,
               struct error *err) CHECKED;

/* Cancels or kills many, stored together: `*told` is how many of them had not ended yet. */
bool loop_cancel_many(struct loop *loop, const int64_t *jobs, int jobs_count, bool kill,
                      int *told, struct error *err) CHECKED;

/* Pauses or resumes many, stored together: `*told` is how many of them are so now. */
bool loop_pause_many(struct loop *loop, const int64_t *jobs, int jobs_count, bool pause,
                     int *told, struct error *err) CHECKED;

/* Why the job waits.  For one it will start, what would start it now.  For one that does not
 * wait, code NOT_WAITING.  NOT_FOUND when there is none. */
bool loop_explain(struct loop *loop, int64_t job, struct explain *out,
                  struct error *err) CHECKED;

/*
 * What would happen if the job (NULL: none) were added now, and nodes came or went: whatif.h.
 * Lists live in the arena.  Fails with INVALID at the field at fault, and UNAVAILABLE.
 */
bool loop_whatif(struct loop *loop, const struct db_job_new *job,
                 const struct whatif_node *nodes, int nodes_count, struct arena *arena,
                 struct whatif *out, struct error *err) CHECKED;

/*
 * Asks, before a job is added, whether it could ever run.  Fails with INVALID, the pointer of
 * the field and the largest value possible, when nodes have joined and none is large enough;
 * with no nodes anything passes, and so does what an engine could bring nodes for.
 */
bool loop_check(struct loop *loop, const char *queue, const struct db_need *needs,
                int needs_count, struct error *err) CHECKED;

/* From now on nothing new is started on the node, or it is again.  NOT_FOUND. */
bool loop_drain(struct loop *loop, int64_t node, bool drain, struct error *err) CHECKED;

/* The node's machine is known to be gone, and `why`: its tasks are given up at once.  What is
 * lost already stays so.  NOT_FOUND. */
bool loop_gone(struct loop *loop, int64_t node, const char *why, struct error *err) CHECKED;

/*
 * Gives a job that is queued another priority, 0 to 100.  NOT_FOUND; PRECONDITION when it is
 * not queued, or its last change was not `seq` (0: any).
 */
bool loop_priority(struct loop *loop, int64_t job, int priority, int64_t seq,
                   struct error *err) CHECKED;

/* Queues or projects were changed in the database: the loop reads them again. */
bool loop_shares(struct loop *loop, struct error *err) CHECKED;

/* How long its passes took since the loop was made. */
void loop_passes(struct loop *loop, struct passes *out);

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

/* --- for server/nodes.c, which speaks with the agents --- */

/* One agent wants to join.  Owned by whom it is given to; loop_join_free() frees it whole. */
struct loop_join {
    struct arena *arena; /* the join itself and all below live in it */
    void *call;          /* nodes.c's own */
    const char *name;
    const char *identity;
    const char *boot_id;
    const char *version;
    const char *labels; /* JSON object */
    struct scheduler_resources capacity;
    const char *gpu_type;
    int64_t gpu_memory_bytes;
    uint64_t gpus_away; /* bit i: nothing is started on GPU i */
    int64_t asked_us;   /* the node's clock since its boot */
    const struct scheduler_report *tasks;
    int tasks_count;

    int64_t node_id;    /* filled by the loop */
    int64_t node_epoch; /* filled by the loop */
};
void loop_join_free(struct loop_join *join);

/* A task, as commands name it. */
struct loop_task {
    int64_t job;
    int attempt;
    int64_t epoch;         /* as its node knows it */
    int64_t attempt_epoch; /* of a start: the attempt's */
    const char *role;
    int index;
    struct scheduler_resources resources;
    int gpu_share;     /* thousandths of its one GPU; 0: its GPUs are its alone */
    uint64_t gpu_mask; /* bit i: it holds the node's GPU i */
};

/*
 * How the loop reaches the agents.  Called by the loop's thread, after the commit of what the
 * calls say; they must not block.
 */
struct loop_agents {
    void *self;

    /* Takes the join: the node is in, and is to kill and forget `discard` - or `err` says why
     * not. */
    void (*joined)(void *self, struct loop_join *join, const struct loop_task *discard,
                   int discard_count, const struct error *err);
    void (*start)(void *self, int64_t node, const struct loop_task *task);
    void (*stop)(void *self, int64_t node, const struct loop_task *task, bool kill,
                 int64_t grace_ms);
    void (*acknowledge)(void *self, int64_t node, const struct loop_task *task);

    /* The reports that came with `call` are stored - or `err` says why not. */
    void (*heard)(void *self, void *call, int64_t node, int64_t node_epoch,
                  const struct error *err);

    /* The node's session is over (0: of all nodes): its agent must join again. */
    void (*forget)(void *self, int64_t node);

    /* After each batch.  Returns when it wants to be called again (clock_monotonic_us). */
    uint64_t (*flush)(void *self);
};

/* Who brings nodes when jobs wait for them; engines/engine.h. */
struct loop_engine {
    void *self;

    /* Whether a job of this queue could run, were all nodes here that may be brought.  From any
     * thread; `copy` is the caller's. */
    bool (*possible)(void *self, struct scheduler *copy, const char *queue,
                     const struct scheduler_need *needs, int needs_count);

    /* Says more of a job that waits for nodes.  From any thread. */
    void (*explain)(void *self, const char *queue, struct explain *out);
};

/* Before loop_start(); copies.  It must live as long as the loop. */
void loop_set_engine(struct loop *loop, const struct loop_engine *engine);

/* Before loop_start(); copies. */
void loop_set_agents(struct loop *loop, const struct loop_agents *agents);

/* Takes `join` and answers by joined(); false when the loop is busy or has ended: keep it. */
bool loop_join(struct loop *loop, struct loop_join *join) CHECKED;

/* What an agent says. */
struct loop_heard {
    int64_t node;
    int64_t node_epoch;
    int64_t asked_us;    /* the node's clock since its boot */
    struct arena *arena; /* the reports live in it; NULL with none */
    const struct scheduler_report *reports;
    int reports_count;
    void *call; /* nodes.c's own, given back by heard(); NULL: no answer is wanted */
};

/* Takes arena and call.  False when the loop is busy or has ended: the caller keeps both. */
bool loop_hear(struct loop *loop, const struct loop_heard *heard) CHECKED;
