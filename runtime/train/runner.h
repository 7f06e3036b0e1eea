/*
 * runner.h - what runs a training's graph: a session of this process, or one over the tasks of
 * a cluster (runtime/cluster).  Training, evaluation and checkpoints are the same for both.
 */
#pragma once

#include "base/base.h"

struct account;
struct callable;
struct error;
struct graph;
struct model;
struct runner;
struct runner_call;
struct session;
struct session_options;
struct session_run;
struct str;
struct tensor;
struct worker_link;

/* The tasks that a training runs over; all borrowed for its life. */
struct runner_cluster {
    struct worker_link *const *links;
    int links_count;
    int home; /* which of them is this process */
    /* A task cannot be reached: who started it may start it again.  False: it will not come
     * back.  Any thread; NULL: it comes back by itself. */
    bool (*revive)(void *arg, int link);
    void *arg;
};

/*
 * A runner of the model's graph, which is copied.  `cluster` NULL: a session of `options`.
 * Over a cluster the model's graph gets the ops "state/..." by which its variables are read and
 * written.  Fails as session_new() and cluster_session_new() do.
 */
struct runner *runner_new(const struct session_options *options,
                          const struct runner_cluster *cluster, struct model *model,
                          struct error *err) CHECKED;

/* One that borrows a session, whose graph has the model. */
struct runner *runner_of(struct session *session, const struct model *model);
void runner_free(struct runner *runner); /* NULL is fine */

/* Over a cluster: ends calls that run with CANCELLED, and later ones fail. */
void runner_cancel(struct runner *runner);

/* A run that will be repeated: names are copied.  Owned by the runner.  Fails as
 * session_prepare(). */
struct runner_call *runner_prepare(struct runner *runner, const struct session_run *run,
                                   struct error *err) CHECKED;

/* Runs it once, as session_call() does; `statistics` NULL: no trace. */
bool runner_call(struct runner *runner, const struct runner_call *call,
                 const struct tensor *feeds, struct tensor *fetched, struct str *statistics,
                 struct error *err) CHECKED;

/* Whether the error is one of those that are told when a task falls: by itself, and by those
 * that waited for it. */
bool runner_may_be_lost(const struct error *err);

/* Over a cluster: how a worker stands after a call failed that has a part there. */
enum runner_worker {
    RUNNER_THERE, /* as before, or again: calls may be tried once more */
    RUNNER_AWAY,  /* to be asked for again */
    RUNNER_NEVER  /* it will not come back, or a parameter server is lost: the error says so */
};
enum runner_worker runner_recover(struct runner *runner, int worker, struct error *err) CHECKED;

/* Runs one target once. */
bool runner_run(struct runner *runner, const char *target, struct error *err) CHECKED;

/* The values of all variables of the model, in their order, each to be released.  Fails with
 * INTERNAL when one has none. */
bool runner_get(struct runner *runner, struct tensor *values, struct error *err) CHECKED;

/*
 * Over a cluster where other tasks than this one have variables: so many tasks have some, each
 * of which writes its own as a checkpoint (V2) to the path of its number, or takes its own out
 * of one.  0: all are here, or it is not known where.  They fail as runner_call() and SaveV2,
 * RestoreV2 do.
 */
int runner_shards(const struct runner *runner);
bool runner_save(struct runner *runner, const char *const *prefixes, struct error *err) CHECKED;
bool runner_restore(struct runner *runner, const char *prefix, struct error *err) CHECKED;

/* Whether there are shards, and all those tasks have this very folder under this name. */
bool runner_sees(struct runner *runner, const char *folder);

/* Gives variable `index` a value; takes the tensor, also on failure. */
bool runner_set(struct runner *runner, int index, struct tensor *value,
                struct error *err) CHECKED;

const struct graph *runner_graph(const struct runner *runner); /* with devices */

/* Appends the placement, as session_explain_placement() does. */
void runner_explain(const struct runner *runner, const struct runner_call *call,
                    struct str *json);

/* Over a cluster: what calls may tell where their time goes; else NULL. */
struct account *runner_account(const struct runner *runner);

/* What session_estimate() takes; NULL over a cluster, whose tasks look after themselves. */
const struct callable *runner_callable(const struct runner_call *call);
