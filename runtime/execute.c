/*
 * execute.c - runs a plan: one call after the other, in the plan's order, on the calling
 * thread.
 *
 * DESIGN.  All that a run writes to is in a frame: tensors, slots of memory, one ready
 * kernel_call per step.  Frames are kept for the next run, so a step of a run is one indirect
 * call and the release of what it used last.  Runs that overlap take a frame each.
 *
 * The first run of a plan measures: its outputs come from the heap, and layout.c packs what it
 * saw into one arena, which later runs use.  When outputs do not fit (another batch size) they
 * go to the heap, and the next run measures again.
 *
 * Order is fixed and kernels alone are parallel (libgomp), so equal runs give equal bits.
 */

#include <stdlib.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/op.h"

/* OpenMP's; its header is not there for every compiler. */
void omp_set_num_threads(int threads);

/* A plan whose outputs change their sizes for ever is measured this often, then left as it is.
 */
enum { MEASURE_MAX = 8 };

/* --- frames --- */

static bool prepare_calls(struct frame *frame, struct error *err)
{
    struct plan *plan = frame->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        struct kernel_call *call = &frame->calls[s];
        *call = (struct kernel_call){
            .node = step->node,
            .in = frame->in + step->in_first,
            .in_count = step->in_count,
            .out = frame->values + step->out_first,
            .step = &frame->step,
            .resources = plan->context->resources,
            .slots = frame->slots + step->out_first,
            .reusable = step->reusable,
            .threads = plan->context->threads,
        };
        if (step->stateful)
            call->state = step->stateful->state;
        else if (step->kernel->prepare && !step->kernel->prepare(step->node, &call->state, err))
            return error_prefix(err, "node '%s' (%s): ", step->node->name,
                                step->node->op->name);
    }
    return true;
}

static struct frame *frame_new(struct plan *plan, struct error *err)
{
    struct frame *frame = alloc_bytes(sizeof(*frame));
    size_t inputs = 0;
    for (int s = 0; s < plan->steps_count; s++)
        inputs += (size_t)plan->steps[s].in_count;
    size_t values = (size_t)plan->values_count;
    frame->plan = plan;
    frame->step.frame = frame;
    frame->calls = alloc_array((size_t)plan->steps_count, sizeof(*frame->calls));
    frame->in = alloc_array(inputs, sizeof(*frame->in));
    frame->values = alloc_array(values, sizeof(*frame->values));
    frame->slots = alloc_array(values, sizeof(*frame->slots));
    for (size_t i = 0; i < inputs; i++)
        frame->in[i] = &frame->values[plan->inputs[i]];
    for (int i = 0; i < plan->constants_count; i++)
        frame->values[plan->constants[i].value] = *plan->constants[i].tensor;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        int type = *plan->types_of_value[v];
        frame->values[v].shape.rank = -1;
        frame->slots[v] = (struct kernel_slot){.dtype = dtype_base(type),
                                               .element_bytes = (int)dtype_size(type),
                                               .alias = -1,
                                               .seen = SEEN_NOTHING};
    }
    if (!prepare_calls(frame, err)) {
        execute_free_frame(frame);
        return NULL;
    }
    return frame;
}

static void free_scratch(struct step *step)
{
    while (step->scratch) {
        struct scratch_block *next = step->scratch->next;
        free(step->scratch);
        step->scratch = next;
    }
}

void execute_free_frame(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        if (!step->stateful && frame->calls[s].state && step->kernel->release)
            step->kernel->release(frame->calls[s].state);
    }
    free_scratch(&frame->step);
    free(frame->arena);
    free(frame->calls);
    free(frame->in);
    free(frame->values);
    free(frame->slots);
    free(frame);
}

