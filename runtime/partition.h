/*
 * partition.h - a placed graph cut into one part for each task.
 *
 * An edge between two devices of different tasks becomes a pair of nodes, _Send and _Recv (one
 * pair for a tensor and a device that reads it), that meet at the step's rendezvous.  A control
 * edge carries an empty tensor.  What is fed and fetched passes through the client's device.
 *
 * A loop that lies on several tasks is run by each of them: every one that has a node of it
 * gets a small loop of its own that turns as often, as it receives the loop's condition.
 */
#pragma once

#include "runtime/graph.h"

struct cost_model;
struct device;
struct error;
struct subgraph;

struct partition_options {
    const struct device *client;    /* where feeds come from and fetches go to */
    const char *const *fetch_names; /* as the run gives them */
    bool compress;                  /* floats travel as bfloat16 */
    bool shaped; /* variables and feeds have the shapes that they declare: who receives what was
                    made of them knows its shape */
    const struct cost_model *costs; /* what was measured; NULL: nothing */
    /* All that nodes may be on; NULL where each value is wanted by itself, as by runs in
     * several calls. */
    const struct device *devices;
    int devices_count;
    /* How many pairs there were so far (atomic): they are numbered on from it, as a worker may
     * keep a stateful node by its name for as long as the session lasts. */
    int *pairs;
};

struct partition_part {
    const struct device *device; /* one of the task's */
    struct graph *graph;         /* a view of the whole; all nodes have devices */
};

/* What crosses from or to the client. */
struct partition_end {
    int index; /* of the run's feed or fetch */
    char *key; /* at the rendezvous of the client's task */
};

struct partition_parts {
    struct partition_part *parts;
    int count;
    struct partition_end *feeds; /* those that are needed */
    int feeds_count;
    struct partition_end *fetches; /* each edge once */
    int fetches_count;
    int *fetch_of; /* by the run's fetch: which of `fetches` */
};

/*
 * Cuts `whole`, whose nodes are all placed; it gets nodes for its loops.  `parts` borrows from
 * it.  Fails with INVALID when a loop over several tasks has no LoopCond, or frames do not
 * nest.
 */
bool partition_split(struct subgraph *whole, const struct partition_options *options,
                     struct partition_parts *parts, struct error *err) CHECKED;
void partition_release(struct partition_parts *parts);

/* --- partition_flow.c: devices of control flow, and frames --- */

struct partition_loop {
    const char *name;
    int parent;
    const struct node *enter; /* the first that leads in */
    struct node *cond;        /* its LoopCond, NULL: none */
    bool crossed;             /* an edge in it leads to another device */
};

struct partition_flow {
    int *in;  /* by node id: the loop in which it runs, 0: none */
    int *out; /* the one of its outputs */
    int nodes_count;
    struct partition_loop *loops;
    int loops_count;
    int loops_capacity;
    const struct device **devices; /* that have nodes */
    int devices_count;
    struct node *
        *turns; /* by loop and device: what a receive there runs after, NULL: nothing */
};

/*
 * Puts Switch, Exit, Enter and NextIteration beside what they belong to, finds the frames of
 * all `needed` nodes (by id), and adds the loops that turn with those of other devices.
 */
bool partition_flow_init(struct partition_flow *flow, struct subgraph *whole,
                         const bool *needed, struct error *err) CHECKED;
void partition_flow_release(struct partition_flow *flow);

/* What a receive on `device` of an output of `from` runs after; NULL: nothing. */
struct node *partition_flow_turn(const struct partition_flow *flow, const struct node *from,
                                 const struct device *device);

/* --- partition_together.c: small values that go to another device together --- */

struct together {
    const struct device *to;
    struct edge *members; /* of one device */
    int count;
    struct node *node; /* who gives them there: the cutter's */
};

struct partition_together;

/*
 * Finds values of the whole that go together, none where `options` wants each by itself.  All
 * is borrowed.  Fails with INVALID on a cycle.
 */
struct partition_together *partition_together_new(const struct subgraph *whole,
                                                  const bool *needed,
                                                  const struct partition_options *options,
                                                  struct error *err) CHECKED;
void partition_together_free(struct partition_together *together); /* NULL is fine */

/* Those with which `from` goes to the device; NULL: it goes alone.  `*index`: which it is. */
struct together *partition_together_find(const struct partition_together *together,
                                         struct edge from, const struct device *to, int *index);

/* --- partition_late.c: receives that wait until shortly before their values are read --- */

struct partition_late;

/*
 * Decides for all that tasks receive; `client` is who fetches, `costs` may be NULL, and all is
 * borrowed.  Where values that come early and large are not read before others are done with,
 * a task that keeps fewer of them at a time has its receives wait; where it would be no less
 * memory, or might take longer, all begin with the step.
 */
struct partition_late *partition_late_new(const struct subgraph *whole, const bool *needed,
                                          const struct partition_flow *flow,
                                          const struct device *client,
                                          const struct cost_model *costs,
                                          struct error *err) CHECKED;
void partition_late_free(struct partition_late *late); /* NULL is fine */

/* The node of the whole, on the task of `to`, after which `from` is received there; NULL: none.
 */
struct node *partition_late_after(const struct partition_late *late, struct edge from,
                                  const struct device *to);

/* --- partition_after.c: variables by reference that another task reads after an update --- */

struct partition_after;

/* All is borrowed.  Fails with INVALID on a cycle. */
struct partition_after *partition_after_new(const struct subgraph *whole, const bool *needed,
                                            struct error *err) CHECKED;
void partition_after_free(struct partition_after *after); /* NULL is fine */

struct partition_before {
    struct node **nodes; /* to be freed */
    int count;
};

/*
 * Of the controls of `reader` those that are, or come after, an update of the variable that it
 * reads from another task; none: it may be read at any time.
 */
struct partition_before partition_after_find(const struct partition_after *after,
                                             const struct node *reader, struct edge read);
