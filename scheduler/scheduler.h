/*
 * scheduler.h - which job gets which nodes, and what follows from all that happens to them.
 *
 * The pure core: events and the time go in, actions come out.  No clock, no thread, no system
 * call, no floating point, no order that depends on hashes or addresses: equal inputs give
 * equal outputs, so that a simulator can drive the very code that runs in production.
 *
 * Whoever drives it must store the actions of kind "stored" below, in order, before carrying
 * out those of kind "sent", and before telling anybody.  From what was stored, the loads below
 * build the same state again.  Sent actions may be lost: a node's next join repeats them.
 *
 * Time is monotonic, in microseconds, and never goes back.
 */
#pragma once

#include "base/base.h"
#include "db/state.h"
#include "scheduler/scheduler_need.h"

struct arena;
struct scheduler;
/* In microseconds. */
struct scheduler_options {
    uint64_t suspect_us;     /* a node silent for so long gets nothing new */
    uint64_t lost_us;        /* ... and its tasks are given up */
    uint64_t grace_us;       /* from TERM to KILL */
    uint64_t unkillable_us;  /* after KILL: the node of a task that still runs is drained */
    uint64_t backoff_us;     /* before the second attempt; doubles with each further one ... */
    uint64_t backoff_max_us; /* ... up to this */
    uint64_t overtake_us; /* a job that waited longer is not overtaken by later ones any more */
    uint64_t stall_us;    /* a gap between ticks that is blamed on us, not on the nodes */
    uint64_t half_us;     /* after it a project's usage counts half */
    uint64_t turn_us;     /* a waiting job is reckoned to hold so long what it asks for */
};

extern const struct scheduler_options scheduler_defaults;

/* A task of a job's newest attempt, as it was stored. */
struct scheduler_task_info {
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    int64_t node;
    int64_t epoch; /* the attempt's, or a later one: placed anew; 0: the attempt's */
    bool away;     /* lost, and the others go on without it */
    enum task_state state;
    enum exit_reason reason;
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask;
};

/* A job that another comes after, as it is stored. */
struct scheduler_after {
    int64_t job;
    enum job_state state;
};

/* A job as it was submitted, or stored. */
struct scheduler_job_info {
    int64_t number;
    const char *queue;   /* NULL: "default" */
    const char *project; /* NULL: "default" */
    int priority;
    enum job_state state; /* not a final one */
    const char *reason;   /* code stored with the state */
    const struct scheduler_need *needs;
    int needs_count;
    bool paused; /* by a person */
    bool spread; /* its tasks on as many nodes as possible; else as tightly as possible */
    const struct scheduler_after *after; /* starts when all of them have succeeded, and fails
                                            when one ends otherwise; of lower numbers */
    int after_count;
    int restart_max;
    uint32_t retry_on; /* bit i: after enum exit_reason i; 0: EXIT_REASONS_RETRIED */
    int exclude_bad; /* passes over nodes that failed it so often; 0: none, nor are they kept */
    const struct scheduler_failure *failures;
    int failures_count;
    int restarts;
    int preemptions;
    int attempt;
    int64_t epoch;
    uint64_t held_us;                        /* since the attempt that lives was placed */
    uint64_t stop_us;                        /* longest time to run, 0: no bound */
    uint64_t ran_us;                         /* how long it has run, over all attempts */
    uint64_t waited_us;                      /* of a queued one: since it was queued */
    uint64_t retry_in_us;                    /* of a queued one: until it may be tried again */
    const struct scheduler_task_info *tasks; /* of the attempt that lives; none when queued */
    int tasks_count;
};

struct scheduler_node_info {
    int64_t id;
    const char *name;
    enum node_state state;
    bool draining;
    struct scheduler_resources capacity;
    const char *gpu_type;     /* NULL, "": not known */
    int64_t gpu_memory_bytes; /* of each GPU */
    uint64_t gpus_away;       /* bit i: nothing is started on GPU i, until the next join */
    const struct scheduler_label *labels;
    int labels_count;
    const char *boot_id; /* of the newest session, or of the join; "" */
    uint64_t asked_us;   /* the node's own clock, since that boot, when it asked to join; 0 */
};

