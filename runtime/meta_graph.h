/*
 * meta_graph.h - a MetaGraphDef as a program of TensorFlow exports it
 * (tf.compat.v1.train.export_meta_graph): its graph, and what collections and signatures call
 * the parts of it.
 */
#pragma once

#include "base/base.h"

struct error;
struct graph;

/* Names of nodes ("train"), of tensors ("loss:0") or of variables (their nodes). */
struct meta_collection {
    const char *name; /* "train_op" */
    const char *const *values;
    const char *const *initializers; /* the nodes that set the variables; else NULL */
    int count;
};

struct meta_tensor {
    const char *name;   /* in a signature: "images" */
    const char *tensor; /* "x:0" */
};

struct meta_graph {
    const struct meta_collection *collections;
    int collections_count;
    const struct meta_tensor *inputs, *outputs; /* of all signatures */
    int inputs_count, outputs_count;
};

/*
 * Reads it, binary, into the empty graph, whose arena keeps the rest.  Devices that nodes ask
 * for are not looked at.  Fails with INVALID, EXHAUSTED, and as graph_import() does.
 */
bool meta_graph_read(const void *bytes, size_t size, struct graph *graph,
                     struct meta_graph *out, struct error *err) CHECKED;

/* The collection of that name; NULL: it is not there or is empty. */
const struct meta_collection *meta_graph_find(const struct meta_graph *meta, const char *name);
