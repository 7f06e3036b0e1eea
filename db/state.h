/*
 * state.h - the words in which jobs, tasks and nodes are spoken of, and their numbers on disk.
 *
 * Numbers are stored in the database: they are never changed, only added to.  Task states and
 * exit reasons have the numbers of proto/trainyard/task.proto.
 */
#pragma once

#include "base/base.h"

enum job_state {
    JOB_QUEUED = 0,    /* waits for room, or for the end of a pause before it is tried again */
    JOB_ALLOCATED = 1, /* has an attempt, an epoch and a node for every task */
    JOB_STARTING = 2,  /* an agent has taken it up */
    JOB_RUNNING = 3,   /* every task runs */
    JOB_STOPPING = 4,  /* the attempt is ending: some tasks still run */
    JOB_SUCCEEDED = 5,
    JOB_FAILED = 6,
    JOB_CANCELLED = 7,
};
#define JOB_STATES_COUNT 8

enum task_state {
    TASK_WAITING = 0,  /* placed; its agent has not spoken of it yet */
    TASK_STARTING = 1, /* the shim is being started */
    TASK_RUNNING = 2,
    TASK_EXITED = 3,
};

/* Why a task ended; decides whether another attempt is made. */
enum exit_reason {
    EXIT_NONE = 0,
    EXIT_OK = 1,
    EXIT_STOPPED = 2, /* asked to stop, and did */
    EXIT_USER = 3,    /* the job's own error: not tried again */
    EXIT_CRASH = 4,
    EXIT_MEMORY = 5,
    EXIT_LOST = 6,  /* the shim or the machine is gone */
    EXIT_START = 7, /* could not be started at all */
};
#define EXIT_REASONS_COUNT 8

/* Bit i: a job is tried again after reason i, when its spec does not say otherwise. */
#define EXIT_REASONS_RETRIED                                                                   \
    (uint32_t)(BIT(EXIT_STOPPED) | BIT(EXIT_CRASH) | BIT(EXIT_MEMORY) | BIT(EXIT_LOST) |       \
               BIT(EXIT_START))

enum node_state {
    NODE_JOINED = 0,
    NODE_SUSPECT = 1, /* silent for some seconds: nothing new is started there */
    NODE_LOST = 2,    /* silent for so long that its tasks are given up; it may join again */
};

/* ROLE_NONE is never stored: no role in every project, but perhaps in some. */
enum user_role { ROLE_NONE = -1, ROLE_VIEWER = 0, ROLE_MEMBER = 1, ROLE_ADMIN = 2 };

/* "queued", "allocated" and so on. */
const char *db_job_state_name(enum job_state state);
bool db_job_state_find(const char *name, enum job_state *state);

/* Succeeded, failed or cancelled: such a state never changes. */
bool db_job_state_final(enum job_state state);

/* "waiting", "starting", "running", "exited". */
const char *db_task_state_name(enum task_state state);

/* "", "ok", "stopped", "user", "crash", "memory", "lost", "start". */
const char *db_exit_reason_name(enum exit_reason reason);

/* "joined", "suspect", "lost". */
const char *db_node_state_name(enum node_state state);

/* "none", "viewer", "member", "admin". */
const char *db_role_name(enum user_role role);
bool db_role_find(const char *name, enum user_role *role);
