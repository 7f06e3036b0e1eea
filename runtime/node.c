/* node.c - attributes of a node by name, with a fallback where there is none. */

#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

const struct attr *node_attr(const struct node *node, const char *name)
{
    for (int i = 0; i < node->attrs_count; i++)
        if (!strcmp(node->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

/* The attribute if it is a single value of that kind. */
static const struct attr *single(const struct node *node, const char *name, enum attr_kind kind)
{
    const struct attr *attr = node_attr(node, name);
    return attr && attr->kind == kind && !attr->is_list && attr->count == 1 ? attr : NULL;
}

int64_t node_attr_int(const struct node *node, const char *name, int64_t fallback)
{
    const struct attr *attr = single(node, name, ATTR_INT);
    return attr ? attr->ints[0] : fallback;
}

float node_attr_float(const struct node *node, const char *name, float fallback)
{
    const struct attr *attr = single(node, name, ATTR_FLOAT);
    return attr ? attr->floats[0] : fallback;
}

bool node_attr_bool(const struct node *node, const char *name, bool fallback)
{
    const struct attr *attr = single(node, name, ATTR_BOOL);
    return attr ? attr->bools[0] : fallback;
}

int node_attr_type(const struct node *node, const char *name)
{
    const struct attr *attr = single(node, name, ATTR_TYPE);
    return attr ? attr->types[0] : DTYPE_NONE;
}

const char *node_attr_string(const struct node *node, const char *name, const char *fallback)
{
    const struct attr *attr = single(node, name, ATTR_STRING);
    return attr ? attr->strings[0].data : fallback;
}

const int64_t *node_attr_ints(const struct node *node, const char *name, int *count)
{
    const struct attr *attr = node_attr(node, name);
    bool is_ints = attr && attr->kind == ATTR_INT && attr->is_list;
    *count = is_ints ? attr->count : 0;
    return is_ints ? attr->ints : NULL;
}

const struct shape *node_attr_shape(const struct node *node, const char *name)
{
    const struct attr *attr = single(node, name, ATTR_SHAPE);
    return attr ? attr->shapes : NULL;
}

const struct tensor *node_attr_tensor(const struct node *node, const char *name)
{
    const struct attr *attr = single(node, name, ATTR_TENSOR);
    return attr ? attr->tensors : NULL;
}

const struct tensor *node_constant(const struct node *node)
{
    if (strcmp(node->op->name, "Const") != 0 || node->fault || node->outputs_count != 1)
        return NULL;
    const struct tensor *value = node_attr_tensor(node, "value");
    return value && value->dtype == dtype_base(node->output_types[0]) ? value : NULL;
}
