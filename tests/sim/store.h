/*
 * store.h - what a server would have on disk: the fold of everything that the scheduler had
 * stored.
 *
 * It is the oracle, too: an action that breaks a promise ends the run with a text that says
 * which.
 */
#pragma once

#include "db/ship.h"
#include "scheduler/scheduler.h"

#define STORE_JOBS_MAX 128
#define STORE_NODES_MAX 16
#define STORE_TASKS_MAX 8
#define STORE_ATTEMPTS_MAX 1024
#define STORE_AFTER_MAX 3
#define STORE_FILES_MAX 4096
#define STORE_RECORD_BYTES 8 /* of a file: which one, and the how manieth, 0, 1, ... */

struct store_task {
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    int64_t node;
    int64_t epoch; /* as the node knows it */
    bool away;
    enum task_state state;
    enum exit_reason reason;
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask;
};

struct store_job {
    int64_t number;
    uint64_t key; /* of the client */
    int queue;    /* index */
    int project;  /* index */
    int priority;
    enum job_state state;
    char reason[16];
    struct scheduler_need needs[2];
    int needs_count;
    bool spread;
    bool paused;
    int restart_max;
    struct scheduler_after after[STORE_AFTER_MAX]; /* as drawn, any number; then the jobs' */
    int after_count;
    uint32_t retry_on;
    int exclude_bad;
    struct scheduler_failure failures[STORE_NODES_MAX];
    int failures_count;
    int restarts;
    int preemptions;
    uint64_t held_us; /* since when the living attempt holds its nodes */
    int attempt;
    int64_t epoch;
    bool attempt_alive;
    enum exit_reason ended; /* of the attempt before */
    bool cancelled;         /* a user was told so */
    uint64_t stop_us;
    uint64_t ran_us;
    uint64_t started_us; /* of the attempt that runs; 0 */
    uint64_t queued_us;
    uint64_t retry_us;
    struct store_task tasks[STORE_TASKS_MAX];
    int tasks_count;
};

struct store_node {
    int64_t id;
    char name[16];
    enum node_state state;
    bool draining;
    struct scheduler_resources capacity;
    const char *gpu_type; /* a literal */
    int64_t gpu_memory_bytes;
    const struct scheduler_label *labels; /* constants */
    int labels_count;
    char boot_id[16];
    uint64_t asked_us;
};

#define STORE_QUEUES 3
#define STORE_PROJECTS 3

struct store_project {
    const char *name; /* a literal */
    int weight;
    struct scheduler_amount quota;
    uint64_t usage;
    uint64_t usage_us;
    int64_t cpu_ms; /* as charged ... */
    int64_t gpu_ms;
    int64_t cpu_ms_due; /* ... and as its attempts lasted */
    int64_t gpu_ms_due;
};

struct store_file { /* that a task writes */
    int64_t cursor; /* everything before is stored */
    int64_t next_step;
};

#define STORE_STEPS_MAX 128

/* What is shown of a task: of each step the newest attempt's point, and nothing older from
 * where that went on. */
struct store_series {
    int64_t job;
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    int64_t epoch;                   /* of the newest attempt that has reported ... */
    int64_t since;                   /* ... from this step on */
    int64_t points[STORE_STEPS_MAX]; /* epochs; 0: none */
};

struct store {
    struct store_file files[STORE_FILES_MAX];
    struct store_series *series;
    int series_count;
    int series_capacity;
    struct scheduler_queue_info queues[STORE_QUEUES];
    struct store_project projects[STORE_PROJECTS];
    int64_t epoch;
    struct store_job jobs[STORE_JOBS_MAX];
    int jobs_count;
    struct store_node nodes[STORE_NODES_MAX];
    int nodes_count;
    uint64_t hash;                                      /* of everything stored, in order */
    uint32_t edges[JOB_STATES_COUNT][JOB_STATES_COUNT]; /* taken */
};

/* Ends the program with the seed and the text; given by sim.c. */
_Noreturn void sim_broken(const char *format, ...) PRINTF_LIKE(1, 2);

/* Mixes a number into the hash. */
void store_mix(struct store *store, uint64_t value);

/* A job as a client submits it; the same key again gives the same job. */
int64_t store_submit(struct store *store, const struct store_job *job, uint64_t now_us);

/* Stores a batch of actions. */
void store_commit(struct store *store, const struct scheduler_actions *actions, int64_t epoch,
                  uint64_t now_us);

/* What is stored with the DO_JOINED of this join, just before its commit. */
void store_node_joins(struct store *store, const struct scheduler_node_info *node);

/* Stores a piece of a file with its cursor, if it is the next; returns the cursor. */
int64_t store_ship(struct store *store, int file, const struct db_ship *ship);
struct store_series *store_series(struct store *store, int64_t job, const char *role,
                                  int index);

/* A project as its settings are stored. */
struct scheduler_project_info store_project_info(const struct store *store, int index,
                                                 uint64_t now_us);

/* A scheduler built from what is stored. */
struct scheduler *store_load(const struct store *store, const struct scheduler_options *options,
                             uint64_t now_us);

/* The event that tells a scheduler of a job. */
void store_tell(const struct store *store, const struct store_job *job, uint64_t now_us,
                struct scheduler_job_info *info,
                struct scheduler_task_info tasks[STORE_TASKS_MAX]);

/* The scheduler's state must be what is stored. */
void store_compare(const struct store *store, const struct scheduler *scheduler);

/* After a batch: no job that the scheduler knows waits for one that has failed. */
void store_check_after(const struct store *store, const struct scheduler *scheduler);

struct store_job *store_find(struct store *store, int64_t number);
bool store_all_ended(const struct store *store);
