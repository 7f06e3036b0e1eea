/* optimise_flow.c - what a pass must know of control flow. */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"

bool optimise_is_flow(const struct node *node)
{
    static const char *const ops[] = {
        "Switch", "RefSwitch", "_SwitchN", "Merge",         "RefMerge",         "Enter",
        "Exit",   "RefEnter",  "RefExit",  "NextIteration", "RefNextIteration", "LoopCond",
        "_Arg",   "_Retval",
    };
    const char *name = node->op->name;
    if (!strchr("SRMENLX_", name[0]))
        return false; /* most ops, soon */
    for (int i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(name, ops[i]))
            return node->op != &prune_arg;
    return false;
}

static bool is_below(const struct node *node, const bool *inner)
{
    for (int i = 0; i < node->inputs_count; i++)
        if (inner[node->inputs[i].from->id])
            return true;
    for (int i = 0; i < node->controls_count; i++)
        if (inner[node->controls[i]->id])
            return true;
    return false;
}

bool *optimise_inner(const struct subgraph *subgraph, const int *order)
{
    int count = graph_count(subgraph->graph);
    bool *inner = NULL;
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(subgraph->graph, order[i]);
        bool flow = optimise_is_flow(node);
        if (flow && !inner)
            inner = alloc_array((size_t)count, sizeof(*inner));
        if (inner)
            inner[node->id] = flow || is_below(node, inner);
    }
    return inner;
}
