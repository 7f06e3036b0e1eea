/*
 * resource.h - state that outlives a step: variables (and, later in the tree, queues, tables
 * ...).
 *
 * Found by container, name and kind, in a struct resources that belongs to the task, so that
 * sessions share state (TensorFlow's rules: container "" is the task's job name or
 * "localhost").
 *
 * Resources are counted: the table holds one reference, a handle in a RESOURCE tensor another.
 */
#pragma once

#include <pthread.h>

#include "runtime/tensor.h"

struct error;
struct resource;
struct resources;

/* What all kinds have in common; embedded first in each of them. */
struct resource {
    const char *kind; /* "variable": compared as text */
    int references;   /* __atomic */
    int removed;      /* __atomic; no longer in its table: look it up again by name */
    void (*destroy)(struct resource *resource);
};

void resource_ref(struct resource *resource);
void resource_unref(struct resource *resource); /* NULL is fine */

/* An element of a RESOURCE tensor. */
struct resource_handle {
    struct resource *resource; /* owned; NULL until first made */
    char *container;           /* owned, like name */
    char *name;
};

/* An element of a VARIANT tensor is one too, without names: an object (list, dataset) that is
 * never changed while more than one reference to it exists. */

/*
 * There are two styles.  Behind a resource handle, a reader takes a snapshot: tensor_share() of
 * the value, which an update must not change (copy on write).  By reference (`by_ref`) a reader
 * sees later updates: they are made in place, so the variable alone owns its buffer besides
 * such readers, and who wants to keep the value must tensor_clone() it.  What another task maps
 * (buffer_shared.h) stays as it is, but for the end of an update that goes on as it is lent.
 */
struct variable {
    struct resource resource;
    pthread_mutex_t
        lock;         /* guards: value; an update in place need not hold it to write elements */
    bool by_ref;      /* __atomic; never reset */
    enum dtype dtype; /* variable_dtype(): the first assignment settles it */
    struct shape shape;  /* as declared, may be partly unknown */
    struct tensor value; /* DTYPE_NONE until first assigned */
    char *name;
};

static inline enum dtype variable_dtype(const struct variable *variable)
{
    return __atomic_load_n(&variable->dtype, __ATOMIC_RELAXED);
}

struct resources *resources_new(const char *default_container);
void resources_free(struct resources *resources); /* NULL is fine */

/* The container that `container` stands for ("" is the default one); borrowed. */
const char *resources_container(const struct resources *resources, const char *container);

/* Forgets all of a container ("" is the default one). */
void resources_clear(struct resources *resources, const char *container);

/*
 * The variable of that name, made without a value if there is none.  Counted: resource_unref()
 * it.  Fails with INVALID when one exists with another type or an incompatible shape.
 */
struct variable *resources_variable(struct resources *resources, const char *container,
                                    const char *name, enum dtype dtype,
                                    const struct shape *shape, struct error *err) CHECKED;

/* The same for one by reference, which shares no name with those behind handles. */
struct variable *resources_reference(struct resources *resources, const char *container,
                                     const char *name, enum dtype dtype,
                                     const struct shape *shape, struct error *err) CHECKED;

/* NULL if there is none of that kind; borrowed. */
struct resource *resources_find(struct resources *resources, const char *container,
                                const char *kind, const char *name);

/*
 * The resource of that name, made by `make` (called under the table's lock, so it must not look
 * into the table) if there is none.  Counted: resource_unref() it.  NULL if `make` failed.
 */
typedef struct resource *resource_make(const void *arg, struct error *err);
struct resource *resources_find_or_make(struct resources *resources, const char *container,
                                        const char *kind, const char *name, resource_make *make,
                                        const void *arg, struct error *err) CHECKED;

/* As resources_find(), but counted. */
struct resource *resources_get(struct resources *resources, const char *container,
                               const char *kind, const char *name);

/* Adds one and takes the reference; fails with EXISTS. */
bool resources_add(struct resources *resources, const char *container, const char *name,
                   struct resource *resource, struct error *err) CHECKED;

/*
 * Writes why there is none of that type (TensorFlow's name for it), in TensorFlow's words: a
 * container that nothing was made in does not exist.  A variable is made by its first value.
 */
void resources_missing(struct resources *resources, const char *container, const char *name,
                       const char *type, char *out, size_t size);

#define RESOURCE_VARIABLE_TYPE "N10tensorflow3VarE"

/* Removes it from the table; false if there was none. */
bool resources_remove(struct resources *resources, const char *container, const char *kind,
                      const char *name);

/* Calls `visit` for each resource of that kind, in the order in which they were added. */
void resources_each(struct resources *resources, const char *kind,
                    void (*visit)(struct resource *resource, void *arg), void *arg);

/* A variable without a value, in no table, owned by the caller. */
struct variable *variable_new(const char *name, enum dtype dtype, const struct shape *shape);

/*
 * Makes the variable's elements writable: by resource handle, copies them if they are shared
 * with a reader, so that snapshots stay as they were; by reference they always are. Fails with
 * PRECONDITION if there is no value, EXHAUSTED.
 */
bool variable_make_exclusive(struct variable *variable, struct error *err) CHECKED;
bool variable_make_exclusive_locked(struct variable *variable, struct error *err) CHECKED;

/*
 * Locks of several variables at once, each once, in the order of their addresses, so that two
 * who want the same ones do not wait for each other.  At most VARIABLE_LOCKS_MAX.
 */
#define VARIABLE_LOCKS_MAX 8
void variable_lock_all(struct variable *const *variables, int count);
void variable_unlock_all(struct variable *const *variables, int count);

/*
 * Gives the variable a value: shares it, or (by reference, and half of a tensor or less) copies
 * it into the variable's own memory.  Fails with EXHAUSTED.  Types and shapes are the caller's
 * affair.
 */
bool variable_assign(struct variable *variable, const struct tensor *value,
                     struct error *err) CHECKED;
