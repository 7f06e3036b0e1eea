/*
 * optimise_fuse.c - several nodes become one where a kernel does their work in one pass.
 *
 *   MatMul or Conv2D, BiasAdd (, Relu)           _FusedMatMul, _FusedConv2D
 *   MaxPoolGrad, ReluGrad, BiasAddGrad           _MaxPoolGradReluGradBiasAddGrad
 *   ReluGrad, BiasAddGrad                        _ReluGradBiasAddGrad
 *   MatMul, ResourceApplyGradientDescent         _MatMulApplyGradientDescent
 *
 * A node goes only when nobody else looks at it: no other consumer, fetch or target.  The fused
 * node takes the name of the last of those it replaces, so that traces and errors stay
 * readable.
 */
#include "base/alloc.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* A consumer of a node: its input `index` is output `output` of the node. */
struct use {
    struct node *node;
    int index;
    int output;
};

struct fuser {
    struct subgraph *subgraph;
    struct graph *graph;
    bool *needed;   /* by node id, like all that follow */
    int *use_first; /* into uses; one more entry than nodes */
    struct use *uses;
    bool *watched; /* fetched, a target, or waited for */
    int count;     /* nodes when the tables were made */
    struct error *err;
    bool failed;
};

/* --- who uses what --- */

static void count_uses(struct fuser *f)
{
    f->use_first = alloc_array((size_t)f->count + 2, sizeof(*f->use_first));
    for (int id = 0; id < f->count; id++) {
        const struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->inputs_count; i++)
            f->use_first[node->inputs[i].from->id + 2]++;
    }
    for (int id = 2; id < f->count + 2; id++)
        f->use_first[id] += f->use_first[id - 1];
    f->uses = alloc_array((size_t)f->use_first[f->count + 1] + 1, sizeof(*f->uses));
    for (int id = 0; id < f->count; id++) {
        struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->inputs_count; i++) {
            struct edge edge = node->inputs[i];
            f->uses[f->use_first[edge.from->id + 1]++] = (struct use){node, i, edge.output};
        }
    }
}

static void fuser_init(struct fuser *f, struct subgraph *subgraph, struct error *err)
{
    *f = (struct fuser){.subgraph = subgraph, .graph = subgraph->graph, .err = err};
    f->count = graph_count(f->graph);
    f->needed = prune_needed(subgraph);
    f->watched = alloc_array((size_t)f->count + 1, sizeof(*f->watched));
    count_uses(f);
    for (int i = 0; i < subgraph->fetches_count; i++)
        f->watched[subgraph->fetches[i].from->id] = true;
    for (int i = 0; i < subgraph->targets_count; i++)
        f->watched[subgraph->targets[i]->id] = true;
    for (int id = 0; id < f->count; id++) {
        const struct node *node = graph_node(f->graph, id);
        for (int i = 0; f->needed[id] && i < node->controls_count; i++)
            f->watched[node->controls[i]->id] = true;
    }
}

static void fuser_release(struct fuser *f)
{
    free(f->needed);
    free(f->watched);
    free(f->use_first);
    free(f->uses);
}

