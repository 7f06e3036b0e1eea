/* internal.h - the agent's own state, shared by agent.c (its life) and work.c (its thread). */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/attempt.h"
#include "scheduler/agent/core.h"
#include "scheduler/agent/gpus.h"
#include "scheduler/agent/labels.h"
#include "scheduler/agent/users.h"

struct credentials;
struct datasets;
struct link;
struct mailbox;

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
    struct core core;
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

/* The session is over: the next turn joins again. */
void work_leave(struct agent *agent);

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

/* The task has ended: that is told once its GPUs have no process any more. */
void gpu_watch_ended(struct agent *agent, struct core_task *task);

uint64_t gpu_watch_next_us(const struct agent *agent); /* monotonic; UINT64_MAX: never */

/* --- usage_watch.c: what running tasks use, as metrics of the job --- */

void usage_watch(struct agent *agent);
uint64_t usage_watch_next_us(const struct agent *agent); /* monotonic; UINT64_MAX: never */
