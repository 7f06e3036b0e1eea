/* dataflow_plan.c - from a graph with control flow to nodes, frames and edges. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/dataflow_call.h"

const struct op dataflow_retval = {.name = "_Retval",
                                   .inputs = "input:T",
                                   .outputs = "",
                                   .attrs = "T:type",
                                   .flow = FLOW_RETVAL};

enum { PARALLEL_MAX = 1024, UNKNOWN_LOOP = -1, NO_NODE = -1 };

/* What is only needed while a plan is made; arrays are by node id. */
struct builder {
    struct plan *plan;
    struct dataflow *flow;
    const struct graph *graph;
    const bool *needed;
    enum device_type device;
    bool *merged;  /* read by a Merge, which wants to see it arrive */
    int *loop;     /* the frame in which it runs */
    int *gives_to; /* the frame of its outputs */
    int *first;    /* first[i + 1]: where its readers end; readers are node ids */
    int *readers;
    int *index;        /* into flow->nodes, NO_NODE: always there */
    int *value;        /* of output 0: in its iteration, or ~ of what is fixed */
    struct map *names; /* of loops: index */
};

static bool is_constant(const struct node *node)
{
    return !strcmp(node->op->name, "Const");
}

static bool is_arg(const struct node *node)
{
    return node->op == &prune_arg;
}

/* Whether it is there before anything runs, so that nobody waits for it. */
static bool is_always_there(const struct builder *b, const struct node *node)
{
    bool passive = is_constant(node) || is_arg(node) || !strcmp(node->op->name, "NoOp");
    if (is_arg(node) && b->plan->subgraph->partial)
        return false;
    return passive && !node->controls_count && !node->inputs_count && !b->merged[node->id];
}

/* --- frames --- */

static void find_readers(struct builder *b)
{
    const struct node *from;
    int count = graph_count(b->graph);
    for (int i = 0; i < count; i++)
        for (int k = 0; b->needed[i] && (from = node_before(graph_node(b->graph, i), k)); k++)
            b->first[from->id + 2]++;
    for (int i = 0; i < count; i++)
        b->first[i + 2] += b->first[i + 1];
    b->readers = alloc_array((size_t)b->first[count + 1], sizeof(int));
    for (int i = 0; i < count; i++)
        for (int k = 0; b->needed[i] && (from = node_before(graph_node(b->graph, i), k)); k++)
            b->readers[b->first[from->id + 1]++] = i;
}

static int add_loop(struct dataflow *flow, const char *name, int parent, int64_t parallel)
{
    flow->loops =
        alloc_grow(flow->loops, flow->loops_count, &flow->loops_capacity, sizeof(*flow->loops));
    struct dataflow_loop *loop = &flow->loops[flow->loops_count];
    *loop = (struct dataflow_loop){
        .name = name, .hash = dataflow_transfer_hash(name), .parent = parent};
    loop->parallel = parallel < 1 ? 1 : parallel > PARALLEL_MAX ? PARALLEL_MAX : (int)parallel;
    return flow->loops_count++;
}

/* The frame that an Enter leads to. */
static bool find_loop(struct builder *b, const struct node *enter, int parent, int *loop,
                      struct error *err)
{
    const char *name = node_attr_string(enter, "frame_name", "");
    if (!name[0])
        return fail(err, INVALID, "The Enter '%s' must have a frame name.", enter->name);
    intptr_t known = (intptr_t)map_find(b->names, name);
    *loop = (int)known - 1;
    if (!known) {
        *loop =
            add_loop(b->flow, name, parent, node_attr_int(enter, "parallel_iterations", 10));
        map_set(b->names, name, (void *)(intptr_t)(*loop + 1));
    } else if (b->flow->loops[*loop].parent != parent) {
        return fail(err, INTERNAL,
                    "Invalid loop structure: Mismatched parent frames for \"%s\": \"%s\" vs "
                    "\"%s\". The node giving this error: '%s'",
                    name, b->flow->loops[b->flow->loops[*loop].parent].name,
                    b->flow->loops[parent].name, enter->name);
    }
    return true;
}

