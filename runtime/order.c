/* order.c - Kahn's algorithm over ids, and a name for what stands in its way. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/op.h"
#include "runtime/order.h"

/* Values go round a loop through these, so their edges do not order. */
static bool closes_loop(const struct node *node)
{
    const char *name = node->op->name;
    return (name[0] == 'N' && !strcmp(name, "NextIteration")) ||
           (name[0] == 'R' && !strcmp(name, "RefNextIteration"));
}

/* The nodes in the order of a GraphDef often come after their inputs already. */
bool order_is_given(const struct graph *graph)
{
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++)
            if (node->inputs[k].from->id >= i && !closes_loop(node->inputs[k].from))
                return false;
        for (int k = 0; k < node->controls_count; k++)
            if (node->controls[k]->id >= i && !closes_loop(node->controls[k]))
                return false;
    }
    return true;
}

/* Who goes first when several could: by turn, then by id. */
static int64_t key_of(const struct graph *graph, int id)
{
    int turn = graph_node(graph, id)->turn;
    return (int64_t)(turn ? turn : id + 1) << 32 | id;
}

/* A binary heap of keys, the least on top. */
static void heap_push(int64_t *heap, int count, int64_t key)
{
    int at = count;
    for (; at > 0 && heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = key;
}

static int64_t heap_pop(int64_t *heap, int count)
{
    int64_t top = heap[0];
    int64_t last = heap[count - 1];
    int at = 0;
    for (int child = 1; child < count - 1; child = 2 * at + 1) {
        if (child + 1 < count - 1 && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Names a cycle among the nodes that still wait (waiting[id] > 0). */
static bool fail_cycle(const struct graph *graph, const int *waiting, struct error *err)
{
    const struct node *at = NULL;
    for (int i = 0; i < graph_count(graph) && !at; i++)
        if (waiting[i])
            at = graph_node(graph, i);
    char text[400] = "";
    /* After as many steps back as there are nodes one is on a cycle for sure. */
    for (int steps = 0; steps < graph_count(graph) + 8; steps++) {
        int k = 0;
        const struct node *before;
        while ((before = node_before(at, k++)) && (!waiting[before->id] || closes_loop(before)))
            ;
        assert(before);
        at = before;
        size_t used = strlen(text);
        if (steps >= graph_count(graph) && !strstr(text, at->name))
            snprintf(text + used, sizeof(text) - used, "%s'%s'", used ? ", " : "", at->name);
    }
    return fail(err, INVALID, "the graph has a cycle without NextIteration through %s", text);
}

/* Fills `order` with ids, always the first in turn whose predecessors are done. */
bool order_nodes(const struct graph *graph, int *order, struct error *err)
{
    size_t count = (size_t)graph_count(graph);
    int *waiting = alloc_array(count, sizeof(*waiting));
    int *first =
        alloc_array(count + 2, sizeof(*first)); /* first[i + 1]: start of successors of i */
    int64_t *heap = alloc_array(count, sizeof(*heap));
    const struct node *before;
    for (int i = 0; i < graph_count(graph); i++)
        for (int k = 0; (before = node_before(graph_node(graph, i), k)); k++)
            if (!closes_loop(before)) {
                first[before->id + 2]++;
                waiting[i]++;
            }
    for (int i = 0; i < graph_count(graph); i++)
        first[i + 2] += first[i + 1];
    int *successors = alloc_array((size_t)first[count + 1], sizeof(*successors));
    for (int i = 0; i < graph_count(graph); i++)
        for (int k = 0; (before = node_before(graph_node(graph, i), k)); k++)
            if (!closes_loop(before))
                successors[first[before->id + 1]++] = i;

    int ready = 0;
    int done = 0;
    for (int i = 0; i < graph_count(graph); i++)
        if (!waiting[i])
            heap_push(heap, ready++, key_of(graph, i));
    while (ready) {
        int id = (int)(heap_pop(heap, ready--) & INT32_MAX);
        order[done++] = id;
        for (int k = first[id]; k < first[id + 1]; k++)
            if (--waiting[successors[k]] == 0)
                heap_push(heap, ready++, key_of(graph, successors[k]));
    }
    bool ok = done == graph_count(graph) || fail_cycle(graph, waiting, err);
    free(waiting);
    free(first);
    free(heap);
    free(successors);
    return ok;
}
