/*
 * optimise_arithmetic.c - arithmetic that changes nothing is not done.
 *
 *   x * 1, x / 1, x - 0, x + 0 (of integers), x ^ 1      x
 *   f(f(x)) for Neg, LogicalNot, Conj, Invert            x
 *   Cast to the same type, or there and back without loss  x
 *   Transpose that moves nothing, or twice               x, or one Transpose
 *   Reshape of Reshape; to the shape that x has          one Reshape; x
 *   AddN, Concat of one; Tile by ones; Pad by nothing    x
 *   Sum, Mean, Max over no axes                          x
 *
 * All are exact to the bit: x + 0 of floats is not, for it makes 0 of -0.  A node that waits
 * for others, and a constant that does, is left alone.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/rewrite.h"
#include "runtime/shapes.h"
#include "runtime/tensor.h"

struct simplifier {
    struct rewrite rewrite;
    struct shapes shapes;
    bool by_shapes; /* what placeholders declare may be relied on */
    bool shapes_known;
    int *order;
};

static const struct edge none = {0};

/* The value of an input that is a plain constant; NULL if it is none. */
static const struct tensor *constant(const struct simplifier *s, struct edge edge)
{
    edge = rewrite_now(&s->rewrite, edge);
    return edge.from->controls_count ? NULL : node_constant(edge.from);
}

/* The node that made an input, if it is of op `op` and waits for nobody. */
static const struct node *made_by(const struct simplifier *s, struct edge edge, const char *op)
{
    edge = rewrite_now(&s->rewrite, edge);
    const struct node *node = edge.from;
    return !strcmp(node->op->name, op) && !node->controls_count && !node->fault ? node : NULL;
}

/* What is known of a shape; shapes are inferred when the first is asked for. */
static const struct shape *shape_of(struct simplifier *s, struct edge edge)
{
    static const struct shape unknown = {.rank = -1};
    if (!s->by_shapes)
        return &unknown;
    if (!s->shapes_known)
        shapes_infer(&s->shapes, s->rewrite.subgraph->graph, s->order, s->rewrite.count);
    s->shapes_known = true;
    return shapes_at(&s->shapes, edge);
}

/* --- x * 1 --- */

static bool is_scalar(const struct tensor *value, double number)
{
    return value && value->shape.rank == 0 && BIT(value->dtype) & DTYPES_REAL &&
           tensor_number(value, 0) == number;
}

static struct edge neutral(struct simplifier *s, const struct node *node)
{
    static const struct {
        const char *op;
        double number;
        bool either, integers;
    } rows[] = {
        {"Mul", 1, true, false},  {"Div", 1, false, false}, {"RealDiv", 1, false, false},
        {"Sub", 0, false, false}, {"Add", 0, true, true},   {"AddV2", 0, true, true},
        {"Pow", 1, false, false},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].op, node->op->name) != 0)
            continue;
        if (rows[i].integers && !(BIT(node->output_types[0]) & DTYPES_INTEGER))
            return none;
        if (is_scalar(constant(s, node->inputs[1]), rows[i].number))
            return node->inputs[0];
        if (rows[i].either && is_scalar(constant(s, node->inputs[0]), rows[i].number))
            return node->inputs[1];
        return none;
    }
    return none;
}

/* --- f(f(x)) --- */

static struct edge involution(struct simplifier *s, const struct node *node)
{
    static const char *const ops[] = {"Neg", "LogicalNot", "Conj", "Invert"};
    for (int i = 0; i < ARRAY_LEN(ops); i++) {
        if (strcmp(ops[i], node->op->name) != 0)
            continue;
        const struct node *inner = made_by(s, node->inputs[0], ops[i]);
        return inner ? inner->inputs[0] : none;
    }
    return none;
}

/* --- Cast --- */

/* Whether each value of `from` is a value of `to`. */
static bool holds(int to, int from)
{
    static const uint64_t inside[DTYPE_COUNT] = {
        [F64] = BIT(F32) | BIT(F16) | BIT(BF16) | BIT(I32) | BIT(I16) | BIT(I8) | BIT(U32) |
                BIT(U16) | BIT(U8),
        [F32] = BIT(F16) | BIT(BF16) | BIT(I16) | BIT(I8) | BIT(U16) | BIT(U8),
        [I64] = BIT(I32) | BIT(I16) | BIT(I8) | BIT(U32) | BIT(U16) | BIT(U8),
        [I32] = BIT(I16) | BIT(I8) | BIT(U16) | BIT(U8),
        [I16] = BIT(I8) | BIT(U8),
        [U64] = BIT(U32) | BIT(U16) | BIT(U8),
        [U32] = BIT(U16) | BIT(U8),
        [U16] = BIT(U8),
    };
    return to == from || inside[to] & BIT(from);
}

