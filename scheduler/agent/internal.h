/* internal.h - the agent's own state, shared by agent.c (its life) and work.c (its thread). */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/attempt.h"
#include "scheduler/agent/gpus.h"
#include "scheduler/agent/labels.h"
#include "scheduler/agent/usage.h"
#include "scheduler/agent/users.h"

struct credentials;
struct datasets;
struct link;
struct mailbox;

struct usage {          /* of usage_watch.c; times are monotonic */
    uint64_t began_us;  /* when it was first seen to run */
    uint64_t due_us;    /* the next sample; 0: it has not been seen yet */
    uint64_t looked_us; /* when `last` was; 0: there is none */
    struct usage_sum last;
    int64_t file; /* a part of its name; 0: none yet */
    int64_t step; /* of the last sample */
};

struct held { /* an attempt, and what is to be done about it */
    struct attempt *attempt;
    bool to_ship;      /* something may have been written */
    uint64_t ship_us;  /* monotonic; not before: the server has no room */
    bool to_report;    /* something is to be said */
    bool discarded;    /* superseded: killed; nothing but its end is told */
    bool adopted;      /* an earlier agent started it */
    bool unproven;     /* has ended, but its GPUs may still have processes of it */
    uint64_t ended_us; /* monotonic: when that was seen */
    uint64_t said_us;  /* when the end was last reported, 0 */
    struct usage usage;
};

struct agent {
    char *folder;
    char *attempts_folder;
    char *node_name;
    char *identity;
    char *token;
    char *task_path;
    char *shim_path;
    char host[64]; /* how other nodes reach this one */
    int port;      /* that was handed out last */
    struct users users;
    int view_refused; /* why tasks get no view of their own (view.h), 0 */
    char boot_id[64];
    struct agent_resources capacity;
    struct gpus gpus;
    struct gpus_query gpus_query;
    uint64_t gpus_asked_us; /* when the last question was put */
    struct labels labels;
    int lock_file; /* held as long as the agent lives */
    struct attempt_places places;
    struct datasets *datasets;

    struct credentials *credentials; /* NULL: the link has what it needs */
    struct link *link;
    struct mailbox *mailbox; /* struct link_mail */
    int inotify;
    pthread_t thread;
    struct held *held;
    int held_count;
    int held_capacity;
    int64_t commands_done;   /* of this session */
    uint64_t joined_us;      /* 0: never */
    int retry_ms;            /* doubles with each failure */
    uint64_t quiet_until_us; /* no calls to the server before */
    unsigned random;
    struct error trouble;      /* what was complained of last ... */
    uint64_t trouble_until_us; /* ... and is not complained of again before */

    pthread_mutex_t lock; /* guards: failed, error */
    pthread_cond_t failing;
    bool failed;
    struct error error;
};

/* The thread: works until the mailbox is closed. */
void *work_main(void *agent);

/* Before the thread: finds what earlier agents left in the folder. */
bool work_adopt(struct agent *agent, struct error *err) CHECKED;

/*
 * A free port that no attempt here holds; in turn, so that one that was just given back rests.
 * 0: there is none.  (port.c)
 */
int port_take(struct agent *agent);

/* The user for a task of the job: as the others of the job here, else one that no job here has;
 * 0: the agent's own, ATTEMPT_NO_USER: there is none. */
uid_t port_user(const struct agent *agent, int64_t job);

/* --- gpu_watch.c: how the GPUs are, asked every few seconds --- */

/* What the node has of GPUs, from agent->gpus. */
void gpu_watch_offer(struct agent *agent);

/* Asks and takes in answers: ends the tasks of a GPU that is lost, and joins anew when other
 * GPUs can be had. */
void gpu_watch(struct agent *agent);

/* The attempt has ended: its end is told once its GPUs have no process any more. */
void gpu_watch_ended(struct agent *agent, struct held *held);

uint64_t gpu_watch_next_us(const struct agent *agent); /* monotonic; UINT64_MAX: never */

/* --- usage_watch.c: what running tasks use, as metrics of the job --- */

void usage_watch(struct agent *agent);
uint64_t usage_watch_next_us(const struct agent *agent); /* monotonic; UINT64_MAX: never */
