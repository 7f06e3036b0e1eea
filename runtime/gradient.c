/*
 * gradient.c - walks back from the ys to the xs, each node once all that consumes it is done.
 *
 * Only nodes between count: those that the ys depend on and that depend on an x.  The graph
 * grows while it is walked, so nodes are counted once, at the start.
 */

#include "runtime/gradient_internal.h"
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* Types that a gradient can have; a handle stands for its variable. */
bool gradient_carries(int dtype)
{
    return BIT(dtype_base(dtype)) &
           (DTYPES_FLOAT | DTYPES_COMPLEX | BIT(RESOURCE) | BIT(VARIANT));
}

struct place *gradient_place(struct walk *w, const struct node *node)
{
    return node->id < w->count ? &w->places[node->id] : NULL;
}

void gradient_arrive(struct walk *w, struct edge at, struct edge gradient)
{
    struct place *place = gradient_place(w, at.from);
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
        struct place *place = gradient_place(w, ys[i].from);
        if (!place->reached) {
            place->reached = true;
            w->ready[top++] = ys[i].from;
        }
    }
    while (top) {
        const struct node *node = w->ready[--top];
        for (int i = 0; i < node->inputs_count; i++) {
            struct place *place = gradient_place(w, node->inputs[i].from);
            if (!place->reached && gradient_carries(node->input_types[i])) {
                place->reached = true;
                w->ready[top++] = node->inputs[i].from;
            }
        }
        struct node *push = gradient_pushed_for(w, node);
        if (push && !w->places[push->id].reached && gradient_carries(push->output_types[0])) {
            w->places[push->id].reached = true;
            w->ready[top++] = push;
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
            if (gradient_carries(node->input_types[i]))
                users[next[node->inputs[i].from->id]++] = id;
        }
    }

    int top = 0;
    for (int i = 0; i < xs_count; i++) {
        struct place *place = gradient_place(w, xs[i].from);
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
            /* What goes round a loop is waited for at its Exits. */
            if (node->op->flow != FLOW_NEXT)
                w->places[node->id].pending++;
            if (!user->between) {
                user->between = true;
                w->ready[top++] = graph_node(w->graph, users[u]);
            }
        }
        struct node *pop = gradient_popped_from(w, node);
        if (pop && w->places[pop->id].reached && !w->places[pop->id].between) {
            w->places[pop->id].between = true;
            w->ready[top++] = pop;
        }
    }
    free(first);
    free(users);
    free(next);
}

static struct builder sum_builder(struct walk *w, const struct node *node)
{
    return (struct builder){.graph = w->graph,
                            .scope = "gradients/",
                            .device = node->requested_device,
                            .err = w->err};
}

struct builder gradient_builder(struct walk *w, const struct node *node)
{
    struct builder build = sum_builder(w, node);
    build.scope = arena_printf(w->arena, "gradients/%s_grad/", node->name);
    return build;
}

bool gradient_sum(struct walk *w, struct edge at, struct edge *sum)
{
    struct place *place = gradient_place(w, at.from);
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
    struct builder build = sum_builder(w, at.from);
    *sum = builder_add(&build, "AddN", "AddN", terms, count, ATTRS(attr_int("N", count)));
    list->edge = *sum;
    list->next = NULL;
    return builder_ok(&build);
}

/* Whether an input of the node may still want a gradient. */
static bool leads_on(struct walk *w, const struct node *node)
{
    for (int i = 0; i < node->inputs_count; i++) {
        if (gradient_place(w, node->inputs[i].from)->between &&
            gradient_carries(node->input_types[i]))
            return true;
    }
    return false;
}

void gradient_settle(struct walk *w, struct node *node)
{
    struct place *place = gradient_place(w, node);
    /* None is left where a graph from outside uses loop ops in ways of its own. */
    if (place->pending > 0 && --place->pending == 0)
        w->ready[w->ready_count++] = node;
}

void gradient_ready(struct walk *w, struct node *node)
{
    const struct place *place = gradient_place(w, node);
    if (place->between && !place->pending)
        w->ready[w->ready_count++] = node;
}

void gradient_give(struct walk *w, const struct node *node, int i, struct edge gradient)
{
    struct edge input = node->inputs[i];
    if (!gradient_place(w, input.from)->between || !gradient_carries(node->input_types[i]))
        return;
    if (gradient.from)
        gradient_arrive(w, input, gradient);
    gradient_settle(w, input.from);
}

