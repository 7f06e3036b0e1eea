/*
 * state.c - variables: found, assigned, read.  One function serves the forms by reference and
 * by resource handle: kernel_variable() hides the difference.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/ref/update.h"
#include "runtime/resource.h"

/* --- the variable of a node, found once and looked up again when it was removed --- */

struct state {
    pthread_mutex_t lock;   /* guards: both below */
    struct resource *found; /* counted */
    struct tensor handle;   /* to it, where the node gives one */
};

static bool state_prepare(const struct node *node, void **state, struct error *err)
{
    (void)node;
    (void)err;
    struct state *made = alloc_bytes(sizeof(*made));
    pthread_mutex_init(&made->lock, NULL);
    *state = made;
    return true;
}

static void state_release(void *state)
{
    struct state *made = state;
    resource_unref(made->found);
    tensor_release(&made->handle);
    pthread_mutex_destroy(&made->lock);
    free(made);
}

/* A variable by reference has a shape from birth, and with it its value where that is empty. */
static struct resource *make_ref(const void *arg, struct error *err)
{
    const struct node *node = arg;
    const struct shape *shape = node_attr_shape(node, "shape");
    enum dtype dtype = (enum dtype)node_attr_type(node, "dtype");
    const struct shape scalar = SHAPE_SCALAR;
    if (!shape || shape->rank < 0)
        shape = &scalar;
    struct variable *variable = variable_new(node->name, dtype, shape);
    if (shape_count(shape) == 0 && !tensor_init(&variable->value, dtype, shape, err)) {
        resource_unref(&variable->resource);
        return NULL;
    }
    return &variable->resource;
}

static struct resource *make_variable(const void *arg, struct error *err)
{
    (void)err;
    const struct node *node = arg;
    const struct shape *shape = node_attr_shape(node, "shape");
    return &variable_new(node_attr_string(node, "shared_name", ""),
                         (enum dtype)node_attr_type(node, "dtype"),
                         shape ? shape : &SHAPE_UNKNOWN)
                ->resource;
}

/* Those by reference and those behind handles do not share names. */
static struct resource *find_or_make(struct kernel_call *call, const char *name, bool ref,
                                     struct error *err)
{
    const char *container = node_attr_string(call->node, "container", "");
    return ref ? resources_find_or_make(call->resources, container, "reference", name, make_ref,
                                        call->node, err)
               : resources_find_or_make(call->resources, container, "variable", name,
                                        make_variable, call->node, err);
}

/* Borrowed from the state; NULL when it cannot be had. */
static struct variable *find_locked(struct kernel_call *call, const char *name, bool ref,
                                    struct error *err)
{
    struct state *state = call->state;
    if (state->found && !__atomic_load_n(&state->found->removed, __ATOMIC_ACQUIRE))
        return (struct variable *)state->found;
    struct resource *found = find_or_make(call, name, ref, err);
    if (!found)
        return NULL;
    resource_unref(state->found);
    tensor_release(&state->handle);
    state->found = found;
    return (struct variable *)found;
}

/* By its shared name, else the node's. */
static bool variable_run(struct kernel_call *call, struct error *err)
{
    struct state *state = call->state;
    const char *name = node_attr_string(call->node, "shared_name", "");
    pthread_mutex_lock(&state->lock);
    struct variable *variable = find_locked(call, *name ? name : call->node->name, true, err);
    if (variable)
        resource_ref(&variable->resource);
    pthread_mutex_unlock(&state->lock);
    if (!variable)
        return false;
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "dtype");
    enum dtype holds = variable_dtype(variable);
    if (holds != dtype) {
        resource_unref(&variable->resource);
        return fail(err, INTERNAL,
                    "Output 0 of type %s_ref does not match declared output type %s_ref",
                    dtype_name(holds), dtype_name(dtype));
    }
    kernel_hold(call, &variable->resource);
    kernel_output_ref(call, 0, variable);
    return true;
}

