/*
 * optimise_recompute.c - what is cheap is computed again in place of being kept.
 *
 * When a step would take more than the session may use, values that live across the peak and
 * are needed again after it, as activations are by gradients, get a second node that runs
 * right before its readers.  Which ones: most bytes saved per operation first, until the step
 * fits or nothing helps.  Inputs of a second node are values that are there anyway, or get
 * second nodes themselves.  The same kernel runs on the same numbers, so the bits are the same.
 *
 * The hint of TensorFlow is followed whatever the memory: a node with the attribute
 * "_recompute_hint" is computed again for readers under "gradients/".
 *
 * DESIGN.  A second node waits for what its first reader waits for, and takes that one's turn
 * in the order (graph.h); so it runs neither early nor late.  Each step is measured by the
 * estimate of memory.c, and undone if it made things worse.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/op.h"
#include "runtime/price.h"

#define HINT "_recompute_hint"

/* Nodes that one value may take; looks at all nodes that all steps together may cost. */
enum { SET_MAX = 16, EDGES_MAX = 64, WORK_MAX = 20000000, ROUNDS_MAX = 1000 };

struct recomputer {
    struct pass *pass;
    struct graph *graph;
    int originals; /* nodes from here on were made here */
    bool *tried;   /* by id */
    bool *inner;   /* by id, or NULL */
    /* As the graph is now: */
    int *order, *position; /* ids by position; positions by id */
    struct fuser f;
    struct memory_lives lives;
    struct memory_estimate estimate;
    int64_t total;
    int *next_member; /* by value: the next with the same root, -1 at the end; the root first */
};

/* Second nodes for one value: what is computed again, and for whom. */
struct again {
    struct node *nodes[SET_MAX];
    int count;
    struct fuse_use uses[EDGES_MAX];
    int uses_count;
    const struct node *reader; /* the first of them */
    int64_t saved, cost;
};

/* --- what is cheap --- */

/* Operations for an element; a node with the hint is cheap by definition. */
static int weight_of(const struct node *node)
{
    int weight = price_of(node->op->name);
    return weight < 0 && node_attr(node, HINT) ? 100 : weight;
}

/* Whether a second node would give the same: nothing but its inputs decides what it makes. */
static bool is_repeatable(const struct recomputer *r, const struct node *node)
{
    if (node->id >= r->originals || node->fault || node->controls_count ||
        node->op == &prune_arg || node->op->flags & OP_STATEFUL || optimise_is_flow(node) ||
        node->op->flow != FLOW_NONE || (r->inner && r->inner[node->id]))
        return false;
    for (int i = 0; i < node->outputs_count; i++)
        if (dtype_is_ref(node->output_types[i]))
            return false;
    for (int i = 0; i < node->inputs_count; i++)
        if (dtype_is_ref(node->inputs[i].from->output_types[node->inputs[i].output]))
            return false;
    return weight_of(node) >= 0;
}

/* --- as things are --- */

static const struct memory_life *life_of(const struct recomputer *r, struct edge edge)
{
    return &r->lives.values[r->lives.shapes.first_output[edge.from->id] + edge.output];
}

static const struct memory_life *root_of(const struct recomputer *r, struct edge edge)
{
    return &r->lives.values[life_of(r, edge)->root];
}

static bool look(struct recomputer *r, struct error *err)
{
    int count = graph_count(r->graph);
    r->order = graph_sorted(r->graph, err);
    if (!r->order)
        return false;
    r->position = alloc_array((size_t)count + 1, sizeof(int));
    for (int i = 0; i < count; i++)
        r->position[r->order[i]] = i;
    fuse_init(&r->f, r->pass->subgraph, err);
    memory_lives_of(r->pass->subgraph, r->order, &r->lives);
    memory_of_lives(&r->lives, r->pass->subgraph, r->order, &r->estimate);
    r->total = memory_total(&r->estimate);
    r->next_member = alloc_array((size_t)r->lives.count + 1, sizeof(int));
    for (int v = 0; v < r->lives.count; v++)
        r->next_member[v] = -1;
    for (int v = 0; v < r->lives.count; v++) {
        int root = r->lives.values[v].root;
        if (root == v)
            continue;
        r->next_member[v] = r->next_member[root];
        r->next_member[root] = v;
    }
    return true;
}

