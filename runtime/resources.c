/* resources.c - the table of state by container, kind and name. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/resource.h"

struct resources {
    pthread_mutex_t lock; /* guards: table */
    struct map *table;    /* key_text() -> struct resource */
    char *default_container;
};

/* Parts are parted by a byte that no name holds. */
static const char *key_text(const struct resources *resources, struct str *out,
                            const char *container, const char *kind, const char *name)
{
    str_printf(out, "%s\x1f%s\x1f%s", *container ? container : resources->default_container,
               kind, name);
    return str_text(out);
}

struct resources *resources_new(const char *default_container)
{
    struct resources *resources = alloc_bytes(sizeof(*resources));
    pthread_mutex_init(&resources->lock, NULL);
    resources->table = map_new();
    resources->default_container = alloc_text(default_container);
    return resources;
}

const char *resources_container(const struct resources *resources, const char *container)
{
    return *container ? container : resources->default_container;
}

static void drop(struct resource *resource)
{
    __atomic_store_n(&resource->removed, 1, __ATOMIC_RELEASE);
    resource_unref(resource);
}

void resources_free(struct resources *resources)
{
    if (!resources)
        return;
    for (int i = 0; i < map_count(resources->table); i++)
        drop(map_value(resources->table, i));
    map_free(resources->table);
    free(resources->default_container);
    pthread_mutex_destroy(&resources->lock);
    free(resources);
}

void resources_clear(struct resources *resources, const char *container)
{
    struct str prefix = {0};
    str_printf(&prefix, "%s\x1f", *container ? container : resources->default_container);

    pthread_mutex_lock(&resources->lock);
    struct map *old = resources->table;
    resources->table = map_new();
    for (int i = 0; i < map_count(old); i++) {
        if (strncmp(map_key(old, i), prefix.data, prefix.size) == 0)
            drop(map_value(old, i));
        else
            map_set(resources->table, map_key(old, i), map_value(old, i));
    }
    pthread_mutex_unlock(&resources->lock);
    map_free(old);
    str_release(&prefix);
}

struct resource *resources_find(struct resources *resources, const char *container,
                                const char *kind, const char *name)
{
    struct str key = {0};
    const char *text = key_text(resources, &key, container, kind, name);
    pthread_mutex_lock(&resources->lock);
    struct resource *found = map_find(resources->table, text);
    pthread_mutex_unlock(&resources->lock);
    str_release(&key);
    return found;
}

struct resource *resources_get(struct resources *resources, const char *container,
                               const char *kind, const char *name)
{
    struct str key = {0};
    const char *text = key_text(resources, &key, container, kind, name);
    pthread_mutex_lock(&resources->lock);
    struct resource *found = map_find(resources->table, text);
    if (found)
        resource_ref(found);
    pthread_mutex_unlock(&resources->lock);
    str_release(&key);
    return found;
}

struct resource *resources_find_or_make(struct resources *resources, const char *container,
                                        const char *kind, const char *name, resource_make *make,
                                        const void *arg, struct error *err)
{
    struct str key = {0};
    const char *text = key_text(resources, &key, container, kind, name);
    pthread_mutex_lock(&resources->lock);
    struct resource *found = map_find(resources->table, text);
    if (!found) {
        found = make(arg, err);
        if (found)
            map_set(resources->table, text, found);
    }
    if (found)
        resource_ref(found);
    pthread_mutex_unlock(&resources->lock);
    str_release(&key);
    return found;
}

bool resources_add(struct resources *resources, const char *container, const char *name,
                   struct resource *resource, struct error *err)
{
    struct str key = {0};
    const char *text = key_text(resources, &key, container, resource->kind, name);
    pthread_mutex_lock(&resources->lock);
    bool taken = map_has(resources->table, text);
    if (!taken)
        map_set(resources->table, text, resource);
    pthread_mutex_unlock(&resources->lock);
    str_release(&key);
    if (taken)
        return fail(err, EXISTS, "Resource %s/%s (%s) exists already",
                    *container ? container : resources->default_container, name,
                    resource->kind);
    return true;
}

/* All of a container that TensorFlow would have made, or may have; counted. */
static struct resource **list_container(struct resources *resources, const char *container,
                                        int *count)
{
    struct str prefix = {0};
    str_printf(&prefix, "%s\x1f", *container ? container : resources->default_container);
    pthread_mutex_lock(&resources->lock);
    int all = map_count(resources->table);
    struct resource **list = alloc_array((size_t)all + 1, sizeof(*list));
    *count = 0;
    for (int i = 0; i < all; i++)
        if (!strncmp(map_key(resources->table, i), prefix.data, prefix.size)) {
            list[*count] = map_value(resources->table, i);
            resource_ref(list[(*count)++]);
        }
    pthread_mutex_unlock(&resources->lock);
    str_release(&prefix);
    return list;
}

