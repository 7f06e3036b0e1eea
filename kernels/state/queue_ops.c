/*
 * queue_ops.c - the nodes that put into queues, take from them, close them and look at them.
 * One function serves the handles by name (Ref) and by resource.
 */

#include "base/limits.h"
#include "base/str.h"
#include "kernels/ref/numbers.h"
#include "kernels/state/handle.h"
#include "kernels/state/queue.h"

static struct queue *queue_in(struct kernel_call *call, struct error *err)
{
    return (struct queue *)kernel_handle_get(call, 0, QUEUE_KIND, err);
}

static void unref(struct queue *queue)
{
    if (queue)
        resource_unref(kernel_queue_resource(queue));
}

static bool prepare_waiting(const struct node *node, void **state, struct error *err)
{
    (void)state;
    return node_attr_int(node, "timeout_ms", -1) == -1 ||
           fail(err, INVALID, "Timeout not supported yet.");
}

/* --- what goes in and out must be what the queue holds --- */

static void add_types(const int *types, int count, struct str *text)
{
    for (int c = 0; c < count; c++)
        str_printf(text, "%s%s", c ? ", " : "", dtype_name(dtype_base(types[c])));
}

/* "resource, int32->float": the handle, the number of rows of a node that takes one, and types.
 */
static void add_signature(const struct node *node, const int *types, int count, bool takes,
                          struct str *text)
{
    str_add(text, dtype_is_ref(node->input_types[0]) ? "string_ref" : "resource");
    str_add(text, takes && node->inputs_count > 1 ? ", int32->" : takes ? "->" : ", ");
    add_types(types, count, text);
    str_add(text, takes ? "" : "->");
}

static bool check_types(const struct kernel_call *call, const struct queue *queue, bool takes,
                        struct error *err)
{
    const struct queue_spec *spec = kernel_queue_spec(queue);
    const struct node *node = call->node;
    const int *types = takes ? node->output_types : node->input_types + 1;
    int count = takes ? node->outputs_count : call->in_count - 1;
    bool fits = count == spec->components;
    for (int c = 0; fits && c < count; c++)
        fits = dtype_base(types[c]) == dtype_base(spec->types[c]);
    if (fits)
        return true;
    struct str has = {0}, wants = {0};
    add_signature(node, types, count, takes, &has);
    add_signature(node, spec->types, spec->components, takes, &wants);
    (void)fail(err, INVALID, "Signature mismatch, have: %s expected: %s", str_text(&has),
               str_text(&wants));
    str_release(&has);
    str_release(&wants);
    return false;
}

static bool fits(const struct shape *wanted, const struct shape *shape)
{
    if (shape->rank != wanted->rank)
        return false;
    for (int d = 0; d < wanted->rank; d++)
        if (wanted->dims[d] >= 0 && wanted->dims[d] != shape->dims[d])
            return false;
    return true;
}

/* Makes it the shape of that many rows of it. */
static void batch_of(struct shape *shape, int64_t rows)
{
    if (shape->rank == LIMIT_TENSOR_RANK)
        return;
    for (int d = shape->rank++; d > 0; d--)
        shape->dims[d] = shape->dims[d - 1];
    shape->dims[0] = rows;
}