/* Points the slots of a frame at their places in an arena of its own. */
static bool lay_out(struct frame *frame, struct error *err)
{
    struct plan *plan = frame->plan;
    size_t size = plan->arena_size ? plan->arena_size : TENSOR_ALIGN;
    if ((int64_t)size > plan->context->memory_bytes_max)
        return fail(err, EXHAUSTED,
                    "the step needs %zu bytes for its tensors, the session's limit is %lld",
                    size, (long long)plan->context->memory_bytes_max);
    free(frame->arena);
    frame->layout_version = 0;
    frame->arena = aligned_alloc(TENSOR_ALIGN, size);
    if (!frame->arena)
        return fail(err, EXHAUSTED, "OOM when allocating %zu bytes for the tensors of a step",
                    size);

    for (int v = plan->owned_first; v < plan->values_count; v++) {
        const struct place_in_arena *place = &plan->layout[v];
        struct kernel_slot *slot = &frame->slots[v];
        slot->data = place->offset >= 0 ? frame->arena + place->offset : NULL;
        slot->capacity = place->offset >= 0 ? place->size : 0;
        slot->alias = place->alias;
        slot->pinned = !slot->data && slot->alias < 0;
    }
    frame->layout_version = plan->layout_version;
    return true;
}

/* Back to the heap, to see what the plan needs now. */
static void start_measuring(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    free(frame->arena);
    frame->arena = NULL;
    frame->layout_version = 0;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        frame->slots[v].data = NULL;
        frame->slots[v].capacity = 0;
        frame->slots[v].alias = -1;
        frame->slots[v].seen = SEEN_NOTHING;
    }
}

/* Makes the frame ready for what the plan wants now: another layout, or measuring. */
static bool fit_frame(struct frame *frame, struct error *err)
{
    struct plan *plan = frame->plan;
    bool ok = true;
    pthread_mutex_lock(&plan->lock);
    if (plan->layout_version)
        ok = lay_out(frame, err);
    else
        start_measuring(frame);
    pthread_mutex_unlock(&plan->lock);
    return ok;
}

static struct frame *take_frame(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->lock);
    struct frame *frame = plan->idle;
    if (frame)
        plan->idle = frame->next;
    int version = plan->layout_version;
    pthread_mutex_unlock(&plan->lock);
    if (!frame) {
        frame = frame_new(plan, err);
        if (!frame)
            return NULL;
    }
    if (frame->layout_version != version && !fit_frame(frame, err)) {
        execute_free_frame(frame);
        return NULL;
    }
    return frame;
}

static void give_frame(struct frame *frame, bool ok)
{
    struct plan *plan = frame->plan;
    pthread_mutex_lock(&plan->lock);
    if (ok && !frame->layout_version && !plan->layout_version)
        layout_measure_locked(plan, frame);
    else if (ok && frame->step.misses && frame->layout_version == plan->layout_version &&
             plan->measured < MEASURE_MAX)
        plan->layout_version = 0;
    frame->next = plan->idle;
    plan->idle = frame;
    pthread_mutex_unlock(&plan->lock);
}

bool execute_prepare(struct plan *plan, struct error *err)
{
    struct frame *frame = frame_new(plan, err);
    if (!frame)
        return false;
    plan->idle = frame;
    return true;
}

/* --- references --- */

static bool fail_uninitialized(const struct variable *variable, struct error *err)
{
    return fail(err, PRECONDITION, "Attempting to use uninitialized value %s", variable->name);
}

/* Before a call with references among its inputs: follows them. */
static bool follow_refs(struct frame *frame, const struct plan_step *step, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int i = 0; i < step->in_count; i++) {
        int source = plan->sources[step->in_first + i];
        struct variable *variable = frame->slots[source].variable;
        const struct edge *edge = &step->node->inputs[i];
        if (!dtype_is_ref(edge->from->output_types[edge->output]))
            continue;
        assert(variable);
        pthread_mutex_lock(&variable->lock);
        bool has_value = variable->value.dtype != DTYPE_NONE;
        if (dtype_is_ref(step->node->input_types[i]))
            frame->in[step->in_first + i] = has_value ? &variable->value : NULL;
        else if (has_value)
            tensor_share(&frame->values[plan->inputs[step->in_first + i]], &variable->value);
        pthread_mutex_unlock(&variable->lock);
        if (!has_value && !(step->node->op->flags & OP_UNINITIALIZED_OK))
            return fail_uninitialized(variable, err);
    }
    return true;
}

