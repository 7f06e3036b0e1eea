/*
 * gradient_loop.c - through loops: each has a second loop that goes its iterations backwards.
 *
 * The forward loop gets a counter; the backward loop counts it down.  Gradients of a variable
 * after the loop enter the backward loop, go through the body each time round, and leave it as
 * the gradient before the loop.  Those of a constant of the loop are added up.
 *
 *   forward:   Enter -> Merge -> Switch -> body -> NextIteration         Switch -> Exit
 *   backward:  Exit <- Switch <- Merge <- NextIteration <- body's gradient <- Switch
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/gradient_internal.h"
#include "runtime/op.h"

/* --- both counters --- */

static struct edge add_enter(struct builder *b, struct edge x, const char *name,
                             int64_t parallel)
{
    return builder_add(
        b, "Enter", "Enter", INPUTS(x),
        ATTRS(attr_string("frame_name", name), attr_int("parallel_iterations", parallel)));
}

/* Enter -> Merge -> Switch; the Merge's second input is to come. */
static bool add_head(struct builder *b, struct edge x, const char *name, int64_t parallel,
                     struct edge *merge)
{
    struct edge enter = add_enter(b, x, name, parallel);
    if (builder_ok(b))
        *merge = builder_add(b, "Merge", "Merge", INPUTS(enter, enter), NO_ATTRS);
    return builder_ok(b);
}

static struct edge add_number(struct builder *b, double value, struct node *after)
{
    struct edge number = builder_scalar(b, "number", I32, value);
    if (builder_ok(b))
        graph_add_control(b->graph, number.from, after);
    return number;
}

