/*
 * stack.c - stacks of tensors that live for one run: what a loop puts aside for its gradient.
 *
 * A stack shares the tensors that are pushed, it copies nothing.  Iterations of a loop push and
 * pop from several threads, so it has a lock.
 */

#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/list.h"
#include "runtime/resource.h"

#define STACK "stack"

struct stack {
    struct resource resource;
    pthread_mutex_t lock; /* guards: all but name, dtype and max */
    struct tensor *items;
    int count;
    int capacity;
    bool closed;
    int max;
    enum dtype dtype;
    char *name;
    struct stack *twins; /* for the gradients of what is on it; each held once */
    struct stack *next_twin;
    char *source; /* of a twin */
};

static void release_items(struct tensor *items, int count)
{
    for (int i = 0; i < count; i++)
        tensor_release(&items[i]);
    free(items);
}

static void stack_destroy(struct resource *resource)
{
    struct stack *stack = (struct stack *)resource;
    release_items(stack->items, stack->count);
    for (struct stack *twin = stack->twins, *next; twin; twin = next) {
        next = twin->next_twin;
        resource_unref(&twin->resource);
    }
    pthread_mutex_destroy(&stack->lock);
    free(stack->name);
    free(stack->source);
    free(stack);
}

/* `name` tells of what node it is in messages, where it gets a number. */
static struct stack *stack_new(const char *name, enum dtype dtype, int max)
{
    static int made; /* __atomic */
    struct stack *stack = alloc_bytes(sizeof(*stack));
    stack->resource =
        (struct resource){.kind = STACK, .references = 1, .destroy = stack_destroy};
    pthread_mutex_init(&stack->lock, NULL);
    stack->max = max;
    stack->dtype = dtype;
    stack->name = alloc_printf("%s_%d", name, __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED));
    return stack;
}

/* Every time it runs it makes another stack, which lives as long as a handle to it. */
static bool stack_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *size = kernel_in(call, 0);
    char text[SHAPE_TEXT_BYTES];
    if (size->shape.rank != 0)
        return fail(err, INVALID, "Stack size must be a scalar, but had shape: %s",
                    shape_text(&size->shape, text, sizeof(text)));
    int32_t max = *tensor_i32(size);
    const char *name = node_attr_string(call->node, "stack_name", "");
    struct stack *stack =
        stack_new(*name ? name : call->node->name,
                  (enum dtype)node_attr_type(call->node, "elem_type"), max < 0 ? INT_MAX : max);
    bool ok = kernel_output_resource(call, 0, &stack->resource, "_stacks", stack->name, err);
    resource_unref(&stack->resource);
    return ok;
}

static bool check_open_locked(const struct stack *stack, struct error *err)
{
    return !stack->closed ||
           fail(err, INVALID, "Stack[%s] has already been closed.", stack->name);
}

/* Takes the tensor over, also when it fails. */
static bool push(struct stack *stack, struct tensor *item, struct error *err)
{
    pthread_mutex_lock(&stack->lock);
    bool ok = check_open_locked(stack, err);
    if (ok && stack->count >= stack->max)
        ok = fail(err, INVALID, "Stack[%s] overflowed its max_size (%d)", stack->name,
                  stack->max);
    if (ok) {
        stack->items =
            alloc_grow(stack->items, stack->count, &stack->capacity, sizeof(*stack->items));
        stack->items[stack->count++] = *item;
    }
    pthread_mutex_unlock(&stack->lock);
    if (!ok)
        tensor_release(item);
    return ok;
}

static bool pop(struct stack *stack, struct tensor *item, struct error *err)
{
    pthread_mutex_lock(&stack->lock);
    bool ok = check_open_locked(stack, err);
    if (ok && stack->count == 0)
        ok = fail(err, INVALID, "Stack[%s] is empty when calling Pop().", stack->name);
    if (ok)
        *item = stack->items[--stack->count];
    pthread_mutex_unlock(&stack->lock);
    return ok;
}

static bool push_run(struct kernel_call *call, struct error *err)
{
    struct stack *stack = (struct stack *)kernel_resource(call, 0, STACK, err);
    const struct tensor *value = kernel_in(call, 1);
    if (!stack)
        return false;
    bool ok = stack->dtype == value->dtype ||
              fail(err, INVALID, "Must have type %s but got %s", dtype_name(stack->dtype),
                   dtype_name(value->dtype));
    if (ok) {
        struct tensor item;
        tensor_share(&item, value);
        ok = push(stack, &item, err);
    }
    if (ok)
        kernel_output_share(call, 0, value, &value->shape);
    resource_unref(&stack->resource);
    return ok;
}

static bool pop_run(struct kernel_call *call, struct error *err)
{
    struct stack *stack = (struct stack *)kernel_resource(call, 0, STACK, err);
    struct tensor item;
    if (!stack)
        return false;
    bool there = pop(stack, &item, err);
    bool ok =
        there && (stack->dtype == dtype_base(call->node->output_types[0]) ||
                  fail(err, INTERNAL, "Stack[%s] holds %s, the node pops %s", stack->name,
                       dtype_name(stack->dtype), dtype_name(call->node->output_types[0])));
    if (ok)
        kernel_output_take(call, 0, &item);
    else if (there)
        tensor_release(&item);
    resource_unref(&stack->resource);
    return ok;
}

/* The twin for gradients of that source, made when it is first asked for. */
static struct stack *find_twin(struct stack *stack, const char *source)
{
    pthread_mutex_lock(&stack->lock);
    struct stack *twin = stack->twins;
    while (twin && strcmp(twin->source, source) != 0)
        twin = twin->next_twin;
    if (!twin) {
        twin = stack_new(stack->name, stack->dtype, INT_MAX);
        twin->source = alloc_text(source);
        twin->next_twin = stack->twins;
        stack->twins = twin;
    }
    pthread_mutex_unlock(&stack->lock);
    return twin;
}

static bool grad_run(struct kernel_call *call, struct error *err)
{
    struct stack *stack = (struct stack *)kernel_resource(call, 0, STACK, err);
    if (!stack)
        return false;
    struct stack *twin = find_twin(stack, node_attr_string(call->node, "source", ""));
    bool ok = kernel_output_resource(call, 0, &twin->resource, "_stacks", twin->name, err);
    resource_unref(&stack->resource);
    return ok;
}

/* What is on it goes at once; what comes after is told that it is closed. */
static bool close_run(struct kernel_call *call, struct error *err)
{
    struct stack *stack = (struct stack *)kernel_resource(call, 0, STACK, err);
    if (!stack)
        return false;
    pthread_mutex_lock(&stack->lock);
    struct tensor *items = stack->items;
    int count = stack->count;
    stack->items = NULL;
    stack->count = stack->capacity = 0;
    stack->closed = true;
    pthread_mutex_unlock(&stack->lock);
    release_items(items, count);
    resource_unref(&stack->resource);
    return true;
}

#define KERNEL(name_, run_)                                                                    \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_stack_v2 = KERNEL("StackV2", stack_run);
const struct kernel kernel_stack_push_v2 = KERNEL("StackPushV2", push_run);
const struct kernel kernel_stack_pop_v2 = KERNEL("StackPopV2", pop_run);
const struct kernel kernel_stack_grad = KERNEL("StackGrad", grad_run);
const struct kernel kernel_stack_close_v2 = KERNEL("StackCloseV2", close_run);