/* --- running --- */

/* A kernel that may wait, in a plan that runs one call after the other. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
    bool ok;
    struct error *err;
};

static void wake(struct kernel_call *call, const struct error *err)
{
    struct waiting *waiting = call->waiter;
    pthread_mutex_lock(&waiting->lock);
    waiting->done = true;
    waiting->ok = !err;
    if (err)
        *waiting->err = *err;
    pthread_cond_signal(&waiting->ended);
    pthread_mutex_unlock(&waiting->lock);
}

/* In place of a run() that the kernel does not have: starts it and waits. */
bool execute_waiting(struct kernel_call *call, struct error *err)
{
    struct waiting waiting = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER, .err = err};
    const struct plan_step *step =
        &call->step->frame->plan->steps[call - call->step->frame->calls];
    call->waiter = &waiting;
    call->done = wake;
    step->kernel->start(call);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.done)
        pthread_cond_wait(&waiting.ended, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    return waiting.ok;
}

/* After a kernel that took scratch: one block as large as all that were needed. */
static void reset_scratch(struct step *step)
{
    size_t size = 0;
    for (struct scratch_block *block = step->scratch; block; block = block->next)
        size += block->size;
    if (step->scratch->next) {
        free_scratch(step);
        struct scratch_block *block = aligned_alloc(TENSOR_ALIGN, TENSOR_ALIGN + size);
        if (!block)
            return; /* the next kernel that asks will be told */
        *block = (struct scratch_block){.size = size};
        step->scratch = block;
    }
    step->scratch->used = 0;
}

static inline void release_values(struct frame *frame, const struct plan_step *step)
{
    const int *releases = frame->plan->releases + step->release_first;
    for (int i = 0; i < step->release_count; i++) {
        struct tensor *tensor = &frame->values[releases[i]];
        if (tensor->buffer) {
            buffer_unref(tensor->buffer);
            tensor->buffer = NULL;
        }
    }
}

static bool fail_step(const struct plan_step *step, struct error *err)
{
    return error_prefix(err, "node '%s' (%s): ", step->node->name, step->node->op->name);
}

static bool run_steps(struct frame *frame, struct error *err)
{
    const struct plan *plan = frame->plan;
    const struct plan_step *step = plan->steps;
    const struct plan_step *end = step + plan->steps_count;
    struct kernel_call *call = frame->calls;
    for (; step < end; step++, call++) {
        if (step->flags & STEP_HAS_REFS && !follow_refs(frame, step, err))
            return fail_step(step, err);
        if (!step->run(call, err))
            return fail_step(step, err);
        release_values(frame, step);
        if (frame->step.scratch && frame->step.scratch->used)
            reset_scratch(&frame->step);
    }
    return true;
}

/* The same with a look at the clock before and after each call. */
static bool run_traced(struct frame *frame, struct trace *trace, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        struct kernel_call *call = &frame->calls[s];
        struct trace_row *row = &trace->rows[s];
        row->start_ns = clock_monotonic_ns();
        if ((step->flags & STEP_HAS_REFS && !follow_refs(frame, step, err)) ||
            !step->run(call, err))
            return fail_step(step, err);
        row->end_ns = clock_monotonic_ns();
        for (int i = 0; i < step->node->outputs_count; i++)
            if (!dtype_is_ref(step->node->output_types[i]) && call->out[i].data)
                row->out_bytes += tensor_bytes(&call->out[i]);
        release_values(frame, step);
        if (frame->step.scratch && frame->step.scratch->used)
            reset_scratch(&frame->step);
    }
    return true;
}

/* After a failure anything may still hold a buffer. */
static void release_all(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        buffer_unref(frame->values[v].buffer);
        frame->values[v].buffer = NULL;
    }
    if (frame->step.scratch)
        reset_scratch(&frame->step);
}

/* --- feeds and fetches --- */

