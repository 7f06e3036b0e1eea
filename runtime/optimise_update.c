/*
 * optimise_update.c - the updates of many small variables become one call.
 *
 * Updates by the same op with the same settings are put together if none of them waits for
 * another update, so that no cycle can come of it.  Large variables are left alone: each is
 * worth a call, and their gradients may be forgotten one after the other.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"

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

static void fuse_group(struct fuser *f, const struct group *group)
{
    const struct rule *rule = group->rule;
    const struct node *first = group->nodes[0];
    int settings = rule->inputs - rule->slots - 1, count = group->count, at = 0;
    struct edge *inputs = alloc_array(
        (size_t)count * (size_t)(rule->slots + 1) + (size_t)settings, sizeof(*inputs));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < rule->slots; k++)
            inputs[at++] = group->nodes[i]->inputs[k];
    for (int k = rule->slots; k < rule->inputs; k++)
        if (k != rule->grad)
            inputs[at++] = first->inputs[k];
    for (int i = 0; i < count; i++)
        inputs[at++] = group->nodes[i]->inputs[rule->grad];
    const struct attr attrs[] = {
        attr_type("T", F32),
        attr_int("V", count * rule->slots),
        attr_int("S", settings),
        attr_int("N", count),
        attr_string("rule", rule->op),
        attr_bool("use_nesterov", node_attr_bool(first, "use_nesterov", false)),
    };
    bool by_ref = dtype_is_ref(first->input_types[0]);
    const struct node_def def = {.op = op_find(by_ref ? "_UpdateRefs" : "_UpdateResources"),
                                 .inputs = inputs,
                                 .inputs_count = at,
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs)};
    struct node *fused = fuse_add(f, &def, first, group->nodes, count);
    free(inputs);
    for (int i = 0; fused && i < count; i++) {
        fuse_controls(f, fused, group->nodes[i]);
        fuse_replace(f, group->nodes[i], fused, 0);
    }
}

bool optimise_update(struct pass *pass, struct error *err)
{
    const char *starts[ARRAY_LEN(rules) + 1] = {0};
    for (int i = 0; i < ARRAY_LEN(rules); i++)
        starts[i] = rules[i].op;
    if (!fuse_has(pass->subgraph, starts))
        return true;
    struct fuser f;
    struct group groups[GROUPS_MAX];
    int *order = graph_sorted(pass->subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    bool *inner = optimise_inner(pass->subgraph, order);
    fuse_init(&f, pass->subgraph, err);
    int count = find_groups(&f, order, inner, groups);
    for (int g = 0; g < count; g++) {
        if (groups[g].count > 1 && !f.failed)
            fuse_group(&f, &groups[g]);
        free(groups[g].nodes);
    }
    free(order);
    free(inner);
    return fuse_finish(&f);
}
