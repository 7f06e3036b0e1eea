/*
 * gradient_history.c - what a loop computed in each of its iterations, kept for the way back.
 *
 * A stack for each value: an iteration pushes, the same iteration on the way back pops.  The
 * stack is made outside of the loop, so a loop in a loop has one for each of its runs, and
 * keeps the handles on a stack of the loop around.  What never changes is entered again.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/gradient_internal.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

static const char *history_key(struct walk *w, struct edge edge, const struct loop_frame *to)
{
    return arena_printf(w->arena, "%d:%d:%d", edge.from->id, edge.output, to->id);
}

static void remember(struct walk *w, const char *key, struct edge value)
{
    map_set(w->history, key, arena_copy(w->arena, &value, sizeof(value)));
}

/* --- pushing and popping --- */

/* A stack for values of `edge`, outside of the loop: an edge of the forward graph. */
static struct edge add_stack(struct walk *w, struct builder *b, struct loop_frame *frame,
                             int dtype)
{
    int first = graph_count(w->graph);
    struct edge size = builder_scalar(b, "stack/max_size", I32, -1);
    if (!builder_ok(b))
        return size;
    graph_add_control(w->graph, size.from, frame->anchor);
    struct edge stack =
        builder_add(b, "StackV2", "stack", INPUTS(size), ATTRS(attr_type("elem_type", dtype)));
    for (int id = first; id < graph_count(w->graph); id++)
        gradient_place_forward(w, graph_node(w->graph, id), frame->up, frame->guard);
    return stack;
}

static struct edge add_enter(struct builder *b, struct edge x, const char *frame_name,
                             int64_t parallel)
{
    return builder_add(b, "Enter", "Enter", INPUTS(x),
                       ATTRS(attr_string("frame_name", frame_name),
                             attr_bool("is_constant", true),
                             attr_int("parallel_iterations", parallel)));
}

static bool add_push(struct walk *w, struct builder *b, struct loop_frame *frame,
                     struct edge stack, struct edge edge)
{
    struct edge inside = add_enter(b, stack, frame->name, frame->parallel);
    if (!builder_ok(b))
        return false;
    struct edge push = builder_add(b, "StackPushV2", "push", INPUTS(inside, edge), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    graph_add_control(w->graph, push.from, frame->step);
    graph_add_control(w->graph, frame->pushed, push.from);
    gradient_place_forward(w, inside.from, frame, 0);
    gradient_place_forward(w, push.from, frame, gradient_guard_of(w, edge));
    return true;
}

bool gradient_guard_stack(struct walk *w, struct builder *b, struct loop_frame *frame,
                          int guard, struct edge *stack)
{
    int chain[64], count = 0;
    for (; guard; guard = w->guards[guard].up) {
        if (count == ARRAY_LEN(chain))
            return fail(w->err, UNIMPLEMENTED, "gradients go through %d branches at most",
                        count);
        chain[count++] = guard;
    }
    while (count) {
        const struct guard g = w->guards[chain[--count]];
        struct edge pred;
        if (!gradient_recall(w, g.pred, frame, &pred))
            return false;
        struct edge gate =
            builder_add(b, "Switch", "stack/Switch", INPUTS(*stack, pred), NO_ATTRS);
        if (!builder_ok(b))
            return false;
        *stack = builder_output(gate, g.side);
    }
    return true;
}

static bool push_and_pop(struct walk *w, struct edge edge, struct loop_frame *frame,
                         struct edge *value)
{
    struct builder b = gradient_builder(w, edge.from);
    int dtype = dtype_base(edge.from->output_types[edge.output]);
    struct edge stack = add_stack(w, &b, frame, dtype);
    if (!builder_ok(&b) || !add_push(w, &b, frame, stack, edge))
        return false;
    struct edge back;
    if (!gradient_recall(w, stack, frame, &back) ||
        !gradient_guard_stack(w, &b, frame, gradient_guard_of(w, edge), &back))
        return false;
    *value = builder_add(&b, "StackPopV2", "pop", INPUTS(back),
                         ATTRS(attr_type("elem_type", dtype)));
    if (!builder_ok(&b))
        return false;
    graph_add_control(w->graph, value->from, frame->pivot);
    graph_add_control(w->graph, frame->popped, value->from);
    return true;
}

/* --- recalling --- */

/* A constant of the loop is found where it came in. */
static struct edge source_of(struct walk *w, struct edge edge, const struct loop_frame *frame)
{
    while (edge.from->id < w->where_count && w->where[edge.from->id].is_constant &&
           w->where[edge.from->id].frame == frame)
        edge = edge.from->inputs[0];
    return edge;
}

/* A forward value of loop `frame` itself, in the same iteration on the way back. */
static bool recall_here(struct walk *w, struct edge edge, struct loop_frame *frame,
                        struct edge *value)
{
    const struct tensor *constant = node_constant(edge.from);
    if (!constant)
        return push_and_pop(w, edge, frame, value);
    struct builder b = gradient_builder(w, edge.from);
    *value = builder_const(&b, "Const", constant);
    if (!builder_ok(&b))
        return false;
    graph_add_control(w->graph, value->from, frame->pivot);
    return true;
}

/*
 * Goes out to the loop that the value belongs to, and comes back in, one Enter for each loop.
 * The two call each other once per level of loops: a guard or a handle belongs further out.
 */
bool gradient_recall(struct walk *w, struct edge edge, struct loop_frame *to,
                     struct edge *value)
{
    edge = source_of(w, edge, to);
    struct loop_frame *frame = gradient_frame_of(w, edge.from);
    *value = edge;
    if (!to->up)
        return frame == to ||
               fail(w->err, INTERNAL, "node '%s' (%s) is in another loop than who reads it",
                    edge.from->name, edge.from->op->name);
    if (!gradient_loop_start(w, to))
        return false;
    const char *key = history_key(w, edge, to);
    const struct edge *known = map_find(w->history, key);
    if (known) {
        *value = *known;
        return true;
    }
    if (frame == to) {
        if (!recall_here(w, edge, to, value))
            return false;
    } else {
        struct edge outside;
        struct builder b = gradient_builder(w, edge.from);
        if (!gradient_recall(w, edge, to->up, &outside))
            return false;
        *value = add_enter(&b, outside, to->back_name, to->parallel);
        if (!builder_ok(&b))
            return false;
    }
    remember(w, key, *value);
    return true;
}

bool gradient_localise(struct walk *w, int first, struct loop_frame *frame)
{
    int end = graph_count(w->graph);
    for (int id = first; frame->up && id < end; id++) {
        struct node *node = graph_node(w->graph, id);
        if (gradient_frame_of(w, node))
            continue; /* a node of the forward graph, or one that recalls */
        if (!node->inputs_count && !node->controls_count)
            graph_add_control(w->graph, node, frame->pivot);
        for (int i = 0; i < node->inputs_count; i++) {
            struct edge value;
            if (!gradient_frame_of(w, node->inputs[i].from))
                continue;
            if (!gradient_recall(w, node->inputs[i], frame, &value))
                return false;
            graph_set_input(w->graph, node, i, value);
        }
    }
    return true;
}