static bool set_feeds(struct frame *frame, const struct tensor *feeds, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int i = 0; i < plan->feeds_count; i++) {
        const struct node *arg = plan->subgraph->feeds[i];
        if (feeds[i].dtype != (enum dtype)arg->output_types[0])
            return fail(err, INTERNAL, "feed %s has the type %s, but the graph says %s",
                        arg->name + strlen("_arg_"), dtype_name(feeds[i].dtype),
                        dtype_name(arg->output_types[0]));
        struct tensor *value = &frame->values[plan->feeds[i]];
        value->dtype = feeds[i].dtype;
        value->count = feeds[i].count;
        value->data = feeds[i].data;
        value->buffer = feeds[i].buffer;
        value->shape.rank = feeds[i].shape.rank;
        memcpy(value->shape.dims, feeds[i].shape.dims,
               (size_t)feeds[i].shape.rank * sizeof(int64_t));
    }
    return true;
}

static bool fetch_ref(struct variable *variable, struct tensor *out, struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool ok = variable->value.dtype != DTYPE_NONE ? tensor_clone(out, &variable->value, err)
                                                  : fail_uninitialized(variable, err);
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

/* What leaves the step shares memory with nobody: moved if it is the last, else copied. */
static bool fetch_all(struct frame *frame, struct tensor *fetched, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int i = 0; i < plan->fetches_count; i++) {
        const struct plan_fetch *fetch = &plan->fetches[i];
        struct tensor *value = &frame->values[fetch->value];
        bool ok = true;
        fetched[i] = (struct tensor){0};
        if (fetch->is_ref) {
            ok = fetch_ref(frame->slots[fetch->value].variable, &fetched[i], err);
        } else if (fetch->movable && tensor_is_exclusive(value)) {
            fetched[i] = *value;
            value->buffer = NULL;
        } else {
            ok = tensor_clone(&fetched[i], value, err);
        }
        if (!ok) {
            for (int k = 0; k < i; k++)
                tensor_release(&fetched[k]);
            return error_prefix(err, "fetch '%s': ", fetch->node->name);
        }
    }
    for (int i = 0; i < plan->fetches_count; i++) {
        int value = plan->fetches[i].value;
        if (value >= plan->owned_first && frame->values[value].buffer) {
            buffer_unref(frame->values[value].buffer);
            frame->values[value].buffer = NULL;
        }
    }
    return true;
}

/* --- the state of the processor --- */

#if defined(__x86_64__)
enum { FLUSH_DENORMALS = 0x8040 }; /* flush to zero, denormals are zero */

/* Each thread of the pool keeps its own setting, so it is set once in all of them. */
static void flush_denormals_in_pool(int threads)
{
    static __thread int threads_set;
    if (threads <= threads_set)
        return;
#pragma omp parallel num_threads(threads)
    _mm_setcsr(_mm_getcsr() | FLUSH_DENORMALS);
    threads_set = threads;
}

static unsigned start_arithmetic(int threads)
{
    unsigned before = _mm_getcsr();
    flush_denormals_in_pool(threads);
    _mm_setcsr(before | FLUSH_DENORMALS);
    return before;
}

static void end_arithmetic(unsigned before)
{
    _mm_setcsr(before);
}
#else
static unsigned start_arithmetic(int threads)
{
    (void)threads;
    return 0;
}

static void end_arithmetic(unsigned before)
{
    (void)before;
}
#endif

bool execute_plan(struct plan *plan, const struct tensor *feeds, struct tensor *fetched,
                  struct trace *trace, struct error *err)
{
    struct frame *frame = take_frame(plan, err);
    if (!frame)
        return false;
    frame->step.misses = 0;
    frame->step.cancel = cancel_new();
    unsigned arithmetic = start_arithmetic(plan->context->threads);
    omp_set_num_threads(plan->context->threads);
    bool ok = set_feeds(frame, feeds, err) &&
              (trace ? run_traced(frame, trace, err) : run_steps(frame, err)) &&
              fetch_all(frame, fetched, err);
    end_arithmetic(arithmetic);
    if (!ok)
        release_all(frame);
    resources_free(frame->step.resources);
    frame->step.resources = NULL;
    cancel_free(frame->step.cancel);
    frame->step.cancel = NULL;
    give_frame(frame, ok);
    return ok;
}
