/*
 * gradient_stack.c - through the stacks of loops: gradients of what is itself a gradient.
 *
 * A loop pushed what the loop on its way back popped.  Differentiated once more, everything
 * runs the other way round: the way back of the popping loop pushes the gradients on a twin of
 * the stack, and the way back of the pushing loop pops them, in just the right order.  No edge
 * leads from push to pop, so the walk is told of pairs, and the second loop waits for the
 * first.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/gradient_internal.h"
#include "runtime/op.h"

static bool is_op(const struct node *node, const char *op)
{
    return !strcmp(node->op->name, op);
}

/* --- which push belongs to which pop --- */

/* What a handle's stack is called: its node, and of which twin; NULL: not known (yet). */
static const char *trace(struct walk *w, struct edge handle)
{
    const char *twins = "";
    for (int steps = 0; steps <= w->count; steps++) {
        struct node *node = handle.from;
        if (is_op(node, "StackV2"))
            return arena_printf(w->arena, "%d%s", node->id, twins);
        struct stack_pair *pair = w->places[node->id].pair;
        if (is_op(node, "StackPopV2") && pair && pair->push)
            handle = pair->push->inputs[1];
        else if (is_op(node, "StackPopV2") || !node->inputs_count)
            return NULL;
        else if (is_op(node, "StackGrad"))
            twins =
                arena_printf(w->arena, "/%s%s", node_attr_string(node, "source", ""), twins);
        if (!is_op(node, "StackPopV2"))
            handle = node->inputs[0];
    }
    return NULL;
}

static struct stack_pair *pair_of(struct walk *w, struct map *pairs, const char *stack)
{
    struct stack_pair *pair = map_find(pairs, stack);
    if (pair)
        return pair;
    pair = arena_alloc(w->arena, sizeof(*pair));
    pair->next = w->pairs;
    w->pairs = pair;
    map_set(pairs, stack, pair);
    return pair;
}

/* One more node of the stack, should it be known by now. */
static bool add_to_pair(struct walk *w, struct map *pairs, struct node *node)
{
    const char *stack = trace(w, node->inputs[0]);
    if (!stack)
        return false;
    struct stack_pair *pair = pair_of(w, pairs, stack);
    struct node **end = is_op(node, "StackPopV2") ? &pair->pop : &pair->push;
    pair->shared |= *end != NULL;
    *end = node;
    w->places[node->id].pair = pair;
    return true;
}

static bool is_end(const struct node *node)
{
    return (is_op(node, "StackPushV2") && node->inputs_count == 2) ||
           (is_op(node, "StackPopV2") && node->inputs_count == 1);
}

/* Handles are kept on stacks themselves: with each round those of one more loop are known. */
void gradient_find_stacks(struct walk *w)
{
    int *left = alloc_array((size_t)w->count + 1, sizeof(*left)), count = 0;
    for (int id = 0; id < w->count; id++)
        if (is_end(graph_node(w->graph, id)))
            left[count++] = id;
    struct map *pairs = map_new();
    for (bool more = count > 0; more;) {
        int kept = 0;
        for (int i = 0; i < count; i++)
            if (!add_to_pair(w, pairs, graph_node(w->graph, left[i])))
                left[kept++] = left[i];
        more = kept < count;
        count = kept;
    }
    map_free(pairs);
    free(left);
}

struct node *gradient_pushed_for(const struct walk *w, const struct node *node)
{
    const struct stack_pair *pair = w->places[node->id].pair;
    return pair && !pair->shared && pair->pop == node ? pair->push : NULL;
}

struct node *gradient_popped_from(const struct walk *w, const struct node *node)
{
    const struct stack_pair *pair = w->places[node->id].pair;
    return pair && !pair->shared && pair->push == node ? pair->pop : NULL;
}

/* --- stacks that cannot be followed --- */

/* Marks what depends on an x; round a loop it takes another pass. */
static void mark_dependent(struct walk *w, bool *dependent)
{
    bool more = true;
    while (more) {
        more = false;
        for (int id = 0; id < w->count; id++) {
            const struct node *node = graph_node(w->graph, id);
            for (int i = 0; !dependent[id] && i < node->inputs_count; i++)
                if (dependent[node->inputs[i].from->id] &&
                    gradient_carries(node->input_types[i]))
                    dependent[id] = more = true;
        }
    }
}

