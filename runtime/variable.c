/* variable.c - the value of a variable: who may write it, and who sees that. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/buffer_shared.h"
#include "runtime/resource.h"

enum { COPIED_MIN = 4 }; /* by other tasks, before it is moved to where they map it */

static void variable_destroy(struct resource *resource)
{
    struct variable *variable = (struct variable *)resource;
    tensor_release(&variable->value);
    pthread_mutex_destroy(&variable->lock);
    free(variable->name);
    free(variable);
}

struct variable *variable_new(const char *name, enum dtype dtype, const struct shape *shape)
{
    struct variable *variable = alloc_bytes(sizeof(*variable));
    variable->resource =
        (struct resource){.kind = "variable", .references = 1, .destroy = variable_destroy};
    pthread_mutex_init(&variable->lock, NULL);
    variable->dtype = dtype;
    variable->shape = *shape;
    variable->name = alloc_text(name);
    return variable;
}

/* Other tasks copy it again and again, and could map it. */
static bool is_better_shared(const struct tensor *value)
{
    return value->buffer && value->buffer->file <= 0 &&
           __atomic_load_n(&value->buffer->copied, __ATOMIC_RELAXED) >= COPIED_MIN &&
           buffer_is_shared_at(tensor_bytes(value));
}

static bool is_shared(const struct tensor *value)
{
    return value->buffer && value->buffer->file > 0;
}

/* Whether its elements may be written where they are.  By reference its readers are to see
 * that, other tasks excepted. */
static bool may_change(const struct variable *variable)
{
    const struct tensor *value = &variable->value;
    if (!__atomic_load_n(&variable->by_ref, __ATOMIC_RELAXED))
        return tensor_is_exclusive(value);
    return !value->buffer || !__atomic_load_n(&value->buffer->borrowers, __ATOMIC_ACQUIRE);
}

bool variable_make_exclusive_locked(struct variable *variable, struct error *err)
{
    struct tensor *value = &variable->value;
    if (value->dtype == DTYPE_NONE)
        return fail(err, PRECONDITION, "Attempting to use uninitialized value %s",
                    variable->name);
    bool moves = tensor_is_exclusive(value) && is_better_shared(value);
    if (may_change(variable) && !moves)
        return true;

    struct tensor copy;
    if (!(moves || is_shared(value) ? tensor_clone_sent : tensor_clone)(&copy, value, err))
        return false;
    tensor_release(value);
    *value = copy;
    if (moves)
        buffer_free_spare_plain();
    return true;
}

bool variable_make_exclusive(struct variable *variable, struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool ok = variable_make_exclusive_locked(variable, err);
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

/* The different ones by address; returns how many. */
static int sort(struct variable *const *variables, int count, struct variable **sorted)
{
    int used = 0;
    assert(count <= VARIABLE_LOCKS_MAX);
    for (int i = 0; i < count; i++) {
        int at = used;
        bool again = false;
        for (int k = 0; k < used; k++)
            again = again || sorted[k] == variables[i];
        if (again)
            continue;
        for (; at > 0 && (uintptr_t)sorted[at - 1] > (uintptr_t)variables[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = variables[i];
        used++;
    }
    return used;
}

void variable_lock_all(struct variable *const *variables, int count)
{
    struct variable *sorted[VARIABLE_LOCKS_MAX];
    int used = sort(variables, count, sorted);
    for (int i = 0; i < used; i++)
        pthread_mutex_lock(&sorted[i]->lock);
}

void variable_unlock_all(struct variable *const *variables, int count)
{
    struct variable *sorted[VARIABLE_LOCKS_MAX];
    int used = sort(variables, count, sorted);
    for (int i = used - 1; i >= 0; i--)
        pthread_mutex_unlock(&sorted[i]->lock);
}

/* Whether the elements can be written over those that are there. */
static bool fits(const struct tensor *into, const struct tensor *value)
{
    return into->dtype == value->dtype && (BIT(value->dtype) & DTYPES_PLAIN) &&
           shape_equal(&into->shape, &value->shape);
}

/* Whether sharing would keep at least as much memory again that nobody reads: that of a tensor
 * which this one is a part of, or of a message with others. */
static bool is_small_part(const struct tensor *value)
{
    return value->buffer && (BIT(value->dtype) & DTYPES_PLAIN) &&
           value->buffer->size / 2 >= tensor_bytes(value);
}

/* Of another task, which wants its memory back. */
static bool is_borrowed(const struct tensor *value)
{
    return value->buffer && value->buffer->file < 0;
}

bool variable_assign(struct variable *variable, const struct tensor *value, struct error *err)
{
    bool by_ref = __atomic_load_n(&variable->by_ref, __ATOMIC_RELAXED);
    struct tensor taken = {0}; /* what is given back after the lock */
    bool ok = true;
    pthread_mutex_lock(&variable->lock);
    if (by_ref && fits(&variable->value, value) && may_change(variable)) {
        if (value->count && variable->value.data != value->data)
            memcpy(variable->value.data, value->data, tensor_bytes(value));
    } else {
        struct tensor fresh;
        bool copied = by_ref || is_small_part(value) || is_borrowed(value);
        ok = !copied || (is_shared(&variable->value) ? tensor_clone_sent
                                                     : tensor_clone)(&fresh, value, err);
        if (!copied)
            tensor_share(&fresh, value);
        if (ok) {
            taken = variable->value;
            variable->value = fresh;
        }
    }
    pthread_mutex_unlock(&variable->lock);
    tensor_release(&taken);
    return ok;
}