static struct edge cast(struct simplifier *s, const struct node *node)
{
    if (strcmp(node->op->name, "Cast") != 0 || node_attr_bool(node, "Truncate", false))
        return none;
    struct edge x = node->inputs[0];
    if (x.from->output_types[x.output] == node->output_types[0])
        return x;
    const struct node *inner = made_by(s, x, "Cast");
    if (!inner || node_attr_bool(inner, "Truncate", false))
        return none;
    x = inner->inputs[0];
    int from = x.from->output_types[x.output];
    return from == node->output_types[0] && holds(inner->output_types[0], from) ? x : none;
}

/* --- Transpose --- */

/* Reads a constant permutation; returns its length, or -1. */
static int permutation(const struct tensor *value, int64_t *places)
{
    uint64_t seen = 0;
    if (!value || value->shape.rank != 1 || value->count > LIMIT_TENSOR_RANK ||
        !(BIT(value->dtype) & (BIT(I32) | BIT(I64))))
        return -1;
    for (int64_t i = 0; i < value->count; i++) {
        places[i] = tensor_integer(value, i);
        if (places[i] < 0 || places[i] >= value->count || seen & BIT(places[i]))
            return -1;
        seen |= BIT(places[i]);
    }
    return (int)value->count;
}

static bool moves_nothing(const int64_t *places, int rank)
{
    for (int i = 0; i < rank; i++)
        if (places[i] != i)
            return false;
    return true;
}

/* A constant of 32-bit integers beside `like`. */
static struct edge add_ints(struct simplifier *s, const struct node *like,
                            const int64_t *values, int count)
{
    struct graph *graph = s->rewrite.subgraph->graph;
    struct error err;
    struct tensor value;
    if (!tensor_init(&value, I32, &SHAPE(count), &err))
        return none;
    for (int i = 0; i < count; i++)
        tensor_set_number(&value, i, (double)values[i]);
    const struct attr attrs[] = {attr_type("dtype", I32), attr_tensor("value", &value)};
    const struct node_def def = {.name =
                                     arena_printf(graph_arena(graph), "%s/perm", like->name),
                                 .op = op_find("Const"),
                                 .attrs = attrs,
                                 .attrs_count = ARRAY_LEN(attrs),
                                 .device = like->requested_device};
    struct node *node = graph_add(graph, &def, &err);
    tensor_release(&value);
    return (struct edge){node, 0};
}

/* A node like `node` with other inputs. */
static struct edge add_like(struct simplifier *s, const struct node *node,
                            const struct edge *inputs)
{
    struct attr *attrs = alloc_array((size_t)node->attrs_count, sizeof(*attrs));
    struct error err;
    int count = 0;
    for (int i = 0; i < node->attrs_count; i++)
        if (strcmp(node->attrs[i].name, "Tperm") != 0)
            attrs[count++] = node->attrs[i];
    const struct node_def def = {.name = node->name,
                                 .op = node->op,
                                 .inputs = inputs,
                                 .inputs_count = node->inputs_count,
                                 .attrs = attrs,
                                 .attrs_count = count,
                                 .device = node->requested_device};
    struct node *made = graph_add(s->rewrite.subgraph->graph, &def, &err);
    free(attrs);
    return (struct edge){made, 0};
}

static struct edge transpose(struct simplifier *s, const struct node *node)
{
    int64_t outer[LIMIT_TENSOR_RANK], first[LIMIT_TENSOR_RANK], both[LIMIT_TENSOR_RANK];
    if (strcmp(node->op->name, "Transpose") != 0)
        return none;
    int rank = permutation(constant(s, node->inputs[1]), outer);
    if (rank < 0)
        return none;
    const struct node *inner = made_by(s, node->inputs[0], "Transpose");
    if (inner && permutation(constant(s, inner->inputs[1]), first) == rank) {
        for (int i = 0; i < rank; i++)
            both[i] = first[outer[i]];
        if (moves_nothing(both, rank))
            return inner->inputs[0];
        const struct edge inputs[] = {inner->inputs[0], add_ints(s, node, both, rank)};
        return inputs[1].from ? add_like(s, node, inputs) : none;
    }
    /* Of a tensor of another rank it is an error, which must stay. */
    return moves_nothing(outer, rank) && shape_of(s, node->inputs[0])->rank == rank
               ? node->inputs[0]
               : none;
}

