/*
 * optimise_update.c - the updates of many small variables become one call, which also
 * multiplies their gradients.
 *
 * Updates by the same op with the same settings are put together if none of them waits for
 * another update, so that no cycle can come of it.  Large variables stay alone: each is worth a
 * call, and their gradients may be forgotten one after the other.  A gradient that is
 * multiplied by a number just before (clipped by a norm) is read once less if the update does
 * that.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"

/* Elements of a variable that counts as small, and groups that are kept apart. */
enum { SMALL_COUNT_MAX = 32768, GROUPS_MAX = 256, INPUTS_MAX = 10 };

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
    struct edge scale;   /* of all gradients; .from NULL: none */
    bool large;          /* stays alone */
    struct node **nodes; /* in the order of the graph */
    int count, capacity;
};

struct finder {
    struct fuser f;
    const struct shapes *shapes; /* NULL: not known */
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
        node_attr_type(node, "T") != F32 || node_attr_bool(node, "use_locking", false))
        return false;
    for (int i = 0; i < f->subgraph->fetches_count; i++)
        if (f->subgraph->fetches[i].from == node)
            return false;
    return true;
}

/* Of a gradient that is only multiplied for this update: the scalar's input of that Mul; else
 * -1. */
static int scale_input(const struct finder *s, const struct rule *rule, const struct node *node)
{
    const struct node *mul = node->inputs[rule->grad].from;
    if (!s->shapes || mul->id >= s->f.count || !fuse_is(mul, "Mul") || s->f.watched[mul->id] ||
        fuse_uses(&s->f, mul) != 1 || !fuse_same_wishes(mul, node))
        return -1;
    for (int i = 1; i >= 0; i--)
        if (shapes_at(s->shapes, mul->inputs[i])->rank == 0)
            return i;
    return -1;
}

static struct edge scale_of(const struct finder *s, const struct rule *rule,
                            const struct node *node)
{
    int input = scale_input(s, rule, node);
    return input < 0 ? (struct edge){0} : node->inputs[rule->grad].from->inputs[input];
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

static void join(struct group *groups, int *count, const struct group *as, struct node *node)
{
    int g = as->large ? *count : 0;
    while (g < *count && !(groups[g].rule == as->rule && !groups[g].large &&
                           groups[g].scale.from == as->scale.from &&
                           groups[g].scale.output == as->scale.output &&
                           same_settings(as->rule, groups[g].nodes[0], node)))
        g++;
    if (g == GROUPS_MAX)
        return;
    if (g == *count)
        groups[(*count)++] = *as;
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

static int find_groups(const struct finder *s, const int *order, const bool *inner,
                       struct group *groups)
{
    const struct fuser *f = &s->f;
    int count = 0;
    bool *after = alloc_array((size_t)f->count, sizeof(*after));
    for (int i = 0; i < f->count; i++) {
        struct node *node = graph_node(f->graph, order[i]);
        const struct rule *rule = f->needed[node->id] ? find_rule(node) : NULL;
        after[node->id] = is_after(node, after);
        if (!rule)
            continue;
        if (!after[node->id] && !(inner && inner[node->id]) && can_join(f, rule, node)) {
            const struct group as = {
                .rule = rule, .scale = scale_of(s, rule, node), .large = !is_small(node)};
            if (as.scale.from || !as.large)
                join(groups, &count, &as, node);
        }
        after[node->id] = true;
    }
    free(after);
    return count;
}

/* The variables and slots of all, the settings, the factor if there is one, the gradients. */
static int list_inputs(const struct finder *s, const struct group *group, struct edge *inputs)
{
    const struct rule *rule = group->rule;
    int at = 0;
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < rule->slots; k++)
            inputs[at++] = group->nodes[i]->inputs[k];
    for (int k = rule->slots; k < rule->inputs; k++)
        if (k != rule->grad)
            inputs[at++] = group->nodes[0]->inputs[k];
    if (group->scale.from)
        inputs[at++] = group->scale;
    for (int i = 0; i < group->count; i++) {
        struct edge grad = group->nodes[i]->inputs[rule->grad];
        int scale = scale_input(s, rule, group->nodes[i]);
        inputs[at++] = scale < 0 ? grad : grad.from->inputs[1 - scale];
    }
    return at;
}

static void fuse_group(struct finder *s, const struct group *group)
{
    struct fuser *f = &s->f;
    const struct rule *rule = group->rule;
    const struct node *first = group->nodes[0];
    int count = group->count, parts_count = 0;
    int settings = rule->inputs - rule->slots - 1 + (group->scale.from != NULL);
    struct edge *inputs = alloc_array(
        (size_t)count * (size_t)(rule->slots + 1) + (size_t)settings, sizeof(*inputs));
    struct node **parts = alloc_array(2 * (size_t)count, sizeof(*parts));
    for (int i = 0; i < count; i++) {
        if (group->scale.from)
            parts[parts_count++] = group->nodes[i]->inputs[rule->grad].from;
        parts[parts_count++] = group->nodes[i];
    }
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
                                 .inputs_count = list_inputs(s, group, inputs),
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs)};
    struct node *fused = fuse_add(f, &def, first, parts, parts_count);
    for (int i = 0; fused && i < parts_count; i++)
        fuse_controls(f, fused, parts[i]);
    for (int i = 0; fused && i < count; i++)
        fuse_replace(f, group->nodes[i], fused, 0);
    free(inputs);
    free(parts);
}

bool optimise_update(struct pass *pass, struct error *err)
{
    const char *starts[ARRAY_LEN(rules) + 1] = {0};
    for (int i = 0; i < ARRAY_LEN(rules); i++)
        starts[i] = rules[i].op;
    if (!fuse_has(pass->subgraph, starts))
        return true;
    struct finder s = {0};
    struct shapes shapes = {0};
    struct group groups[GROUPS_MAX];
    int *order = graph_sorted(pass->subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    bool *inner = optimise_inner(pass->subgraph, order);
    fuse_init(&s.f, pass->subgraph, err);
    if (pass->by_shapes) {
        shapes_infer(&shapes, s.f.graph, order, s.f.count);
        s.shapes = &shapes;
    }
    int count = find_groups(&s, order, inner, groups);
    for (int g = 0; g < count; g++) {
        if ((groups[g].count > 1 || groups[g].scale.from) && !s.f.failed)
            fuse_group(&s, &groups[g]);
        free(groups[g].nodes);
    }
    shapes_release(&shapes);
    free(order);
    free(inner);
    return fuse_finish(&s.f);
}
