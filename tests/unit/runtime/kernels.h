/*
 * kernels.h - a few plain kernels for tests of the runtime, which must not depend on kernels/.
 */
#pragma once

#include <unistd.h>

#include "base/error.h"
#include "runtime/kernel.h"
#include "runtime/resource.h"

static int kernels_runs;     /* how many kernels ran */
static int kernels_reused;   /* how often Neg worked in place */
static int kernels_prepared; /* how often a kernel was prepared */

static bool run_identity(struct kernel_call *call, struct error *err)
{
    (void)err;
    __atomic_add_fetch(&kernels_runs, 1, __ATOMIC_RELAXED);
    kernel_output_share(call, 0, call->in[0], &call->in[0]->shape);
    return true;
}

static bool run_add(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0), *y = kernel_in(call, 1);
    __atomic_add_fetch(&kernels_runs, 1, __ATOMIC_RELAXED);
    if (x->count != y->count)
        return fail(err, INVALID, "Incompatible shapes");
    struct tensor *out = kernel_output(call, 0, &x->shape, err);
    for (int64_t i = 0; out && i < out->count; i++)
        tensor_f32_mut(out)[i] = tensor_f32(x)[i] + tensor_f32(y)[i];
    return out;
}

static bool run_neg(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    const float *from = tensor_f32(x);
    struct tensor *out = kernel_output_reuse(call, 0, 0, &x->shape, err);
    if (!out)
        return false;
    if (out->data == (const void *)from)
        __atomic_add_fetch(&kernels_reused, 1, __ATOMIC_RELAXED);
    for (int64_t i = 0; i < out->count; i++)
        tensor_f32_mut(out)[i] = -from[i];
    return true;
}

/* Sums what is in scratch memory that it filled. */
static bool run_relu(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    float *scratch = kernel_scratch(call, (size_t)x->count * sizeof(float), err);
    float *more = kernel_scratch(call, 100000, err);
    struct tensor *out = kernel_output(call, 0, &x->shape, err);
    if (!scratch || !more || !out)
        return false;
    memset(more, 0xff, 100000);
    for (int64_t i = 0; i < x->count; i++)
        scratch[i] = tensor_f32(x)[i] > 0 ? tensor_f32(x)[i] : 0;
    memcpy(out->data, scratch, (size_t)x->count * sizeof(float));
    return true;
}

static bool prepare_variable(const struct node *node, void **state, struct error *err)
{
    (void)err;
    kernels_prepared++;
    *state = strdup(node->name);
    return true;
}

static bool run_variable(struct kernel_call *call, struct error *err)
{
    const struct shape *shape = node_attr_shape(call->node, "shape");
    struct variable *variable =
        resources_variable(call->resources, "", call->state, F32, shape, err);
    if (!variable)
        return false;
    kernel_hold(call, &variable->resource);
    kernel_output_ref(call, 0, variable);
    return true;
}

static bool run_assign(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    kernel_output_ref(call, 0, variable);
    return variable_assign(variable, kernel_in(call, 1), err);
}

static bool run_assign_add(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = variable_make_exclusive_locked(variable, err);
    for (int64_t i = 0; ok && i < variable->value.count; i++)
        tensor_f32_mut(&variable->value)[i] += tensor_f32(call->in[1])[i];
    pthread_mutex_unlock(&variable->lock);
    kernel_output_ref(call, 0, variable);
    return ok;
}

static bool run_handle(struct kernel_call *call, struct error *err)
{
    struct tensor handle;
    if (!tensor_init(&handle, RESOURCE, &SHAPE_SCALAR, err))
        return false;
    *(struct resource_handle *)handle.data =
        (struct resource_handle){.container = strdup(""), .name = strdup(call->state)};
    kernel_output_take(call, 0, &handle);
    return true;
}

static bool run_read(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    kernel_output_share(call, 0, &variable->value, &variable->value.shape);
    pthread_mutex_unlock(&variable->lock);
    return true;
}

static bool run_assign_handle(struct kernel_call *call, struct error *err)
{
    const struct resource_handle *handle = call->in[0]->data;
    struct variable *variable =
        resources_variable(call->resources, "", handle->name, F32, &SHAPE_UNKNOWN, err);
    bool ok = variable && variable_assign(variable, kernel_in(call, 1), err);
    if (variable)
        resource_unref(&variable->resource);
    return ok;
}

/* Copy on write, so what was read before stays as it was. */
static bool run_add_handle(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable)
        return false;
    pthread_mutex_lock(&variable->lock);
    bool ok = variable_make_exclusive_locked(variable, err);
    for (int64_t i = 0; ok && i < variable->value.count; i++)
        tensor_f32_mut(&variable->value)[i] += tensor_f32(call->in[1])[i];
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

static const struct kernel *const kernels_for_tests[] = {
    &(const struct kernel){.op = "Identity", .run = run_identity},
    &(const struct kernel){.op = "AddV2", .dtypes = BIT(F32), .run = run_add},
    &(const struct kernel){.op = "Neg", .dtypes = BIT(F32), .run = run_neg},
    &(const struct kernel){.op = "Relu", .dtypes = BIT(F32), .run = run_relu},
    &(const struct kernel){
        .op = "VariableV2", .prepare = prepare_variable, .release = free, .run = run_variable},
    &(const struct kernel){.op = "Assign", .run = run_assign},
    &(const struct kernel){.op = "AssignAdd", .run = run_assign_add},
    &(const struct kernel){
        .op = "VarHandleOp", .prepare = prepare_variable, .release = free, .run = run_handle},
    &(const struct kernel){.op = "ReadVariableOp", .run = run_read},
    &(const struct kernel){.op = "AssignVariableOp", .run = run_assign_handle},
    &(const struct kernel){.op = "AssignAddVariableOp", .run = run_add_handle},
    NULL,
};
