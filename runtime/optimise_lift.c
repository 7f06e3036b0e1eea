/*
 * optimise_lift.c - who asks for a shape asks the value from which it came.
 *
 * Gradients of graphs with an open batch size are full of Shape of what lies between two
 * elementwise ops; as long as that is read, the two cannot become one.  So Shape, Size and Rank
 * of Exp(x) become those of x, and Shape(x * y) becomes BroadcastArgs(Shape(x), Shape(y)) where
 * that leaves the product with one reader.  The losses of a cross-entropy have the shape of
 * their labels, so that the gradient need not wait for them.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/tensor.h"

/* How many BroadcastArgs may stand for one Shape, and how far back is looked. */
enum { SPLITS_MAX = 2, STEPS_MAX = 64 };

struct lifter {
    struct rewrite rewrite;
    struct graph *graph;
    int *readers; /* by node id: of outputs, but for their shape; fetches and waiters too */
    bool *inner;  /* by node id, or NULL: may be dead, or run more than once */
};

static bool is_one_of(const struct node *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (!strcmp(node->op->name, *ops))
            return true;
    return false;
}

static bool asks_for_shape(const struct node *node)
{
    static const char *const ops[] = {"Shape", "Size", "Rank", NULL};
    return is_one_of(node, ops);
}

/* A function of numbers that cannot fail, of one output. */
static bool is_plain(const struct node *node, const char *const *ops)
{
    if (node->fault || node->controls_count || node->outputs_count != 1 ||
        !is_one_of(node, ops))
        return false;
    for (int i = 0; i < node->inputs_count; i++)
        if (dtype_is_ref(node->inputs[i].from->output_types[node->inputs[i].output]))
            return false;
    return true;
}

static bool is_scalar(struct edge edge)
{
    const struct tensor *value = node_constant(edge.from);
    return value && value->shape.rank == 0;
}

static bool is_unary(const struct node *node)
{
    static const char *const ops[] = {"Abs",    "Cast", "Exp",   "Log",        "Log1p",
                                      "Neg",    "Relu", "Sign",  "Sqrt",       "Sigmoid",
                                      "Square", "Tanh", "Rsqrt", "Reciprocal", NULL};
    return is_plain(node, ops);
}

static bool is_binary(const struct node *node)
{
    static const char *const ops[] = {"Add",     "AddV2",   "Sub",
                                      "Mul",     "Div",     "RealDiv",
                                      "Maximum", "Minimum", "SquaredDifference",
                                      NULL};
    return is_plain(node, ops);
}

/* Whether it is the losses by an op of that name, which live as long as what they are of. */
static bool is_losses(const struct lifter *l, struct edge edge, const char *op)
{
    const struct node *node = edge.from;
    return edge.output == 0 && !node->fault && !node->controls_count &&
           !strcmp(node->op->name, op) && node->id < l->rewrite.count &&
           !(l->inner && l->inner[node->id]);
}

/* The value that has the shape of this one, as far back as can be told. */
static struct edge origin(const struct lifter *l, struct edge edge)
{
    for (int i = 0; i < STEPS_MAX; i++) {
        const struct node *node = edge.from;
        bool two = is_binary(node);
        if (two && is_scalar(node->inputs[1]))
            edge = node->inputs[0];
        else if (is_losses(l, edge, "SparseSoftmaxCrossEntropyWithLogits"))
            edge = node->inputs[1];
        else if (is_unary(node) || (two && is_scalar(node->inputs[0])))
            edge = node->inputs[two];
        else
            break;
    }
    return edge;
}

/* A node beside `like`; NULL on failure, also of what it reads. */
static struct node *add(struct lifter *l, const char *op, const struct node *like,
                        const struct edge *inputs, int inputs_count, const struct attr *attrs,
                        int attrs_count, struct error *err)
{
    for (int i = 0; i < inputs_count; i++)
        if (!inputs[i].from)
            return NULL;
    const struct node_def def = {
        .name = arena_printf(graph_arena(l->graph), "%s/%s", like->name, op),
        .op = op_find(op),
        .inputs = inputs,
        .inputs_count = inputs_count,
        .attrs = attrs,
        .attrs_count = attrs_count,
        .device = like->requested_device};
    return graph_add(l->graph, &def, err);
}

/* The shape of `of`, in the type that `like` has. */
static struct node *add_shape(struct lifter *l, const struct node *like, struct edge of,
                              struct error *err)
{
    const struct attr type = attr_type("out_type", like->output_types[0]);
    return add(l, "Shape", like, &of, 1, &type, 1, err);
}

/* A vector of one number. */
static struct node *add_int(struct lifter *l, const struct node *like, int number,
                            struct error *err)
{
    struct tensor value;
    if (!tensor_init(&value, I32, &SHAPE(1), err))
        return NULL;
    tensor_set_number(&value, 0, number);
    const struct attr attrs[] = {attr_type("dtype", I32), attr_tensor("value", &value)};
    struct node *made = add(l, "Const", like, NULL, 0, attrs, ARRAY_LEN(attrs), err);
    tensor_release(&value);
    return made;
}

