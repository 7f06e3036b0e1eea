/*
 * stage.c - staging areas: tuples put by one node and taken by another, in order, of which any
 * can be looked at.  All nodes with the same shared_name have the same area.
 */

#include "kernels/ref/numbers.h"
#include "kernels/state/tuple.h"
#include "runtime/attempt.h"
#include "runtime/resource.h"

#include "base/alloc.h"

#define STAGE_KIND "stage"

struct staged {
    struct staged *next;
    struct tensor *tuple;
    int components;
    int64_t bytes;
};

struct stage {
    struct resource resource; /* first */
    struct counter counter;   /* guards: all below but the limits */
    int64_t capacity;         /* tuples; 0: any number */
    int64_t bytes_max;        /* 0: any number */
    struct staged *first, *last;
    int64_t count;
    int64_t bytes;
    struct attempt_list puts, takes;
};

struct visit {
    struct attempt attempt; /* first */
    struct kernel_call *call;
    struct staged *staged; /* to put, or taken */
    int64_t peek;          /* which one to look at; -1: takes the first */
};

static struct stage *stage_of(struct counter *counter)
{
    return (struct stage *)((char *)counter - offsetof(struct stage, counter));
}

static void staged_free(struct staged *staged)
{
    if (staged)
        kernel_tuple_free(staged->tuple, staged->components);
    free(staged);
}

/* A second holder of the same tensors. */
static struct staged *staged_share(const struct staged *staged)
{
    struct staged *copy = alloc_bytes(sizeof(*copy));
    *copy = (struct staged){.tuple = kernel_tuple_new(staged->components),
                            .components = staged->components,
                            .bytes = staged->bytes};
    for (int c = 0; c < staged->components; c++)
        tensor_share(&copy->tuple[c], &staged->tuple[c]);
    return copy;
}

/* --- serving, the lock held --- */

static bool put_locked(struct stage *stage, struct visit *visit)
{
    struct staged *staged = visit->staged;
    if ((stage->capacity && stage->count >= stage->capacity) ||
        (stage->bytes_max && stage->bytes + staged->bytes > stage->bytes_max))
        return false;
    if (stage->last)
        stage->last->next = staged;
    else
        stage->first = staged;
    stage->last = staged;
    stage->count++;
    stage->bytes += staged->bytes;
    visit->staged = NULL;
    return true;
}

static bool take_locked(struct stage *stage, struct visit *visit)
{
    struct staged *staged = stage->first;
    if (visit->peek >= 0) {
        if (visit->peek >= stage->count)
            return false;
        for (int64_t i = 0; i < visit->peek; i++)
            staged = staged->next;
        visit->staged = staged_share(staged);
        return true;
    }
    if (!staged)
        return false;
    stage->first = staged->next;
    if (!stage->first)
        stage->last = NULL;
    stage->count--;
    stage->bytes -= staged->bytes;
    visit->staged = staged;
    return true;
}

/* Who looks at a tuple that is far back does not hold up those who take. */
static void serve_locked(struct counter *counter, struct attempt_list *ended)
{
    struct stage *stage = stage_of(counter);
    bool changed;
    do {
        changed = false;
        while (stage->puts.first && put_locked(stage, (struct visit *)stage->puts.first)) {
            attempt_end_locked(stage->puts.first, ended);
            changed = true;
        }
        struct attempt *next;
        for (struct attempt *take = stage->takes.first; take; take = next) {
            next = take->next;
            if (take_locked(stage, (struct visit *)take)) {
                attempt_end_locked(take, ended);
                changed = true;
            }
        }
    } while (changed);
}

/* --- the area of a node --- */

static void stage_destroy(struct resource *resource)
{
    struct stage *stage = (struct stage *)resource;
    while (stage->first) {
        struct staged *next = stage->first->next;
        staged_free(stage->first);
        stage->first = next;
    }
    attempt_counter_release(&stage->counter);
    free(stage);
}

static struct resource *stage_make(const void *arg, struct error *err)
{
    (void)err;
    const struct node *node = arg;
    struct stage *stage = alloc_bytes(sizeof(*stage));
    stage->resource =
        (struct resource){.kind = STAGE_KIND, .references = 1, .destroy = stage_destroy};
    attempt_counter_init(&stage->counter, serve_locked);
    stage->capacity = node_attr_int(node, "capacity", 0);
    stage->bytes_max = node_attr_int(node, "memory_limit", 0);
    return &stage->resource;
}

static struct stage *stage_in(struct kernel_call *call, struct error *err)
{
    const char *shared = node_attr_string(call->node, "shared_name", "");
    return (struct stage *)resources_find_or_make(
        call->resources, node_attr_string(call->node, "container", ""), STAGE_KIND,
        shared[0] ? shared : call->node->name, stage_make, call->node, err);
}

/* --- putting and taking --- */

