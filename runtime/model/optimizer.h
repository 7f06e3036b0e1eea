/*
 * optimizer.h - how gradients change variables, by Keras's rules.
 *
 * What all optimizers share (the learning rate and its schedule, clipping, weight decay,
 * accumulated gradients, moving averages, constraints) is done around them; one of them is the
 * rule for a single variable.
 */
#pragma once

#include "runtime/model/build.h"

struct optimizer_call {
    struct build *m;
    const struct config *config;
    struct edge rate;   /* the learning rate of this step, a float scalar */
    struct edge step;   /* updates before this one, int64 */
    struct edge count;  /* this one counted, as a float */
    struct node *after; /* every update waits for it */
    struct node **updates;
    int updates_count;
    void *state; /* the class's own, from begin() to end() */

    /* Of the variable that is updated: */
    int weight;           /* -1: none */
    struct edge variable; /* its handle */
    struct edge gradient;
};

struct optimizer_class {
    struct config_class config;
    double learning_rate; /* Keras's default */
    double weight_decay;  /* the same; 0: none */
    /* (optional) Before the first variable: what all of them share. */
    void (*begin)(struct optimizer_call *call);
    void (*update)(struct optimizer_call *call);
    /* (optional) After the last one. */
    void (*end)(struct optimizer_call *call);
};

#define OPTIMIZERS(X)                                                                          \
    X(sgd)                                                                                     \
    X(adam)                                                                                    \
    X(adamw)                                                                                   \
    X(adagrad)                                                                                 \
    X(rmsprop)                                                                                 \
    X(adadelta)                                                                                \
    X(adamax)                                                                                  \
    X(nadam)                                                                                   \
    X(ftrl)                                                                                    \
    X(lion)

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

/* The handle of a variable of the shape of the weight beside it, which starts with `value`. */
struct edge optimizer_slot(struct optimizer_call *call, const char *suffix, double value);

/* That of a scalar variable that all share. */
struct edge optimizer_scalar(struct optimizer_call *call, const char *name, double value);

/* What a variable holds when the update begins. */
struct edge optimizer_read(struct optimizer_call *call, struct edge handle);
void optimizer_assign(struct optimizer_call *call, struct edge handle, struct edge value);

/* variable -= change */
void optimizer_subtract(struct optimizer_call *call, struct edge change);

/* keep * x + (1 - keep) * y */
struct edge optimizer_blend(struct optimizer_call *call, double keep, struct edge x,
                            struct edge y);

/*
 * The gradient's squares.  Where rows were looked up (an Embedding), those of each lookup are
 * added, also when several were of one row: as Keras does it.
 */
struct edge optimizer_squares(struct optimizer_call *call);
bool optimizer_is_looked_up(const struct optimizer_call *call);

/* An op without outputs that changes variables. */
void optimizer_update(struct optimizer_call *call, const char *op, const struct edge *inputs,
                      int inputs_count, const struct attr *attrs, int attrs_count);