/* Readers of `shape`, which were made from `first` on, read `both`. */
static void turn_new(struct lifter *l, int first, const struct node *shape, struct node *both)
{
    for (int id = first; id < graph_count(l->graph); id++) {
        struct node *reader = graph_node(l->graph, id);
        for (int i = 0; reader != both && i < reader->inputs_count; i++)
            if (reader->inputs[i].from == shape)
                graph_set_input(l->graph, reader, i, (struct edge){both, 0});
    }
}

/* Shape(x * y) as BroadcastArgs, the shapes of x and y likewise. */
static bool split(struct lifter *l, struct node *shape, struct error *err)
{
    struct node *open[2 * SPLITS_MAX + 1] = {shape};
    int count = 1, first = graph_count(l->graph);
    for (int at = 0; at < count && count <= 2 * SPLITS_MAX - 1; at++) {
        const struct node *product = open[at]->inputs[0].from;
        if (!is_binary(product) || l->readers[product->id] != 1)
            continue;
        struct edge shapes[2];
        for (int i = 0; i < 2; i++) {
            struct node *added = add_shape(l, shape, origin(l, product->inputs[i]), err);
            if (!added)
                return false;
            shapes[i] = (struct edge){added, 0};
            open[count++] = added;
        }
        struct node *both = add(l, "BroadcastArgs", shape, shapes, 2, NULL, 0, err);
        if (!both)
            return false;
        if (at == 0)
            rewrite_edge(&l->rewrite, (struct edge){shape, 0}, (struct edge){both, 0});
        else
            turn_new(l, first, open[at], both);
    }
    return true;
}

static void count_readers(struct lifter *l, const bool *needed)
{
    const struct subgraph *subgraph = l->rewrite.subgraph;
    l->readers = alloc_array((size_t)l->rewrite.count + 1, sizeof(int));
    for (int id = 0; id < l->rewrite.count; id++) {
        const struct node *node = graph_node(l->graph, id);
        for (int i = 0; needed[id] && i < node->inputs_count && !asks_for_shape(node); i++)
            l->readers[node->inputs[i].from->id]++;
        for (int i = 0; needed[id] && i < node->controls_count; i++)
            l->readers[node->controls[i]->id] += 2;
    }
    for (int i = 0; i < subgraph->fetches_count; i++)
        l->readers[subgraph->fetches[i].from->id] += 2;
    for (int i = 0; i < subgraph->targets_count; i++)
        l->readers[subgraph->targets[i]->id] += 2;
}

/* Shape or Size of losses: the first dimension of what logits and labels make together. */
static bool of_losses(struct lifter *l, struct node *shape, struct error *err)
{
    const struct node *losses = shape->inputs[0].from;
    struct edge shapes[2] = {{0}}, parts[3] = {{0}};
    for (int i = 0; i < 2; i++)
        shapes[i].from = add_shape(l, shape, origin(l, losses->inputs[i]), err);
    parts[0].from = add(l, "BroadcastArgs", shape, shapes, 2, NULL, 0, err);
    for (int i = 1; parts[0].from && i < 3; i++)
        parts[i].from = add_int(l, shape, i - 1, err);
    struct edge sliced = {add(l, "Slice", shape, parts, 3, NULL, 0, err), 0};
    struct node *rows = !strcmp(shape->op->name, "Size")
                            ? add(l, "Squeeze", shape, &sliced, 1, NULL, 0, err)
                            : sliced.from;
    if (rows)
        rewrite_edge(&l->rewrite, (struct edge){shape, 0}, (struct edge){rows, 0});
    return rows;
}

static bool lift(struct lifter *l, struct node *node, struct error *err)
{
    struct edge was = node->inputs[0], from = origin(l, was);
    bool shape = !strcmp(node->op->name, "Shape"), rank = !strcmp(node->op->name, "Rank");
    if (was.from->output_types[was.output] == from.from->output_types[from.output]) {
        graph_set_input(l->graph, node, 0, from);
    } else {
        const struct attr type = attr_type("out_type", node->output_types[0]);
        struct node *other = add(l, node->op->name, node, &from, 1, &type, !rank, err);
        if (!other)
            return false;
        rewrite_edge(&l->rewrite, (struct edge){node, 0}, (struct edge){other, 0});
        return true;
    }
    if (!rank && is_losses(l, node->inputs[0], "SoftmaxCrossEntropyWithLogits"))
        return of_losses(l, node, err);
    return !shape || split(l, node, err);
}

bool optimise_lift(struct subgraph *subgraph, struct error *err)
{
    struct lifter l = {.graph = subgraph->graph};
    int *order = graph_sorted(subgraph->graph, err);
    if (!order)
        return true; /* plan_new() will say what is wrong */
    bool *needed = prune_needed(subgraph), ok = true;
    l.inner = optimise_inner(subgraph, order);
    rewrite_init(&l.rewrite, subgraph);
    count_readers(&l, needed);
    for (int id = 0; ok && id < l.rewrite.count; id++) {
        struct node *node = graph_node(l.graph, id);
        if (needed[id] && !node->fault && !node->controls_count && asks_for_shape(node) &&
            !node->inputs[0].from->fault &&
            !dtype_is_ref(node->inputs[0].from->output_types[node->inputs[0].output]))
            ok = lift(&l, node, err);
    }
    rewrite_apply(&l.rewrite);
    free(order);
    free(l.readers);
    free(l.inner);
    free(needed);
    return ok;
}
