/*
 * session_tensor.c - values kept between runs, under a handle that the client passes around.
 *
 * A handle is "node;number;device", the number never given twice by a session.  What a node
 * keeps ends with its session.
 */

#include "kernels/list.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/resource.h"

#define KEPT_KIND "session tensor"
#define COUNTER_KIND "session tensor count"

struct kept {
    struct resource resource; /* first */
    struct tensor tensor;
};

static void kept_destroy(struct resource *resource)
{
    struct kept *kept = (struct kept *)resource;
    tensor_release(&kept->tensor);
    free(kept);
}

/* --- keeping --- */

/* Of a node that gives handles: which it gave. */
struct keeper {
    pthread_mutex_t lock; /* guards: all below */
    struct resources *resources;
    char **names;
    int names_count;
    int names_capacity;
};

static bool keeper_prepare(const struct node *node, void **state, struct error *err)
{
    (void)node;
    (void)err;
    struct keeper *keeper = alloc_bytes(sizeof(*keeper));
    pthread_mutex_init(&keeper->lock, NULL);
    *state = keeper;
    return true;
}

static void keeper_release(void *state)
{
    struct keeper *keeper = state;
    for (int i = 0; i < keeper->names_count; i++) {
        resources_remove(keeper->resources, "", KEPT_KIND, keeper->names[i]);
        free(keeper->names[i]);
    }
    free(keeper->names);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}

/* When the list is full: those that were deleted meanwhile need no place in it. */
static void forget_deleted(struct keeper *keeper, struct resources *resources)
{
    int left = 0;
    for (int i = 0; i < keeper->names_count; i++) {
        if (resources_find(resources, "", KEPT_KIND, keeper->names[i]))
            keeper->names[left++] = keeper->names[i];
        else
            free(keeper->names[i]);
    }
    keeper->names_count = left;
}

/* `name` is the keeper's. */
static void remember(struct keeper *keeper, struct resources *resources, char *name)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->resources = resources;
    if (keeper->names_count == keeper->names_capacity)
        forget_deleted(keeper, resources);
    keeper->names = alloc_grow(keeper->names, keeper->names_count, &keeper->names_capacity,
                               sizeof(*keeper->names));
    keeper->names[keeper->names_count++] = name;
    pthread_mutex_unlock(&keeper->lock);
}

static bool output_name(struct kernel_call *call, struct kept *kept, const char *name,
                        struct error *err)
{
    if (call->node->output_types[0] == RESOURCE)
        return kernel_output_resource(call, 0, &kept->resource, "", name, err);
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (out)
        tensor_set_string(out, 0, name, strlen(name));
    return out;
}

/* How many handles a session gave. */
struct counter {
    struct resource resource; /* first */
    uint64_t next;            /* __atomic */
};

static void counter_destroy(struct resource *resource)
{
    free(resource);
}

static struct resource *counter_make(const void *arg, struct error *err)
{
    (void)arg;
    (void)err;
    struct counter *counter = alloc_bytes(sizeof(*counter));
    counter->resource =
        (struct resource){.kind = COUNTER_KIND, .references = 1, .destroy = counter_destroy};
    return &counter->resource;
}

static bool next_number(struct kernel_call *call, uint64_t *number, struct error *err)
{
    struct resource *found =
        resources_find_or_make(call->resources, "", COUNTER_KIND, "", counter_make, NULL, err);
    if (!found)
        return false;
    *number = __atomic_fetch_add(&((struct counter *)found)->next, 1, __ATOMIC_RELAXED);
    resource_unref(found);
    return true;
}

static bool handle_run(struct kernel_call *call, struct error *err)
{
    uint64_t number;
    if (!next_number(call, &number, err))
        return false;
    struct kept *kept = alloc_bytes(sizeof(*kept));
    kept->resource =
        (struct resource){.kind = KEPT_KIND, .references = 1, .destroy = kept_destroy};
    if (!tensor_clone(&kept->tensor, call->in[0], err)) {
        resource_unref(&kept->resource);
        return false;
    }
    const struct device *device = call->node->device;
    char *name = alloc_printf("%s;%llu;%s", call->node->name, (unsigned long long)number,
                              device ? device->name : "");
    bool ok = output_name(call, kept, name, err);
    if (ok && resources_add(call->resources, "", name, &kept->resource, err)) {
        remember(call->state, call->resources, name);
        return true;
    }
    resource_unref(&kept->resource);
    free(name);
    return false;
}

/* --- by handle --- */

/* The handle in input 0, owned; NULL if it is no scalar, which `called` must be. */
static char *name_in(struct kernel_call *call, const char *called, struct error *err)
{
    const struct tensor *handle = call->in[0];
    if (handle->shape.rank != 0)
        return fail_null(err, INVALID, "%s must be scalar", called);
    const struct tensor_string *name = tensor_strings(handle);
    return alloc_text_n(name->size ? name->data : "", name->size);
}

static bool tensor_run(struct kernel_call *call, struct error *err)
{
    char *name = name_in(call, "handle", err);
    if (!name)
        return false;
    struct kept *kept = (struct kept *)resources_get(call->resources, "", KEPT_KIND, name);
    int wanted = call->node->output_types[0];
    bool ok = kept;
    if (!kept)
        ok = fail(err, INVALID, "The tensor with handle '%s' is not in the session store.",
                  name);
    else if (kept->tensor.dtype != (enum dtype)wanted)
        ok = kernel_fail_output_type(call, 0, kept->tensor.dtype, err);
    else
        kernel_output_share(call, 0, &kept->tensor, &kept->tensor.shape);
    if (kept)
        resource_unref(&kept->resource);
    free(name);
    return ok;
}

static bool delete_run(struct kernel_call *call, struct error *err)
{
    char *name = name_in(call, "`handle`", err);
    bool ok = name &&
              (resources_remove(call->resources, "", KEPT_KIND, name) ||
               fail(err, INVALID,
                    "Failed to delete a tensor with handle '%s' in the session store.", name));
    free(name);
    return ok;
}

const struct kernel kernel_get_session_handle = {.op = "GetSessionHandle",
                                                 .device = CPU,
                                                 .prepare = keeper_prepare,
                                                 .release = keeper_release,
                                                 .run = handle_run};
const struct kernel kernel_get_session_handle_v2 = {.op = "GetSessionHandleV2",
                                                    .device = CPU,
                                                    .prepare = keeper_prepare,
                                                    .release = keeper_release,
                                                    .run = handle_run};
const struct kernel kernel_get_session_tensor = {
    .op = "GetSessionTensor", .device = CPU, .type_attr = "dtype", .run = tensor_run};
const struct kernel kernel_delete_session_tensor = {
    .op = "DeleteSessionTensor", .device = CPU, .run = delete_run};
