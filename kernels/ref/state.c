/*
 * state.c - variables: made, assigned, read.  One function serves the forms by reference and by
 * resource handle: kernel_variable() hides the difference.
 */

#include "kernels/ref/update.h"
#include "runtime/resource.h"

static bool is_ref(const struct kernel_call *call)
{
    return call->node->inputs_count > 0 && dtype_is_ref(call->node->input_types[0]);
}

/* The name a variable is found by: its shared name, else the node's. */
static const char *shared_name(const struct node *node)
{
    const char *name = node_attr_string(node, "shared_name", "");
    return name[0] ? name : node->name;
}

static struct variable *find(struct kernel_call *call, const char *name, struct error *err)
{
    const struct shape *shape = node_attr_shape(call->node, "shape");
    const struct shape unknown = SHAPE_UNKNOWN;
    return resources_variable(call->resources, node_attr_string(call->node, "container", ""),
                              name, (enum dtype)node_attr_type(call->node, "dtype"),
                              shape ? shape : &unknown, err);
}

static bool variable_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = find(call, shared_name(call->node), err);
    if (!variable)
        return false;
    kernel_output_ref(call, 0, variable);
    return true;
}

/* The handle names a variable that the first assignment makes; a name given is taken as it is.
 */
static bool var_handle_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable =
        find(call, node_attr_string(call->node, "shared_name", ""), err);
    struct tensor *out = variable ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    struct resource_handle *handle = out->data;
    resource_ref(&variable->resource);
    handle->resource = &variable->resource;
    return true;
}

/* A value of the same shape as the variable's, as far as that was declared. */
static bool check_shape(const struct variable *variable, const struct tensor *value,
                        struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    const struct shape *shape =
        variable->value.dtype != DTYPE_NONE ? &variable->value.shape : &variable->shape;
    if (shape_compatible(shape, &value->shape))
        return true;
    return fail(err, INVALID,
                "Assign requires shapes of both tensors to match: variable '%s' has shape %s, "
                "the value %s",
                variable->name, shape_text(shape, a, sizeof(a)),
                shape_text(&value->shape, b, sizeof(b)));
}

static bool assign_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    const struct tensor *value = kernel_in(call, 1);
    bool by_ref = is_ref(call);
    if (!variable)
        return false;
    if (variable->dtype != value->dtype)
        return fail(err, INVALID, "variable '%s' holds %s, it cannot be assigned %s",
                    variable->name, dtype_name(variable->dtype), dtype_name(value->dtype));
    if (node_attr_bool(call->node, "validate_shape", by_ref) &&
        !check_shape(variable, value, err))
        return false;
    if (by_ref)
        kernel_output_ref(call, 0, variable);
    return variable_assign(variable, value, err);
}

static bool read_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "dtype");
    pthread_mutex_lock(&variable->lock);
    enum dtype holds = variable->value.dtype;
    if (holds == dtype)
        kernel_output_share(call, 0, &variable->value, &variable->value.shape);
    pthread_mutex_unlock(&variable->lock);
    if (holds == DTYPE_NONE)
        return fail(err, PRECONDITION, "variable '%s' has no value: it was not initialized",
                    variable->name);
    return holds == dtype ||
           fail(err, INVALID, "variable '%s' holds %s, it cannot be read as %s", variable->name,
                dtype_name(holds), dtype_name(dtype));
}

static bool is_initialized_run(struct kernel_call *call, struct error *err)
{
    struct error ignored;
    struct variable *variable = kernel_variable(call, 0, &ignored);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    *(bool *)out->data = variable && variable->value.dtype != DTYPE_NONE;
    return true;
}

/* --- addition in place --- */

#define ADD_PLAIN(type)                                                                        \
    for (int64_t i = 0; i < target->count; i++)                                                \
    ((type *)target->data)[i] += sign * ((const type *)value->data)[i]

void kernel_add_into(struct tensor *target, const struct tensor *value, bool subtract)
{
    assert(target->dtype == value->dtype);
    assert(target->count == value->count);
    kernel_load_bits *load = kernel_load_bits_for(target->dtype);
    if (target->dtype == F32) {
        float sign = subtract ? -1 : 1;
        ADD_PLAIN(float);
    } else if (target->dtype == F64) {
        double sign = subtract ? -1 : 1;
        ADD_PLAIN(double);
    } else if (load) {
        kernel_store_bits *store = kernel_store_bits_for(target->dtype);
        for (int64_t i = 0; i < target->count; i++) {
            uint64_t a = load(target->data, i), b = load(value->data, i);
            store(target->data, i, subtract ? a - b : a + b);
        }
    } else {
        for (int64_t i = 0; i < target->count; i++) {
            double complex a = kernel_complex_at(target, i), b = kernel_complex_at(value, i);
            kernel_set_complex(target, i, subtract ? a - b : a + b);
        }
    }
}

