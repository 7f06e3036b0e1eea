/*
 * cost.h - what a node costs, before anybody has measured it: for the placement of nodes and
 * the cut of pipelines.
 *
 * Heuristic: the operations that the op does on tensors of these shapes, or the bytes that it
 * moves if they take longer, on one core of this time; and what any node costs.
 */
#pragma once

struct node;
struct shapes;

/* In microseconds; what is not known of a shape counts as 1. */
double cost_of(const struct node *node, const struct shapes *shapes);

/* What its outputs take in memory, all of them or one. */
double cost_bytes(const struct node *node, int output, const struct shapes *shapes);
