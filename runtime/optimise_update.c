/*
 * optimise_update.c - the updates of many small variables become one call, and a gradient that
 * was put together for its update alone is taken piece by piece.
 *
 * Updates by the same op with the same settings are put together if none of them waits for
 * another update, so that no cycle can come of it.  Large variables are left alone: each is
 * worth a call, and their gradients may be forgotten one after the other.
 *
 * All-reduce leaves gradients in pieces, one after another: Reshape(ConcatV2(pieces)), which
 * would be a copy of the gradient.  No update cares where its numbers are.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"

/* Elements of a variable that counts as small, and groups that are kept apart. */
enum { SMALL_COUNT_MAX = 32768, GROUPS_MAX = 32, INPUTS_MAX = 10 };

struct rule {
    const char *op;
    int slots;  /* the variable and its slots, which come first */
    int grad;   /* input */
    int inputs; /* in all; the others are settings */
};

static const struct rule rules[] = {
    {"ApplyGradientDescent", 1, 2, 3},
    {"ResourceApplyGradientDescent", 1, 2, 3},
    {"ApplyMomentum", 2, 3, 5},
    {"ResourceApplyMomentum", 2, 3, 5},
    {"ResourceApplyKerasMomentum", 2, 3, 5},
    {"ApplyAdam", 3, 9, 10},
    {"ResourceApplyAdam", 3, 9, 10},
};

struct group {
    const struct rule *rule;
    struct node **nodes; /* in the order of the graph */
    int count, capacity;
    const struct node *pieces; /* of the only one's gradient: the ConcatV2 that joins them */
};

static const struct rule *find_rule(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(rules); i++)
        if (fuse_is(node, rules[i].op))
            return &rules[i];
    return NULL;
}

static bool is_small(const struct node *update)
{
    const struct node *variable = update->inputs[0].from;
    const struct shape *shape = node_attr_shape(variable, "shape");
    int64_t count = shape && shape_is_full(shape) ? shape_count(shape) : -1;
    return count >= 0 && count <= SMALL_COUNT_MAX;
}

static bool can_join(const struct fuser *f, const struct rule *rule, const struct node *node)
{
    if (node->fault || node->inputs_count != rule->inputs || fuse_uses(f, node) ||
        node_attr_type(node, "T") != F32 || node_attr_bool(node, "use_locking", false) ||
        !is_small(node))
        return false;
    for (int i = 0; i < f->subgraph->fetches_count; i++)
        if (f->subgraph->fetches[i].from == node)
            return false;
    return true;
}

static bool same_settings(const struct rule *rule, const struct node *a, const struct node *b)
{
    if (a->op != b->op || !fuse_same_wishes(a, b) ||
        node_attr_bool(a, "use_nesterov", false) != node_attr_bool(b, "use_nesterov", false))
        return false;
    for (int i = rule->slots; i < rule->inputs; i++)
        if (i != rule->grad && (a->inputs[i].from != b->inputs[i].from ||
                                a->inputs[i].output != b->inputs[i].output))
            return false;
    return true;
}

static void join(struct group *groups, int *count, const struct rule *rule, struct node *node)
{
    int g = 0;
    while (g < *count &&
           !(groups[g].rule == rule && same_settings(rule, groups[g].nodes[0], node)))
        g++;
    if (g == GROUPS_MAX)
        return;
    if (g == *count)
        groups[(*count)++] = (struct group){.rule = rule};
    struct group *group = &groups[g];
    group->nodes =
        alloc_grow(group->nodes, group->count, &group->capacity, sizeof(*group->nodes));
    group->nodes[group->count++] = node;
}

/* Whether the node runs after some update. */
static bool is_after(const struct node *node, const bool *after)
{
    for (int i = 0; i < node->inputs_count; i++)
        if (after[node->inputs[i].from->id])
            return true;
    for (int i = 0; i < node->controls_count; i++)
        if (after[node->controls[i]->id])
            return true;
    return false;
}

/*
 * Whether another task hears of an update.  Then whatever comes from others may wait for it:
 * two updates that would wait for each other's tasks must not become one.
 */
