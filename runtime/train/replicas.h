/*
 * replicas.h - workers that each train on a batch of their own, as the training loop sees them:
 * a row of steps, one after the other.
 *
 * Asynchronous: what each worker does is a step, and it goes on once that has been taken.
 * Gathered (backup workers): a step is an update by those gradients that came first; each
 * worker does one batch for it, and one that comes late, with the step before, has done it in
 * vain and goes on with the step of the moment.
 * Elastic: a step is an update by the gradients of all shards of its batch, whoever of the
 * workers does them (replicas_shards.c).
 *
 * DESIGN: each worker has a thread (replicas_main) that takes a batch, runs the worker's call
 * and leaves what came of it.  When the state must stand still (a checkpoint, an evaluation),
 * the loop asks for quiet: of asynchronous workers none begins, and those that run are waited
 * for; gathered gradients change nothing between two updates.
 *
 * A worker whose task is lost is waited for by its thread alone: what it was at is tried again
 * when the task is there again (runner_recover()), and the others go on meanwhile.  Of an
 * asynchronous update that was under way some variables may have got their part.
 */
#pragma once

#include "base/base.h"

struct account_arrival;
struct replicas;
struct error;
struct input;
struct runner;
struct runner_call;
struct str;
struct tensor;

struct replicas_options {
    struct runner *runner; /* borrowed, as all of these */
    struct input *input;
    struct runner_call *const *calls; /* of each worker; gathered: with the step's number fed
                                         behind the batch */
    int calls_count;
    struct runner_call *update; /* gathered: of a step; NULL: asynchronous */
    int needed;                 /* gathered: gradients that it takes */
    int shards;                 /* elastic: of a step's batch; 0: it is not */
    int workers_min;            /* elastic: that must be there for a step */
    int fetches;                /* of each call: a mean, and sums */
    int64_t step;               /* steps done before */
    int64_t steps;              /* in all */
    int64_t trace_every; /* of steps whose number is a multiple there are statistics; 0: none */
};

/* Starts the threads; no worker begins before replicas_next().  Fails with EXHAUSTED. */
struct replicas *replicas_start(const struct replicas_options *options,
                                struct error *err) CHECKED;

/*
 * The next step that is done, waiting for it: `fetched` gets its values, to be released; its
 * statistics, if there are any, are appended to `statistics`.  Fails as the step did; then no
 * other begins.
 */
bool replicas_next(struct replicas *all, struct tensor *fetched, struct str *statistics,
                   struct error *err) CHECKED;

/* Waits until nothing changes: how many steps are done and not yet taken.  None begins before
 * they are, and replicas_next() is called again. */
int replicas_quiet(struct replicas *all);

/* Appends what a person should know since the last time: workers that were lost, or are back.
 * Whether there was any. */
bool replicas_tell(struct replicas *all, struct str *notice);

/* How long workers took for their steps since the last call, each by itself; how many did any.
 */
int replicas_arrivals(struct replicas *all, struct account_arrival *arrivals, int max);

int64_t replicas_batches(struct replicas *all); /* that were begun */
int64_t replicas_late(struct replicas *all);    /* that were in vain */

/* Waits for what runs (runner_cancel() ends it) and frees.  NULL is fine. */
void replicas_stop(struct replicas *all);