static bool look_away(struct recomputer *r)
{
    free(r->order);
    free(r->position);
    free(r->next_member);
    memory_lives_release(&r->lives);
    memory_release(&r->estimate);
    return fuse_finish(&r->f);
}

/* --- choosing --- */

static bool has_node(const struct again *again, const struct node *node)
{
    for (int i = 0; i < again->count; i++)
        if (again->nodes[i] == node)
            return true;
    return false;
}

static bool add_node(const struct recomputer *r, struct again *again, struct node *node)
{
    if (has_node(again, node))
        return true;
    if (again->count == SET_MAX || !is_repeatable(r, node))
        return false;
    again->nodes[again->count++] = node;
    return true;
}

static bool add_use(const struct recomputer *r, struct again *again, const struct fuse_use *use)
{
    if (again->uses_count == EDGES_MAX)
        return false;
    again->uses[again->uses_count++] = *use;
    if (!again->reader || r->position[use->node->id] < r->position[again->reader->id])
        again->reader = use->node;
    return true;
}

/* Operations to compute it again. */
static int64_t cost_of(const struct recomputer *r, const struct node *node)
{
    int64_t cost = 0;
    for (int i = 0; i < node->outputs_count; i++) {
        int64_t bytes = life_of(r, (struct edge){(struct node *)node, i})->bytes;
        int64_t size = dtype_size(node->output_types[i]);
        if (bytes > 0 && size)
            cost += bytes / size * weight_of(node);
    }
    return cost;
}

/*
 * Goes back from what is needed again to what is there at that time: an input that is not gets
 * computed again too if that is cheap, else it is kept for longer.
 */
static bool reach_back(const struct recomputer *r, struct again *again, int own_root)
{
    int when = r->position[again->reader->id], peak = r->estimate.position;
    for (int n = 0; n < again->count; n++) {
        const struct node *node = again->nodes[n];
        for (int i = 0; i < node->inputs_count; i++) {
            struct edge in = node->inputs[i];
            const struct memory_life *root = root_of(r, in);
            bool own = life_of(r, in)->root == own_root;
            int used = life_of(r, in)->used > root->used ? life_of(r, in)->used : root->used;
            if (!root->bytes || (!own && used >= when) || has_node(again, in.from) ||
                ((own || used <= peak) && add_node(r, again, in.from)))
                continue;
            if (own || root->bytes < 0)
                return false;
            if (used <= peak)
                again->saved -= root->bytes; /* else it is there at the peak in any case */
        }
        again->cost += cost_of(r, node);
    }
    return again->saved > 0;
}

/* Second nodes for the memory of value `v`, so that it is free at the peak. */
static bool plan_value(const struct recomputer *r, int v, struct again *again)
{
    int peak = r->estimate.position;
    *again = (struct again){.saved = r->lives.values[v].bytes};
    for (int w = v; w >= 0; w = r->next_member[w]) {
        const struct memory_life *member = &r->lives.values[w];
        struct node *node = (struct node *)member->node;
        if (member->first > peak || !r->f.needed[node->id])
            continue; /* took the memory over, later */
        for (int i = 0; i < fuse_uses(&r->f, node); i++) {
            const struct fuse_use *use = fuse_use_at(&r->f, node, i);
            int at = r->position[use->node->id];
            if (use->output != member->output || at < peak)
                continue;
            if (at == peak || !add_use(r, again, use) || !add_node(r, again, node))
                return false;
        }
    }
    return again->uses_count && reach_back(r, again, v);
}