static bool check_tuple(const struct queue *queue, const struct tensor *const *tuple, bool many,
                        struct error *err)
{
    const struct queue_spec *spec = kernel_queue_spec(queue);
    for (int c = 0; c < spec->components; c++) {
        const struct shape *shape = &tuple[c]->shape;
        char text[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
        if (many && !shape->rank)
            return fail(err, INVALID, "Component %d of a batch must not be a scalar", c);
        if (many && !spec->shapes && shape->dims[0] != tuple[0]->shape.dims[0])
            return fail(err, INVALID,
                        "All input tensors must have the same size in the 0th dimension. "
                        "Component %d has %lld, and should have %lld",
                        c, (long long)shape->dims[0], (long long)tuple[0]->shape.dims[0]);
        struct shape whole = spec->shapes ? spec->shapes[c] : *shape;
        if (spec->shapes && many)
            batch_of(&whole, tuple[0]->shape.dims[0]);
        if (spec->shapes && !fits(&whole, shape))
            return fail(err, INVALID,
                        "Shape mismatch in tuple component %d. Expected %s, got %s", c,
                        shape_text(&whole, wanted, sizeof(wanted)),
                        shape_text(shape, text, sizeof(text)));
        if (spec->kind == QUEUE_PRIORITY && c == 0 && shape->rank != many)
            return fail(err, INVALID,
                        "Expected the priority element to be a scalar, but received shape: %s",
                        shape_text(shape, text, sizeof(text)));
    }
    return true;
}

/* --- putting --- */

static void ended_without_output(void *arg, struct tensor *tuple, const struct error *err)
{
    (void)tuple;
    kernel_done(arg, err);
}

static void enqueue(struct kernel_call *call, bool many)
{
    struct error err;
    struct queue *queue = queue_in(call, &err);
    const struct tensor *const *tuple = call->in + 1;
    if (!queue || !check_types(call, queue, false, &err) ||
        !check_tuple(queue, tuple, many, &err))
        kernel_done(call, &err);
    else
        kernel_queue_put(queue, tuple, many, kernel_cancel(call), ended_without_output, call);
    unref(queue);
}

static void enqueue_start(struct kernel_call *call)
{
    enqueue(call, false);
}

static void enqueue_many_start(struct kernel_call *call)
{
    enqueue(call, true);
}

/* --- taking --- */

static void dequeued(void *arg, struct tensor *tuple, const struct error *err)
{
    struct kernel_call *call = arg;
    for (int c = 0; tuple && c < call->node->outputs_count; c++)
        kernel_output_take(call, c, &tuple[c]);
    kernel_done(call, err);
}

static void dequeue_start(struct kernel_call *call)
{
    struct error err;
    struct queue *queue = queue_in(call, &err);
    if (!queue || !check_types(call, queue, true, &err))
        kernel_done(call, &err);
    else
        kernel_queue_take(queue, kernel_cancel(call), dequeued, call);
    unref(queue);
}

static bool check_many(struct kernel_call *call, const struct queue *queue, const char *what,
                       int64_t *count, struct error *err)
{
    if (!kernel_scalar(call, 1, "n", count, err))
        return false;
    if (*count < 0)
        return fail(err, INVALID, "%s requested %lld < 0 elements", what, (long long)*count);
    if (!check_types(call, queue, true, err))
        return false;
    const struct queue_spec *spec = kernel_queue_spec(queue);
    return spec->shapes || fail(err, INVALID,
                                "%s's DequeueMany and DequeueUpTo require the components to "
                                "have specified shapes.",
                                kernel_queue_kind_name(spec->kind));
}

static void dequeue_many(struct kernel_call *call, bool up_to)
{
    struct error err;
    int64_t count;
    struct queue *queue = queue_in(call, &err);
    if (!queue ||
        !check_many(call, queue, up_to ? "DequeueUpToOp" : "DequeueManyOp", &count, &err))
        kernel_done(call, &err);
    else
        kernel_queue_take_many(queue, count, up_to, kernel_cancel(call), dequeued, call);
    unref(queue);
}

static void dequeue_many_start(struct kernel_call *call)
{
    dequeue_many(call, false);
}

static void dequeue_up_to_start(struct kernel_call *call)
{
    dequeue_many(call, true);
}

/* --- closing, looking --- */

static void close_start(struct kernel_call *call)
{
    struct error err;
    struct queue *queue = queue_in(call, &err);
    if (!queue)
        kernel_done(call, &err);
    else
        kernel_queue_shut(queue, node_attr_bool(call->node, "cancel_pending_enqueues", false),
                          kernel_cancel(call), ended_without_output, call);
    unref(queue);
}

static bool size_run(struct kernel_call *call, struct error *err)
{
    struct queue *queue = queue_in(call, err);
    struct tensor *out = queue ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        *(int32_t *)out->data = (int32_t)kernel_queue_rows(queue);
    unref(queue);
    return out;
}

static bool is_closed_run(struct kernel_call *call, struct error *err)
{
    struct queue *queue = queue_in(call, err);
    struct tensor *out = queue ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out)
        *(bool *)out->data = kernel_queue_is_shut(queue);
    unref(queue);
    return out;
}

#define WAITING(name_, op_, start_)                                                            \
    const struct kernel kernel_##name_ = {                                                     \
        .op = op_, .device = CPU, .prepare = prepare_waiting, .start = start_}
#define AT_ONCE(name_, op_, run_)                                                              \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, .run = run_}

WAITING(queue_enqueue, "QueueEnqueue", enqueue_start);
WAITING(queue_enqueue_v2, "QueueEnqueueV2", enqueue_start);
WAITING(queue_enqueue_many, "QueueEnqueueMany", enqueue_many_start);
WAITING(queue_enqueue_many_v2, "QueueEnqueueManyV2", enqueue_many_start);
WAITING(queue_dequeue, "QueueDequeue", dequeue_start);
WAITING(queue_dequeue_v2, "QueueDequeueV2", dequeue_start);
WAITING(queue_dequeue_many, "QueueDequeueMany", dequeue_many_start);
WAITING(queue_dequeue_many_v2, "QueueDequeueManyV2", dequeue_many_start);
WAITING(queue_dequeue_up_to, "QueueDequeueUpTo", dequeue_up_to_start);
WAITING(queue_dequeue_up_to_v2, "QueueDequeueUpToV2", dequeue_up_to_start);
WAITING(queue_close, "QueueClose", close_start);
WAITING(queue_close_v2, "QueueCloseV2", close_start);
AT_ONCE(queue_size, "QueueSize", size_run);
AT_ONCE(queue_size_v2, "QueueSizeV2", size_run);
AT_ONCE(queue_is_closed, "QueueIsClosed", is_closed_run);
AT_ONCE(queue_is_closed_v2, "QueueIsClosedV2", is_closed_run);
