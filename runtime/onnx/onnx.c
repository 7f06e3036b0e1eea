/*
 * onnx.c - from a graph of TensorFlow's ops to an ONNX model: what is needed, what is constant,
 * then node by node.
 */

#include "runtime/onnx/onnx.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/model/model.h"
#include "runtime/onnx/internal.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "runtime/signature.h"

/* --- the table --- */

static const struct onnx_row *const tables[] = {
    onnx_math_rows,    onnx_layout_rows, onnx_slice_rows, onnx_reduce_rows,
    onnx_product_rows, onnx_conv_rows,   onnx_pool_rows,  onnx_recurrent_rows};

const struct onnx_row *onnx_row_of(const struct onnx *o)
{
    for (int t = 0; t < ARRAY_LEN(tables); t++) {
        for (const struct onnx_row *row = tables[t]; row->op; row++) {
            if (!strcmp(row->op, o->node->op->name))
                return row;
        }
    }
    return NULL;
}

/* --- what is needed --- */

static bool is_op(const struct node *node, const char *name)
{
    return !strcmp(node->op->name, name);
}

/* Marks what the signature's outputs are computed from, up to its inputs. */
static bool *needed_nodes(struct onnx *o)
{
    const struct onnx_source *source = o->source;
    size_t count = (size_t)graph_count(source->graph);
    bool *needed = alloc_array(count, sizeof(*needed));
    int *stack = alloc_array(count, sizeof(*stack)), depth = 0;
    struct edge edge;
    for (int i = 0; !o->failed && i < source->signature->outputs_count; i++) {
        if (!graph_edge(source->graph, source->signature->outputs[i].tensor, &edge, o->err)) {
            o->failed = true;
        } else if (!needed[edge.from->id]) {
            needed[edge.from->id] = true;
            stack[depth++] = edge.from->id;
        }
    }
    while (depth) {
        const struct node *node = graph_node(source->graph, stack[--depth]);
        for (int i = 0; i < node->inputs_count; i++) {
            int id = node->inputs[i].from->id;
            if (!needed[id]) {
                needed[id] = true;
                stack[depth++] = id;
            }
        }
    }
    free(stack);
    return needed;
}

/* Whether it gives the same in every run, whatever is fed. */
static bool is_constant(struct onnx *o, const struct node *node)
{
    bool reads = is_op(node, "VarHandleOp") || is_op(node, "ReadVariableOp");
    if ((node->op->flags & OP_STATEFUL && !reads) || is_op(node, "Placeholder") ||
        is_op(node, "PlaceholderWithDefault"))
        return false;
    for (int i = 0; i < node->inputs_count; i++) {
        if (!onnx_value(o, node->inputs[i])->is_constant)
            return false;
    }
    return true;
}

/* --- values of constants --- */

static const struct tensor *variable_value(struct onnx *o, const struct node *handle)
{
    const struct onnx_source *source = o->source;
    for (int i = 0; i < source->variables_count; i++) {
        if (!strcmp(source->variables[i].name, handle->name) && source->values[i].dtype)
            return &source->values[i];
    }
    return NULL;
}

struct wanted {
    struct edge *edges; /* to be computed by the session */
    int count, capacity;
};

/* Notes the value of a constant edge, or that it has to be computed. */
static void want(struct onnx *o, struct wanted *wanted, struct edge edge)
{
    struct onnx_value *value = onnx_value(o, edge);
    const struct node *node = edge.from;
    const struct tensor *known = NULL;
    if (value->constant.dtype || !value->is_constant)
        return;
    if (is_op(node, "Const"))
        known = node_attr_tensor(node, "value");
    else if (is_op(node, "VarHandleOp"))
        known = variable_value(o, node); /* of an op that reads it itself */
    else if (is_op(node, "ReadVariableOp"))
        known = variable_value(o, node->inputs[0].from);
    if (known) {
        tensor_share(&value->constant, known);
        return;
    }
    wanted->edges = alloc_grow(wanted->edges, wanted->count, &wanted->capacity, sizeof(edge));
    wanted->edges[wanted->count++] = edge;
}

static void compute(struct onnx *o, const struct wanted *wanted)
{
    size_t count = (size_t)wanted->count;
    const char **names = alloc_array(count + 1, sizeof(*names));
    struct tensor *values = alloc_array(count + 1, sizeof(*values));
    for (int i = 0; i < wanted->count; i++)
        names[i] = arena_printf(o->arena, "%s:%d", wanted->edges[i].from->name,
                                wanted->edges[i].output);
    const struct session_run run = {.fetches = names, .fetches_count = wanted->count};
    o->failed = count && !session_run(o->source->session, &run, values, o->err);
    for (int i = 0; !o->failed && i < wanted->count; i++) {
        struct onnx_value *value = onnx_value(o, wanted->edges[i]);
        if (value->constant.dtype)
            tensor_release(&values[i]); /* wanted twice */
        else
            value->constant = values[i];
    }
    free(values);
    free(names);
}

