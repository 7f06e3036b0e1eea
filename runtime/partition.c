/*
 * partition.c - cuts a placed graph into parts that meet through send and receive nodes.
 *
 * With one device there is one part: the whole.
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/partition.h"
#include "runtime/shapes.h"

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
            return fail(err, UNIMPLEMENTED,
                        "node '%s' is on %s and others on %s: a task of this build runs a "
                        "graph on one device",
                        node->name, node->device->name, device->name);
    }
    *parts = alloc_bytes(sizeof(**parts));
    (*parts)[0] = (struct partition){device, whole};
    *count = 1;
    return true;
}

/* --- over tasks --- */

struct cutter {
    struct subgraph *whole;
    const struct partition_options *options;
    struct partition_parts *out;
    struct partition_flow flow;
    struct partition_late *late;
    struct partition_together *together;
    struct partition_after *after;
    const bool *needed;
    struct shapes shapes; /* with `shaped` */
    struct map *names;    /* taken, in all parts */
    struct map *received; /* by source, output and device: the node that has it there */
    struct node **copies; /* by node id */
    bool branches;        /* a Switch is in it: what is sent may be dead */
    struct error *err;
};

static struct graph *part_of(struct cutter *cutter, const struct device *device)
{
    struct partition_parts *out = cutter->out;
    for (int i = 0; i < out->count; i++)
        if (device_same_task(out->parts[i].device, device))
            return out->parts[i].graph;
    out->parts = alloc_resize(out->parts, (size_t)(out->count + 1) * sizeof(*out->parts));
    out->parts[out->count] =
        (struct partition_part){.device = device, .graph = graph_new_view()};
    return out->parts[out->count++].graph;
}

/* The name, or one with a number that nobody has. */
static const char *take_name(struct cutter *cutter, struct arena *arena, const char *name)
{
    const char *free_name = name;
    for (int i = 1; map_has(cutter->names, free_name); i++)
        free_name = arena_printf(arena, "%s_%d", name, i);
    map_set(cutter->names, free_name, cutter);
    return free_name;
}

/* A new node of a part; NULL after a failure, and all later ones are, too. */
static struct node *add_node_of(struct cutter *cutter, const struct device *device,
                                const char *op, const char *name, const struct edge *inputs,
                                int inputs_count, const struct attr *attrs, int attrs_count)
{
    struct graph *graph = part_of(cutter, device);
    const struct node_def def = {
        .name = take_name(cutter, graph_arena(graph), name),
        .op = op_find(op),
        .inputs = inputs,
        .inputs_count = inputs_count,
        .attrs = attrs,
        .attrs_count = attrs_count,
    };
    struct node *node = graph_add(graph, &def, cutter->err);
    if (node)
        node->device = device;
    return node;
}

/* One with one input, or (NULL) none. */
static struct node *add_node(struct cutter *cutter, const struct device *device, const char *op,
                             const char *name, const struct edge *input,
                             const struct attr *attrs, int attrs_count)
{
    return add_node_of(cutter, device, op, name, input, input ? 1 : 0, attrs, attrs_count);
}

static struct node *add_cast(struct cutter *cutter, struct edge from, enum dtype to,
                             const struct device *device)
{
    const struct attr attrs[] = {attr_type("DstT", to), attr_bool("Truncate", to == BF16)};
    char *name = alloc_printf("%s/cast", from.from->name);
    struct node *cast = add_node(cutter, device, "Cast", name, &from, attrs, 2);
    free(name);
    return cast;
}

/* --- pairs --- */

struct pair {
    const struct device *from, *to;
    const char *tensor;
    const struct shape *shape; /* of what travels; NULL: not known */
    bool client;               /* one end is the client */
};

/* The attributes of a send or a receive, and what they point at. */
struct pair_attrs {
    struct attr list[7]; /* the last for a shape */
    struct attr_bytes texts[3];
    int64_t incarnation;
    int type;
    bool client;
};

static void fill_text(struct pair_attrs *attrs, int at, const char *name, const char *text)
{
    attrs->texts[at] = (struct attr_bytes){text, strlen(text)};
    attrs->list[at] = (struct attr){
        .name = name, .kind = ATTR_STRING, .count = 1, .strings = &attrs->texts[at]};
}

