/*
 * place.c - a device for every node.
 *
 * Nodes that must be together form groups: the ends of an edge that carries a reference or a
 * resource, and those that ask for it ("loc:@name").  A group has one wish, merged from its
 * nodes', and the device types for which every node of it has a kernel.  Of the devices that
 * are left the first by type (GPU before CPU), home before others, and name is taken; but what
 * makes a value from nothing goes where all its readers are, and what only looks at a shape
 * stays with its input.
 *
 * With costs that is done, too, but in the order of a step, and of several devices the one is
 * taken where the node is done soonest (place_cost.c); whichever of the two makes the step
 * shorter stays.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/place_cost.h"

struct group {                   /* valid at the leader's index */
    struct device_name *wish;    /* NULL: none */
    const struct device *kept;   /* NULL: to be chosen */
    const struct device *chosen; /* NULL: not yet */
    unsigned types;              /* bit per device type */
    int size;
};

struct placer {
    struct graph *graph;
    const struct device *devices;
    int devices_count;
    struct place_options options;
    int *parent; /* union-find by node id */
    struct group *groups;
    struct place_simulation *simulation; /* NULL: none */
};

/* What the executor does itself; it can be anywhere. */
bool place_needs_no_kernel(const struct node *node)
{
    const char *op = node->op->name;
    return node->op == &prune_arg || !strcmp(op, "NoOp") || !strcmp(op, "Const") ||
           !strncmp(op, "Placeholder", 11);
}

/* A type that is none is told when the node runs. */
static bool lacks_type(const struct node *node)
{
    for (int i = 0; node->fault && i < node->attrs_count; i++) {
        const struct attr *attr = &node->attrs[i];
        for (int k = 0; attr->kind == ATTR_TYPE && k < attr->count; k++)
            if (attr->types[k] == DTYPE_NONE)
                return true;
    }
    return false;
}

static unsigned kernel_types(const struct node *node)
{
    unsigned types = 0;
    bool any = place_needs_no_kernel(node) || lacks_type(node);
    for (int type = 0; type < DEVICE_TYPES; type++)
        if (any || kernel_exists(node, (enum device_type)type))
            types |= 1u << type;
    return types;
}

/* --- groups --- */

static int leader(struct placer *placer, int id)
{
    int root = id;
    while (placer->parent[root] != root)
        root = placer->parent[root];
    while (placer->parent[id] != root) {
        int next = placer->parent[id];
        placer->parent[id] = root;
        id = next;
    }
    return root;
}

static bool init_group(struct placer *placer, const struct node *node, struct error *err)
{
    struct group *group = &placer->groups[node->id];
    placer->parent[node->id] = node->id;
    group->size = 1;
    group->kept = placer->options.keep ? node->device : NULL;
    group->types = kernel_types(node);
    if (!group->types && node->fault)
        return fail(err, node->fault->code, "%s", node->fault->text);
    if (!group->types) {
        struct error none;
        const struct kernel *kernel = kernel_find(node, placer->devices[0].type, &none);
        assert(!kernel);
        return fail(err, INVALID, "%s\n\t [[%s]]", none.text, node->name);
    }
    if (node->requested_device[0] && !group->kept) {
        group->wish = alloc_bytes(sizeof(*group->wish));
        if (!device_name_parse(node->requested_device, group->wish, err))
            return error_prefix(err, "node '%s': ", node->name);
    }
    return true;
}

static bool merge_wishes(const struct placer *placer, struct group *into, struct group *from,
                         struct error *err)
{
    if (into->kept || from->kept) {
        into->kept = into->kept ? into->kept : from->kept;
        return true;
    }
    if (into->wish && from->wish)
        return device_name_merge(into->wish, from->wish, placer->options.soft, err);
    if (from->wish) {
        into->wish = from->wish;
        from->wish = NULL;
    }
    return true;
}

/*
 * The lower id leads, so that results do not depend on the order of joining.  `follows`: `b`
 * takes what `a` has, so what it wished for itself counts only where it can be met, too.
 */
