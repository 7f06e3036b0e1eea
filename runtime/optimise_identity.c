/*
 * optimise_identity.c - readers of a node that only passes its input on read the input itself.
 *
 * Values never change once they are made, so it does not matter when they are read.  An
 * Identity of a reference is another thing: it is the moment at which a variable is read, and
 * stays.
 */

#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"

static bool passes_on(const struct node *node)
{
    static const char *const ops[] = {"Identity", "StopGradient", "PreventGradient",
                                      "PlaceholderWithDefault"};
    if (node->inputs_count != 1 || node->outputs_count != 1 || node->fault)
        return false;
    const struct edge *input = &node->inputs[0];
    if (input->from->output_types[input->output] != node->output_types[0])
        return false; /* a reference, read here */
    for (int i = 0; i < ARRAY_LEN(ops); i++)
        if (!strcmp(node->op->name, ops[i]))
            return true;
    return false;
}

void optimise_identity(struct subgraph *subgraph)
{
    struct rewrite rewrite;
    rewrite_init(&rewrite, subgraph);
    for (int i = 0; i < rewrite.count; i++) {
        struct node *node = graph_node(subgraph->graph, i);
        /* What runs before the node need not run for its readers, unless it can fail or act. */
        if (passes_on(node) && !node->controls_count)
            rewrite_edge(&rewrite, (struct edge){node, 0}, node->inputs[0]);
    }
    rewrite_apply(&rewrite);
}