static void fill_attrs(struct pair_attrs *attrs, const struct pair *pair, const char *type_name,
                       int type)
{
    attrs->incarnation = (int64_t)pair->from->incarnation;
    attrs->type = type;
    attrs->client = pair->client;
    fill_text(attrs, 0, "tensor_name", pair->tensor);
    fill_text(attrs, 1, "send_device", pair->from->name);
    fill_text(attrs, 2, "recv_device", pair->to->name);
    attrs->list[3] = (struct attr){.name = "send_device_incarnation",
                                   .kind = ATTR_INT,
                                   .count = 1,
                                   .ints = &attrs->incarnation};
    attrs->list[4] = (struct attr){
        .name = "client_terminated", .kind = ATTR_BOOL, .count = 1, .bools = &attrs->client};
    attrs->list[5] =
        (struct attr){.name = type_name, .kind = ATTR_TYPE, .count = 1, .types = &attrs->type};
}

static bool add_send(struct cutter *cutter, const struct pair *pair, const char *name,
                     struct edge value)
{
    struct pair_attrs attrs;
    int type = dtype_base(value.from->output_types[value.output]);
    fill_attrs(&attrs, pair, "T", type);
    return add_node(cutter, pair->from, type == STRING ? "_HostSend" : "_Send", name, &value,
                    attrs.list, ARRAY_LEN(attrs.list) - 1);
}

static struct node *add_receive(struct cutter *cutter, const struct pair *pair,
                                const char *name, int type, struct node *after)
{
    struct pair_attrs attrs;
    fill_attrs(&attrs, pair, "tensor_type", type);
    if (pair->shape)
        attrs.list[6] = attr_shape("_shape", pair->shape);
    struct node *node = add_node(cutter, pair->to, type == STRING ? "_HostRecv" : "_Recv", name,
                                 NULL, attrs.list, ARRAY_LEN(attrs.list) - !pair->shape);
    if (node && after)
        graph_add_control(part_of(cutter, pair->to), node, cutter->copies[after->id]);
    return node;
}

/* What a node of the whole gives there; NULL where it is not known in full. */
static const struct shape *shape_of(const struct cutter *cutter, struct edge source)
{
    if (!cutter->options->shaped || source.from->id >= cutter->shapes.count)
        return NULL;
    const struct shape *shape = shapes_at(&cutter->shapes, source);
    return shape_is_full(shape) ? shape : NULL;
}

/* How a pair's nodes and tensor are called: as what is sent, with a number of their own. */
struct pair_names {
    char *tensor, *send, *receive;
};

static struct pair_names name_pair(struct cutter *cutter, const char *what)
{
    int number = __atomic_fetch_add(cutter->options->pairs, 1, __ATOMIC_RELAXED);
    return (struct pair_names){.tensor = alloc_printf("edge_%d_%s", number, what),
                               .send = alloc_printf("%s_S%d", what, number),
                               .receive = alloc_printf("%s_R%d", what, number)};
}

static void free_names(const struct pair_names *names)
{
    free(names->tensor);
    free(names->send);
    free(names->receive);
}

/*
 * Sends `value`, which is in the part of `from`, and gives the node that receives it on `to`.
 * `source` is the node of the whole that it comes from.
 */
static struct node *add_pair(struct cutter *cutter, struct edge value,
                             const struct node *source, const struct device *to)
{
    int type = dtype_base(value.from->output_types[value.output]);
    bool cast = cutter->options->compress && type == F32;
    struct node *after = partition_flow_turn(&cutter->flow, source, to);
    const struct pair_names names = name_pair(cutter, source->name);
    bool dummy = value.from != cutter->copies[source->id];
    const struct edge of = {(struct node *)source, value.output};
    const struct pair pair = {.from = source->device,
                              .to = to,
                              .tensor = names.tensor,
                              .shape = dummy ? NULL : shape_of(cutter, of)};
    struct node *node = NULL;
    if (!after && !dummy)
        after = partition_late_after(cutter->late, of, to);
    if (cast)
        value = (struct edge){add_cast(cutter, value, BF16, source->device), 0};
    if (value.from && add_send(cutter, &pair, names.send, value))
        node = add_receive(cutter, &pair, names.receive, cast ? BF16 : type, after);
    if (node && cast)
        node = add_cast(cutter, (struct edge){node, 0}, F32, to);
    free_names(&names);
    return node;
}

/* --- values that go together --- */

