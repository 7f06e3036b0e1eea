/*
 * internal.h - the scheduler's state, as its own files see it.
 */
#pragma once

#include "scheduler/fit.h"
#include "scheduler/queue.h"
#include "scheduler/scheduler.h"

/* Why an attempt is being stopped; stored as the reason of state stopping. */
enum intent {
    INTENT_NONE,
    INTENT_DONE,   /* the workers have finished; parameter servers only need to be told */
    INTENT_FAULT,  /* a task ended badly: the others cannot go on without it */
    INTENT_TIME,   /* stop.max_seconds */
    INTENT_CANCEL, /* a person wants it */
};

struct task {
    char role[SCHEDULER_ROLE_BYTES];
    int index;
    struct node *node; /* holds `resources` of it until the task has exited */
    enum task_state state;
    enum exit_reason reason;
    struct scheduler_resources resources;
};

struct job {
    int64_t number;
    int priority;
    enum job_state state;
    struct scheduler_need *needs;
    int needs_count;
    int tasks_max; /* over all needs */
    int restart_max;
    int restarts;
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
    char *name;
    int64_t epoch; /* of the session */
    char *boot_id;
    uint64_t asked_us;
    uint64_t reported_us; /* its clock at its newest reports */
    bool session;         /* its agent has joined since we were built */
    enum node_state state;
    bool draining;
    struct scheduler_resources capacity;
    struct scheduler_resources used;
    int tasks_count;
    uint64_t seen_us;
    struct ghost *ghosts;
    int ghosts_count;
    int ghosts_capacity;
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

    struct queue queue; /* those of them that wait */
    bool dirty;         /* something has changed that may let a job start */

    struct fit_node *fit; /* scratch of a pass: what each node has free */
    struct fit_node *fit_scratch;
    int fit_capacity;
};

/* --- scheduler.c --- */

struct job *scheduler_find_job(const struct scheduler *s, int64_t number);
struct node *scheduler_find_node(const struct scheduler *s, int64_t id);

/* Takes an ended job out of the state and frees it. */
void scheduler_drop_job(struct scheduler *s, struct job *job);

struct scheduler_action *scheduler_act(struct scheduler_actions *actions,
                                       enum scheduler_action_kind kind);

/* --- scheduler_job.c --- */

/* Places the job's tasks, and starts an attempt. */
void scheduler_job_start(struct scheduler *s, struct job *job, const int *placement,
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

/* --- scheduler_node.c --- */

void scheduler_node_join(struct scheduler *s, const struct scheduler_event *event,
                         uint64_t now_us, struct scheduler_actions *actions);
void scheduler_node_reports(struct scheduler *s, struct node *node,
                            const struct scheduler_event *event, uint64_t now_us,
                            struct scheduler_actions *actions);
void scheduler_node_seen(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions);
/* What is known of a node's machine and clock, from its newest join. */
void scheduler_node_asked(struct node *node, const struct scheduler_node_info *info);

void scheduler_node_drain(struct scheduler *s, struct node *node, bool drain, const char *why,
                          struct scheduler_actions *actions);
void scheduler_node_tick(struct scheduler *s, struct node *node, uint64_t now_us,
                         struct scheduler_actions *actions);
uint64_t scheduler_node_next_us(const struct scheduler *s, const struct node *node);

/* True when new tasks may be placed there. */
bool scheduler_node_offers(const struct node *node);

/* --- scheduler_pass.c --- */

/* Starts every job that can be started now. */
void scheduler_pass(struct scheduler *s, uint64_t now_us, struct scheduler_actions *actions);
