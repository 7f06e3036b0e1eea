/*
 * whatif.h - what would happen if a job were submitted, or nodes came or went: the scheduler
 * itself, on a copy of its state, played on with the change and without (forecast.h).
 */
#pragma once

#include "scheduler/explain.h"
#include "scheduler/scheduler.h"

struct arena;
struct error;

enum whatif_kind {
    WHATIF_ADD,     /* `count` nodes like this join */
    WHATIF_REMOVE,  /* it is lost, with its tasks */
    WHATIF_DRAIN,   /* nothing new is started there */
    WHATIF_UNDRAIN, /* or it is again */
};

struct whatif_node {
    enum whatif_kind kind;
    const char *name;
    int count;                       /* of WHATIF_ADD, as all below */
    struct scheduler_node_info like; /* id, name, state are not looked at */
};

struct whatif_place {
    const char *role;
    int index;
    const char *node;
    uint64_t gpu_mask;
};

/* A job that is another one's, and starts at another time. */
struct whatif_move {
    int64_t job;
    uint64_t before_us; /* from now; FORECAST_NEVER: not that one could see */
    uint64_t after_us;
};

struct whatif {
    bool has_job;                /* one was asked about */
    bool starts;                 /* within what was looked at */
    uint64_t start_us;           /* from now; 0: at once */
    struct whatif_place *places; /* when it starts */
    int places_count;
    struct explain why; /* when it does not start at once */

    /* All by number. */
    struct whatif_move *delayed;
    int delayed_count;
    struct whatif_move *sooner;
    int sooner_count;
    struct whatif_move *stopped; /* run now, and would be stopped: preempted, or lost with a
                                    node; after_us: when they start again */
    int stopped_count;
    bool complete;     /* looked at until nothing changes any more; else only ... */
    uint64_t until_us; /* ... so far, from now */
};

/*
 * Answers for a job (NULL: none; its number and state are not looked at) and nodes, from the
 * state of `s`, which stays as it is.  Lists and texts live in the arena.
 *
 * Fails with INVALID at the field's pointer: /nodes/I/name is not there, or is there already;
 * more than LIMIT_NODES; and where no node, after the change, could ever hold a task
 * (refuse.h).
 */
bool whatif_ask(const struct scheduler *s, const struct scheduler_job_info *job,
                const struct whatif_node *nodes, int nodes_count, uint64_t now_us,
                struct arena *arena, struct whatif *out, struct error *err) CHECKED;