/* The node that takes what has come apart, and says what is known of each. */
static struct node *add_apart(struct cutter *cutter, const struct together *group,
                              struct node *received, const int *types, const char *name)
{
    struct shape *shapes = alloc_array((size_t)group->count, sizeof(*shapes));
    for (int i = 0; i < group->count; i++) {
        const struct shape *shape = shape_of(cutter, group->members[i]);
        shapes[i] = shape ? *shape : SHAPE_UNKNOWN;
    }
    const struct attr attrs[] = {attr_type_list("output_types", types, group->count),
                                 {.name = "output_shapes",
                                  .kind = ATTR_SHAPE,
                                  .is_list = true,
                                  .count = group->count,
                                  .shapes = shapes}};
    struct node *node = add_node(cutter, group->to, "OptionalGetValue", name,
                                 &(struct edge){received, 0}, attrs, 2);
    free(shapes);
    return node;
}

/* Sends all that go together as one value; gives the node that has them on their device. */
static struct node *add_together(struct cutter *cutter, const struct together *group)
{
    const struct node *first = group->members[0].from;
    struct edge *values = alloc_array((size_t)group->count, sizeof(*values));
    int *types = alloc_array((size_t)group->count, sizeof(*types));
    for (int i = 0; i < group->count; i++) {
        const struct edge member = group->members[i];
        values[i] = (struct edge){cutter->copies[member.from->id], member.output};
        types[i] = dtype_base(member.from->output_types[member.output]);
    }
    char *what = alloc_printf("%s/and_%d", first->name, group->count - 1);
    const struct pair_names names = name_pair(cutter, what);
    const struct pair pair = {.from = first->device, .to = group->to, .tensor = names.tensor};
    const struct attr list = attr_type_list("Toutput_types", types, group->count);
    struct node *one = add_node_of(cutter, first->device, "OptionalFromValue", what, values,
                                   group->count, &list, 1);
    struct node *node = NULL;
    if (one && add_send(cutter, &pair, names.send, (struct edge){one, 0}))
        node = add_receive(cutter, &pair, names.receive, VARIANT, NULL);
    if (node)
        node = add_apart(cutter, group, node, types, what);
    free_names(&names);
    free(what);
    free(types);
    free(values);
    return node;
}

/* --- what a node reads --- */

/* An empty tensor that is there once `from` has run. */
static struct node *add_dummy(struct cutter *cutter, const struct node *from)
{
    struct tensor empty;
    if (!tensor_init(&empty, F32, &SHAPE(0), cutter->err))
        return NULL;
    const struct attr attrs[] = {attr_type("dtype", F32), attr_tensor("value", &empty)};
    char *name = alloc_printf("%s/control", from->name);
    struct node *node = add_node(cutter, from->device, "Const", name, NULL, attrs, 2);
    if (node)
        graph_add_control(part_of(cutter, from->device), node, cutter->copies[from->id]);
    free(name);
    tensor_release(&empty);
    return node;
}

/*
 * Sends that `from` has run.  A stock task takes a receive for alive even when what has come is
 * dead, and only who reads it for dead: there has to be a reader to run after.
 */
static struct node *add_control_pair(struct cutter *cutter, const struct node *from,
                                     const struct device *device)
{
    struct node *dummy = add_dummy(cutter, from);
    struct node *node = dummy ? add_pair(cutter, (struct edge){dummy, 0}, from, device) : NULL;
    if (!node || !cutter->branches)
        return node;
    char *name = alloc_printf("%s/run", node->name);
    node = add_node(cutter, device, "Identity", name, &(struct edge){node, 0}, NULL, 0);
    free(name);
    return node;
}

/* What a node on `device` reads, or (output -1) runs after, in place of that output. */
static struct node *local_node(struct cutter *cutter, const struct node *from, int output,
                               const struct device *device)
{
    if (device_same_task(from->device, device))
        return cutter->copies[from->id];
    char *key = alloc_printf("%d:%d:%s", from->id, output, device->name);
    struct node *node = map_find(cutter->received, key);
    if (!node && output >= 0)
        node = add_pair(cutter, (struct edge){cutter->copies[from->id], output}, from, device);
    else if (!node)
        node = add_control_pair(cutter, from, device);
    if (node)
        map_set(cutter->received, key, node);
    free(key);
    return node;
}

static struct edge local_edge(struct cutter *cutter, struct edge edge,
                              const struct device *device)
{
    int index;
    bool here = device_same_task(edge.from->device, device);
    struct together *group =
        here ? NULL : partition_together_find(cutter->together, edge, device, &index);
    if (group) {
        if (!group->node)
            group->node = add_together(cutter, group);
        return (struct edge){group->node, index};
    }
    struct node *node = local_node(cutter, edge.from, edge.output, device);
    return (struct edge){node, here ? edge.output : 0};
}