static void end_visit(struct attempt *attempt)
{
    struct visit *visit = (struct visit *)attempt;
    struct kernel_call *call = visit->call;
    struct stage *stage = stage_of(attempt->counter);
    struct staged *staged = visit->staged;
    if (!attempt->failure && staged && staged->components != call->node->outputs_count)
        attempt_fail(attempt, INVALID, "Mismatch stage/unstage: %d vs. %d", staged->components,
                     call->node->outputs_count);
    for (int c = 0; !attempt->failure && staged && c < staged->components; c++)
        if (staged->tuple[c].dtype != dtype_base(call->node->output_types[c]))
            attempt_fail(attempt, INVALID, "component %d of what was staged is %s, not %s", c,
                         dtype_name(staged->tuple[c].dtype),
                         dtype_name(call->node->output_types[c]));
    for (int c = 0; !attempt->failure && staged && c < staged->components; c++)
        kernel_output_take(call, c, &staged->tuple[c]);
    kernel_done(call, attempt->failure);
    staged_free(staged);
    attempt_release(attempt);
    free(visit);
    resource_unref(&stage->resource);
}

/* Takes the reference to the stage over. */
static void begin_visit(struct stage *stage, struct kernel_call *call, struct staged *staged,
                        int64_t peek)
{
    struct visit *visit = alloc_bytes(sizeof(*visit));
    *visit =
        (struct visit){.attempt = {.what = staged ? "Stage" : "Unstage", .done = end_visit},
                       .call = call,
                       .staged = staged,
                       .peek = peek};
    resource_ref(&stage->resource); /* until attempt_begin() has returned */
    attempt_begin(&visit->attempt, &stage->counter, staged ? &stage->puts : &stage->takes,
                  kernel_cancel(call));
    resource_unref(&stage->resource);
}

static void stage_start(struct kernel_call *call)
{
    struct error err;
    struct stage *stage = stage_in(call, &err);
    if (!stage) {
        kernel_done(call, &err);
        return;
    }
    int64_t bytes = 0;
    for (int c = 0; c < call->in_count; c++)
        bytes += (int64_t)tensor_bytes(kernel_in(call, c));
    if (stage->bytes_max && bytes > stage->bytes_max) {
        fail(&err, EXHAUSTED,
             "Attempted to insert tensors with combined size of '%lld' bytes into Staging Area "
             "with a memory limit of '%lld'.",
             (long long)bytes, (long long)stage->bytes_max);
        resource_unref(&stage->resource);
        kernel_done(call, &err);
        return;
    }
    struct staged *staged = alloc_bytes(sizeof(*staged));
    *staged = (struct staged){.tuple = kernel_tuple_share(call->in, call->in_count),
                              .components = call->in_count,
                              .bytes = bytes};
    begin_visit(stage, call, staged, -1);
}

static void unstage_start(struct kernel_call *call)
{
    struct error err;
    struct stage *stage = stage_in(call, &err);
    if (stage)
        begin_visit(stage, call, NULL, -1);
    else
        kernel_done(call, &err);
}

static void peek_start(struct kernel_call *call)
{
    struct error err;
    int64_t index;
    bool ok = kernel_scalar(call, 0, "index", &index, &err) &&
              (index >= 0 ||
               fail(&err, INVALID, "index must not be negative: %lld", (long long)index));
    struct stage *stage = ok ? stage_in(call, &err) : NULL;
    if (stage)
        begin_visit(stage, call, NULL, index);
    else
        kernel_done(call, &err);
}

/* --- looking, clearing --- */

static bool size_run(struct kernel_call *call, struct error *err)
{
    struct stage *stage = stage_in(call, err);
    struct tensor *out = stage ? kernel_output(call, 0, &SHAPE_SCALAR, err) : NULL;
    if (out) {
        pthread_mutex_lock(&stage->counter.lock);
        *(int32_t *)out->data = (int32_t)stage->count;
        pthread_mutex_unlock(&stage->counter.lock);
    }
    if (stage)
        resource_unref(&stage->resource);
    return out;
}

static bool clear_run(struct kernel_call *call, struct error *err)
{
    struct stage *stage = stage_in(call, err);
    if (!stage)
        return false;
    struct attempt_list ended = {0};
    pthread_mutex_lock(&stage->counter.lock);
    struct staged *all = stage->first;
    stage->first = stage->last = NULL;
    stage->count = stage->bytes = 0;
    serve_locked(&stage->counter, &ended);
    pthread_mutex_unlock(&stage->counter.lock);
    attempt_finish(&ended);
    while (all) {
        struct staged *next = all->next;
        staged_free(all);
        all = next;
    }
    resource_unref(&stage->resource);
    return true;
}

const struct kernel kernel_stage = {.op = "Stage", .device = CPU, .start = stage_start};
const struct kernel kernel_unstage = {.op = "Unstage", .device = CPU, .start = unstage_start};
const struct kernel kernel_stage_peek = {.op = "StagePeek", .device = CPU, .start = peek_start};
const struct kernel kernel_stage_size = {.op = "StageSize", .device = CPU, .run = size_run};
const struct kernel kernel_stage_clear = {.op = "StageClear", .device = CPU, .run = clear_run};
