/*
 * jobs.h - jobs, their attempts, and the tasks of those.
 *
 * A job is named by its number (1, 2, 3, for people and for the agents) and by its id
 * ("job_01JD...", sorted by time, for programs).  The state of a job is changed by the
 * scheduler's loop alone, and each change appends to the event log in the same transaction.
 */
#pragma once

#include "db/db.h"
#include "db/members.h"
#include "db/state.h"

#define DB_JOB_ID_BYTES 32 /* "job_" and 26 characters, with the NUL */
#define DB_HASH_BYTES 32

/* Tasks of one role, and what each of them is to get. */
struct db_need {
    const char *role; /* "worker", "ps", "chief", "evaluator" */
    int replicas;
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;             /* whole ones */
    int gpu_share;        /* thousandths of one GPU that is shared; 0 with whole ones */
    const char *gpu_type; /* NULL, "": any */
    int64_t gpu_memory_bytes;
    const char *node_labels; /* JSON object; NULL: none */
    bool alone;              /* as scheduler_need has it */
};

/* A job as it is submitted.  All pointers are borrowed for the call. */
struct db_job_new {
    int64_t user_id;
    const char *name;
    const char *project;
    const char *queue;
    int priority;        /* 0 to 100, higher first */
    const char *spec;    /* JSON, defaults filled in */
    const char *dataset; /* its name in DIR/datasets, "" when there is none */
    const char *program; /* command line of one that trains no model, else "" */
    const struct db_need *needs;
    int needs_count;
    bool spread; /* tasks on as many nodes as possible */
    int restart_max;
    uint32_t
        retry_on;    /* bit i: tried again after enum exit_reason i; 0: EXIT_REASONS_RETRIED */
    int exclude_bad; /* not again on a node that failed it so often; 0: nodes are not asked */
    int64_t stop_us; /* stop.max_seconds; 0: no bound */
    const char *parameters; /* of one of an array: JSON of what it has of the grid; else NULL */
    const int64_t *after;   /* numbers of jobs that must have succeeded, each once */
    int after_count;
    const char *idempotency_key; /* NULL: none */
    const uint8_t *body_hash;    /* DB_HASH_BYTES of the request's body, with a key only */
};

struct db_job {
    int64_t number;
    const char *id;
    int64_t user_id;
    const char *user; /* name */
    const char *name;
    const char *project;
    const char *queue;
    int priority;
    enum job_state state;
    const char
        *reason;      /* stable code of the last change: "", "USER", "CANCELLED", "RETRY" ... */
    const char *text; /* the same for people; "" */
    const char *spec; /* NULL in lists */
    const char *dataset;
    bool spread;
    bool paused;   /* by a person: queued, it does not start */
    bool archived; /* ended, and left out of lists */
    const char *program;
    int64_t array; /* number of the first job of the array it is of; 0: of none */
    int array_index;
    const char *parameters; /* JSON object {pointer: value}; "" */
    int restart_max;
    uint32_t retry_on; /* bit i: tried again after enum exit_reason i */
    int exclude_bad;   /* not again on a node that failed it so often; 0 */
    int restarts;      /* used up */
    int preemptions;   /* attempts that made room for a job of higher priority */
    int attempt;       /* number of the newest attempt, 0 before the first */
    int64_t epoch;     /* of it, 0 before the first */
    int64_t stop_us;
    int64_t retry_us; /* wall clock before which it is not tried again; 0 */
    int64_t created_us;
    int64_t started_us; /* when it ran first; 0 */
    int64_t ended_us;   /* 0 */
    int tasks_count;    /* over all needs */
    int64_t seq;        /* of the event of its last change */
};

struct db_attempt {
    int64_t epoch;
    int64_t job;
    int attempt; /* 1, 2, 3 */
    int64_t created_us;
    int64_t started_us; /* all tasks ran; 0 */
    int64_t ended_us;   /* 0 while it lives */
    enum exit_reason reason;
    const char *text; /* why it ended, for people */
};

