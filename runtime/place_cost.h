/*
 * place_cost.h - a step as it would run on some devices: when each node is done.
 *
 * Greedy: nodes come in the order of their edges; a device works on one after the other, and a
 * value that is on another device travels first.  Nobody waits for what he does not read.
 */
#pragma once

struct cost_model;
struct device;
struct graph;
struct node;
struct place_simulation;
struct shapes;

/* `order` is graph_sorted() of the graph, borrowed as the rest. */
struct place_simulation *place_cost_new(const struct graph *graph, const int *order,
                                        const struct device *devices, int devices_count,
                                        const struct cost_model *costs);
void place_cost_free(struct place_simulation *simulation); /* NULL is fine */

/* How long `node` takes there, in microseconds; `costs` may be NULL. */
double place_cost_of(const struct cost_model *costs, const struct node *node,
                     const struct shapes *shapes, const struct device *device);

/* When `node` would be done on a device, in microseconds; those that it reads are put. */
double place_cost_at(const struct place_simulation *simulation, const struct node *node,
                     const struct device *device);

/* It is there. */
void place_cost_put(struct place_simulation *simulation, const struct node *node,
                    const struct device *device);

/* When all are done that were put; the next ones begin a step of their own. */
double place_cost_end(struct place_simulation *simulation);
