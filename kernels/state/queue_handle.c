/* queue_handle.c - the nodes that make queues. */

#include "kernels/state/handle.h"
#include "kernels/state/queue.h"

#include "base/alloc.h"
#include "base/str.h"

static const struct {
    const char *op;
    enum queue_kind kind;
} kinds[] = {
    {"FIFOQueue", QUEUE_FIFO},
    {"RandomShuffleQueue", QUEUE_SHUFFLE},
    {"PaddingFIFOQueue", QUEUE_PADDING},
    {"PriorityQueue", QUEUE_PRIORITY},
};

/* "FIFOQueue" and "FIFOQueueV2" make the same. */
static enum queue_kind kind_of(const struct node *node)
{
    for (int i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strncmp(node->op->name, kinds[i].op, strlen(kinds[i].op)))
            return kinds[i].kind;
    assert(!"a node that makes a queue");
    return QUEUE_FIFO;
}

static void queue_spec_free(void *arg)
{
    struct queue_spec *spec = arg;
    free((void *)spec->types);
    free((void *)spec->shapes);
    free(spec);
}

/* Types and shapes of the components; those of a priority queue begin with the priority. */
static bool read_components(struct queue_spec *spec, const struct node *node, struct error *err)
{
    const struct attr *types = node_attr(node, "component_types");
    const struct attr *shapes = node_attr(node, "shapes");
    int types_count = types ? types->count : 0, shapes_count = shapes ? shapes->count : 0;
    int lead = spec->kind == QUEUE_PRIORITY;
    if ((shapes_count || spec->kind == QUEUE_PADDING) && shapes_count != types_count)
        return fail(err, INVALID, "Different number of component types.  Types: %d, Shapes: %d",
                    types_count, shapes_count);
    spec->components = lead + types_count;
    int *all_types = alloc_array((size_t)spec->components, sizeof(*all_types));
    spec->types = all_types;
    all_types[0] = I64;
    for (int i = 0; i < types_count; i++)
        all_types[lead + i] = types->types[i];
    if (!shapes_count && types_count)
        return true;
    struct shape *all_shapes = alloc_array((size_t)spec->components, sizeof(*all_shapes));
    spec->shapes = all_shapes;
    for (int i = 0; i < shapes_count; i++) {
        char text[SHAPE_TEXT_BYTES];
        const struct shape *shape = &shapes->shapes[i];
        all_shapes[lead + i] = *shape;
        if (shape->rank < 0 || (spec->kind != QUEUE_PADDING && !shape_is_full(shape)))
            return fail(err, INVALID, "shape %s of component %d must be %s",
                        shape_text(shape, text, sizeof(text)), i,
                        spec->kind == QUEUE_PADDING ? "of known rank" : "fully defined");
    }
    return true;
}

static bool queue_read(const struct node *node, void **out, struct error *err)
{
    struct queue_spec *spec = alloc_bytes(sizeof(*spec));
    spec->kind = kind_of(node);
    spec->name = node->name;
    spec->capacity = node_attr_int(node, "capacity", -1);
    if (spec->capacity < 0)
        spec->capacity = INT32_MAX;
    spec->min_after_dequeue = node_attr_int(node, "min_after_dequeue", 0);
    spec->seed = node_attr_int(node, "seed", 0);
    spec->seed2 = node_attr_int(node, "seed2", 0);
    if (!read_components(spec, node, err) || !kernel_queue_check_spec(spec, err)) {
        queue_spec_free(spec);
        return false;
    }
    *out = spec;
    return true;
}

static struct resource *queue_make(const void *arg, const char *name, struct kernel_call *call,
                                   struct error *err)
{
    (void)call;
    struct queue_spec spec = *(const struct queue_spec *)arg;
    spec.name = name;
    struct queue *queue = kernel_queue_new(&spec, err);
    return queue ? kernel_queue_resource(queue) : NULL;
}

static void add_types(const struct queue_spec *spec, struct str *text)
{
    for (int c = 0; c < spec->components; c++)
        str_printf(text, "%s%s", c ? ", " : "", dtype_name(spec->types[c]));
}

