/*
 * memory.h - what a plan will take, before it runs: which tensors are alive together.
 *
 * Sizes are those that shape inference finds.  Outputs that pass an input on, or may be made
 * in its place, take nothing; so the sum is what at least is needed, scratch memory of kernels
 * aside.
 */
#pragma once

#include "runtime/shapes.h"

struct node;
struct plan;
struct subgraph;

/* An output of a node, from the place in the order where it is made to that of its last use. */
struct memory_life {
    const struct node *node;
    int output;
    int root;        /* the value whose memory it has; itself when its own */
    int first, used; /* made, and used last */
    int last;        /* of a root also for those that share its memory */
    int64_t bytes;   /* -1: not known; 0 for what the plan does not hold */
};

struct memory_lives {
    struct shapes shapes;
    struct memory_life *values; /* by number as in `shapes` */
    int count;
};

/* Of the graph as it is now, whose nodes `order` sorts; to be given to memory_lives_release().
 */
void memory_lives_of(const struct subgraph *subgraph, const int *order,
                     struct memory_lives *out);
void memory_lives_release(struct memory_lives *lives);

/* Whether it gives on what comes in, perhaps with another shape: its output has that memory. */
bool memory_passes_on(const struct node *node);

struct memory_tensor {
    const struct node *node; /* that makes it */
    int output;
    int dtype;
    struct shape shape;
    int64_t bytes;
};

struct memory_estimate {
    int64_t peak_bytes;     /* most that is alive at once, but for the following */
    int64_t constant_bytes; /* held by the plan */
    int64_t variable_bytes; /* of those that the plan uses, as they are declared */
    int64_t feed_bytes;
    const struct node *at;         /* during which the peak is */
    int position;                  /* its place in the order */
    struct memory_tensor *tensors; /* alive then, the largest first */
    int tensors_count;
    int unknown; /* tensors whose size is not known before the run */
};

/* To be given to memory_release(). */
void memory_of_plan(const struct plan *plan, struct memory_estimate *out);
void memory_of_lives(const struct memory_lives *lives, const struct subgraph *subgraph,
                     const int *order, struct memory_estimate *out);
void memory_release(struct memory_estimate *estimate);

/* All that is needed at once. */
int64_t memory_total(const struct memory_estimate *estimate);
