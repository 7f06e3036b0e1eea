/* dataflow_run.c - one run from its feeds to its fetches, and what is kept for the next. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/arithmetic.h"
#include "runtime/cancel.h"
#include "runtime/dataflow_call.h"
#include "runtime/memory.h"

/* --- what comes in, what goes out --- */

static void begin(struct dataflow_run *run, struct error *err)
{
    const struct dataflow *flow = run->flow;
    run->age = 0;
    run->ready_count = 0;
    run->wanted = 0;
    run->failed = false;
    run->err = err;
    dataflow_frame_root(run);
    for (int i = 0; i < flow->roots_count; i++)
        dataflow_ready(run, run->root->iterations[0], flow->roots[i]);
}

static bool set_feeds(struct dataflow_run *run, const struct tensor *feeds, struct error *err)
{
    for (int i = 0; i < run->plan->subgraph->feeds_count; i++) {
        if (!execute_check_feed(run->plan->subgraph->feeds[i], &feeds[i], err))
            return false;
        run->root->fixed[run->flow->feeds[i]].tensor = &feeds[i];
    }
    return true;
}

static bool fetch_one(struct dataflow_run *run, int index, struct tensor *out,
                      struct error *err)
{
    const struct edge *edge = &run->plan->subgraph->fetches[index];
    struct dataflow_result *result = &run->results[index];
    int fixed = run->flow->fetches[index];
    *out = (struct tensor){0};
    if (fixed >= 0)
        return execute_fetch((struct tensor *)run->root->fixed[fixed].tensor, false, out, err);
    if (!result->came)
        return fail(err, INVALID, "Retval[%d] does not have value: '%s:%d' is dead", index,
                    edge->from->name, edge->output);
    bool ok = result->variable ? execute_fetch_ref(result->variable, out, err)
                               : execute_fetch(&result->tensor, true, out, err);
    return ok || error_prefix(err, "node '%s' (%s): ", node_shown_name(edge->from),
                              edge->from->op->name);
}

static bool fetch_all(struct dataflow_run *run, struct tensor *fetched, struct error *err)
{
    for (int i = 0; i < run->plan->subgraph->fetches_count; i++) {
        if (fetch_one(run, i, &fetched[i], err))
            continue;
        for (int k = 0; k < i; k++)
            tensor_release(&fetched[k]);
        return false;
    }
    return true;
}

static void clear_results(struct dataflow_run *run)
{
    for (int i = 0; i < run->plan->subgraph->fetches_count; i++) {
        tensor_release(&run->results[i].tensor);
        run->results[i].variable = NULL;
        run->results[i].came = run->results[i].wanted = false;
    }
}

/* --- run objects, kept for later runs --- */

static bool prepare_calls(struct dataflow_run *run, struct error *err)
{
    const struct plan *plan = run->plan;
    for (int s = 0; s < plan->steps_count; s++) {
        const struct plan_step *step = &plan->steps[s];
        struct kernel_call *call = &run->calls[s];
        struct kernel_slot *slots = run->slots + step->out_first;
        *call = (struct kernel_call){
            .node = step->node,
            .in = run->in,
            .in_count = step->in_count,
            .step = &run->step,
            .resources = plan->context->resources,
            .functions = plan->context->functions,
            .slots = slots,
            .refs = step->flags & STEP_HAS_REFS ? run->refs : NULL,
            .threads = plan->context->threads,
            .precision = plan->context->precision,
        };
        for (int i = 0; i < step->node->outputs_count; i++) {
            int type = step->node->output_types[i];
            slots[i] = (struct kernel_slot){.dtype = dtype_base(type),
                                            .element_bytes = (int)dtype_size(type),
                                            .alias = -1,
                                            .pinned = true};
        }
        if (step->stateful)
            call->state = step->stateful->state;
        else if (step->kernel->prepare && !step->kernel->prepare(step->node, &call->state, err))
            return error_prefix(err, "node '%s' (%s): ", node_shown_name(step->node),
                                step->node->op->name);
    }
    return true;
}

static bool is_sent_by(const struct dataflow_run *run, const struct dataflow_node *reader)
{
    if (reader->node->op->flow == FLOW_SEND)
        return true;
    return reader->step && memory_passes_on(reader->node) &&
           run->slots[reader->step->out_first].sent;
}

/* Outputs that are sent, perhaps by way of nodes that pass them on, which come later. */
static void find_sent(struct dataflow_run *run)
{
    const struct dataflow *flow = run->flow;
    for (int i = flow->nodes_count - 1; i >= 0; i--) {
        const struct dataflow_node *node = &flow->nodes[i];
        struct kernel_slot *slots = node->step ? run->slots + node->step->out_first : NULL;
        for (int k = 0; slots && k < node->edges_count; k++) {
            const struct dataflow_edge *edge = &flow->edges[node->edges_first + k];
            if (edge->output != DATAFLOW_CONTROL && is_sent_by(run, &flow->nodes[edge->to]))
                slots[edge->output].sent = true;
        }
    }
}

void dataflow_run_free(struct dataflow_run *run)
{
    for (int s = 0; s < run->plan->steps_count; s++) {
        const struct plan_step *step = &run->plan->steps[s];
        if (!step->stateful && run->calls[s].state && step->kernel->release)
            step->kernel->release(run->calls[s].state);
    }
    dataflow_frame_free_all(run);
    dataflow_call_release(run);
    execute_free_step(&run->step);
    free(run->calls);
    free(run->in);
    free(run->refs);
    free(run->read);
    free(run->slots);
    free(run->results);
    free(run->ready);
    free(run->idle_frames);
    free(run->idle_iterations);
    free(run->latest);
    free(run->living);
    free(run);
}

