/* rewrite.c - replacements noted by output, done all at once. */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/internal.h"
#include "runtime/rewrite.h"

void rewrite_init(struct rewrite *rewrite, struct subgraph *subgraph)
{
    const struct graph *graph = subgraph->graph;
    *rewrite = (struct rewrite){.subgraph = subgraph, .count = graph_count(graph)};
    rewrite->first_output = alloc_array((size_t)rewrite->count + 1, sizeof(int));
    for (int i = 0; i < rewrite->count; i++)
        rewrite->first_output[i + 1] =
            rewrite->first_output[i] + graph_node(graph, i)->outputs_count;
    size_t outputs = (size_t)rewrite->first_output[rewrite->count];
    rewrite->to = alloc_array(outputs, sizeof(struct edge));
    rewrite->controls = alloc_array((size_t)rewrite->count, sizeof(struct node *));
}

static int index_of(const struct rewrite *rewrite, struct edge edge)
{
    return rewrite->first_output[edge.from->id] + edge.output;
}

void rewrite_edge(struct rewrite *rewrite, struct edge from, struct edge to)
{
    assert(from.from->id < rewrite->count);
    assert(from.from->output_types[from.output] == to.from->output_types[to.output]);
    rewrite->to[index_of(rewrite, from)] = to;
}

void rewrite_controls(struct rewrite *rewrite, struct node *from, struct node *to)
{
    rewrite->controls[from->id] = to;
}

struct edge rewrite_now(const struct rewrite *rewrite, struct edge edge)
{
    while (edge.from->id < rewrite->count) {
        struct edge next = rewrite->to[index_of(rewrite, edge)];
        if (!next.from)
            break;
        edge = next;
    }
    return edge;
}

static struct node *control_now(const struct rewrite *rewrite, struct node *node)
{
    while (node->id < rewrite->count && rewrite->controls[node->id])
        node = rewrite->controls[node->id];
    return node;
}

void rewrite_apply(struct rewrite *rewrite)
{
    struct subgraph *subgraph = rewrite->subgraph;
    for (int i = 0; i < graph_count(subgraph->graph); i++) {
        struct node *node = graph_node(subgraph->graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            struct edge now = rewrite_now(rewrite, node->inputs[k]);
            if (now.from != node->inputs[k].from || now.output != node->inputs[k].output)
                graph_set_input(subgraph->graph, node, k, now);
        }
        for (int k = 0; k < node->controls_count; k++)
            ((struct node **)node->controls)[k] = control_now(rewrite, node->controls[k]);
    }
    for (int i = 0; i < subgraph->fetches_count; i++)
        subgraph->fetches[i] = rewrite_now(rewrite, subgraph->fetches[i]);
    free(rewrite->first_output);
    free(rewrite->to);
    free(rewrite->controls);
    *rewrite = (struct rewrite){0};
}
