/*
 * partition.c - cuts a placed graph into one part per device.
 *
 * Parts will meet through send and receive nodes, one pair per tensor and destination.  With
 * one device there is one part: the whole.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"

bool partition_graph(struct subgraph *whole, struct partition **parts, int *count,
                     struct error *err)
{
    const struct device *device = NULL;
    for (int i = 0; i < graph_count(whole->graph); i++) {
        const struct node *node = graph_node(whole->graph, i);
        assert(node->device);
        if (!device)
            device = node->device;
        if (node->device != device)
            return fail(
                err, UNIMPLEMENTED,
                "node '%s' is on %s and others on %s: a graph over several devices needs "
                "send and receive, which this build does not have",
                node->name, node->device->name, device->name);
    }
    *parts = alloc_bytes(sizeof(**parts));
    (*parts)[0] = (struct partition){device, whole};
    *count = 1;
    return true;
}
