/*
 * internal.h - the scheduler's state, as its own files see it.
 */
#pragma once

#include "scheduler/fit.h"
#include "scheduler/match.h"
#include "scheduler/queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_turn.h"

/* Why an attempt is being stopped; stored as the reason of state stopping. */
enum intent {
    INTENT_NONE,
    INTENT_DONE,    /* the workers have finished; parameter servers only need to be told */
    INTENT_FAULT,   /* a task ended badly: the others cannot go on without it */
    INTENT_TIME,    /* stop.max_seconds */
    INTENT_CANCEL,  /* a person wants it */
    INTENT_PREEMPT, /* a job of higher priority needs the room */
    INTENT_PAUSE,   /* a person wants it to rest */
};

struct task {
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    struct node *node; /* holds `resources` of it until the task has exited */
    int64_t epoch;     /* as the node knows it: the attempt's, later when placed anew */
    bool away;         /* lost, and the others go on without it: scheduler_alone.c */
    bool told;         /* ... and that was said */
    uint64_t again_us; /* it is not placed anew before */
    enum task_state state;
    enum exit_reason reason;
    bool ended; /* its process has; what it wrote is on its way, and its exit after it */
    struct scheduler_resources resources;
    int gpu_share;
    uint64_t gpu_mask;
};

/* A queue, as it is named. */
struct lane {
    char *name;
    int at; /* its place among the lanes */
    int priority;
    int weight;
    bool preempt;
    uint64_t turn; /* of a pass: what its next job has to wait for */
};

struct project {
    char *name;
    int at; /* its place among the projects */
    int weight;
    struct scheduler_amount quota;
    struct scheduler_amount held;
    uint64_t usage; /* of attempts that have ended, as it was at ... */
    uint64_t usage_us;
    uint64_t running; /* of a pass: what those that live have cost */
    uint64_t turn;    /* of a pass: what its next job has to wait for */
};

struct job {
    int64_t number;
    struct lane *lane;
    struct project *project;
    struct scheduler_amount asks; /* over all its tasks */
    uint64_t held_us;             /* since when the attempt that lives holds it */
    uint64_t project_turn;        /* of a pass */
    uint64_t lane_turn;           /* of a pass */
    int rank;                     /* of a pass: of its queue and itself, higher first */
    int place;                    /* in the order of the last pass */
    int priority;
    enum job_state state;
    struct scheduler_need *needs;
    int needs_count;
    bool **suits;  /* of each need, by kind of node; as fit_ask has it */
    int tasks_max; /* over all needs */
    bool spread;
    bool paused;
    int64_t *after; /* numbers of jobs that have not succeeded yet */
    int after_count;
    int restart_max;
    uint32_t retry_on; /* bit i: after enum exit_reason i */
    int exclude_bad;
    struct scheduler_failure *failures; /* with exclude_bad alone */
    int failures_count;
    int failures_capacity;
    int64_t *excluded; /* ids of nodes that failed it too often */
    int excluded_count;
    int restarts;
    int preemptions;
    int attempt;
    int64_t epoch;
    uint64_t stop_us;

    uint64_t queued_us;  /* when it was queued */
    uint64_t retry_us;   /* not to be tried before */
    uint64_t ran_us;     /* by attempts that have ended */
    uint64_t running_us; /* since when this one runs; meaningful while `runs` */
    bool runs;

    enum intent intent;
    bool killed;            /* KILL was asked for */
    uint64_t unkillable_us; /* then a task that still runs is unkillable; UINT64_MAX: never */

    struct task *tasks; /* of the attempt that lives */
    int tasks_count;
    struct task *first_bad; /* the task whose end was the first that was no good one */
};

/* A task that lives on a node but should not: it is being killed. */
struct ghost {
    int64_t job;
    int64_t epoch;
    char role[SCHEDULER_ROLE_BYTES];
    int index;
};

struct node {
    int64_t id;
    int at; /* its place among the nodes */
    char *name;
    int64_t epoch; /* of the session */
    char *boot_id;
    uint64_t asked_us;
    uint64_t reported_us; /* its clock at its newest reports */
    bool session;         /* its agent has joined since we were built */
    enum node_state state;
    bool draining;
    struct scheduler_resources capacity;
    int kind;                        /* of match */
    struct scheduler_resources used; /* GPUs: those of which somebody holds a part */
    uint16_t gpu_held[SCHEDULER_GPUS_MAX];
    uint64_t gpus_away; /* lost, or used by others */
    int tasks_count;
    uint64_t seen_us;
    struct ghost *ghosts;
    int ghosts_count;
    int ghosts_capacity;
};

/* A job that has ended in this batch. */
struct ended {
    int64_t job;
    enum job_state state;
};

struct scheduler {
    struct scheduler_options options;
    int64_t epoch;
    uint64_t ticked_us;

    struct node **nodes; /* by id */
    int nodes_count;
    int nodes_capacity;

    struct job **jobs; /* that have not ended, by number */
    int jobs_count;
    int jobs_capacity;

    struct queue queue;  /* those of them that wait */
    struct ended *ended; /* since the last tick, by number */
    int ended_count;
    int ended_capacity;
    int after_count; /* jobs that wait for the success of others */
    bool dirty;      /* something has changed that may let a job start */