/* Reads a variable on its own task, once those nodes have run. */
static struct node *add_read(struct cutter *cutter, struct edge edge,
                             const struct partition_before *before)
{
    const struct device *home = edge.from->device;
    edge.from = cutter->copies[edge.from->id];
    struct node *read = add_node(cutter, home, "Identity", edge.from->name, &edge, NULL, 0);
    for (int i = 0; read && i < before->count; i++) {
        struct node *one = local_node(cutter, before->nodes[i], -1, home);
        if (!one)
            return NULL;
        graph_add_control(part_of(cutter, home), read, one);
    }
    return read;
}

/* All on a device who read it after the same nodes share what comes. */
static struct node *local_read(struct cutter *cutter, struct edge edge,
                               const struct partition_before *before,
                               const struct device *device)
{
    struct str key = {0};
    str_printf(&key, "%d:%d:%s", edge.from->id, edge.output, device->name);
    for (int i = 0; i < before->count; i++)
        str_printf(&key, ":%d", before->nodes[i]->id);
    struct node *node = map_find(cutter->received, str_text(&key));
    struct node *read = node ? NULL : add_read(cutter, edge, before);
    if (read && (node = add_pair(cutter, (struct edge){read, 0}, edge.from, device)))
        map_set(cutter->received, str_text(&key), node);
    str_release(&key);
    return node;
}

static struct edge local_input(struct cutter *cutter, const struct node *node, int index)
{
    struct edge edge = node->inputs[index];
    struct partition_before before = partition_after_find(cutter->after, node, edge);
    edge = before.count ? (struct edge){local_read(cutter, edge, &before, node->device), 0}
                        : local_edge(cutter, edge, node->device);
    free(before.nodes);
    return edge;
}

/* --- the client's ends --- */

static char *end_key(const struct pair *pair)
{
    return alloc_printf("%s;%016" PRIx64 ";%s;%s;0:0", pair->from->name,
                        pair->from->incarnation, pair->to->name, pair->tensor);
}

static bool add_feeds(struct cutter *cutter)
{
    const struct subgraph *whole = cutter->whole;
    struct partition_parts *out = cutter->out;
    out->feeds = alloc_array((size_t)whole->feeds_count, sizeof(*out->feeds));
    for (int i = 0; i < whole->feeds_count; i++) {
        struct node *arg = whole->feeds[i];
        if (!cutter->needed[arg->id])
            continue;
        int size;
        const char *fed = prune_fed_name(arg, &size);
        char *tensor = alloc_printf("%.*s:%s", size, fed, fed + size + 1);
        char *name = alloc_printf("_recv_%s", fed);
        const struct device *client = arg->device = cutter->options->client;
        const struct pair pair = {client, client, tensor,
                                  shape_of(cutter, (struct edge){arg, 0}), true};
        struct node *node = add_receive(cutter, &pair, name, arg->output_types[0], NULL);
        cutter->copies[arg->id] = node;
        out->feeds[out->feeds_count++] = (struct partition_end){i, end_key(&pair)};
        free(tensor);
        free(name);
        if (!node)
            return false;
    }
    return true;
}

static bool add_fetch(struct cutter *cutter, int index)
{
    const struct edge *fetch = &cutter->whole->fetches[index];
    struct partition_parts *out = cutter->out;
    const struct device *client = cutter->options->client;
    const struct pair pair = {client, client, cutter->options->fetch_names[index], NULL, true};
    struct edge value = local_edge(cutter, *fetch, client);
    char *name = alloc_printf("_send_%s_%d", fetch->from->name, fetch->output);
    bool ok = value.from && add_send(cutter, &pair, name, value);
    free(name);
    if (ok)
        out->fetches[out->fetches_count++] = (struct partition_end){index, end_key(&pair)};
    return ok;
}

static bool add_fetches(struct cutter *cutter)
{
    const struct subgraph *whole = cutter->whole;
    struct partition_parts *out = cutter->out;
    size_t count = (size_t)whole->fetches_count;
    out->fetches = alloc_array(count, sizeof(*out->fetches));
    out->fetch_of = alloc_array(count, sizeof(*out->fetch_of));
    for (int i = 0; i < whole->fetches_count; i++) {
        int first = 0;
        while (whole->fetches[first].from != whole->fetches[i].from ||
               whole->fetches[first].output != whole->fetches[i].output)
            first++;
        out->fetch_of[i] = first == i ? out->fetches_count : out->fetch_of[first];
        if (first == i && !add_fetch(cutter, i))
            return false;
    }
    return true;
}

