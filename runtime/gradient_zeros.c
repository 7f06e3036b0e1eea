/*
 * gradient_zeros.c - gradients of what went into a While and did not matter.
 *
 * TensorFlow differentiates it as a whole: when one of its results has a gradient, all that it
 * was given has one, zeros where nothing hangs on it.  The walk back sees only the loop in
 * place of the call, and finds no way to these; here they are found afterwards.
 */

#include "base/arena.h"
#include "runtime/gradient_internal.h"
#include "runtime/internal.h"
#include "runtime/op.h"

struct flood {
    struct walk *w;
    const struct lowered **made_by; /* by node id: the loop that it is a result of */
    bool **given;                   /* by node id and output; NULL until the first */
    const struct node **top;        /* nodes to go on from */
    int count;
};

static bool *given_at(struct flood *f, struct edge edge)
{
    bool **outputs = &f->given[edge.from->id];
    if (!*outputs)
        *outputs = arena_array(f->w->arena, (size_t)edge.from->outputs_count + 1, sizeof(bool));
    return *outputs + edge.output;
}

static bool is_given(const struct flood *f, struct edge edge)
{
    return edge.from->id < f->w->count && f->given[edge.from->id] &&
           f->given[edge.from->id][edge.output];
}

static void give(struct flood *f, struct edge edge)
{
    if (edge.from->id >= f->w->count ||
        !gradient_carries(edge.from->output_types[edge.output]) || is_given(f, edge))
        return;
    if (!f->given[edge.from->id])
        f->top[f->count++] = edge.from;
    *given_at(f, edge) = true;
}

/* From what has a gradient to all that gets one, past ops that have none. */
static void spread(struct flood *f)
{
    while (f->count) {
        const struct node *node = f->top[--f->count];
        const struct lowered *loop = f->made_by[node->id];
        for (int i = 0; loop && i < loop->inputs_count; i++)
            give(f, loop->inputs[i]);
        for (int i = 0; !node->op->no_gradient && i < node->inputs_count; i++)
            give(f, node->inputs[i]);
    }
}

static struct flood flood_new(struct walk *w, const struct lowered *loops)
{
    size_t room = (size_t)w->count + 1;
    struct flood f = {.w = w,
                      .made_by = arena_array(w->arena, room, sizeof(*f.made_by)),
                      .given = arena_array(w->arena, room, sizeof(*f.given)),
                      .top = arena_array(w->arena, room, sizeof(*f.top))};
    for (; loops; loops = loops->next)
        for (int i = 0; i < loops->results_count; i++)
            f.made_by[loops->results[i].from->id] = loops;
    return f;
}

/* What such loops, and only these, give a gradient. */
static struct flood flood_loops(struct walk *w, const struct lowered *loops,
                                const struct edge *ys, int ys_count)
{
    struct flood all = flood_new(w, loops), behind = flood_new(w, loops);
    for (int i = 0; i < ys_count; i++)
        give(&all, ys[i]);
    spread(&all);
    for (; loops; loops = loops->next) {
        bool flows = false;
        for (int i = 0; i < loops->results_count; i++)
            flows |= is_given(&all, loops->results[i]);
        for (int i = 0; flows && i < loops->inputs_count; i++)
            give(&behind, loops->inputs[i]);
    }
    spread(&behind);
    return behind;
}

/* Zeros like x; a handle has none but as the variable that it names. */
static bool add_zeros(struct walk *w, struct edge x, struct edge *grad)
{
    struct builder b = gradient_builder(w, x.from);
    struct edge like = x;
    if (dtype_base(x.from->output_types[x.output]) == RESOURCE) {
        int dtype = node_attr_type(x.from, "dtype");
        if (strcmp(x.from->op->name, "VarHandleOp") != 0 || dtype == DTYPE_NONE)
            return true;
        like = builder_scalar(&b, "like", (enum dtype)dtype, 0);
    }
    if (builder_ok(&b))
        *grad = gradient_zeros(&b, x, like);
    return builder_ok(&b);
}

bool gradient_fill_zeros(struct walk *w, const struct lowered *loops, const struct edge *ys,
                         int ys_count, const struct edge *xs, int xs_count, struct edge *grads)
{
    bool missing = false;
    for (int i = 0; i < xs_count; i++)
        missing |= !grads[i].from;
    if (!loops || !missing)
        return true;
    struct flood behind = flood_loops(w, loops, ys, ys_count);
    for (int i = 0; i < xs_count; i++) {
        const struct loop_frame *frame = w->has_flow ? gradient_frame_of(w, xs[i].from) : NULL;
        if (!grads[i].from && !(frame && frame->up) && is_given(&behind, xs[i]) &&
            !add_zeros(w, xs[i], &grads[i]))
            return false;
    }
    return true;
}
