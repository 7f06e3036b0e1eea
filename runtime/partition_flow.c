/*
 * partition_flow.c - loops over several devices: which nodes are in them, and what turns them.
 *
 * A receive in a loop has no input that would say in which iteration it is.  So each device
 * with a node of such a loop gets Enter, Merge, Switch (by the loop's LoopCond, which it
 * receives) and NextIteration: its receives run after that Merge, once for each iteration.  The
 * Enter of an inner loop takes the outer one's Merge, so loops nest.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/partition.h"

enum { UNKNOWN_LOOP = -1 };

/* --- devices --- */

/* A Switch is where its data comes from, and an Exit: neither is worth a transfer. */
static void follow_inputs(struct graph *graph, const int *order)
{
    for (int i = 0; i < graph_count(graph); i++) {
        struct node *node = graph_node(graph, order[i]);
        enum op_flow flow = node->op->flow;
        if ((flow == FLOW_SWITCH || flow == FLOW_EXIT) && node->inputs_count)
            node->device = node->inputs[0].from->device;
    }
}

/* An Enter or NextIteration is where its value is read first. */
static void follow_readers(struct graph *graph, const int *order, const bool *needed)
{
    int count = graph_count(graph);
    const struct node **reader = alloc_array((size_t)count, sizeof(struct node *));
    for (int i = count - 1; i >= 0; i--)
        for (int k = 0; needed[i] && k < graph_node(graph, i)->inputs_count; k++)
            reader[graph_node(graph, i)->inputs[k].from->id] = graph_node(graph, i);
    for (int i = count - 1; i >= 0; i--) {
        struct node *node = graph_node(graph, order[i]);
        enum op_flow flow = node->op->flow;
        bool moves = (flow == FLOW_ENTER || flow == FLOW_NEXT) && reader[node->id];
        if (moves && !dtype_is_ref(node->output_types[0]))
            node->device = reader[node->id]->device;
    }
    free(reader);
}

/* --- frames --- */

static bool find_loop(struct partition_flow *flow, const struct node *enter, int parent,
                      int *loop, struct error *err)
{
    const char *name = node_attr_string(enter, "frame_name", "");
    for (int l = 1; l < flow->loops_count; l++) {
        if (strcmp(flow->loops[l].name, name) != 0)
            continue;
        *loop = l;
        return flow->loops[l].parent == parent ||
               fail(err, INVALID, "the Enters of frame '%s' are in different frames", name);
    }
    flow->loops =
        alloc_grow(flow->loops, flow->loops_count, &flow->loops_capacity, sizeof(*flow->loops));
    flow->loops[flow->loops_count] =
        (struct partition_loop){.name = name, .parent = parent, .enter = enter};
    *loop = flow->loops_count++;
    return true;
}

/* A node whose loop is known: that of its outputs. */
static bool find_target(struct partition_flow *flow, struct node *node, struct error *err)
{
    int loop = flow->in[node->id];
    flow->out[node->id] = loop;
    if (!strcmp(node->op->name, "LoopCond"))
        flow->loops[loop].cond = node;
    if (node->op->flow == FLOW_ENTER)
        return find_loop(flow, node, loop, &flow->out[node->id], err);
    if (node->op->flow == FLOW_EXIT && !loop)
        return fail(err, INVALID, "node '%s' (Exit) is in no frame: no Enter leads to it",
                    node->name);
    if (node->op->flow == FLOW_EXIT)
        flow->out[node->id] = flow->loops[loop].parent;
    return true;
}

/*
 * In the graph's order what closes a loop comes last, so each node has an input whose frame is
 * known when its turn comes.
 */
static bool find_frames(struct partition_flow *flow, const struct graph *graph,
                        const int *order, const bool *needed, struct error *err)
{
    for (int i = 0; i < flow->nodes_count; i++)
        flow->in[i] = UNKNOWN_LOOP;
    flow->loops = alloc_grow(flow->loops, 0, &flow->loops_capacity, sizeof(*flow->loops));
    flow->loops[flow->loops_count++] = (struct partition_loop){.name = ""};
    for (int i = 0; i < flow->nodes_count; i++) {
        struct node *node = graph_node(graph, order[i]);
        const struct node *from;
        if (!needed[node->id])
            continue;
        flow->in[node->id] = 0;
        for (int k = 0; (from = node_before(node, k)); k++)
            if (flow->in[from->id] != UNKNOWN_LOOP) {
                flow->in[node->id] = flow->out[from->id];
                break;
            }
        if (!find_target(flow, node, err))
            return false;
    }
    return true;
}

