/*
 * order.h - nodes after their inputs and controls, for graph.c.
 *
 * Edges from NextIteration close loops and do not order.
 */
#pragma once

#include "runtime/graph.h"

/* Whether each node comes after what it reads already, so that ids are an order. */
bool order_is_given(const struct graph *graph);

/*
 * Fills `order` with all ids, always the first in turn of those that are ready.  Fails with
 * INVALID on a cycle, naming nodes on it.
 */
bool order_nodes(const struct graph *graph, int *order, struct error *err) CHECKED;
