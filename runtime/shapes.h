/*
 * shapes.h - what is known of the shapes in a graph before it runs.
 *
 * Shapes go from feeds (as far as their placeholders declare them; session.c holds feeds to it)
 * and constants forward through the ops' shape functions.  What flows round a loop is not
 * known.
 */
#pragma once

#include "runtime/graph.h"
#include "runtime/shape.h"

struct shapes {
    int *first_output; /* by node id */
    struct shape *of;  /* by output */
    bool declared; /* set before: a reference has the shape that its variable declares, which
                      an Assign may change */
    int count, outputs_capacity, nodes_capacity; /* of shapes_extend() */
};

/* Of the first `count` nodes, which `order` (graph_sorted() of them) puts in order. */
void shapes_infer(struct shapes *shapes, const struct graph *graph, const int *order,
                  int count);

/*
 * Infers the nodes that were added to the graph since the last call, in the order of their ids;
 * starts from a zeroed struct.  Fails with the error of the first op that refuses its inputs.
 */
bool shapes_extend(struct shapes *shapes, const struct graph *graph, struct error *err) CHECKED;

void shapes_release(struct shapes *shapes);

/* Borrowed; the node was there when shapes were inferred. */
struct shape *shapes_at(const struct shapes *shapes, struct edge edge);
