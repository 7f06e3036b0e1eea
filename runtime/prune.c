/* prune.c - cuts out what a run needs: backwards from fetches and targets, up to the feeds. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/session.h"

const struct op prune_arg = {
    .name = "_Arg", .outputs = "output:T", .attrs = "T:type shape:shape=<unk>"};

/* The names of a run, looked up in the session's graph. */
struct names {
    const struct graph *graph;
    struct edge *feeds;
    struct edge *fetches;
    struct node **targets;
    struct connection {
        struct edge from, to;
    } * connections;
    int *fed_by; /* by node id: index into feeds of its first fed output, or -1 */
};

/* "train", or "train:0" as some clients say. */
static struct node *find_target(const struct graph *graph, const char *text)
{
    struct node *node = graph_find(graph, text);
    const char *colon = strrchr(text, ':');
    if (node || !colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
        return node;
    char *name = alloc_text_n(text, (size_t)(colon - text));
    node = graph_find(graph, name);
    free(name);
    return node;
}

/* Errors in TensorFlow's words: how many outputs the node has, where it is there. */
static bool find_feed(const struct graph *graph, const char *name, struct edge *edge,
                      struct error *err)
{
    if (graph_edge(graph, name, edge, err))
        return true;
    if (err->code == NOT_FOUND)
        return fail(err, NOT_FOUND, "FeedInputs: unable to find feed output %s", name);
    const struct node *node = find_target(graph, name);
    return node ? fail(err, INVALID, "FeedInputs: %s should have output index < %d", name,
                       node->outputs_count)
                : error_prefix(err, "feed ");
}

static bool find_fetch(const struct graph *graph, const char *name, struct edge *edge,
                       struct error *err)
{
    if (graph_edge(graph, name, edge, err))
        return true;
    if (err->code == NOT_FOUND)
        return fail(err, NOT_FOUND, "FetchOutputs node %s: not found", name);
    const struct node *node = find_target(graph, name);
    return node ? fail(err, INVALID, "FetchOutputs %s: output index too large, must be < %d",
                       name, node->outputs_count)
                : error_prefix(err, "fetch ");
}

static bool find_names(struct names *names, const struct session_run *run, struct error *err)
{
    if (!run->fetches_count && !run->targets_count)
        return fail(err, INVALID, "Must specify at least one target to fetch or execute.");
    for (int i = 0; i < run->feeds_count; i++)
        if (!find_feed(names->graph, run->feeds[i], &names->feeds[i], err))
            return false;
    for (int i = 0; i < run->fetches_count; i++)
        if (!find_fetch(names->graph, run->fetches[i], &names->fetches[i], err))
            return false;
    for (int i = 0; i < run->targets_count; i++) {
        names->targets[i] = find_target(names->graph, run->targets[i]);
        if (!names->targets[i])
            return fail(err, NOT_FOUND, "PruneForTargets: Some target nodes not found: %s ",
                        run->targets[i]);
    }
    return true;
}

/* What is connected to another end, which TensorFlow names when it is not there. */
static bool find_sources(struct names *names, const struct session_run *run, struct error *err)
{
    for (int i = 0; i < run->connections_count; i++) {
        const struct session_connection *told = &run->connections[i];
        struct error unknown;
        if (graph_edge(names->graph, told->from, &names->connections[i].from, &unknown))
            continue;
        const struct node *node = find_target(names->graph, told->from);
        return node ? fail(err, INVALID,
                           "Requested tensor connection from unknown edge: \"%s\" (actual "
                           "number of outputs = %d).",
                           told->to, node->outputs_count)
                    : fail(err, INVALID,
                           "Requested tensor connection from unknown node: \"%s\".", told->to);
    }
    return true;
}

static bool find_connections(struct names *names, const struct session_run *run,
                             struct error *err)
{
    for (int i = 0; i < run->connections_count; i++) {
        const struct session_connection *told = &run->connections[i];
        struct connection *found = &names->connections[i];
        if (!find_feed(names->graph, told->to, &found->to, err))
            return false;
        enum dtype from = dtype_base(found->from.from->output_types[found->from.output]);
        enum dtype to = dtype_base(found->to.from->output_types[found->to.output]);
        if (from != to)
            return fail(err, INVALID,
                        "Requested tensor connection from \"%s\", which is %s, to \"%s\", "
                        "which is %s",
                        told->from, dtype_name(from), told->to, dtype_name(to));
    }
    return true;
}

static bool same_edge(struct edge a, struct edge b)
{
    return a.from == b.from && a.output == b.output;
}

/* What is read in place of this edge. */
static struct edge connected(const struct names *names, const struct session_run *run,
                             struct edge edge)
{
    for (int i = 0; i < run->connections_count; i++)
        if (same_edge(names->connections[i].to, edge))
            return names->connections[i].from;
    return edge;
}

/* The feed of this edge, -1 if it is not fed. */
static int feed_of(const struct names *names, const struct session_run *run, struct edge edge)
{
    if (names->fed_by[edge.from->id] < 0)
        return -1;
    for (int i = names->fed_by[edge.from->id]; i < run->feeds_count; i++)
        if (names->feeds[i].from == edge.from && names->feeds[i].output == edge.output)
            return i;
    return -1;
}

static bool check_feeds(struct names *names, const struct session_run *run, struct error *err)
{
    for (int i = 0; i < graph_count(names->graph); i++)
        names->fed_by[i] = -1;
    for (int i = 0; i < run->feeds_count; i++) {
        if (feed_of(names, run, names->feeds[i]) >= 0)
            return fail(err, INVALID, "Endpoint \"%s:%d\" fed more than once.",
                        names->feeds[i].from->name, names->feeds[i].output);
        if (names->fed_by[names->feeds[i].from->id] < 0)
            names->fed_by[names->feeds[i].from->id] = i;
    }
    return true;
}

/* An edge is fed or connected, once, and then not fetched. */
static bool check_connections(const struct names *names, const struct session_run *run,
                              struct error *err)
{
    for (int i = 0; i < run->connections_count; i++) {
        struct edge to = names->connections[i].to;
        bool twice = feed_of(names, run, to) >= 0;
        for (int k = 0; k < i; k++)
            twice = twice || same_edge(names->connections[k].to, to);
        if (twice)
            return fail(err, INVALID, "Endpoint \"%s:%d\" fed more than once.", to.from->name,
                        to.output);
    }
    for (int i = 0; i < run->fetches_count; i++) {
        struct edge fetch = names->fetches[i];
        if (feed_of(names, run, fetch) >= 0 || !same_edge(connected(names, run, fetch), fetch))
            return fail(err, INVALID, "%s:%d is both fed and fetched.", fetch.from->name,
                        fetch.output);
    }
    return true;
}

/* A placeholder that is fed does not run, even when it is named as a target or a control. */
static bool is_satisfied(const struct names *names, const struct session_run *run,
                         const struct node *node)
{
    return !strncmp(node->op->name, "Placeholder", 11) &&
           feed_of(names, run, (struct edge){(struct node *)node, 0}) >= 0;
}

/* --- marking --- */

struct walk {
    bool *needed; /* by id */
    const struct node **stack;
    int count;
};

static void mark(struct walk *walk, const struct node *node)
{
    if (walk->needed[node->id])
        return;
    walk->needed[node->id] = true;
    walk->stack[walk->count++] = node;
}

/* Marks all that the marked ones need. */
static void walk_back(const struct names *names, const struct session_run *run,
                      struct walk *walk)
{
    while (walk->count) {
        const struct node *node = walk->stack[--walk->count];
        for (int i = 0; i < node->inputs_count; i++) {
            struct edge edge = connected(names, run, node->inputs[i]);
            if (feed_of(names, run, edge) < 0)
                mark(walk, edge.from);
        }
        for (int i = 0; i < node->controls_count; i++)
            if (!is_satisfied(names, run, node->controls[i]))
                mark(walk, node->controls[i]);
    }
}

/* Marks all that the run needs in the session's graph. */
static void mark_needed(const struct names *names, const struct session_run *run,
                        struct walk *walk)
{
    for (int i = 0; i < run->fetches_count; i++)
        mark(walk, names->fetches[i].from);
    for (int i = 0; i < run->targets_count; i++)
        if (!is_satisfied(names, run, names->targets[i]))
            mark(walk, names->targets[i]);
    walk_back(names, run, walk);
}

/* No value may come to depend on itself. */
static bool check_cycles(const struct names *names, const struct session_run *run,
                         struct error *err)
{
    size_t count = (size_t)graph_count(names->graph);
    bool cycle = false;
    for (int i = 0; !cycle && i < run->connections_count; i++) {
        const struct connection *connection = &names->connections[i];
        struct walk walk = {.needed = alloc_array(count, sizeof(bool)),
                            .stack = alloc_array(count, sizeof(struct node *))};
        mark(&walk, connection->from.from);
        walk_back(names, run, &walk);
        cycle = walk.needed[connection->to.from->id];
        for (size_t k = 0; !cycle && k < count; k++) {
            const struct node *node = graph_node(names->graph, (int)k);
            for (int n = 0; walk.needed[k] && n < node->inputs_count; n++)
                cycle = cycle || same_edge(node->inputs[n], connection->to);
        }
        free(walk.needed);
        free(walk.stack);
        if (cycle)
            return fail(err, INVALID,
                        "Requested Tensor connection between nodes \"%s\" and \"%s\" would "
                        "create a cycle.",
                        connection->to.from->name, connection->from.from->name);
    }
    return true;
}

bool *prune_needed(const struct subgraph *subgraph)
{
    size_t count = (size_t)graph_count(subgraph->graph);
    struct walk walk = {.needed = alloc_array(count, sizeof(bool)),
                        .stack = alloc_array(count, sizeof(struct node *))};
    for (int i = 0; i < subgraph->fetches_count; i++)
        mark(&walk, subgraph->fetches[i].from);
    for (int i = 0; i < subgraph->targets_count; i++)
        mark(&walk, subgraph->targets[i]);
    while (walk.count) {
        const struct node *node = walk.stack[--walk.count];
        for (int i = 0; i < node->inputs_count; i++)
            mark(&walk, node->inputs[i].from);
        for (int i = 0; i < node->controls_count; i++)
            mark(&walk, node->controls[i]);
    }
    free(walk.stack);
    return walk.needed;
}

/* --- copying --- */

/* What a placeholder says of its value; by an old rule rank 0 says nothing. */
static const struct shape *declared_shape(const struct node *node)
{
    static const struct shape unknown = {.rank = -1};
    const struct shape *shape = node_attr_shape(node, "shape");
    bool says = !strncmp(node->op->name, "Placeholder", strlen("Placeholder"));
    return says && shape && shape->rank > 0 ? shape : &unknown;
}

/* A node in place of a fed output; its attributes are in the view's arena. */
static struct node *add_arg(struct graph *view, struct edge fed)
{
    struct arena *arena = graph_arena(view);
    int *type = arena_alloc(arena, sizeof(*type));
    *type = dtype_base(fed.from->output_types[fed.output]);
    struct attr *attrs = arena_array(arena, 2, sizeof(*attrs));
    attrs[0] = (struct attr){.name = "T", .kind = ATTR_TYPE, .count = 1, .types = type};
    attrs[1] = attr_shape("shape", declared_shape(fed.from));
    const struct node arg = {
        .name = arena_printf(arena, "_arg_%s_%d", fed.from->name, fed.output),
        .op = &prune_arg,
        .attrs = attrs,
        .attrs_count = 2,
        .output_types = type,
        .outputs_count = 1,
        .requested_device = "",
    };
    return graph_add_copy(view, &arg);
}

/* Room for the edges of one node after the other. */
struct edges {
    struct edge *inputs;
    struct node **controls;
    int room;
};

static void copy_edges(struct subgraph *part, const struct names *names,
                       const struct session_run *run, struct node *const *copies,
                       const struct node *node, struct edges *edges)
{
    int most =
        node->inputs_count > node->controls_count ? node->inputs_count : node->controls_count;
    if (most > edges->room) {
        edges->room = 2 * most;
        edges->inputs = alloc_resize(edges->inputs, (size_t)edges->room * sizeof(struct edge));
        edges->controls =
            alloc_resize(edges->controls, (size_t)edges->room * sizeof(struct node *));
    }
    for (int i = 0; i < node->inputs_count; i++) {
        struct edge edge = connected(names, run, node->inputs[i]);
        int feed = feed_of(names, run, edge);
        edges->inputs[i] = feed >= 0 ? (struct edge){part->feeds[feed], 0}
                                     : (struct edge){copies[edge.from->id], edge.output};
    }
    int controls_count = 0;
    for (int i = 0; i < node->controls_count; i++)
        if (!is_satisfied(names, run, node->controls[i]))
            edges->controls[controls_count++] = copies[node->controls[i]->id];
    graph_set_edges(part->graph, copies[node->id], edges->inputs, node->inputs_count,
                    edges->controls, controls_count);
}

static struct subgraph *copy_needed(const struct names *names, const struct session_run *run,
                                    const bool *needed)
{
    struct graph *view = graph_new_view();
    struct arena *arena = graph_arena(view);
    struct subgraph *part = arena_alloc(arena, sizeof(*part));
    part->graph = view;
    part->feeds_count = run->feeds_count;
    part->fetches_count = run->fetches_count;
    part->feeds = arena_array(arena, (size_t)run->feeds_count, sizeof(*part->feeds));
    part->fetches = arena_array(arena, (size_t)run->fetches_count, sizeof(*part->fetches));
    part->targets = arena_array(arena, (size_t)run->targets_count, sizeof(*part->targets));

    for (int i = 0; i < run->feeds_count; i++)
        part->feeds[i] = add_arg(view, names->feeds[i]);
    int count = graph_count(names->graph);
    struct node **copies = alloc_array((size_t)count, sizeof(struct node *));
    for (int i = 0; i < count; i++)
        if (needed[i])
            copies[i] = graph_add_copy(view, graph_node(names->graph, i));
    struct edges edges = {0};
    for (int i = 0; i < count; i++)
        if (needed[i])
            copy_edges(part, names, run, copies, graph_node(names->graph, i), &edges);

    for (int i = 0; i < run->fetches_count; i++)
        part->fetches[i] =
            (struct edge){copies[names->fetches[i].from->id], names->fetches[i].output};
    for (int i = 0; i < run->targets_count; i++)
        if (copies[names->targets[i]->id])
            part->targets[part->targets_count++] = copies[names->targets[i]->id];
    free(edges.inputs);
    free(edges.controls);
    free(copies);
    return part;
}

struct subgraph *prune_graph(const struct graph *graph, const struct session_run *run,
                             struct error *err)
{
    size_t count = (size_t)graph_count(graph);
    struct names names = {
        .graph = graph,
        .feeds = alloc_array((size_t)run->feeds_count, sizeof(struct edge)),
        .fetches = alloc_array((size_t)run->fetches_count, sizeof(struct edge)),
        .targets = alloc_array((size_t)run->targets_count, sizeof(struct node *)),
        .connections = alloc_array((size_t)run->connections_count, sizeof(struct connection)),
        .fed_by = alloc_array(count, sizeof(int)),
    };
    struct walk walk = {.needed = alloc_array(count, sizeof(bool)),
                        .stack = alloc_array(count, sizeof(struct node *))};
    struct subgraph *part = NULL;
    if (find_sources(&names, run, err) && find_names(&names, run, err) &&
        find_connections(&names, run, err) && check_feeds(&names, run, err) &&
        check_connections(&names, run, err) && check_cycles(&names, run, err)) {
        mark_needed(&names, run, &walk);
        part = copy_needed(&names, run, walk.needed);
    }
    free(names.feeds);
    free(names.fetches);
    free(names.targets);
    free(names.connections);
    free(names.fed_by);
    free(walk.needed);
    free(walk.stack);
    return part;
}

/* All names, with what they are for. */
void prune_signature(const struct session_run *run, bool partial, struct str *out)
{
    if (partial)
        str_add_char(out, '\x1d');
    const char *const *lists[] = {run->feeds, run->fetches, run->targets};
    const int counts[] = {run->feeds_count, run->fetches_count, run->targets_count};
    for (int l = 0; l < ARRAY_LEN(lists); l++) {
        for (int i = 0; i < counts[l]; i++) {
            str_add(out, lists[l][i]);
            str_add_char(out, '\x1f');
        }
        str_add_char(out, '\x1e');
    }
    for (int i = 0; i < run->connections_count; i++)
        str_printf(out, "%s\x1f%s\x1f", run->connections[i].from, run->connections[i].to);
}

void prune_free(struct subgraph *subgraph)
{
    if (subgraph)
        graph_free(subgraph->graph); /* the subgraph lives in its arena */
}

const char *prune_fed_name(const struct node *arg, int *size)
{
    assert(arg->op == &prune_arg);
    const char *name = arg->name + strlen("_arg_"); /* _arg_NAME_OUTPUT */
    *size = (int)(strrchr(name, '_') - name);
    return name;
}

void prune_feeds_of(const struct subgraph *part, int fetch, bool *needed)
{
    size_t count = (size_t)graph_count(part->graph);
    bool *seen = alloc_array(count, sizeof(*seen));
    const struct node **stack = alloc_array(count, sizeof(*stack));
    int left = 0;
    stack[left++] = part->fetches[fetch].from;
    seen[stack[0]->id] = true;
    while (left) {
        const struct node *node = stack[--left];
        for (int i = 0; i < part->feeds_count; i++)
            needed[i] |= part->feeds[i] == node;
        const struct node *from;
        for (int i = 0; (from = node_before(node, i)); i++) {
            if (!seen[from->id])
                stack[left++] = from;
            seen[from->id] = true;
        }
    }
    free(seen);
    free(stack);
}