/* --- Reshape --- */

static struct edge reshape(struct simplifier *s, const struct node *node)
{
    if (strcmp(node->op->name, "Reshape") != 0)
        return none;
    const struct shape *to = shape_of(s, (struct edge){(struct node *)node, 0});
    if (shape_is_full(to) && shape_equal(shape_of(s, node->inputs[0]), to))
        return node->inputs[0];
    const struct node *inner = made_by(s, node->inputs[0], "Reshape");
    if (!inner || inner->inputs[0].from->id >= s->rewrite.count)
        return none;
    /* The one before must be sure to succeed: its shape is known, and is what it can be. */
    int64_t count = shape_count(shape_of(s, inner->inputs[0]));
    if (count < 0 || count != shape_count(shape_of(s, node->inputs[0])))
        return none;
    return add_like(s, node, (const struct edge[]){inner->inputs[0], node->inputs[1]});
}

/* --- of one, by nothing --- */

static bool all_are(const struct tensor *value, int64_t number)
{
    for (int64_t i = 0; value && i < value->count; i++)
        if (tensor_integer(value, i) != number)
            return false;
    return value;
}

static struct edge trivial(struct simplifier *s, const struct node *node)
{
    const char *op = node->op->name;
    if (!strcmp(op, "AddN"))
        return node->inputs_count == 1 ? node->inputs[0] : none;
    if (!strcmp(op, "ConcatV2"))
        return node->inputs_count == 2 && constant(s, node->inputs[1]) &&
                       shape_of(s, node->inputs[0])->rank > 0 &&
                       all_are(constant(s, node->inputs[1]), 0)
                   ? node->inputs[0]
                   : none;
    if (!strcmp(op, "Sum") || !strcmp(op, "Mean") || !strcmp(op, "Max")) {
        const struct tensor *axes = constant(s, node->inputs[1]);
        return axes && axes->shape.rank == 1 && axes->count == 0 ? node->inputs[0] : none;
    }
    bool tile = !strcmp(op, "Tile");
    if (!tile && strcmp(op, "Pad") && strcmp(op, "PadV2"))
        return none;
    const struct tensor *by = constant(s, node->inputs[1]);
    const struct shape *shape = shape_of(s, node->inputs[0]);
    bool fits = by && by->shape.rank == (tile ? 1 : 2) && by->shape.dims[0] == shape->rank &&
                (tile || by->shape.dims[1] == 2);
    return fits && all_are(by, tile) ? node->inputs[0] : none;
}

/* --- all of them --- */

static struct edge simpler(struct simplifier *s, const struct node *node)
{
    static struct edge (*const rules[])(struct simplifier *, const struct node *) = {
        neutral, involution, cast, transpose, reshape, trivial};
    for (int i = 0; i < ARRAY_LEN(rules); i++) {
        struct edge edge = rules[i](s, node);
        if (edge.from)
            return edge;
    }
    return none;
}

static bool may_go(const struct node *node)
{
    return node->inputs_count && node->outputs_count == 1 && !node->controls_count &&
           !node->fault && !(node->op->flags & OP_STATEFUL) && !optimise_is_flow(node);
}

bool optimise_arithmetic(struct pass *pass, struct error *err)
{
    struct simplifier s = {.order = graph_sorted(pass->subgraph->graph, err),
                           .by_shapes = pass->by_shapes};
    if (!s.order)
        return true; /* plan_new() will say what is wrong */
    rewrite_init(&s.rewrite, pass->subgraph);
    bool *needed = prune_needed(pass->subgraph);
    for (int i = 0; i < s.rewrite.count; i++) {
        struct node *node = graph_node(pass->subgraph->graph, s.order[i]);
        if (!needed[node->id] || !may_go(node))
            continue;
        struct edge to = simpler(&s, node);
        if (to.from && to.from->output_types[to.output] == node->output_types[0])
            rewrite_edge(&s.rewrite, (struct edge){node, 0}, to);
    }
    rewrite_apply(&s.rewrite);
    if (s.shapes_known)
        shapes_release(&s.shapes);
    free(needed);
    free(s.order);
    return true;
}
