/*
 * optimise_norm.c - batch normalisation and the Relu that follows become one pass over the
 * image: FusedBatchNorm..., Relu -> _FusedBatchNormEx.
 */

#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* The Relu that alone reads the normalised image; the moments may have other readers. */
static struct node *relu_of(const struct fuser *f, const struct node *norm)
{
    struct node *relu = NULL;
    for (int i = 0; i < fuse_uses(f, norm); i++) {
        const struct fuse_use *use = fuse_use_at(f, norm, i);
        if (use->output != 0)
            continue;
        if (relu || !fuse_is(use->node, "Relu"))
            return NULL;
        relu = use->node;
    }
    for (int i = 0; i < f->subgraph->fetches_count; i++)
        if (f->subgraph->fetches[i].from == norm && f->subgraph->fetches[i].output == 0)
            return NULL;
    return relu;
}

static bool is_norm(const struct node *node)
{
    return fuse_is(node, "FusedBatchNorm") || fuse_is(node, "FusedBatchNormV2") ||
           fuse_is(node, "FusedBatchNormV3");
}

static void fuse_norm(struct fuser *f, struct node *norm)
{
    struct node *relu = relu_of(f, norm);
    /* What Relu waits for must not be waited for by who reads the moments. */
    if (!relu || relu->controls_count || !fuse_same_wishes(norm, relu) ||
        node_attr_type(norm, "T") != F32)
        return;
    const char *op = "_FusedBatchNormEx";
    struct attr attrs[FUSE_ATTRS_MAX + 3];
    int count = fuse_copy_attrs(norm, op, attrs, FUSE_ATTRS_MAX);
    const struct attr of_moments = attr_type("U", F32);
    if (!node_attr(norm, "U"))
        attrs[count++] = of_moments;
    attrs[count++] = attr_int("num_side_inputs", 0);
    attrs[count++] = attr_string("activation_mode", "Relu");
    const struct node_def def = {.op = op_find(op),
                                 .inputs = norm->inputs,
                                 .inputs_count = norm->inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = count};
    struct node *const parts[] = {norm, relu};
    struct node *fused = fuse_add(f, &def, norm, parts, 2);
    if (!fused)
        return;
    fuse_controls(f, fused, norm);
    for (int i = 1; i < norm->outputs_count; i++)
        fuse_output(f, norm, i, fused, i);
    if (f->watched[norm->id])
        fuse_waiters(f, norm, fused, NULL);
    for (int i = 0; i < f->subgraph->targets_count; i++)
        if (f->subgraph->targets[i] == norm)
            f->subgraph->targets[i] = fused;
    fuse_replace(f, relu, fused, 0);
}

bool optimise_norm(struct pass *pass, struct error *err)
{
    static const char *const starts[] = {"FusedBatchNorm", "FusedBatchNormV2",
                                         "FusedBatchNormV3", NULL};
    struct fuser f;
    if (!fuse_has(pass->subgraph, starts))
        return true;
    fuse_init(&f, pass->subgraph, err);
    for (int id = 0; id < f.count && !f.failed; id++) {
        struct node *node = graph_node(f.graph, id);
        if (f.needed[id] && is_norm(node) && !node->fault)
            fuse_norm(&f, node);
    }
    return fuse_finish(&f);
}
