/*
 * lower_keep.c - a call that runs computes all its results from all its arguments.
 *
 * Once its body stands in the graph, what nobody reads would be left out, and with it the
 * errors that TensorFlow gives.  Such calls, which stand there as IdentityN, become targets of
 * the run.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/limits.h"
#include "runtime/lower.h"
#include "runtime/op.h"

bool lower_is_silent(const struct node *node)
{
    static const char *const ops[] = {"_Arg",
                                      "Placeholder",
                                      "Const",
                                      "VarHandleOp",
                                      "VariableV2",
                                      "Variable",
                                      "Identity",
                                      "IdentityN",
                                      "NoOp",
                                      "StopGradient",
                                      "PlaceholderWithDefault"};
    if (node->op->flow != FLOW_NONE)
        return true;
    for (int i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(node->op->name, ops[i]))
            return true;
    return false;
}

static void note_reader(struct lower *l, const struct node *reader, struct edge edge)
{
    for (int steps = 0; steps <= LIMIT_FUNCTION_DEPTH; steps++) {
        struct node *call = edge.from;
        if (call->id >= l->bypass_count || !l->bypass[call->id])
            return;
        if (l->whole[call->id]) {
            l->readers = alloc_grow(l->readers, l->readers_count, &l->readers_capacity,
                                    sizeof(*l->readers));
            l->readers[l->readers_count++] = (struct lower_reader){reader, call};
        }
        edge = l->bypass[call->id][edge.output];
    }
}

/* What a result is in the end. */
static const struct node *end_of(const struct lower *l, struct edge edge)
{
    for (int steps = 0; steps <= LIMIT_FUNCTION_DEPTH; steps++) {
        if (edge.from->id >= l->bypass_count || !l->bypass[edge.from->id])
            break;
        edge = l->bypass[edge.from->id][edge.output];
    }
    return edge.from;
}

void lower_note_readers(struct lower *l, const struct edge *results, int results_count)
{
    for (int i = 0; i < results_count; i++)
        note_reader(l, end_of(l, results[i]), results[i]);
    for (int i = 0; i < graph_count(l->graph); i++) {
        const struct node *node = graph_node(l->graph, i);
        for (int k = 0; k < node->inputs_count; k++)
            note_reader(l, node, node->inputs[k]);
    }
}

struct need {
    bool *needed; /* by node id */
    const struct node **stack;
};

/* Marks all that `node` needs; whether anything of it that is new can be told from silence. */
static bool need(struct need *n, const struct node *node)
{
    bool loud = false;
    int top = 0;
    if (!n->needed[node->id])
        n->stack[top++] = node;
    n->needed[node->id] = true;
    while (top) {
        const struct node *at = n->stack[--top];
        loud |= !lower_is_silent(at);
        const struct node *before;
        for (int i = 0; (before = node_before(at, i)); i++) {
            if (!n->needed[before->id])
                n->stack[top++] = before;
            n->needed[before->id] = true;
        }
    }
    return loud;
}

struct node **lower_keep(struct lower *l, const struct edge *fetches, int fetches_count,
                         struct node **targets, int *count)
{
    if (!l->readers_count)
        return targets;
    size_t nodes = (size_t)graph_count(l->graph);
    struct need n = {.needed = alloc_array(nodes, sizeof(bool)),
                     .stack = alloc_array(nodes, sizeof(*n.stack))};
    struct node **all =
        arena_array(graph_arena(l->graph), (size_t)(*count + l->readers_count), sizeof(*all));
    for (int i = 0; i < fetches_count; i++)
        need(&n, fetches[i].from);
    for (int i = 0; i < *count; i++)
        need(&n, all[i] = targets[i]);
    /* A call needed on behalf of another makes its own calls needed. */
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < l->readers_count; i++) {
            struct lower_reader *r = &l->readers[i];
            if (!r->call || !n.needed[r->reader->id])
                continue;
            more = true;
            if (need(&n, r->call))
                all[(*count)++] = r->call;
            r->call = NULL;
        }
    }
    free(n.needed);
    free(n.stack);
    return all;
}
