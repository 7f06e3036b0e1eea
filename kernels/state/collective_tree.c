/*
 * collective_tree.c - broadcast: a tree of the tasks, then one of the devices of each.
 *
 * Each tree is binary, by rank; where its source is not of rank 0 it counts as standing before
 * all others, as well as in its own place.  A device goes from tree to tree: it has its value
 * by the first in which it is not the source, and gives it on in each.
 */

#include "kernels/state/collective.h"

#include <stdlib.h>

#include "base/alloc.h"

struct tree {
    int size, rank, source; /* rank -1: not in it */
    int *members;           /* by rank in the tree */
};

struct walk {
    struct kernel_collective *op;
    int at;    /* tree */
    int trees; /* all tasks, where there are several; then each */
    int left;  /* guarded by op->lock: to be taken before the next tree */
    struct tree tree;
    int members[]; /* room for all */
};

static void next_tree(struct walk *walk);

/* --- which trees there are --- */

/* First ranks of the tasks, in their order; returns how many there are. */
static int list_tasks(const struct collective_group *group, int *firsts)
{
    int tasks = 0, first;
    for (int i = 0; i < group->devices_count; tasks++) {
        firsts[tasks] = i;
        i += kernel_collective_task(group, i, &first);
    }
    return tasks;
}

static bool is_in(int rank, int first, int end)
{
    return rank >= first && rank < end;
}

/* Tree number `at` as this device sees it. */
static void set_tree(struct walk *walk)
{
    const struct kernel_collective *op = walk->op;
    const struct collective_group *group = op->group;
    int *firsts = alloc_array((size_t)group->size + 1, sizeof(*firsts));
    int tasks = list_tasks(group, firsts);
    struct tree *tree = &walk->tree;
    *tree = (struct tree){.rank = -1, .members = walk->members};
    firsts[tasks] = group->size;
    if (tasks > 1 && walk->at == 0) {
        for (int t = 0; t < tasks; t++) {
            bool has_source = is_in(op->source, firsts[t], firsts[t + 1]);
            tree->members[t] = has_source ? op->source : firsts[t];
            if (has_source)
                tree->source = t;
        }
        tree->size = tasks;
    } else {
        int task = walk->at - (tasks > 1);
        for (int i = firsts[task]; i < firsts[task + 1]; i++) {
            if (i == op->source)
                tree->source = tree->size;
            tree->members[tree->size++] = i;
        }
    }
    for (int i = 0; i < tree->size; i++)
        if (tree->members[i] == op->rank)
            tree->rank = i;
    free(firsts);
}

/* --- one tree --- */

static int parent_of(const struct tree *tree)
{
    if (tree->source == 0)
        return (tree->rank - 1) / 2;
    int parent = tree->rank / 2 - 1;
    return parent < 0 ? tree->source : parent;
}

static int children_of(const struct tree *tree, bool is_source, int children[4])
{
    int count = 0;
    int child = tree->source == 0 ? 2 * tree->rank + 1 : 2 * (tree->rank + 1);
    if (is_source && tree->source != 0) {
        if (tree->size > 1)
            children[count++] = 0;
        if (tree->size > 2 && tree->source != 1)
            children[count++] = 1;
    }
    for (int i = 0; i < 2; i++, child++)
        if (child < tree->size && child != tree->source)
            children[count++] = child;
    return count;
}

static char *key_of(const struct walk *walk, int from, int to)
{
    return alloc_printf("%s:%d:%d:%d", walk->op->key, walk->at, from, to);
}

/* One that it was for has it; after the last the next tree is up. */
static void given(struct walk *walk)
{
    struct kernel_collective *op = walk->op;
    pthread_mutex_lock(&op->lock);
    bool last = !--walk->left && !op->failed;
    pthread_mutex_unlock(&op->lock);
    if (last) {
        walk->at++;
        next_tree(walk);
    }
}

static void taken(void *arg, const struct error *err)
{
    struct walk *walk = arg;
    if (!err)
        given(walk);
    kernel_collective_drop(walk->op, err);
}

static void give_on(struct walk *walk)
{
    struct kernel_collective *op = walk->op;
    const struct tree tree = walk->tree; /* the walk may be further before this ends */
    int children[4], count = children_of(&tree, op->wish.is_source, children), at = walk->at;
    walk->left = count + 1;
    for (int i = 0; i < count; i++) {
        char *key = alloc_printf("%s:%d:%d:%d", op->key, at, tree.rank, children[i]);
        kernel_collective_hold(op);
        collective_provide(op->collective, key, op->out, taken, walk);
        free(key);
    }
    given(walk);
}

static void came(void *arg, const struct error *err)
{
    struct walk *walk = arg;
    if (!err)
        give_on(walk);
    kernel_collective_drop(walk->op, err);
}

/* The next in which this device is, if any.  Trees are few: each calls this once. */
static void next_tree(struct walk *walk)
{
    struct kernel_collective *op = walk->op;
    for (walk->tree.rank = -1; walk->at < walk->trees; walk->at++) {
        set_tree(walk);
        if (walk->tree.rank >= 0)
            break;
    }
    if (walk->at == walk->trees)
        return;
    if (walk->tree.rank == walk->tree.source) {
        give_on(walk);
        return;
    }
    int parent = parent_of(&walk->tree);
    char *key = key_of(walk, parent, walk->tree.rank);
    kernel_collective_hold(op);
    collective_take(op->collective, &op->group->devices[walk->tree.members[parent]], key,
                    op->out->data, tensor_bytes(op->out), came, walk);
    free(key);
}

void kernel_collective_tree(struct kernel_collective *op)
{
    struct walk *walk =
        alloc_bytes(sizeof(*walk) + (size_t)op->group->size * sizeof(walk->members[0]));
    int *firsts = alloc_array((size_t)op->group->size + 1, sizeof(*firsts));
    int tasks = list_tasks(op->group, firsts);
    free(firsts);
    *walk = (struct walk){.op = op, .trees = tasks + (tasks > 1)};
    op->parts = walk;
    next_tree(walk);
}
