/*
 * rewrite.h - turns readers of one output to another, for the passes of optimise.c.
 *
 *   struct rewrite rewrite;
 *   rewrite_init(&rewrite, subgraph);
 *   ... rewrite_edge(&rewrite, (struct edge){old, 0}, (struct edge){new, 0}); ...
 *   rewrite_apply(&rewrite);
 *
 * Nothing changes before rewrite_apply().  Replacements may chain: old -> a -> b.  A node whose
 * outputs nobody reads any more is simply not needed; there is no need to remove it.
 */
#pragma once

#include "runtime/graph.h"

struct subgraph;

struct rewrite {
    struct subgraph *subgraph;
    int count;         /* nodes at the time of rewrite_init(); later ones are not rewritten */
    int *first_output; /* by node id */
    struct edge *to;   /* by output; .from NULL: stays */
    /* By node id: what takes over its control edges; NULL: it keeps them. */
    struct node **controls;
};

void rewrite_init(struct rewrite *rewrite, struct subgraph *subgraph);

/* Readers and fetches of `from` will have `to`, which has the same type (asserted). */
void rewrite_edge(struct rewrite *rewrite, struct edge from, struct edge to);

/* Nodes that run after `from` will run after `to`. */
void rewrite_controls(struct rewrite *rewrite, struct node *from, struct node *to);

/* What an output has become, through all replacements. */
struct edge rewrite_now(const struct rewrite *rewrite, struct edge edge);

/* Does all replacements in the graph and in the fetches, and releases the rewrite. */
void rewrite_apply(struct rewrite *rewrite);