static bool make_handle(struct kernel_call *call, struct variable *variable, const char *name,
                        struct tensor *handle, struct error *err)
{
    if (!tensor_init(handle, RESOURCE, &SHAPE_SCALAR, err))
        return false;
    resource_ref(&variable->resource);
    *(struct resource_handle *)handle->data = (struct resource_handle){
        .resource = &variable->resource,
        .container = alloc_text(node_attr_string(call->node, "container", "")),
        .name = alloc_text(name),
    };
    return true;
}

/* The handle names a variable that the first assignment gives a value; a name is taken as it
 * is. */
static bool var_handle_run(struct kernel_call *call, struct error *err)
{
    struct state *state = call->state;
    const char *name = node_attr_string(call->node, "shared_name", "");
    pthread_mutex_lock(&state->lock);
    struct variable *variable = find_locked(call, name, false, err);
    bool ok = variable && (state->handle.dtype != DTYPE_NONE ||
                           make_handle(call, variable, name, &state->handle, err));
    if (ok)
        kernel_output_share(call, 0, &state->handle, &SHAPE_SCALAR);
    pthread_mutex_unlock(&state->lock);
    return ok;
}

/* --- values --- */

/* A value of the same shape as the variable's; behind a handle the first may have any. */
static bool check_shape_locked(const struct variable *variable, const struct tensor *value,
                               bool ref, struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    bool has = variable->value.dtype != DTYPE_NONE;
    const struct shape *shape = has ? &variable->value.shape : &variable->shape;
    if ((!has && !ref) || shape_compatible(shape, &value->shape))
        return true;
    return fail(err, INVALID,
                ref ? "Assign requires shapes of both tensors to match. lhs shape= %s rhs "
                      "shape= %s"
                    : "Trying to assign to variable with tensor with wrong shape. Expected %s "
                      "got %s",
                shape_text(shape, a, sizeof(a)), shape_text(&value->shape, b, sizeof(b)));
}

/* The first assignment settles the type. */
static bool check_type_locked(struct variable *variable, const struct tensor *value,
                              struct error *err)
{
    if (variable->value.dtype == DTYPE_NONE)
        __atomic_store_n(&variable->dtype, value->dtype, __ATOMIC_RELAXED);
    return variable->dtype == value->dtype ||
           fail(err, INVALID,
                "Trying to assign variable %s with wrong dtype. Expected %s got %s",
                variable->name, dtype_name(variable->dtype), dtype_name(value->dtype));
}

static bool check_assign(struct kernel_call *call, struct variable *variable, struct error *err)
{
    const struct tensor *value = kernel_in(call, 1);
    bool ref = kernel_is_ref(call);
    pthread_mutex_lock(&variable->lock);
    bool ok = check_type_locked(variable, value, err) &&
              (!node_attr_bool(call->node, "validate_shape", ref) ||
               check_shape_locked(variable, value, ref, err));
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

static bool assign_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable || !check_assign(call, variable, err))
        return false;
    if (kernel_is_ref(call))
        kernel_output_ref(call, 0, variable);
    return variable_assign(variable, kernel_in(call, 1), err);
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
    if (holds == DTYPE_NONE) {
        char missing[512];
        resources_missing(call->resources, kernel_container(call, 0), variable->name,
                          RESOURCE_VARIABLE_TYPE, missing, sizeof(missing));
        return fail(err, PRECONDITION,
                    "Could not find variable %s. This could mean that the variable has been "
                    "deleted. In TF1, it can also mean the variable is uninitialized. Debug "
                    "info: container=%s, status error message=%s",
                    variable->name, kernel_container(call, 0), missing);
    }
    return holds == dtype ||
           fail(err, INVALID, "Trying to read variable %s with wrong dtype. Expected %s got %s",
                variable->name, dtype_name(dtype), dtype_name(holds));
}