/* Whether it is one end of a stack that has one push and one pop. */
static bool is_followed(const struct walk *w, const struct node *node)
{
    const struct stack_pair *pair = w->places[node->id].pair;
    return pair && !pair->shared;
}

bool gradient_check_stacks(struct walk *w, const struct edge *xs, int xs_count)
{
    bool pops = false;
    for (int id = 0; id < w->count && !pops; id++) {
        const struct node *node = graph_node(w->graph, id);
        pops = w->places[id].reached && is_op(node, "StackPopV2") && !is_followed(w, node);
    }
    if (!pops)
        return true;
    bool ok = true;
    bool *dependent = alloc_array((size_t)w->count + 1, sizeof(*dependent));
    for (int i = 0; i < xs_count; i++)
        dependent[xs[i].from->id] = true;
    mark_dependent(w, dependent);
    for (int id = 0; ok && id < w->count; id++) {
        const struct node *node = graph_node(w->graph, id);
        if (is_op(node, "StackPushV2") && node->inputs_count == 2 && !is_followed(w, node) &&
            dependent[node->inputs[1].from->id])
            ok = fail(w->err, UNIMPLEMENTED,
                      "there are no gradients through the stack that node '%s' pushes on: one "
                      "node must push on it, and one pop from it",
                      node->name);
    }
    free(dependent);
    return ok;
}

/* --- loops that wait for each other --- */

static int depth_of(const struct loop_frame *frame)
{
    int depth = 0;
    for (; frame->up; frame = frame->up)
        depth++;
    return depth;
}

/* The loops of both ends that stand side by side; NULL where an end is in no other loop. */
static void find_siblings(struct loop_frame *push, struct loop_frame *pop,
                          struct loop_frame **push_top, struct loop_frame **pop_top)
{
    *push_top = *pop_top = NULL;
    while (push != pop) {
        if (depth_of(push) >= depth_of(pop)) {
            *push_top = push;
            push = push->up;
        } else {
            *pop_top = pop;
            pop = pop->up;
        }
    }
}

bool gradient_expect_pops(struct walk *w)
{
    for (struct stack_pair *pair = w->pairs; pair; pair = pair->next) {
        if (pair->shared || !pair->push || !pair->pop || !w->places[pair->push->id].between ||
            !w->places[pair->pop->id].between)
            continue;
        struct loop_frame *pop = gradient_frame_of(w, pair->pop);
        struct loop_frame *push = gradient_frame_of(w, pair->push);
        find_siblings(push, pop, &pair->push_loop, &pair->pop_loop);
        if (!pair->push_loop != !pair->pop_loop ||
            (pair->pop_loop &&
             !gradient_is_around(w, pair->pop_loop->guard, pair->push_loop->guard)))
            return fail(w->err, UNIMPLEMENTED,
                        "there are no gradients through the stack that node '%s' pushes on: "
                        "not where it pushes is what node '%s' pops popped",
                        pair->push->name, pair->pop->name);
        for (; pair->push_loop && push != pair->push_loop->up; push = push->up)
            push->exits_left++;
    }
    return true;
}

/* What loop `frame` pushes and pops on the way back is done when an iteration around it is. */
static bool finish_loops(struct walk *w, struct loop_frame *frame, struct loop_frame *top)
{
    for (;; frame = frame->up) {
        if (!gradient_loop_start(w, frame) || !gradient_loop_finished(w, frame))
            return false;
        if (frame == top)
            return true;
    }
}

/* --- back through a pop, and through a push --- */

/* The twin of the stack behind an end's handle, as the way back sees it. */
static bool add_twin(struct walk *w, struct builder *b, const struct node *end,
                     struct edge *twin)
{
    struct edge handle = end->inputs[0];
    while (handle.from->op->flow == FLOW_SWITCH) /* which only guarded the end */
        handle = handle.from->inputs[0];
    struct loop_frame *frame = gradient_frame_of(w, end);
    if (!gradient_recall(w, handle, frame, &handle))
        return false;
    *twin = builder_add(b, "StackGrad", "twin", INPUTS(handle),
                        ATTRS(attr_string("source", w->source)));
    if (builder_ok(b) && frame->up)
        graph_add_control(w->graph, twin->from, frame->pivot);
    return builder_ok(b);
}

