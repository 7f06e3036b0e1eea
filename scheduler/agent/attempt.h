/*
 * attempt.h - one task of one attempt on this node: its folder, its shim, its end.
 *
 * All that must survive an agent lies in the folder.  Owned by the agent's thread.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "proto/agent_pb.h"

struct attempt;
struct datasets;
struct error;
struct gpus;
struct link;
struct usage;

struct attempt_places {
    const char *attempts_folder;
    const char *shim_path;
    const char *task_path;
    struct datasets *datasets; /* the node's copies */
    bool no_shared_folder;     /* the server's folder is not looked for */
};

struct attempt_own { /* of the node, the task's alone */
    int port;        /* 0: none */
    uid_t user;      /* 0: it runs as the agent; ATTEMPT_NO_USER: there is none left */
    uid_t group;
    const struct gpus *gpus; /* of the node, by number; none when they are fake */
};
#define ATTEMPT_NO_USER ((uid_t)-1)

/*
 * Makes the folder with spec.json and start.json.  On failure an attempt is returned all the
 * same, one that has ended with AGENT_EXIT_START and the error's text.
 */
struct attempt *attempt_new(const struct attempt_places *places,
                            const struct agent_start_task *start,
                            const struct attempt_own *own);

/* Takes over what an earlier agent left in folder `name`: a living shim, an exit, or neither.
 */
struct attempt *attempt_adopt(const struct attempt_places *places, const char *name,
                              struct error *err) CHECKED;

/* A task that this node knows nothing of: it has ended, AGENT_EXIT_LOST. */
struct attempt *attempt_unknown(const struct agent_task_ref *task);

void attempt_free(struct attempt *attempt); /* its task runs on; NULL is fine */

const struct agent_task_ref *attempt_task(const struct attempt *attempt);

/* Has `inotify` watch what it writes. */
void attempt_watch(struct attempt *attempt, int inotify);
bool attempt_watches(const struct attempt *attempt, int watch);

/* Whether it holds this port of the node. */
bool attempt_has_port(const struct attempt *attempt, int port);

/* Whether GPUs are its own, and it has not ended. */
bool attempt_has_gpus(const struct attempt *attempt);

/* The user that it runs as; 0: the agent's. */
uid_t attempt_user(const struct attempt *attempt);

/* When attempt_launch() wants to be called again (monotonic, microseconds); 0: not for time. */
uint64_t attempt_again_us(const struct attempt *attempt);

/*
 * Starts the shim if that has not been done and all that the task needs is there; the outcome
 * says so when it fails.  `*more`: there is more to do at once.  False: the server does not
 * answer, `err` says why.
 */
bool attempt_launch(struct attempt *attempt, struct link *link, const char *host, bool *more,
                    struct error *err);

/* Where all of it lies. */
const char *attempt_folder(const struct attempt *attempt);

/* The pid of its shim while that lives, else 0. */
pid_t attempt_shim(const struct attempt *attempt);

/* A descriptor that is readable when the shim has gone, or -1. */
int attempt_fd(const struct attempt *attempt);

/* Looks whether the shim has gone, and how the task ended then. */
void attempt_check(struct attempt *attempt);

/* One that waits to be started has ended; one that runs is asked to end, or killed at once. */
void attempt_cancel(struct attempt *attempt);
void attempt_term(struct attempt *attempt);
void attempt_kill(struct attempt *attempt);

/* When to call attempt_look() (monotonic, microseconds), 0: never.  It kills a task that has
 * stalled (watchdog.h). */
uint64_t attempt_due_us(const struct attempt *attempt);
void attempt_look(struct attempt *attempt);

/* Kills it at once: its end is `reason`, and `text` says why. */
void attempt_fail(struct attempt *attempt, enum agent_exit_reason reason, const char *text);

/* The GPUs that it was given, by their numbers: bit i. */
uint64_t attempt_gpus(const struct attempt *attempt);

/* Exited: the process has ended, or never was. */
enum agent_task_state attempt_state(const struct attempt *attempt);

/* What usage_watch.c keeps of it. */
struct usage *attempt_usage(struct attempt *attempt);

/*
 * Ships what it wrote.  True when nothing is left that could be shipped now; else `*again_ms`
 * is 0 (at once) or -1 (the server cannot take it, `err` says why; PRECONDITION: join again).
 */
bool attempt_ship(struct attempt *attempt, struct link *link, int *again_ms, struct error *err);

/* What there is to say; borrows the attempt's texts. */
void attempt_report(const struct attempt *attempt, struct agent_task_report *report);

/* The server knows the end: event files go to the job's folder, the rest is removed.  `last`:
 * no other task of the job is here. */
void attempt_clean(struct attempt *attempt, bool last);
