/* barrier_ops.c - the nodes that make barriers, put into them, take from them and look. */

#include "kernels/ref/numbers.h"
#include "kernels/state/barrier.h"
#include "kernels/state/handle.h"

#include "base/alloc.h"

/* --- making --- */

static bool barrier_read(const struct node *node, void **out, struct error *err)
{
    const struct attr *types = node_attr(node, "component_types");
    const struct attr *shapes = node_attr(node, "shapes");
    if (node_attr_int(node, "capacity", -1) != -1)
        return fail(
            err, INVALID,
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through "
            "a queue to enforce a limited capacity.");
    if (!shapes || shapes->count != types->count)
        return fail(err, INVALID, "All of the component shapes must be specified");
    for (int c = 0; c < shapes->count; c++) {
        char text[SHAPE_TEXT_BYTES];
        if (!shape_is_full(&shapes->shapes[c]))
            return fail(err, INVALID, "Shape %s is not fully defined",
                        shape_text(&shapes->shapes[c], text, sizeof(text)));
    }
    struct barrier_spec *spec = alloc_bytes(sizeof(*spec));
    size_t count = (size_t)types->count;
    int *types_copy = alloc_array(count, sizeof(*types_copy));
    struct shape *shapes_copy = alloc_array(count, sizeof(*shapes_copy));
    memcpy(types_copy, types->types, count * sizeof(*types_copy));
    memcpy(shapes_copy, shapes->shapes, count * sizeof(*shapes_copy));
    *spec = (struct barrier_spec){types->count, types_copy, shapes_copy};
    *out = spec;
    return true;
}

static void barrier_spec_free(void *arg)
{
    struct barrier_spec *spec = arg;
    free((void *)spec->types);
    free((void *)spec->shapes);
    free(spec);
}

static struct resource *barrier_make(const void *spec, const char *name,
                                     struct kernel_call *call, struct error *err)
{
    (void)call;
    struct barrier *barrier = kernel_barrier_new(spec, name, err);
    return barrier ? kernel_barrier_resource(barrier) : NULL;
}

static bool barrier_matches(const struct resource *resource, const void *arg,
                            const struct node *node, struct error *err)
{
    (void)node;
    const struct barrier *barrier = (const struct barrier *)resource;
    const struct barrier_spec *a = kernel_barrier_spec(barrier), *b = arg;
    bool same = a->components == b->components &&
                !memcmp(a->types, b->types, (size_t)a->components * sizeof(*a->types));
    for (int c = 0; same && c < a->components; c++)
        same = shape_equal(&a->shapes[c], &b->shapes[c]);
    return same || fail(err, INVALID,
                        "Shared barrier '%s' has other component types or shapes than the node "
                        "asks for",
                        kernel_barrier_name(barrier));
}

static const struct handle_class barrier_class = {
    .kind = BARRIER_KIND,
    .read = barrier_read,
    .free = barrier_spec_free,
    .make = barrier_make,
    .matches = barrier_matches,
};

HANDLE_KERNEL(barrier, "Barrier", barrier_class);

/* --- using --- */

static struct barrier *barrier_in(struct kernel_call *call, struct error *err)
{
    return (struct barrier *)kernel_handle_get(call, 0, BARRIER_KIND, err);
}

static void unref(struct barrier *barrier)
{
    if (barrier)
        resource_unref(kernel_barrier_resource(barrier));
}

static void ended(void *arg, struct tensor *tuple, const struct error *err)
{
    struct kernel_call *call = arg;
    for (int c = 0; tuple && c < call->node->outputs_count; c++)
        kernel_output_take(call, c, &tuple[c]);
    kernel_done(call, err);
}