    struct lane **lanes;
    int lanes_count;
    int lanes_capacity;
    struct project **projects;
    int projects_count;
    int projects_capacity;
    struct scheduler_resources total; /* of all nodes */
    struct scheduler_resources most;  /* no node has more of each */

    struct match match;
    struct fit fit;     /* of a pass: what each node offers */
    struct fit spare;   /* ... and what is left of it once the head has started */
    struct fit later;   /* ... and the least of both */
    struct job **order; /* of a pass: who waits, in turn */
    int order_count;
    int order_capacity;
    int64_t head; /* of the last pass: the first job that had to wait, 0 */
    uint64_t head_start_us;
    int64_t kept_for; /* of the last pass: a job for which nodes are kept, 0 */
};

/* --- scheduler.c --- */

struct job *scheduler_find_job(const struct scheduler *s, int64_t number);
struct node *scheduler_find_node(const struct scheduler *s, int64_t id);

/* Takes an ended job out of the state and frees it. */
void scheduler_drop_job(struct scheduler *s, struct job *job);

struct scheduler_action *scheduler_act(struct scheduler_actions *actions,
                                       enum scheduler_action_kind kind);

/* --- scheduler_job.c --- */

/* How long a job waits before it is tried again for the `restarts`th time. */
uint64_t scheduler_job_backoff_us(const struct scheduler *s, int restarts);

/* A task is to be stored as it is now; with the report that says so, if any. */
void scheduler_job_task_changed(const struct job *job, const struct task *task,
                                const struct scheduler_report *report,
                                struct scheduler_actions *actions);

/* Places the job's tasks, and starts an attempt. */
void scheduler_job_start(struct scheduler *s, struct job *job, const struct fit_place *places,
                         uint64_t now_us, struct scheduler_actions *actions);

/* A task has exited; follow with scheduler_job_review(). */
void scheduler_job_task_exits(struct scheduler *s, struct job *job, struct task *task,
                              enum exit_reason reason, const struct scheduler_report *report,
                              struct scheduler_actions *actions);

/* Draws the conclusions of what its tasks do now.  The job may be gone after it. */
void scheduler_job_review(struct scheduler *s, struct job *job, uint64_t now_us,
                          struct scheduler_actions *actions);

void scheduler_job_cancel(struct scheduler *s, struct job *job, bool kill, uint64_t now_us,
                          struct scheduler_actions *actions);

/* What time has brought: stop.max_seconds, unkillable tasks. */
void scheduler_job_tick(struct scheduler *s, struct job *job, uint64_t now_us,
                        struct scheduler_actions *actions);
uint64_t scheduler_job_next_us(const struct scheduler *s, const struct job *job);

void scheduler_job_send_stop(const struct scheduler *s, const struct job *job,
                             const struct task *task, struct scheduler_actions *actions);
void scheduler_job_send_start(const struct job *job, const struct task *task,
                              struct scheduler_actions *actions);

/* The intent that is stored as this reason of state stopping. */
enum intent scheduler_intent(const char *reason, bool *killed);
const char *scheduler_intent_name(const struct job *job); /* of its intent: that reason */

/* "worker:1 on n2 crashed" */
const char *scheduler_intent_culprit(const struct task *task, struct arena *arena);

/* Tells of a job that is stopping; why it does is said with it, as it is now. */
void scheduler_intent_note(const struct job *job, const char *text,
                           struct scheduler_actions *actions);

/* Ends the attempt for a job of higher priority: TERM, and the queue again. */
void scheduler_job_preempt(struct scheduler *s, struct job *job, const struct job *winner,
                           uint64_t now_us, struct scheduler_actions *actions);

/* Holds a job, or lets it go. */
void scheduler_job_pause(struct scheduler *s, struct job *job, bool pause, uint64_t now_us,
                         struct scheduler_actions *actions);

/* Queued, but not to be started for now, whatever room there is. */
bool scheduler_job_is_held(const struct job *job);

/* A job that is queued ends without (another) attempt. */
void scheduler_job_give_up(struct scheduler *s, struct job *job, const char *reason,
                           const char *text, struct scheduler_actions *actions);

/* --- scheduler_node.c --- */

void scheduler_node_join(struct scheduler *s, const struct scheduler_event *event,
                         uint64_t now_us, struct scheduler_actions *actions);
void scheduler_node_reports(struct scheduler *s, struct node *node,
                            const struct scheduler_event *event, uint64_t now_us,
                            struct scheduler_actions *actions);
void scheduler_node_seen(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions);
/* What is known of a node's machine and clock, from its newest join. */
void scheduler_node_asked(struct scheduler *s, struct node *node,
                          const struct scheduler_node_info *info);

void scheduler_node_drain(struct scheduler *s, struct node *node, bool drain, const char *why,
                          struct scheduler_actions *actions);
void scheduler_node_tick(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions);
uint64_t scheduler_node_next_us(const struct scheduler *s, const struct node *node);

/* Its machine is gone: its tasks are given up now. */
void scheduler_node_gone(struct scheduler *s, struct node *node, const char *why,
                         uint64_t now_us, struct scheduler_actions *actions);

/* True when new tasks may be placed there. */
bool scheduler_node_offers(const struct node *node);

/* --- scheduler_pass.c --- */

/* Starts every job that can be started now. */
void scheduler_pass(struct scheduler *s, uint64_t now_us, struct scheduler_actions *actions);