struct db_task {
    int64_t epoch;
    int64_t job;
    const char *role;
    int index;
    int64_t node_id;
    const char *node; /* name */
    enum task_state state;
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;
    int gpu_share;
    uint64_t gpu_mask; /* bit i: it holds GPU i of the node, or its part of it */
    int64_t pid;
    int64_t started_us;
    int64_t ended_us;
    enum exit_reason reason;
    int exit_code;
    int signal;
    const char *error;   /* what the task said of itself */
    int64_t step;        /* last known to the agent, -1 */
    const char *address; /* where others reach it, "host:port"; "": nowhere, or not yet */
    int64_t placed;      /* the epoch that its node knows; later than `epoch`: placed anew */
    bool away;           /* lost, and the others go on without it */
};

struct db_job_added {
    int64_t number;
    char id[DB_JOB_ID_BYTES];
    bool existed; /* the key was known with this very body: this is the job of then */
};

/*
 * Adds a job in state queued, with its event "job.submitted".  Returns after the commit.
 * Fails with PRECONDITION when the key was used with another body, EXHAUSTED when
 * LIMIT_JOBS_QUEUED jobs wait or the disk is full.
 */
bool db_jobs_add(struct db *db, const struct db_job_new *job, struct db_job_added *added,
                 struct error *err) CHECKED;

/* Adds the jobs of an array, all or none, with numbers in a row; `added` is the first, whose
 * key speaks for all. */
bool db_jobs_add_array(struct db *db, const struct db_job_new *jobs, int jobs_count,
                       struct db_job_added *added, struct error *err) CHECKED;

/* Jobs of the array whose first job has this number, and their numbers, in their order. */
bool db_jobs_of_array(struct db_conn *conn, int64_t array, struct arena *arena,
                      struct db_job **jobs, int *jobs_count, struct error *err) CHECKED;

/* Fills `added` when the user has sent this key before; else `existed` is false.  PRECONDITION
 * when that was with another body. */
bool db_jobs_find_key(struct db_conn *conn, int64_t user_id, const char *key,
                      const uint8_t *body_hash, struct db_job_added *added,
                      struct error *err) CHECKED;

/* The job with this number, or this text: "7", "job_01JD...", else the newest so named. */
bool db_jobs_find(struct db_conn *conn, int64_t number, struct arena *arena, struct db_job *job,
                  struct error *err) CHECKED;
bool db_jobs_find_text(struct db_conn *conn, const char *text, const struct db_viewer *viewer,
                       struct arena *arena, struct db_job *job, struct error *err) CHECKED;

#define DB_JOBS_PAUSED 30 /* BIT() of it: those that are paused and wait, beside the states */

struct db_jobs_filter {
    uint32_t states;                /* BIT(JOB_QUEUED) | BIT(DB_JOBS_PAUSED) | ...; 0: all */
    const char *name;               /* exact; NULL: any */
    const char *project;            /* exact; NULL: any */
    const char *text;               /* found within the name; NULL: any */
    int64_t array;                  /* jobs of this array only; 0: all */
    const struct db_viewer *viewer; /* borrowed; NULL: sees all */
    bool archived;  /* those that are archived, in place of those that are not */
    int64_t before; /* numbers below this only (the cursor); 0: from the newest */
    int limit;      /* at most LIMIT_PAGE_ITEMS */
};

/* Newest first.  `*next` is the `before` of the next page, 0 when this was the last. */
bool db_jobs_list(struct db_conn *conn, const struct db_jobs_filter *filter,
                  struct arena *arena, struct db_job **jobs, int *jobs_count, int64_t *next,
                  struct error *err) CHECKED;

/* The job of this number, if the filter lets it through; `before` and `limit` do not count. */
bool db_jobs_pick(struct db_conn *conn, const struct db_jobs_filter *filter, int64_t number,
                  struct arena *arena, struct db_job *job, bool *found,
                  struct error *err) CHECKED;

/* How many jobs the filter lets through; `before` and `limit` do not count. */
bool db_jobs_total(struct db_conn *conn, const struct db_jobs_filter *filter, int64_t *total,
                   struct error *err) CHECKED;

/* How many jobs are in each state. */
bool db_jobs_count(struct db_conn *conn, int64_t counts[JOB_STATES_COUNT],
                   struct error *err) CHECKED;

/* How many jobs that have not ended are in each state of each queue and project. */
struct db_job_group {
    const char *project;
    const char *queue;
    enum job_state state;
    int64_t count;
};
bool db_jobs_groups(struct db_conn *conn, struct arena *arena, struct db_job_group **groups,
                    int *groups_count, struct error *err) CHECKED;

