/* place.h - a device for each node, with reasons. */
#pragma once

#include "runtime/graph.h"

struct cost_model;
struct str;

enum place_reason {
    PLACE_ONLY,      /* there is one device, and it can */
    PLACE_REQUESTED, /* the wish leaves one device */
    PLACE_WITH,      /* colocated with the node that leads the group */
    PLACE_KERNEL,    /* the only device that has a kernel */
    PLACE_FIRST,     /* several can: the first by type, home before others, then by name */
    PLACE_KEPT,      /* it had one before */
    PLACE_NEAR,      /* where its readers are, or its input */
    PLACE_COST,      /* where it is done soonest, by what it and its inputs cost */
};

struct decision {
    const struct node *node;
    const struct node
        *leader; /* of the group of nodes that must be together; the node if alone */
    enum place_reason reason;
    float *done_us; /* by device: when it would be done there, -1: it cannot be there; NULL: by
                       another reason */
};

struct placement {
    const struct device *devices;
    int devices_count;
    struct decision *decisions; /* by node id */
    int count;
    double makespan_us; /* of a step, by the simulation; 0: there was none */
};

struct place_options {
    bool soft; /* where a wish cannot be met, only its task counts */
    bool keep; /* nodes that have a device stay there, and theirs with them */
    const struct device
        *home; /* of several devices, those of its task come first; NULL: none */
    const struct cost_model *costs; /* where several devices are left, the one where the node is
                                       done soonest; NULL: the first by type, home and name */
};

/*
 * Sets node->device on all nodes.  `placement` is filled, to be given to place_release(). Fails
 * with INVALID when a wish is malformed or cannot be met, or no kernel exists.
 */
bool place_graph_over(struct graph *graph, const struct device *devices, int devices_count,
                      const struct place_options *options, struct placement *placement,
                      struct error *err) CHECKED;
/* With neither option. */
bool place_graph(struct graph *graph, const struct device *devices, int devices_count,
                 struct placement *placement, struct error *err) CHECKED;
/* What the executor does itself; it can be anywhere. */
bool place_needs_no_kernel(const struct node *node);
void place_release(struct placement *placement);

/* Appends one JSON object for the node: device, request, reason and candidates. */
void place_explain(const struct placement *placement, const struct node *node,
                   struct str *json);