/* What an agent says of one of its tasks.  Texts are borrowed until the actions are done. */
struct scheduler_report {
    int64_t job;
    int64_t epoch;
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    enum task_state state;
    enum exit_reason reason;
    int64_t pid;
    int64_t started_us;
    int64_t ended_us;
    int exit_code;
    int signal;
    const char *error;
    int64_t step;
};

enum scheduler_event_kind {
    ON_SUBMIT, /* job */
    ON_CANCEL, /* number, kill */
    ON_JOIN,   /* node, reports: everything that lives there or was not acknowledged.  One that
                  was asked for before the newest session of the same boot changes nothing. */
    ON_SEEN,   /* id, epoch of the session */
    ON_REPORT, /* id, epoch of the session, reports; after newer ones they are old news */
    ON_DRAIN,  /* id, drain */
    ON_GONE,   /* id, text: its machine is known to be gone; nobody waits for its silence */
    ON_PAUSE,  /* number, pause: held, or not; an attempt that lives ends with a checkpoint */
    ON_EDIT, /* job, edit: a job that is queued, and has made as many attempts as it says, asks
                for something else now */
    ON_PRIORITY, /* number, priority: of a job that is queued */
    ON_QUEUE,    /* queue: made, or changed */
    ON_PROJECT,  /* project: weight and quota */
    ON_TICK,     /* after each batch of events, and when scheduler_next_us() has come */
};

struct scheduler_event {
    enum scheduler_event_kind kind;
    const struct scheduler_job_info *job;
    const struct scheduler_queue_info *queue;
    const struct scheduler_project_info *project;
    int64_t number;
    int priority;
    bool kill;
    bool pause;
    const void *edit; /* given back in the action */
    const struct scheduler_node_info *node;
    int64_t id;
    int64_t epoch;
    bool drain;
    const char *text;  /* ON_GONE: what is known, for people */
    uint64_t asked_us; /* ON_REPORT: the node's own clock when it said so; 0: not known */
    const struct scheduler_report *reports;
    int reports_count;
};

enum scheduler_action_kind {
    /* stored */
    DO_JOB,          /* job goes from `from` to `to` */
    DO_NOTE,         /* what is to be known of a job that has been placed; its restarts */
    DO_ATTEMPT,      /* a new attempt with this epoch */
    DO_ATTEMPT_RUNS, /* all its tasks run */
    DO_ATTEMPT_ENDS, /* with `exit` and `text` */
    DO_TASK,         /* is now in `task_state`; with the report that says so, if any */
    DO_NODE,         /* is now in `node_state`, `draining` */
    DO_PRIORITY,     /* job has this priority now */
    DO_EDIT,         /* job is now what `edit` of the event says */
    DO_PAUSE,        /* job is paused, or no more: `pause` */
    DO_FAILURE,      /* job has failed on the node `count` times now */
    DO_USAGE,        /* the job's attempt has cost its project cpu_ms and gpu_ms; its usage */
    DO_JOINED,       /* node has a new session with this epoch */

    /* sent */
    DO_START, /* the task on the node */
    DO_STOP,  /* the task on the node: TERM and KILL after `grace_us`, or `kill` at once */
    DO_ACKNOWLEDGE, /* the exit of the task is stored: the node may forget it */
    DO_DISCARD,     /* in the answer to a join: kill the task and forget it */
};

