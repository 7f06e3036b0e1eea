/* dataflow.c - runs a graph with control flow: what is ready, what it gives, what is dead. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/dataflow_call.h"
#include "runtime/rendezvous.h"

/* --- ready nodes: a heap, the oldest iteration and first node on top --- */

static inline bool comes_first(const struct dataflow_item *a, const struct dataflow_item *b)
{
    return a->age < b->age || (a->age == b->age && a->node < b->node);
}

void dataflow_ready(struct dataflow_run *run, struct dataflow_iteration *iteration, int node)
{
    run->ready =
        alloc_grow(run->ready, run->ready_count, &run->ready_capacity, sizeof(*run->ready));
    const struct dataflow_item added = {iteration->age, node, iteration};
    iteration->outstanding++;
    int at = run->ready_count++;
    for (; at > 0 && comes_first(&added, &run->ready[(at - 1) / 2]); at = (at - 1) / 2)
        run->ready[at] = run->ready[(at - 1) / 2];
    run->ready[at] = added;
}

static struct dataflow_item take_ready(struct dataflow_run *run)
{
    struct dataflow_item *heap = run->ready;
    struct dataflow_item top = heap[0];
    int count = --run->ready_count;
    struct dataflow_item last = heap[count];
    int at = 0;
    for (int child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_first(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_first(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* --- arrivals --- */

static void arrive_at_merge(struct dataflow_run *run, struct dataflow_iteration *iteration,
                            const struct dataflow_edge *edge, bool live, bool from_enter)
{
    const struct dataflow_node *node = &run->flow->nodes[edge->to];
    struct dataflow_state *state = &iteration->states[node->local];
    bool open = state->pending & 1;
    if (edge->output == DATAFLOW_CONTROL) {
        state->pending -= 2;
    } else if (live && open) {
        state->pending--;
        state->dead = ~edge->input;
    } else if (live) { /* too late */
        int source = run->flow->sources[node->in_first + edge->input];
        if (source >= 0)
            dataflow_use(iteration, source);
        return;
    } else if (!open) {
        return;
    } else {
        state->dead++;
        /* A loop that is not entered never gets anything from its NextIteration. */
        if (!from_enter && state->dead < node->node->inputs_count)
            return;
        state->pending--;
    }
    if (state->pending == 0)
        dataflow_ready(run, iteration, edge->to);
}

void dataflow_arrive(struct dataflow_run *run, struct dataflow_iteration *iteration,
                     const struct dataflow_edge *edge, bool live, bool from_enter)
{
    const struct dataflow_node *node = &run->flow->nodes[edge->to];
    if (node->node->op->flow == FLOW_MERGE) {
        arrive_at_merge(run, iteration, edge, live, from_enter);
        return;
    }
    struct dataflow_state *state = &iteration->states[node->local];
    state->dead += !live;
    if (--state->pending == 0)
        dataflow_ready(run, iteration, edge->to);
}

void dataflow_give(struct dataflow_run *run, struct dataflow_iteration *to,
                   const struct dataflow_node *node, bool live, int output)
{
    const struct dataflow_edge *edges = run->flow->edges + node->edges_first;
    bool from_enter = node->node->op->flow == FLOW_ENTER;
    for (int i = 0; i < node->edges_count; i++) {
        bool alive = live && (output == DATAFLOW_ALL || edges[i].output == output ||
                              edges[i].output == DATAFLOW_CONTROL);
        dataflow_arrive(run, to, &edges[i], alive, from_enter);
    }
}

/* --- values that are passed on --- */

bool dataflow_take_input(struct dataflow_run *run, struct dataflow_iteration *iteration,
                         const struct dataflow_node *node, int input, struct tensor *out,
                         struct variable **variable, struct error *err)
{
    int source = run->flow->sources[node->in_first + input];
    const struct edge *edge = &node->node->inputs[input];
    const struct dataflow_fixed *fixed = source < 0 ? &iteration->frame->fixed[~source] : NULL;
    bool gives_ref = dtype_is_ref(edge->from->output_types[edge->output]);
    bool takes_ref = dtype_is_ref(node->node->input_types[input]);
    if (gives_ref) {
        struct variable *behind = fixed ? fixed->variable : iteration->variables[source];
        *variable = takes_ref ? behind : NULL;
        return takes_ref || execute_read_ref(behind, out, err);
    }
    if (takes_ref)
        return fail(err, INVALID, "input %d is a value, not a reference", input);
    if (fixed)
        tensor_share(out, fixed->tensor);
    else if (iteration->uses[source] == 1)
        dataflow_move(out, &iteration->tensors[source]);
    else
        tensor_share(out, &iteration->tensors[source]);
    return true;
}

static bool pass(struct dataflow_run *run, struct dataflow_iteration *iteration,
                 const struct dataflow_node *node, int input, struct dataflow_iteration *to,
                 int output, struct error *err)
{
    int value = node->out_first + output;
    if (!dataflow_take_input(run, iteration, node, input, &to->tensors[value],
                             &to->variables[value], err))
        return false;
    if (!to->uses[value])
        tensor_release(&to->tensors[value]);
    return true;
}

/* After a node is done: one reader less for its inputs (a Merge has read one of them). */
static void use_inputs(struct dataflow_run *run, struct dataflow_iteration *iteration,
                       const struct dataflow_node *node)
{
    const int *sources = run->flow->sources + node->in_first;
    if (node->node->op->flow == FLOW_MERGE) {
        int chosen = iteration->states[node->local].dead;
        if (chosen < 0 && sources[~chosen] >= 0)
            dataflow_use(iteration, sources[~chosen]);
        return;
    }
    for (int i = 0; i < node->node->inputs_count; i++)
        if (sources[i] >= 0)
            dataflow_use(iteration, sources[i]);
}

/* --- what the executor does itself; on success `*output` is what lives of the outputs --- */

static bool run_switch(struct dataflow_run *run, struct dataflow_iteration *iteration,
                       const struct dataflow_node *node, int *output, struct error *err)
{
    struct tensor which = {0};
    struct variable *none;
    char text[SHAPE_TEXT_BYTES];
    if (!dataflow_take_input(run, iteration, node, 1, &which, &none, err))
        return false;
    bool scalar = which.shape.rank == 0;
    if (!scalar)
        (void)fail(err, INVALID, "The second input must be a scalar, but it has shape %s",
                   shape_text(&which.shape, text, sizeof(text)));
    int last = node->node->outputs_count - 1;
    int64_t index = scalar ? tensor_integer(&which, 0) : 0;
    tensor_release(&which);
    if (which.dtype != BOOL && (index < 0 || index > last))
        index = last;
    *output = (int)index;
    return scalar && pass(run, iteration, node, 0, iteration, *output, err);
}

static bool run_merge(struct dataflow_run *run, struct dataflow_iteration *iteration,
                      const struct dataflow_node *node, struct error *err)
{
    int input = ~iteration->states[node->local].dead;
    int index = node->out_first + 1;
    if (iteration->uses[index] &&
        !tensor_init_scalar(&iteration->tensors[index], I32, input, err))
        return false;
    return pass(run, iteration, node, input, iteration, 0, err);
}

/* A constant Enter's value is kept in the frame; there it is for all iterations. */
static bool hold(struct dataflow_run *run, struct dataflow_iteration *iteration,
                 const struct dataflow_node *node, bool live, struct dataflow_frame *frame,
                 struct error *err)
{
    struct dataflow_held *held = &frame->constants[node->place];
    struct dataflow_fixed *fixed = &frame->fixed[~node->out_first];
    if (live &&
        !dataflow_take_input(run, iteration, node, 0, &held->tensor, &held->variable, err))
        return false;
    held->from = node;
    held->live = live;
    fixed->tensor = &held->tensor;
    fixed->variable = held->variable;
    frame->constants_live += live;
    for (int64_t i = frame->first; i <= frame->last; i++)
        dataflow_give(run, frame->iterations[i % frame->loop->parallel], node, live,
                      DATAFLOW_ALL);
    return true;
}

static bool run_enter(struct dataflow_run *run, struct dataflow_iteration *iteration,
                      const struct dataflow_node *node, bool live, struct error *err)
{
    struct dataflow_iteration *to = dataflow_frame_enter(run, iteration, node);
    if (node->place >= 0)
        return hold(run, iteration, node, live, to->frame, err);
    if (live && !pass(run, iteration, node, 0, to, 0, err))
        return false;
    dataflow_give(run, to, node, live, DATAFLOW_ALL);
    return true;
}

static bool run_exit(struct dataflow_run *run, struct dataflow_iteration *iteration,
                     const struct dataflow_node *node, bool live, struct error *err)
{
    struct dataflow_frame *frame = iteration->frame;
    if (!live) /* perhaps a later iteration gives something */
        return true;
    if (frame->exited[node->place])
        return fail(err, INVALID, "the loop of frame '%s' gave a value to its Exit twice",
                    frame->loop->name);
    frame->exited[node->place] = true;
    if (!pass(run, iteration, node, 0, frame->parent, 0, err))
        return false;
    dataflow_give(run, frame->parent, node, true, DATAFLOW_ALL);
    return true;
}

static bool run_next(struct dataflow_run *run, struct dataflow_iteration *iteration,
                     const struct dataflow_node *node, bool live, struct error *err)
{
    struct dataflow_frame *frame = iteration->frame;
    if (!live) /* the loop ends here */
        return true;
    if (!frame->parent) { /* in no loop: there is nothing to wait for */
        if (!pass(run, iteration, node, 0, iteration, 0, err))
            return false;
        dataflow_give(run, iteration, node, true, DATAFLOW_ALL);
        return true;
    }
    struct dataflow_iteration *to = dataflow_frame_next(run, iteration);
    if (!to) {
        struct dataflow_held *held = &frame->waiting[frame->waiting_count];
        *held = (struct dataflow_held){.from = node, .live = true};
        frame->waiting_count++;
        return dataflow_take_input(run, iteration, node, 0, &held->tensor, &held->variable,
                                   err);
    }
    if (!pass(run, iteration, node, 0, to, 0, err))
        return false;
    dataflow_give(run, to, node, true, DATAFLOW_ALL);
    return true;
}

static bool run_retval(struct dataflow_run *run, struct dataflow_iteration *iteration,
                       const struct dataflow_node *node, struct error *err)
{
    struct dataflow_result *result = &run->results[node->place];
    if (result->came)
        return fail(err, INTERNAL, "Retval[%d] has already been set.", node->place);
    result->came = true;
    run->wanted -= result->wanted;
    return dataflow_take_input(run, iteration, node, 0, &result->tensor, &result->variable,
                               err);
}

/* --- one node --- */

static void finish_node(struct dataflow_run *run, struct dataflow_iteration *iteration,
                        const struct dataflow_node *node)
{
    use_inputs(run, iteration, node);
    if (--iteration->outstanding == 0)
        dataflow_frame_settle(run, iteration);
}

/* What nobody reads is given back at once. */
static void drop_unread(struct dataflow_iteration *iteration, const struct dataflow_node *node)
{
    for (int i = 0; i < node->node->outputs_count; i++) {
        int value = node->out_first + i;
        if (!iteration->uses[value])
            tensor_release(&iteration->tensors[value]);
    }
}

static bool run_alive(struct dataflow_run *run, struct dataflow_iteration *iteration,
                      const struct dataflow_node *node, bool *waits, struct error *err)
{
    int output = DATAFLOW_ALL;
    bool ok = true;
    switch (node->node->op->flow) {
    case FLOW_SWITCH:
        ok = run_switch(run, iteration, node, &output, err);
        break;
    case FLOW_MERGE:
        ok = run_merge(run, iteration, node, err);
        break;
    case FLOW_PASS:
        ok = pass(run, iteration, node, 0, iteration, 0, err);
        break;
    case FLOW_ENTER:
        return run_enter(run, iteration, node, true, err);
    case FLOW_EXIT:
        return run_exit(run, iteration, node, true, err);
    case FLOW_NEXT:
        return run_next(run, iteration, node, true, err);
    case FLOW_TRIGGER:
        break;
    case FLOW_NONE:
        if (node->step) {
            ok = dataflow_call(run, iteration, node, waits, err);
            if (!ok || *waits)
                return ok;
            drop_unread(iteration, node);
        }
        break;
    case FLOW_RETVAL:
        return run_retval(run, iteration, node, err);
    case FLOW_SEND:
        ok = dataflow_transfer_send(run, iteration, node, true, err);
        break;
    case FLOW_RECV:
        *waits = true;
        return dataflow_transfer_receive(run, iteration, node, err);
    }
    if (ok)
        dataflow_give(run, iteration, node, true, output);
    return ok;
}

static bool run_dead(struct dataflow_run *run, struct dataflow_iteration *iteration,
                     const struct dataflow_node *node, bool *waits, struct error *err)
{
    switch (node->node->op->flow) {
    case FLOW_ENTER:
        return run_enter(run, iteration, node, false, err);
    case FLOW_SEND:
        if (!dataflow_transfer_send(run, iteration, node, false, err))
            return false;
        break;
    case FLOW_RECV:
        *waits = true;
        return dataflow_transfer_receive(run, iteration, node, err);
    case FLOW_EXIT:
    case FLOW_NEXT:
        return true;
    case FLOW_RETVAL: /* will not come */
        run->wanted -= run->results[node->place].wanted;
        run->results[node->place].wanted = false;
        return true;
    default:
        break;
    }
    dataflow_give(run, iteration, node, false, DATAFLOW_ALL);
    return true;
}

static void fail_run(struct dataflow_run *run, const struct error *err)
{
    if (!run->failed)
        *run->err = *err;
    run->failed = true;
}

/*
 * Says which node failed; a step over several tasks does so as TensorFlow, whose clients look
 * for the node.  A receive is no cause: another part failed, and that one says where.
 */
static void fail_node(struct dataflow_run *run, const struct dataflow_node *node,
                      struct error *err)
{
    const struct error why = *err;
    if (!run->options || !run->options->rendezvous)
        (void)error_prefix(err, "node '%s' (%s): ", node_shown_name(node->node),
                           node->node->op->name);
    else if (node->node->op->flow != FLOW_RECV &&
             !kernel_error_is_at(&why, node_shown_name(node->node)))
        (void)fail(err, why.code, "%s\n\t [[{{node %s}}]]", why.text,
                   node_shown_name(node->node));
    fail_run(run, err);
}

static void run_one(struct dataflow_run *run)
{
    struct dataflow_item ready = take_ready(run);
    struct dataflow_iteration *iteration = ready.iteration;
    const struct dataflow_node *node = &run->flow->nodes[ready.node];
    bool dead = iteration->states[node->local].dead > 0 && node->node->op->flow != FLOW_TRIGGER;
    bool waits = false;
    struct error err;
    if (!(dead ? run_dead(run, iteration, node, &waits, &err)
               : run_alive(run, iteration, node, &waits, &err)))
        fail_node(run, node, &err);
    else if (!waits)
        finish_node(run, iteration, node);
}

/* A kernel that has come back; false if none has. */
static bool collect_one(struct dataflow_run *run, bool wait)
{
    struct dataflow_iteration *iteration;
    struct error err;
    bool ok, dead;
    const struct dataflow_node *node =
        dataflow_call_collect(run, wait, &iteration, &dead, &ok, &err);
    if (!node)
        return false;
    if (!ok)
        fail_node(run, node, &err);
    if (run->failed)
        return true;
    drop_unread(iteration, node);
    dataflow_give(run, iteration, node, !dead, DATAFLOW_ALL);
    finish_node(run, iteration, node);
    return true;
}

/* --- until nothing is left to do --- */

enum { CHECK_EVERY = 16 };

/* Whether only a kernel that comes back can get the run on. */
static bool must_wait(const struct dataflow_run *run)
{
    return !run->ready_count && (run->wanted || !run->partial);
}

void dataflow_go(struct dataflow_run *run)
{
    struct error err;
    for (uint64_t turn = 0; !run->failed; turn++) {
        if (turn % CHECK_EVERY == 0 && execute_stopped(&run->step, run->options, &err))
            fail_run(run, &err);
        else if (run->started && collect_one(run, must_wait(run)))
            continue;
        else if (run->ready_count)
            run_one(run);
        else if (!run->started || (run->partial && !run->wanted))
            return;
        else if (execute_stopped(&run->step, run->options, &err))
            fail_run(run, &err);
    }
    if (run->options && run->options->rendezvous)
        rendezvous_abort(run->options->rendezvous, run->err);
    if (run->started)
        cancel_now(run->step.cancel);
    while (run->started)
        (void)collect_one(run, true);
}
