/*
 * optimise.c - the passes over a pruned graph, in order.
 *
 * A pass turns edges to other nodes and adds nodes (rewrite.h); what is needed no more is
 * simply not reached from fetches and targets any longer.  Passes never touch the session's
 * graph.
 */

#include "runtime/internal.h"

bool optimise_graph(struct subgraph *subgraph, struct plan_context *context, bool by_shapes,
                    struct error *err)
{
    optimise_identity(subgraph);
    if (by_shapes)
        optimise_shape(subgraph);
    optimise_fold(subgraph, context);
    optimise_merge(subgraph);
    return optimise_fuse(subgraph, err);
}
