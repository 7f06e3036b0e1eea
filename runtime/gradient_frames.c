/*
 * gradient_frames.c - which loop a node is in, and which branch, from the edges alone.
 *
 * An Enter leads into the loop that its attribute names, an Exit out of it; all other nodes are
 * where their inputs are.  A Switch that does not belong to a loop guards what reads it, until
 * a Merge.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/gradient_internal.h"
#include "runtime/op.h"

enum { LOOPS_DEEP_MAX = 64, GUARDS_DEEP_MAX = 65 };

static bool is_next(const struct node *node)
{
    return node->op->flow == FLOW_NEXT;
}

bool gradient_is_loop_merge(const struct node *node)
{
    if (node->op->flow != FLOW_MERGE)
        return false;
    for (int i = 0; i < node->inputs_count; i++)
        if (is_next(node->inputs[i].from))
            return true;
    return false;
}

bool gradient_is_loop_switch(const struct node *node)
{
    return node->op->flow == FLOW_SWITCH && gradient_is_loop_merge(node->inputs[0].from);
}

/* --- guards --- */

bool gradient_has_condition(const struct walk *w, int guard, const struct guard *condition)
{
    for (; guard; guard = w->guards[guard].up) {
        const struct guard *g = &w->guards[guard];
        if (g->pred.from == condition->pred.from && g->pred.output == condition->pred.output &&
            g->side == condition->side)
            return true;
    }
    return false;
}

bool gradient_is_around(const struct walk *w, int outer, int inner)
{
    for (; outer; outer = w->guards[outer].up)
        if (!gradient_has_condition(w, inner, &w->guards[outer]))
            return false;
    return true;
}

/* `up` with one condition more, unless it has it. */
static int with_condition(struct walk *w, int up, const struct guard *condition)
{
    if (gradient_has_condition(w, up, condition))
        return up;
    const struct guard made = {up, condition->pred, condition->side};
    for (int i = 1; i < w->guards_count; i++) {
        const struct guard *g = &w->guards[i];
        if (g->up == up && g->pred.from == made.pred.from &&
            g->pred.output == made.pred.output && g->side == made.side)
            return i;
    }
    w->guards = alloc_grow(w->guards, w->guards_count, &w->guards_capacity, sizeof(*w->guards));
    w->guards[w->guards_count] = made;
    return w->guards_count++;
}

/* The conditions of a guard, innermost first; what is beyond GUARDS_DEEP_MAX is left out. */
static int list_conditions(const struct walk *w, int guard, struct guard *conditions)
{
    int count = 0;
    for (; guard && count < GUARDS_DEEP_MAX; guard = w->guards[guard].up)
        conditions[count++] = w->guards[guard];
    return count;
}

/* Alive only where both are. */
static int both_guards(struct walk *w, int a, int b)
{
    struct guard conditions[GUARDS_DEEP_MAX];
    if (gradient_is_around(w, a, b))
        return b;
    for (int i = list_conditions(w, b, conditions); i > 0; i--)
        a = with_condition(w, a, &conditions[i - 1]);
    return a;
}

/* What both are inside of. */
static int common_guard(struct walk *w, int a, int b)
{
    struct guard conditions[GUARDS_DEEP_MAX];
    int common = 0;
    for (int i = list_conditions(w, a, conditions); i > 0; i--)
        if (gradient_has_condition(w, b, &conditions[i - 1]))
            common = with_condition(w, common, &conditions[i - 1]);
    return common;
}

int gradient_guard_of(struct walk *w, struct edge edge)
{
    int guard = w->where[edge.from->id].guard;
    if (edge.from->op->flow != FLOW_SWITCH || gradient_is_loop_switch(edge.from))
        return guard;
    struct edge pred = edge.from->inputs[1];
    while (!strcmp(pred.from->op->name, "Identity") && !pred.from->controls_count)
        pred = pred.from->inputs[0];
    const struct guard condition = {0, pred, edge.output};
    return with_condition(w, guard, &condition);
}

static int guard_of_node(struct walk *w, const struct node *node)
{
    int guard = 0;
    if (node->op->flow == FLOW_ENTER || gradient_is_loop_merge(node))
        return 0;
    if (node->op->flow == FLOW_EXIT)
        return w->where[node->inputs[0].from->id].frame->guard;
    if (node->op->flow == FLOW_MERGE) {
        guard = gradient_guard_of(w, node->inputs[0]);
        for (int i = 1; i < node->inputs_count; i++)
            guard = common_guard(w, guard, gradient_guard_of(w, node->inputs[i]));
        return guard;
    }
    for (int i = 0; i < node->inputs_count; i++)
        guard = both_guards(w, guard, gradient_guard_of(w, node->inputs[i]));
    /* Of an Exit or another frame a control says nothing about this frame's branches. */
    for (int i = 0; i < node->controls_count; i++)
        if (w->where[node->controls[i]->id].frame == w->where[node->id].frame)
            guard = both_guards(w, guard, w->where[node->controls[i]->id].guard);
    return guard;
}

/* --- frames --- */

static int depth_of(const struct loop_frame *frame)
{
    int depth = 0;
    for (; frame->up; frame = frame->up)
        depth++;
    return depth;
}

static struct loop_frame *add_frame(struct walk *w, struct loop_frame *up, const char *name)
{
    if (up && depth_of(up) >= LOOPS_DEEP_MAX) {
        fail(w->err, UNIMPLEMENTED, "gradients go through %d loops in loops at most",
             LOOPS_DEEP_MAX);
        return NULL;
    }
    struct loop_frame *frame = arena_alloc(w->arena, sizeof(*frame));
    *frame = (struct loop_frame){.id = w->frames_count, .up = up, .name = name};
    w->frames = alloc_grow(w->frames, w->frames_count, &w->frames_capacity, sizeof(*w->frames));
    w->frames[w->frames_count++] = frame;
    return frame;
}

