/* function_library.c - functions by name, and what makes two of them the same. */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/function_library.h"

struct function_library {
    int references;       /* __atomic */
    pthread_mutex_t lock; /* guards: all below, but not what the arena holds */
    struct arena *arena;
    struct map *by_name; /* struct function_def */
    const struct function_def **all;
    int all_count;
    int all_capacity;
    struct map *gradients;               /* name of a function by name of a function */
    const struct function_def **dropped; /* truncated: their tensors wait for the end */
    int dropped_count;
    int dropped_capacity;
};

struct function_library *function_library_new(void)
{
    struct function_library *library = alloc_bytes(sizeof(*library));
    library->references = 1;
    pthread_mutex_init(&library->lock, NULL);
    library->arena = arena_new();
    library->by_name = map_new();
    library->gradients = map_new();
    return library;
}

void function_library_ref(struct function_library *library)
{
    __atomic_add_fetch(&library->references, 1, __ATOMIC_RELAXED);
}

static void release_attrs(const struct attr *attrs, int count)
{
    for (int i = 0; i < count; i++)
        attr_release(&attrs[i]);
}

static void release_def(const struct function_def *def)
{
    for (int i = 0; i < def->nodes_count; i++)
        release_attrs(def->nodes[i].attrs, def->nodes[i].attrs_count);
    release_attrs(def->attrs, def->attrs_count);
    for (int i = 0; i < def->signature.attrs_count; i++)
        if (def->signature.attrs[i].has_default)
            attr_release(&def->signature.attrs[i].value);
}

void function_library_unref(struct function_library *library)
{
    if (!library || __atomic_sub_fetch(&library->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < library->all_count; i++)
        release_def(library->all[i]);
    for (int i = 0; i < library->dropped_count; i++)
        release_def(library->dropped[i]);
    free(library->all);
    free(library->dropped);
    map_free(library->gradients);
    map_free(library->by_name);
    arena_free(library->arena);
    pthread_mutex_destroy(&library->lock);
    free(library);
}

struct arena *function_library_arena(struct function_library *library)
{
    return library->arena;
}

/* --- finding --- */

const struct function_def *function_library_find(struct function_library *library,
                                                 const char *name)
{
    pthread_mutex_lock(&library->lock);
    const struct function_def *def = map_find(library->by_name, name);
    pthread_mutex_unlock(&library->lock);
    return def;
}

const struct op *function_library_op(struct function_library *library, const char *name)
{
    const struct op *op = op_find(name);
    if (op || !library)
        return op;
    const struct function_def *def = function_library_find(library, name);
    return def ? &def->op : NULL;
}

const struct function_def *function_library_callee(const struct op *op)
{
    return op->signature ? (const struct function_def *)op : NULL;
}

const char *function_library_gradient(struct function_library *library, const char *name)
{
    pthread_mutex_lock(&library->lock);
    const char *gradient = map_find(library->gradients, name);
    pthread_mutex_unlock(&library->lock);
    return gradient;
}

const struct function_def *function_library_at(struct function_library *library, int i)
{
    pthread_mutex_lock(&library->lock);
    assert(i >= 0 && i < library->all_count);
    const struct function_def *def = library->all[i];
    pthread_mutex_unlock(&library->lock);
    return def;
}

const char *function_library_gradient_at(struct function_library *library, int i,
                                         const char **name)
{
    pthread_mutex_lock(&library->lock);
    const char *gradient = map_value(library->gradients, i);
    *name = map_key(library->gradients, i);
    pthread_mutex_unlock(&library->lock);
    return gradient;
}

struct function_library_mark function_library_mark(struct function_library *library)
{
    pthread_mutex_lock(&library->lock);
    struct function_library_mark mark = {library->all_count, map_count(library->gradients)};
    pthread_mutex_unlock(&library->lock);
    return mark;
}

/* --- what makes two functions the same --- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* As sets: the order of a map on the wire means nothing. */
static bool same_attrs(const struct attr *a, int a_count, const struct attr *b, int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++) {
        int k = 0;
        while (k < b_count && strcmp(a[i].name, b[k].name) != 0)
            k++;
        if (k == b_count || !attr_equal(&a[i], &b[k]))
            return false;
    }
    return true;
}

static bool same_rets(const struct function_ret *a, int a_count, const struct function_ret *b,
                      int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++) {
        int k = 0;
        while (k < b_count && strcmp(a[i].name, b[k].name) != 0)
            k++;
        if (k == b_count || strcmp(a[i].value, b[k].value) != 0)
            return false;
    }
    return true;
}

static bool same_args(const struct op_arg *a, int a_count, const struct op_arg *b, int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++)
        if (strcmp(a[i].name, b[i].name) != 0 || a[i].dtype != b[i].dtype ||
            a[i].is_ref != b[i].is_ref || !same_text(a[i].type_attr, b[i].type_attr) ||
            !same_text(a[i].number_attr, b[i].number_attr) ||
            !same_text(a[i].list_attr, b[i].list_attr))
            return false;
    return true;
}

static bool same_signature(const struct op_signature *a, const struct op_signature *b)
{
    if (a->attrs_count != b->attrs_count ||
        !same_args(a->inputs, a->inputs_count, b->inputs, b->inputs_count) ||
        !same_args(a->outputs, a->outputs_count, b->outputs, b->outputs_count))
        return false;
    for (int i = 0; i < a->attrs_count; i++) {
        const struct op_attr *x = &a->attrs[i], *y = &b->attrs[i];
        if (strcmp(x->name, y->name) != 0 || x->kind != y->kind || x->is_list != y->is_list ||
            x->has_default != y->has_default ||
            (x->has_default && !attr_equal(&x->value, &y->value)))
            return false;
    }
    return true;
}