/* Jobs that have not ended, of a number above `after`, by number; specs are left out. */
bool db_jobs_alive(struct db_conn *conn, int64_t after, struct arena *arena,
                   struct db_job **jobs, int *jobs_count, struct error *err) CHECKED;

/* How many jobs that have not ended name the dataset. */
bool db_jobs_using(struct db_conn *conn, const char *dataset, int64_t *count,
                   struct error *err) CHECKED;

/* What the tasks of a job ask for, in the order of the spec. */
bool db_jobs_needs(struct db_conn *conn, int64_t number, struct arena *arena,
                   struct db_need **needs, int *needs_count, struct error *err) CHECKED;

/* Oldest first. */
bool db_attempts_list(struct db_conn *conn, int64_t job, struct arena *arena,
                      struct db_attempt **attempts, int *attempts_count,
                      struct error *err) CHECKED;

/* Tasks of one attempt, by role and index. */
bool db_tasks_list(struct db_conn *conn, int64_t epoch, struct arena *arena,
                   struct db_task **tasks, int *tasks_count, struct error *err) CHECKED;

/* NOT_FOUND when there is no such task. */
bool db_tasks_find(struct db_conn *conn, int64_t epoch, const char *role, int index,
                   struct arena *arena, struct db_task *task, struct error *err) CHECKED;

/* --- changes: for the scheduler's loop, inside its transaction --- */

struct db_job_change {
    int64_t job;
    enum job_state from; /* what the row must say now: else INTERNAL */
    enum job_state to;
    const char *reason;
    const char *text;
    int attempt;
    int64_t epoch;
    int restarts;
    int preemptions;
    int64_t retry_us;
    int64_t now_us; /* wall */
};

/* Changes a job's state and appends the event "job.state". */
bool db_jobs_change(struct db_conn *conn, const struct db_job_change *change,
                    struct error *err) CHECKED;

/* Gives a job another priority, and appends the event "job.priority". */
bool db_jobs_priority(struct db_conn *conn, int64_t job, int attempt, int priority,
                      int64_t now_us, struct error *err) CHECKED;

/* Makes a job that is queued what `edited` says, but for dependencies, array and key, and
 * appends the event "job.edited". */
bool db_jobs_edit(struct db_conn *conn, int64_t job, int attempt,
                  const struct db_job_new *edited, int64_t now_us, struct error *err) CHECKED;

/* Pauses a job, or resumes it, and appends the event "job.paused" or "job.resumed".  One that
 * is queued says so by reason and text. */
bool db_jobs_pause(struct db_conn *conn, int64_t job, int attempt, bool paused,
                   const char *reason, const char *text, int64_t now_us,
                   struct error *err) CHECKED;

/* A job that another one comes after. */
struct db_after {
    int64_t job;
    enum job_state state;
};
bool db_jobs_after(struct db_conn *conn, int64_t number, struct arena *arena,
                   struct db_after **after, int *after_count, struct error *err) CHECKED;

/* How often a job has failed on a node. */
struct db_failure {
    int64_t node_id;
    int count;
};
bool db_failures_list(struct db_conn *conn, int64_t job, struct arena *arena,
                      struct db_failure **failures, int *failures_count,
                      struct error *err) CHECKED;
bool db_failures_set(struct db_conn *conn, int64_t job, const struct db_failure *failure,
                     struct error *err) CHECKED;

bool db_attempts_add(struct db_conn *conn, const struct db_attempt *attempt,
                     struct error *err) CHECKED;
bool db_attempts_start(struct db_conn *conn, int64_t epoch, int64_t now_us,
                       struct error *err) CHECKED;
bool db_attempts_end(struct db_conn *conn, int64_t epoch, enum exit_reason reason,
                     const char *text, int64_t now_us, struct error *err) CHECKED;

/* Keeps the addresses of these tasks of one attempt. */
bool db_tasks_meet(struct db *, const struct db_task *, int count, struct error *) CHECKED;

/* Adds or replaces the row of a task, and appends "task.state" when its state changed. */
bool db_tasks_set(struct db_conn *conn, const struct db_task *task, int64_t now_us,
                  struct error *err) CHECKED;
