/*
 * gradient_branch.c - through conditionals.
 *
 * What a Switch kept apart comes together in a Merge, and the other way round.  A branch that
 * was not taken is dead on the way back, too; where only one branch reads a value, the other
 * gives zeros.
 */

#include "base/error.h"
#include "runtime/gradient_internal.h"
#include "runtime/op.h"

struct edge gradient_zeros(struct builder *b, struct edge x, struct edge like)
{
    if (dtype_base(x.from->output_types[x.output]) != RESOURCE)
        return builder_add(b, "ZerosLike", "zeros", INPUTS(x), NO_ATTRS);
    struct edge shape = builder_add(b, "VariableShape", "shape", INPUTS(x), NO_ATTRS);
    if (!shape.from)
        return shape;
    enum dtype dtype = dtype_base(like.from->output_types[like.output]);
    struct edge zero = builder_scalar(b, "zero", dtype, 0);
    return zero.from ? builder_add(b, "Fill", "zeros", INPUTS(shape, zero), NO_ATTRS) : zero;
}

/* Where guard `g` keeps the gradient from being alive there are zeros like `x`. */
static bool add_zeros(struct walk *w, struct builder *b, const struct guard *g,
                      struct loop_frame *frame, struct edge x, struct edge *gradient)
{
    struct edge pred = g->pred;
    int first = graph_count(w->graph);
    struct edge zeros = gradient_zeros(b, x, *gradient);
    if (!builder_ok(b))
        return false;
    struct edge gate = builder_add(b, "Switch", "zeros/Switch", INPUTS(zeros, pred), NO_ATTRS);
    if (!builder_ok(b))
        return false;
    *gradient = builder_add(b, "Merge", "Merge",
                            INPUTS(*gradient, builder_output(gate, 1 - g->side)), NO_ATTRS);
    return builder_ok(b) && gradient_localise(w, first, frame);
}

bool gradient_widen(struct walk *w, const struct node *node, int i, struct edge *gradient)
{
    struct loop_frame *frame = gradient_frame_of(w, node);
    if (!frame || !gradient->from)
        return true;
    struct builder b = gradient_builder(w, node);
    int guard = w->where[node->id].guard, of_input = gradient_guard_of(w, node->inputs[i]);
    if (!gradient_is_around(w, of_input, guard))
        return true;
    for (; !gradient_is_around(w, guard, of_input); guard = w->guards[guard].up) {
        const struct guard g = w->guards[guard];
        if (!gradient_has_condition(w, of_input, &g) &&
            !add_zeros(w, &b, &g, frame, node->inputs[i], gradient))
            return false;
    }
    return true;
}

bool gradient_of_switch(struct walk *w, const struct node *node, const struct edge *of_outputs)
{
    struct builder b = gradient_builder(w, node);
    int first = graph_count(w->graph);
    struct edge sides[2] = {of_outputs[0], of_outputs[1]};
    if (node->outputs_count != 2)
        return fail(w->err, UNIMPLEMENTED,
                    "No gradient defined for operation '%s' (op type: %s)", node->name,
                    node->op->name);
    for (int i = 0; i < 2; i++) {
        if (sides[i].from)
            continue;
        struct edge zeros = gradient_zeros(&b, node->inputs[0], of_outputs[1 - i]);
        if (!zeros.from)
            return false;
        struct edge gate =
            builder_add(&b, "Switch", "zeros/Switch", INPUTS(zeros, node->inputs[1]), NO_ATTRS);
        sides[i] = builder_output(gate, i);
    }
    if (!builder_ok(&b))
        return false;
    struct edge merged = builder_add(&b, "Merge", "Merge", sides, 2, NO_ATTRS);
    if (!builder_ok(&b) || !gradient_localise(w, first, gradient_frame_of(w, node)))
        return false;
    gradient_give(w, node, 0, merged);
    return true;
}

/* Whether guard `a` has all conditions of guard `b` but that one. */
static bool has_all_but(const struct walk *w, int a, int b, const struct guard *but)
{
    for (; b; b = w->guards[b].up) {
        const struct guard *g = &w->guards[b];
        bool same = g->pred.from == but->pred.from && g->pred.output == but->pred.output &&
                    g->side == but->side;
        if (!same && !gradient_has_condition(w, a, g))
            return false;
    }
    return true;
}

/* Whether the Merge's inputs are the two sides of one condition: `*side`, of the first. */
static bool find_condition(struct walk *w, const struct node *merge, struct guard *side)
{
    if (merge->inputs_count != 2)
        return false;
    int first = gradient_guard_of(w, merge->inputs[0]);
    int second = gradient_guard_of(w, merge->inputs[1]);
    for (int g = first; g; g = w->guards[g].up) {
        *side = w->guards[g];
        const struct guard other = {0, side->pred, 1 - side->side};
        if (gradient_has_condition(w, second, &other))
            return has_all_but(w, second, first, side) && has_all_but(w, first, second, &other);
    }
    return false;
}

/*
 * The gradient goes to the input that the value came from.  Where a condition says which that
 * is, it does so on the way back, too: further derivatives then find the same condition there.
 */
bool gradient_of_merge(struct walk *w, const struct node *node, struct edge of_output)
{
    struct builder b = gradient_builder(w, node);
    int first = graph_count(w->graph);
    struct guard side;
    if (find_condition(w, node, &side)) {
        struct edge gate =
            builder_add(&b, "Switch", "Switch", INPUTS(of_output, side.pred), NO_ATTRS);
        if (!builder_ok(&b) || !gradient_localise(w, first, gradient_frame_of(w, node)))
            return false;
        gradient_give(w, node, 0, builder_output(gate, side.side));
        gradient_give(w, node, 1, builder_output(gate, 1 - side.side));
        return true;
    }
    struct edge index = {(struct node *)node, 1};
    for (int i = 0; i < node->inputs_count; i++) {
        struct place *place = gradient_place(w, node->inputs[i].from);
        if (!place->between || !gradient_carries(node->input_types[i]))
            continue;
        struct edge number = builder_scalar(&b, "index", I32, i);
        if (!builder_ok(&b))
            return false;
        struct edge chosen = builder_add(&b, "Equal", "Equal", INPUTS(index, number), NO_ATTRS);
        if (!builder_ok(&b))
            return false;
        struct edge gate =
            builder_add(&b, "Switch", "Switch", INPUTS(of_output, chosen), NO_ATTRS);
        if (!builder_ok(&b))
            return false;
        gradient_give(w, node, i, builder_output(gate, 1));
    }
    return gradient_localise(w, first, gradient_frame_of(w, node));
}