static bool is_op(const struct node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static int uses_count(const struct fuser *f, const struct node *node)
{
    return f->use_first[node->id + 1] - f->use_first[node->id];
}

static const struct use *use_at(const struct fuser *f, const struct node *node, int i)
{
    return &f->uses[f->use_first[node->id] + i];
}

/* The only consumer of `node`, of op `op`, on its input 0; NULL if it is not so. */
static struct node *only_user(const struct fuser *f, const struct node *node, const char *op)
{
    if (f->watched[node->id] || uses_count(f, node) != 1)
        return NULL;
    const struct use *use = use_at(f, node, 0);
    return use->index == 0 && is_op(use->node, op) ? use->node : NULL;
}

/* A consumer of `node` of op `op` that waits for nothing else; NULL if there is none. */
static struct node *some_user(const struct fuser *f, const struct node *node, const char *op)
{
    for (int i = 0; i < uses_count(f, node); i++) {
        struct node *user = use_at(f, node, i)->node;
        if (is_op(user, op) && user->inputs_count == 1 && user->controls_count == 0)
            return user;
    }
    return NULL;
}

/* --- replacing --- */

static bool same_wishes(const struct node *a, const struct node *b)
{
    return strcmp(a->requested_device, b->requested_device) == 0;
}

/* Adds the fused node if wherever `like` could run, it can; else NULL. */
static struct node *add_fused(struct fuser *f, const char *op, const struct node *like,
                              const struct node *named, const struct edge *inputs,
                              int inputs_count, const struct attr *attrs, int attrs_count)
{
    struct node_def def = {.name = named->name,
                           .op = op_find(op),
                           .inputs = inputs,
                           .inputs_count = inputs_count,
                           .attrs = attrs,
                           .attrs_count = attrs_count,
                           .device = named->requested_device};
    struct node *node = graph_add(f->graph, &def, f->err);
    if (!node) {
        f->failed = true;
        return NULL;
    }
    for (int type = 0; type < DEVICE_TYPES; type++) {
        if (kernel_exists(like, (enum device_type)type) &&
            !kernel_exists(node, (enum device_type)type)) {
            graph_truncate(f->graph, node->id);
            return NULL;
        }
    }
    return node;
}

static void add_controls(struct fuser *f, struct node *node, const struct node *from)
{
    for (int i = 0; i < from->controls_count; i++)
        graph_add_control(f->graph, node, from->controls[i]);
}

/* Who waits for `old` now waits for the `count` nodes of `now`. */
static void move_waiters(struct fuser *f, const struct node *old, struct node *const *now,
                         int count)
{
    for (int id = 0; id < f->count; id++) {
        struct node *node = graph_node(f->graph, id);
        bool waits = false;
        for (int i = 0; i < node->controls_count; i++)
            waits |= node->controls[i] == old;
        if (!f->needed[id] || !waits)
            continue;
        struct node **controls =
            alloc_array((size_t)(node->controls_count + count), sizeof(*controls));
        int kept = 0;
        for (int i = 0; i < node->controls_count; i++) {
            if (node->controls[i] != old)
                controls[kept++] = node->controls[i];
        }
        for (int i = 0; i < count; i++)
            controls[kept++] = now[i];
        struct edge *inputs = alloc_array((size_t)node->inputs_count + 1, sizeof(*inputs));
        memcpy(inputs, node->inputs, (size_t)node->inputs_count * sizeof(*inputs));
        graph_set_edges(f->graph, node, inputs, node->inputs_count, controls, kept);
        free(inputs);
        free(controls);
    }
}

/* All that used output 0 of `old` uses `output` of `now`; waiters and targets come along. */
static void replace(struct fuser *f, struct node *old, struct node *now, int output)
{
    struct edge edge = {now, output};
    for (int i = 0; i < uses_count(f, old); i++)
        graph_set_input(f->graph, use_at(f, old, i)->node, use_at(f, old, i)->index, edge);
    struct subgraph *s = f->subgraph;
    for (int i = 0; i < s->fetches_count; i++) {
        if (s->fetches[i].from == old)
            s->fetches[i] = edge;
    }
    for (int i = 0; i < s->targets_count; i++) {
        if (s->targets[i] == old)
            s->targets[i] = now;
    }
    if (f->watched[old->id])
        move_waiters(f, old, &now, 1);
}

/* The attributes of `node` that op `op` has too. */
static int copy_attrs(const struct node *node, const char *op, struct attr *attrs, int max)
{
    const struct op_signature *signature = op_signature(op_find(op));
    int count = 0;
    for (int i = 0; i < node->attrs_count && count < max; i++) {
        if (op_signature_attr(signature, node->attrs[i].name))
            attrs[count++] = node->attrs[i];
    }
    return count;
}

enum { ATTRS_MAX = 16 };

/* --- the patterns --- */

static void fuse_product(struct fuser *f, struct node *product, const char *op)
{
    struct node *bias = only_user(f, product, "BiasAdd");
    if (!bias || !same_wishes(product, bias))
        return;
    struct node *relu = only_user(f, bias, "Relu");
    if (relu && !same_wishes(bias, relu))
        relu = NULL;
    struct node *last = relu ? relu : bias;
    struct attr attrs[ATTRS_MAX + 2];
    int count = copy_attrs(product, op, attrs, ATTRS_MAX);
    const struct attr_bytes names[] = {{"BiasAdd", 7}, {"Relu", 4}};
    attrs[count++] = attr_int("num_args", 1);
    attrs[count++] = (struct attr){.name = "fused_ops",
                                   .kind = ATTR_STRING,
                                   .is_list = true,
                                   .count = relu ? 2 : 1,
                                   .strings = names};
    struct edge inputs[] = {product->inputs[0], product->inputs[1], bias->inputs[1]};
    /* A bias in another order of dimensions than the product's is not what the kernel adds. */
    const char *format = node_attr_string(product, "data_format", "NHWC");
    if (strcmp(node_attr_string(bias, "data_format", "NHWC"), format) != 0)
        return;
    struct node *fused = add_fused(f, op, product, last, inputs, 3, attrs, count);
    if (!fused)
        return;
    add_controls(f, fused, product);
    add_controls(f, fused, bias);
    if (relu)
        add_controls(f, fused, relu);
    replace(f, last, fused, 0);
}

static bool is_channels_last(const struct node *node)
{
    return strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC") == 0;
}

static void fuse_pool(struct fuser *f, struct node *pool)
{
    struct node *relu = only_user(f, pool, "ReluGrad");
    if (!relu || !same_wishes(pool, relu) || relu->controls_count > 0)
        return;
    struct edge features = relu->inputs[1], image = pool->inputs[0];
    if (features.from != image.from || features.output != image.output)
        return;
    struct node *bias = some_user(f, relu, "BiasAddGrad");
    if (!bias || !is_channels_last(bias) || !same_wishes(relu, bias))
        return;
    const char *op = "_MaxPoolGradReluGradBiasAddGrad";
    struct attr attrs[ATTRS_MAX];
    int count = copy_attrs(pool, op, attrs, ATTRS_MAX);
    if (!is_channels_last(pool) ||
        strcmp(node_attr_string(pool, "padding", "VALID"), "EXPLICIT") == 0)
        return;
    struct node *fused = add_fused(f, op, pool, relu, pool->inputs, 3, attrs, count);
    if (!fused)
        return;
    add_controls(f, fused, pool);
    replace(f, relu, fused, 0);
    replace(f, bias, fused, 1);
}

static void fuse_relu_grad(struct fuser *f, struct node *relu)
{
    struct node *bias = some_user(f, relu, "BiasAddGrad");
    if (!bias || !is_channels_last(bias) || !same_wishes(relu, bias))
        return;
    struct attr attrs[ATTRS_MAX];
    const char *op = "_ReluGradBiasAddGrad";
    int count = copy_attrs(relu, op, attrs, ATTRS_MAX);
    struct node *fused = add_fused(f, op, relu, relu, relu->inputs, 2, attrs, count);
    if (!fused)
        return;
    add_controls(f, fused, relu);
    replace(f, relu, fused, 0);
    replace(f, bias, fused, 1);
}

static void fuse_descent(struct fuser *f, struct node *update)
{
    struct edge delta = update->inputs[2];
    struct node *product = delta.from;
    if (!is_op(product, "MatMul") || uses_count(f, product) != 1 ||
        !same_wishes(product, update))
        return;
    for (int i = 0; i < f->subgraph->fetches_count; i++) {
        if (f->subgraph->fetches[i].from == product)
            return;
    }
    for (int i = 0; i < f->subgraph->targets_count; i++) {
        if (f->subgraph->targets[i] == product)
            return;
    }
    struct attr attrs[ATTRS_MAX];
    const char *op = "_MatMulApplyGradientDescent";
    int count = copy_attrs(product, op, attrs, ATTRS_MAX);
    struct edge inputs[] = {update->inputs[0], update->inputs[1], product->inputs[0],
                            product->inputs[1]};
    struct node *fused = add_fused(f, op, update, update, inputs, 4, attrs, count);
    if (!fused)
        return;
    add_controls(f, fused, product);
    add_controls(f, fused, update);
    /* A product changes nothing: who waits for it may as well wait for what it is made of. */
    struct node *factors[] = {product->inputs[0].from, product->inputs[1].from};
    if (f->watched[product->id])
        move_waiters(f, product, factors, 2);
    replace(f, update, fused, 0);
}

/* --- all of them, one after the other: each sees what those before have left --- */

static void fuse_products(struct fuser *f, struct node *node)
{
    if (is_op(node, "MatMul"))
        fuse_product(f, node, "_FusedMatMul");
    else if (is_op(node, "Conv2D"))
        fuse_product(f, node, "_FusedConv2D");
}

static void fuse_pools(struct fuser *f, struct node *node)
{
    if (is_op(node, "MaxPoolGrad"))
        fuse_pool(f, node);
}

static void fuse_relu_grads(struct fuser *f, struct node *node)
{
    if (is_op(node, "ReluGrad"))
        fuse_relu_grad(f, node);
}

static void fuse_descents(struct fuser *f, struct node *node)
{
    if (is_op(node, "ResourceApplyGradientDescent"))
        fuse_descent(f, node);
}

bool optimise_fuse(struct subgraph *subgraph, struct error *err)
{
    static void (*const passes[])(struct fuser *, struct node *) = {
        fuse_products, fuse_pools, fuse_relu_grads, fuse_descents};
    for (int i = 0; i < ARRAY_LEN(passes); i++) {
        struct fuser f;
        fuser_init(&f, subgraph, err);
        for (int id = 0; id < f.count && !f.failed; id++) {
            if (f.needed[id])
                passes[i](&f, graph_node(f.graph, id));
        }
        fuser_release(&f);
        if (f.failed)
            return false;
    }
    return true;
}