static bool join(struct placer *placer, const struct node *a, const struct node *b,
                 bool follows, struct error *err)
{
    int source = leader(placer, a->id), reader = leader(placer, b->id);
    if (source == reader)
        return true;
    int into = source < reader ? source : reader;
    int from = source < reader ? reader : source;
    struct group *group = &placer->groups[into];
    struct group *other = &placer->groups[from];
    if (!merge_wishes(placer, group, other, err)) {
        if (!follows)
            return error_prefix(err,
                                "Cannot colocate nodes {{colocation_node %s}} and "
                                "{{colocation_node %s}}: ",
                                b->name, a->name);
        struct device_name *wish = placer->groups[source].wish;
        placer->groups[source].wish = group->wish;
        group->wish = wish;
    }
    group->types &= other->types;
    if (!group->types)
        return fail(
            err, INVALID,
            "Cannot colocate nodes '%s' and '%s' because no device type supports both of "
            "those nodes",
            a->name, b->name);
    group->size += other->size;
    placer->parent[from] = into;
    return true;
}

static bool ties(const struct node *node, int input)
{
    int type = node->input_types[input];
    return dtype_is_ref(type) || type == RESOURCE;
}

static bool join_edges(struct placer *placer, struct error *err)
{
    for (int i = 0; i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, i);
        for (int k = 0; !node->fault && k < node->inputs_count; k++)
            if (ties(node, k) && !join(placer, node->inputs[k].from, node, true, err))
                return false;
    }
    return true;
}

/* "_class" = ["loc:@name", ...]; a name that no node has is a mere label. */
static bool join_classes(struct placer *placer, struct error *err)
{
    struct map *labels = map_new(); /* the first node of each */
    bool ok = true;
    for (int i = 0; ok && i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, i);
        const struct attr *class = node_attr(node, "_class");
        for (int k = 0; ok && class && class->kind == ATTR_STRING && k < class->count; k++) {
            const char *text = class->strings[k].data;
            if (strncmp(text, "loc:@", 5) != 0)
                continue;
            const struct node *first = map_find(labels, text + 5);
            if (first)
                ok = join(placer, first, node, false, err);
            else
                map_set(labels, text + 5, (void *)node);
        }
    }
    for (int i = 0; ok && map_count(labels) && i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, i);
        const struct node *first = map_find(labels, node->name);
        if (first)
            ok = join(placer, first, node, false, err);
    }
    map_free(labels);
    return ok;
}

/* --- choosing --- */

static bool can_take(const struct group *group, const struct device *device)
{
    if (!(group->types >> device->type & 1))
        return false;
    if (group->kept)
        return device == group->kept;
    return !group->wish || device_name_matches(group->wish, &device->parts);
}

static bool is_home(const struct placer *placer, const struct device *device)
{
    const struct device *home = placer->options.home;
    return home && home->parts.task == device->parts.task &&
           home->parts.replica == device->parts.replica &&
           !strcmp(home->parts.job, device->parts.job);
}

/* GPUs first, then those of the client's task, then by name, as TensorFlow 2 has it. */
static bool comes_before(const struct placer *placer, const struct device *a,
                         const struct device *b)
{
    if (a->type != b->type)
        return a->type == GPU;
    if (is_home(placer, a) != is_home(placer, b))
        return is_home(placer, a);
    return strcmp(a->name, b->name) < 0;
}

static const struct device *choose(const struct placer *placer, const struct group *group)
{
    const struct device *best = NULL;
    for (int i = 0; i < placer->devices_count; i++) {
        const struct device *device = &placer->devices[i];
        if (can_take(group, device) && (!best || comes_before(placer, device, best)))
            best = device;
    }
    return best;
}

/* Who asked for what is not there keeps only the task of his wish. */
static const struct device *choose_softly(const struct placer *placer, struct group *group)
{
    const struct device *device = choose(placer, group);
    if (device || !placer->options.soft || !group->wish)
        return device;
    group->wish->type[0] = '\0';
    group->wish->index = -1;
    return choose(placer, group);
}

