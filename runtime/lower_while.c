/*
 * lower_while.c - While as a loop of Enter, Merge, LoopCond, Switch, Exit and NextIteration.
 *
 * What the body hands on unchanged is no variable of the loop: it enters once, as a constant.
 */

#include "base/arena.h"
#include "base/error.h"
#include "runtime/lower.h"
#include "runtime/tensor.h"

struct loop {
    struct lower *l;
    const struct lower_call *call;
    const char *frame;
    int count;             /* arguments; one more when `own` */
    bool own;              /* the last variable is ours: all others never change */
    const struct edge *in; /* values from outside */
    bool *constant;        /* by argument */
    struct edge *enters;
    struct edge *merges;   /* what cond gets: the Enter of a constant */
    struct edge *switches; /* output 0; none for constants */
    struct edge *bodies;   /* what the body gets */
    struct edge *exits;
};

static struct edge add(struct loop *loop, const char *name, const char *op,
                       const struct edge *inputs, int inputs_count,
                       struct node *const *controls, int controls_count)
{
    return (struct edge){lower_add(loop->l, loop->call, name, op, inputs, inputs_count, NULL, 0,
                                   controls, controls_count),
                         0};
}

static bool enter(struct loop *loop, int i)
{
    const struct node *node = loop->call->node;
    int64_t parallel = node_attr_int(node, "parallel_iterations", 10);
    const struct attr attrs[] = {attr_string("frame_name", loop->frame),
                                 attr_bool("is_constant", loop->constant[i]),
                                 attr_int("parallel_iterations", parallel > 0 ? parallel : 1)};
    loop->enters[i].from = lower_add(loop->l, loop->call, "enter", "Enter", &loop->in[i], 1,
                                     attrs, 3, node->controls, node->controls_count);
    loop->merges[i] = loop->enters[i];
    if (!loop->enters[i].from || loop->constant[i])
        return loop->enters[i].from;
    /* The second input is the NextIteration, once there is one. */
    const struct edge both[] = {loop->enters[i], loop->enters[i]};
    loop->merges[i] = add(loop, "merge", "Merge", both, 2, NULL, 0);
    return loop->merges[i].from;
}

/* A variable of our own where the function has none that changes. */
static bool add_own(struct loop *loop, struct edge *in)
{
    const struct node *node = loop->call->node;
    struct tensor value;
    if (!tensor_init_scalar(&value, BOOL, 0, loop->l->err))
        return false;
    const struct attr attrs[] = {attr_type("dtype", BOOL), attr_tensor("value", &value)};
    struct node *first = node->inputs_count ? node->inputs[0].from : NULL;
    in->from = lower_add(loop->l, loop->call, "unit", "Const", NULL, 0, attrs, 2, &first,
                         first ? 1 : 0);
    in->output = 0;
    tensor_release(&value);
    return in->from;
}

static bool add_arrays(struct loop *loop, const struct function_def *body)
{
    const struct node *node = loop->call->node;
    struct arena *arena = graph_arena(loop->l->graph);
    int count = node->inputs_count;
    size_t room = (size_t)count + 1;
    struct edge *in = arena_array(arena, room, sizeof(*in));
    loop->constant = arena_array(arena, room, sizeof(*loop->constant));
    loop->own = true;
    for (int i = 0; i < count; i++) {
        in[i] = node->inputs[i];
        loop->constant[i] = lower_passes(body, i);
        loop->own &= loop->constant[i];
    }
    loop->in = in;
    loop->count = count + loop->own;
    loop->enters = arena_array(arena, room, sizeof(struct edge));
    loop->merges = arena_array(arena, room, sizeof(struct edge));
    loop->switches = arena_array(arena, room, sizeof(struct edge));
    loop->bodies = arena_array(arena, room, sizeof(struct edge));
    loop->exits = arena_array(arena, room, sizeof(struct edge));
    return !loop->own || add_own(loop, &in[count]);
}

static int first_variable(const struct loop *loop)
{
    int i = 0;
    while (loop->constant[i])
        i++;
    return i;
}

/* Merges -> cond -> LoopCond. */
static bool add_cond(struct loop *loop, const struct function_def *def, struct edge *again)
{
    struct node *pivot = loop->merges[first_variable(loop)].from;
    struct lower_body cond = {.func = node_attr(loop->call->node, "cond")->funcs,
                              .def = def,
                              .tag = "cond",
                              .args = loop->merges,
                              .args_count = loop->call->node->inputs_count,
                              .entry = pivot,
                              .in_flow = true,
                              .all_effects = !lower_is_asked(loop->call)};
    if (!lower_body(loop->l, loop->call, &cond))
        return false;
    if (cond.results_count != 1)
        return fail(loop->l->err, INVALID,
                    "node '%s' (%s): function '%s' must return one value, it returns %d",
                    loop->call->node->name, loop->call->node->op->name, def->op.name,
                    cond.results_count);
    struct edge pred;
    if (!lower_ask(loop->l, loop->call, cond.results[0], &pred))
        return false;
    *again = add(loop, "loop_cond", "LoopCond", &pred, 1, cond.effects, cond.effects_count);
    return again->from;
}

