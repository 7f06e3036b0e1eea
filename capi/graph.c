/* graph.c - graphs: looking up, import and export, gradients. */

#include <stdlib.h>

#include "base/alloc.h"
#include "capi/internal.h"
#include "runtime/gradient.h"
#include "runtime/shapes.h"

struct ty_graph *ty_graph_new(void)
{
    capi_start();
    struct ty_graph *graph = alloc_bytes(sizeof(*graph));
    pthread_mutex_init(&graph->lock, NULL);
    graph->graph = graph_new();
    graph->references = 1;
    return graph;
}

void capi_graph_unref(struct ty_graph *graph)
{
    if (__atomic_sub_fetch(&graph->references, 1, __ATOMIC_ACQ_REL))
        return;
    graph_free(graph->graph);
    pthread_mutex_destroy(&graph->lock);
    free(graph);
}

void ty_graph_free(struct ty_graph *graph)
{
    if (graph)
        capi_graph_unref(graph);
}

struct ty_operation *ty_graph_operation(struct ty_graph *graph, const char *name)
{
    pthread_mutex_lock(&graph->lock);
    struct node *node = graph_find(graph->graph, name);
    pthread_mutex_unlock(&graph->lock);
    return capi_operation(node);
}

struct ty_operation *ty_graph_next_operation(struct ty_graph *graph, size_t *position)
{
    pthread_mutex_lock(&graph->lock);
    struct node *node = *position < (size_t)graph_count(graph->graph)
                            ? graph_node(graph->graph, (int)*position)
                            : NULL;
    *position += node != NULL;
    pthread_mutex_unlock(&graph->lock);
    return capi_operation(node);
}

int ty_graph_shape(struct ty_graph *graph, struct ty_output output, int64_t *dims, int dims_max,
                   struct ty_status *status)
{
    struct error err;
    int rank = -1;
    pthread_mutex_lock(&graph->lock);
    struct edge edge = capi_edge(output);
    bool ok = edge.output >= 0 && edge.output < edge.from->outputs_count;
    if (!ok)
        fail(&err, OUT_OF_RANGE, "'%s' has no output %d", edge.from->name, edge.output);
    int *order = ok ? graph_sorted(graph->graph, &err) : NULL;
    if (order) {
        struct shapes shapes = {.declared = true};
        shapes_infer(&shapes, graph->graph, order, graph_count(graph->graph));
        const struct shape *shape = shapes_at(&shapes, edge);
        rank = shape->rank;
        for (int i = 0; i < rank && i < dims_max; i++)
            dims[i] = shape->dims[i];
        shapes_release(&shapes);
        free(order);
    } else {
        ok = false;
    }
    pthread_mutex_unlock(&graph->lock);
    capi_result(status, ok, &err);
    return rank;
}

void ty_graph_export(struct ty_graph *graph, struct ty_buffer *graph_def,
                     struct ty_status *status)
{
    str_clear(&graph_def->bytes);
    pthread_mutex_lock(&graph->lock);
    graph_export(graph->graph, false, 0, &graph_def->bytes);
    pthread_mutex_unlock(&graph->lock);
    capi_result(status, true, NULL);
}

/* --- import --- */

struct ty_import_options *ty_import_options_new(void)
{
    return alloc_bytes(sizeof(struct ty_import_options));
}

void ty_import_options_free(struct ty_import_options *options)
{
    if (!options)
        return;
    for (int i = 0; i < options->count; i++)
        free(options->mappings[i].name);
    free(options->mappings);
    free(options->prefix);
    free(options);
}

void ty_import_options_set_prefix(struct ty_import_options *options, const char *prefix)
{
    free(options->prefix);
    options->prefix = alloc_text(prefix);
}

void ty_import_options_map(struct ty_import_options *options, const char *name, int index,
                           struct ty_output output)
{
    options->mappings = alloc_grow(options->mappings, options->count, &options->capacity,
                                   sizeof(*options->mappings));
    options->mappings[options->count++] =
        (struct capi_mapping){alloc_printf("%s:%d", name, index), output};
}

void ty_graph_import(struct ty_graph *graph, const struct ty_buffer *graph_def,
                     const struct ty_import_options *options, struct ty_status *status)
{
    struct error err;
    struct str renamed = {0};
    const struct str *bytes = &graph_def->bytes;
    bool ok = true;
    if (options && (options->prefix || options->count)) {
        ok = capi_rename(bytes, options, &renamed, &err);
        bytes = &renamed;
    }
    pthread_mutex_lock(&graph->lock);
    ok = ok && graph_import(graph->graph, str_text(bytes), bytes->size, &err);
    pthread_mutex_unlock(&graph->lock);
    str_release(&renamed);
    capi_result(status, ok, &err);
}

/* --- gradients --- */

void ty_add_gradients(struct ty_graph *graph, const struct ty_output *ys, int ys_count,
                      const struct ty_output *xs, int xs_count, const struct ty_output *grad_ys,
                      struct ty_output *gradients, struct ty_status *status)
{
    struct error err;
    struct edge *y = alloc_array((size_t)ys_count, sizeof(*y));
    struct edge *seed = alloc_array((size_t)ys_count, sizeof(*seed));
    struct edge *x = alloc_array((size_t)xs_count, sizeof(*x));
    struct edge *made = alloc_array((size_t)xs_count, sizeof(*made));
    for (int i = 0; i < ys_count; i++) {
        y[i] = capi_edge(ys[i]);
        seed[i] = grad_ys ? capi_edge(grad_ys[i]) : (struct edge){0};
    }
    for (int i = 0; i < xs_count; i++)
        x[i] = capi_edge(xs[i]);
    pthread_mutex_lock(&graph->lock);
    int count = graph_count(graph->graph);
    bool ok = gradient_build(graph->graph, y, ys_count, grad_ys ? seed : NULL, x, xs_count,
                             made, &err);
    if (!ok)
        graph_truncate(graph->graph, count);
    pthread_mutex_unlock(&graph->lock);
    for (int i = 0; ok && i < xs_count; i++)
        gradients[i] = (struct ty_output){capi_operation(made[i].from), made[i].output};
    free(y);
    free(seed);
    free(x);
    free(made);
    capi_result(status, ok, &err);
}