static enum place_reason reason_of(const struct placer *placer, const struct group *group)
{
    int left = 0, with_kernel = 0;
    for (int i = 0; i < placer->devices_count; i++) {
        left += can_take(group, &placer->devices[i]);
        with_kernel += group->types >> placer->devices[i].type & 1;
    }
    if (placer->devices_count == 1)
        return PLACE_ONLY;
    if (group->kept)
        return PLACE_KEPT;
    if (group->size > 1)
        return PLACE_WITH;
    if (left == 1)
        return with_kernel == 1 ? PLACE_KERNEL : PLACE_REQUESTED;
    return PLACE_FIRST;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool fail_choice(const struct placer *placer, const struct node *node,
                        const struct group *group, struct error *err)
{
    struct str known = {0};
    char wish[160] = "";
    size_t count = (size_t)placer->devices_count;
    const char **names = alloc_array(count, sizeof(*names));
    for (size_t i = 0; i < count; i++)
        names[i] = placer->devices[i].name;
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; i < count; i++)
        str_printf(&known, "%s%s", i ? ", " : "", names[i]);
    if (group->wish)
        device_name_text(group->wish, wish, sizeof(wish));
    const char *asked = node->requested_device[0] ? node->requested_device : wish;
    fail(err, INVALID,
         "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to %s "
         "but available devices are [ %s ]. Make sure the device specification refers to a "
         "valid device.%s\n\t [[%s]]",
         node->name, node->name, asked, str_text(&known),
         strstr(asked, "GPU")
             ? " The requested device appears to be a GPU, but CUDA is not enabled."
             : "",
         node->name);
    str_release(&known);
    free(names);
    return false;
}

/* Makes one value out of nothing: it can as well be made where it is read. */
static bool is_generator(const struct node *node)
{
    return !node->inputs_count && node->outputs_count == 1 &&
           !dtype_is_ref(node->output_types[0]);
}

/* Looks at the shape of a value alone. */
static bool is_metadata(const struct node *node)
{
    const char *op = node->op->name;
    return node->inputs_count == 1 &&
           (!strcmp(op, "Shape") || !strcmp(op, "Size") || !strcmp(op, "Rank"));
}

/*
 * By node id: the device where all readers of a generator are, NULL when they differ or there
 * are none.  Readers that are generators' are not waited for.  To be freed.
 */