static bool check_put(struct kernel_call *call, const struct barrier *barrier,
                      int64_t component, struct error *err)
{
    const struct barrier_spec *spec = kernel_barrier_spec(barrier);
    const struct tensor *keys = kernel_in(call, 1), *values = kernel_in(call, 2);
    char text[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    if (component < 0 || component >= spec->components)
        return fail(err, INVALID,
                    "The component ID is out of range %lld > num_components (= %d)",
                    (long long)component, spec->components);
    if (values->dtype != dtype_base(spec->types[component]))
        return fail(err, INVALID,
                    "Signature mismatch: component %lld of barrier '%s' is %s, not %s",
                    (long long)component, kernel_barrier_name(barrier),
                    dtype_name(spec->types[component]), dtype_name(values->dtype));
    if (keys->count && !values->count)
        return fail(
            err, INVALID, "Tensors with no elements are not supported %s: received shape %s",
            kernel_barrier_name(barrier), shape_text(&values->shape, text, sizeof(text)));
    const struct shape *shape = &spec->shapes[component];
    bool fits = values->shape.rank == shape->rank + 1 && values->shape.dims[0] >= keys->count;
    for (int d = 0; fits && d < shape->rank; d++)
        fits = values->shape.dims[d + 1] == shape->dims[d];
    return fits || !keys->count ||
           fail(err, INVALID,
                "values of shape %s do not fit %lld keys and elements of shape %s",
                shape_text(&values->shape, text, sizeof(text)), (long long)keys->count,
                shape_text(shape, wanted, sizeof(wanted)));
}

static void insert_start(struct kernel_call *call)
{
    struct error err;
    int64_t component = node_attr_int(call->node, "component_index", 0);
    struct barrier *barrier = barrier_in(call, &err);
    if (!barrier || !check_put(call, barrier, component, &err))
        kernel_done(call, &err);
    else
        kernel_barrier_put(barrier, kernel_in(call, 1), (int)component, kernel_in(call, 2),
                           kernel_cancel(call), ended, call);
    unref(barrier);
}

static bool check_take(struct kernel_call *call, const struct barrier *barrier, int64_t *count,
                       struct error *err)
{
    const struct barrier_spec *spec = kernel_barrier_spec(barrier);
    const int *types = call->node->output_types + 2;
    bool same = call->node->outputs_count - 2 == spec->components;
    for (int c = 0; same && c < spec->components; c++)
        same = dtype_base(types[c]) == dtype_base(spec->types[c]);
    if (!same)
        return fail(err, INVALID, "Signature mismatch: barrier '%s' has other components",
                    kernel_barrier_name(barrier));
    if (!kernel_scalar(call, 1, "num_elements", count, err))
        return false;
    return *count >= 0 ||
           fail(err, INVALID, "num_elements must not be negative: %lld", (long long)*count);
}

static bool prepare_take(const struct node *node, void **state, struct error *err)
{
    (void)state;
    return node_attr_int(node, "timeout_ms", -1) == -1 ||
           fail(err, INVALID, "Timeout not supported yet.");
}

static void take_start(struct kernel_call *call)
{
    struct error err;
    int64_t count;
    struct barrier *barrier = barrier_in(call, &err);
    if (!barrier || !check_take(call, barrier, &count, &err))
        kernel_done(call, &err);
    else
        kernel_barrier_take(barrier, count,
                            node_attr_bool(call->node, "allow_small_batch", false),
                            kernel_cancel(call), ended, call);
    unref(barrier);
}

static void close_start(struct kernel_call *call)
{
    struct error err;
    struct barrier *barrier = barrier_in(call, &err);
    if (!barrier)
        kernel_done(call, &err);
    else
        kernel_barrier_shut(barrier,
                            node_attr_bool(call->node, "cancel_pending_enqueues", false),
                            kernel_cancel(call), ended, call);
    unref(barrier);
}

static bool size_run(struct kernel_call *call, int64_t (*size)(struct barrier *barrier),
                     struct error *err)
{
    struct barrier *barrier = barrier_in(call, err);
    struct tensor *out = barrier ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        *(int32_t *)out->data = (int32_t)size(barrier);
    unref(barrier);
    return out;
}

static bool ready_size_run(struct kernel_call *call, struct error *err)
{
    return size_run(call, kernel_barrier_ready, err);
}

static bool incomplete_size_run(struct kernel_call *call, struct error *err)
{
    return size_run(call, kernel_barrier_incomplete, err);
}

const struct kernel kernel_barrier_insert_many = {
    .op = "BarrierInsertMany", .device = CPU, .start = insert_start};
const struct kernel kernel_barrier_take_many = {
    .op = "BarrierTakeMany", .device = CPU, .prepare = prepare_take, .start = take_start};
const struct kernel kernel_barrier_close = {
    .op = "BarrierClose", .device = CPU, .start = close_start};
const struct kernel kernel_barrier_ready_size = {
    .op = "BarrierReadySize", .device = CPU, .run = ready_size_run};
const struct kernel kernel_barrier_incomplete_size = {
    .op = "BarrierIncompleteSize", .device = CPU, .run = incomplete_size_run};
