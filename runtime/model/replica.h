/*
 * replica.h - a model of layers over several tasks: in-graph replication.
 *
 * One graph: variables lie on the parameter servers ("/job:ps"), balanced by their bytes (on
 * the first worker when there are none); each worker has a pass over its equal part of the
 * batch, with gradients of its own; their means, taken in the order of the workers, make the
 * update. So n workers with a batch of b do what one does with a batch of n b, to the rounding
 * of sums, and always with the same bits.  Moving averages (BatchNormalization) are those of
 * the first worker.  Evaluation is the first worker's.
 *
 * With the strategy "async" each worker has a batch, a loss and an update of its own, from
 * variables as they are when it reads them (Hogwild and DistBelief's downpour); nobody waits.
 *
 * With "allreduce" each worker has all variables, and an update of its own by the means of all
 * gradients, which they work out among themselves (replica_reduce.c).  What is saved is the
 * first worker's; the others' are mirrors, set to it before the first step.  A worker may do
 * the passes of others beside its own (model_build_hosted()): each keeps its place in rings and
 * trees, so that sums are taken in the same order, with the same bits.
 *
 * Gradients may travel in 16 bits: rounded by the worker, added up in float32.
 */
#pragma once

#include "runtime/model/pass.h"

/* "/job:worker/task:1", where that replica is done; in the model's arena. */
const char *replica_device(const struct build *m, int worker);

/* Tells `g` where variables go. */
void replica_begin(struct building *g);

struct replica_result {
    struct edge loss;   /* the mean of the workers' */
    struct edge *sums;  /* of the metrics: their sums; room for all of them */
    struct edge *grads; /* means, where their variables are */
    int grads_count;
    struct edge **mirrored; /* with mirrors, by worker: its means; `grads` are the first's */
};

/* All passes of training, with one batch fed for all. */
void replica_build(struct building *g, struct replica_result *out);

/* The pass of one worker, with its own placeholders below REPLICA_SCOPE; no means are taken. */
#define REPLICA_SCOPE "replica_%d"
void replica_build_one(struct building *g, int worker, struct replica_result *out);

/*
 * With backup workers (SyncReplicasOptimizer's rule): an accumulator beside each variable takes
 * gradients of the step that is under way and drops older ones; the update takes their mean
 * once enough are there.
 */
struct replica_gather {
    struct edge *accumulators; /* of trainable variables, in their order */
    int count;
};
void replica_gather_new(struct building *g, struct replica_gather *out);

/* What gives one worker's gradients of step `number` (an int64); NULL after a failure. */
struct node *replica_give(struct building *g, const struct replica_gather *gather, int worker,
                          struct edge number, const struct edge *grads);

/* The means of `needed` of each. */
struct edge *replica_take(struct building *g, const struct replica_gather *gather, int needed);

/* Tells all accumulators which step is under way; what does it, NULL after a failure. */
struct node *replica_set_number(struct building *g, const struct replica_gather *gather,
                                struct edge number);

/*
 * Elastic: the batch of a step is cut into as many shards as there are workers in full number,
 * and each shard's gradients have a row of their own beside the variable, whichever worker puts
 * them there; the update takes the mean of all rows, in their order.  So a step has the same
 * bits whoever is there to do it.
 */
struct replica_shards {
    struct edge *slots; /* of trainable variables, in their order: [number, ...] */
    int count;
    int number;
};
/* What makes the rows; NULL after a failure. */
struct node *replica_shards_new(struct building *g, struct replica_shards *out);

/* What puts gradients into row `shard` (an int64). */
struct node *replica_shards_give(struct building *g, const struct replica_shards *shards,
                                 int worker, struct edge shard, const struct edge *grads);
struct edge *replica_shards_take(struct building *g, const struct replica_shards *shards);

/* Goes on with the variables of a worker, whose step is read there. */
void replica_enter(struct building *g, int worker);
void replica_leave(struct building *g);

/*
 * Ring and tree: `grads`, those of each worker, become their means on each worker, with the
 * same bits on all of them and from run to run.  Small ones are put together into buckets,
 * large ones go alone, the last layers' first: under way while the layers before them still
 * work.  A large bucket goes around in pieces (Patarasuk and Yuan 2009: no worker sends more
 * than twice its bytes), a small one up a tree and down again.
 */
void replica_reduce(struct building *g, struct edge *const *grads, int count);

/* What takes a variable's handle is wished to where the variable is. */
void replica_pin(struct build *m);