static bool has_value(struct variable *variable)
{
    pthread_mutex_lock(&variable->lock);
    bool has = variable->value.dtype != DTYPE_NONE;
    pthread_mutex_unlock(&variable->lock);
    return has;
}

static bool is_initialized_run(struct kernel_call *call, struct error *err)
{
    struct error ignored;
    struct variable *variable = kernel_variable(call, 0, &ignored);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!out)
        return false;
    *(bool *)out->data = variable && has_value(variable);
    return true;
}

static bool variable_shape_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    struct tensor value;
    if (!variable || !kernel_snapshot(call, variable, variable_dtype(variable), &value, err))
        return false;
    int rank = value.shape.rank;
    struct tensor *out = kernel_output(call, 0, &SHAPE(rank), err);
    for (int d = 0; out && d < rank; d++)
        kernel_store_bits_for(out->dtype)(out->data, d, (uint64_t)value.shape.dims[d]);
    tensor_release(&value);
    return out != NULL;
}

/* How readers and writers share memory is decided here without being told. */
static bool disable_copy_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    return has_value(variable) ||
           fail(err, PRECONDITION, "Could not find variable %s.", variable->name);
}

/* --- destroying --- */

/* The handle stays; the variable behind it is without value, as if never made. */
static bool drop_value(struct variable *variable)
{
    pthread_mutex_lock(&variable->lock);
    struct tensor value = variable->value;
    variable->value = (struct tensor){0};
    pthread_mutex_unlock(&variable->lock);
    bool had = value.dtype != DTYPE_NONE;
    tensor_release(&value);
    return had;
}

/* Of any other kind: it is forgotten, and goes when nobody holds it any more. */
static bool drop_resource(struct kernel_call *call, const struct resource_handle *handle)
{
    return handle->resource && handle->name &&
           resources_remove(call->resources, handle->container ? handle->container : "",
                            handle->resource->kind, handle->name);
}

static bool destroy_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *tensor = kernel_in(call, 0);
    if (tensor->dtype != RESOURCE || tensor->count != 1)
        return fail(err, INVALID, "input 0 is not a resource handle");
    const struct resource_handle *handle = tensor->data;
    bool other = handle->resource && strcmp(handle->resource->kind, "variable") != 0;
    struct error missing;
    struct variable *variable = other ? NULL : kernel_variable(call, 0, &missing);
    bool dropped = other ? drop_resource(call, handle) : variable && drop_value(variable);
    return dropped || node_attr_bool(call->node, "ignore_lookup_error", true) ||
           fail(err, NOT_FOUND, "Resource %s/%s/<unknown> does not exist.",
                kernel_container(call, 0), handle->name ? handle->name : "");
}

#define FINDS(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .prepare = state_prepare, .release = state_release,        \
        .run = run_                                                                            \
    }
#define STATE(name_, run_)                                                                     \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_variable_v2_ref = FINDS("VariableV2", variable_run);
const struct kernel kernel_variable_ref = FINDS("Variable", variable_run);
const struct kernel kernel_var_handle_op_ref = FINDS("VarHandleOp", var_handle_run);
const struct kernel kernel_assign_ref = STATE("Assign", assign_run);
const struct kernel kernel_assign_variable_op_ref = STATE("AssignVariableOp", assign_run);
const struct kernel kernel_read_variable_op_ref = STATE("ReadVariableOp", read_run);
const struct kernel kernel_is_variable_initialized_ref =
    STATE("IsVariableInitialized", is_initialized_run);
const struct kernel kernel_var_is_initialized_op_ref =
    STATE("VarIsInitializedOp", is_initialized_run);
const struct kernel kernel_variable_shape_ref = STATE("VariableShape", variable_shape_run);
const struct kernel kernel_disable_copy_on_read_ref =
    STATE("DisableCopyOnRead", disable_copy_run);
const struct kernel kernel_destroy_resource_op_ref = STATE("DestroyResourceOp", destroy_run);