static const struct device **find_readers(const struct placer *placer)
{
    size_t count = (size_t)graph_count(placer->graph);
    const struct device **readers = alloc_array(count, sizeof(struct device *));
    bool *differ = alloc_array(count, sizeof(bool));
    for (size_t i = 0; i < count; i++) {
        const struct node *node = graph_node(placer->graph, (int)i);
        for (int k = 0; node->device && k < node->inputs_count; k++) {
            int from = node->inputs[k].from->id;
            differ[from] |= readers[from] && readers[from] != node->device;
            readers[from] = node->device;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (differ[i])
            readers[i] = NULL;
    free(differ);
    return readers;
}

/* Where it is done soonest, of the devices that can take it; the first of equals. */
static const struct device *choose_by_cost(const struct placer *placer, const struct node *node,
                                           const struct group *group, struct decision *decision)
{
    const struct device *best = NULL;
    float least = 0;
    decision->done_us = alloc_array((size_t)placer->devices_count, sizeof(float));
    for (int i = 0; i < placer->devices_count; i++) {
        const struct device *device = &placer->devices[i];
        decision->done_us[i] = -1;
        if (!can_take(group, device))
            continue;
        float done = (float)place_cost_at(placer->simulation, node, device);
        decision->done_us[i] = done;
        if (!best || done < least || (done == least && comes_before(placer, device, best))) {
            best = device;
            least = done;
        }
    }
    return best;
}

/* The device of the group of `node`, or (`near`, if it can be) another that suits it more. */
static bool choose_one(struct placer *placer, struct node *node, const struct device *near,
                       struct placement *placement, struct error *err)
{
    int lead = leader(placer, node->id);
    struct group *group = &placer->groups[lead];
    struct decision *decision = &placement->decisions[node->id];
    *decision = (struct decision){.node = node, .leader = graph_node(placer->graph, lead)};
    bool suits = near && group->size == 1 && can_take(group, near);
    if (suits)
        node->device = near;
    else if (!group->chosen)
        group->chosen = choose_softly(placer, group);
    decision->reason = suits ? PLACE_NEAR : reason_of(placer, group);
    if (!suits && placer->simulation && decision->reason == PLACE_FIRST) {
        decision->reason = PLACE_COST;
        group->chosen = choose_by_cost(placer, node, group, decision);
    }
    if (!suits)
        node->device = group->chosen;
    if (node->device && placer->simulation)
        place_cost_put(placer->simulation, node, node->device);
    return node->device || fail_choice(placer, node, group, err);
}

/* What goes where its readers are: it has no place by itself. */
static bool comes_last(struct placer *placer, const struct node *node)
{
    const struct group *group = &placer->groups[leader(placer, node->id)];
    int left = 0;
    for (int i = 0; placer->simulation && i < placer->devices_count; i++)
        left += can_take(group, &placer->devices[i]);
    return group->size == 1 && !group->kept && left != 1 && is_generator(node);
}

static bool choose_all(struct placer *placer, const int *order, struct placement *placement,
                       struct error *err)
{
    int count = graph_count(placer->graph);
    bool several = placer->devices_count > 1, ok = true;
    for (int i = 0; i < count; i++) {
        if (!placer->options.keep || !placer->groups[leader(placer, i)].kept)
            graph_node(placer->graph, i)->device = NULL;
        placer->groups[i].chosen = NULL;
    }
    for (int i = 0; ok && i < count; i++) {
        struct node *node = graph_node(placer->graph, order ? order[i] : i);
        if (several && comes_last(placer, node))
            continue;
        const struct device *near =
            several && is_metadata(node) ? node->inputs[0].from->device : NULL;
        ok = choose_one(placer, node, near, placement, err);
    }
    const struct device **readers = ok && several ? find_readers(placer) : NULL;
    for (int i = 0; ok && several && i < count; i++) {
        struct node *node = graph_node(placer->graph, i);
        if (!node->device)
            ok = choose_one(placer, node, readers[i], placement, err);
    }
    free(readers);
    return ok;
}

static void forget_decisions(struct placement *placement)
{
    for (int i = 0; i < placement->count; i++) {
        free(placement->decisions[i].done_us);
        placement->decisions[i] = (struct decision){0};
    }
}

/* How long a step takes as all nodes are placed. */
static double simulate(const struct placer *placer, struct place_simulation *simulation,
                       const int *order)
{
    for (int i = 0; i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, order[i]);
        place_cost_put(simulation, node, node->device);
    }
    return place_cost_end(simulation);
}

/* By cost, unless the step would be shorter without. */
static bool choose_with_costs(struct placer *placer, struct placement *placement,
                              struct error *err)
{
    int *order = graph_sorted(placer->graph, err);
    if (!order || !choose_all(placer, NULL, placement, err)) {
        free(order);
        return false;
    }
    struct place_simulation *simulation = place_cost_new(
        placer->graph, order, placer->devices, placer->devices_count, placer->options.costs);
    double plain_us = simulate(placer, simulation, order);
    forget_decisions(placement);
    placer->simulation = simulation;
    bool ok = choose_all(placer, order, placement, err);
    placer->simulation = NULL;
    (void)place_cost_end(simulation);
    placement->makespan_us = ok ? simulate(placer, simulation, order) : 0;
    place_cost_free(simulation);
    free(order);
    if (!ok || placement->makespan_us <= plain_us)
        return ok;
    forget_decisions(placement);
    placement->makespan_us = plain_us;
    return choose_all(placer, NULL, placement, err);
}

bool place_graph_over(struct graph *graph, const struct device *devices, int devices_count,
                      const struct place_options *options, struct placement *placement,
                      struct error *err)
{
    assert(devices_count > 0);
    size_t count = (size_t)graph_count(graph);
    struct placer placer = {
        .graph = graph,
        .devices = devices,
        .devices_count = devices_count,
        .options = *options,
        .parent = alloc_array(count, sizeof(int)),
        .groups = alloc_array(count, sizeof(struct group)),
    };
    *placement = (struct placement){
        .devices = devices,
        .devices_count = devices_count,
        .decisions = alloc_array(count, sizeof(struct decision)),
        .count = (int)count,
    };
    bool ok = true;
    for (int i = 0; ok && i < (int)count; i++)
        ok = init_group(&placer, graph_node(graph, i), err);
    ok = ok && join_edges(&placer, err) && join_classes(&placer, err) &&
         (options->costs && devices_count > 1 ? choose_with_costs(&placer, placement, err)
                                              : choose_all(&placer, NULL, placement, err));
    for (size_t i = 0; i < count; i++)
        free(placer.groups[i].wish);
    free(placer.parent);
    free(placer.groups);
    if (!ok)
        place_release(placement);
    return ok;
}

bool place_graph(struct graph *graph, const struct device *devices, int devices_count,
                 struct placement *placement, struct error *err)
{
    return place_graph_over(graph, devices, devices_count, &(struct place_options){0},
                            placement, err);
}

void place_release(struct placement *placement)
{
    forget_decisions(placement);
    free(placement->decisions);
    *placement = (struct placement){0};
}
