/*
 * queue.c - queues and barriers.  The forms without V2 have a handle that is a reference to two
 * strings, container and name; they are stateful here, as what they do cannot be done twice.
 */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

/* Shape `index` of the components that the node behind input 0 declares; NULL if unknown. */
static const struct shape *component_shape(const struct infer *infer, int index)
{
    const struct node *queue = infer->node->inputs[0].from;
    const struct attr *shapes = node_attr(queue, "shapes");
    if (!strncmp(queue->op->name, "PriorityQueue", strlen("PriorityQueue"))) {
        static const struct shape scalar = {.rank = 0};
        if (index == 0)
            return &scalar;
        index--;
    }
    return shapes && shapes->kind == ATTR_SHAPE && index < shapes->count
               ? &shapes->shapes[index]
               : NULL;
}

static bool infer_dequeue(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++) {
        const struct shape *shape = component_shape(infer, i);
        if (shape)
            infer->outputs[i] = *shape;
    }
    return true;
}

/* A first dimension of n, or fewer where fewer will do. */
static bool infer_rows(struct infer *infer, int64_t rows)
{
    for (int i = 0; i < infer->node->outputs_count; i++) {
        const struct shape *shape = component_shape(infer, i);
        if (!shape || shape->rank < 0 || shape->rank >= LIMIT_TENSOR_RANK)
            continue;
        struct shape *out = &infer->outputs[i];
        out->rank = shape->rank + 1;
        out->dims[0] = rows;
        for (int d = 0; d < shape->rank; d++)
            out->dims[d + 1] = shape->dims[d];
    }
    return true;
}

static bool infer_dequeue_many(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t n;
    if (!op_infer_value(infer, 1, &n) || n < 0)
        n = -1;
    return infer_rows(infer, n);
}

static bool infer_dequeue_up_to(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_rows(infer, -1);
}

#define MAKER(constant, name_, handle_, attrs_)                                                \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "",                                                                          \
        .outputs = "handle:" handle_,                                                          \
        .attrs = attrs_ " container:string='' shared_name:string=''",                          \
        .flags = OP_STATEFUL,                                                                  \
        .no_gradient = true,                                                                   \
    }
#define BY_REF "Ref(string)"

#define ANY_SHAPES "component_types:list(type)>=1 shapes:list(shape)=[] capacity:int=-1"
#define SHUFFLE ANY_SHAPES " min_after_dequeue:int=0 seed:int=0 seed2:int=0"
#define PRIORITY "component_types:list(type)=[] shapes:list(shape) capacity:int=-1"

MAKER(fifo_queue, "FIFOQueue", BY_REF, ANY_SHAPES);
MAKER(fifo_queue_v2, "FIFOQueueV2", "resource", ANY_SHAPES);
MAKER(random_shuffle_queue, "RandomShuffleQueue", BY_REF, SHUFFLE);
MAKER(random_shuffle_queue_v2, "RandomShuffleQueueV2", "resource", SHUFFLE);
MAKER(padding_fifo_queue, "PaddingFIFOQueue", BY_REF, ANY_SHAPES);
MAKER(padding_fifo_queue_v2, "PaddingFIFOQueueV2", "resource", ANY_SHAPES);
MAKER(priority_queue, "PriorityQueue", BY_REF, PRIORITY);
MAKER(priority_queue_v2, "PriorityQueueV2", "resource", PRIORITY);
MAKER(barrier, "Barrier", BY_REF, ANY_SHAPES);

/* Both forms of an op. */
#define USER(constant, name_, inputs_, outputs_, attrs_, infer_)                               \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "handle:" BY_REF inputs_,                                                    \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    };                                                                                         \
    const struct op op_##constant##_v2 = {                                                     \
        .name = name_ "V2",                                                                    \
        .inputs = "handle:resource" inputs_,                                                   \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

#define PUT " components:list(Tcomponents)"
#define PUT_ATTRS "Tcomponents:list(type)>=1 timeout_ms:int=-1"
#define TAKE "components:list(component_types)"
#define TAKE_ATTRS "component_types:list(type)>=1 timeout_ms:int=-1"

USER(queue_enqueue, "QueueEnqueue", PUT, "", PUT_ATTRS, NULL);
USER(queue_enqueue_many, "QueueEnqueueMany", PUT, "", PUT_ATTRS, NULL);
USER(queue_dequeue, "QueueDequeue", "", TAKE, TAKE_ATTRS, infer_dequeue);
USER(queue_dequeue_many, "QueueDequeueMany", " n:int32", TAKE, TAKE_ATTRS, infer_dequeue_many);
USER(queue_dequeue_up_to, "QueueDequeueUpTo", " n:int32", TAKE, TAKE_ATTRS,
     infer_dequeue_up_to);
USER(queue_close, "QueueClose", "", "", "cancel_pending_enqueues:bool=false", NULL);
USER(queue_size, "QueueSize", "", "size:int32", "", op_infer_scalar);
USER(queue_is_closed, "QueueIsClosed", "", "is_closed:bool", "", op_infer_scalar);

#define BARRIER_USER(constant, name_, inputs_, outputs_, attrs_, infer_)                       \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = "handle:" BY_REF inputs_,                                                    \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

BARRIER_USER(barrier_insert_many, "BarrierInsertMany", " keys:string values:T", "",
             "T:type component_index:int", NULL);
BARRIER_USER(barrier_take_many, "BarrierTakeMany", " num_elements:int32",
             "indices:int64 keys:string values:list(component_types)",
             "component_types:list(type)>=1 allow_small_batch:bool=false "
             "wait_for_incomplete:bool=false timeout_ms:int=-1",
             NULL);
BARRIER_USER(barrier_close, "BarrierClose", "", "", "cancel_pending_enqueues:bool=false", NULL);
BARRIER_USER(barrier_ready_size, "BarrierReadySize", "", "size:int32", "", op_infer_scalar);
BARRIER_USER(barrier_incomplete_size, "BarrierIncompleteSize", "", "size:int32", "",
             op_infer_scalar);
