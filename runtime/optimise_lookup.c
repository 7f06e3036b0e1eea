/*
 * optimise_lookup.c - a sequence whose inputs are rows of a table is given the table and the
 * indices instead; its gradient too, which gives the table's if nobody else wants the rows':
 *
 *   ResourceGather or Gather, BlockLSTM                            _LookupBlockLSTM
 *   BlockLSTMGrad (, Reshape, UnsortedSegmentSum by the indices)   _LookupBlockLSTMGrad
 *
 * The kernels multiply each row of a small table once, however often it is looked up: sums are
 * made in another order, so the last bits may differ.
 */

#include <stdlib.h>

#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"
#include "runtime/tensor.h"

/* Where x is among the inputs of a sequence, and what stands for it. */
static const struct sequence_op {
    const char *op, *fused;
    int x;
    bool gradient;
} sequence_ops[] = {
    {"BlockLSTM", "_LookupBlockLSTM", 1, false},
    {"BlockLSTMV2", "_LookupBlockLSTMV2", 1, false},
    {"BlockLSTMGrad", "_LookupBlockLSTMGrad", 1, true},
    {"BlockLSTMGradV2", "_LookupBlockLSTMGradV2", 1, true},
    {"_GRUSequence", "_LookupGRUSequence", 0, false},
    {"_GRUSequenceGrad", "_LookupGRUSequenceGrad", 0, true},
    {"_RNNSequence", "_LookupRNNSequence", 0, false},
    {"_RNNSequenceGrad", "_LookupRNNSequenceGrad", 0, true},
};

struct looker {
    struct fuser f;
    struct shapes shapes;
    /* The lookup in work. */
    struct node *gather;
    struct edge table, indices; /* the table: what is read, or a variable's handle */
    int64_t rows;               /* of the table */
};

static const struct sequence_op *sequence_op(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(sequence_ops); i++)
        if (fuse_is(node, sequence_ops[i].op))
            return &sequence_ops[i];
    return NULL;
}

static bool same_edge(struct edge a, struct edge b)
{
    return a.from == b.from && a.output == b.output;
}

static bool is_zero(struct edge edge)
{
    const struct tensor *value = node_constant(edge.from);
    return value && value->count == 1 && tensor_integer(value, 0) == 0;
}

/* A lookup of rows of a float matrix whose size is known. */
static bool begin_lookup(struct looker *l, struct node *gather)
{
    bool resource = fuse_is(gather, "ResourceGather");
    if (!resource && !fuse_is(gather, "Gather") && !fuse_is(gather, "GatherV2"))
        return false;
    l->gather = gather;
    l->table = gather->inputs[0];
    l->indices = gather->inputs[1];
    if (l->table.from->id >= l->f.count || l->indices.from->id >= l->f.count ||
        l->f.watched[gather->id] || node_attr_int(gather, "batch_dims", 0) != 0 ||
        gather->output_types[0] != F32 || shapes_at(&l->shapes, l->indices)->rank != 2)
        return false;
    if (fuse_is(gather, "GatherV2") && !is_zero(gather->inputs[2]))
        return false;
    const struct shape *shape =
        resource ? node_attr_shape(l->table.from, "shape") : shapes_at(&l->shapes, l->table);
    if (!shape || shape->rank != 2 || shape->dims[0] <= 0 || shape->dims[1] <= 0)
        return false;
    l->rows = shape->dims[0];
    return true;
}

/* Node `user` is the only one that sees output `output` of `node`; NULL if it is not so. */
static struct node *only_user(const struct looker *l, const struct node *node, int output)
{
    struct node *found = NULL;
    for (int i = 0; i < fuse_uses(&l->f, node); i++) {
        const struct fuse_use *use = fuse_use_at(&l->f, node, i);
        if (use->output != output)
            continue;
        if (found || use->index != 0)
            return NULL;
        found = use->node;
    }
    return found;
}

/* Whether `edge` is how many rows the table has: that number, or what its gradient asks. */
static bool is_rows(const struct looker *l, struct edge edge)
{
    const struct tensor *value = node_constant(edge.from);
    if (value)
        return value->count == 1 && tensor_integer(value, 0) == l->rows;
    struct node *shape = fuse_is(edge.from, "GatherV2") ? edge.from->inputs[0].from : NULL;
    return shape && fuse_is(shape, "VariableShape") && same_edge(shape->inputs[0], l->table) &&
           is_zero(edge.from->inputs[1]) && is_zero(edge.from->inputs[2]);
}