static bool is_told(const struct fuser *f, const int *order)
{
    bool told = false, *after = alloc_array((size_t)f->count, sizeof(*after));
    for (int i = 0; i < f->count; i++) {
        const struct node *node = graph_node(f->graph, order[i]);
        after[node->id] = is_after(node, after) || find_rule(node);
        told |= after[node->id] && (fuse_is(node, "_Send") || fuse_is(node, "_HostSend"));
    }
    free(after);
    return told;
}

static int find_groups(const struct fuser *f, const int *order, const bool *inner,
                       struct group *groups)
{
    int count = 0;
    bool told = is_told(f, order);
    bool *after = alloc_array((size_t)f->count, sizeof(*after));
    for (int i = 0; i < f->count; i++) {
        struct node *node = graph_node(f->graph, order[i]);
        const struct rule *rule = f->needed[node->id] ? find_rule(node) : NULL;
        after[node->id] = is_after(node, after) ||
                          (told && (fuse_is(node, "_Recv") || fuse_is(node, "_HostRecv")));
        if (!rule)
            continue;
        if (!after[node->id] && !(inner && inner[node->id]) && can_join(f, rule, node))
            join(groups, &count, rule, node);
        after[node->id] = true;
    }
    free(after);
    return count;
}

/* Adds the gradients of a group: as many as it has updates, or the pieces of the only one's. */
static int add_grads(const struct group *group, struct edge *inputs)
{
    int count = group->pieces ? group->pieces->inputs_count - 1 : group->count;
    for (int i = 0; i < count; i++)
        inputs[i] = group->pieces ? group->pieces->inputs[i]
                                  : group->nodes[i]->inputs[group->rule->grad];
    return count;
}

/* The node that does what the group's updates do.  `parts` are the nodes that it stands for. */
static struct node *make_update(struct fuser *f, const struct group *group,
                                struct node *const *parts, int parts_count)
{
    const struct rule *rule = group->rule;
    const struct node *first = group->nodes[0];
    int settings = rule->inputs - rule->slots - 1, count = group->count, at = 0;
    int grads = group->pieces ? group->pieces->inputs_count : count;
    struct edge *inputs =
        alloc_array((size_t)count * (size_t)rule->slots + (size_t)settings + (size_t)grads,
                    sizeof(*inputs));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < rule->slots; k++)
            inputs[at++] = group->nodes[i]->inputs[k];
    for (int k = rule->slots; k < rule->inputs; k++)
        if (k != rule->grad)
            inputs[at++] = first->inputs[k];
    grads = add_grads(group, inputs + at);
    const struct attr attrs[] = {
        attr_type("T", F32),
        attr_int("V", count * rule->slots),
        attr_int("S", settings),
        attr_int("N", grads),
        attr_string("rule", rule->op),
        attr_bool("use_nesterov", node_attr_bool(first, "use_nesterov", false)),
    };
    bool by_ref = dtype_is_ref(first->input_types[0]);
    const struct node_def def = {.op = op_find(by_ref ? "_UpdateRefs" : "_UpdateResources"),
                                 .inputs = inputs,
                                 .inputs_count = at + grads,
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs)};
    struct node *fused = fuse_add(f, &def, first, parts, parts_count);
    free(inputs);
    return fused;
}

static void fuse_group(struct fuser *f, const struct group *group)
{
    struct node *fused = make_update(f, group, group->nodes, group->count);
    for (int i = 0; fused && i < group->count; i++) {
        fuse_controls(f, fused, group->nodes[i]);
        fuse_replace(f, group->nodes[i], fused, 0);
    }
}

/* --- gradients in pieces --- */

/* Whether only `reader` looks at `node`, and runs where it does. */
static bool is_only_for(const struct fuser *f, const struct node *node,
                        const struct node *reader)
{
    return fuse_uses(f, node) == 1 && !f->watched[node->id] && !node->controls_count &&
           fuse_same_wishes(node, reader);
}

/* What joins the pieces of the update's gradient, `*reshape` what gives that its shape; NULL
 * when it is not so, or their sizes are not known to be right. */
