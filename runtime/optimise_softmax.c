/*
 * optimise_softmax.c - what programs write around a softmax becomes one pass over its rows.
 *
 *   Sum(labels * Log(Softmax(x)), -1), the same of LogSoftmax       _CrossEntropySum
 *   (dy - Sum(dy * y, -1)) * y, dy - Sum(dy, -1) * Exp(y)           _SoftmaxGrad,
 * _LogSoftmaxGrad (Sparse)SoftmaxCrossEntropyWithLogits of which one output _SoftmaxLosses is
 * not read, or the second is only read times a column
 *
 * The kernels run the inner loops of what they stand for, so all of it gives the same bits.
 * Where a softmax is 0, its logarithm stays -inf as in TensorFlow: no loss gets finite here.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/fuse.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/shapes.h"
#include "runtime/tensor.h"

struct softmaxer {
    struct fuser f;
    struct shapes shapes; /* when by_shapes */
    bool by_shapes;
    bool *inner; /* by node id, or NULL: may be dead, or run more than once */
    int *stack;  /* for depends_on() */
    int *seen;   /* by node id: the search that came there last */
    int searches;
};

/* Whether both live and die together, so that what one gives may wait for the other. */
static bool live_alike(const struct softmaxer *s, const struct node *a, const struct node *b)
{
    return !s->inner || (!s->inner[a->id] && b->id < s->f.count && !s->inner[b->id]);
}

/*
 * Whether `node` comes after `first`, or perhaps: it was made here, or comes from another task,
 * which may wait for what this one sends.
 */
static bool depends_on(struct softmaxer *s, const struct node *node, const struct node *first)
{
    int depth = 0, search = ++s->searches;
    if (node->id >= s->f.count)
        return true;
    s->stack[depth++] = node->id;
    s->seen[node->id] = search;
    while (depth) {
        const struct node *at = graph_node(s->f.graph, s->stack[--depth]);
        if (at == first || fuse_is(at, "_Recv") || fuse_is(at, "_HostRecv"))
            return true;
        for (int i = 0; i < at->inputs_count + at->controls_count; i++) {
            const struct node *before =
                i < at->inputs_count ? at->inputs[i].from : at->controls[i - at->inputs_count];
            if (before->id >= s->f.count)
                return true;
            if (s->seen[before->id] != search) {
                s->seen[before->id] = search;
                s->stack[depth++] = before->id;
            }
        }
    }
    return false;
}

static bool is_f32(const struct node *node)
{
    return !node->fault && node->op->outputs && node_attr_type(node, "T") == F32;
}

static bool same_edge(struct edge a, struct edge b)
{
    return a.from == b.from && a.output == b.output;
}

/* A Sum over the last dimension alone. */
static bool is_sum_of_last(const struct softmaxer *s, const struct node *sum)
{
    if (!fuse_is(sum, "Sum") || !is_f32(sum))
        return false;
    const struct tensor *axis = node_constant(sum->inputs[1].from);
    if (!axis || axis->count != 1 || !(BIT(axis->dtype) & (BIT(I32) | BIT(I64))))
        return false;
    int64_t last = tensor_integer(axis, 0);
    int rank = s->by_shapes && sum->inputs[0].from->id < s->f.count
                   ? shapes_at(&s->shapes, sum->inputs[0])->rank
                   : -1;
    return last == -1 || (rank > 0 && last == rank - 1);
}

/* Rows so long that arithmetic decides, not calls: chains keep more of it in registers. */
static bool is_wide(const struct softmaxer *s, struct edge edge)
{
    enum { WIDE = 1024 };
    if (!s->by_shapes || edge.from->id >= s->f.count)
        return false;
    const struct shape *shape = shapes_at(&s->shapes, edge);
    return shape->rank > 0 && shape->dims[shape->rank - 1] >= WIDE;
}