/* Fields without a meaning for the kind are zero; texts live in the actions' arena. */
struct scheduler_action {
    enum scheduler_action_kind kind;
    int64_t job;
    int attempt;
    int64_t epoch;      /* of the attempt; DO_JOINED: of the session */
    int64_t task_epoch; /* of a task, as its node knows it: see scheduler_task_info */
    bool away;          /* DO_TASK */
    enum job_state from;
    enum job_state to;
    int restarts;
    int preemptions;
    int priority;
    bool pause;
    const void *edit;
    int count;
    const char *project;
    uint64_t usage;
    int64_t cpu_ms; /* CPUs times milliseconds */
    int64_t gpu_ms;
    uint64_t retry_in_us;
    enum exit_reason exit;
    const char *reason; /* stable code */
    const char *text;   /* for people */

    int64_t node;
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    enum task_state task_state;
    const struct scheduler_report *report;
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask; /* bit i: the task holds the node's GPU i, or its part of it */
    bool kill;
    uint64_t grace_us;

    enum node_state node_state;
    bool draining;
};

struct scheduler_actions {
    struct arena *arena; /* of the caller */
    struct scheduler_action *list;
    int count;
    int capacity;
};

/* Empties the list; its memory and the arena stay. */
void scheduler_actions_clear(struct scheduler_actions *actions);
void scheduler_actions_release(struct scheduler_actions *actions);

/* An empty state; copies the options. */
struct scheduler *scheduler_new(const struct scheduler_options *options, uint64_t now_us);
void scheduler_free(struct scheduler *scheduler); /* NULL is fine */

/* The same state once more, owned: what is tried on it changes nothing here.  O(everything). */
struct scheduler *scheduler_copy(const struct scheduler *scheduler);

/* Building it from what was stored: first the epoch, then all nodes, queues and projects, then
 * all jobs. */
void scheduler_load_epoch(struct scheduler *scheduler, int64_t epoch);
void scheduler_load_node(struct scheduler *scheduler, const struct scheduler_node_info *node,
                         uint64_t now_us);
void scheduler_load_queue(struct scheduler *scheduler,
                          const struct scheduler_queue_info *queue);
void scheduler_load_project(struct scheduler *scheduler,
                            const struct scheduler_project_info *project, uint64_t now_us);
void scheduler_load_job(struct scheduler *scheduler, const struct scheduler_job_info *job,
                        uint64_t now_us);

/* Takes one event in, and appends what is to be done. */
void scheduler_step(struct scheduler *scheduler, const struct scheduler_event *event,
                    uint64_t now_us, struct scheduler_actions *actions);

/* When the next ON_TICK is due; UINT64_MAX when nothing is waited for. */
uint64_t scheduler_next_us(const struct scheduler *scheduler);

/* The newest epoch given away: to be stored with the actions whenever it has changed. */
int64_t scheduler_epoch(const struct scheduler *scheduler);

/* The state of a job that has not ended; false when there is none of this number. */
bool scheduler_job_state(const struct scheduler *scheduler, int64_t number,
                         enum job_state *state);

/* Whether a job that has not ended is paused. */
bool scheduler_job_is_paused(const struct scheduler *scheduler, int64_t number);

/* What a project holds now. */
struct scheduler_amount scheduler_project_held(const struct scheduler *scheduler,
                                               const char *project);

/* False when these needs can be met by no node even when all are empty. */
bool scheduler_possible(const struct scheduler *scheduler, const struct scheduler_need *needs,
                        int needs_count);

/* Nodes, in order of their ids. */
struct scheduler_node_view {
    int64_t id;
    const char *name; /* borrowed */
    enum node_state state;
    bool session;
    bool cleaning;
    bool draining;
    struct scheduler_resources capacity;
    struct scheduler_resources used;
    int gpus_free; /* whole ones, on which something could be started */
    int tasks_count;
    uint64_t seen_us;
};
int scheduler_nodes_count(const struct scheduler *scheduler);
void scheduler_node_view(const struct scheduler *scheduler, int index,
                         struct scheduler_node_view *view);

/* Aborts when the state contradicts itself.  O(everything): for tests. */
void scheduler_check(const struct scheduler *scheduler);