/* A node whose frame is known: where its outputs go. */
static bool find_target(struct builder *b, const struct node *node, struct error *err)
{
    int loop = b->loop[node->id];
    b->gives_to[node->id] = loop;
    if (node->op->flow == FLOW_ENTER)
        return find_loop(b, node, loop, &b->gives_to[node->id], err);
    if (node->op->flow == FLOW_EXIT && !loop)
        return fail(err, INVALID, "node '%s' (Exit) is in no frame: no Enter leads to it",
                    node->name);
    if (node->op->flow == FLOW_EXIT)
        b->gives_to[node->id] = b->flow->loops[loop].parent;
    return true;
}

static bool check_frame(const struct builder *b, const struct node *node, struct error *err)
{
    const struct node *from;
    if (b->loop[node->id] == UNKNOWN_LOOP)
        return fail(err, INVALID, "node '%s' (%s) can never run: it waits for itself",
                    node->name, node->op->name);
    for (int k = 0; (from = node_before(node, k)); k++)
        if (b->gives_to[from->id] != b->loop[node->id])
            return fail(err, INVALID,
                        "'%s' has inputs from different frames. The input '%s' is in frame "
                        "'%s'. The input '%s' is in frame '%s'.",
                        node->name, node_before(node, 0)->name,
                        b->flow->loops[b->loop[node->id]].name, from->name,
                        b->flow->loops[b->gives_to[from->id]].name);
    return true;
}

/* From the nodes that wait for nothing along all edges, also those that close loops. */
static bool find_frames(struct builder *b, struct error *err)
{
    int count = graph_count(b->graph);
    int *queue = alloc_array((size_t)count, sizeof(*queue));
    int queued = 0;
    bool ok = true;
    add_loop(b->flow, "", 0, 1);
    for (int i = 0; i < count; i++) {
        b->loop[i] = UNKNOWN_LOOP;
        if (b->needed[i] && !node_before(graph_node(b->graph, i), 0)) {
            b->loop[i] = 0;
            queue[queued++] = i;
        }
    }
    for (int at = 0; ok && at < queued; at++) {
        int id = queue[at];
        ok = find_target(b, graph_node(b->graph, id), err);
        for (int k = b->first[id]; ok && k < b->first[id + 1]; k++)
            if (b->loop[b->readers[k]] == UNKNOWN_LOOP) {
                b->loop[b->readers[k]] = b->gives_to[id];
                queue[queued++] = b->readers[k];
            }
    }
    free(queue);
    for (int i = 0; ok && i < count; i++)
        ok = !b->needed[i] || check_frame(b, graph_node(b->graph, i), err);
    return ok;
}

/* --- nodes --- */

static int add_fixed(struct dataflow_loop *loop, const struct tensor *tensor)
{
    loop->fixed =
        alloc_grow(loop->fixed, loop->fixed_count, &loop->fixed_capacity, sizeof(*loop->fixed));
    loop->fixed[loop->fixed_count] = (struct dataflow_fixed){.tensor = tensor};
    return ~loop->fixed_count++;
}

/* Numbers what the node gives, and counts it in its frame. */
static bool number_outputs(struct builder *b, const struct node *node, struct error *err)
{
    struct dataflow_loop *to = &b->flow->loops[b->gives_to[node->id]];
    if (is_constant(node)) {
        const struct tensor *tensor = plan_constant(node, err);
        if (!tensor)
            return false;
        b->value[node->id] = add_fixed(to, tensor);
    } else if (is_arg(node) ||
               (node->op->flow == FLOW_ENTER && node_attr_bool(node, "is_constant", false))) {
        b->value[node->id] = add_fixed(to, NULL);
    } else {
        b->value[node->id] = to->values_count;
        to->values_count += node->outputs_count;
    }
    return true;
}

static int append(int **list, int *count, int *capacity, int value)
{
    *list = alloc_grow(*list, *count, capacity, sizeof(**list));
    (*list)[*count] = value;
    return (*count)++;
}

