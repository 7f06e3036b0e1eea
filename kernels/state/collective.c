/* collective.c - what the devices of a group do together: its kernels, and their life. */

#include "kernels/state/collective.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/ref/numbers.h"
#include "runtime/cancel.h"

#define TIMEOUT_SECONDS_MAX 1e9

/* --- life --- */

static void finish(struct kernel_collective *op)
{
    struct kernel_call *call = op->call;
    const struct error err = op->err;
    bool failed = op->failed;
    if (op->ticket)
        (void)cancel_remove(kernel_cancel(call), op->ticket);
    if (op->timeout_ns)
        deadline_end(&op->deadline);
    pthread_mutex_destroy(&op->lock);
    free(op->name);
    free(op->key);
    free(op->rings);
    free(op->parts);
    free(op);
    kernel_done(call, failed ? &err : NULL);
}

void kernel_collective_hold(struct kernel_collective *op)
{
    pthread_mutex_lock(&op->lock);
    op->pending++;
    pthread_mutex_unlock(&op->lock);
}

void kernel_collective_drop(struct kernel_collective *op, const struct error *err)
{
    pthread_mutex_lock(&op->lock);
    bool first = err && !op->failed;
    if (first) {
        op->failed = true;
        op->err = *err;
    }
    pthread_mutex_unlock(&op->lock);
    if (first)
        collective_abort(op->collective, err); /* `op` is still held by this call */
    pthread_mutex_lock(&op->lock);
    bool last = !--op->pending;
    pthread_mutex_unlock(&op->lock);
    if (last)
        finish(op);
}

int kernel_collective_task(const struct collective_group *group, int rank, int *first)
{
    const struct device_name *own = &group->devices[rank].parts;
    int count = 0;
    for (int i = 0; i < group->devices_count; i++) {
        const struct device_name *parts = &group->devices[i].parts;
        if (strcmp(parts->job, own->job) != 0 || parts->task != own->task)
            continue;
        if (!count++)
            *first = i;
    }
    return count;
}

/* From outside; finish() waits until this returns. */
static void give_up(struct kernel_collective *op, const struct error *err)
{
    pthread_mutex_lock(&op->lock);
    bool over = !op->pending;
    op->pending += !over;
    pthread_mutex_unlock(&op->lock);
    if (!over)
        kernel_collective_drop(op, err);
}

static void cancelled(void *arg)
{
    struct kernel_collective *op = arg;
    struct error err;
    (void)fail(&err, CANCELLED, "op cancelled %s", op->wish.name);
    give_up(op, &err);
}

static void nobody_came(void *arg)
{
    struct error err;
    (void)fail(&err, DEADLINE, "Collective has timed out waiting for other workers.");
    give_up(arg, &err);
}

static void takes_too_long(void *arg)
{
    struct error err;
    (void)fail(&err, DEADLINE, "Collective has timed out during execution.");
    give_up(arg, &err);
}

static void begin_deadline(struct kernel_collective *op, void (*over)(void *arg))
{
    if (op->timeout_ns)
        deadline_begin(&op->deadline, clock_monotonic_ns() + op->timeout_ns, over, op);
}

static void joined(void *arg, const struct collective_group *group, int source,
                   const struct error *err)
{
    struct kernel_collective *op = arg;
    if (!err) {
        op->group = group;
        op->source = source;
        op->rank = -1;
        for (int i = 0; i < group->devices_count; i++)
            if (!strcmp(group->devices[i].name, collective_device(op->collective)->name))
                op->rank = i;
        assert(op->rank >= 0);
        if (op->timeout_ns)
            deadline_end(&op->deadline);
        begin_deadline(op, takes_too_long);
        if (op->wish.type == COLLECTIVE_BROADCAST)
            kernel_collective_tree(op);
        else
            kernel_collective_ring(op);
    }
    kernel_collective_drop(op, err);
}

/* 0: as long as it takes. */
static uint64_t timeout_ns(const struct node *node)
{
    double seconds = (double)node_attr_float(node, "timeout_seconds", 0);
    return seconds > 0 ? (uint64_t)(fmin(seconds, TIMEOUT_SECONDS_MAX) * 1e6) * 1000 : 0;
}

static struct kernel_collective *new_op(struct kernel_call *call, enum collective_type type,
                                        char *name)
{
    struct kernel_collective *op = alloc_bytes(sizeof(*op));
    op->call = call;
    op->collective = kernel_collective(call);
    op->name = name;
    op->rings_max = -1;
    op->timeout_ns = timeout_ns(call->node);
    op->wish = (struct collective_wish){
        .name = name, .type = type, .dtype = dtype_base(call->node->output_types[0])};
    op->pending = 1;
    pthread_mutex_init(&op->lock, NULL);
    return op;
}

