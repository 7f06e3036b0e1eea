/*
 * gradient.c - walks back from the ys to the xs, each node once all that consumes it is done.
 *
 * Only nodes between count: those that the ys depend on and that depend on an x.  The graph
 * grows while it is walked, so nodes are counted once, at the start.
 */

#include "runtime/gradient.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/op.h"

/* A gradient that arrived at an output. */
struct arrival {
    struct edge edge;
    struct arrival *next;
};

struct place {    /* what is known of one node */
    bool reached; /* by a y, going back */
    bool between; /* ... and depends on an x */
    int pending;  /* inputs of nodes between that it feeds and whose gradient is to come */
    struct arrival **arrivals; /* one list per output; NULL until the first */
};

struct walk {
    struct graph *graph;
    struct arena *arena;
    struct place *places; /* by node id */
    int count;            /* nodes at the start */
    struct node **ready;  /* a stack of nodes */
    int ready_count;
    const char *source; /* names this walk among others in the graph */
    struct error *err;
};

/* Types that a gradient can have; a handle stands for its variable. */
static bool is_differentiable(int dtype)
{
    return BIT(dtype_base(dtype)) &
           (DTYPES_FLOAT | DTYPES_COMPLEX | BIT(RESOURCE) | BIT(VARIANT));
}

static struct place *place_of(struct walk *w, const struct node *node)
{
    return node->id < w->count ? &w->places[node->id] : NULL;
}

static void arrive(struct walk *w, struct edge at, struct edge gradient)
{
    struct place *place = place_of(w, at.from);
    if (!place->arrivals)
        place->arrivals =
            arena_array(w->arena, (size_t)at.from->outputs_count, sizeof(struct arrival *));
    struct arrival *arrival = arena_alloc(w->arena, sizeof(*arrival));
    *arrival = (struct arrival){gradient, NULL};
    struct arrival **end = &place->arrivals[at.output];
    while (*end)
        end = &(*end)->next;
    *end = arrival;
}

/* Marks all that the ys depend on through edges that carry a gradient. */
static void mark_reached(struct walk *w, const struct edge *ys, int ys_count)
{
    int top = 0;
    for (int i = 0; i < ys_count; i++) {
        struct place *place = place_of(w, ys[i].from);
        if (!place->reached) {
            place->reached = true;
            w->ready[top++] = ys[i].from;
        }
    }
    while (top) {
        const struct node *node = w->ready[--top];
        for (int i = 0; i < node->inputs_count; i++) {
            struct place *place = place_of(w, node->inputs[i].from);
            if (!place->reached && is_differentiable(node->input_types[i])) {
                place->reached = true;
                w->ready[top++] = node->inputs[i].from;
            }
        }
    }
}

/*
 * Of those, marks what depends on an x through edges that carry a gradient, and counts for each
 * how often its outputs are used by another such node.
 */
static void mark_between(struct walk *w, const struct edge *xs, int xs_count)
{
    int *first = alloc_array((size_t)w->count + 1, sizeof(int));
    int edges = 0;
    for (int id = 0; id < w->count; id++)
        edges += graph_node(w->graph, id)->inputs_count;
    int *users = alloc_array((size_t)edges + 1, sizeof(int));

    /* Users of each node, as one array cut up by node. */
    for (int id = 0; id < w->count; id++) {
        const struct node *node = graph_node(w->graph, id);
        for (int i = 0; i < node->inputs_count; i++)
            first[node->inputs[i].from->id + 1]++;
    }
    for (int id = 0; id < w->count; id++)
        first[id + 1] += first[id];
    int *next = alloc_array((size_t)w->count + 1, sizeof(int));
    memcpy(next, first, (size_t)w->count * sizeof(int));
    for (int id = 0; id < w->count; id++) {
        const struct node *node = graph_node(w->graph, id);
        for (int i = 0; i < node->inputs_count; i++) {
            if (is_differentiable(node->input_types[i]))
                users[next[node->inputs[i].from->id]++] = id;
        }
    }

    int top = 0;
    for (int i = 0; i < xs_count; i++) {
        struct place *place = place_of(w, xs[i].from);
        if (place->reached && !place->between) {
            place->between = true;
            w->ready[top++] = xs[i].from;
        }
    }
    while (top) {
        const struct node *node = w->ready[--top];
        for (int u = first[node->id]; u < next[node->id]; u++) {
            struct place *user = &w->places[users[u]];
            if (!user->reached)
                continue;
            w->places[node->id].pending++;
            if (!user->between) {
                user->between = true;
                w->ready[top++] = graph_node(w->graph, users[u]);
            }
        }
    }
    free(first);
    free(users);
    free(next);
}

/* What arrived at an output as one edge: none, the only one, or an AddN of all (kept). */
static bool sum_of(struct walk *w, struct edge at, struct edge *sum)
{
    struct place *place = place_of(w, at.from);
    struct arrival *list = place && place->arrivals ? place->arrivals[at.output] : NULL;
    *sum = list ? list->edge : (struct edge){NULL, 0};
    if (!list || !list->next)
        return true;
    int count = 0;
    for (struct arrival *a = list; a; a = a->next)
        count++;
    struct edge *terms = arena_array(w->arena, (size_t)count, sizeof(*terms));
    count = 0;
    for (struct arrival *a = list; a; a = a->next)
        terms[count++] = a->edge;
    struct builder build = {.graph = w->graph,
                            .scope = "gradients/",
                            .device = at.from->requested_device,
                            .err = w->err};
    *sum = builder_add(&build, "AddN", "AddN", terms, count, ATTRS(attr_int("N", count)));
    list->edge = *sum;
    list->next = NULL;
    return builder_ok(&build);
}