/* What frames keep of their nodes. */
static void count_node(struct builder *b, struct dataflow_node *node, int index)
{
    struct dataflow_loop *in = &b->flow->loops[node->loop];
    struct dataflow_loop *to = &b->flow->loops[node->gives_to];
    node->local = in->nodes_count++;
    node->place = -1;
    in->switches_count += node->node->op->flow == FLOW_SWITCH;
    in->nexts_count += node->node->op->flow == FLOW_NEXT;
    if (node->node->op->flow == FLOW_EXIT)
        node->place = append(&in->exits, &in->exits_count, &in->exits_capacity, index);
    if (node->node->op->flow != FLOW_ENTER)
        return;
    to->enters_count++;
    if (b->value[node->node->id] < 0)
        node->place =
            append(&to->constants, &to->constants_count, &to->constants_capacity, index);
}

static bool add_node(struct builder *b, const struct node *node, int *inputs, int *outputs,
                     struct error *err)
{
    struct plan *plan = b->plan;
    int index = b->flow->nodes_count++;
    struct dataflow_node *added = &b->flow->nodes[index];
    b->index[node->id] = index;
    *added = (struct dataflow_node){
        .node = node,
        .loop = b->loop[node->id],
        .gives_to = b->gives_to[node->id],
        .in_first = *inputs,
        .out_first = b->value[node->id],
    };
    count_node(b, added, index);
    *inputs += node->inputs_count;
    if (node->inputs_count > b->flow->inputs_max)
        b->flow->inputs_max = node->inputs_count;
    if (node->op->flow || is_constant(node) || is_arg(node) || !strcmp(node->op->name, "NoOp"))
        return true;
    struct plan_step *step = &plan->steps[plan->steps_count++];
    step->out_first = *outputs;
    *outputs += node->outputs_count;
    added->step = step;
    return plan_init_step(plan, step, node, b->device, err);
}

/* A node that is in no graph: it reads what is fetched. */
static const struct node *new_retval(struct builder *b, const struct edge *edge)
{
    struct arena *arena = graph_arena(b->plan->subgraph->graph);
    int *type = arena_alloc(arena, sizeof(*type));
    struct node *node = arena_alloc(arena, sizeof(*node));
    *type = edge->from->output_types[edge->output];
    *node = (struct node){
        .name = arena_printf(arena, "_retval_%s_%d", edge->from->name, edge->output),
        .op = &dataflow_retval,
        .inputs = edge,
        .inputs_count = 1,
        .input_types = type,
    };
    return node;
}

static void add_retvals(struct builder *b, int *inputs)
{
    const struct subgraph *part = b->plan->subgraph;
    b->flow->fetches = alloc_array((size_t)part->fetches_count, sizeof(int));
    for (int i = 0; i < part->fetches_count; i++) {
        const struct edge *edge = &part->fetches[i];
        bool waits = b->index[edge->from->id] != NO_NODE;
        b->flow->fetches[i] = waits ? -1 : ~b->value[edge->from->id];
        if (!waits)
            continue;
        struct dataflow_loop *loop = &b->flow->loops[b->gives_to[edge->from->id]];
        b->flow->nodes[b->flow->nodes_count++] = (struct dataflow_node){
            .node = new_retval(b, edge),
            .loop = b->gives_to[edge->from->id],
            .gives_to = b->gives_to[edge->from->id],
            .local = loop->nodes_count++,
            .in_first = (*inputs)++,
            .place = i,
        };
    }
}

static bool add_nodes(struct builder *b, struct error *err)
{
    const int *order = graph_order(b->graph);
    int count = graph_count(b->graph), inputs = 0, outputs = 0;
    int nodes = 0;
    for (int i = 0; i < count; i++)
        nodes += b->needed[i];
    b->plan->steps = alloc_array((size_t)nodes, sizeof(*b->plan->steps));
    nodes += b->plan->subgraph->fetches_count;
    b->flow->nodes = alloc_array((size_t)nodes, sizeof(*b->flow->nodes));
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(b->graph, order[i]);
        b->index[node->id] = NO_NODE;
        if (!b->needed[node->id])
            continue;
        if (!number_outputs(b, node, err) ||
            (!is_always_there(b, node) && !add_node(b, node, &inputs, &outputs, err)))
            return false;
    }
    add_retvals(b, &inputs);
    b->plan->values_count = outputs; /* slots of a run */
    b->flow->sources = alloc_array((size_t)inputs, sizeof(int));
    return true;
}