/* What was read of the node is whole, or not. */
static void begin(struct kernel_collective *op, bool ok, struct error *err)
{
    struct kernel_call *call = op->call;
    uint64_t ticket;
    if (ok && op->wish.group_size <= 0)
        ok = fail(err, INVALID, "group_size must be positive integer but got %d",
                  op->wish.group_size);
    if (ok && !op->collective && op->wish.group_size > 1)
        ok = fail(err, PRECONDITION,
                  "Collective Op %s has group_size %d, but there is no other device",
                  op->wish.name, op->wish.group_size);
    if (!ok) {
        op->failed = true;
        op->err = *err;
    }
    if (!ok || !op->collective) {
        finish(op);
        return;
    }
    op->key = alloc_printf("%d:%d:%" PRIu64 ":%" PRId64, op->wish.group_key,
                           op->wish.instance_key, call->frame_id, call->iteration);
    kernel_collective_hold(op);
    if (cancel_add(kernel_cancel(call), cancelled, op, &ticket)) {
        pthread_mutex_lock(&op->lock);
        op->ticket = ticket;
        pthread_mutex_unlock(&op->lock);
        begin_deadline(op, nobody_came);
        collective_join(op->collective, &op->wish, joined, op);
        kernel_collective_drop(op, NULL);
    } else {
        (void)fail(err, CANCELLED, "op cancelled %s", op->wish.name);
        kernel_collective_drop(op, NULL);
        kernel_collective_drop(op, err);
    }
}

/* --- what nodes say --- */

static void read_keys(struct kernel_collective *op)
{
    const struct node *node = op->call->node;
    op->wish.group_size = (int)node_attr_int(node, "group_size", 0);
    op->wish.group_key = (int)node_attr_int(node, "group_key", 0);
    op->wish.instance_key = (int)node_attr_int(node, "instance_key", 0);
}

/* The second form has them as inputs. */
static bool take_keys(struct kernel_collective *op, int first, struct error *err)
{
    static const char *const names[] = {"group_size", "group_key", "instance_key"};
    int *keys[] = {&op->wish.group_size, &op->wish.group_key, &op->wish.instance_key};
    for (int i = 0; i < 3; i++) {
        const struct tensor *in = kernel_in(op->call, first + i);
        char text[SHAPE_TEXT_BYTES];
        if (in->shape.rank > 0)
            return fail(err, INVALID, "Unexpected dimensions on input %s, got %s", names[i],
                        shape_text(&in->shape, text, sizeof(text)));
        *keys[i] = tensor_i32(in)[0];
    }
    return true;
}

/* The result begins as what this member has: it is changed in place.  Others are lent it. */
static bool copy_input(struct kernel_collective *op, struct error *err)
{
    const struct tensor *in = kernel_in(op->call, 0);
    struct tensor taken;
    op->wish.shape = in->shape;
    if (kernel_input_take(op->call, 0, &taken)) {
        kernel_output_take(op->call, 0, &taken);
        op->out = &op->call->out[0];
        return true;
    }
    op->out = kernel_output_own(op->call, 0, &in->shape, err);
    if (op->out && tensor_bytes(in))
        memcpy(op->out->data, in->data, tensor_bytes(in));
    return op->out;
}

/* --- reduce --- */

static enum collective_merge merge_of(const char *name)
{
    return !strcmp(name, "Mul")   ? MERGE_MUL
           : !strcmp(name, "Min") ? MERGE_MIN
           : !strcmp(name, "Max") ? MERGE_MAX
                                  : MERGE_ADD;
}

static struct kernel_collective *new_reduce(struct kernel_call *call, const char *what)
{
    const char *merge = node_attr_string(call->node, "merge_op", "Add");
    const char *last = node_attr_string(call->node, "final_op", "Id");
    struct kernel_collective *op =
        new_op(call, COLLECTIVE_REDUCE,
               alloc_printf("%s: %s(%s,%s)", call->node->name, what, merge, last));
    op->merge = merge_of(merge);
    op->mean = !strcmp(last, "Div");
    return op;
}

static void reduce_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_reduce(call, "Reduce");
    const int64_t *offsets = node_attr_ints(call->node, "subdiv_offsets", &op->rings_count);
    read_keys(op);
    op->rings = alloc_array((size_t)op->rings_count + 1, sizeof(*op->rings));
    if (op->rings_count)
        memcpy(op->rings, offsets, (size_t)op->rings_count * sizeof(*op->rings));
    begin(op, copy_input(op, &err), &err);
}

static void reduce_v2_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_reduce(call, "ReduceV2");
    op->rings_max = (int)node_attr_int(call->node, "max_subdivs_per_device", -1);
    begin(op, take_keys(op, 1, &err) && copy_input(op, &err), &err);
}

/* --- gather --- */

static bool make_gathered(struct kernel_collective *op, struct error *err)
{
    struct shape shape = kernel_in(op->call, 0)->shape;
    if (shape.rank == 0)
        return fail(err, INVALID, "input should have rank > 0, received 0");
    if (op->wish.group_size > 0)
        shape.dims[0] = shape_product(shape.dims[0], op->wish.group_size);
    op->wish.shape = shape;
    op->out = kernel_output_own(op->call, 0, &shape, err);
    if (op->out && !op->collective && tensor_bytes(op->out))
        memcpy(op->out->data, kernel_in(op->call, 0)->data,
               tensor_bytes(kernel_in(op->call, 0)));
    return op->out;
}