static bool choose(struct recomputer *r, struct again *best)
{
    int peak = r->estimate.position, nodes = graph_count(r->graph), found = -1;
    for (int v = 0; v < r->lives.count; v++) {
        const struct memory_life *value = &r->lives.values[v];
        struct again again;
        if (value->root != v || value->bytes <= 0 || value->first >= peak ||
            value->last <= peak || value->last >= nodes || value->node->id >= r->originals ||
            r->tried[value->node->id] || !plan_value(r, v, &again))
            continue;
        /* saved / cost, without dividing */
        if (found < 0 || (double)again.saved * (double)(best->cost + 1) >
                             (double)best->saved * (double)(again.cost + 1)) {
            *best = again;
            found = value->node->id;
        }
    }
    if (found >= 0)
        r->tried[found] = true;
    return found >= 0;
}

/* --- doing --- */

/*
 * What the reader waits for last, apart from what is computed again: the time has come then,
 * if that is after position `after`.  NULL if there is no such node.
 */
static struct node *trigger_of(const struct recomputer *r, const struct again *again, int after)
{
    const struct node *reader = again->reader;
    struct node *last = NULL, *before;
    for (int i = 0; (before = node_before(reader, i)); i++) {
        if (!has_node(again, before) &&
            (!last || r->position[before->id] > r->position[last->id]))
            last = before;
    }
    for (int i = 0; i < again->count; i++)
        if (r->position[again->nodes[i]->id] > after)
            after = r->position[again->nodes[i]->id];
    if (last && r->position[last->id] > after)
        return last;
    /* It reads nothing else: after whatever comes before it. */
    for (int at = r->position[reader->id] - 1; at > after; at--)
        if (r->f.needed[r->order[at]] && graph_node(r->graph, r->order[at])->op != &prune_arg)
            return graph_node(r->graph, r->order[at]);
    return NULL;
}

static struct node *add_copy(struct recomputer *r, const struct node *node, struct error *err)
{
    struct attr *attrs = alloc_array((size_t)node->attrs_count + 1, sizeof(*attrs));
    int count = node->attrs_count;
    const struct attr_bytes name = {node->name, strlen(node->name)};
    memcpy(attrs, node->attrs, (size_t)count * sizeof(*attrs));
    if (!node_attr(node, OPTIMISE_STANDS_FOR))
        attrs[count++] = (struct attr){.name = OPTIMISE_STANDS_FOR,
                                       .kind = ATTR_STRING,
                                       .is_list = true,
                                       .count = 1,
                                       .strings = &name};
    const struct node_def def = {
        .name = arena_printf(graph_arena(r->graph), "%s/again", node->name),
        .op = node->op,
        .inputs = node->inputs,
        .inputs_count = node->inputs_count,
        .attrs = attrs,
        .attrs_count = count,
        .device = node->requested_device};
    struct node *copy = graph_add(r->graph, &def, err);
    free(attrs);
    return copy;
}

static bool apply(struct recomputer *r, const struct again *again, int after, struct error *err)
{
    struct node *copies[SET_MAX];
    struct node *trigger = trigger_of(r, again, after);
    int turn = again->reader->turn ? again->reader->turn : again->reader->id + 1;
    for (int i = 0; i < again->count; i++) {
        copies[i] = add_copy(r, again->nodes[i], err);
        if (!copies[i])
            return false;
        copies[i]->turn = turn;
        if (trigger)
            graph_add_control(r->graph, copies[i], trigger);
    }
    for (int i = 0; i < again->count; i++)
        for (int k = 0; k < copies[i]->inputs_count; k++)
            for (int n = 0; n < again->count; n++)
                if (copies[i]->inputs[k].from == again->nodes[n])
                    graph_set_input(r->graph, copies[i], k,
                                    (struct edge){copies[n], copies[i]->inputs[k].output});
    for (int u = 0; u < again->uses_count; u++) {
        const struct fuse_use *use = &again->uses[u];
        struct node *from = use->node->inputs[use->index].from;
        for (int n = 0; n < again->count; n++)
            if (from == again->nodes[n])
                graph_set_input(r->graph, use->node, use->index,
                                (struct edge){copies[n], use->output});
    }
    return true;
}