/* Its only reader, on any input, when that waits for nothing; NULL if it is not so. */
static struct node *only_reader(const struct softmaxer *s, const struct node *node,
                                const char *op)
{
    if (s->f.watched[node->id] || fuse_uses(&s->f, node) != 1)
        return NULL;
    struct node *user = fuse_use_at(&s->f, node, 0)->node;
    return fuse_is(user, op) && is_f32(user) && !user->controls_count &&
                   fuse_same_wishes(node, user)
               ? user
               : NULL;
}

/* The node behind input `i` if it is an `op` that only its reader sees and waits for nothing.
 */
static struct node *private_input(const struct softmaxer *s, const struct node *reader, int i,
                                  const char *op)
{
    struct node *from = reader->inputs[i].from;
    if (from->id >= s->f.count || !fuse_is(from, op) || !is_f32(from) || from->controls_count ||
        s->f.watched[from->id] || fuse_uses(&s->f, from) != 1 ||
        !fuse_same_wishes(from, reader))
        return NULL;
    return from;
}

static struct node *add(struct softmaxer *s, const char *op, const struct node *like,
                        const struct edge *inputs, int inputs_count, const struct attr *attrs,
                        int attrs_count, struct node *const *parts, int parts_count)
{
    const struct node_def def = {.op = op_find(op),
                                 .inputs = inputs,
                                 .inputs_count = inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = attrs_count};
    return fuse_add(&s->f, &def, like, parts, parts_count);
}

/* --- the sum of labels times logarithms --- */

/* `log` is the logarithm of `softmax`, or the same node, a LogSoftmax. */
static void fuse_entropy(struct softmaxer *s, struct node *softmax, struct node *log)
{
    bool logarithm = softmax == log;
    struct node *product = NULL;
    for (int i = 0; i < fuse_uses(&s->f, log); i++) {
        struct node *user = fuse_use_at(&s->f, log, i)->node;
        struct node *sum = fuse_is(user, "Mul") ? only_reader(s, user, "Sum") : NULL;
        if (!product && sum && is_f32(user) && !user->controls_count &&
            sum->inputs[0].from == user && is_sum_of_last(s, sum))
            product = user;
    }
    if (!product || !fuse_same_wishes(log, product) || is_wide(s, softmax->inputs[0]))
        return;
    struct node *sum = only_reader(s, product, "Sum");
    int at = product->inputs[0].from == log;
    struct edge labels = product->inputs[at];
    bool keeps = s->f.watched[softmax->id] || fuse_uses(&s->f, softmax) > 1;
    if (depends_on(s, labels.from, softmax) || (keeps && !live_alike(s, softmax, labels.from)))
        return;
    const struct attr attrs[] = {
        attr_type("T", F32), attr_bool("logarithm", logarithm), attr_bool("keeps", keeps),
        attr_bool("keep_dims", node_attr_bool(sum, "keep_dims", false))};
    const struct edge inputs[] = {softmax->inputs[0], labels};
    struct node *const parts[] = {softmax, log, product, sum};
    struct node *fused = add(s, "_CrossEntropySum", softmax, inputs, 2, attrs, ARRAY_LEN(attrs),
                             logarithm ? parts + 1 : parts, logarithm ? 3 : 4);
    if (!fused)
        return;
    fuse_controls(&s->f, fused, softmax);
    fuse_output(&s->f, softmax, 0, fused, 1);
    if (s->f.watched[softmax->id])
        fuse_waiters(&s->f, softmax, fused, NULL);
    for (int i = 0; i < s->f.subgraph->targets_count; i++)
        if (s->f.subgraph->targets[i] == softmax)
            s->f.subgraph->targets[i] = fused;
    fuse_replace(&s->f, sum, fused, 0);
}

static void visit_softmax(struct softmaxer *s, struct node *softmax)
{
    struct node *log = NULL;
    for (int i = 0; i < fuse_uses(&s->f, softmax); i++) {
        struct node *user = fuse_use_at(&s->f, softmax, i)->node;
        if (fuse_is(user, "Log") && is_f32(user) && !user->controls_count &&
            !s->f.watched[user->id] && fuse_uses(&s->f, user) == 1 &&
            fuse_same_wishes(softmax, user))
            log = user;
    }
    if (log)
        fuse_entropy(s, softmax, log);
}

