/* handle.c - from a node to its resource, made once. */

#include "kernels/state/handle.h"

#include "base/alloc.h"

/* The state of such a kernel: one per session and node. */
struct handle {
    const struct handle_class *class;
    void *spec;
    char *container;
    char *name;
    bool own;             /* the node's alone: ends with it */
    struct variable *ref; /* holds container and name, for an output that is a reference */

    pthread_mutex_t lock;        /* guards: all below */
    struct resource *resource;   /* NULL until it first ran */
    struct resources *resources; /* the table that it is in */
};

/* --- life --- */

static bool check_names(const char *container, const char *shared_name, struct error *err)
{
    if (shared_name[0] == '_')
        return fail(err, INVALID, "shared_name cannot start with '_':%s", shared_name);
    for (const char *c = container; *c; c++) {
        bool word =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!word && (c == container || !strchr("._-/", *c)) && *c != '.')
            return fail(err, INVALID, "container contains invalid characters: %s", container);
    }
    return true;
}

/* Borrowed names become the node's own; one that nobody else has gets a number. */
static void set_names(struct handle *handle, const struct node *node, const char *shared_name)
{
    static uint64_t count; /* __atomic */
    handle->container = alloc_text(node_attr_string(node, "container", ""));
    bool by_node =
        handle->class->by_node_name && node_attr_bool(node, "use_node_name_sharing", false);
    handle->own = !shared_name[0] && !by_node;
    if (handle->own) {
        uint64_t number = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        handle->name = alloc_printf("_%llu_%s", (unsigned long long)number, node->name);
    } else {
        handle->name = alloc_text(shared_name[0] ? shared_name : node->name);
    }
}

bool kernel_handle_prepare(const struct handle_class *class, const struct node *node,
                           void **state, struct error *err)
{
    const char *shared_name = node_attr_string(node, "shared_name", "");
    void *spec = NULL;
    if (!check_names(node_attr_string(node, "container", ""), shared_name, err) ||
        (class->read && !class->read(node, &spec, err)))
        return false;
    struct handle *handle = alloc_bytes(sizeof(*handle));
    handle->class = class;
    handle->spec = spec;
    set_names(handle, node, shared_name);
    if (dtype_is_ref(node->output_types[0]))
        handle->ref = variable_new(node->name, STRING, &SHAPE(2));
    pthread_mutex_init(&handle->lock, NULL);
    *state = handle;
    return true;
}

void kernel_handle_release(void *state)
{
    struct handle *handle = state;
    if (handle->own && handle->resource)
        resources_remove(handle->resources, handle->container, handle->class->kind,
                         handle->name);
    resource_unref(handle->resource);
    if (handle->ref)
        resource_unref(&handle->ref->resource);
    if (handle->class->free)
        handle->class->free(handle->spec);
    pthread_mutex_destroy(&handle->lock);
    free(handle->container);
    free(handle->name);
    free(handle);
}

/* --- running --- */

struct first_run {
    const struct handle *handle;
    struct kernel_call *call;
};

static struct resource *make(const void *arg, struct error *err)
{
    const struct first_run *run = arg;
    return run->handle->class->make(run->handle->spec, run->handle->name, run->call, err);
}

/* The one made before, counted; NULL if there is none, or it was removed from its table. */
static struct resource *made_before(struct handle *handle)
{
    pthread_mutex_lock(&handle->lock);
    struct resource *resource = handle->resource;
    if (resource && __atomic_load_n(&resource->removed, __ATOMIC_ACQUIRE))
        resource = NULL;
    if (resource)
        resource_ref(resource);
    pthread_mutex_unlock(&handle->lock);
    return resource;
}

static struct resource *find(struct kernel_call *call, struct handle *handle, struct error *err)
{
    struct resource *resource = made_before(handle);
    if (resource)
        return resource;
    resource =
        resources_find_or_make(call->resources, handle->container, handle->class->kind,
                               handle->name, make, &(struct first_run){handle, call}, err);
    if (!resource)
        return NULL;
    if (handle->class->matches &&
        !handle->class->matches(resource, handle->spec, call->node, err)) {
        resource_unref(resource);
        return NULL;
    }
    resource_ref(resource); /* the handle's */
    pthread_mutex_lock(&handle->lock);
    struct resource *old = handle->resource;
    handle->resource = resource;
    handle->resources = call->resources;
    pthread_mutex_unlock(&handle->lock);
    resource_unref(old);
    return resource;
}

/* The two names, as a tensor that is referred to. */
static bool set_ref(struct kernel_call *call, struct handle *handle, struct error *err)
{
    struct variable *ref = handle->ref;
    const char *container = resources_container(call->resources, handle->container);
    bool ok = true;
    pthread_mutex_lock(&ref->lock);
    if (ref->value.dtype == DTYPE_NONE) {
        ok = tensor_init(&ref->value, STRING, &SHAPE(2), err);
        if (ok) {
            tensor_set_string(&ref->value, 0, container, strlen(container));
            tensor_set_string(&ref->value, 1, handle->name, strlen(handle->name));
        }
    }
    pthread_mutex_unlock(&ref->lock);
    if (ok)
        kernel_output_ref(call, 0, ref);
    return ok;
}

bool kernel_handle_run(struct kernel_call *call, struct error *err)
{
    struct handle *handle = call->state;
    struct resource *resource = find(call, handle, err);
    if (!resource)
        return false;
    bool ok =
        handle->ref
            ? set_ref(call, handle, err)
            : kernel_output_resource(call, 0, resource,
                                     resources_container(call->resources, handle->container),
                                     handle->name, err);
    resource_unref(resource);
    return ok;
}

/* --- following --- */

static struct resource *get_by_names(struct kernel_call *call, int index, const char *kind,
                                     struct error *err)
{
    const struct tensor *names = call->in[index];
    if (!names || names->dtype != STRING || names->count != 2)
        return fail_null(err, INVALID, "input %d is not the handle of a %s", index, kind);
    const struct tensor_string *strings = tensor_strings(names);
    char *container = alloc_text_n(strings[0].data, strings[0].size);
    char *name = alloc_text_n(strings[1].data, strings[1].size);
    struct resource *resource = resources_get(call->resources, container, kind, name);
    if (!resource)
        fail(err, NOT_FOUND, "Resource %s/%s (%s) does not exist", container, name, kind);
    free(container);
    free(name);
    return resource;
}

struct resource *kernel_handle_get(struct kernel_call *call, int index, const char *kind,
                                   struct error *err)
{
    if (dtype_is_ref(call->node->input_types[index]) ||
        (call->in[index] && call->in[index]->dtype == STRING))
        return get_by_names(call, index, kind, err);
    return kernel_resource(call, index, kind, err);
}