/* --- loops that turn with others --- */

static int device_index(struct partition_flow *flow, const struct device *device)
{
    for (int d = 0; d < flow->devices_count; d++)
        if (flow->devices[d] == device)
            return d;
    return -1;
}

static void find_devices(struct partition_flow *flow, const struct graph *graph,
                         const bool *needed)
{
    int capacity = 0;
    for (int i = 0; i < flow->nodes_count; i++) {
        const struct device *device = graph_node(graph, i)->device;
        if (!needed[i] || device_index(flow, device) >= 0)
            continue;
        flow->devices = alloc_grow((void *)flow->devices, flow->devices_count, &capacity,
                                   sizeof(struct device *));
        flow->devices[flow->devices_count++] = device;
    }
}

/* Marks the loops with an edge between devices, and those around them. */
static void find_crossed(struct partition_flow *flow, const struct graph *graph,
                         const bool *needed)
{
    for (int i = 0; i < flow->nodes_count; i++) {
        const struct node *node = graph_node(graph, i);
        const struct node *from;
        for (int k = 0; needed[i] && (from = node_before(node, k)); k++)
            if (from->device != node->device)
                flow->loops[flow->in[i]].crossed = true;
    }
    for (int l = flow->loops_count - 1; l > 0; l--) /* a loop comes after the one around it */
        if (flow->loops[l].crossed)
            flow->loops[flow->loops[l].parent].crossed = true;
    flow->loops[0].crossed = false;
}

/* By loop and device, whether the device has a node in it or in a crossed one inside. */
static bool *find_uses(struct partition_flow *flow, const struct graph *graph,
                       const bool *needed)
{
    size_t width = (size_t)flow->devices_count;
    bool *uses = alloc_array((size_t)flow->loops_count * width, sizeof(bool));
    for (int i = 0; i < flow->nodes_count; i++) {
        if (!needed[i])
            continue;
        size_t d = (size_t)device_index(flow, graph_node(graph, i)->device);
        uses[(size_t)flow->in[i] * width + d] = true;
        uses[(size_t)flow->out[i] * width + d] = true;
    }
    for (int l = flow->loops_count - 1; l > 0; l--)
        for (size_t d = 0; flow->loops[l].crossed && d < width; d++)
            uses[(size_t)flow->loops[l].parent * width + d] |= uses[(size_t)l * width + d];
    return uses;
}

static struct node *add_node(struct graph *graph, const char *op, const char *name,
                             const struct edge *inputs, int inputs_count,
                             const struct attr *attrs, int attrs_count,
                             const struct device *device, struct error *err)
{
    const struct node_def def = {.name = name,
                                 .op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count};
    struct node *node = graph_add(graph, &def, err);
    if (node)
        node->device = device;
    return node;
}

/* What the outermost loop of its own begins with. */
static struct node *add_start(struct graph *graph, const char *name,
                              const struct device *device, struct error *err)
{
    struct tensor empty;
    if (!tensor_init(&empty, F32, &SHAPE(0), err))
        return NULL;
    const struct attr attrs[] = {attr_type("dtype", F32), attr_tensor("value", &empty)};
    struct node *node = add_node(graph, "Const", name, NULL, 0, attrs, 2, device, err);
    tensor_release(&empty);
    return node;
}

/* Enter, Merge, Switch, NextIteration on one device; the Merge, NULL on failure. */
static struct node *add_turn(struct graph *graph, const struct partition_loop *loop,
                             struct node *start, const struct device *device, int number,
                             struct error *err)
{
    struct arena *arena = graph_arena(graph);
    const char *prefix = arena_printf(arena, "_cloop_%d", number);
    if (!start)
        start = add_start(graph, arena_printf(arena, "%s/start", prefix), device, err);
    if (!start)
        return NULL;
    const struct attr attrs[] = {
        attr_string("frame_name", loop->name),
        attr_int("parallel_iterations", node_attr_int(loop->enter, "parallel_iterations", 10)),
    };
    struct node *enter = add_node(graph, "Enter", arena_printf(arena, "%s/enter", prefix),
                                  &(struct edge){start, 0}, 1, attrs, 2, device, err);
    if (!enter)
        return NULL;
    const struct edge twice[] = {{enter, 0}, {enter, 0}};
    struct node *merge = add_node(graph, "Merge", arena_printf(arena, "%s/merge", prefix),
                                  twice, 2, NULL, 0, device, err);
    if (!merge)
        return NULL;
    const struct edge inputs[] = {{merge, 0}, {loop->cond, 0}};
    struct node *branch = add_node(graph, "Switch", arena_printf(arena, "%s/switch", prefix),
                                   inputs, 2, NULL, 0, device, err);
    if (!branch)
        return NULL;
    struct node *next = add_node(graph, "NextIteration", arena_printf(arena, "%s/next", prefix),
                                 &(struct edge){branch, 1}, 1, NULL, 0, device, err);
    if (!next)
        return NULL;
    graph_set_input(graph, merge, 1, (struct edge){next, 0});
    return merge;
}

