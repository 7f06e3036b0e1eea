/*
 * making.h - a benchmark's model in the making: its variables and how they start.
 *
 * Trained variables are numbered as they come; the number says which stream of bench_number()
 * a matrix or filter starts with.
 */
#pragma once

#include "runtime/builder.h"
#include "runtime/tensor.h"
#include "tests/bench/cases.h"

enum { MAKING_VARIABLES_MAX = 64 };

struct making {
    struct builder b;
    struct edge handles[MAKING_VARIABLES_MAX]; /* trained variables */
    int count;
    struct node *starts[4 * MAKING_VARIABLES_MAX]; /* what BENCH_INIT runs */
    int starts_count;
    struct node *updates[2 * MAKING_VARIABLES_MAX]; /* what BENCH_TRAIN runs */
    int updates_count;
};

/* A node without attributes, named after its op. */
struct edge making_add(struct making *m, const char *op, const struct edge *inputs, int count);

/* The handle of a variable that is not trained and starts as `value`, which is released. */
struct edge making_variable(struct making *m, const char *name, struct tensor *value);

/* The same, all elements `number`. */
struct edge making_filled(struct making *m, const char *name, const struct shape *shape,
                          double number);

struct edge making_read_variable(struct making *m, struct edge handle);

/*
 * The value of a trained variable, uniform between -1/sqrt(fan in) and that; and of a vector
 * that starts as `start`.
 */
struct edge making_weights(struct making *m, const struct shape *shape);
struct edge making_vector(struct making *m, int64_t count, double start);

/* x * weights + bias. */
struct edge making_dense(struct making *m, struct edge x, int64_t in, int64_t out);

/* Adds the updates of all trained variables to m->updates. */
void making_optimizer(struct making *m, const struct bench_case *c,
                      const struct edge *gradients);

/* The models: from what is fed to the logits. */
struct edge making_softmax(struct making *m, const struct bench_case *c, struct edge x);
struct edge making_perceptron(struct making *m, const struct bench_case *c, struct edge x);
struct edge making_network(struct making *m, const struct bench_case *c, struct edge x);
struct edge making_resnet(struct making *m, const struct bench_case *c, struct edge x);