/* Each variable goes on into the body or out of the loop. */
static bool add_switches(struct loop *loop, struct edge again)
{
    for (int i = 0; i < loop->count; i++) {
        if (loop->constant[i])
            continue;
        const struct edge inputs[] = {loop->merges[i], again};
        loop->switches[i] = add(loop, "switch", "Switch", inputs, 2, NULL, 0);
        if (!loop->switches[i].from)
            return false;
        const struct edge taken = {loop->switches[i].from, 1};
        loop->bodies[i] = add(loop, "identity", "Identity", &taken, 1, NULL, 0);
        loop->exits[i] = add(loop, "exit", "Exit", &loop->switches[i], 1, NULL, 0);
        if (!loop->bodies[i].from || !loop->exits[i].from)
            return false;
    }
    return true;
}

/* A constant is there in the round after the last, too: in the body it follows a variable. */
static bool gate_constants(struct loop *loop, struct node *pivot)
{
    for (int i = 0; i < loop->count; i++) {
        if (!loop->constant[i])
            continue;
        loop->bodies[i] = add(loop, "constant", "Identity", &loop->enters[i], 1, &pivot, 1);
        if (!loop->bodies[i].from)
            return false;
    }
    return true;
}

static bool add_body(struct loop *loop, const struct function_def *def)
{
    struct lower *l = loop->l;
    struct node *pivot = loop->bodies[first_variable(loop)].from;
    struct lower_body body = {.func = node_attr(loop->call->node, "body")->funcs,
                              .def = def,
                              .tag = "body",
                              .args = loop->bodies,
                              .args_count = loop->call->node->inputs_count,
                              .entry = pivot,
                              .in_flow = true,
                              .all_effects = !lower_is_asked(loop->call)};
    if (!gate_constants(loop, pivot) || !lower_body(l, loop->call, &body))
        return false;
    if (body.results_count != loop->call->node->inputs_count)
        return fail(l->err, INVALID,
                    "node '%s' (%s): function '%s' must return %d values, it returns %d",
                    loop->call->node->name, loop->call->node->op->name, def->op.name,
                    loop->call->node->inputs_count, body.results_count);
    for (int i = 0; i < loop->count; i++) {
        if (loop->constant[i])
            continue;
        bool ours = i == loop->call->node->inputs_count;
        struct edge value = ours ? loop->bodies[i] : body.results[i];
        if (dtype_base(value.from->output_types[value.output]) !=
            dtype_base(loop->merges[i].from->output_types[0]))
            return fail(
                l->err, INVALID,
                "node '%s' (%s): function '%s' returns a %s as value %d, which was a %s",
                loop->call->node->name, loop->call->node->op->name, def->op.name,
                dtype_name(value.from->output_types[value.output]), i,
                dtype_name(loop->merges[i].from->output_types[0]));
        struct edge next = add(loop, "next_iteration", "NextIteration", &value, 1, body.effects,
                               body.effects_count);
        if (!next.from)
            return false;
        graph_set_input(l->graph, loop->merges[i].from, 1, next);
    }
    return true;
}

/* The value of a constant comes out with the others, when the loop has ended. */
static bool finish(struct loop *loop)
{
    struct node *out = loop->exits[first_variable(loop)].from;
    for (int i = 0; i < loop->count; i++) {
        if (!loop->constant[i])
            continue;
        loop->exits[i] = add(loop, "exit", "Identity", &loop->in[i], 1, &out, 1);
        if (!loop->exits[i].from)
            return false;
    }
    bool empty = !loop->call->node->inputs_count;
    lower_note(loop->l, loop->call, loop->exits, loop->call->node->inputs_count);
    return lower_finish(loop->l, loop->call, loop->exits, loop->call->node->inputs_count, &out,
                        empty ? 1 : 0, lower_is_asked(loop->call));
}

bool lower_while(struct lower *l, const struct lower_call *call, bool *done)
{
    const struct function_def *cond =
        lower_find(l, call, node_attr(call->node, "cond")->funcs->name, done);
    if (!cond || !*done)
        return cond;
    const struct function_def *body =
        lower_find(l, call, node_attr(call->node, "body")->funcs->name, done);
    if (!body || !*done)
        return body;
    struct loop loop = {.l = l, .call = call};
    loop.frame = lower_key(l, call->node, "frame", "");
    if (!loop.frame)
        loop.frame = lower_name(l, call->node, NULL, "frame");
    if (!add_arrays(&loop, body))
        return false;
    for (int i = 0; i < loop.count; i++)
        if (!enter(&loop, i))
            return false;
    struct edge again = {NULL, 0};
    return add_cond(&loop, cond, &again) && add_switches(&loop, again) &&
           add_body(&loop, body) && finish(&loop);
}
