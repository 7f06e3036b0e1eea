/* dataflow_call.c - kernels called by a run that follows the values, and those that wait. */

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "proto/attention.h"
#include "runtime/cancel.h"
#include "runtime/dataflow_call.h"
#include "runtime/numerics.h"
#include "runtime/waits.h"

static bool is_ref_input(const struct node *node, int input)
{
    const struct edge *edge = &node->inputs[input];
    return dtype_is_ref(edge->from->output_types[edge->output]);
}

static struct variable *variable_at(const struct dataflow_iteration *iteration, int source)
{
    return source >= 0 ? iteration->variables[source]
                       : iteration->frame->fixed[~source].variable;
}

/* Pointers to the inputs, and which of them the kernel may take over. */
static uint64_t find_inputs(const struct dataflow_run *run,
                            const struct dataflow_iteration *iteration,
                            const struct dataflow_node *node, const struct tensor **in)
{
    const int *sources = run->flow->sources + node->in_first;
    uint64_t reusable = 0;
    for (int i = 0; i < node->node->inputs_count; i++) {
        int source = sources[i];
        in[i] =
            source >= 0 ? &iteration->tensors[source] : iteration->frame->fixed[~source].tensor;
        if (source >= 0 && i < 64 && iteration->uses[source] == 1)
            reusable |= BIT(i);
    }
    return reusable;
}

/* Before a call with references among its inputs: follows them. */
static bool follow_refs(const struct dataflow_run *run,
                        const struct dataflow_iteration *iteration,
                        const struct dataflow_node *node, const struct tensor **in,
                        struct variable **refs, struct tensor *read, struct error *err)
{
    const int *sources = run->flow->sources + node->in_first;
    bool may_lack = node->node->op->flags & OP_UNINITIALIZED_OK;
    for (int i = 0; i < node->node->inputs_count; i++) {
        refs[i] = NULL;
        if (!is_ref_input(node->node, i))
            continue;
        struct variable *variable = variable_at(iteration, sources[i]);
        refs[i] = variable;
        if (!dtype_is_ref(node->node->input_types[i])) {
            if (!execute_read_ref(variable, &read[i], err))
                return false;
            in[i] = &read[i];
            continue;
        }
        pthread_mutex_lock(&variable->lock);
        bool has_value = variable->value.dtype != DTYPE_NONE;
        in[i] = has_value ? &variable->value : NULL;
        pthread_mutex_unlock(&variable->lock);
        if (!has_value && !may_lack)
            return execute_fail_uninitialized(variable, err);
    }
    return true;
}

/* After a call: what was read through references is given back, references are noted. */
static void finish(struct dataflow_iteration *iteration, const struct dataflow_node *node,
                   const struct kernel_slot *slots, struct tensor *read)
{
    for (int i = 0; node->step->flags & STEP_HAS_REFS && i < node->node->inputs_count; i++)
        tensor_release(&read[i]);
    for (int i = 0; i < node->node->outputs_count; i++)
        if (dtype_is_ref(node->node->output_types[i]))
            iteration->variables[node->out_first + i] = slots[i].variable;
}

/* --- kernels that run here --- */

static bool run_now(struct dataflow_run *run, struct dataflow_iteration *iteration,
                    const struct dataflow_node *node, struct error *err)
{
    struct kernel_call *call = &run->calls[node->step - run->plan->steps];
    struct trace *trace = run->options ? run->options->trace : NULL;
    uint64_t start_ns = trace ? clock_monotonic_ns() : 0;
    call->out = iteration->tensors + node->out_first;
    call->reusable = find_inputs(run, iteration, node, run->in);
    bool ok = !(node->step->flags & STEP_HAS_REFS) ||
              follow_refs(run, iteration, node, run->in, run->refs, run->read, err);
    bool check = run->options && run->options->check_numerics;
    struct numerics seen;
    if (ok && check)
        numerics_before(call, &seen);
    ok = ok && node->step->run(call, err) && (!check || numerics_after(call, &seen, err));
    if (ok && trace)
        trace_add(trace, call, start_ns);
    finish(iteration, node, call->slots, run->read);
    if (run->step.scratch && run->step.scratch->used)
        execute_reset_scratch(&run->step);
    return ok;
}

