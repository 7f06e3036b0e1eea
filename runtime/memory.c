/* memory.c - lifetimes of a plan's tensors, in the order of its nodes. */

#include "runtime/memory.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"

struct estimator {
    const struct subgraph *subgraph;
    const struct graph *graph;
    const int *order;
    bool *needed;
    struct memory_lives *lives;
};

static int index_of(const struct estimator *e, struct edge edge)
{
    return e->lives->shapes.first_output[edge.from->id] + edge.output;
}

static struct memory_life *value_at(const struct estimator *e, struct edge edge)
{
    return &e->lives->values[index_of(e, edge)];
}

/* More than any tensor can have (LIMIT_TENSOR_BYTES); so many that all nodes' do not overflow.
 */
#define MEMORY_TENSOR_BYTES (INT64_C(1) << 40)

static int64_t bytes_of(int dtype, const struct shape *shape)
{
    int64_t count = shape_count(shape), size = (int64_t)dtype_size(dtype);
    if (count < 0)
        return -1;
    return size && count > MEMORY_TENSOR_BYTES / size ? MEMORY_TENSOR_BYTES : count * size;
}

bool memory_passes_on(const struct node *node)
{
    static const char *const ops[] = {"Identity",   "Reshape",      "Squeeze",
                                      "ExpandDims", "StopGradient", "PreventGradient"};
    for (int i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(ops[i], node->op->name))
            return true;
    return false;
}

/* Feeds, constants and variables have memory of their own, which a read shares. */
static bool is_held(const struct node *node)
{
    return node->op != &prune_arg && strcmp(node->op->name, "Const") != 0 &&
           strcmp(node->op->name, "ReadVariableOp") != 0;
}

/* Positions of the first and the last node that need each value. */
static void find_lives(struct estimator *e)
{
    int nodes = graph_count(e->graph);
    for (int at = 0; at < nodes; at++) {
        struct node *node = graph_node(e->graph, e->order[at]);
        for (int i = 0; i < node->outputs_count; i++) {
            struct edge edge = {node, i};
            struct memory_life *value = value_at(e, edge);
            bool held =
                e->needed[node->id] && is_held(node) && !dtype_is_ref(node->output_types[i]);
            *value = (struct memory_life){
                .node = node, .output = i, .first = at, .used = at, .last = at};
            value->root = index_of(e, edge);
            if (held)
                value->bytes =
                    bytes_of(node->output_types[i], shapes_at(&e->lives->shapes, edge));
        }
        for (int i = 0; e->needed[node->id] && i < node->inputs_count; i++)
            value_at(e, node->inputs[i])->used = value_at(e, node->inputs[i])->last = at;
    }
    for (int i = 0; i < e->subgraph->fetches_count; i++) {
        struct memory_life *value = value_at(e, e->subgraph->fetches[i]);
        value->used = value->last = nodes;
    }
}

/* An input whose memory output 0 may take: passed on, or used up here and as large. */
static int host_of(const struct estimator *e, const struct node *node, int at)
{
    const struct memory_life *out = value_at(e, (struct edge){(struct node *)node, 0});
    if (memory_passes_on(node) && node->inputs_count)
        return index_of(e, node->inputs[0]);
    if (node->op->flags & OP_EXPENSIVE)
        return -1; /* products read their inputs more than once */
    for (int i = 0; i < node->inputs_count; i++) {
        const struct memory_life *in = value_at(e, node->inputs[i]);
        const struct memory_life *root = &e->lives->values[in->root];
        if (out->bytes > 0 && root->bytes == out->bytes && root->last == at && in->last == at)
            return in->root;
    }
    return -1;
}

static void share(struct estimator *e)
{
    struct memory_life *values = e->lives->values;
    for (int at = 0; at < graph_count(e->graph); at++) {
        struct node *node = graph_node(e->graph, e->order[at]);
        if (!e->needed[node->id] || !node->outputs_count || !is_held(node))
            continue;
        struct memory_life *out = value_at(e, (struct edge){node, 0});
        int host = host_of(e, node, at);
        if (host < 0 || !values[values[host].root].bytes)
            continue;
        out->root = values[host].root;
        if (out->last > values[out->root].last)
            values[out->root].last = out->last;
    }
}

static int by_size(const void *a, const void *b)
{
    const struct memory_tensor *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : x->node->id - y->node->id;
}

