/*
 * partition_together.c - small values that go to another device together.
 *
 * A message costs more than what a small value's bytes do.  So values that one device gives
 * another at about the same time become one, an optional of several components
 * (OptionalFromValue, OptionalGetValue: ops that stock tasks have, too).
 *
 * Whoever reads one of them then waits for all of them, which must not make a cycle.  The depth
 * of a node is how often a way to it goes from one task to another, at most.  It never falls
 * along an edge; those that go together have the same, and whoever reads them a greater one.
 * Beside the edges there is what kernels wait for (a queue that another task fills once it has
 * the first of the values): nothing that comes after such a kernel goes with others, nor does
 * anything where a loop is, whose turns are no order, or what may be dead, as then all would
 * be.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/partition.h"
#include "runtime/place_cost.h"
#include "runtime/price.h"
#include "runtime/shapes.h"

enum {
    TOGETHER_BYTES_MAX = 64 << 10, /* of all; */
    TOGETHER_MAX = 128,
    SMALL_BYTES = 16 << 10, /* of one: it is copied in less than a message takes */
    WAIT_US = 20,           /* that the first of them waits for the last: about a message */
    TASK_US = 300,          /* from one task to another */
};

/* A value that another task reads. */
struct crossing {
    struct edge from;
    const struct device *to;
    int depth;
    double done; /* in microseconds */
    int64_t bytes;
};

struct partition_together {
    const struct graph *graph;
    const struct partition_options *options;
    struct shapes shapes;
    bool *bound; /* by node id: it may wait, or be dead, or comes after such a node */
    bool *ready; /* made of nothing that takes time */
    int *depth;
    double *done;      /* as if a device did one node after another, in their order */
    struct map *seen;  /* keys of crossings */
    struct map *found; /* struct together by key */
    struct crossing *crossings;
    int count, capacity;
    struct together *groups;
    int groups_count, groups_capacity;
};

static char *key_of(struct edge from, const struct device *to)
{
    return alloc_printf("%d:%d:%s", from.from->id, from.output, to->name);
}

/* --- nodes --- */

/* Whether it may wait for something that is not among its inputs, or run and not be alive. */
static bool is_bound(const struct node *node)
{
    struct error none;
    if (node->op == &prune_arg)
        return false;
    for (int i = 0; i < node->attrs_count; i++)
        if (node->attrs[i].kind == ATTR_FUNC) /* whatever is in it */
            return true;
    if (node->op->flow != FLOW_NONE)
        return node->op->flow != FLOW_PASS;
    const struct kernel *kernel = kernel_find(node, node->device->type, &none);
    return !kernel || kernel->start;
}

/* Has nothing to read, or gives what it reads as it is, or a view of it. */
static bool is_at_once(const struct node *node)
{
    return !node->inputs_count || price_of(node->op->name) == 0 ||
           !strcmp(node->op->name, "ReadVariableOp");
}

static void look_at(struct partition_together *t, const struct node *node, double *free_at)
{
    bool bound = is_bound(node), ready = is_at_once(node);
    int depth = 0;
    double start = *free_at;
    const struct node *from;
    for (int i = 0; (from = node_before(node, i)); i++) {
        bool here = device_same_task(from->device, node->device);
        double there = t->done[from->id] + (here ? 0 : TASK_US);
        start = there > start ? there : start;
        depth = t->depth[from->id] + !here > depth ? t->depth[from->id] + !here : depth;
        bound |= t->bound[from->id];
        ready &= t->ready[from->id] && here;
    }
    t->depth[node->id] = depth;
    t->ready[node->id] = ready;
    t->bound[node->id] = bound;
    if (!ready)
        *free_at = t->done[node->id] =
            start + place_cost_of(t->options->costs, node, &t->shapes, node->device);
}

/* --- what crosses --- */

/* -1: not known, or not to be put together with others. */
static int64_t bytes_of(const struct partition_together *t, struct edge from)
{
    enum dtype dtype = dtype_base(from.from->output_types[from.output]);
    const struct shape *shape = shapes_at(&t->shapes, from);
    if (dtype == STRING || dtype == RESOURCE || dtype == VARIANT || !shape_is_full(shape))
        return -1;
    return shape_count(shape) * (int64_t)dtype_size(dtype);
}

static void add_crossing(struct partition_together *t, struct edge from,
                         const struct device *to)
{
    if (device_same_task(from.from->device, to) || t->bound[from.from->id])
        return;
    int64_t bytes = bytes_of(t, from);
    if (bytes < 0 || bytes > SMALL_BYTES)
        return;
    char *key = key_of(from, to);
    if (!map_has(t->seen, key)) {
        map_set(t->seen, key, t);
        t->crossings = alloc_grow(t->crossings, t->count, &t->capacity, sizeof(*t->crossings));
        t->crossings[t->count++] = (struct crossing){.from = from,
                                                     .to = to,
                                                     .depth = t->depth[from.from->id],
                                                     .done = t->done[from.from->id],
                                                     .bytes = bytes};
    }
    free(key);
}

/* --- groups --- */

static int compare_ints(int a, int b)
{
    return (a > b) - (a < b);
}