static void gather_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op =
        new_op(call, COLLECTIVE_GATHER, alloc_printf("%s: Gather", call->node->name));
    read_keys(op);
    begin(op, make_gathered(op, &err), &err);
}

static void gather_v2_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op =
        new_op(call, COLLECTIVE_GATHER, alloc_printf("%s: GatherV2", call->node->name));
    begin(op, take_keys(op, 1, &err) && make_gathered(op, &err), &err);
}

/* --- broadcast --- */

static struct kernel_collective *new_broadcast(struct kernel_call *call, bool is_source)
{
    struct kernel_collective *op =
        new_op(call, COLLECTIVE_BROADCAST,
               alloc_printf("%s: Broadcast(%d)", call->node->name, is_source));
    op->wish.is_source = is_source;
    return op;
}

static void send_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_broadcast(call, true);
    const struct shape *shape = node_attr_shape(call->node, "shape");
    read_keys(op);
    bool ok = copy_input(op, &err);
    if (ok && shape && !shape_equal(shape, &op->wish.shape))
        ok = fail(&err, INTERNAL, "Declared shape of op %s does not match shape of input",
                  op->wish.name);
    begin(op, ok, &err);
}

static void send_v2_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_broadcast(call, true);
    begin(op, take_keys(op, 1, &err) && copy_input(op, &err), &err);
}

/* Alone, nobody sends anything: then it is zeros, not whatever there was. */
static bool make_received(struct kernel_collective *op, struct error *err)
{
    op->out = kernel_output_own(op->call, 0, &op->wish.shape, err);
    if (op->out && !op->collective)
        kernel_zero(op->out, 0, op->out->count);
    return op->out;
}

static void receive_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_broadcast(call, false);
    const struct shape *shape = node_attr_shape(call->node, "shape");
    read_keys(op);
    op->wish.shape = shape ? *shape : SHAPE_UNKNOWN;
    begin(op, make_received(op, &err), &err);
}

static void receive_v2_start(struct kernel_call *call)
{
    struct error err;
    struct kernel_collective *op = new_broadcast(call, false);
    begin(op,
          take_keys(op, 0, &err) && kernel_shape_in(call, 3, &op->wish.shape, &err) &&
              make_received(op, &err),
          &err);
}

/* --- which group a device is in --- */

static bool assign_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *groups = kernel_in(call, 0);
    int64_t device, base;
    if (groups->shape.rank != 2)
        return fail(err, INVALID,
                    "group_assignment must be a 2-d Tensor, but has %d dimensions",
                    groups->shape.rank);
    struct tensor *size = kernel_output(call, 0, &SHAPE_SCALAR, err);
    struct tensor *key = size ? kernel_output(call, 1, &SHAPE_SCALAR, err) : NULL;
    if (!key || !kernel_scalar(call, 1, "device_index", &device, err) ||
        !kernel_scalar(call, 2, "base_key", &base, err))
        return false;
    int64_t columns = groups->shape.dims[1];
    ((int32_t *)size->data)[0] = (int32_t)columns;
    for (int64_t i = 0; i < groups->count; i++) {
        int64_t index = tensor_i32(groups)[i];
        int32_t group = (int32_t)((uint32_t)base + (uint32_t)(i / columns));
        if (group == 0)
            return fail(err, INVALID,
                        "Using the reserved group_key = 0 is not allowed: group_id = %" PRId64
                        ", base_key = %" PRId64,
                        i / columns, base);
        if (index < 0 || index >= groups->count)
            return fail(err, INVALID,
                        "Not all items in group_assignment are within [0, number of devices)");
        if (index != device)
            continue;
        ((int32_t *)key->data)[0] = group;
        return true;
    }
    return fail(err, INVALID, "device_index %" PRId64 " is not found in group_assignment",
                device);
}

#define COLLECTIVE(name_, op_, start_)                                                         \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, .start = start_};

COLLECTIVE(collective_reduce, "CollectiveReduce", reduce_start)
COLLECTIVE(collective_reduce_v2, "CollectiveReduceV2", reduce_v2_start)
COLLECTIVE(collective_gather, "CollectiveGather", gather_start)
COLLECTIVE(collective_gather_v2, "CollectiveGatherV2", gather_v2_start)
COLLECTIVE(collective_bcast_send, "CollectiveBcastSend", send_start)
COLLECTIVE(collective_bcast_send_v2, "CollectiveBcastSendV2", send_v2_start)
COLLECTIVE(collective_bcast_recv, "CollectiveBcastRecv", receive_start)
COLLECTIVE(collective_bcast_recv_v2, "CollectiveBcastRecvV2", receive_v2_start)

const struct kernel kernel_collective_assign_group_v2 = {
    .op = "CollectiveAssignGroupV2", .device = CPU, .run = assign_run};