static bool same_node(const struct function_node *a, const struct function_node *b)
{
    if (strcmp(a->name, b->name) != 0 || strcmp(a->op, b->op) != 0 ||
        strcmp(a->device, b->device) != 0 || a->inputs_count != b->inputs_count)
        return false;
    for (int i = 0; i < a->inputs_count; i++)
        if (strcmp(a->inputs[i], b->inputs[i]) != 0)
            return false;
    return same_attrs(a->attrs, a->attrs_count, b->attrs, b->attrs_count);
}

static bool same_function(const struct function_def *a, const struct function_def *b)
{
    if (a->size == b->size && !memcmp(a->bytes, b->bytes, a->size))
        return true;
    if (a->nodes_count != b->nodes_count || !same_signature(&a->signature, &b->signature) ||
        !same_rets(a->rets, a->rets_count, b->rets, b->rets_count) ||
        !same_rets(a->control_rets, a->control_rets_count, b->control_rets,
                   b->control_rets_count) ||
        !same_attrs(a->attrs, a->attrs_count, b->attrs, b->attrs_count))
        return false;
    for (int i = 0; i < a->nodes_count; i++)
        if (!same_node(&a->nodes[i], &b->nodes[i]))
            return false;
    return true;
}

/* --- adding --- */

static void drop_locked(struct function_library *library, const struct function_def *def)
{
    library->dropped = alloc_grow(library->dropped, library->dropped_count,
                                  &library->dropped_capacity, sizeof(*library->dropped));
    library->dropped[library->dropped_count++] = def;
}

void function_library_drop(struct function_library *library, const struct function_def *def)
{
    pthread_mutex_lock(&library->lock);
    drop_locked(library, def);
    pthread_mutex_unlock(&library->lock);
}

bool function_library_add(struct function_library *library, const struct function_def *def,
                          struct error *err)
{
    const char *name = def->op.name;
    bool is_op = op_find(name);
    bool ok = true;
    pthread_mutex_lock(&library->lock);
    const struct function_def *known = map_find(library->by_name, name);
    if (known || is_op || library->all_count >= LIMIT_GRAPH_FUNCTIONS) {
        drop_locked(library, def);
        if (is_op)
            ok = fail(err, INVALID,
                      "Cannot add function '%s' because an op with the same name already "
                      "exists.",
                      name);
        else if (known && !same_function(known, def))
            ok = fail(err, INVALID,
                      "Cannot add function '%s' because a different function with the same "
                      "name already exists.",
                      name);
        else if (!known)
            ok = fail(err, EXHAUSTED, "the graph has more than %d functions",
                      LIMIT_GRAPH_FUNCTIONS);
    } else {
        library->all = alloc_grow(library->all, library->all_count, &library->all_capacity,
                                  sizeof(*library->all));
        library->all[library->all_count++] = def;
        map_set(library->by_name, name, (void *)def);
    }
    pthread_mutex_unlock(&library->lock);
    return ok;
}

bool function_library_set_gradient(struct function_library *library, const char *name,
                                   const char *gradient, struct error *err)
{
    const char *known = function_library_gradient(library, name);
    if (known && strcmp(known, gradient) != 0)
        return fail(err, INVALID,
                    "Cannot assign gradient function '%s' to '%s' because it already has "
                    "gradient function '%s'",
                    gradient, name, known);
    if (known)
        return true;
    pthread_mutex_lock(&library->lock);
    bool ok = map_count(library->gradients) < LIMIT_GRAPH_FUNCTIONS;
    if (ok)
        map_set(library->gradients, name, arena_text(library->arena, gradient));
    pthread_mutex_unlock(&library->lock);
    return ok || fail(err, EXHAUSTED, "the graph names more than %d gradients of functions",
                      LIMIT_GRAPH_FUNCTIONS);
}

static struct map *first_entries(struct map *map, int count)
{
    struct map *first = map_new();
    for (int i = 0; i < count; i++)
        map_set(first, map_key(map, i), map_value(map, i));
    map_free(map);
    return first;
}

void function_library_truncate(struct function_library *library,
                               struct function_library_mark mark)
{
    pthread_mutex_lock(&library->lock);
    assert(mark.functions <= library->all_count);
    if (mark.functions < library->all_count) {
        for (int i = mark.functions; i < library->all_count; i++)
            drop_locked(library, library->all[i]);
        library->all_count = mark.functions;
        library->by_name = first_entries(library->by_name, mark.functions);
    }
    if (mark.gradients < map_count(library->gradients))
        library->gradients = first_entries(library->gradients, mark.gradients);
    pthread_mutex_unlock(&library->lock);
}

bool function_library_add_all(struct function_library *library, struct function_library *other,
                              struct error *err)
{
    const struct function_library_mark count = function_library_mark(other);
    for (int i = 0; i < count.functions; i++) {
        const struct function_def *def = function_library_at(other, i);
        if (!function_library_parse(library, def->bytes, def->size, err))
            return false;
    }
    for (int i = 0; i < count.gradients; i++) {
        const char *name;
        const char *gradient = function_library_gradient_at(other, i, &name);
        if (!function_library_set_gradient(library, name, gradient, err))
            return false;
    }
    return true;
}
