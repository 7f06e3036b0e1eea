/*
 * place.c - a device for every node, with reasons.
 *
 * Nodes that must be together form groups: the ends of an edge that carries a reference or a
 * resource, and those that ask for it ("loc:@name").  A group has one wish, merged from its
 * nodes', and the device types for which every node of it has a kernel.  Of the devices that
 * are left the first by type (GPU before CPU) and name is taken.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"

struct group {                /* valid at the leader's index */
    struct device_name *wish; /* NULL: none */
    unsigned types;           /* bit per device type */
    int size;
};

struct placer {
    struct graph *graph;
    const struct device *devices;
    int devices_count;
    int *parent; /* union-find by node id */
    struct group *groups;
};

/* What the executor does itself; it can be anywhere. */
static bool needs_no_kernel(const struct node *node)
{
    const char *op = node->op->name;
    return node->op == &prune_arg || !strcmp(op, "NoOp") || !strcmp(op, "Const") ||
           !strncmp(op, "Placeholder", 11);
}

static unsigned kernel_types(const struct node *node)
{
    unsigned types = 0;
    for (int type = 0; type < DEVICE_TYPES; type++)
        if (needs_no_kernel(node) || node->fault || kernel_exists(node, (enum device_type)type))
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
    group->types = kernel_types(node);
    if (!group->types) {
        struct error none;
        const struct kernel *kernel = kernel_find(node, placer->devices[0].type, &none);
        assert(!kernel);
        return fail(err, INVALID, "Cannot assign a device for operation %s: %s", node->name,
                    none.text);
    }
    if (node->requested_device[0]) {
        group->wish = alloc_bytes(sizeof(*group->wish));
        if (!device_name_parse(node->requested_device, group->wish, err))
            return error_prefix(err, "node '%s': ", node->name);
    }
    return true;
}

/* The lower id leads, so that results do not depend on the order of joining. */
static bool join(struct placer *placer, const struct node *a, const struct node *b,
                 struct error *err)
{
    int into = leader(placer, a->id);
    int from = leader(placer, b->id);
    if (into == from)
        return true;
    if (from < into) {
        int swap = into;
        into = from;
        from = swap;
    }
    struct group *group = &placer->groups[into];
    struct group *other = &placer->groups[from];
    if (other->wish && group->wish) {
        if (!device_name_merge(group->wish, other->wish, false, err))
            return error_prefix(err, "Cannot colocate nodes '%s' and '%s': ", a->name, b->name);
    } else if (other->wish) {
        group->wish = other->wish;
        other->wish = NULL;
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

static bool ties(const struct node *from, int output)
{
    int type = from->output_types[output];
    return dtype_is_ref(type) || type == RESOURCE;
}

static bool join_edges(struct placer *placer, struct error *err)
{
    for (int i = 0; i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            const struct edge *edge = &node->inputs[k];
            if (ties(edge->from, edge->output) && !join(placer, edge->from, node, err))
                return false;
        }
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
                ok = join(placer, first, node, err);
            else
                map_set(labels, text + 5, (void *)node);
        }
    }
    for (int i = 0; ok && map_count(labels) && i < graph_count(placer->graph); i++) {
        const struct node *node = graph_node(placer->graph, i);
        const struct node *first = map_find(labels, node->name);
        if (first)
            ok = join(placer, first, node, err);
    }
    map_free(labels);
    return ok;
}

/* --- choosing --- */

static bool can_take(const struct group *group, const struct device *device)
{
    return (group->types >> device->type & 1) &&
           (!group->wish || device_name_matches(group->wish, &device->parts));
}

/* GPUs first, then by name. */
static bool comes_before(const struct device *a, const struct device *b)
{
    if (a->type != b->type)
        return a->type == GPU;
    return strcmp(a->name, b->name) < 0;
}

static const struct device *choose(const struct placer *placer, const struct group *group)
{
    const struct device *best = NULL;
    for (int i = 0; i < placer->devices_count; i++) {
        const struct device *device = &placer->devices[i];
        if (can_take(group, device) && (!best || comes_before(device, best)))
            best = device;
    }
    return best;
}

static enum place_reason reason_of(const struct placer *placer, const struct group *group,
                                   bool alone)
{
    int left = 0, with_kernel = 0;
    for (int i = 0; i < placer->devices_count; i++) {
        left += can_take(group, &placer->devices[i]);
        with_kernel += group->types >> placer->devices[i].type & 1;
    }
    if (placer->devices_count == 1)
        return PLACE_ONLY;
    if (!alone)
        return PLACE_WITH;
    if (left == 1)
        return with_kernel == 1 ? PLACE_KERNEL : PLACE_REQUESTED;
    return PLACE_FIRST;
}

