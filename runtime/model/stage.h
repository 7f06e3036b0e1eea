/*
 * stage.h - a model of layers on several devices: model parallel by pins, and pipelines.
 *
 * Each layer has a device, where its ops, its variables and its gradients are; what crosses
 * from one to the next travels, in 16 bits if the spec says so.  Pinned layers are where the
 * spec puts them, the others on the first worker; of a pipeline on the workers in turn, in
 * runs of layers that cost about the same.
 *
 * A pipeline (GPipe, PipeDream's 1F1B) cuts the batch into equal parts: while the last stage
 * works on the first, the others work on the next.  Stage s of n has at most n - s parts under
 * way, so that it needs no more memory with more of them.  The gradients of all parts make one
 * update, so it does what one task does with the whole batch, to the rounding of sums; only
 * BatchNormalization sees each part alone, and its moving averages are those of the first.
 */
#pragma once

#include "runtime/model/pass.h"

struct replica_result;

struct stages {
    const char **devices;   /* by layer */
    int *numbers;           /* by layer: its stage, in the order in which they begin */
    int count;              /* of stages */
    struct node **released; /* by stage: what the part that is built waits for; NULL: nothing */
};

/* Chooses them where the spec wants any. */
void stage_begin(struct building *g);

const char *stage_device(const struct stages *stages, int layer);

/* What `layer` reads of `value`, made by layer `from` (-1: fed): brought to its device. */
struct edge stage_enter(struct building *g, int layer, int from, struct edge value);

/* Training of a pipeline (pipeline.c). */
void pipeline_build(struct building *g, struct replica_result *out);