static const struct node *joined_for(const struct fuser *f, const struct shapes *shapes,
                                     const struct rule *rule, const struct node *update,
                                     struct node **reshape)
{
    *reshape = update->inputs[rule->grad].from;
    if (!fuse_is(*reshape, "Reshape") || !is_only_for(f, *reshape, update))
        return NULL;
    const struct node *join = (*reshape)->inputs[0].from;
    const struct shape *declared = node_attr_shape(update->inputs[0].from, "shape");
    const struct shape *shape = shapes_at(shapes, update->inputs[rule->grad]);
    if (!fuse_is(join, "ConcatV2") || !is_only_for(f, join, *reshape) || !declared ||
        !shape_is_full(shape) || !shape_equal(shape, declared))
        return NULL;
    int64_t count = 0;
    for (int i = 0; i < join->inputs_count - 1; i++) {
        const struct shape *piece = shapes_at(shapes, join->inputs[i]);
        if (piece->rank != 1 || !shape_is_full(piece))
            return NULL;
        count += shape_count(piece);
    }
    return count == shape_count(shape) ? join : NULL;
}

static void take_pieces(struct fuser *f, const struct shapes *shapes, const bool *inner,
                        struct node *update)
{
    const struct rule *rule = find_rule(update);
    struct node *reshape;
    if (!f->needed[update->id] || !rule || (inner && inner[update->id]) || update->fault ||
        update->inputs_count != rule->inputs || node_attr_type(update, "T") != F32 ||
        node_attr_bool(update, "use_locking", false))
        return;
    const struct node *join = joined_for(f, shapes, rule, update, &reshape);
    if (!join)
        return;
    const struct group group = {.rule = rule, .nodes = &update, .count = 1, .pieces = join};
    struct node *const parts[] = {(struct node *)join, reshape, update};
    struct node *fused = make_update(f, &group, parts, ARRAY_LEN(parts));
    if (!fused)
        return;
    fuse_controls(f, fused, update);
    fuse_replace(f, update, fused, 0);
}

static bool fuse_pieces(struct pass *pass, const int *order, const bool *inner,
                        struct error *err)
{
    static const char *const joins[] = {"ConcatV2", NULL};
    struct fuser f;
    struct shapes shapes = {0};
    if (!pass->by_shapes || !fuse_has(pass->subgraph, joins))
        return true;
    fuse_init(&f, pass->subgraph, err);
    shapes_infer(&shapes, f.graph, order, f.count);
    for (int i = 0; i < f.count && !f.failed; i++)
        take_pieces(&f, &shapes, inner, graph_node(f.graph, i));
    shapes_release(&shapes);
    return fuse_finish(&f);
}

static bool fuse_groups(struct pass *pass, const int *order, const bool *inner,
                        struct error *err)
{
    struct fuser f;
    struct group groups[GROUPS_MAX];
    fuse_init(&f, pass->subgraph, err);
    int count = find_groups(&f, order, inner, groups);
    for (int g = 0; g < count; g++) {
        if (groups[g].count > 1 && !f.failed)
            fuse_group(&f, &groups[g]);
        free(groups[g].nodes);
    }
    return fuse_finish(&f);
}

bool optimise_update(struct pass *pass, struct error *err)
{
    static bool (*const steps[])(struct pass *, const int *, const bool *,
                                 struct error *) = {fuse_groups, fuse_pieces};
    const char *starts[ARRAY_LEN(rules) + 1] = {0};
    for (int i = 0; i < ARRAY_LEN(rules); i++)
        starts[i] = rules[i].op;
    if (!fuse_has(pass->subgraph, starts))
        return true;
    bool ok = true;
    for (int i = 0; ok && i < ARRAY_LEN(steps); i++) {
        int *order = graph_sorted(pass->subgraph->graph, err);
        if (!order)
            return true; /* plan_new() will say what is wrong */
        bool *inner = optimise_inner(pass->subgraph, order);
        ok = steps[i](pass, order, inner, err);
        free(order);
        free(inner);
    }
    return ok;
}
