/*
 * temporary.c - variables that live within one run, from TemporaryVariable to
 * DestroyTemporaryVariable, which gives their value.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "kernels/ref/numbers.h"
#include "runtime/resource.h"

#define TEMPORARY "temporary variable"

/* A name in use.  A node that runs again, in another iteration of a loop, may use its own. */
struct temporary {
    struct resource resource;
    pthread_mutex_t lock; /* guards: node, alive */
    const struct node *node;
    int alive;
};

static void temporary_destroy(struct resource *resource)
{
    struct temporary *temporary = (struct temporary *)resource;
    pthread_mutex_destroy(&temporary->lock);
    free(temporary);
}

static struct resource *temporary_make(const void *arg, struct error *err)
{
    (void)arg;
    (void)err;
    struct temporary *temporary = alloc_bytes(sizeof(*temporary));
    temporary->resource =
        (struct resource){.kind = TEMPORARY, .references = 1, .destroy = temporary_destroy};
    pthread_mutex_init(&temporary->lock, NULL);
    return &temporary->resource;
}

static const char *name_of(const struct node *node)
{
    const char *name = node_attr_string(node, "var_name", "");
    return *name ? name : node->name;
}

static bool take_name(struct kernel_call *call, const char *name, struct error *err)
{
    struct temporary *temporary = (struct temporary *)resources_find_or_make(
        kernel_step_resources(call), "", TEMPORARY, name, temporary_make, NULL, err);
    if (!temporary)
        return false;
    pthread_mutex_lock(&temporary->lock);
    bool ok = temporary->alive == 0 || temporary->node == call->node;
    if (ok) {
        temporary->node = call->node;
        temporary->alive++;
    }
    pthread_mutex_unlock(&temporary->lock);
    resource_unref(&temporary->resource);
    return ok || fail(err, EXISTS, "the temporary variable '%s' exists already", name);
}

static bool give_name(struct kernel_call *call, const char *name, struct error *err)
{
    struct temporary *temporary =
        (struct temporary *)resources_get(kernel_step_resources(call), "", TEMPORARY, name);
    bool ok = false;
    if (temporary) {
        pthread_mutex_lock(&temporary->lock);
        ok = temporary->alive > 0;
        temporary->alive -= ok;
        pthread_mutex_unlock(&temporary->lock);
        resource_unref(&temporary->resource);
    }
    return ok || fail(err, NOT_FOUND, "the temporary variable '%s' does not exist", name);
}

static bool temporary_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const struct shape *shape = node_attr_shape(node, "shape");
    const char *name = name_of(node);
    struct tensor value;
    if (!take_name(call, name, err) ||
        !tensor_init(&value, (enum dtype)node_attr_type(node, "dtype"),
                     shape ? shape : &SHAPE_SCALAR, err))
        return false;
    kernel_zero(&value, 0, value.count);
    struct variable *variable = variable_new(name, value.dtype, &value.shape);
    variable->value = value;
    kernel_hold(call, &variable->resource);
    kernel_output_ref(call, 0, variable);
    return true;
}

static bool destroy_run(struct kernel_call *call, struct error *err)
{
    struct variable *variable = kernel_variable(call, 0, err);
    if (!variable || !give_name(call, node_attr_string(call->node, "var_name", ""), err))
        return false;
    pthread_mutex_lock(&variable->lock);
    struct tensor value = variable->value;
    variable->value = (struct tensor){0};
    pthread_mutex_unlock(&variable->lock);
    if (value.dtype == DTYPE_NONE)
        return fail(err, NOT_FOUND, "the temporary variable '%s' was destroyed before",
                    variable->name);
    kernel_output_take(call, 0, &value);
    return true;
}

const struct kernel kernel_temporary_variable_ref = {
    .op = "TemporaryVariable", .device = CPU, .run = temporary_run};
const struct kernel kernel_destroy_temporary_variable_ref = {
    .op = "DestroyTemporaryVariable", .device = CPU, .run = destroy_run};
