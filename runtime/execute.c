/*
 * execute.c - runs a plan: one call after the other, in the plan's order, on the calling
 * thread.
 *
 * DESIGN.  All that a run writes to is in a frame: tensors, slots of memory, one ready
 * kernel_call per step.  Frames are kept for the next run, so a step of a run is one indirect
 * call and the release of what it used last.  Runs that overlap take a frame each.
 *
 * The first run of a plan measures: its outputs come from the heap, and layout.c packs what it
 * saw into one workspace (workspace.h), which later runs use.  When outputs do not fit (another
 * batch size) they go to the heap, and the next run measures again.
 *
 * Order is fixed and kernels alone are parallel (libgomp), so equal runs give equal bits.
 */

#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/attention.h"
#include "runtime/arithmetic.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/numerics.h"
#include "runtime/op.h"

/* A plan whose outputs change their sizes for ever is measured this often, then left as it is.
 */
enum { MEASURE_MAX = 8 };

/* Bytes of a workspace that is not kept between two runs. */
enum { WORKSPACE_LENT_MIN = 1 << 20 };

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
            .functions = plan->context->functions,
            .slots = frame->slots + step->out_first,
            .refs = frame->refs + step->in_first,
            .reusable = step->reusable,
            .threads = plan->context->threads,
            .precision = plan->context->precision,
        };
        if (step->stateful)
            call->state = step->stateful->state;
        else if (step->kernel->prepare && !step->kernel->prepare(step->node, &call->state, err))
            return error_prefix(err, "node '%s' (%s): ", node_shown_name(step->node),
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
    frame->step.memory_bytes_max = plan->context->memory_bytes_max;
    frame->calls = alloc_array((size_t)plan->steps_count, sizeof(*frame->calls));
    frame->in = alloc_array(inputs, sizeof(*frame->in));
    frame->refs = alloc_array(inputs, sizeof(*frame->refs));
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

void execute_free_frame(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        if (!step->stateful && frame->calls[s].state && step->kernel->release)
            step->kernel->release(frame->calls[s].state);
    }
    execute_free_step(&frame->step);
    workspace_drop(&plan->context->workspaces, frame->workspace);
    free(frame->calls);
    free(frame->in);
    free(frame->refs);
    free(frame->values);
    free(frame->slots);
    free(frame);
}

/* Points the slots of a frame at their places in its workspace. */
static void lay_out(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    char *memory = frame->workspace->memory;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        const struct place_in_arena *place = &plan->layout[v];
        struct kernel_slot *slot = &frame->slots[v];
        slot->data = place->offset >= 0 ? memory + place->offset : NULL;
        slot->capacity = place->offset >= 0 ? place->size : 0;
        slot->alias = place->alias;
        slot->pinned = !slot->data && slot->alias < 0;
    }
    frame->laid_out = memory;
    frame->layout_version = plan->layout_version;
}

/* Back to the heap, to see what the plan needs now. */
static void start_measuring(struct frame *frame)
{
    const struct plan *plan = frame->plan;
    frame->laid_out = NULL;
    frame->layout_version = 0;
    for (int v = plan->owned_first; v < plan->values_count; v++) {
        frame->slots[v].data = NULL;
        frame->slots[v].capacity = 0;
        frame->slots[v].alias = -1;
        frame->slots[v].seen = SEEN_NOTHING;
    }
}

/* A workspace for the layout of now. */
static bool find_workspace(struct frame *frame, struct error *err)
{
    struct plan_context *context = frame->plan->context;
    size_t size = frame->plan->arena_size ? frame->plan->arena_size : TENSOR_ALIGN;
    if ((int64_t)size > context->memory_bytes_max)
        return fail(err, EXHAUSTED,
                    "the step needs %zu bytes for its tensors, the session's limit is %lld",
                    size, (long long)context->memory_bytes_max);
    if (frame->workspace && frame->workspace->size >= size)
        return true;
    workspace_drop(&context->workspaces, frame->workspace);
    frame->workspace = workspace_take(&context->workspaces, size);
    if (!frame->workspace)
        return fail(err, EXHAUSTED, "OOM when allocating %zu bytes for the tensors of a step",
                    size);
    return true;
}

/* Makes the frame ready for what the plan wants now: a layout, or measuring. */
static bool fit_frame(struct frame *frame, struct error *err)
{
    struct plan *plan = frame->plan;
    bool ok = true;
    pthread_mutex_lock(&plan->lock);
    if (!plan->layout_version)
        start_measuring(frame);
    else if ((ok = find_workspace(frame, err)) &&
             (frame->layout_version != plan->layout_version ||
              frame->laid_out != frame->workspace->memory))
        lay_out(frame);
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
    bool fits = frame->layout_version == version && (!version || frame->workspace);
    if (!fits && !fit_frame(frame, err)) {
        execute_free_frame(frame);
        return NULL;
    }
    return frame;
}