/* Those that could go together side by side, in the order in which they are there. */
static int compare(const void *left, const void *right)
{
    const struct crossing *a = left, *b = right;
    int order = strcmp(a->from.from->device->name, b->from.from->device->name);
    if (!order)
        order = strcmp(a->to->name, b->to->name);
    if (!order)
        order = compare_ints(a->depth, b->depth);
    if (!order)
        order = (a->done > b->done) - (a->done < b->done);
    if (!order)
        order = compare_ints(a->from.from->id, b->from.from->id);
    return order ? order : compare_ints(a->from.output, b->from.output);
}

static bool can_join(const struct crossing *first, const struct crossing *next, int count,
                     int64_t bytes)
{
    return first->from.from->device == next->from.from->device && first->to == next->to &&
           first->depth == next->depth && next->done - first->done <= WAIT_US &&
           count < TOGETHER_MAX && bytes + next->bytes <= TOGETHER_BYTES_MAX;
}

static void add_group(struct partition_together *t, const struct crossing *first, int count)
{
    t->groups = alloc_grow(t->groups, t->groups_count, &t->groups_capacity, sizeof(*t->groups));
    struct together *group = &t->groups[t->groups_count++];
    *group = (struct together){
        .to = first->to,
        .members = alloc_array((size_t)count, sizeof(*group->members)),
        .count = count,
    };
    for (int i = 0; i < count; i++)
        group->members[i] = first[i].from;
}

/* After the last group was added. */
static void remember(struct partition_together *t)
{
    for (int g = 0; g < t->groups_count; g++) {
        for (int i = 0; i < t->groups[g].count; i++) {
            char *key = key_of(t->groups[g].members[i], t->groups[g].to);
            map_set(t->found, key, &t->groups[g]);
            free(key);
        }
    }
}

static void find_groups(struct partition_together *t)
{
    if (t->count)
        qsort(t->crossings, (size_t)t->count, sizeof(*t->crossings), compare);
    for (int i = 0; i < t->count;) {
        const struct crossing *first = &t->crossings[i];
        int64_t bytes = 0;
        int count = 0;
        while (i + count < t->count && can_join(first, &first[count], count, bytes))
            bytes += first[count++].bytes;
        if (count > 1)
            add_group(t, first, count);
        i += count;
    }
    remember(t);
}

static bool has_loop(const struct subgraph *whole, const bool *needed)
{
    for (int i = 0; i < graph_count(whole->graph); i++)
        if (needed[i] && graph_node(whole->graph, i)->op->flow == FLOW_ENTER)
            return true;
    return false;
}

static void look_at_all(struct partition_together *t, const struct subgraph *whole,
                        const bool *needed, const int *order)
{
    double *free_at = alloc_array((size_t)t->options->devices_count, sizeof(*free_at));
    for (int i = 0; i < graph_count(t->graph); i++) {
        const struct node *node = graph_node(t->graph, order[i]);
        if (!needed[node->id])
            continue;
        look_at(t, node, &free_at[node->device - t->options->devices]);
        for (int k = 0; k < node->inputs_count; k++)
            add_crossing(t, node->inputs[k], node->device);
    }
    for (int i = 0; i < whole->fetches_count; i++)
        add_crossing(t, whole->fetches[i], t->options->client);
    free(free_at);
}

struct partition_together *partition_together_new(const struct subgraph *whole,
                                                  const bool *needed,
                                                  const struct partition_options *options,
                                                  struct error *err)
{
    size_t count = (size_t)graph_count(whole->graph);
    int *order = graph_sorted(whole->graph, err);
    if (!order)
        return NULL;
    struct partition_together *t = alloc_bytes(sizeof(*t));
    *t = (struct partition_together){
        .graph = whole->graph, .options = options, .seen = map_new(), .found = map_new()};
    if (options->devices && !has_loop(whole, needed)) {
        t->bound = alloc_array(count, sizeof(*t->bound));
        t->ready = alloc_array(count, sizeof(*t->ready));
        t->depth = alloc_array(count, sizeof(*t->depth));
        t->done = alloc_array(count, sizeof(*t->done));
        t->shapes.declared = true;
        shapes_infer(&t->shapes, whole->graph, order, (int)count);
        look_at_all(t, whole, needed, order);
        find_groups(t);
    }
    free(order);
    return t;
}

void partition_together_free(struct partition_together *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->groups_count; i++)
        free(t->groups[i].members);
    shapes_release(&t->shapes);
    map_free(t->seen);
    map_free(t->found);
    free(t->bound);
    free(t->ready);
    free(t->depth);
    free(t->done);
    free(t->crossings);
    free(t->groups);
    free(t);
}

struct together *partition_together_find(const struct partition_together *t, struct edge from,
                                         const struct device *to, int *index)
{
    if (!t->groups_count)
        return NULL;
    char *key = key_of(from, to);
    struct together *group = map_find(t->found, key);
    free(key);
    for (int i = 0; group && i < group->count; i++)
        if (group->members[i].from == from.from && group->members[i].output == from.output)
            *index = i;
    return group;
}