static void list_alive(const struct estimator *e, int at, struct memory_estimate *out)
{
    int capacity = 0;
    for (int v = 0; v < e->lives->count; v++) {
        const struct memory_life *value = &e->lives->values[v];
        if (value->root != v || value->bytes <= 0 || value->first > at || value->last < at)
            continue;
        struct edge edge = {(struct node *)value->node, value->output};
        out->tensors =
            alloc_grow(out->tensors, out->tensors_count, &capacity, sizeof(*out->tensors));
        out->tensors[out->tensors_count++] =
            (struct memory_tensor){.node = value->node,
                                   .output = value->output,
                                   .dtype = value->node->output_types[value->output],
                                   .shape = *shapes_at(&e->lives->shapes, edge),
                                   .bytes = value->bytes};
    }
    if (out->tensors_count)
        qsort(out->tensors, (size_t)out->tensors_count, sizeof(*out->tensors), by_size);
}

/* The position with the most bytes alive; those are listed. */
static void find_peak(const struct estimator *e, struct memory_estimate *out)
{
    int nodes = graph_count(e->graph);
    int64_t *change = alloc_array((size_t)nodes + 2, sizeof(*change)), now = 0;
    for (int v = 0; v < e->lives->count; v++) {
        const struct memory_life *value = &e->lives->values[v];
        if (value->bytes < 0)
            out->unknown++;
        if (value->root != v || value->bytes <= 0)
            continue;
        change[value->first] += value->bytes;
        change[value->last + 1] -= value->bytes;
    }
    for (int at = 0; at < nodes; at++) {
        now += change[at];
        if (now > out->peak_bytes)
            out->peak_bytes = now, out->position = at;
    }
    out->at = nodes ? graph_node(e->graph, e->order[out->position]) : NULL;
    list_alive(e, out->position, out);
    free(change);
}

static void add_held(const struct estimator *e, struct memory_estimate *out)
{
    for (int i = 0; i < graph_count(e->graph); i++) {
        const struct node *node = graph_node(e->graph, i);
        const struct tensor *value = node_attr_tensor(node, "value");
        const struct shape *shape = node_attr_shape(node, "shape");
        bool variable = !strcmp(node->op->name, "VarHandleOp") ||
                        !strcmp(node->op->name, "VariableV2") ||
                        !strcmp(node->op->name, "Variable");
        int64_t bytes = 0;
        if (!e->needed[i])
            continue;
        if (!strcmp(node->op->name, "Const") && value)
            out->constant_bytes += (int64_t)tensor_bytes(value);
        else if (variable && shape)
            bytes = bytes_of(node_attr_type(node, "dtype"), shape);
        else if (node->op == &prune_arg)
            bytes =
                bytes_of(node->output_types[0],
                         shapes_at(&e->lives->shapes, (struct edge){(struct node *)node, 0}));
        *(variable ? &out->variable_bytes : &out->feed_bytes) += bytes > 0 ? bytes : 0;
        out->unknown += bytes < 0;
    }
}

void memory_lives_of(const struct subgraph *subgraph, const int *order,
                     struct memory_lives *out)
{
    struct graph *graph = subgraph->graph;
    struct estimator e = {subgraph, graph, order, prune_needed(subgraph), out};
    *out = (struct memory_lives){.shapes = {.declared = true}};
    shapes_infer(&out->shapes, graph, order, graph_count(graph));
    out->count = out->shapes.first_output[graph_count(graph)];
    out->values = alloc_array((size_t)out->count + 1, sizeof(*out->values));
    find_lives(&e);
    share(&e);
    free(e.needed);
}

void memory_lives_release(struct memory_lives *lives)
{
    shapes_release(&lives->shapes);
    free(lives->values);
    *lives = (struct memory_lives){0};
}

void memory_of_lives(const struct memory_lives *lives, const struct subgraph *subgraph,
                     const int *order, struct memory_estimate *out)
{
    struct estimator e = {subgraph, subgraph->graph, order, prune_needed(subgraph),
                          (struct memory_lives *)lives};
    *out = (struct memory_estimate){0};
    find_peak(&e, out);
    add_held(&e, out);
    free(e.needed);
}

void memory_of_plan(const struct plan *plan, struct memory_estimate *out)
{
    const int *order = graph_order(plan->subgraph->graph);
    struct memory_lives lives;
    memory_lives_of(plan->subgraph, order, &lives);
    memory_of_lives(&lives, plan->subgraph, order, out);
    memory_lives_release(&lives);
}

void memory_release(struct memory_estimate *estimate)
{
    free(estimate->tensors);
    *estimate = (struct memory_estimate){0};
}

int64_t memory_total(const struct memory_estimate *estimate)
{
    return estimate->peak_bytes + estimate->constant_bytes + estimate->variable_bytes +
           estimate->feed_bytes;
}
