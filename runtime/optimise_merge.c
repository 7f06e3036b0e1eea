/*
 * optimise_merge.c - equal nodes with equal inputs are computed once.
 *
 * Stateful ops, references, and nodes with control edges are left alone: their time matters.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/tensor.h"

/* Larger constants are not compared. */
enum { CONST_BYTES_MAX = 4096 };

static bool can_merge(const struct node *node)
{
    if (node->op == &prune_arg || node->op->flags & OP_STATEFUL || node->controls_count ||
        node->fault || optimise_is_flow(node) || !node->outputs_count ||
        !strncmp(node->op->name, "Placeholder", 11))
        return false;
    for (int i = 0; i < node->outputs_count; i++)
        if (dtype_is_ref(node->output_types[i]))
            return false;
    for (int i = 0; i < node->inputs_count; i++) {
        const struct edge *edge = &node->inputs[i];
        if (dtype_is_ref(edge->from->output_types[edge->output]))
            return false;
    }
    const struct tensor *value = node_constant(node);
    return !value || tensor_bytes(value) <= CONST_BYTES_MAX;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_attr(uint64_t hash, const struct attr *attr)
{
    hash = mix(hash, (uint64_t)attr->kind << 32 | (uint64_t)attr->count);
    for (int i = 0; i < attr->count; i++) {
        if (attr->kind == ATTR_INT)
            hash = mix(hash, (uint64_t)attr->ints[i]);
        else if (attr->kind == ATTR_TYPE)
            hash = mix(hash, (uint64_t)attr->types[i]);
        else if (attr->kind == ATTR_TENSOR) {
            const struct tensor *tensor = &attr->tensors[i];
            hash = mix(hash, (uint64_t)tensor->dtype << 32 | (uint64_t)tensor->count);
            size_t size = BIT(tensor->dtype) & DTYPES_PLAIN ? tensor_bytes(tensor) : 0;
            for (size_t b = 0; b < size && b < 64; b++)
                hash = mix(hash, ((const uint8_t *)tensor->data)[b]);
        }
    }
    return hash;
}

static uint64_t hash_node(const struct rewrite *rewrite, const struct node *node)
{
    uint64_t hash = mix(0, (uint64_t)(uintptr_t)node->op);
    for (int i = 0; i < node->inputs_count; i++) {
        struct edge edge = rewrite_now(rewrite, node->inputs[i]);
        hash = mix(hash, (uint64_t)edge.from->id << 20 ^ (uint64_t)edge.output);
    }
    for (int i = 0; i < node->attrs_count; i++)
        if (node->attrs[i].name[0] != '_')
            hash = hash_attr(hash, &node->attrs[i]);
    return hash;
}

/* Annotations ("_class") do not change what a node computes. */
static bool same_attrs(const struct node *a, const struct node *b)
{
    for (int i = 0; i < a->attrs_count; i++) {
        if (a->attrs[i].name[0] == '_')
            continue;
        const struct attr *other = node_attr(b, a->attrs[i].name);
        if (!other || !attr_equal(&a->attrs[i], other))
            return false;
    }
    return true;
}

static bool same_node(const struct rewrite *rewrite, const struct node *a, const struct node *b)
{
    if (a->op != b->op || a->inputs_count != b->inputs_count ||
        a->outputs_count != b->outputs_count ||
        strcmp(a->requested_device, b->requested_device) != 0)
        return false;
    for (int i = 0; i < a->inputs_count; i++) {
        struct edge x = rewrite_now(rewrite, a->inputs[i]);
        struct edge y = rewrite_now(rewrite, b->inputs[i]);
        if (x.from != y.from || x.output != y.output)
            return false;
    }
    return same_attrs(a, b) && same_attrs(b, a);
}

/* Where an equal node is, or where this one goes: open addressing, id + 1. */
static int *find_slot(const struct rewrite *rewrite, const struct graph *graph, int *slots,
                      size_t slots_count, const struct node *node)
{
    for (size_t at = hash_node(rewrite, node);; at++) {
        int *slot = &slots[at & (slots_count - 1)];
        if (!*slot || same_node(rewrite, graph_node(graph, *slot - 1), node))
            return slot;
    }
}

static void merge(struct rewrite *rewrite, struct node *node, struct node *into)
{
    for (int i = 0; i < node->outputs_count; i++)
        rewrite_edge(rewrite, (struct edge){node, i}, (struct edge){into, i});
    rewrite_controls(rewrite, node, into);
}

void optimise_merge(struct subgraph *subgraph)
{
    const struct graph *graph = subgraph->graph;
    struct error err;
    int *order = graph_sorted(graph, &err);
    if (!order)
        return; /* plan_new() will say what is wrong */
    struct rewrite rewrite;
    rewrite_init(&rewrite, subgraph);
    bool *needed = prune_needed(subgraph);
    size_t slots_count = 16;
    while (slots_count < 2 * (size_t)rewrite.count)
        slots_count *= 2;
    int *slots = alloc_array(slots_count, sizeof(*slots));
    for (int i = 0; i < rewrite.count; i++) {
        struct node *node = graph_node(graph, order[i]);
        if (!needed[node->id] || !can_merge(node))
            continue;
        int *slot = find_slot(&rewrite, graph, slots, slots_count, node);
        if (!*slot)
            *slot = node->id + 1;
        else
            merge(&rewrite, node, graph_node(graph, *slot - 1));
    }
    free(order);
    free(needed);
    free(slots);
    rewrite_apply(&rewrite);
}