/* --- edges --- */

static void count_use(struct dataflow_loop *loop, int source)
{
    if (source >= 0)
        loop->uses[source]++;
}

/* Sources of the inputs, and how often values are read. */
static void find_sources(struct builder *b)
{
    for (int l = 0; l < b->flow->loops_count; l++)
        b->flow->loops[l].uses =
            alloc_array((size_t)b->flow->loops[l].values_count, sizeof(int));
    for (int i = 0; i < b->flow->nodes_count; i++) {
        const struct dataflow_node *node = &b->flow->nodes[i];
        for (int k = 0; k < node->node->inputs_count; k++) {
            struct edge edge = node->node->inputs[k];
            int value = b->value[edge.from->id];
            int source = value < 0 ? value : value + edge.output;
            b->flow->sources[node->in_first + k] = source;
            count_use(&b->flow->loops[node->loop], source);
        }
    }
}

/* First counts the edges that lead to a node, then fills them in. */
static void add_edges_of(struct builder *b, const struct dataflow_node *to, int index,
                         bool counting)
{
    const struct node *node = to->node;
    const struct node *from;
    for (int k = 0; (from = node_before(node, k)); k++) {
        if (b->index[from->id] == NO_NODE)
            continue;
        struct dataflow_node *source = &b->flow->nodes[b->index[from->id]];
        if (counting) {
            source->edges_count++;
            continue;
        }
        bool control = k >= node->inputs_count;
        b->flow->edges[source->edges_first + source->edges_count++] = (struct dataflow_edge){
            .to = index,
            .output = control ? DATAFLOW_CONTROL : node->inputs[k].output,
            .input = control ? DATAFLOW_CONTROL : k,
        };
    }
}

static void add_edges(struct builder *b)
{
    struct dataflow *flow = b->flow;
    int total = 0;
    for (int i = 0; i < flow->nodes_count; i++)
        add_edges_of(b, &flow->nodes[i], i, true);
    for (int i = 0; i < flow->nodes_count; i++) {
        flow->nodes[i].edges_first = total;
        total += flow->nodes[i].edges_count;
        flow->nodes[i].edges_count = 0;
    }
    flow->edges = alloc_array((size_t)total, sizeof(*flow->edges));
    for (int i = 0; i < flow->nodes_count; i++)
        add_edges_of(b, &flow->nodes[i], i, false);
}

static bool is_merge(const struct dataflow_node *node)
{
    return node->node->op->flow == FLOW_MERGE;
}

/* What one node waits for; without constant Enters if so asked. */
static int pending_of(struct builder *b, const struct dataflow_node *to, bool warm)
{
    const struct node *from;
    int pending = is_merge(to);
    for (int k = 0; (from = node_before(to->node, k)); k++) {
        int index = b->index[from->id];
        bool control = k >= to->node->inputs_count;
        bool held = index != NO_NODE && from->op->flow == FLOW_ENTER &&
                    b->flow->nodes[index].place >= 0;
        if (index == NO_NODE || (held && warm))
            continue;
        if (is_merge(to) && held)
            b->flow->loops[to->loop].never_warm = true;
        pending += is_merge(to) ? 2 * control : 1;
    }
    return pending;
}

static void find_states(struct builder *b)
{
    struct dataflow *flow = b->flow;
    for (int l = 0; l < flow->loops_count; l++) {
        struct dataflow_loop *loop = &flow->loops[l];
        loop->cold = alloc_array((size_t)loop->nodes_count, sizeof(*loop->cold));
        loop->warm = alloc_array((size_t)loop->nodes_count, sizeof(*loop->warm));
    }
    int capacity = 0;
    for (int i = 0; i < flow->nodes_count; i++) {
        const struct dataflow_node *node = &flow->nodes[i];
        struct dataflow_loop *loop = &flow->loops[node->loop];
        int cold = pending_of(b, node, false);
        int warm = pending_of(b, node, true);
        loop->cold[node->local].pending = cold;
        loop->warm[node->local].pending = warm;
        if (!cold && !(is_arg(node->node) && b->plan->subgraph->partial))
            append(&flow->roots, &flow->roots_count, &capacity, i);
        else if (cold && !warm)
            append(&loop->warm_roots, &loop->warm_roots_count, &loop->warm_roots_capacity, i);
    }
}

