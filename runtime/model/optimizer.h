/*
 * optimizer.h - how gradients change variables, by Keras's rules.
 */
#pragma once

#include "runtime/model/build.h"

struct optimizer_call {
    struct build *m;
    const struct config *config;
    struct edge rate;   /* the learning rate of this step, a float scalar */
    struct edge step;   /* steps done before this one, int64 */
    struct node *after; /* every update waits for it */
    struct node **updates;
    int updates_count;
    void *state; /* the class's own, from begin() to end() */

    /* Of the variable that is updated: */
    int weight;
    struct edge variable; /* its handle */
    struct edge gradient;
};

struct optimizer_class {
    struct config_class config;
    double learning_rate; /* Keras's default */
    /* (optional) Before the first variable: what all of them share. */
    void (*begin)(struct optimizer_call *call);
    void (*update)(struct optimizer_call *call);
    /* (optional) After the last one. */
    void (*end)(struct optimizer_call *call);
};

#define OPTIMIZERS(X)                                                                          \
    X(sgd)                                                                                     \
    X(adam)

#define OPTIMIZER_DECLARE(name) extern const struct optimizer_class optimizer_##name;
OPTIMIZERS(OPTIMIZER_DECLARE)

extern const struct config_family optimizer_family;
extern const struct config_family schedule_family; /* schedule.c */

const struct optimizer_class *optimizer_of(const struct config_class *class);

/* The learning rate after `step` steps. */
struct edge schedule_build(struct build *m, const struct config *schedule, struct edge step);

/* The rate that a person would name: of a schedule its first. */
double optimizer_rate(const struct config *config);

/*
 * Updates of all trainable weights of m by `gradients` (one for each, in their order); the
 * nodes to wait for are written to `updates`, which has room for optimizer_updates_max().
 */
void optimizer_build(struct build *m, const struct config *config, const struct edge *gradients,
                     struct node *after, struct node **updates, int *updates_count);
int optimizer_updates_max(const struct build *m);

/* --- for optimizers --- */

/* A variable of the shape of the weight beside it, which starts with `value`. */
struct edge optimizer_slot(struct optimizer_call *call, const char *suffix, double value);

/* A scalar variable that all share. */
struct edge optimizer_scalar(struct optimizer_call *call, const char *name, double value);

/* An op without outputs that changes variables. */
void optimizer_update(struct optimizer_call *call, const char *op, const struct edge *inputs,
                      int inputs_count, const struct attr *attrs, int attrs_count);
