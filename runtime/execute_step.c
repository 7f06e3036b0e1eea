/* execute_step.c - what a run needs however its calls are ordered: its end, its edges. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/pages.h"

/* --- begin and end --- */

static void cancel_step(void *arg)
{
    cancel_now(((struct step *)arg)->cancel);
}

bool execute_begin(struct step *step, const struct execute_options *options, struct error *err)
{
    if (!step->own && !(options && options->own))
        step->own = cancel_new();
    step->cancel = options && options->own ? options->own : step->own;
    step->collective = options ? options->collective : NULL;
    if (!options || !options->cancel)
        return true;
    return cancel_add(options->cancel, cancel_step, step, &step->parent_ticket) ||
           fail(err, CANCELLED, "the run was cancelled before it began");
}

void execute_end(struct step *step, const struct execute_options *options)
{
    if (options && options->cancel)
        cancel_remove(options->cancel, step->parent_ticket);
    if (step->cancel == step->own && cancel_requested(step->own))
        cancel_clear(step->own);
    resources_free(step->resources);
    step->resources = NULL;
    while (step->held) {
        struct held *next = step->held->next;
        resource_unref(step->held->resource);
        free(step->held);
        step->held = next;
    }
}

bool execute_stopped(const struct step *step, const struct execute_options *options,
                     struct error *err)
{
    if (options && options->deadline_ns && clock_monotonic_ns() >= options->deadline_ns)
        return !fail(err, DEADLINE, "Timed out waiting for notification");
    return cancel_requested(step->cancel) && !fail(err, CANCELLED, "the run was cancelled");
}

/* --- scratch --- */

static void free_scratch(struct step *step)
{
    while (step->scratch) {
        struct scratch_block *next = step->scratch->next;
        free(step->scratch);
        step->scratch = next;
    }
}

/* After a kernel that took scratch: one block as large as all that were needed. */
void execute_reset_scratch(struct step *step)
{
    size_t size = 0;
    for (struct scratch_block *block = step->scratch; block; block = block->next)
        size += block->size;
    if (step->scratch->next) {
        free_scratch(step);
        struct scratch_block *block = pages_new(TENSOR_ALIGN + size);
        if (!block)
            return; /* the next kernel that asks will be told */
        *block = (struct scratch_block){.size = size};
        step->scratch = block;
    }
    step->scratch->used = 0;
}

void execute_free_step(struct step *step)
{
    free_scratch(step);
    cancel_free(step->own);
}

/* --- what comes in, what goes out --- */

bool execute_check_feed(const struct node *arg, const struct tensor *feed, struct error *err)
{
    if (feed->dtype == (enum dtype)arg->output_types[0])
        return true;
    return fail(err, INTERNAL, "feed %s has the type %s, but the graph says %s",
                arg->name + strlen("_arg_"), dtype_name(feed->dtype),
                dtype_name(arg->output_types[0]));
}

bool execute_fail_uninitialized(const struct variable *variable, struct error *err)
{
    return fail(err, PRECONDITION, "Attempting to use uninitialized value %s", variable->name);
}

bool execute_read_ref(struct variable *variable, struct tensor *out, struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool has_value = variable->value.dtype != DTYPE_NONE;
    if (has_value)
        tensor_share(out, &variable->value);
    pthread_mutex_unlock(&variable->lock);
    return has_value || execute_fail_uninitialized(variable, err);
}

bool execute_fetch_ref(struct variable *variable, struct tensor *out, struct error *err)
{
    pthread_mutex_lock(&variable->lock);
    bool ok = variable->value.dtype != DTYPE_NONE ? tensor_clone(out, &variable->value, err)
                                                  : execute_fail_uninitialized(variable, err);
    pthread_mutex_unlock(&variable->lock);
    return ok;
}

bool execute_fetch(struct tensor *value, bool movable, struct tensor *out, struct error *err)
{
    if (!movable || !tensor_is_exclusive(value))
        return tensor_clone(out, value, err);
    *out = *value;
    value->buffer = NULL;
    return true;
}