static void add_feeds(struct builder *b)
{
    const struct subgraph *part = b->plan->subgraph;
    b->flow->feeds = alloc_array((size_t)part->feeds_count, sizeof(int));
    b->flow->feed_nodes = alloc_array((size_t)part->feeds_count, sizeof(int));
    for (int i = 0; i < part->feeds_count; i++) {
        int id = part->feeds[i]->id;
        b->flow->feeds[i] =
            b->needed[id] ? ~b->value[id] : ~add_fixed(&b->flow->loops[0], NULL);
        b->flow->feed_nodes[i] = b->needed[id] ? b->index[id] : NO_NODE;
    }
}

/* --- loops that cannot end --- */

/* Only a Switch makes values dead, and only that ends a loop: in the frame or inside of it. */
static bool check_loops(const struct dataflow *flow, struct error *err)
{
    /* A loop comes after the one it is in. */
    int *switches = alloc_array((size_t)flow->loops_count, sizeof(int));
    int bad = 0;
    for (int l = flow->loops_count - 1; l > 0; l--) {
        switches[l] += flow->loops[l].switches_count;
        switches[flow->loops[l].parent] += switches[l];
        if (flow->loops[l].nexts_count && !switches[l])
            bad = l;
    }
    free(switches);
    return !bad || fail(err, INVALID, "the loop of frame '%s' never ends: it has no Switch",
                        flow->loops[bad].name);
}

/* --- the whole --- */

static bool build(struct builder *b, struct error *err)
{
    const struct graph *graph = b->graph;
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; b->needed[i] && k < node->inputs_count; k++)
            if (node->op->flow == FLOW_MERGE)
                b->merged[node->inputs[k].from->id] = true;
    }
    find_readers(b);
    if (!find_frames(b, err) || !check_loops(b->flow, err) || !add_nodes(b, err))
        return false;
    find_sources(b);
    add_edges(b);
    find_states(b);
    add_feeds(b);
    return true;
}

bool dataflow_plan_new(struct plan *plan, const bool *needed, enum device_type device,
                       struct error *err)
{
    const struct graph *graph = plan->subgraph->graph;
    size_t count = (size_t)graph_count(graph);
    struct builder b = {
        .plan = plan,
        .flow = alloc_bytes(sizeof(*b.flow)),
        .graph = graph,
        .needed = needed,
        .device = device,
        .merged = alloc_array(count, sizeof(bool)),
        .loop = alloc_array(count, sizeof(int)),
        .gives_to = alloc_array(count, sizeof(int)),
        .first = alloc_array(count + 2, sizeof(int)),
        .index = alloc_array(count, sizeof(int)),
        .value = alloc_array(count, sizeof(int)),
        .names = map_new(),
    };
    plan->flow = b.flow;
    bool ok = build(&b, err);
    free(b.merged);
    free(b.loop);
    free(b.gives_to);
    free(b.first);
    free(b.readers);
    free(b.index);
    free(b.value);
    map_free(b.names);
    return ok && dataflow_run_prepare(plan, err);
}

void dataflow_plan_free(struct dataflow *flow)
{
    if (!flow)
        return;
    while (flow->idle) {
        struct dataflow_run *run = flow->idle;
        flow->idle = run->next;
        dataflow_run_free(run);
    }
    for (int l = 0; l < flow->loops_count; l++) {
        struct dataflow_loop *loop = &flow->loops[l];
        free(loop->exits);
        free(loop->constants);
        free(loop->fixed);
        free(loop->uses);
        free(loop->cold);
        free(loop->warm);
        free(loop->warm_roots);
    }
    free(flow->nodes);
    free(flow->edges);
    free(flow->sources);
    free(flow->loops);
    free(flow->roots);
    free(flow->feeds);
    free(flow->feed_nodes);
    free(flow->fetches);
    free(flow);
}
