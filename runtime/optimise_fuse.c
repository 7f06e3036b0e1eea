/*
 * optimise_fuse.c - several nodes become one where a kernel does their work in one pass.
 *
 *   MatMul or Conv2D, BiasAdd (, Relu)           _FusedMatMul, _FusedConv2D
 *   MaxPoolGrad, ReluGrad, BiasAddGrad           _MaxPoolGradReluGradBiasAddGrad
 *   ReluGrad, BiasAddGrad                        _ReluGradBiasAddGrad
 *   MatMul, ResourceApplyGradientDescent         _MatMulApplyGradientDescent
 *
 * A Product's bias and activation are added while its result is in a register, and a gradient
 * is masked and summed while it passes by.
 */
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* A consumer of `node` of op `op` that waits for nothing else; NULL if there is none. */
static struct node *some_user(const struct fuser *f, const struct node *node, const char *op)
{
    for (int i = 0; i < fuse_uses(f, node); i++) {
        struct node *user = fuse_use_at(f, node, i)->node;
        if (fuse_is(user, op) && user->inputs_count == 1 && user->controls_count == 0)
            return user;
    }
    return NULL;
}

/* A fused node of `inputs_count` inputs, of which `like` is the one that is hardest to run. */
static struct node *add_fused(struct fuser *f, const char *op, const struct node *like,
                              const struct edge *inputs, int inputs_count,
                              const struct attr *attrs, int attrs_count,
                              struct node *const *stands_for, int stands_for_count)
{
    const struct node_def def = {.op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count};
    return fuse_add(f, &def, like, stands_for, stands_for_count);
}

/* --- the patterns --- */

static void fuse_product(struct fuser *f, struct node *product, const char *op)
{
    struct node *bias = fuse_only_user(f, product, "BiasAdd");
    if (!bias || !fuse_same_wishes(product, bias))
        return;
    struct node *relu = fuse_only_user(f, bias, "Relu");
    if (relu && !fuse_same_wishes(bias, relu))
        relu = NULL;
    struct node *last = relu ? relu : bias;
    struct attr attrs[FUSE_ATTRS_MAX + 2];
    int count = fuse_copy_attrs(product, op, attrs, FUSE_ATTRS_MAX);
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
    struct node *const parts[] = {product, bias, relu};
    struct node *fused =
        add_fused(f, op, product, inputs, 3, attrs, count, parts, relu ? 3 : 2);
    if (!fused)
        return;
    fuse_controls(f, fused, product);
    fuse_controls(f, fused, bias);
    if (relu)
        fuse_controls(f, fused, relu);
    fuse_replace(f, last, fused, 0);
}

static bool is_channels_last(const struct node *node)
{
    return strcmp(node_attr_string(node, "data_format", "NHWC"), "NHWC") == 0;
}

static void fuse_pool(struct fuser *f, struct node *pool)
{
    struct node *relu = fuse_only_user(f, pool, "ReluGrad");
    if (!relu || !fuse_same_wishes(pool, relu) || relu->controls_count > 0)
        return;
    struct edge features = relu->inputs[1], image = pool->inputs[0];
    if (features.from != image.from || features.output != image.output)
        return;
    struct node *bias = some_user(f, relu, "BiasAddGrad");
    if (!bias || !is_channels_last(bias) || !fuse_same_wishes(relu, bias))
        return;
    const char *op = "_MaxPoolGradReluGradBiasAddGrad";
    struct attr attrs[FUSE_ATTRS_MAX];
    int count = fuse_copy_attrs(pool, op, attrs, FUSE_ATTRS_MAX);
    if (!is_channels_last(pool) ||
        strcmp(node_attr_string(pool, "padding", "VALID"), "EXPLICIT") == 0)
        return;
    struct node *const parts[] = {pool, bias, relu};
    struct node *fused = add_fused(f, op, pool, pool->inputs, 3, attrs, count, parts, 3);
    if (!fused)
        return;
    fuse_controls(f, fused, pool);
    fuse_replace(f, relu, fused, 0);
    fuse_replace(f, bias, fused, 1);
}