static void add_shapes(const struct queue_spec *spec, struct str *text)
{
    char shape[SHAPE_TEXT_BYTES];
    str_add(text, "[");
    for (int c = 0; spec->shapes && c < spec->components; c++)
        str_printf(text, "%s%s", c ? ", " : "",
                   shape_text(&spec->shapes[c], shape, sizeof(shape)));
    str_add(text, "]");
}

static bool fail_differs(const struct queue_spec *a, const struct queue_spec *b,
                         const char *what, void (*add)(const struct queue_spec *, struct str *),
                         struct error *err)
{
    struct str has = {0}, wants = {0};
    add(a, &has);
    add(b, &wants);
    bool ok = fail(err, INVALID,
                   "Shared queue '%s' has component %s %s but requested component %s were %s",
                   a->name, what, str_text(&has), what, str_text(&wants));
    str_release(&has);
    str_release(&wants);
    return ok;
}

/* What a shuffling queue alone has. */
static bool shuffles_alike(const struct queue_spec *a, const struct queue_spec *b,
                           struct error *err)
{
    if (a->min_after_dequeue != b->min_after_dequeue)
        return fail(err, INVALID,
                    "Shared queue '%s' has min_after_dequeue %lld but requested "
                    "min_after_dequeue was %lld.",
                    a->name, (long long)a->min_after_dequeue, (long long)b->min_after_dequeue);
    if ((b->seed || b->seed2) && (a->seed != b->seed || a->seed2 != b->seed2))
        return fail(err, INVALID,
                    "Shared queue '%s' has random seeds (%lld, %lld) but requested seeds are "
                    "(%lld, %lld).",
                    a->name, (long long)a->seed, (long long)a->seed2, (long long)b->seed,
                    (long long)b->seed2);
    return true;
}

static bool queue_matches(const struct resource *resource, const void *arg,
                          const struct node *node, struct error *err)
{
    const struct queue_spec *a = kernel_queue_spec((const struct queue *)resource), *b = arg;
    if (a->kind != b->kind)
        return fail(err, INVALID, "Expected %s, found %s", kernel_queue_kind_name(a->kind),
                    node->op->name);
    if (a->capacity != b->capacity)
        return fail(err, INVALID,
                    "Shared queue '%s' has capacity %lld but requested capacity was %lld",
                    a->name, (long long)a->capacity, (long long)b->capacity);
    if (!shuffles_alike(a, b, err))
        return false;
    if (a->components != b->components ||
        memcmp(a->types, b->types, (size_t)a->components * sizeof(*a->types)) != 0)
        return fail_differs(a, b, "types", add_types, err);
    bool alike = !a->shapes == !b->shapes;
    for (int c = 0; alike && a->shapes && c < a->components; c++)
        alike = shape_equal(&a->shapes[c], &b->shapes[c]);
    if (!alike)
        return fail_differs(a, b, "shapes", add_shapes, err);
    return true;
}

static const struct handle_class queue_class = {
    .kind = QUEUE_KIND,
    .read = queue_read,
    .free = queue_spec_free,
    .make = queue_make,
    .matches = queue_matches,
};

HANDLE_KERNEL(fifo_queue, "FIFOQueue", queue_class);
HANDLE_KERNEL(fifo_queue_v2, "FIFOQueueV2", queue_class);
HANDLE_KERNEL(random_shuffle_queue, "RandomShuffleQueue", queue_class);
HANDLE_KERNEL(random_shuffle_queue_v2, "RandomShuffleQueueV2", queue_class);
HANDLE_KERNEL(padding_fifo_queue, "PaddingFIFOQueue", queue_class);
HANDLE_KERNEL(padding_fifo_queue_v2, "PaddingFIFOQueueV2", queue_class);
HANDLE_KERNEL(priority_queue, "PriorityQueue", queue_class);
HANDLE_KERNEL(priority_queue_v2, "PriorityQueueV2", queue_class);
