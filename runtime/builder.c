/* builder.c - nodes with fresh names; the first failure sticks. */

#include "runtime/builder.h"
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

static const struct edge no_edge = {NULL, 0};

static struct edge add(struct builder *b, struct node_def *def, const char *op,
                       const char *name)
{
    if (b->failed)
        return no_edge;
    def->op = op_find(op);
    if (!def->op) {
        b->failed = true;
        fail(b->err, NOT_FOUND, "Op type not registered '%s' (node '%s')", op, name);
        return no_edge;
    }
    for (int i = 0; i < def->inputs_count; i++)
        assert(def->inputs[i].from);
    char *scoped = alloc_printf("%s%s", b->scope ? b->scope : "", name);
    def->name = graph_unique_name(b->graph, scoped);
    def->device = b->device;
    free(scoped);
    struct node *node = graph_add(b->graph, def, b->err);
    b->failed = !node;
    return (struct edge){node, 0};
}

struct edge builder_add(struct builder *b, const char *op, const char *name,
                        const struct edge *inputs, int inputs_count, const struct attr *attrs,
                        int attrs_count)
{
    struct node_def def = {.inputs = inputs,
                           .inputs_count = inputs_count,
                           .attrs = attrs,
                           .attrs_count = attrs_count};
    return add(b, &def, op, name);
}

struct edge builder_const(struct builder *b, const char *name, const struct tensor *value)
{
    return builder_add(b, "Const", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", value->dtype), attr_tensor("value", value)));
}

/* Adds a constant of `value` and gives up the reference to it. */
static struct edge take_const(struct builder *b, const char *name, bool made,
                              struct tensor *value)
{
    if (!made) {
        b->failed = true;
        return no_edge;
    }
    struct edge edge = builder_const(b, name, value);
    tensor_release(value);
    return edge;
}

struct edge builder_scalar(struct builder *b, const char *name, enum dtype dtype, double value)
{
    if (b->failed)
        return no_edge;
    struct tensor tensor;
    bool made = tensor_init_scalar(&tensor, dtype, value, b->err);
    return take_const(b, name, made, &tensor);
}

struct edge builder_ints(struct builder *b, const char *name, enum dtype dtype,
                         const int64_t *values, int count)
{
    if (b->failed)
        return no_edge;
    struct tensor tensor;
    bool made = tensor_init(&tensor, dtype, &SHAPE(count), b->err);
    for (int i = 0; made && i < count; i++) {
        if (dtype == I64)
            ((int64_t *)tensor.data)[i] = values[i]; /* a double would lose bits */
        else
            tensor_set_number(&tensor, i, (double)values[i]);
    }
    return take_const(b, name, made, &tensor);
}

struct edge builder_text(struct builder *b, const char *name, const char *text)
{
    if (b->failed)
        return no_edge;
    struct tensor tensor;
    bool made = tensor_init_string(&tensor, text, strlen(text), b->err);
    return take_const(b, name, made, &tensor);
}

struct node *builder_group(struct builder *b, const char *name, struct node *const *nodes,
                           int count)
{
    struct node_def def = {.controls = nodes, .controls_count = count};
    return add(b, &def, "NoOp", name).from;
}

bool builder_ok(const struct builder *b)
{
    return !b->failed;
}
