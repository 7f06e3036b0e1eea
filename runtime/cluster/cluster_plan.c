/* cluster_plan.c - a signature over several tasks: cut, and registered with their workers. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"
#include "runtime/function_library.h"
#include "runtime/session.h"

/*
 * Nodes that came from bodies of functions are placed now; all others stay where the session's
 * graph has them.
 */
static bool place(const struct cluster_session *session, struct subgraph *subgraph,
                  struct error *err)
{
    const struct place_options options = cluster_place_options(session);
    struct placement placement;
    for (int i = 0; i < subgraph->feeds_count; i++)
        subgraph->feeds[i]->device = &session->devices[0];
    if (!place_graph_over(subgraph->graph, session->devices, session->devices_count, &options,
                          &placement, err))
        return false;
    place_release(&placement);
    return true;
}

static struct worker_link *link_of(const struct cluster_session *session,
                                   const struct device *device)
{
    for (int i = 0; i < session->links_count; i++)
        if (rendezvous_key_is_from(device->name, session->links[i]->task))
            return session->links[i];
    return NULL;
}

static bool calls_functions(const struct graph *graph)
{
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        if (function_library_callee(node->op))
            return true;
        for (int k = 0; k < node->attrs_count; k++)
            if (node->attrs[k].kind == ATTR_FUNC)
                return true;
    }
    return false;
}

static bool register_part(struct cluster_session *session, struct cluster_plan *plan,
                          const struct partition_part *cut, struct error *err)
{
    struct cluster_part *part = &plan->parts[plan->parts_count];
    size_t start = plan->graph_defs.size;
    part->link = link_of(session, cut->device);
    part->home = part->link == session->links[0];
    graph_export(cut->graph, true, 0, &plan->graph_defs);
    if (calls_functions(cut->graph))
        function_library_export(graph_library(session->graph), &plan->graph_defs);
    part->graph_end = plan->graph_defs.size;
    if (!part->link->kind->register_graph(
            part->link, session->handle, plan->graph_defs.data + start,
            plan->graph_defs.size - start, plan->collectives, part->handle, err))
        return false;
    plan->parts_count++;
    return true;
}

/* Which feeds lead to which fetch, while that is known. */
static bool *feeds_of_fetches(const struct subgraph *subgraph)
{
    size_t feeds = (size_t)subgraph->feeds_count;
    bool *needs = alloc_array((size_t)subgraph->fetches_count * feeds + 1, sizeof(*needs));
    for (int i = 0; i < subgraph->fetches_count; i++)
        prune_feeds_of(subgraph, i, needs + (size_t)i * feeds);
    return needs;
}

static bool make(struct cluster_session *session, const struct session_run *run, bool partial,
                 bool shaped, struct cluster_plan *plan, struct subgraph *subgraph,
                 struct error *err)
{
    const struct partition_options options = {.client = &session->devices[0],
                                              .fetch_names = run->fetches,
                                              .compress = session->compress,
                                              .shaped = shaped,
                                              .costs = session->costs,
                                              .devices = partial ? NULL : session->devices,
                                              .devices_count = session->devices_count,
                                              .pairs = &session->pairs};
    if (!lower_subgraph(subgraph, graph_library(session->graph), session->devices,
                        session->devices_count, err) ||
        !place(session, subgraph, err) ||
        !partition_split(subgraph, &options, &plan->ends, err))
        return false;
    plan->collectives = cluster_collective_key(&plan->ends);
    plan->parts = alloc_array((size_t)plan->ends.count, sizeof(*plan->parts));
    bool ok = true;
    for (int i = 0; ok && i < plan->ends.count; i++)
        ok = register_part(session, plan, &plan->ends.parts[i], err);
    return ok;
}

struct cluster_plan *cluster_plan_new(struct cluster_session *session,
                                      const struct session_run *run, bool partial, bool shaped,
                                      struct error *err)
{
    struct cluster_plan *plan = alloc_bytes(sizeof(*plan));
    plan->fetches_count = run->fetches_count;
    struct subgraph *subgraph = prune_graph(session->graph, run, err);
    if (subgraph && partial)
        plan->needs = feeds_of_fetches(subgraph);
    bool ok = subgraph && make(session, run, partial, shaped, plan, subgraph, err);
    for (int i = 0; i < plan->ends.count; i++)
        graph_free(plan->ends.parts[i].graph);
    plan->ends.count = 0; /* the graphs borrow from the subgraph */
    prune_free(subgraph);
    if (ok)
        return plan;
    cluster_plan_free(session, plan);
    return NULL;
}

void cluster_plan_free(struct cluster_session *session, struct cluster_plan *plan)
{
    struct error gone; /* a worker that is gone has no graph any more */
    for (int i = 0; i < plan->parts_count; i++) {
        struct worker_link *link = plan->parts[i].link;
        (void)!link->kind->deregister_graph(link, session->handle, plan->parts[i].handle,
                                            &gone);
    }
    partition_release(&plan->ends);
    str_release(&plan->graph_defs);
    free(plan->parts);
    free(plan->needs);
    free(plan);
}
