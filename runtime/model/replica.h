/*
 * replica.h - a model of layers over several tasks: in-graph replication, synchronous.
 *
 * One graph: variables lie on the parameter servers ("/job:ps"), balanced by their bytes (on
 * the first worker when there are none); each worker has a pass over its equal part of the
 * batch, with gradients of its own; their means, taken in the order of the workers, make the
 * update. So n workers with a batch of b do what one does with a batch of n b, to the rounding
 * of sums, and always with the same bits.  Moving averages (BatchNormalization) are those of
 * the first worker.  Evaluation is the first worker's.
 */
#pragma once

#include "runtime/model/pass.h"

bool replica_wanted(const struct spec *spec); /* whether its tasks are more than one worker */

/* "/job:worker/task:1", in the model's arena. */
const char *replica_device(const struct build *m, int worker);

/* Tells `g` where variables go. */
void replica_begin(struct building *g);

struct replica_result {
    struct edge loss;   /* the mean of the workers' */
    struct edge *sums;  /* of the metrics: their sums; room for all of them */
    struct edge *grads; /* means, where their variables are */
    int grads_count;
};

/* All passes of training, with one batch fed for all. */
void replica_build(struct building *g, struct replica_result *out);

/* What takes a variable's handle is wished to where the variable is. */
void replica_pin(struct build *m);