/* Whether an input of the node may still want a gradient. */
static bool leads_on(struct walk *w, const struct node *node)
{
    for (int i = 0; i < node->inputs_count; i++) {
        if (place_of(w, node->inputs[i].from)->between &&
            is_differentiable(node->input_types[i]))
            return true;
    }
    return false;
}

/* Calls the op's gradient function and hands what it says to the inputs. */
static bool differentiate(struct walk *w, const struct node *node,
                          const struct edge *of_outputs, struct edge *of_inputs)
{
    const char *scope = arena_printf(w->arena, "gradients/%s_grad/", node->name);
    struct gradient g = {.build = {.graph = w->graph,
                                   .scope = scope,
                                   .device = node->requested_device,
                                   .err = w->err},
                         .node = node,
                         .of_outputs = of_outputs,
                         .of_inputs = of_inputs,
                         .source = w->source};
    if (!node->op->gradient)
        return node->op->no_gradient ||
               fail(w->err, UNIMPLEMENTED,
                    "No gradient defined for operation '%s' (op type: %s)", node->name,
                    node->op->name);
    return (node->op->gradient(&g, w->err) && builder_ok(&g.build)) ||
           error_prefix(w->err, "gradient of node '%s' (op: %s): ", node->name, node->op->name);
}

static bool visit(struct walk *w, struct node *node)
{
    if (!leads_on(w, node))
        return true;
    struct edge *of_outputs =
        arena_array(w->arena, (size_t)node->outputs_count + 1, sizeof(*of_outputs));
    struct edge *of_inputs =
        arena_array(w->arena, (size_t)node->inputs_count + 1, sizeof(*of_inputs));
    bool flows = false;
    for (int i = 0; i < node->outputs_count; i++) {
        if (!sum_of(w, (struct edge){node, i}, &of_outputs[i]))
            return false;
        flows |= of_outputs[i].from != NULL;
    }
    if (flows && !differentiate(w, node, of_outputs, of_inputs))
        return false;
    for (int i = 0; i < node->inputs_count; i++) {
        struct edge input = node->inputs[i];
        struct place *place = place_of(w, input.from);
        if (!place->between || !is_differentiable(node->input_types[i]))
            continue;
        if (of_inputs[i].from)
            arrive(w, input, of_inputs[i]);
        assert(place->pending > 0);
        if (--place->pending == 0)
            w->ready[w->ready_count++] = input.from;
    }
    return true;
}

/* Puts the gradients of the ys in place: those given, or ones. */
static bool seed(struct walk *w, const struct edge *ys, int ys_count,
                 const struct edge *grad_ys)
{
    for (int i = 0; i < ys_count; i++) {
        if (!place_of(w, ys[i].from)->between)
            continue;
        struct builder build = {.graph = w->graph,
                                .scope = "gradients/",
                                .device = ys[i].from->requested_device,
                                .err = w->err};
        struct edge gradient = grad_ys ? grad_ys[i] : (struct edge){NULL, 0};
        if (!gradient.from)
            gradient = builder_add(&build, "OnesLike", "grad_ys", INPUTS(ys[i]), NO_ATTRS);
        if (!builder_ok(&build))
            return false;
        arrive(w, ys[i], gradient);
    }
    return true;
}

static bool walk_back(struct walk *w, const struct edge *ys, int ys_count)
{
    w->ready_count = 0;
    for (int i = 0; i < ys_count; i++) {
        struct place *place = place_of(w, ys[i].from);
        bool again = false;
        for (int j = 0; j < i; j++)
            again |= ys[j].from == ys[i].from;
        if (place->between && !place->pending && !again)
            w->ready[w->ready_count++] = ys[i].from;
    }
    while (w->ready_count) {
        if (!visit(w, w->ready[--w->ready_count]))
            return false;
    }
    return true;
}

bool gradient_build(struct graph *graph, const struct edge *ys, int ys_count,
                    const struct edge *grad_ys, const struct edge *xs, int xs_count,
                    struct edge *grads, struct error *err)
{
    assert(ys_count >= 0 && xs_count >= 0);
    struct walk w = {
        .graph = graph, .arena = arena_new(), .count = graph_count(graph), .err = err};
    w.source = arena_printf(w.arena, "gradients_%d", w.count);
    w.places = arena_array(w.arena, (size_t)w.count + 1, sizeof(*w.places));
    w.ready = arena_array(w.arena, (size_t)w.count + 1, sizeof(*w.ready));
    mark_reached(&w, ys, ys_count);
    mark_between(&w, xs, xs_count);

    bool built = seed(&w, ys, ys_count, grad_ys) && walk_back(&w, ys, ys_count);
    struct edge *found = arena_array(w.arena, (size_t)xs_count + 1, sizeof(*found));
    for (int i = 0; built && i < xs_count; i++)
        built = sum_of(&w, xs[i], &found[i]);
    if (built)
        memcpy(grads, found, (size_t)xs_count * sizeof(*grads));
    arena_free(w.arena);
    return built;
}
