/*
 * explain.h - why a job waits, and what would start it.
 *
 * Codes are stable and have an order: of several that apply the first is given, so that the
 * answer does not flicker.
 */
#pragma once

#include "base/base.h"
#include "db/state.h"

struct scheduler;

/* code, in order of precedence */
#define EXPLAIN_CODES(X)                                                                       \
    X(NOT_WAITING) /* it has been placed, or has ended */                                      \
    X(TASK_AWAY)   /* it runs; a task that was lost waits for a node, the others go on */      \
    X(PAUSED)      /* a person holds it */                                                     \
    X(DEPENDENCY)  /* it comes after jobs that have not succeeded yet */                       \
    X(BACKOFF)     /* the last attempt failed; waits before the next */                        \
    X(ENGINE)      /* an engine (Slurm, Kubernetes) was asked for a node */                    \
    X(NO_NODES)    /* no node has joined */                                                    \
    X(TOO_LARGE)   /* no node is large enough, even when empty */                              \
    X(NODES_AWAY)  /* nodes that could hold it are silent, lost, or being cleaned */           \
    X(DRAINING)    /* nodes that could hold it take nothing new */                             \
    X(EXCLUDED)    /* nodes that could hold it have failed it too often */                     \
    X(QUOTA)       /* its project holds as much as it may */                                   \
    X(PREEMPTING)  /* jobs of lower priority are making room for it */                         \
    X(PRIORITY)    /* it would fit, but a job ahead of it keeps the room */                    \
    X(RESOURCES)   /* what it needs is in use */                                               \
    X(PENDING)     /* the next pass will start it */

enum explain_code {
#define EXPLAIN_CODE_ENUM(name) EXPLAIN_##name,
    EXPLAIN_CODES(EXPLAIN_CODE_ENUM)
#undef EXPLAIN_CODE_ENUM
};

enum explain_resource { EXPLAIN_CPU, EXPLAIN_MEMORY, EXPLAIN_GPU, EXPLAIN_NONE };

/* A job that holds what this one needs, or is ahead of it. */
struct explain_holder {
    int64_t job;
    enum job_state state;
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;
    int64_t ends_us; /* until it must have stopped (stop.max_seconds), from now; -1: no bound */
};

#define EXPLAIN_HOLDERS_MAX 8

/* A change that would start the job; advise.h finds them. */
struct explain_change {
    char field[160]; /* pointer into the spec, or "node NAME", "project NAME", "job NUMBER" */
    char from[120];
    char to[120];
    bool is_text;     /* from and to are texts; else numbers */
    int64_t start_us; /* from now: 0, or until jobs of lower rank have made room */
    char text[400];
};

#define EXPLAIN_CHANGES_MAX 8

struct explain {
    enum explain_code code;
    char text[400]; /* a sentence or two, with numbers */
    char next[300]; /* what would start it: the next step of a person, "" when none */

    enum explain_resource resource; /* the scarcest thing, for TOO_LARGE and RESOURCES */
    char role[32];                  /* of the task that does not fit */
    int64_t needed;                 /* of that resource, by one task */
    int64_t best_free;              /* the most that one node has free of it */
    int64_t largest;                /* the most that one node has at all */
    int64_t best_node;              /* id of the node with best_free, 0 */
    int nodes_count;                /* joined nodes */
    int ahead_count;                /* waiting jobs that come before it */
    int64_t start_us;               /* at the latest, from now; -1: nobody knows */
    char start_node[132];           /* where its first task starts then; "" */
    int64_t ahead_job;              /* the first of those that come before it; 0 */
    int64_t retry_us;               /* BACKOFF: until the next attempt, from now */
    struct explain_holder holders[EXPLAIN_HOLDERS_MAX];
    int holders_count;
    struct explain_change changes[EXPLAIN_CHANGES_MAX]; /* the smallest first */
    int changes_count;
};

/* "RESOURCES" and so on. */
const char *explain_code_name(enum explain_code code);

/* "cpus", "memory", "gpus", "". */
const char *explain_resource_name(enum explain_resource resource);

/* Explains a job by its number.  Pure; false when the scheduler does not know it (any more). */
bool explain_job(const struct scheduler *scheduler, int64_t job, uint64_t now_us,
                 struct explain *out);