static void fuse_relu_grad(struct fuser *f, struct node *relu)
{
    struct node *bias = some_user(f, relu, "BiasAddGrad");
    if (!bias || !is_channels_last(bias) || !fuse_same_wishes(relu, bias))
        return;
    struct attr attrs[FUSE_ATTRS_MAX];
    const char *op = "_ReluGradBiasAddGrad";
    int count = fuse_copy_attrs(relu, op, attrs, FUSE_ATTRS_MAX);
    struct node *const parts[] = {bias, relu};
    struct node *fused = add_fused(f, op, relu, relu->inputs, 2, attrs, count, parts, 2);
    if (!fused)
        return;
    fuse_controls(f, fused, relu);
    fuse_replace(f, relu, fused, 0);
    fuse_replace(f, bias, fused, 1);
}

static void fuse_descent(struct fuser *f, struct node *update)
{
    struct edge delta = update->inputs[2];
    struct node *product = delta.from;
    if (!fuse_is(product, "MatMul") || fuse_uses(f, product) != 1 ||
        !fuse_same_wishes(product, update) || node_attr_bool(update, "use_locking", false))
        return;
    for (int i = 0; i < f->subgraph->fetches_count; i++) {
        if (f->subgraph->fetches[i].from == product)
            return;
    }
    for (int i = 0; i < f->subgraph->targets_count; i++) {
        if (f->subgraph->targets[i] == product)
            return;
    }
    struct attr attrs[FUSE_ATTRS_MAX];
    const char *op = "_MatMulApplyGradientDescent";
    int count = fuse_copy_attrs(product, op, attrs, FUSE_ATTRS_MAX);
    struct edge inputs[] = {update->inputs[0], update->inputs[1], product->inputs[0],
                            product->inputs[1]};
    struct node *const parts[] = {product, update};
    struct node *fused = add_fused(f, op, update, inputs, 4, attrs, count, parts, 2);
    if (!fused)
        return;
    fuse_controls(f, fused, product);
    fuse_controls(f, fused, update);
    /* A product changes nothing: who waits for it may as well wait for what it is made of. */
    if (f->watched[product->id])
        fuse_waiters(f, product, product->inputs[0].from, product->inputs[1].from);
    fuse_replace(f, update, fused, 0);
}

/* --- all of them, one after the other: each sees what those before have left --- */

static void fuse_products(struct fuser *f, struct node *node)
{
    if (fuse_is(node, "MatMul"))
        fuse_product(f, node, "_FusedMatMul");
    else if (fuse_is(node, "Conv2D"))
        fuse_product(f, node, "_FusedConv2D");
}

static void fuse_pools(struct fuser *f, struct node *node)
{
    if (fuse_is(node, "MaxPoolGrad"))
        fuse_pool(f, node);
}

static void fuse_relu_grads(struct fuser *f, struct node *node)
{
    if (fuse_is(node, "ReluGrad"))
        fuse_relu_grad(f, node);
}

static void fuse_descents(struct fuser *f, struct node *node)
{
    if (fuse_is(node, "ResourceApplyGradientDescent"))
        fuse_descent(f, node);
}

bool optimise_fuse(struct subgraph *subgraph, struct error *err)
{
    static const struct {
        void (*visit)(struct fuser *f, struct node *node);
        const char *const starts[3]; /* the ops that the pattern begins with */
    } passes[] = {
        {fuse_products, {"MatMul", "Conv2D"}},
        {fuse_pools, {"MaxPoolGrad"}},
        {fuse_relu_grads, {"ReluGrad"}},
        {fuse_descents, {"ResourceApplyGradientDescent"}},
    };
    for (int i = 0; i < ARRAY_LEN(passes); i++) {
        if (!fuse_has(subgraph, passes[i].starts))
            continue;
        struct fuser f;
        int *order = graph_sorted(subgraph->graph, err);
        if (!order)
            return true; /* plan_new() will say what is wrong */
        fuse_init(&f, subgraph, err);
        for (int k = 0; k < f.count && !f.failed; k++) {
            if (f.needed[order[k]])
                passes[i].visit(&f, graph_node(f.graph, order[k]));
        }
        free(order);
        if (!fuse_finish(&f))
            return false;
    }
    return true;
}
