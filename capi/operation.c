/* operation.c - what an operation tells of itself. */

#include "base/alloc.h"
#include "capi/internal.h"
#include "runtime/op.h"

const char *ty_operation_name(const struct ty_operation *operation)
{
    return capi_node(operation)->name;
}

const char *ty_operation_op(const struct ty_operation *operation)
{
    return capi_node(operation)->op->name;
}

const char *ty_operation_device(const struct ty_operation *operation)
{
    return capi_node(operation)->requested_device;
}

int ty_operation_outputs(const struct ty_operation *operation)
{
    return capi_node(operation)->outputs_count;
}

enum ty_dtype ty_operation_output_type(const struct ty_operation *operation, int index)
{
    assert(index >= 0 && index < capi_node(operation)->outputs_count);
    return (enum ty_dtype)dtype_base(capi_node(operation)->output_types[index]);
}

int ty_operation_inputs(const struct ty_operation *operation)
{
    return capi_node(operation)->inputs_count;
}

enum ty_dtype ty_operation_input_type(const struct ty_operation *operation, int index)
{
    assert(index >= 0 && index < capi_node(operation)->inputs_count);
    return (enum ty_dtype)dtype_base(capi_node(operation)->input_types[index]);
}

struct ty_output ty_operation_input(const struct ty_operation *operation, int index)
{
    assert(index >= 0 && index < capi_node(operation)->inputs_count);
    struct edge edge = capi_node(operation)->inputs[index];
    return (struct ty_output){capi_operation(edge.from), edge.output};
}

int ty_operation_control_inputs(const struct ty_operation *operation)
{
    return capi_node(operation)->controls_count;
}

struct ty_operation *ty_operation_control_input(const struct ty_operation *operation, int index)
{
    assert(index >= 0 && index < capi_node(operation)->controls_count);
    return capi_operation(capi_node(operation)->controls[index]);
}

/* --- attributes --- */

static const struct attr *find(const struct ty_operation *operation, const char *name,
                               enum attr_kind kind, struct ty_status *status)
{
    struct error err;
    const struct node *node = capi_node(operation);
    const struct attr *attr = node_attr(node, name);
    bool ok = attr || fail(&err, NOT_FOUND, "node '%s' (%s) has no attribute '%s'", node->name,
                           node->op->name, name);
    if (ok && (attr->kind != kind || attr->is_list))
        ok = fail(&err, INVALID, "node '%s' (%s): attribute '%s' is of another kind",
                  node->name, node->op->name, name);
    capi_result(status, ok, &err);
    return ok ? attr : NULL;
}

int64_t ty_operation_attr_int(const struct ty_operation *operation, const char *name,
                              struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_INT, status);
    return attr ? attr->ints[0] : 0;
}

float ty_operation_attr_float(const struct ty_operation *operation, const char *name,
                              struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_FLOAT, status);
    return attr ? attr->floats[0] : 0;
}

bool ty_operation_attr_bool(const struct ty_operation *operation, const char *name,
                            struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_BOOL, status);
    return attr && attr->bools[0];
}

enum ty_dtype ty_operation_attr_type(const struct ty_operation *operation, const char *name,
                                     struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_TYPE, status);
    return (enum ty_dtype)(attr ? attr->types[0] : 0);
}

const char *ty_operation_attr_string(const struct ty_operation *operation, const char *name,
                                     size_t *size, struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_STRING, status);
    *size = attr ? attr->strings[0].size : 0;
    return attr ? attr->strings[0].data : NULL;
}

struct ty_tensor *ty_operation_attr_tensor(const struct ty_operation *operation,
                                           const char *name, struct ty_status *status)
{
    const struct attr *attr = find(operation, name, ATTR_TENSOR, status);
    struct error err;
    struct tensor copy;
    if (!attr)
        return NULL;
    bool ok = tensor_clone(&copy, &attr->tensors[0], &err);
    capi_result(status, ok, &err);
    if (!ok)
        return NULL;
    struct ty_tensor *made = alloc_bytes(sizeof(*made));
    made->tensor = copy;
    return made;
}
