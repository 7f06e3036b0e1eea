/* replicas_internal.h - workers that train on batches of their own, as replicas*.c see them. */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "base/str.h"
#include "runtime/tensor.h"
#include "runtime/train/replicas.h"

enum state { IDLE, RUNNING, DONE, LOST };

struct hand { /* a worker's place */
    struct replicas *all;
    struct runner_call *call;
    pthread_t thread;
    enum state state;
    int64_t step;                  /* gathered: that it began with; -1: none */
    int64_t order;                 /* asynchronous: in which it was done, among all */
    int shard;                     /* elastic: that it works on */
    int failures;                  /* since it last did what it should */
    uint64_t took_us, took_max_us; /* by steps since they were last asked for */
    uint64_t input_us;             /* waited for batches, before those */
    int64_t took_steps;
    struct tensor *fetched;
    struct str statistics;
};

enum shard_state { SHARD_WAITS, SHARD_RUNS, SHARD_DONE };

struct shard { /* of a step's batch */
    struct dataset_batch *batch;
    enum shard_state state;
    struct tensor *fetched;
};

struct replicas {
    struct replicas_options options;
    struct hand *hands;
    int threads;

    pthread_mutex_t lock; /* guards what follows, and the hands save those that run */
    pthread_cond_t changed;
    int64_t step;    /* gathered: that is under way; asynchronous: that was begun last */
    int64_t batches; /* begun */
    int64_t done, late;
    bool quiet, over;
    struct str notice;
    struct error error; /* why it is over */

    /* Gathered: of the step that is under way. */
    int arrived;
    struct tensor *sums;
    struct str statistics;

    struct shard *shards; /* elastic: of the step that is under way */
    bool open;            /* they may be worked on */
};

/* Runs the worker's call on the batch, with `number` fed behind it (-1: nothing is). */
bool replicas_run(struct hand *hand, struct dataset_batch *batch, int64_t number, bool traced,
                  struct error *err) CHECKED;

/* Takes the value. */
void replicas_add_values(struct tensor *sum, struct tensor *value);

/* --- replicas_lost.c --- */

/*
 * A worker's call failed: waits until its task is there again and what failed may be tried once
 * more.  False: it is over, and `why` says why.
 */
bool replicas_recover_locked(struct hand *hand, struct error *why) CHECKED;

/* --- replicas_shards.c: elastic steps --- */

/* The shard that this worker may begin now: its own, or one of a worker that is lost; -1. */
int replicas_shard_locked(const struct hand *hand);

/* It is worked out, or nobody works on it any more. */
void replicas_shard_done_locked(struct hand *hand);
void replicas_shard_left_locked(struct hand *hand);

bool replicas_next_shards(struct replicas *all, struct tensor *fetched, struct str *statistics,
                          struct error *err) CHECKED;
void replicas_shards_free(struct replicas *all);