/* --- kernels that wait --- */

static void release_started(struct dataflow_started *started)
{
    tensor_release(&started->received);
    free(started->err);
    free(started->in);
    free(started->refs);
    free(started->read);
    free(started->slots);
    free(started);
}

static struct dataflow_started *new_started(struct dataflow_run *run,
                                            struct dataflow_iteration *iteration,
                                            const struct dataflow_node *node)
{
    struct dataflow_started *started = alloc_bytes(sizeof(*started));
    const struct kernel_call *call = &run->calls[node->step - run->plan->steps];
    size_t inputs = (size_t)node->node->inputs_count;
    size_t outputs = (size_t)node->node->outputs_count;
    started->run = run;
    started->iteration = iteration;
    started->node = node;
    started->in = alloc_array(inputs, sizeof(*started->in));
    started->refs = alloc_array(inputs, sizeof(*started->refs));
    started->read = alloc_array(inputs, sizeof(*started->read));
    started->slots = alloc_array(outputs, sizeof(*started->slots));
    for (size_t i = 0; i < outputs; i++)
        started->slots[i] = call->slots[i];
    started->call = *call;
    started->call.in = started->in;
    started->call.refs = started->refs;
    started->call.slots = started->slots;
    started->call.out = iteration->tensors + node->out_first;
    started->call.reusable = find_inputs(run, iteration, node, started->in);
    started->call.waiter = started;
    started->call.frame_id = iteration->frame->id;
    started->call.iteration = iteration->number;
    return started;
}

void dataflow_call_post(struct dataflow_started *started, const struct error *err)
{
    struct dataflow_mailbox *mailbox = &started->run->mailbox;
    if (err) {
        started->err = alloc_bytes(sizeof(*err));
        *started->err = *err;
    }
    pthread_mutex_lock(&mailbox->lock);
    started->next = NULL;
    *mailbox->end = started;
    mailbox->end = &started->next;
    __atomic_store_n(&mailbox->full, 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&mailbox->filled);
    if (mailbox->attention)
        attention_call(mailbox->attention);
    pthread_mutex_unlock(&mailbox->lock);
}

/* By kernel_done(), on any thread. */
static void come_back(struct kernel_call *call, const struct error *err)
{
    dataflow_call_post(call->waiter, err);
}

static bool start(struct dataflow_run *run, struct dataflow_iteration *iteration,
                  const struct dataflow_node *node, struct error *err)
{
    struct dataflow_started *started = new_started(run, iteration, node);
    started->start_ns = clock_monotonic_ns();
    if (node->step->flags & STEP_HAS_REFS &&
        !follow_refs(run, iteration, node, started->in, started->refs, started->read, err)) {
        finish(iteration, node, started->slots, started->read);
        release_started(started);
        return false;
    }
    started->call.done = come_back;
    run->started++;
    node->step->kernel->start(&started->call);
    return true;
}

bool dataflow_call(struct dataflow_run *run, struct dataflow_iteration *iteration,
                   const struct dataflow_node *node, bool *waits, struct error *err)
{
    *waits = !node->step->run;
    attention_send();
    return *waits ? start(run, iteration, node, err) : run_now(run, iteration, node, err);
}

/* --- the mailbox --- */

/* What came, and how long there was nothing to do but wait for it. */
static void count(struct waits *waits, const struct dataflow_started *started, uint64_t wait_ns)
{
    const struct node *node = started->node->node;
    bool received = !started->node->step;
    struct waits_row *row =
        waits_of(waits, received ? node_attr_string(node, "send_device", "") : "");
    row->wait_ns += wait_ns;
    row->receive_ns += started->travel_ns < wait_ns ? started->travel_ns : wait_ns;
    row->tensors += received;
    row->bytes += started->dead || !received ? 0 : tensor_bytes(&started->received);
}