/* --- nodes --- */

static void copy_nodes(struct cutter *cutter)
{
    const struct graph *graph = cutter->whole->graph;
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        if (!cutter->needed[i] || node->op == &prune_arg)
            continue;
        struct graph *part = part_of(cutter, node->device);
        cutter->branches |= node->op->flow == FLOW_SWITCH;
        cutter->copies[i] = graph_add_copy(part, node);
        cutter->copies[i]->name = take_name(cutter, graph_arena(part), node->name);
    }
}

static bool link_node(struct cutter *cutter, const struct node *node)
{
    struct edge *inputs = alloc_array((size_t)node->inputs_count, sizeof(*inputs));
    struct node **controls = alloc_array((size_t)node->controls_count, sizeof(*controls));
    bool ok = true;
    for (int i = 0; ok && i < node->inputs_count; i++) {
        inputs[i] = local_input(cutter, node, i);
        ok = inputs[i].from;
    }
    for (int i = 0; ok && i < node->controls_count; i++)
        ok = (controls[i] = local_node(cutter, node->controls[i], -1, node->device));
    if (ok)
        graph_set_edges(part_of(cutter, node->device), cutter->copies[node->id], inputs,
                        node->inputs_count, controls, node->controls_count);
    free(inputs);
    free(controls);
    return ok;
}

static bool cut(struct cutter *cutter)
{
    const struct graph *graph = cutter->whole->graph;
    copy_nodes(cutter);
    if (!add_feeds(cutter))
        return false;
    for (int i = 0; i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, i);
        if (cutter->needed[i] && node->op != &prune_arg && !link_node(cutter, node))
            return false;
    }
    return add_fetches(cutter);
}

/* Which nodes the run needs; all that is new since then turns loops, and is needed. */
static bool *needed_with_turns(bool *needed, int count, const struct graph *graph)
{
    needed = alloc_resize(needed, (size_t)graph_count(graph) * sizeof(bool));
    for (int i = count; i < graph_count(graph); i++)
        needed[i] = true;
    return needed;
}

/* Before anything is added to the whole. */
static bool find_shapes(struct cutter *cutter)
{
    const struct graph *graph = cutter->whole->graph;
    int *order = graph_sorted(graph, cutter->err);
    if (order)
        shapes_infer(&cutter->shapes, graph, order, graph_count(graph));
    free(order);
    return order;
}

bool partition_split(struct subgraph *whole, const struct partition_options *options,
                     struct partition_parts *parts, struct error *err)
{
    int count = graph_count(whole->graph);
    bool *needed = prune_needed(whole);
    struct cutter cutter = {.whole = whole, .options = options, .out = parts, .err = err};
    *parts = (struct partition_parts){0};
    for (int i = 0; i < whole->feeds_count; i++)
        whole->feeds[i]->device = options->client;
    bool ok = (!options->shaped || find_shapes(&cutter)) &&
              partition_flow_init(&cutter.flow, whole, needed, err);
    if (ok) {
        needed = needed_with_turns(needed, count, whole->graph);
        cutter.late = partition_late_new(whole, needed, &cutter.flow, options->client,
                                         options->costs, err);
        cutter.together = partition_together_new(whole, needed, options, err);
        cutter.after = partition_after_new(whole, needed, err);
        cutter.needed = needed;
        cutter.names = map_new();
        cutter.received = map_new();
        cutter.copies = alloc_array((size_t)graph_count(whole->graph), sizeof(struct node *));
        ok = cutter.late && cutter.together && cutter.after && cut(&cutter);
        partition_late_free(cutter.late);
        partition_together_free(cutter.together);
        partition_after_free(cutter.after);
        partition_flow_release(&cutter.flow);
        map_free(cutter.names);
        map_free(cutter.received);
        free(cutter.copies);
    }
    shapes_release(&cutter.shapes);
    free(needed);
    if (!ok)
        partition_release(parts);
    return ok;
}

void partition_release(struct partition_parts *parts)
{
    for (int i = 0; i < parts->count; i++)
        graph_free(parts->parts[i].graph);
    for (int i = 0; i < parts->feeds_count; i++)
        free(parts->feeds[i].key);
    for (int i = 0; i < parts->fetches_count; i++)
        free(parts->fetches[i].key);
    free(parts->parts);
    free(parts->feeds);
    free(parts->fetches);
    free(parts->fetch_of);
    *parts = (struct partition_parts){0};
}
