/*
 * cost.h - what a node costs, before anybody has measured it: for the placement of nodes and
 * the cut of pipelines.
 *
 * Heuristic: the operations that the op does on tensors of these shapes, or the bytes that it
 * moves if they take longer, on one core of this time; and what any node costs.  A model
 * corrects it by what was measured: for each op, how much longer than that it took.
 */
#pragma once

struct cost_model;
struct node;
struct shapes;

struct cost_model *cost_model_new(void);
void cost_model_free(struct cost_model *model); /* NULL is fine */

/* A node took so long in a step.  Several threads may measure and ask at once. */
void cost_model_measured(struct cost_model *model, const struct node *node,
                         const struct shapes *shapes, double us);

/* As cost_of(), corrected. */
double cost_model_of(const struct cost_model *model, const struct node *node,
                     const struct shapes *shapes);

/* In microseconds; what is not known of a shape counts as 1. */
double cost_of(const struct node *node, const struct shapes *shapes);

/* What its outputs take in memory, all of them or one. */
double cost_bytes(const struct node *node, int output, const struct shapes *shapes);