/* Calls the op's gradient function. */
static bool differentiate(struct walk *w, const struct node *node,
                          const struct edge *of_outputs, struct edge *of_inputs)
{
    struct gradient g = {.build = gradient_builder(w, node),
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

/* A node of any op with a gradient function. */
static bool visit_plain(struct walk *w, const struct node *node, const struct edge *of_outputs)
{
    struct edge *of_inputs =
        arena_array(w->arena, (size_t)node->inputs_count + 1, sizeof(*of_inputs));
    struct loop_frame *frame = gradient_frame_of(w, node);
    int first = graph_count(w->graph);
    if (!differentiate(w, node, of_outputs, of_inputs) ||
        (frame && !gradient_localise(w, first, frame)))
        return false;
    for (int i = 0; i < node->inputs_count; i++) {
        bool forward = of_inputs[i].from && gradient_frame_of(w, of_inputs[i].from);
        if (forward && !gradient_recall(w, of_inputs[i], frame, &of_inputs[i]))
            return false;
        bool wanted = of_inputs[i].from && gradient_place(w, node->inputs[i].from)->between;
        if (wanted && !gradient_widen(w, node, i, &of_inputs[i]))
            return false;
        gradient_give(w, node, i, of_inputs[i]);
    }
    return true;
}

static bool visit(struct walk *w, struct node *node)
{
    if (gradient_pushed_for(w, node))
        return gradient_of_pop(w, node);
    if (gradient_popped_from(w, node))
        return gradient_of_push(w, node);
    if (!leads_on(w, node))
        return true;
    if (node->fault)
        return fail(w->err, node->fault->code, "%s", node->fault->text);
    if (node->op->flow == FLOW_EXIT)
        return gradient_of_exit(w, node);
    if (node->op->flow == FLOW_ENTER)
        return gradient_of_enter(w, node);
    if (gradient_is_loop_merge(node))
        return gradient_of_loop_merge(w, node);
    if (gradient_is_loop_switch(node))
        return gradient_of_loop_switch(w, node);

    struct edge *of_outputs =
        arena_array(w->arena, (size_t)node->outputs_count + 1, sizeof(*of_outputs));
    bool flows = false;
    for (int i = 0; i < node->outputs_count; i++) {
        if (!gradient_sum(w, (struct edge){node, i}, &of_outputs[i]))
            return false;
        flows |= of_outputs[i].from != NULL;
    }
    if (flows && node->op->flow == FLOW_SWITCH)
        return gradient_of_switch(w, node, of_outputs);
    if (of_outputs[0].from && node->op->flow == FLOW_MERGE)
        return gradient_of_merge(w, node, of_outputs[0]);
    if (flows)
        return visit_plain(w, node, of_outputs);
    for (int i = 0; i < node->inputs_count; i++)
        gradient_give(w, node, i, (struct edge){NULL, 0});
    return true;
}

/* Puts the gradients of the ys in place: those given, or ones. */
static bool seed(struct walk *w, const struct edge *ys, int ys_count,
                 const struct edge *grad_ys)
{
    for (int i = 0; i < ys_count; i++) {
        if (!gradient_place(w, ys[i].from)->between)
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
        gradient_arrive(w, ys[i], gradient);
    }
    return true;
}

static bool walk_back(struct walk *w, const struct edge *ys, int ys_count)
{
    w->ready_count = 0;
    for (int i = 0; i < ys_count; i++) {
        struct place *place = gradient_place(w, ys[i].from);
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

/* Whether there is control flow on the way, and if so what is where. */
static bool find_flow(struct walk *w)
{
    for (int id = 0; id < w->count && !w->has_flow; id++) {
        enum op_flow flow = graph_node(w->graph, id)->op->flow;
        w->has_flow = w->places[id].between &&
                      ((flow != FLOW_NONE && flow != FLOW_PASS) || w->places[id].pair);
    }
    if (!w->has_flow)
        return true;
    if (!gradient_frames(w))
        return false;
    for (int id = 0; id < w->count; id++) {
        const struct node *node = graph_node(w->graph, id);
        if (node->op->flow == FLOW_EXIT && w->places[id].between && leads_on(w, node))
            gradient_frame_of(w, node->inputs[0].from)->exits_left++;
    }
    return gradient_expect_pops(w);
}

static void walk_init(struct walk *w, struct graph *graph, const struct edge *ys, int ys_count,
                      const struct edge *xs, int xs_count, struct error *err)
{
    *w = (struct walk){
        .graph = graph, .arena = arena_new(), .count = graph_count(graph), .err = err};
    w->source = arena_printf(w->arena, "gradients_%d", w->count);
    w->places = arena_array(w->arena, (size_t)w->count + 1, sizeof(*w->places));
    w->ready = arena_array(w->arena, (size_t)w->count + 1, sizeof(*w->ready));
    w->history = map_new();
    gradient_find_stacks(w);
    mark_reached(w, ys, ys_count);
    mark_between(w, xs, xs_count);
}

static void walk_release(struct walk *w)
{
    free(w->frames);
    free(w->guards);
    free(w->where);
    free(w->variables);
    map_free(w->history);
    arena_free(w->arena);
}

/* Functions are differentiated as what they do: calls on the way are lowered. */
static bool lower_between(struct graph *graph, const struct edge *ys, int ys_count,
                          const struct edge *xs, int xs_count, const struct lowered **loops,
                          struct error *err)
{
    struct walk w;
    walk_init(&w, graph, ys, ys_count, xs, xs_count, err);
    bool *between = alloc_array((size_t)w.count + 1, sizeof(*between));
    for (int id = 0; id < w.count; id++)
        between[id] = w.places[id].between;
    walk_release(&w);
    bool ok = lower_graph(graph, graph_library(graph), between, loops, err);
    free(between);
    return ok;
}

bool gradient_build(struct graph *graph, const struct edge *ys, int ys_count,
                    const struct edge *grad_ys, const struct edge *xs, int xs_count,
                    struct edge *grads, struct error *err)
{
    assert(ys_count >= 0 && xs_count >= 0);
    const struct lowered *loops;
    if (!lower_between(graph, ys, ys_count, xs, xs_count, &loops, err))
        return false;
    struct walk w;
    walk_init(&w, graph, ys, ys_count, xs, xs_count, err);
    bool built = gradient_check_stacks(&w, xs, xs_count) && find_flow(&w) &&
                 seed(&w, ys, ys_count, grad_ys) && walk_back(&w, ys, ys_count);
    struct edge *found = arena_array(w.arena, (size_t)xs_count + 1, sizeof(*found));
    for (int i = 0; built && i < xs_count; i++)
        built = gradient_sum(&w, xs[i], &found[i]);
    built = built && gradient_fill_zeros(&w, loops, ys, ys_count, xs, xs_count, found);
    if (built)
        memcpy(grads, found, (size_t)xs_count * sizeof(*grads));
    walk_release(&w);
    return built;
}
