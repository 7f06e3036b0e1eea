/*
 * loop_state.h - what the files of the loop share.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "db/nodes.h"
#include "db/queues.h"
#include "db/ship.h"
#include "scheduler/loop.h"
#include "scheduler/passes.h"

/* A node as the database knows it. */
struct loop_known {
    int64_t id;
    char *name;
    char *identity;
};

struct loop_known_list {
    struct loop_known *list;
    int count;
    int capacity;
};

#define LOOP_BATCH 256   /* messages stored in one transaction */
#define LOOP_CHECKED 256 /* answers that are remembered */

/* What callers ask; lives on their stack until `done`. */
enum loop_request_kind {
    LOOP_CANCEL,
    LOOP_CANCEL_MANY,
    LOOP_PAUSE,
    LOOP_PAUSE_MANY,
    LOOP_EDIT,
    LOOP_COPY,
    LOOP_CHECK,
    LOOP_DRAIN,
    LOOP_GONE,
    LOOP_NODES,
    LOOP_PRIORITY,
    LOOP_SHARES,
};

struct loop_request {
    enum loop_request_kind kind;
    int64_t number; /* job or node */
    const int64_t *numbers;
    int numbers_count;
    int *told;
    int attempt;
    int64_t seq;  /* of the job's last change that the caller knows; 0: any */
    bool changed; /* it was not the last */
    const struct db_job_new *edited;
    bool flag; /* kill, drain */
    const char *text;
    int priority;
    bool found; /* the number was one of the scheduler's */
    enum job_state *state;
    struct scheduler **copy;
    uint64_t *now_us;
    const struct db_need *needs;
    int needs_count;
    struct arena *arena;
    struct loop_node **nodes;
    int *nodes_count;

    struct error *err;
    bool ok;
    bool done;
    pthread_cond_t answered; /* the caller waits for `done` */
};

enum loop_message_kind { LOOP_WAKE, LOOP_JOIN, LOOP_HEARD, LOOP_REQUEST };

struct loop_message {
    enum loop_message_kind kind;
    struct loop_join *join;
    struct loop_heard heard;
    struct loop_request *request;
};

struct loop {
    struct db *db;
    struct scheduler_options options;
    struct loop_agents agents;
    struct loop_engine engine;
    struct mailbox *mailbox;
    pthread_t thread;
    bool started;
    atomic_bool woken;

    /* of the thread alone */
    struct scheduler *scheduler; /* NULL: to be built anew */
    struct loop_known_list known;
    int64_t last_job;
    uint64_t flush_us;  /* when the agents' side wants to be called */
    uint64_t rested_us; /* before this wake-ups are gathered */
    struct scheduler_actions actions;
    struct loop_message *batch[LOOP_BATCH];
    int batch_count;
    struct loop_join *joins[LOOP_BATCH]; /* of the batch, as far as they went well */
    int joins_count;
    struct pass pass; /* the one that is under way */

    pthread_mutex_t lock;        /* guards: `done` of requests and what follows */
    char *checked[LOOP_CHECKED]; /* needs that the nodes as they are could meet */
    int checked_next;
    struct passes passes;
};

/* --- loop.c --- */

/* Feeds one event to the scheduler. */
void loop_step(struct loop *loop, const struct scheduler_event *event);

/* Gives a message away; false when the loop is busy or has ended: then it is freed. */
bool loop_post(struct loop *loop, const struct loop_message *message) CHECKED;

/* --- loop_request.c --- */

/* Does what is asked for, as far as it changes something. */
void loop_request_step(struct loop *loop, struct loop_request *request);

/* After the commit: looks up what was asked for, and answers. */
void loop_request_finish(struct loop *loop, struct loop_request *request);

/* Answers with a failure. */
void loop_request_refuse(struct loop *loop, struct loop_request *request,
                         const struct error *err);

/* In a caller's thread: gives it to the loop's, and waits for the answer. */
bool loop_request_run(struct loop *loop, struct loop_request *request) CHECKED;

/* --- loop_check.c --- */

bool loop_check_finish(struct loop *loop, const struct loop_request *request) CHECKED;

/* Nodes are others than they were, or may be: in the loop's thread, or before it runs. */
void loop_check_forget(struct loop *loop);

/* Whether an engine could bring the nodes for it. */
bool loop_check_engine(struct loop *loop, const char *queue, const struct db_need *needs,
                       int needs_count, struct arena *arena);

/* --- loop_load.c --- */

/* Builds a scheduler from the database.  NULL on failure. */
struct scheduler *loop_load(struct db *db, const struct scheduler_options *options,
                            struct loop_known_list *known, int64_t *last_job,
                            struct error *err) CHECKED;

/* Tells the scheduler of jobs above `*last_job`, and raises that. */
bool loop_load_jobs(struct db *db, struct scheduler *scheduler, int64_t *last_job,
                    struct error *err) CHECKED;

/* Labels from a JSON object of texts, into the arena; how many. */
int loop_load_labels(const char *json, struct arena *arena,
                     const struct scheduler_label **labels);

/* Queues and projects as they are stored; they live in the arena. */
struct loop_shares {
    struct scheduler_queue_info *queues;
    int queues_count;
    struct scheduler_project_info *projects;
    int projects_count;
};
bool loop_load_shares(struct db_conn *conn, struct arena *arena, struct loop_shares *shares,
                      struct error *err) CHECKED;

/* A need as the scheduler knows it; its texts are borrowed from `from`. */
void loop_load_need(const struct db_need *from, struct arena *arena,
                    struct scheduler_need *need);
struct scheduler_need *loop_load_needs(const struct db_need *from, int count,
                                       struct arena *arena);

struct loop_known *loop_load_known(struct loop_known_list *known, const char *name);
struct loop_known *loop_load_known_add(struct loop_known_list *known, int64_t id,
                                       const char *name, const char *identity);
void loop_load_known_clear(struct loop_known_list *known);

/* --- loop_commit.c --- */

/* Stores a batch of actions in one transaction, with the epoch when it rose above
 * `epoch_before`. */
bool loop_commit(struct db *db, const struct scheduler_actions *actions, int64_t epoch_before,
                 int64_t epoch, struct loop_join *const *joins, int joins_count,
                 struct error *err) CHECKED;
