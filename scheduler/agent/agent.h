/*
 * agent.h - runs the tasks of one node.
 *
 * The same code in two places: a thread of the server (address "local:NAME"), or the program
 * `trainyard agent` (address "HOST:PORT").
 *
 * DESIGN: one thread (work_main) owns every attempt of the node; the server is called by it
 * and by the thread that holds the long poll, which hands its answers over by mailbox.  What
 * must survive lies in the folder, so an agent that is killed loses nothing: the next one finds
 * the shims that still run, the exits that happened meanwhile, and the bytes not yet shipped.
 *
 * A server that is silent never makes an agent stop a task.
 */
#pragma once

#include "base/base.h"

struct agent;
struct error;
struct rpc_tls;

struct agent_options {
    const char *server;        /* "local:NAME" or "127.0.0.1:7071" */
    const char *token;         /* a join token; NULL for the embedded agent, and when one is not
                                  needed any more */
    const struct rpc_tls *tls; /* `ca` alone: what the server is checked against; with a
                                  certificate: that one is shown; NULL: as credentials.h says */
    const char *folder;        /* made if missing; one agent at a time, held by a lock */
    const char *node_name;     /* NULL: the name kept in the folder, else the host's */
    const char *task_path;     /* NULL: trainyard-task beside this program */
    const char *shim_path;     /* NULL: trainyard-shim beside this program */
    int64_t cpu_millis;        /* 0: what this process may use */
    int64_t memory_bytes;      /* 0: what the machine or the cgroup has */
    int fake_gpus;             /* this many GPUs that do not exist, for tests of scheduling */
    const char *task_user;     /* "FIRST-LAST": the ids that tasks run as; NULL: as the agent */
    int64_t dataset_bytes;     /* of copies of datasets that it keeps; 0: what the disk holds */
    bool no_shared_folder;     /* the server's folder is not looked for on this machine */
    const char *labels;        /* "zone=a,disk=ssd": what jobs may ask of the node; NULL */
};

/*
 * Takes the folder, finds what runs there and starts the thread.  The server need not be there
 * yet.  Fails when the folder cannot be used or held (EXISTS: another agent holds it), and with
 * NOT_FOUND when a program is missing.
 */
struct agent *agent_start(const struct agent_options *options, struct error *err) CHECKED;

/* Ends the thread and frees; tasks run on under their shims.  NULL is fine. */
void agent_stop(struct agent *agent);

/* Why the agent cannot go on (a refused token, a name taken), or false while it can. */
bool agent_failed(struct agent *agent, struct error *err);

/* Waits up to `timeout_ms` for agent_failed(). */
bool agent_wait_failed(struct agent *agent, int timeout_ms, struct error *err);