static bool is_made(struct resource *resource)
{
    struct variable *variable = (struct variable *)resource;
    if (strcmp(resource->kind, "variable") != 0)
        return true;
    pthread_mutex_lock(&variable->lock);
    bool has_value = variable->value.dtype != DTYPE_NONE;
    pthread_mutex_unlock(&variable->lock);
    return has_value;
}

void resources_missing(struct resources *resources, const char *container, const char *name,
                       const char *type, char *out, size_t size)
{
    int count;
    bool any = false;
    struct resource **list = list_container(resources, container, &count);
    for (int i = 0; i < count; i++) {
        any = any || is_made(list[i]);
        resource_unref(list[i]);
    }
    free(list);
    container = resources_container(resources, container);
    if (any)
        snprintf(out, size, "Resource %s/%s/%s does not exist.", container, name, type);
    else
        snprintf(out, size, "Container %s does not exist. (Could not find resource: %s/%s)",
                 container, container, name);
}

bool resources_remove(struct resources *resources, const char *container, const char *kind,
                      const char *name)
{
    struct str key = {0};
    const char *text = key_text(resources, &key, container, kind, name);
    pthread_mutex_lock(&resources->lock);
    struct resource *removed = map_remove(resources->table, text);
    pthread_mutex_unlock(&resources->lock);
    str_release(&key);
    if (removed)
        drop(removed);
    return removed;
}

void resources_each(struct resources *resources, const char *kind,
                    void (*visit)(struct resource *resource, void *arg), void *arg)
{
    pthread_mutex_lock(&resources->lock);
    int count = map_count(resources->table);
    struct resource **found = alloc_array((size_t)count, sizeof(struct resource *));
    for (int i = 0; i < count; i++) {
        found[i] = map_value(resources->table, i);
        resource_ref(found[i]);
    }
    pthread_mutex_unlock(&resources->lock);

    for (int i = 0; i < count; i++) {
        if (!strcmp(found[i]->kind, kind))
            visit(found[i], arg);
        resource_unref(found[i]);
    }
    free(found);
}

/* Whether the variable that is there suits who asks for it. */
static bool check_shared(const struct variable *variable, const char *name, enum dtype dtype,
                         const struct shape *shape, struct error *err)
{
    char first[SHAPE_TEXT_BYTES], second[SHAPE_TEXT_BYTES];
    enum dtype holds = variable_dtype(variable);
    if (holds != dtype)
        return fail(err, INVALID,
                    "Trying to share variable %s with different dtypes: %s and %s", name,
                    dtype_name(holds), dtype_name(dtype));
    return shape_compatible(&variable->shape, shape) ||
           fail(err, INVALID,
                "Trying to share variable %s, but specified shape %s does not match its "
                "shape %s",
                name, shape_text(shape, first, sizeof(first)),
                shape_text(&variable->shape, second, sizeof(second)));
}

struct wanted {
    const char *name;
    enum dtype dtype;
    const struct shape *shape;
};

static struct resource *make_variable(const void *arg, struct error *err)
{
    (void)err;
    const struct wanted *wanted = arg;
    return &variable_new(wanted->name, wanted->dtype, wanted->shape)->resource;
}

static struct variable *find_or_make(struct resources *resources, const char *container,
                                     const char *kind, const struct wanted *wanted,
                                     struct error *err)
{
    struct variable *variable = (struct variable *)resources_find_or_make(
        resources, container, kind, wanted->name, make_variable, wanted, err);
    if (!variable || check_shared(variable, wanted->name, wanted->dtype, wanted->shape, err))
        return variable;
    resource_unref(&variable->resource);
    return NULL;
}

struct variable *resources_variable(struct resources *resources, const char *container,
                                    const char *name, enum dtype dtype,
                                    const struct shape *shape, struct error *err)
{
    const struct wanted wanted = {name, dtype, shape};
    return find_or_make(resources, container, "variable", &wanted, err);
}

struct variable *resources_reference(struct resources *resources, const char *container,
                                     const char *name, enum dtype dtype,
                                     const struct shape *shape, struct error *err)
{
    const struct wanted wanted = {name, dtype, shape};
    return find_or_make(resources, container, "reference", &wanted, err);
}