/* The sum by index of the gradient of what was looked up, when only that is made of it. */
static struct node *table_grad(const struct looker *l, const struct node *grad)
{
    struct node *user = only_user(l, grad, 0);
    if (user && fuse_is(user, "Reshape"))
        user = l->f.watched[user->id] || user->controls_count ? NULL : only_user(l, user, 0);
    if (!user || !fuse_is(user, "UnsortedSegmentSum") || user->controls_count)
        return NULL;
    struct edge by = user->inputs[1];
    if (!same_edge(by, l->indices) && fuse_is(by.from, "Reshape"))
        by = by.from->inputs[0];
    return same_edge(by, l->indices) && is_rows(l, user->inputs[2]) ? user : NULL;
}

/* Whether `use` of what is looked up can be given the table instead. */
static bool can_take_table(const struct looker *l, const struct fuse_use *use)
{
    const struct sequence_op *op = sequence_op(use->node);
    return op && use->index == op->x && node_attr_type(use->node, "T") == F32 &&
           fuse_same_wishes(l->gather, use->node);
}

/* The table as a value, read when the lookup would have read it. */
static struct edge read_table(struct looker *l)
{
    if (!fuse_is(l->gather, "ResourceGather"))
        return l->table;
    const struct attr type = attr_type("dtype", F32);
    const struct node_def def = {.op = op_find("ReadVariableOp"),
                                 .inputs = &l->table,
                                 .inputs_count = 1,
                                 .attrs = &type,
                                 .attrs_count = 1};
    struct node *read = fuse_add(&l->f, &def, l->gather, &l->gather, 1);
    if (read)
        fuse_controls(&l->f, read, l->gather);
    return (struct edge){read, 0};
}

static void take_table(struct looker *l, struct node *node, struct edge table)
{
    const struct sequence_op *op = sequence_op(node);
    struct node *sum = op->gradient && !l->f.watched[node->id] ? table_grad(l, node) : NULL;
    const struct attr by_rows = attr_bool("by_rows", !sum);
    struct edge inputs[24];
    struct attr attrs[FUSE_ATTRS_MAX];
    int count = node->inputs_count;
    assert(count < ARRAY_LEN(inputs));
    memcpy(inputs, node->inputs, (size_t)count * sizeof(*inputs));
    inputs[op->x] = l->indices;
    inputs[count++] = table;
    int attrs_count = fuse_copy_attrs(node, op->fused, attrs, ARRAY_LEN(attrs) - 2);
    if (op->gradient)
        attrs[attrs_count++] = by_rows;
    attrs[attrs_count++] =
        attr_type("Tindices", l->indices.from->output_types[l->indices.output]);
    const struct node_def def = {.op = op_find(op->fused),
                                 .inputs = inputs,
                                 .inputs_count = count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count};
    struct node *const parts[] = {l->gather, sum ? sum : node, node};
    struct node *fused = fuse_add(&l->f, &def, node, parts, sum ? 3 : 2);
    if (!fused)
        return;
    fuse_controls(&l->f, fused, node);
    for (int i = 1; i < node->outputs_count; i++)
        fuse_output(&l->f, node, i, fused, i);
    fuse_replace(&l->f, sum ? sum : node, fused, 0);
}

static void visit(struct looker *l, struct node *gather)
{
    int uses = fuse_uses(&l->f, gather);
    if (!uses || !begin_lookup(l, gather))
        return;
    for (int i = 0; i < uses; i++)
        if (!can_take_table(l, fuse_use_at(&l->f, gather, i)))
            return;
    struct edge table = read_table(l);
    for (int gradients = 0; table.from && gradients < 2; gradients++) /* they read the others */
        for (int i = 0; i < uses; i++) {
            struct node *node = fuse_use_at(&l->f, gather, i)->node;
            if (sequence_op(node)->gradient == gradients)
                take_table(l, node, table);
        }
}

bool optimise_lookup(struct pass *pass, struct error *err)
{
    static const char *const starts[] = {"BlockLSTM", "BlockLSTMV2", "_GRUSequence",
                                         "_RNNSequence", NULL};
    if (!pass->by_shapes || !fuse_has(pass->subgraph, starts))
        return true;
    int *order = graph_sorted(pass->subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    struct looker l = {0};
    fuse_init(&l.f, pass->subgraph, err);
    shapes_infer(&l.shapes, l.f.graph, order, l.f.count);
    for (int i = 0; i < l.f.count && !l.f.failed; i++)
        if (l.f.needed[order[i]])
            visit(&l, graph_node(l.f.graph, order[i]));
    shapes_release(&l.shapes);
    free(order);
    return fuse_finish(&l.f);
}
