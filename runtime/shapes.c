/* shapes.c - shape functions, node after node. */

#include "runtime/shapes.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"

enum { INPUTS_FEW = 16 };

struct shape *shapes_at(const struct shapes *shapes, struct edge edge)
{
    return &shapes->of[shapes->first_output[edge.from->id] + edge.output];
}

static void forget(struct shape *outputs, int count)
{
    for (int i = 0; i < count; i++)
        outputs[i] = SHAPE_UNKNOWN;
}

static bool infer_node(struct shapes *shapes, const struct node *node, struct error *err)
{
    struct shape *outputs = &shapes->of[shapes->first_output[node->id]];
    if (node->op == &prune_arg) {
        const struct shape *declared = node_attr_shape(node, "shape");
        if (declared)
            outputs[0] = *declared;
        return true;
    }
    const struct shape *shape = node_attr_shape(node, "shape");
    if (shapes->declared && shape && node->outputs_count == 1 &&
        dtype_is_ref(node->output_types[0]))
        outputs[0] = *shape;
    if (!node->op->infer || node->fault || optimise_is_flow(node))
        return true;
    struct shape few[INPUTS_FEW], *inputs = few;
    const struct tensor *few_constants[INPUTS_FEW] = {0}, **constants = few_constants;
    bool many = node->inputs_count > INPUTS_FEW;
    if (many) {
        inputs = alloc_array((size_t)node->inputs_count, sizeof(*inputs));
        constants = alloc_array((size_t)node->inputs_count, sizeof(*constants));
    }
    for (int i = 0; i < node->inputs_count; i++) {
        const struct node *from = node->inputs[i].from;
        inputs[i] =
            from->id < shapes->count ? *shapes_at(shapes, node->inputs[i]) : SHAPE_UNKNOWN;
        constants[i] = node_constant(from);
    }
    struct infer infer = {node, inputs, constants, outputs};
    bool ok = node->op->infer(&infer, err);
    if (!ok)
        forget(outputs, node->outputs_count);
    if (many) {
        free(inputs);
        free(constants);
    }
    return ok;
}

void shapes_infer(struct shapes *shapes, const struct graph *graph, const int *order, int count)
{
    shapes->first_output = alloc_array((size_t)count + 1, sizeof(int));
    for (int i = 0; i < count; i++)
        shapes->first_output[i + 1] =
            shapes->first_output[i] + graph_node(graph, i)->outputs_count;
    shapes->of = alloc_array((size_t)shapes->first_output[count] + 1, sizeof(struct shape));
    forget(shapes->of, shapes->first_output[count]);
    shapes->count = count;
    struct error ignored; /* comes again when the node runs */
    for (int i = 0; i < count; i++)
        (void)infer_node(shapes, graph_node(graph, order[i]), &ignored);
}

bool shapes_extend(struct shapes *shapes, const struct graph *graph, struct error *err)
{
    if (!shapes->count)
        shapes->first_output =
            alloc_grow(shapes->first_output, 0, &shapes->nodes_capacity, sizeof(int));
    while (shapes->count < graph_count(graph)) {
        const struct node *node = graph_node(graph, shapes->count);
        int first = shapes->first_output[shapes->count];
        shapes->first_output = alloc_grow(shapes->first_output, ++shapes->count,
                                          &shapes->nodes_capacity, sizeof(int));
        shapes->first_output[shapes->count] = first + node->outputs_count;
        for (int i = 0; i < node->outputs_count; i++) {
            shapes->of = alloc_grow(shapes->of, first + i, &shapes->outputs_capacity,
                                    sizeof(*shapes->of));
            shapes->of[first + i] = SHAPE_UNKNOWN;
        }
        if (!infer_node(shapes, node, err))
            return false;
    }
    return true;
}

void shapes_release(struct shapes *shapes)
{
    free(shapes->first_output);
    free(shapes->of);
}