static struct dataflow_run *new_run(struct plan *plan, struct error *err)
{
    struct dataflow_run *run = alloc_bytes(sizeof(*run));
    const struct dataflow *flow = plan->flow;
    size_t inputs = (size_t)flow->inputs_max;
    run->plan = plan;
    run->flow = flow;
    run->step.memory_bytes_max = plan->context->memory_bytes_max;
    run->calls = alloc_array((size_t)plan->steps_count, sizeof(*run->calls));
    run->in = alloc_array(inputs, sizeof(*run->in));
    run->refs = alloc_array(inputs, sizeof(*run->refs));
    run->read = alloc_array(inputs, sizeof(*run->read));
    run->slots = alloc_array((size_t)plan->values_count, sizeof(*run->slots));
    run->results = alloc_array((size_t)plan->subgraph->fetches_count, sizeof(*run->results));
    run->idle_frames = alloc_array((size_t)flow->loops_count, sizeof(*run->idle_frames));
    run->latest = alloc_array((size_t)flow->loops_count, sizeof(*run->latest));
    run->living = alloc_array((size_t)flow->loops_count, sizeof(*run->living));
    run->idle_iterations =
        alloc_array((size_t)flow->loops_count, sizeof(*run->idle_iterations));
    dataflow_call_init(run);
    if (!prepare_calls(run, err)) {
        dataflow_run_free(run);
        return NULL;
    }
    find_sent(run);
    return run;
}

bool dataflow_run_prepare(struct plan *plan, struct error *err)
{
    plan->flow->idle = new_run(plan, err);
    return plan->flow->idle;
}

static struct dataflow_run *take_run(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->lock);
    struct dataflow_run *run = plan->flow->idle;
    if (run)
        plan->flow->idle = run->next;
    pthread_mutex_unlock(&plan->lock);
    return run ? run : new_run(plan, err);
}

static void give_run(struct dataflow_run *run)
{
    pthread_mutex_lock(&run->plan->lock);
    run->next = run->plan->flow->idle;
    run->plan->flow->idle = run;
    pthread_mutex_unlock(&run->plan->lock);
}

static struct dataflow_run *open_run(struct plan *plan, const struct execute_options *options,
                                     struct error *err)
{
    struct dataflow_run *run = take_run(plan, err);
    if (run && !execute_begin(&run->step, options, err)) {
        give_run(run);
        return NULL;
    }
    if (!run)
        return NULL;
    run->options = options;
    if (!dataflow_transfer_open(run, err)) {
        execute_end(&run->step, options);
        give_run(run);
        return NULL;
    }
    begin(run, err);
    return run;
}

static void close_run(struct dataflow_run *run)
{
    clear_results(run);
    dataflow_frame_clear(run);
    dataflow_transfer_close(run);
    execute_end(&run->step, run->options);
    give_run(run);
}

bool dataflow_run(struct plan *plan, const struct tensor *feeds, struct tensor *fetched,
                  const struct execute_options *options, struct error *err)
{
    struct dataflow_run *run = open_run(plan, options, err);
    if (!run)
        return false;
    unsigned arithmetic = arithmetic_start(plan->context->threads);
    bool ok = set_feeds(run, feeds, err);
    if (ok) {
        dataflow_go(run);
        ok = !run->failed && fetch_all(run, fetched, err);
    }
    arithmetic_end(arithmetic);
    close_run(run);
    return ok;
}

/* --- in parts --- */

struct dataflow_run *
dataflow_run_begin(struct plan *plan, const struct execute_options *options, struct error *err)
{
    assert(plan->subgraph->partial);
    struct dataflow_run *run = open_run(plan, options, err);
    if (run)
        run->fed = alloc_array((size_t)plan->subgraph->feeds_count, sizeof(*run->fed));
    return run;
}

bool dataflow_run_feed(struct dataflow_run *run, int feed, const struct tensor *value,
                       struct error *err)
{
    if (!execute_check_feed(run->plan->subgraph->feeds[feed], value, err))
        return false;
    tensor_share(&run->fed[feed], value);
    run->root->fixed[run->flow->feeds[feed]].tensor = &run->fed[feed];
    if (run->flow->feed_nodes[feed] >= 0)
        dataflow_ready(run, run->root->iterations[0], run->flow->feed_nodes[feed]);
    return true;
}

bool dataflow_run_until(struct dataflow_run *run, const int *fetches, int count, bool last,
                        struct tensor *fetched, struct error *err)
{
    run->err = err;
    run->partial = !last;
    for (int i = 0; i < count; i++) {
        struct dataflow_result *result = &run->results[fetches[i]];
        result->wanted = !result->came && run->flow->fetches[fetches[i]] < 0;
        run->wanted += result->wanted;
    }
    unsigned arithmetic = arithmetic_start(run->plan->context->threads);
    dataflow_go(run);
    arithmetic_end(arithmetic);
    int done = 0;
    while (!run->failed && done < count && fetch_one(run, fetches[done], &fetched[done], err))
        done++;
    bool ok = !run->failed && done == count;
    while (!ok && done > 0)
        tensor_release(&fetched[--done]);
    return ok;
}

void dataflow_run_end(struct dataflow_run *run)
{
    struct error ignored = {0};
    run->err = &ignored;
    if (run->started) {
        cancel_now(run->step.cancel);
        run->failed = true;
        dataflow_go(run); /* waits for them */
    }
    for (int i = 0; i < run->plan->subgraph->feeds_count; i++)
        tensor_release(&run->fed[i]);
    free(run->fed);
    run->fed = NULL;
    run->partial = false;
    close_run(run);
}