/*
 * The loop is alive where all of its variables are: counters of iterations, which TensorFlow
 * adds for gradients, start outside of the branch that the loop is in.
 */
static void enter_variable(struct walk *w, struct loop_frame *frame, struct node *enter)
{
    int of_enter = gradient_guard_of(w, enter->inputs[0]);
    int guard = both_guards(w, frame->guard, of_enter);
    if (guard == of_enter)
        frame->enter = enter;
    w->guards_grew |= !gradient_is_around(w, guard, frame->guard);
    frame->guard = guard;
}

static struct loop_frame *enter_frame(struct walk *w, struct node *enter)
{
    struct loop_frame *up = w->where[enter->inputs[0].from->id].frame;
    const char *name = node_attr_string(enter, "frame_name", "");
    if (!up) {
        fail(w->err, INVALID, "node '%s' (Enter) enters what comes round a loop", enter->name);
        return NULL;
    }
    struct loop_frame *frame = NULL;
    for (int i = 1; i < w->frames_count && !frame; i++)
        if (w->frames[i]->up == up && !strcmp(w->frames[i]->name, name))
            frame = w->frames[i];
    if (!frame) {
        frame = add_frame(w, up, name);
        if (!frame)
            return NULL;
        frame->parallel = node_attr_int(enter, "parallel_iterations", 10);
        frame->enter = enter;
        frame->guard = gradient_guard_of(w, enter->inputs[0]);
    }
    if (!node_attr_bool(enter, "is_constant", false))
        enter_variable(w, frame, enter);
    return frame;
}

/* Where its inputs are: the innermost of their frames. */
static struct loop_frame *inner_frame(struct walk *w, const struct node *node)
{
    struct loop_frame *frame = w->frames[0];
    for (int i = 0; i < node->inputs_count; i++) {
        struct loop_frame *of_input = w->where[node->inputs[i].from->id].frame;
        if (!is_next(node->inputs[i].from) && depth_of(of_input) > depth_of(frame))
            frame = of_input;
    }
    for (int i = 0; i < node->controls_count; i++) {
        struct loop_frame *of_control = w->where[node->controls[i]->id].frame;
        if (of_control && depth_of(of_control) > depth_of(frame))
            frame = of_control;
    }
    return frame;
}

/* Graphs come from outside: what calls itself a loop must be one. */
static bool check_loop(struct walk *w, const struct node *node)
{
    bool ok = true;
    if (gradient_is_loop_merge(node))
        ok = node->inputs_count == 2 && w->where[node->id].frame->up &&
             (node->inputs[0].from->op->flow == FLOW_ENTER ||
              node->inputs[1].from->op->flow == FLOW_ENTER);
    else if (gradient_is_loop_switch(node))
        ok = node->outputs_count == 2;
    return ok || fail(w->err, INVALID, "node '%s' (%s) is not part of a loop as it should be",
                      node->name, node->op->name);
}

static bool place_node(struct walk *w, struct node *node)
{
    struct whereabouts *where = &w->where[node->id];
    bool has_input = node->inputs_count > 0;
    if (node->op->flow != FLOW_NONE && node->fault)
        return fail(w->err, node->fault->code, "%s", node->fault->text);
    if (node->op->flow == FLOW_ENTER && has_input) {
        where->frame = enter_frame(w, node);
        if (!where->frame)
            return false;
        where->is_constant = node_attr_bool(node, "is_constant", false);
    } else if (node->op->flow == FLOW_EXIT && has_input) {
        struct loop_frame *frame = w->where[node->inputs[0].from->id].frame;
        if (!frame || !frame->up)
            return fail(w->err, INVALID, "node '%s' (%s) leaves a loop, but is in none",
                        node->name, node->op->name);
        where->frame = frame->up;
    } else {
        where->frame = inner_frame(w, node);
    }
    if (!check_loop(w, node))
        return false;
    if (gradient_is_loop_switch(node))
        where->frame->pred = node->inputs[1];
    /* What only passes a constant on is one, too. */
    if (has_input && !strcmp(node->op->name, "Identity"))
        where->is_constant = w->where[node->inputs[0].from->id].is_constant &&
                             w->where[node->inputs[0].from->id].frame == where->frame;
    where->guard = guard_of_node(w, node);
    return true;
}

bool gradient_frames(struct walk *w)
{
    w->where_count = 2 * w->count + 64;
    w->where = alloc_array((size_t)w->where_count, sizeof(*w->where));
    w->guards = alloc_grow(w->guards, 0, &w->guards_capacity, sizeof(*w->guards));
    w->guards_count = 1;
    add_frame(w, NULL, "");
    int *order = graph_sorted(w->graph, w->err);
    bool ok = order;
    /* A variable may tell more of a loop after its Exits were placed. */
    for (w->guards_grew = true; ok && w->guards_grew;) {
        w->guards_grew = false;
        for (int i = 0; ok && i < w->count; i++)
            ok = place_node(w, graph_node(w->graph, order[i]));
    }
    free(order);
    return ok;
}

struct loop_frame *gradient_frame_of(struct walk *w, const struct node *node)
{
    return node->id < w->where_count ? w->where[node->id].frame : NULL;
}

void gradient_place_forward(struct walk *w, const struct node *node, struct loop_frame *frame,
                            int guard)
{
    if (node->id >= w->where_count) {
        int count = 2 * node->id + 64;
        w->where = alloc_resize(w->where, (size_t)count * sizeof(*w->where));
        memset(w->where + w->where_count, 0,
               (size_t)(count - w->where_count) * sizeof(*w->where));
        w->where_count = count;
    }
    w->where[node->id] = (struct whereabouts){.frame = frame, .guard = guard};
}