static bool update(struct kernel_call *call, bool subtract, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    const struct tensor *value = kernel_in(call, 1);
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!variable)
        return false;
    if (variable->value.dtype == DTYPE_NONE)
        return fail(err, is_ref(call) ? PRECONDITION : NOT_FOUND,
                    "variable '%s' has no value: it was not initialized", variable->name);
    if (variable->value.dtype != value->dtype)
        return fail(err, INVALID, "variable '%s' holds %s, it cannot be updated with %s",
                    variable->name, dtype_name(variable->value.dtype),
                    dtype_name(value->dtype));
    if (!shape_equal(&variable->value.shape, &value->shape))
        return fail(err, INVALID, "variable '%s' has shape %s, the value to add %s",
                    variable->name, shape_text(&variable->value.shape, a, sizeof(a)),
                    shape_text(&value->shape, b, sizeof(b)));
    pthread_mutex_lock(&variable->lock);
    bool ok = variable_make_exclusive_locked(variable, err);
    if (ok)
        kernel_add_into(&variable->value, value, subtract);
    pthread_mutex_unlock(&variable->lock);
    if (ok && is_ref(call))
        kernel_output_ref(call, 0, variable);
    return ok;
}

static bool add_run(struct kernel_call *call, struct error *err)
{
    return update(call, false, err);
}

static bool sub_run(struct kernel_call *call, struct error *err)
{
    return update(call, true, err);
}

static bool count_up_to_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    int64_t limit = node_attr_int(call->node, "limit", 0);
    if (!variable)
        return false;
    if (variable->value.dtype == DTYPE_NONE)
        return fail(err, PRECONDITION, "variable '%s' has no value: it was not initialized",
                    variable->name);
    if (variable->value.shape.rank != 0)
        return fail(err, INVALID, "variable '%s' must be a scalar to count", variable->name);
    pthread_mutex_lock(&variable->lock);
    int64_t before = tensor_integer(&variable->value, 0);
    bool ok =
        before < limit || fail(err, OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
    ok = ok && variable_make_exclusive_locked(variable, err);
    if (ok)
        kernel_store_bits_for(variable->value.dtype)(variable->value.data, 0,
                                                     (uint64_t)before + 1);
    pthread_mutex_unlock(&variable->lock);
    struct tensor *out = ok ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (!out)
        return false;
    kernel_store_bits_for(out->dtype)(out->data, 0, (uint64_t)before);
    return true;
}

static bool variable_shape_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    if (variable->value.dtype == DTYPE_NONE)
        return fail(err, PRECONDITION, "variable '%s' has no value: it was not initialized",
                    variable->name);
    const struct shape *shape = &variable->value.shape;
    struct tensor *out = kernel_output(call, 0, &SHAPE(shape->rank), err);
    if (!out)
        return false;
    for (int d = 0; d < shape->rank; d++)
        kernel_store_bits_for(out->dtype)(out->data, d, (uint64_t)shape->dims[d]);
    return true;
}

/* Destroying leaves the handle; the variable behind it is without value, as if never made. */
static bool destroy_run(struct kernel_call *call, struct error *err)
{
    struct error missing;
    struct variable *variable = kernel_variable(call, 0, &missing);
    if (variable) {
        pthread_mutex_lock(&variable->lock);
        bool had_value = variable->value.dtype != DTYPE_NONE;
        tensor_release(&variable->value);
        pthread_mutex_unlock(&variable->lock);
        if (had_value)
            return true;
    }
    return node_attr_bool(call->node, "ignore_lookup_error", true) ||
           fail(err, NOT_FOUND, "node '%s': there is no resource to destroy", call->node->name);
}

#define STATE(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_variable_v2_ref = STATE("VariableV2", variable_run);
const struct kernel kernel_variable_ref = STATE("Variable", variable_run);
const struct kernel kernel_var_handle_op_ref = STATE("VarHandleOp", var_handle_run);
const struct kernel kernel_assign_ref = STATE("Assign", assign_run);
const struct kernel kernel_assign_variable_op_ref = STATE("AssignVariableOp", assign_run);
const struct kernel kernel_read_variable_op_ref = STATE("ReadVariableOp", read_run);
const struct kernel kernel_is_variable_initialized_ref =
    STATE("IsVariableInitialized", is_initialized_run);
const struct kernel kernel_var_is_initialized_op_ref =
    STATE("VarIsInitializedOp", is_initialized_run);
const struct kernel kernel_assign_add_ref = STATE("AssignAdd", add_run);
const struct kernel kernel_assign_sub_ref = STATE("AssignSub", sub_run);
const struct kernel kernel_assign_add_variable_op_ref = STATE("AssignAddVariableOp", add_run);
const struct kernel kernel_assign_sub_variable_op_ref = STATE("AssignSubVariableOp", sub_run);
const struct kernel kernel_count_up_to_ref = STATE("CountUpTo", count_up_to_run);
const struct kernel kernel_resource_count_up_to_ref =
    STATE("ResourceCountUpTo", count_up_to_run);
const struct kernel kernel_variable_shape_ref = STATE("VariableShape", variable_shape_run);
const struct kernel kernel_destroy_resource_op_ref = STATE("DestroyResourceOp", destroy_run);