/* The nodes that add_turn() has added are in the loop, but for those before the Enter. */
static void note_added(struct partition_flow *flow, const struct graph *graph, int loop)
{
    int count = graph_count(graph);
    flow->in = alloc_resize(flow->in, (size_t)count * sizeof(int));
    flow->out = alloc_resize(flow->out, (size_t)count * sizeof(int));
    for (; flow->nodes_count < count; flow->nodes_count++) {
        const struct node *node = graph_node(graph, flow->nodes_count);
        bool enters = node->op->flow == FLOW_ENTER, starts = node->op->flow == FLOW_NONE;
        flow->in[node->id] = starts ? 0 : enters ? flow->loops[loop].parent : loop;
        flow->out[node->id] = starts ? 0 : loop;
    }
}

static bool add_turns(struct partition_flow *flow, struct graph *graph, const bool *uses,
                      struct error *err)
{
    size_t width = (size_t)flow->devices_count;
    int number = 0;
    for (int l = 1; l < flow->loops_count; l++) {
        const struct partition_loop *loop = &flow->loops[l];
        if (loop->crossed && !loop->cond)
            return fail(err, INVALID,
                        "A cross-device loop must have a pivot predicate: frame '%s'",
                        loop->name);
        for (size_t d = 0; loop->crossed && d < width; d++) {
            if (!uses[(size_t)l * width + d])
                continue;
            struct node *start = flow->turns[(size_t)loop->parent * width + d];
            struct node *merge = add_turn(graph, loop, start, flow->devices[d], number++, err);
            if (!merge)
                return false;
            flow->turns[(size_t)l * width + d] = merge;
            note_added(flow, graph, l);
        }
    }
    return true;
}

static bool find_turns(struct partition_flow *flow, struct graph *graph, const bool *needed,
                       struct error *err)
{
    find_crossed(flow, graph, needed);
    flow->turns = alloc_array((size_t)flow->loops_count * (size_t)flow->devices_count,
                              sizeof(struct node *));
    bool *uses = find_uses(flow, graph, needed);
    bool ok = add_turns(flow, graph, uses, err);
    free(uses);
    return ok;
}

/* --- the whole --- */

bool partition_flow_init(struct partition_flow *flow, struct subgraph *whole,
                         const bool *needed, struct error *err)
{
    struct graph *graph = whole->graph;
    *flow = (struct partition_flow){.nodes_count = graph_count(graph)};
    int *order = graph_sorted(graph, err);
    if (!order)
        return false;
    flow->in = alloc_array((size_t)flow->nodes_count, sizeof(int));
    flow->out = alloc_array((size_t)flow->nodes_count, sizeof(int));
    follow_inputs(graph, order);
    follow_readers(graph, order, needed);
    find_devices(flow, graph, needed);
    bool ok =
        find_frames(flow, graph, order, needed, err) && find_turns(flow, graph, needed, err);
    free(order);
    if (!ok)
        partition_flow_release(flow);
    return ok;
}

void partition_flow_release(struct partition_flow *flow)
{
    free(flow->in);
    free(flow->out);
    free(flow->loops);
    free((void *)flow->devices);
    free((void *)flow->turns);
    *flow = (struct partition_flow){0};
}

struct node *partition_flow_turn(const struct partition_flow *flow, const struct node *from,
                                 const struct device *device)
{
    int loop = flow->out[from->id];
    for (int d = 0; d < flow->devices_count; d++)
        if (flow->devices[d] == device)
            return flow->turns[(size_t)loop * (size_t)flow->devices_count + (size_t)d];
    return NULL;
}