static bool is_full(void *arg)
{
    struct dataflow_mailbox *mailbox = arg;
    return __atomic_load_n(&mailbox->full, __ATOMIC_ACQUIRE);
}

/* What is waited for may come by a call that this thread has begun. */
static void attend_locked(struct dataflow_mailbox *mailbox, uint64_t end_ns)
{
    mailbox->attention = attention_mine();
    if (!mailbox->attention)
        return;
    pthread_mutex_unlock(&mailbox->lock);
    attention_give(is_full, mailbox, end_ns);
    pthread_mutex_lock(&mailbox->lock);
    mailbox->attention = NULL;
}

/* The first that has come back; false when time is up. */
static bool wait_filled_locked(struct dataflow_run *run)
{
    struct dataflow_mailbox *mailbox = &run->mailbox;
    uint64_t end_ns = run->options && !run->failed ? run->options->deadline_ns : 0;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000),
                                 .tv_nsec = (long)(end_ns % 1000000000)};
    attention_send();
    if (!mailbox->done)
        attend_locked(mailbox, end_ns);
    while (!mailbox->done) {
        int result = end_ns ? pthread_cond_timedwait(&mailbox->filled, &mailbox->lock, &end)
                            : pthread_cond_wait(&mailbox->filled, &mailbox->lock);
        if (result == ETIMEDOUT && !mailbox->done)
            return false;
    }
    return true;
}

static struct dataflow_started *take(struct dataflow_run *run, bool wait)
{
    struct dataflow_mailbox *mailbox = &run->mailbox;
    if (!wait && !__atomic_load_n(&mailbox->full, __ATOMIC_ACQUIRE))
        return NULL;
    struct dataflow_started *started = NULL;
    pthread_mutex_lock(&mailbox->lock);
    if (!wait || wait_filled_locked(run))
        started = mailbox->done;
    if (started) {
        mailbox->done = started->next;
        if (!mailbox->done) {
            mailbox->end = &mailbox->done;
            __atomic_store_n(&mailbox->full, 0, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
    return started;
}

const struct dataflow_node *dataflow_call_collect(struct dataflow_run *run, bool wait,
                                                  struct dataflow_iteration **iteration,
                                                  bool *dead, bool *ok, struct error *err)
{
    struct waits *waits = run->options ? run->options->waits : NULL;
    uint64_t start_ns = waits && wait ? clock_monotonic_ns() : 0;
    struct dataflow_started *started = take(run, wait);
    if (!started)
        return NULL;
    if (waits)
        count(waits, started, start_ns ? clock_monotonic_ns() - start_ns : 0);
    run->started--;
    const struct dataflow_node *node = started->node;
    *iteration = started->iteration;
    *ok = !started->err;
    *dead = started->dead;
    if (started->err)
        *err = *started->err;
    else if (!node->step && !started->dead)
        dataflow_move(&started->iteration->tensors[node->out_first], &started->received);
    else if (node->step && run->options && run->options->trace)
        trace_add(run->options->trace, &started->call, started->start_ns);
    if (node->step)
        finish(started->iteration, node, started->slots, started->read);
    release_started(started);
    return node;
}

void dataflow_call_init(struct dataflow_run *run)
{
    struct dataflow_mailbox *mailbox = &run->mailbox;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_cond_init(&mailbox->filled, &attr);
    pthread_condattr_destroy(&attr);
    mailbox->end = &mailbox->done;
}

void dataflow_call_release(struct dataflow_run *run)
{
    pthread_cond_destroy(&run->mailbox.filled);
    pthread_mutex_destroy(&run->mailbox.lock);
}
