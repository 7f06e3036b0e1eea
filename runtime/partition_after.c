/*
 * partition_after.c - variables by reference that another task reads after an update.
 *
 * What a reference leads to is sent as soon as there is the reference, and nothing tells the
 * sender what else a reader comes after.  Where that is an update of the variable, the variable
 * has to be read on its own task, after the update.  As with TensorFlow only a reader's
 * controls count, not what else it reads.
 */

#include "base/alloc.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/partition.h"

struct partition_after {
    const struct graph *graph;
    const bool *needed;
    int *order;
    /* By id of a node that gives a reference, NULL until it is asked about: which nodes come
     * after an update that the node itself does not come after. */
    bool **after;
};

struct partition_after *partition_after_new(const struct subgraph *whole, const bool *needed,
                                            struct error *err)
{
    int *order = graph_sorted(whole->graph, err);
    if (!order)
        return NULL;
    struct partition_after *a = alloc_bytes(sizeof(*a));
    *a = (struct partition_after){.graph = whole->graph, .needed = needed, .order = order};
    a->after = alloc_array((size_t)graph_count(a->graph), sizeof(*a->after));
    return a;
}

void partition_after_free(struct partition_after *a)
{
    if (!a)
        return;
    for (int i = 0; i < graph_count(a->graph); i++)
        free(a->after[i]);
    free(a->after);
    free(a->order);
    free(a);
}

/* --- updates --- */

static int ref_input(const struct node *node, int from)
{
    while (from < node->inputs_count && !dtype_is_ref(node->input_types[from]))
        from++;
    return from;
}

/* Whose reference it is that the node gives. */
static const struct node *root_of(const struct partition_after *a, const struct node *node)
{
    for (int steps = graph_count(a->graph); steps > 0; steps--) {
        int input = ref_input(node, 0);
        if (input == node->inputs_count)
            break;
        node = node->inputs[input].from;
    }
    return node;
}

/* Whether it takes a reference to the variable: most that do change it. */
static bool updates(const struct partition_after *a, const struct node *node,
                    const struct node *root)
{
    if (node->op->flow != FLOW_NONE)
        return false;
    for (int i = ref_input(node, 0); i < node->inputs_count; i = ref_input(node, i + 1))
        if (root_of(a, node->inputs[i].from) == root)
            return true;
    return false;
}

/* Marks the node and all that it comes after; turns of loops do not count. */
static void mark_before(const struct partition_after *a, const struct node *node, bool *before)
{
    before[node->id] = true;
    for (int i = graph_count(a->graph) - 1; i >= 0; i--) {
        node = graph_node(a->graph, a->order[i]);
        const struct node *one;
        for (int k = 0; before[node->id] && (one = node_before(node, k)); k++)
            before[one->id] = true;
    }
}

static bool *find_after(const struct partition_after *a, const struct node *source)
{
    size_t count = (size_t)graph_count(a->graph);
    bool *before = alloc_array(count, sizeof(bool));
    bool *after = alloc_array(count, sizeof(bool));
    const struct node *root = root_of(a, source);
    mark_before(a, source, before);
    for (size_t i = 0; i < count; i++) {
        const struct node *node = graph_node(a->graph, a->order[i]);
        if (!a->needed[node->id])
            continue;
        bool is = !before[node->id] && updates(a, node, root);
        const struct node *one;
        for (int k = 0; !is && (one = node_before(node, k)); k++)
            is = after[one->id];
        after[node->id] = is;
    }
    free(before);
    return after;
}

struct partition_before partition_after_find(const struct partition_after *a,
                                             const struct node *reader, struct edge read)
{
    struct partition_before before = {0};
    int source = read.from->id;
    if (!reader->controls_count || !dtype_is_ref(read.from->output_types[read.output]) ||
        device_same_task(read.from->device, reader->device))
        return before;
    if (!a->after[source])
        a->after[source] = find_after(a, read.from);
    before.nodes = alloc_array((size_t)reader->controls_count, sizeof(*before.nodes));
    for (int i = 0; i < reader->controls_count; i++)
        if (a->after[source][reader->controls[i]->id])
            before.nodes[before.count++] = reader->controls[i];
    return before;
}