/* --- gradients --- */

/* product = (dy - Sum(dy * y)) * y */
static void visit_product(struct softmaxer *s, struct node *product)
{
    for (int i = 0; i < 2; i++) {
        struct node *difference = private_input(s, product, i, "Sub");
        struct node *sum = difference ? private_input(s, difference, 1, "Sum") : NULL;
        struct node *inner = sum ? private_input(s, sum, 0, "Mul") : NULL;
        struct edge y = product->inputs[1 - i];
        if (!inner || is_wide(s, y) || !is_sum_of_last(s, sum) ||
            !node_attr_bool(sum, "keep_dims", false))
            continue;
        struct edge dy = difference->inputs[0];
        bool matches = (same_edge(inner->inputs[0], dy) && same_edge(inner->inputs[1], y)) ||
                       (same_edge(inner->inputs[1], dy) && same_edge(inner->inputs[0], y));
        if (!matches)
            continue;
        const struct attr attrs[] = {attr_type("T", F32)};
        const struct edge inputs[] = {dy, y};
        struct node *const parts[] = {inner, sum, difference, product};
        struct node *fused =
            add(s, "_SoftmaxGrad", product, inputs, 2, attrs, ARRAY_LEN(attrs), parts, 4);
        if (!fused)
            return;
        fuse_controls(&s->f, fused, product);
        fuse_replace(&s->f, product, fused, 0);
        return;
    }
}

/* difference = dy - Sum(dy) * Exp(y) */
static void visit_difference(struct softmaxer *s, struct node *difference)
{
    struct node *product = private_input(s, difference, 1, "Mul");
    for (int i = 0; product && i < 2; i++) {
        struct node *sum = private_input(s, product, i, "Sum");
        struct node *exponential = private_input(s, product, 1 - i, "Exp");
        if (!sum || !exponential || is_wide(s, exponential->inputs[0]) ||
            !is_sum_of_last(s, sum) || !node_attr_bool(sum, "keep_dims", false) ||
            !same_edge(sum->inputs[0], difference->inputs[0]))
            continue;
        const struct attr attrs[] = {attr_type("T", F32)};
        const struct edge inputs[] = {difference->inputs[0], exponential->inputs[0]};
        struct node *const parts[] = {exponential, sum, product, difference};
        struct node *fused =
            add(s, "_LogSoftmaxGrad", difference, inputs, 2, attrs, ARRAY_LEN(attrs), parts, 4);
        if (!fused)
            return;
        fuse_controls(&s->f, fused, difference);
        fuse_replace(&s->f, difference, fused, 0);
        return;
    }
}

/* --- losses --- */

/* How often output `output` is read, the last reader by the way. */
static int count_readers(const struct softmaxer *s, const struct node *node, int output,
                         const struct fuse_use **last)
{
    int count = 0;
    for (int i = 0; i < fuse_uses(&s->f, node); i++) {
        const struct fuse_use *use = fuse_use_at(&s->f, node, i);
        if (use->output == output) {
            *last = use;
            count++;
        }
    }
    for (int i = 0; i < s->f.subgraph->fetches_count; i++) {
        const struct edge *fetch = &s->f.subgraph->fetches[i];
        count += 2 * (fetch->from == node && fetch->output == output);
    }
    return count;
}

/* A number, or a column with one number for each row, as far as can be told. */
static bool may_be_column(const struct softmaxer *s, struct edge edge)
{
    if (edge.from->id >= s->f.count)
        return false;
    const struct shape *shape = s->by_shapes ? shapes_at(&s->shapes, edge) : NULL;
    return !shape || shape->rank <= 0 || (shape->rank == 2 && shape->dims[1] == 1);
}