static bool push_gradient(struct walk *w, struct stack_pair *pair, struct edge gradient)
{
    struct builder b = gradient_builder(w, pair->pop);
    struct loop_frame *frame = gradient_frame_of(w, pair->pop);
    struct edge twin;
    if (!add_twin(w, &b, pair->pop, &twin))
        return false;
    pair->pushed =
        builder_add(&b, "StackPushV2", "push", INPUTS(twin, gradient), NO_ATTRS).from;
    if (!builder_ok(&b))
        return false;
    if (frame->up)
        graph_add_control(w->graph, frame->popped, pair->pushed);
    if (!pair->pop_loop)
        return true;
    if (!finish_loops(w, frame, pair->pop_loop) || !gradient_loop_start(w, pair->push_loop))
        return false;
    graph_add_control(w->graph, pair->push_loop->back_enter, pair->pop_loop->finished);
    return true;
}

bool gradient_of_pop(struct walk *w, const struct node *node)
{
    struct stack_pair *pair = gradient_place(w, node)->pair;
    struct edge gradient;
    if (!gradient_sum(w, (struct edge){(struct node *)node, 0}, &gradient) ||
        (gradient.from && !push_gradient(w, pair, gradient)))
        return false;
    if (!pair->push_loop) {
        gradient_ready(w, pair->push);
        return true;
    }
    struct loop_frame *loops[64];
    int count = 0;
    struct loop_frame *frame = gradient_frame_of(w, pair->push);
    for (; frame != pair->push_loop->up && count < ARRAY_LEN(loops); frame = frame->up)
        loops[count++] = frame;
    for (int i = 0; i < count; i++)
        loops[i]->stack_flows |= gradient.from != NULL;
    while (count)
        if (!gradient_reach_loop(w, loops[--count]))
            return false;
    return true;
}

void gradient_ready_pushes(struct walk *w, const struct loop_frame *frame)
{
    for (struct stack_pair *pair = w->pairs; pair; pair = pair->next)
        if (pair->push_loop && gradient_frame_of(w, pair->push) == frame)
            gradient_ready(w, pair->push);
}

/* What was pushed has two readers: who popped it, and who reads it on from the push. */
bool gradient_of_push(struct walk *w, const struct node *node)
{
    struct stack_pair *pair = gradient_place(w, node)->pair;
    struct loop_frame *frame = gradient_frame_of(w, node);
    struct edge gradient;
    if (!gradient_sum(w, (struct edge){(struct node *)node, 0}, &gradient))
        return false;
    if (!pair->pushed) {
        gradient_give(w, node, 1, gradient);
        return true;
    }
    struct builder b = gradient_builder(w, node);
    struct edge twin;
    int guard = w->where[node->id].guard;
    if (!add_twin(w, &b, node, &twin) || !gradient_guard_stack(w, &b, frame, guard, &twin))
        return false;
    int dtype = dtype_base(node->output_types[0]);
    struct edge popped = builder_add(&b, "StackPopV2", "pop", INPUTS(twin),
                                     ATTRS(attr_type("elem_type", dtype)));
    if (builder_ok(&b) && frame->up)
        graph_add_control(w->graph, frame->popped, popped.from);
    if (builder_ok(&b) && !pair->push_loop)
        graph_add_control(w->graph, popped.from, pair->pushed);
    if (builder_ok(&b) && gradient.from) {
        const struct edge terms[] = {popped, gradient};
        popped = builder_add(&b, "AddN", "AddN", terms, 2, ATTRS(attr_int("N", 2)));
    }
    if (!builder_ok(&b) || !gradient_widen(w, node, 1, &popped) ||
        (pair->push_loop && !finish_loops(w, frame, pair->push_loop)))
        return false;
    gradient_give(w, node, 1, popped);
    return true;
}
