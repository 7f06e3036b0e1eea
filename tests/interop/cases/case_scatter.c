/*
 * case_scatter.c - a graph's nodes, each on a task by chance, but together what cannot be
 * apart: what shares a reference (also by an Identity of it), a resource, a variant or a name,
 * and what says so.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/graph.h"
#include "runtime/graph_file.h"
#include "runtime/op.h"
#include "tests/interop/cases/cases.h"

static int find(int *leaders, int node)
{
    while (leaders[node] != node)
        node = leaders[node] = leaders[leaders[node]];
    return node;
}

static void join(int *leaders, int a, int b)
{
    leaders[find(leaders, a)] = find(leaders, b);
}

static bool stays(const struct edge *edge)
{
    const struct node *from = edge->from;
    if (!from || edge->output >= from->outputs_count)
        return false;
    int dtype = from->output_types[edge->output];
    bool aliases = !strcmp(from->op->name, "Identity") && stays(&from->inputs[0]);
    return aliases || dtype_is_ref(dtype) || dtype == RESOURCE || dtype == VARIANT;
}

/* "loc:@name" */
static void join_classes(struct graph *graph, const struct node *node, int *leaders)
{
    const struct attr *classes = node_attr(node, "_class");
    for (int i = 0; classes && classes->kind == ATTR_STRING && i < classes->count; i++) {
        const struct attr_bytes *text = &classes->strings[i];
        const struct node *other = text->size > 5 ? graph_find(graph, text->data + 5) : NULL;
        if (other)
            join(leaders, node->id, other->id);
    }
}

/* Those of one shared name are one thing, in whatever container. */
static void join_names(struct graph *graph, struct map *names, const struct node *node,
                       int *leaders)
{
    const struct attr *name = node_attr(node, "shared_name");
    if (!name || name->kind != ATTR_STRING || !name->strings[0].size)
        return;
    struct node *first = map_find(names, name->strings[0].data);
    if (first)
        join(leaders, node->id, first->id);
    else
        map_set(names, name->strings[0].data, graph_node(graph, node->id));
}

bool case_scatter(const void *graph_def, size_t size, const char *const *tasks, int tasks_count,
                  uint64_t seed, struct str *out)
{
    struct error ignored;
    struct graph *graph = graph_new();
    if (!graph_import(graph, graph_def, size, &ignored)) {
        graph_free(graph);
        return false;
    }
    int count = graph_count(graph);
    int *leaders = alloc_array((size_t)count + 1, sizeof(*leaders));
    struct map *names = map_new();
    for (int i = 0; i < count; i++)
        leaders[i] = i;
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            if (stays(&node->inputs[k]))
                join(leaders, i, node->inputs[k].from->id);
        }
        join_classes(graph, node, leaders);
        join_names(graph, names, node, leaders);
    }
    map_free(names);
    for (int i = 0; i < count; i++) {
        uint64_t x = (seed + (uint64_t)find(leaders, i)) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
        graph_node(graph, i)->requested_device = tasks[(x >> 33) % (uint64_t)tasks_count];
    }
    graph_export(graph, false, 0, out);
    free(leaders);
    graph_free(graph);
    return true;
}
