/*
 * lower_branches.c - If and Case as Switch and Merge.
 *
 * All branches but the last have a question: is it this one?  Yes sends the arguments into the
 * branch, no to the next question.  Results of the branches meet in Merges.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/lower.h"
#include "runtime/tensor.h"

struct branches {
    struct lower *l;
    const struct lower_call *call;
    const struct attr_func **funcs;
    const struct function_def **defs;
    const char **tags;
    int count;
    struct edge selector; /* cond, or the index */
    struct edge *args;    /* what goes on to the next question */
    int args_count;
    struct edge *pivots;   /* by branch: alive when it is taken */
    struct edge **results; /* by branch */
    struct edge *dones;    /* by branch: alive when it was taken and its effects are done */
    bool has_effects;
    int results_count;
};

static const struct attr_func *func_of(const struct node *node, const char *name)
{
    return node_attr(node, name)->funcs;
}

static void list_branches(struct branches *b, struct arena *arena)
{
    const struct node *node = b->call->node;
    const struct attr *list = node_attr(node, "branches");
    b->count = list ? list->count : 2;
    b->funcs = arena_array(arena, (size_t)b->count, sizeof(*b->funcs));
    b->defs = arena_array(arena, (size_t)b->count, sizeof(*b->defs));
    b->tags = arena_array(arena, (size_t)b->count, sizeof(*b->tags));
    b->pivots = arena_array(arena, (size_t)b->count, sizeof(*b->pivots));
    b->results = arena_array(arena, (size_t)b->count, sizeof(*b->results));
    b->dones = arena_array(arena, (size_t)b->count, sizeof(*b->dones));
    for (int i = 0; i < b->count; i++) {
        b->funcs[i] = list     ? &list->funcs[i]
                      : i == 0 ? func_of(node, "then_branch")
                               : func_of(node, "else_branch");
        b->tags[i] = list ? arena_printf(arena, "branch%d", i) : i == 0 ? "then" : "else";
    }
    b->selector = node->inputs[0];
    b->args_count = node->inputs_count - 1;
    b->args = arena_copy(arena, node->inputs + 1, (size_t)b->args_count * sizeof(*b->args));
}

static struct edge add(struct branches *b, const char *name, const char *op,
                       const struct edge *inputs, int inputs_count)
{
    return (struct edge){
        lower_add(b->l, b->call, name, op, inputs, inputs_count, NULL, 0, NULL, 0), 0};
}

static struct edge add2(struct branches *b, const char *name, const char *op, struct edge x,
                        struct edge y)
{
    const struct edge inputs[] = {x, y};
    return add(b, name, op, inputs, 2);
}

/* Whether it is branch `i`, as a bool. */
static bool ask(struct branches *b, int i, struct edge *answer)
{
    if (!node_attr(b->call->node, "branches")) {
        return lower_ask(b->l, b->call, b->selector, answer);
    }
    struct tensor number;
    if (!tensor_init_scalar(&number, I32, i, b->l->err))
        return false;
    const struct attr attrs[] = {attr_type("dtype", I32), attr_tensor("value", &number)};
    struct edge constant = {
        lower_add(b->l, b->call, "index", "Const", NULL, 0, attrs, 2, &b->selector.from, 1), 0};
    tensor_release(&number);
    if (!constant.from)
        return false;
    *answer = add2(b, "is_index", "Equal", b->selector, constant);
    return answer->from;
}

/* `x` becomes what goes on; `*taken` what goes into the branch. */
static bool split(struct branches *b, struct edge *x, struct edge answer, struct edge *taken)
{
    struct edge gate = add2(b, "switch", "Switch", *x, answer);
    *x = (struct edge){gate.from, 0};
    *taken = (struct edge){gate.from, 1};
    return gate.from;
}

/* The body of branch `i` and, should it be needed, what says that it has run. */
static bool add_branch(struct branches *b, int i, const struct edge *args, struct edge pivot)
{
    struct lower_body body = {.func = b->funcs[i],
                              .def = b->defs[i],
                              .tag = b->tags[i],
                              .args = args,
                              .args_count = b->args_count,
                              .entry = pivot.from,
                              .in_flow = true,
                              .all_effects = !lower_is_asked(b->call)};
    if (!lower_body(b->l, b->call, &body))
        return false;
    if (i > 0 && body.results_count != b->results_count)
        return fail(b->l->err, INVALID, "node '%s' (%s): branches return %d and %d results",
                    b->call->node->name, b->call->node->op->name, b->results_count,
                    body.results_count);
    b->results_count = body.results_count;
    b->results[i] = body.results;
    b->pivots[i] = pivot;
    b->has_effects |= body.effects_count > 0;
    struct node *done = lower_add(b->l, b->call, "done", "Identity", &pivot, 1, NULL, 0,
                                  body.effects, body.effects_count);
    b->dones[i] = (struct edge){done, 0};
    return done;
}

/* The last branch takes what no question kept. */
static bool add_branches(struct branches *b, struct edge pivot, struct arena *arena)
{
    for (int i = 0; i < b->count; i++) {
        struct edge *taken = arena_array(arena, (size_t)b->args_count, sizeof(*taken));
        struct edge answer, taken_pivot = pivot;
        if (i == b->count - 1) {
            if (b->args_count)
                memcpy(taken, b->args, (size_t)b->args_count * sizeof(*taken));
        } else {
            struct edge unused;
            if (!ask(b, i, &answer) || !split(b, &pivot, answer, &taken_pivot) ||
                !split(b, &b->selector, answer, &unused))
                return false;
            for (int k = 0; k < b->args_count; k++)
                if (!split(b, &b->args[k], answer, &taken[k]))
                    return false;
        }
        /* A control edge out of a Switch is always alive, out of an Identity is not. */
        struct edge alive = add(b, "pivot", "Identity", &taken_pivot, 1);
        if (!alive.from || !add_branch(b, i, taken, alive))
            return false;
    }
    return true;
}

static bool merge(struct branches *b, struct arena *arena)
{
    struct edge *merged = arena_array(arena, (size_t)b->results_count, sizeof(*merged));
    struct edge *from = arena_array(arena, (size_t)b->count, sizeof(*from));
    for (int k = 0; k < b->results_count; k++) {
        for (int i = 0; i < b->count; i++)
            from[i] = b->results[i][k];
        merged[k] = add(b, "merge", "Merge", from, b->count);
        if (!merged[k].from)
            return false;
    }
    struct node *done = NULL;
    if (b->has_effects || !b->results_count) {
        done = add(b, "all_done", "Merge", b->dones, b->count).from;
        if (!done)
            return false;
    }
    bool direct = lower_is_asked(b->call);
    return lower_finish(b->l, b->call, merged, b->results_count, &done, done ? 1 : 0, direct);
}

bool lower_branches(struct lower *l, const struct lower_call *call, bool *done)
{
    struct arena *arena = graph_arena(l->graph);
    struct branches b = {.l = l, .call = call};
    list_branches(&b, arena);
    for (int i = 0; i < b.count; i++) {
        b.defs[i] = lower_find(l, call, b.funcs[i]->name, done);
        if (!b.defs[i] || !*done)
            return b.defs[i];
    }
    /* All follows from the selector, which waits for what the call waits for. */
    struct edge selector = {lower_add(l, call, "selector", "Identity", &b.selector, 1, NULL, 0,
                                      call->node->controls, call->node->controls_count),
                            0};
    b.selector = selector;
    return selector.from && add_branches(&b, selector, arena) && merge(&b, arena);
}
