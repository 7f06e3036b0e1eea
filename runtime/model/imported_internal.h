/* imported_internal.h - what the parts of the import of a MetaGraphDef share. */
#pragma once

#include "runtime/meta_graph.h"
#include "runtime/model/build.h"
#include "runtime/spec/spec.h"

#define IMPORTED_POINTER "/model/graph"
#define IMPORTED_SCOPE "trainyard/" /* in front of the names of what is added */

struct importing {
    struct build m;
    const struct spec *spec;
    const struct model_data *data;
    struct meta_graph meta;
    int nodes_count;      /* that the graph came with */
    struct edge examples; /* how many a batch has, (1) float; a feed of the first feature */
    struct model_variable *variables;
    int variables_count;
    struct model_metric *metrics;
};

/* Whatever fails from here on is wrong at that field. */
void imported_at(struct importing *g, const char *field);

/* The tensor "x:0" or node "x" that `name` of a field means; no node after a failure. */
struct edge imported_find(struct importing *g, const char *name);

/* Whether the node is a placeholder that has no default. */
bool imported_is_placeholder(const struct node *node);

/* Feeds the data to the placeholders that take it (imported_feed.c). */
void imported_feed(struct importing *g);

/* Finds the variables of all that a step, an evaluation or a prediction (of `output`, which may
 * be NULL) runs; refuses what nothing is fed to (imported_variables.c). */
void imported_variables(struct importing *g, const char *output);
