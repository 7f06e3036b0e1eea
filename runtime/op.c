/*
 * op.c - the table of ops: by name, by index, with their parsed signatures.
 *
 * One lock guards the table.  Rows are added before the first session, signatures are parsed at
 * first use; both stay for the life of the process.
 */

#include <pthread.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/op_parse.h"
#include "runtime/ops/list.h"

#define OP_EXTERN(name) extern const struct op op_##name;
OPS_LIST(OP_EXTERN)
#undef OP_EXTERN

static const struct op *const builtin[] = {
#define OP_ROW(name) &op_##name,
    OPS_LIST(OP_ROW)
#undef OP_ROW
        NULL,
};

struct entry {
    const struct op *op;
    const struct op_signature *signature; /* NULL until first asked for */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards: all below */
static struct arena *arena;                              /* of the signatures */
static struct map *by_name;                              /* struct entry */
static const struct op **all;                            /* in the order of the tables */
static int all_count;
static int all_capacity;

static bool add_locked(const struct op *op)
{
    if (map_has(by_name, op->name))
        return false;
    struct entry *entry = arena_alloc(arena, sizeof(*entry));
    entry->op = op;
    map_set(by_name, op->name, entry);
    all = alloc_grow(all, all_count, &all_capacity, sizeof(*all));
    all[all_count++] = op;
    return true;
}

static void fill_locked(void)
{
    if (arena)
        return;
    arena = arena_new();
    by_name = map_new();
    for (const struct op *const *op = builtin; *op; op++) {
        bool added = add_locked(*op);
        assert(added);
    }
}

const struct op *op_find(const char *name)
{
    pthread_mutex_lock(&lock);
    fill_locked();
    const struct entry *entry = map_find(by_name, name);
    pthread_mutex_unlock(&lock);
    return entry ? entry->op : NULL;
}

const struct op_signature *op_signature(const struct op *op)
{
    if (op->signature)
        return op->signature;
    pthread_mutex_lock(&lock);
    fill_locked();
    struct entry *entry = map_find(by_name, op->name);
    assert(entry);
    assert(entry->op == op);
    if (!entry->signature)
        entry->signature = op_parse(op, arena);
    pthread_mutex_unlock(&lock);
    return entry->signature;
}

const struct op_attr *op_signature_attr(const struct op_signature *signature, const char *name)
{
    for (int i = 0; i < signature->attrs_count; i++)
        if (!strcmp(signature->attrs[i].name, name))
            return &signature->attrs[i];
    return NULL;
}

int op_count(void)
{
    pthread_mutex_lock(&lock);
    fill_locked();
    int count = all_count;
    pthread_mutex_unlock(&lock);
    return count;
}

const struct op *op_at(int index)
{
    pthread_mutex_lock(&lock);
    fill_locked();
    assert(index >= 0 && index < all_count);
    const struct op *op = all[index];
    pthread_mutex_unlock(&lock);
    return op;
}

bool op_add_table(const struct op *const *ops, struct error *err)
{
    bool ok = true;
    pthread_mutex_lock(&lock);
    fill_locked();
    for (; ok && *ops; ops++)
        if (!add_locked(*ops))
            ok = fail(err, EXISTS, "an op named '%s' is registered already", (*ops)->name);
    pthread_mutex_unlock(&lock);
    return ok;
}

bool op_infer_unchanged(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[0];
    return true;
}

bool op_infer_broadcast(struct infer *infer, struct error *err)
{
    return shape_broadcast(&infer->inputs[0], &infer->inputs[1], &infer->outputs[0], err);
}

bool op_infer_scalar(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = SHAPE_SCALAR;
    return true;
}