static void fuse_losses(struct softmaxer *s, struct node *losses)
{
    const struct fuse_use *use = NULL;
    int readers = count_readers(s, losses, 1, &use);
    struct node *scaled = readers == 1 ? use->node : NULL;
    struct edge inputs[] = {losses->inputs[0], losses->inputs[1], {0}};
    if (scaled && fuse_is(scaled, "Mul") && is_f32(scaled) && !scaled->controls_count &&
        fuse_same_wishes(losses, scaled))
        inputs[2] = scaled->inputs[1 - use->index];
    if (inputs[2].from &&
        (!may_be_column(s, inputs[2]) || depends_on(s, inputs[2].from, losses)))
        inputs[2].from = NULL;
    if (readers && !inputs[2].from)
        return;
    const struct attr attrs[] = {
        attr_type("T", F32),
        attr_type("L", losses->input_types[1]),
        attr_int("N", inputs[2].from ? 1 : 0),
        attr_bool("sparse", losses->op->name[1] == 'p'),
        attr_bool("keeps", readers > 0),
    };
    struct node *const parts[] = {scaled, losses};
    struct node *fused = add(s, "_SoftmaxLosses", losses, inputs, inputs[2].from ? 3 : 2, attrs,
                             ARRAY_LEN(attrs), readers ? parts : parts + 1, readers ? 2 : 1);
    if (!fused)
        return;
    fuse_controls(&s->f, fused, losses);
    if (readers)
        fuse_replace(&s->f, scaled, fused, 1);
    fuse_replace(&s->f, losses, fused, 0);
}

/* --- the whole --- */

static void visit_gradients(struct softmaxer *s, struct node *node)
{
    if (fuse_is(node, "Mul"))
        visit_product(s, node);
    else if (fuse_is(node, "Sub"))
        visit_difference(s, node);
}

static void visit_losses(struct softmaxer *s, struct node *node)
{
    if (fuse_is(node, "Softmax"))
        visit_softmax(s, node);
    else if (fuse_is(node, "LogSoftmax"))
        fuse_entropy(s, node, node);
    else if (fuse_is(node, "SoftmaxCrossEntropyWithLogits") ||
             fuse_is(node, "SparseSoftmaxCrossEntropyWithLogits"))
        fuse_losses(s, node);
}

static bool visit_all(struct pass *pass, const int *order, int count,
                      void (*visit)(struct softmaxer *s, struct node *node), struct error *err)
{
    struct softmaxer s = {.by_shapes = pass->by_shapes,
                          .inner = optimise_inner(pass->subgraph, order)};
    fuse_init(&s.f, pass->subgraph, err);
    assert(s.f.count == count);
    s.stack = alloc_array((size_t)count + 1, sizeof(int));
    s.seen = alloc_array((size_t)count + 1, sizeof(int));
    shapes_infer(&s.shapes, s.f.graph, order, count);
    for (int i = 0; i < count && !s.f.failed; i++) {
        struct node *node = graph_node(s.f.graph, order[i]);
        if (s.f.needed[node->id] && is_f32(node))
            visit(&s, node);
    }
    shapes_release(&s.shapes);
    free(s.inner);
    free(s.stack);
    free(s.seen);
    return fuse_finish(&s.f);
}

/* Gradients first: what reads a softmax must be known when its loss is looked at. */
bool optimise_softmax(struct pass *pass, struct error *err)
{
    static const char *const starts[] = {"Softmax", "LogSoftmax",
                                         "SoftmaxCrossEntropyWithLogits",
                                         "SparseSoftmaxCrossEntropyWithLogits", NULL};
    /* Feeds that come later must not hold up what could be had before. */
    if (!fuse_has(pass->subgraph, starts) || pass->subgraph->partial)
        return true;
    for (int round = 0; round < 2; round++) {
        int *order = graph_sorted(pass->subgraph->graph, err);
        if (!order)
            return true; /* plan_new() will say what is wrong */
        bool ok = visit_all(pass, order, graph_count(pass->subgraph->graph),
                            round ? visit_losses : visit_gradients, err);
        free(order);
        if (!ok)
            return false;
    }
    return true;
}