static bool fail_choice(const struct placer *placer, const struct node *node,
                        const struct group *group, struct error *err)
{
    struct str known = {0};
    char wish[160] = "";
    if (group->wish)
        device_name_text(group->wish, wish, sizeof(wish));
    for (int i = 0; i < placer->devices_count; i++)
        str_printf(&known, "%s%s", i ? ", " : "", placer->devices[i].name);
    fail(err, INVALID,
         "Cannot assign a device for operation %s (%s): '%s' was explicitly assigned to '%s' "
         "but "
         "available devices are [ %s ]",
         node->name, node->op->name, node->name, wish, str_text(&known));
    str_release(&known);
    return false;
}

static bool choose_all(struct placer *placer, struct placement *placement, struct error *err)
{
    for (int i = 0; i < graph_count(placer->graph); i++) {
        struct node *node = graph_node(placer->graph, i);
        int lead = leader(placer, i);
        const struct group *group = &placer->groups[lead];
        if (lead != i) { /* the leader has the lowest id, so it is placed */
            node->device = graph_node(placer->graph, lead)->device;
        } else {
            node->device = choose(placer, group);
            if (!node->device)
                return fail_choice(placer, node, group, err);
        }
        placement->decisions[i] =
            (struct decision){.node = node,
                              .leader = graph_node(placer->graph, lead),
                              .reason = reason_of(placer, group, group->size == 1)};
    }
    return true;
}

bool place_graph(struct graph *graph, const struct device *devices, int devices_count,
                 struct placement *placement, struct error *err)
{
    assert(devices_count > 0);
    size_t count = (size_t)graph_count(graph);
    struct placer placer = {
        .graph = graph,
        .devices = devices,
        .devices_count = devices_count,
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
         choose_all(&placer, placement, err);
    for (size_t i = 0; i < count; i++)
        free(placer.groups[i].wish);
    free(placer.parent);
    free(placer.groups);
    if (!ok)
        place_release(placement);
    return ok;
}

void place_release(struct placement *placement)
{
    free(placement->decisions);
    *placement = (struct placement){0};
}

/* --- explaining --- */

static void add_text(struct str *json, const char *text)
{
    str_add_json(json, text, strlen(text));
}

static void add_reason(const struct decision *decision, struct str *json)
{
    const struct node *node = decision->node;
    struct str text = {0};
    switch (decision->reason) {
    case PLACE_ONLY:
        str_printf(&text, "the only device of this task; it has a kernel for %s",
                   node->op->name);
        break;
    case PLACE_REQUESTED:
        str_printf(&text, "requested: %s", node->requested_device);
        break;
    case PLACE_WITH:
        str_printf(&text, "must be with '%s': they share a variable or ask for it",
                   decision->leader->name);
        break;
    case PLACE_KERNEL:
        str_printf(&text, "the only device with a kernel for %s", node->op->name);
        break;
    case PLACE_FIRST:
        str_add(&text, "the first of several, by type and name");
        break;
    }
    add_text(json, str_text(&text));
    str_release(&text);
}

/* Why a device was not taken, NULL for the one that was. */
static const char *rejection(const struct node *node, const struct device *device)
{
    struct device_name wish;
    struct error err;
    if (device == node->device)
        return NULL;
    if (!needs_no_kernel(node) && !kernel_exists(node, device->type))
        return "no kernel for this op and its types";
    if (node->requested_device[0] && device_name_parse(node->requested_device, &wish, &err) &&
        !device_name_matches(&wish, &device->parts))
        return "not what was requested";
    return "another device comes first";
}

void place_explain(const struct placement *placement, const struct node *node, struct str *json)
{
    assert(node->id < placement->count);
    str_add(json, "{\"node\":");
    add_text(json, node->name);
    str_add(json, ",\"op\":");
    add_text(json, node->op->name);
    const struct attr *parts = node_attr(node, OPTIMISE_STANDS_FOR);
    for (int i = 0; parts && i < parts->count; i++) {
        str_add(json, i ? "," : ",\"stands_for\":[");
        str_add_json(json, parts->strings[i].data, parts->strings[i].size);
        str_add(json, i + 1 == parts->count ? "]" : "");
    }
    str_add(json, ",\"device\":");
    add_text(json, node->device->name);
    str_add(json, ",\"requested\":");
    add_text(json, node->requested_device);
    str_add(json, ",\"reason\":");
    add_reason(&placement->decisions[node->id], json);
    str_add(json, ",\"candidates\":[");
    for (int i = 0; i < placement->devices_count; i++) {
        const struct device *device = &placement->devices[i];
        const char *rejected = rejection(node, device);
        str_add(json, i ? ",{\"device\":" : "{\"device\":");
        add_text(json, device->name);
        str_add(json, ",\"rejected\":");
        if (rejected)
            add_text(json, rejected);
        else
            str_add(json, "null");
        str_add(json, "}");
    }
    str_add(json, "]}");
}
