/* shapes.c - shape functions, node after node. */

#include "runtime/shapes.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/internal.h"
#include "runtime/op.h"

enum { INPUTS_MAX = 64 };

struct shape *shapes_at(const struct shapes *shapes, struct edge edge)
{
    return &shapes->of[shapes->first_output[edge.from->id] + edge.output];
}

static void forget(struct shape *outputs, int count)
{
    for (int i = 0; i < count; i++)
        outputs[i] = SHAPE_UNKNOWN;
}

static void infer_node(struct shapes *shapes, const struct node *node)
{
    struct shape *outputs = &shapes->of[shapes->first_output[node->id]];
    if (node->op == &prune_arg) {
        const struct shape *declared = node_attr_shape(node, "shape");
        if (declared)
            outputs[0] = *declared;
        return;
    }
    const struct shape *shape = node_attr_shape(node, "shape");
    if (shapes->declared && shape && node->outputs_count == 1 &&
        dtype_is_ref(node->output_types[0]))
        outputs[0] = *shape;
    if (!node->op->infer || node->fault || node->inputs_count > INPUTS_MAX ||
        optimise_is_flow(node))
        return;
    struct shape inputs[INPUTS_MAX];
    const struct tensor *constants[INPUTS_MAX] = {0};
    for (int i = 0; i < node->inputs_count; i++) {
        const struct node *from = node->inputs[i].from;
        inputs[i] = *shapes_at(shapes, node->inputs[i]);
        if (!strcmp(from->op->name, "Const"))
            constants[i] = node_attr_tensor(from, "value");
    }
    struct infer infer = {node, inputs, constants, outputs};
    struct error err; /* comes again when the node runs */
    if (!node->op->infer(&infer, &err))
        forget(outputs, node->outputs_count);
}

void shapes_infer(struct shapes *shapes, const struct graph *graph, const int *order, int count)
{
    shapes->first_output = alloc_array((size_t)count + 1, sizeof(int));
    for (int i = 0; i < count; i++)
        shapes->first_output[i + 1] =
            shapes->first_output[i] + graph_node(graph, i)->outputs_count;
    shapes->of = alloc_array((size_t)shapes->first_output[count] + 1, sizeof(struct shape));
    forget(shapes->of, shapes->first_output[count]);
    for (int i = 0; i < count; i++)
        infer_node(shapes, graph_node(graph, order[i]));
}

void shapes_release(struct shapes *shapes)
{
    free(shapes->first_output);
    free(shapes->of);
}