static void find_constants(struct onnx *o, const int *order, const bool *needed)
{
    const struct graph *graph = o->source->graph;
    struct wanted wanted = {0};
    struct edge edge;
    for (int i = 0; i < graph_count(graph); i++) {
        struct node *node = graph_node(graph, order[i]);
        bool constant = needed[node->id] && is_constant(o, node);
        for (int k = 0; constant && k < node->outputs_count; k++)
            onnx_value(o, (struct edge){node, k})->is_constant = true;
        for (int k = 0; needed[node->id] && !constant && k < node->inputs_count; k++)
            want(o, &wanted, node->inputs[k]);
    }
    for (int i = 0; i < o->source->signature->outputs_count; i++) {
        if (graph_edge(graph, o->source->signature->outputs[i].tensor, &edge, o->err))
            want(o, &wanted, edge);
    }
    compute(o, &wanted);
    free(wanted.edges);
}

/* --- the whole --- */

static void take_inputs(struct onnx *o)
{
    const struct signature *signature = o->source->signature;
    for (int i = 0; !o->failed && i < signature->inputs_count; i++) {
        struct edge edge;
        o->failed = !graph_edge(o->source->graph, signature->inputs[i].tensor, &edge, o->err);
        if (!o->failed)
            onnx_value(o, edge)->plain = signature->inputs[i].name;
    }
}

static void convert_node(struct onnx *o, const struct node *node)
{
    o->node = node;
    if (onnx_value(o, (struct edge){(struct node *)(uintptr_t)node, 0})->plain)
        return; /* an input of the model */
    const struct onnx_row *row = onnx_row_of(o);
    if (row)
        row->convert(o);
    else
        onnx_refuse(o, "it has no counterpart in ONNX here");
}

static void give_outputs(struct onnx *o)
{
    const struct signature *signature = o->source->signature;
    for (int i = 0; !o->failed && i < signature->outputs_count; i++) {
        struct edge edge;
        o->failed = !graph_edge(o->source->graph, signature->outputs[i].tensor, &edge, o->err);
        if (o->failed)
            return;
        /* As the only input of a node would be had. */
        const struct node reader = {
            .name = edge.from->name, .op = edge.from->op, .inputs = &edge, .inputs_count = 1};
        o->node = &reader;
        const char *x = onnx_in(o, 0);
        onnx_add(o, "Identity", ONNX_IN(x), ONNX_NO_ATTRS);
        if (!o->failed)
            o->nodes[o->nodes_count - 1].outputs[0] = signature->outputs[i].name;
        o->node = NULL;
    }
}

static bool names_differ(const struct signature *signature, struct error *err)
{
    for (int i = 0; i < signature->inputs_count; i++) {
        for (int k = 0; k < signature->outputs_count; k++) {
            if (!strcmp(signature->inputs[i].name, signature->outputs[k].name))
                return fail(err, INVALID,
                            "an input and an output of the model are both called \"%s\"",
                            signature->inputs[i].name);
        }
    }
    return true;
}

static void convert_all(struct onnx *o, const int *order)
{
    const struct graph *graph = o->source->graph;
    shapes_infer(&o->shapes, graph, order, graph_count(graph));
    for (int i = 0; i < graph_count(graph); i++)
        o->values_count += graph_node(graph, i)->outputs_count;
    o->values = alloc_array((size_t)o->values_count + 1, sizeof(*o->values));
    bool *needed = needed_nodes(o);
    if (!o->failed)
        find_constants(o, order, needed);
    take_inputs(o);
    for (int i = 0; !o->failed && i < graph_count(graph); i++) {
        const struct node *node = graph_node(graph, order[i]);
        if (needed[node->id] && !is_constant(o, node))
            convert_node(o, node);
    }
    o->node = NULL;
    if (!o->failed)
        give_outputs(o);
    free(needed);
}

static void release(struct onnx *o)
{
    for (int i = 0; i < o->values_count; i++)
        tensor_release(&o->values[i].constant);
    for (int i = 0; i < o->initializers_count; i++)
        tensor_release(&o->initializers[i].value);
    free(o->values);
    free(o->nodes);
    free(o->initializers);
    map_free(o->initializers_by_content);
    shapes_release(&o->shapes);
    arena_free(o->arena);
}

bool onnx_convert(const struct onnx_source *source, struct str *out, struct error *err)
{
    int *order = graph_sorted(source->graph, err);
    if (!order)
        return false;
    if (!names_differ(source->signature, err)) {
        free(order);
        return false;
    }
    struct onnx o = {.source = source,
                     .arena = arena_new(),
                     .initializers_by_content = map_new(),
                     .err = err};
    convert_all(&o, order);
    bool ok = !o.failed && onnx_pack(&o, out, err);
    release(&o);
    free(order);
    return ok;
}