/* The tensors of a measured run are freed; what is planned for them comes beside. */
static void give_heap_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void give_frame(struct frame *frame, bool ok)
{
    struct plan *plan = frame->plan;
    if (frame->workspace && frame->workspace->size >= WORKSPACE_LENT_MIN) {
        workspace_give(&plan->context->workspaces, frame->workspace);
        frame->workspace = NULL;
    }
    pthread_mutex_lock(&plan->lock);
    bool measured = ok && !frame->layout_version && !plan->layout_version;
    if (measured)
        layout_measure_locked(plan, frame);
    else if (ok && frame->step.misses && frame->layout_version == plan->layout_version &&
             plan->measured < MEASURE_MAX)
        plan->layout_version = 0;
    frame->next = plan->idle;
    plan->idle = frame;
    bool worth_it = measured && plan->arena_size >= WORKSPACE_LENT_MIN;
    pthread_mutex_unlock(&plan->lock);
    if (worth_it)
        give_heap_back();
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
        frame->refs[step->in_first + i] = variable;
        pthread_mutex_lock(&variable->lock);
        bool has_value = variable->value.dtype != DTYPE_NONE;
        if (dtype_is_ref(step->node->input_types[i]))
            frame->in[step->in_first + i] = has_value ? &variable->value : NULL;
        else if (has_value)
            tensor_share(&frame->values[plan->inputs[step->in_first + i]], &variable->value);
        pthread_mutex_unlock(&variable->lock);
        if (!has_value && !(step->node->op->flags & OP_UNINITIALIZED_OK))
            return execute_fail_uninitialized(variable, err);
    }
    return true;
}

/* --- running --- */

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
    return error_prefix(err, "node '%s' (%s): ", node_shown_name(step->node),
                        step->node->op->name);
}

/* How often a run looks whether it was ended. */
enum { CHECK_EVERY = 16 };

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
            execute_reset_scratch(&frame->step);
    }
    return true;
}

/* The same, watched: times of each call, and whether to go on. */
static bool run_watched(struct frame *frame, const struct execute_options *options,
                        struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        struct kernel_call *call = &frame->calls[s];
        uint64_t start_ns = options->trace ? clock_monotonic_ns() : 0;
        if (s % CHECK_EVERY == 0 && execute_stopped(&frame->step, options, err))
            return false;
        struct numerics seen;
        if (step->flags & STEP_HAS_REFS && !follow_refs(frame, step, err))
            return fail_step(step, err);
        if (options->check_numerics)
            numerics_before(call, &seen);
        if (!step->run(call, err) ||
            (options->check_numerics && !numerics_after(call, &seen, err)))
            return fail_step(step, err);
        if (options->trace)
            trace_add(options->trace, call, start_ns);
        release_values(frame, step);
        if (frame->step.scratch && frame->step.scratch->used)
            execute_reset_scratch(&frame->step);
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
        execute_reset_scratch(&frame->step);
}

/* --- feeds and fetches --- */

static bool set_feeds(struct frame *frame, const struct tensor *feeds, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int i = 0; i < plan->feeds_count; i++) {
        const struct node *arg = plan->subgraph->feeds[i];
        if (!execute_check_feed(arg, &feeds[i], err))
            return false;
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

static bool fetch_all(struct frame *frame, struct tensor *fetched, struct error *err)
{
    const struct plan *plan = frame->plan;
    for (int i = 0; i < plan->fetches_count; i++) {
        const struct plan_fetch *fetch = &plan->fetches[i];
        struct tensor *value = &frame->values[fetch->value];
        fetched[i] = (struct tensor){0};
        bool ok = fetch->is_ref
                      ? execute_fetch_ref(frame->slots[fetch->value].variable, &fetched[i], err)
                      : execute_fetch(value, fetch->movable, &fetched[i], err);
        if (!ok) {
            for (int k = 0; k < i; k++)
                tensor_release(&fetched[k]);
            return error_prefix(err, "node '%s' (%s): ", node_shown_name(fetch->node),
                                fetch->node->op->name);
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

bool execute_plan(struct plan *plan, const struct tensor *feeds, struct tensor *fetched,
                  const struct execute_options *options, struct error *err)
{
    if (plan->flow)
        return dataflow_run(plan, feeds, fetched, options, err);
    attention_send();
    struct frame *frame = take_frame(plan, err);
    if (!frame)
        return false;
    frame->step.misses = 0;
    if (!execute_begin(&frame->step, options, err)) {
        give_frame(frame, false);
        return false;
    }
    unsigned arithmetic = arithmetic_start(plan->context->threads);
    bool ok = set_feeds(frame, feeds, err) &&
              (options ? run_watched(frame, options, err) : run_steps(frame, err)) &&
              fetch_all(frame, fetched, err);
    arithmetic_end(arithmetic);
    if (!ok)
        release_all(frame);
    execute_end(&frame->step, options);
    give_frame(frame, ok);
    return ok;
}