static void undo(struct recomputer *r, const struct again *again, int nodes)
{
    for (int u = 0; u < again->uses_count; u++) {
        const struct fuse_use *use = &again->uses[u];
        struct node *copy = use->node->inputs[use->index].from;
        graph_set_input(r->graph, use->node, use->index,
                        (struct edge){again->nodes[copy->id - nodes], use->output});
    }
    graph_truncate(r->graph, nodes);
}

/* --- by hints --- */

static bool is_gradient(const struct node *node)
{
    const char *at = strstr(node->name, "gradients");
    return at && (at == node->name || at[-1] == '/') && strchr("_/", at[9]) && at[9];
}

/* Its readers among the gradients get a second node, and so on back through other hints. */
static bool follow_hint(struct recomputer *r, struct node *node, struct error *err)
{
    struct again again = {0};
    for (int i = 0; i < fuse_uses(&r->f, node); i++) {
        const struct fuse_use *use = fuse_use_at(&r->f, node, i);
        if (is_gradient(use->node) && !add_use(r, &again, use))
            return true;
    }
    if (!again.uses_count || !add_node(r, &again, node))
        return true;
    for (int n = 0; n < again.count; n++)
        for (int i = 0; i < again.nodes[n]->inputs_count; i++) {
            struct node *from = again.nodes[n]->inputs[i].from;
            if (node_attr(from, HINT) && !is_gradient(from) && again.count < SET_MAX)
                (void)add_node(r, &again, from); /* else it is kept */
        }
    return apply(r, &again, -1, err);
}

static bool follow_hints(struct recomputer *r, struct error *err)
{
    for (int id = 0; id < r->originals; id++) {
        struct node *node = graph_node(r->graph, id);
        if (!node_attr(node, HINT) || is_gradient(node))
            continue;
        if (!look(r, err))
            return false;
        bool ok = !r->f.needed[id] || follow_hint(r, node, err);
        if (!look_away(r) || !ok)
            return false;
    }
    return true;
}

/* --- by memory --- */

/* One value less to keep; `*more` becomes false when it fits, or nothing is left to try. */
static bool shrink(struct recomputer *r, int64_t limit, bool *more, struct error *err)
{
    struct again again;
    int nodes = graph_count(r->graph);
    if (!look(r, err))
        return false;
    int64_t before = r->total;
    *more = before > limit && choose(r, &again);
    bool ok = !*more || apply(r, &again, r->estimate.position, err);
    if (!look_away(r) || !ok)
        return false;
    if (!*more)
        return true;
    if (!look(r, err))
        return false;
    if (r->total > before)
        undo(r, &again, nodes);
    return look_away(r);
}

static bool has_hints(const struct graph *graph)
{
    for (int i = 0; i < graph_count(graph); i++)
        if (node_attr(graph_node(graph, i), HINT))
            return true;
    return false;
}

bool optimise_recompute(struct pass *pass, struct error *err)
{
    struct graph *graph = pass->subgraph->graph;
    int64_t limit = pass->context->memory_limit;
    bool hints = has_hints(graph), more = limit > 0, ok = true;
    if ((!limit && !hints) || pass->subgraph->partial)
        return true;
    int *order = graph_sorted(graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    struct recomputer r = {.pass = pass,
                           .graph = graph,
                           .originals = graph_count(graph),
                           .inner = optimise_inner(pass->subgraph, order)};
    r.tried = alloc_array((size_t)r.originals + 1, sizeof(bool));
    if (hints)
        ok = follow_hints(&r, err);
    int rounds = WORK_MAX / (r.originals + 1);
    for (int i = 0; ok && more && i < rounds && i < ROUNDS_MAX; i++)
        ok = shrink(&r, limit, &more, err);
    free(r.tried);
    free(r.inner);
    free(order);
    return ok;
}
