/* internal.h - what is behind the opaque types of runtime/trainyard.h. */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/graph.h"
#include "runtime/tensor.h"
#include "runtime/trainyard.h"

struct ty_status {
    struct error err; /* code OK: no error */
};

struct ty_buffer {
    struct str bytes;
};

/* Nothing else, so that the runtime's tensors can be shown as they are. */
struct ty_tensor {
    struct tensor tensor;
};

struct ty_graph {
    pthread_mutex_t lock; /* guards: graph */
    struct graph *graph;
    int references; /* __atomic: the owner's and one for each session */
};

/* An operation is the graph's node. */
static inline struct ty_operation *capi_operation(const struct node *node)
{
    return (struct ty_operation *)(uintptr_t)node;
}
static inline struct node *capi_node(const struct ty_operation *operation)
{
    return (struct node *)(uintptr_t)operation;
}
static inline struct edge capi_edge(struct ty_output output)
{
    return (struct edge){capi_node(output.operation), output.index};
}

/* Sets the status to what `ok` and `err` say. */
void capi_result(struct ty_status *status, bool ok, const struct error *err);

/* For what the API gets from outside: INVALID unless 0 <= rank <= the limit and dims fit. */
bool capi_shape(struct shape *shape, const int64_t *dims, int rank, bool partly,
                struct error *err) CHECKED;

void capi_graph_unref(struct ty_graph *graph);

/* Kernels and ops are there; called before anything that needs them. */
void capi_start(void);

/* --- import_pb.c --- */

struct capi_mapping {
    char *name; /* "x:0" */
    struct ty_output output;
};

struct ty_import_options {
    char *prefix; /* NULL: none */
    struct capi_mapping *mappings;
    int count, capacity;
};

/* The GraphDef with prefix and mapped inputs, appended to `out`. */
bool capi_rename(const struct str *graph_def, const struct ty_import_options *options,
                 struct str *out, struct error *err) CHECKED;

/* The GraphDef without its first `count` nodes, appended to `out`. */
bool capi_tail(const struct str *graph_def, int count, struct str *out,
               struct error *err) CHECKED;