/* From Switch to NextIteration: one more or less, and a node after all pushes or pops. */
static bool add_round(struct builder *b, struct edge gate, const char *op, struct edge merge,
                      struct node **step, struct node **last)
{
    struct edge value =
        builder_add(b, "Identity", "Identity", INPUTS(builder_output(gate, 1)), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    struct edge one = add_number(b, 1, value.from);
    if (!builder_ok(b))
        return false;
    struct edge moved = builder_add(b, op, "count", INPUTS(value, one), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    *last = builder_add(b, "ControlTrigger", "sync", NO_INPUTS, NO_ATTRS).from;
    struct edge next =
        builder_add(b, "NextIteration", "NextIteration", INPUTS(moved), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    graph_add_control(b->graph, *last, moved.from);
    graph_add_control(b->graph, next.from, *last);
    graph_set_input(b->graph, merge.from, 1, next);
    *step = strcmp(op, "Sub") == 0 ? value.from : moved.from;
    return true;
}

/* A node of the frame around that is alive when the loop is. */
static bool add_anchor(struct walk *w, struct builder *b, struct loop_frame *frame)
{
    struct edge anchor =
        builder_add(b, "Identity", "anchor", INPUTS(frame->enter->inputs[0]), NO_ATTRS);
    frame->anchor = anchor.from;
    if (builder_ok(b))
        gradient_place_forward(w, anchor.from, frame->up, frame->guard);
    return builder_ok(b);
}

static bool add_forward_counter(struct walk *w, struct builder *b, struct loop_frame *frame)
{
    if (!add_anchor(w, b, frame))
        return false;
    struct edge zero = add_number(b, 0, frame->anchor), merge;
    if (!builder_ok(b))
        return false;
    gradient_place_forward(w, zero.from, frame->up, frame->guard);
    int first = graph_count(w->graph);
    if (!add_head(b, zero, frame->name, frame->parallel, &merge))
        return false;
    struct edge gate = builder_add(b, "Switch", "Switch", INPUTS(merge, frame->pred), NO_ATTRS);
    if (!builder_ok(b) || !add_round(b, gate, "AddV2", merge, &frame->step, &frame->pushed))
        return false;
    for (int id = first; id < graph_count(w->graph); id++)
        gradient_place_forward(w, graph_node(w->graph, id), frame, 0);
    frame->count = builder_add(b, "Exit", "Exit", INPUTS(gate), NO_ATTRS);
    if (builder_ok(b))
        gradient_place_forward(w, frame->count.from, frame->up, frame->guard);
    return builder_ok(b);
}

static bool add_backward_counter(struct walk *w, struct builder *b, struct loop_frame *frame)
{
    struct edge count, merge;
    if (!gradient_recall(w, frame->count, frame->up, &count) ||
        !add_head(b, count, frame->back_name, frame->parallel, &merge))
        return false;
    struct edge zero = add_number(b, 0, merge.from);
    if (!builder_ok(b))
        return false;
    struct edge more = builder_add(b, "Greater", "Greater", INPUTS(merge, zero), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    frame->back_enter = merge.from->inputs[0].from;
    frame->again = builder_add(b, "LoopCond", "LoopCond", INPUTS(more), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    struct edge gate =
        builder_add(b, "Switch", "Switch", INPUTS(merge, frame->again), NO_ATTRS);
    frame->back_gate = gate;
    return builder_ok(b) && add_round(b, gate, "Sub", merge, &frame->pivot, &frame->popped);
}

bool gradient_loop_finished(struct walk *w, struct loop_frame *frame)
{
    if (frame->finished)
        return true;
    struct builder b = gradient_builder(w, frame->enter);
    frame->finished =
        builder_add(&b, "Exit", "finished", INPUTS(frame->back_gate), NO_ATTRS).from;
    if (!builder_ok(&b))
        return false;
    if (frame->up->up)
        graph_add_control(w->graph, frame->up->popped, frame->finished);
    return true;
}

bool gradient_loop_start(struct walk *w, struct loop_frame *frame)
{
    if (frame->started)
        return true;
    frame->started = true;
    if (!frame->pred.from)
        return fail(w->err, INVALID, "the loop of frame '%s' has no condition", frame->name);
    const char *scope = arena_printf(w->arena, "gradients/%s_grad/", frame->enter->name);
    struct builder b = {.graph = w->graph,
                        .scope = scope,
                        .device = frame->enter->requested_device,
                        .err = w->err};
    frame->back_name = arena_printf(w->arena, "%s/%s", w->source, frame->name);
    return add_forward_counter(w, &b, frame) && add_backward_counter(w, &b, frame);
}

/* --- into the loop, at its Exits --- */

/* The Exit of a variable; one is made where nobody read the last value. */
static bool find_exit(struct walk *w, struct node *gate, struct loop_frame *frame,
                      struct edge *exit)
{
    for (int id = 0; id < w->count; id++) {
        struct node *node = graph_node(w->graph, id);
        if (node->op->flow == FLOW_EXIT && node->inputs_count == 1 &&
            node->inputs[0].from == gate && node->inputs[0].output == 0) {
            *exit = (struct edge){node, 0};
            return true;
        }
    }
    struct builder b = gradient_builder(w, gate);
    *exit = builder_add(&b, "Exit", "Exit", INPUTS(((struct edge){gate, 0})), NO_ATTRS);
    if (builder_ok(&b))
        gradient_place_forward(w, exit->from, frame->up, frame->guard);
    return builder_ok(&b);
}

/* The gradient of a variable's last value: what arrived at its Exit, or zeros. */
static bool last_gradient(struct walk *w, struct node *gate, struct loop_frame *frame,
                          struct edge *last)
{
    struct edge exit;
    if (!find_exit(w, gate, frame, &exit))
        return false;
    *last = (struct edge){NULL, 0};
    if (exit.from->id < w->count && !gradient_sum(w, exit, last))
        return false;
    if (last->from)
        return true;
    struct builder b = gradient_builder(w, gate);
    int first = graph_count(w->graph);
    *last = builder_add(&b, "ZerosLike", "no_grad", INPUTS(exit), NO_ATTRS);
    return builder_ok(&b) && gradient_localise(w, first, frame->up);
}

static struct node *find_gate(struct walk *w, const struct node *merge)
{
    for (int id = 0; id < w->count; id++) {
        struct node *node = graph_node(w->graph, id);
        if (node->op->flow == FLOW_SWITCH && node->inputs_count > 0 &&
            node->inputs[0].from == merge)
            return node;
    }
    return NULL;
}

static bool is_handle(const struct node *node)
{
    return dtype_base(node->output_types[0]) == RESOURCE;
}

static struct node *next_of(const struct node *merge, int *input)
{
    for (*input = 0; *input < merge->inputs_count; ++*input)
        if (merge->inputs[*input].from->op->flow == FLOW_NEXT)
            return merge->inputs[*input].from;
    return NULL;
}

/* Starts the way back of one variable: its gradient is that of what the body handed on. */
static bool enter_variable(struct walk *w, struct node *merge, struct loop_frame *frame,
                           bool flows)
{
    int input;
    struct node *next = next_of(merge, &input);
    struct node *gate = find_gate(w, merge);
    struct edge round = {NULL, 0};
    if (flows && !is_handle(merge)) { /* of a handle all iterations have the same */
        struct builder b = gradient_builder(w, merge);
        struct edge last, back_merge;
        if (!gate)
            return fail(w->err, INVALID, "node '%s' (Merge) of a loop has no Switch",
                        merge->name);
        if (!last_gradient(w, gate, frame, &last) ||
            !add_head(&b, last, frame->back_name, frame->parallel, &back_merge))
            return false;
        struct edge back =
            builder_add(&b, "Switch", "Switch", INPUTS(back_merge, frame->again), NO_ATTRS);
        if (!builder_ok(&b))
            return false;
        w->variables = alloc_grow(w->variables, w->variables_count, &w->variables_capacity,
                                  sizeof(*w->variables));
        w->variables[w->variables_count++] = (struct variable_back){
            .merge = merge, .back_merge = back_merge.from, .back_switch = back};
        round = builder_output(back, 1);
    }
    if (gradient_place(w, next)->between)
        gradient_give(w, next, 0, round);
    return true;
}

/* Whether anything came to one of the loop's Exits, or to what it pushed. */
static bool loop_flows(struct walk *w, const struct loop_frame *frame)
{
    bool flows = frame->stack_flows;
    for (int id = 0; id < w->count; id++) {
        const struct node *node = graph_node(w->graph, id);
        flows |= node->op->flow == FLOW_EXIT && w->places[id].arrivals &&
                 gradient_frame_of(w, node->inputs[0].from) == frame;
    }
    return flows;
}

static bool enter_loop(struct walk *w, struct loop_frame *frame)
{
    bool flows = loop_flows(w, frame);
    if (flows && !gradient_loop_start(w, frame))
        return false;
    for (int id = 0; id < w->count; id++) {
        struct node *node = graph_node(w->graph, id);
        if (w->places[id].between && gradient_frame_of(w, node) == frame &&
            gradient_is_loop_merge(node) && !enter_variable(w, node, frame, flows))
            return false;
    }
    /* The Exits have been read: that was one use of their Switches. */
    for (int id = 0; id < w->count; id++) {
        struct node *node = graph_node(w->graph, id);
        if (w->places[id].between && node->op->flow == FLOW_EXIT &&
            gradient_frame_of(w, node->inputs[0].from) == frame &&
            gradient_place(w, node->inputs[0].from)->between)
            gradient_settle(w, node->inputs[0].from);
    }
    gradient_ready_pushes(w, frame);
    return true;
}

bool gradient_reach_loop(struct walk *w, struct loop_frame *frame)
{
    return --frame->exits_left > 0 || enter_loop(w, frame);
}

bool gradient_of_exit(struct walk *w, const struct node *node)
{
    return gradient_reach_loop(w, gradient_frame_of(w, node->inputs[0].from));
}

/* --- through the body, and out at the Enters --- */

bool gradient_of_loop_switch(struct walk *w, const struct node *node)
{
    struct edge of_body;
    if (!gradient_sum(w, (struct edge){(struct node *)node, 1}, &of_body))
        return false;
    gradient_give(w, node, 0, of_body);
    return true;
}

/* Adds up what comes in each iteration; `*total` is there when the loop has ended. */
static bool add_up(struct walk *w, const struct node *node, struct edge outside,
                   struct edge of_one, struct edge *total)
{
    struct loop_frame *frame = gradient_frame_of(w, node);
    if (!gradient_loop_start(w, frame)) /* a y inside of the loop leads here at once */
        return false;
    struct builder b = gradient_builder(w, node);
    int first = graph_count(w->graph);
    struct edge zeros = gradient_zeros(&b, outside, of_one), merge;
    if (!builder_ok(&b) || !gradient_localise(w, first, frame->up) ||
        !add_head(&b, zeros, frame->back_name, frame->parallel, &merge))
        return false;
    struct edge gate =
        builder_add(&b, "Switch", "Switch", INPUTS(merge, frame->again), NO_ATTRS);
    if (!builder_ok(&b))
        return false;
    const struct edge terms[] = {builder_output(gate, 1), of_one};
    struct edge sum = builder_add(&b, "AddN", "AddN", terms, 2, ATTRS(attr_int("N", 2)));
    if (!builder_ok(&b))
        return false;
    struct edge next = builder_add(&b, "NextIteration", "NextIteration", INPUTS(sum), NO_ATTRS);
    if (!builder_ok(&b))
        return false;
    graph_set_input(w->graph, merge.from, 1, next);
    *total = builder_add(&b, "Exit", "Exit", INPUTS(gate), NO_ATTRS);
    return builder_ok(&b);
}

bool gradient_of_enter(struct walk *w, const struct node *node)
{
    struct edge of_one, total = {NULL, 0};
    if (!gradient_sum(w, (struct edge){(struct node *)node, 0}, &of_one))
        return false;
    if (of_one.from && !add_up(w, node, node->inputs[0], of_one, &total))
        return false;
    gradient_give(w, node, 0, total);
    return true;
}

static struct variable_back *find_variable(struct walk *w, const struct node *merge)
{
    for (int i = 0; i < w->variables_count; i++)
        if (w->variables[i].merge == merge)
            return &w->variables[i];
    return NULL;
}

/* Closes the round: the gradient before the body goes into the next iteration, or out. */
static bool leave_variable(struct walk *w, const struct node *node, struct edge of_merge,
                           struct edge *total)
{
    struct builder b = gradient_builder(w, node);
    const struct variable_back *variable = find_variable(w, node);
    if (!variable)
        return true;      /* no gradient came to the loop */
    if (!of_merge.from) { /* the body uses it, but not for anything that matters */
        int first = graph_count(w->graph);
        struct edge now = {find_gate(w, node), 1};
        of_merge = builder_add(&b, "ZerosLike", "no_grad", INPUTS(now), NO_ATTRS);
        if (!builder_ok(&b) || !gradient_localise(w, first, gradient_frame_of(w, node)))
            return false;
    }
    struct edge next =
        builder_add(&b, "NextIteration", "NextIteration", INPUTS(of_merge), NO_ATTRS);
    if (!builder_ok(&b))
        return false;
    graph_set_input(w->graph, variable->back_merge, 1, next);
    *total = builder_add(&b, "Exit", "Exit", INPUTS(variable->back_switch), NO_ATTRS);
    return builder_ok(&b);
}

bool gradient_of_loop_merge(struct walk *w, const struct node *node)
{
    int next;
    next_of(node, &next);
    int first = next == 0 ? 1 : 0;
    const struct node *enter = node->inputs[first].from;
    struct edge of_merge, total = {NULL, 0};
    if (!gradient_sum(w, (struct edge){(struct node *)node, 0}, &of_merge))
        return false;
    bool ok = is_handle(node)
                  ? !of_merge.from || add_up(w, node, enter->inputs[0], of_merge, &total)
                  : leave_variable(w, node, of_merge, &total);
    /* The Enter of a variable only passes it on. */
    if (ok && gradient_place(w, enter)->between)
        gradient_give(w, enter, 0, total);
    return ok;
}
