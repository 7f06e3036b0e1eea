/* dataflow_frame.c - frames and iterations while a graph runs: begun, kept, taken down. */

#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/dataflow_call.h"

/* --- iterations --- */

static struct dataflow_iteration *new_iteration(const struct dataflow_loop *loop)
{
    struct dataflow_iteration *iteration = alloc_bytes(sizeof(*iteration));
    size_t values = (size_t)loop->values_count;
    iteration->states = alloc_array((size_t)loop->nodes_count, sizeof(*iteration->states));
    iteration->uses = alloc_array(values, sizeof(*iteration->uses));
    iteration->variables = alloc_array(values, sizeof(struct variable *));
    iteration->tensors = alloc_array(values, sizeof(*iteration->tensors));
    return iteration;
}

static void free_iteration(struct dataflow_iteration *iteration)
{
    if (!iteration)
        return;
    free(iteration->states);
    free(iteration->uses);
    free(iteration->variables);
    free(iteration->tensors);
    free(iteration);
}

static int loop_index(const struct dataflow_run *run, const struct dataflow_loop *loop)
{
    return (int)(loop - run->flow->loops);
}

static struct dataflow_iteration **slot_of(const struct dataflow_frame *frame, int64_t number)
{
    return &frame->iterations[number % frame->loop->parallel];
}

static void reset_iteration(struct dataflow_run *run, struct dataflow_iteration *iteration,
                            bool warm)
{
    const struct dataflow_loop *loop = iteration->frame->loop;
    iteration->age = run->age++;
    iteration->outstanding = iteration->children = 0;
    iteration->entered = NULL;
    memcpy(iteration->states, warm ? loop->warm : loop->cold,
           (size_t)loop->nodes_count * sizeof(*iteration->states));
    memcpy(iteration->uses, loop->uses, (size_t)loop->values_count * sizeof(int));
}

/* What constant Enters have given so far comes to an iteration that is new. */
static void begin_nodes(struct dataflow_run *run, struct dataflow_iteration *iteration,
                        bool warm)
{
    struct dataflow_frame *frame = iteration->frame;
    const struct dataflow_loop *loop = frame->loop;
    for (int i = 0; warm && i < loop->warm_roots_count; i++)
        dataflow_ready(run, iteration, loop->warm_roots[i]);
    for (int i = 0; !warm && i < loop->constants_count; i++) {
        const struct dataflow_held *held = &frame->constants[i];
        if (held->from)
            dataflow_give(run, iteration, held->from, held->live, DATAFLOW_ALL);
    }
}

/* The iteration after the last one; there is room for it. */
static struct dataflow_iteration *begin_iteration(struct dataflow_run *run,
                                                  struct dataflow_frame *frame)
{
    const struct dataflow_loop *loop = frame->loop;
    struct dataflow_iteration **idle = &run->idle_iterations[loop_index(run, loop)];
    struct dataflow_iteration *iteration = *idle;
    if (iteration)
        *idle = iteration->next;
    else
        iteration = new_iteration(loop);
    iteration->frame = frame;
    iteration->number = ++frame->last;
    *slot_of(frame, iteration->number) = iteration;
    bool warm = iteration->number > 0 && !loop->never_warm &&
                frame->constants_live == loop->constants_count;
    reset_iteration(run, iteration, warm);
    begin_nodes(run, iteration, warm);
    return iteration;
}

struct dataflow_iteration *dataflow_frame_next(struct dataflow_run *run,
                                               struct dataflow_iteration *from)
{
    struct dataflow_frame *frame = from->frame;
    if (from->number < frame->last)
        return *slot_of(frame, from->number + 1);
    if (frame->last - frame->first + 1 >= frame->loop->parallel)
        return NULL;
    return begin_iteration(run, frame);
}

/* --- frames --- */

static struct dataflow_frame *new_frame(const struct dataflow_loop *loop)
{
    struct dataflow_frame *frame = alloc_bytes(sizeof(*frame));
    frame->loop = loop;
    frame->iterations = alloc_array((size_t)loop->parallel, sizeof(*frame->iterations));
    frame->constants = alloc_array((size_t)loop->constants_count, sizeof(*frame->constants));
    frame->waiting = alloc_array((size_t)loop->nexts_count, sizeof(*frame->waiting));
    frame->exited = alloc_array((size_t)loop->exits_count, sizeof(bool));
    frame->fixed = alloc_array((size_t)loop->fixed_count, sizeof(*frame->fixed));
    for (int i = 0; i < loop->fixed_count; i++)
        frame->fixed[i] = loop->fixed[i];
    return frame;
}

static void free_frame(struct dataflow_frame *frame)
{
    free(frame->iterations);
    free(frame->constants);
    free(frame->waiting);
    free(frame->exited);
    free(frame->fixed);
    free(frame);
}

static void link_frame(struct dataflow_run *run, struct dataflow_frame *frame)
{
    frame->older = run->frames;
    frame->newer = NULL;
    if (frame->older)
        frame->older->newer = frame;
    run->frames = frame;
}

/* Out of all lists, and empty: ready for another entry. */
static void retire_frame(struct dataflow_run *run, struct dataflow_frame *frame)
{
    *(frame->before ? &frame->before->sibling : &frame->parent->entered) = frame->sibling;
    if (frame->sibling)
        frame->sibling->before = frame->before;
    *(frame->newer ? &frame->newer->older : &run->frames) = frame->older;
    if (frame->older)
        frame->older->newer = frame->newer;
    for (int i = 0; i < frame->loop->constants_count; i++)
        tensor_release(&frame->constants[i].tensor);
    for (int i = 0; i < frame->waiting_count; i++)
        tensor_release(&frame->waiting[i].tensor);
    int loop = loop_index(run, frame->loop);
    run->living[loop]--;
    frame->parent = NULL;
    frame->next = run->idle_frames[loop];
    run->idle_frames[loop] = frame;
}

static struct dataflow_frame *begin_frame(struct dataflow_run *run,
                                          struct dataflow_iteration *parent,
                                          const struct dataflow_loop *loop)
{
    struct dataflow_frame **idle = &run->idle_frames[loop_index(run, loop)];
    struct dataflow_frame *frame = *idle;
    if (frame)
        *idle = frame->next;
    else
        frame = new_frame(loop);
    frame->parent = parent;
    frame->id = dataflow_transfer_frame_id(parent->frame, parent->number, loop);
    frame->sibling = parent->entered;
    frame->before = NULL;
    if (frame->sibling)
        frame->sibling->before = frame;
    parent->entered = frame;
    run->latest[loop_index(run, loop)] = frame;
    run->living[loop_index(run, loop)]++;
    parent->children++;
    link_frame(run, frame);
    frame->first = 0;
    frame->last = -1;
    frame->enters_pending = loop->enters_count;
    frame->constants_live = 0;
    frame->waiting_count = 0;
    for (int i = 0; i < loop->constants_count; i++)
        frame->constants[i] = (struct dataflow_held){0};
    for (int i = 0; i < loop->exits_count; i++)
        frame->exited[i] = false;
    begin_iteration(run, frame);
    return frame;
}

void dataflow_frame_root(struct dataflow_run *run)
{
    if (!run->root)
        run->root = new_frame(&run->flow->loops[0]);
    run->root->first = 0;
    run->root->last = -1;
    begin_iteration(run, run->root);
}

struct dataflow_iteration *dataflow_frame_enter(struct dataflow_run *run,
                                                struct dataflow_iteration *from,
                                                const struct dataflow_node *enter)
{
    const struct dataflow_loop *loop = &run->flow->loops[enter->gives_to];
    struct dataflow_frame *frame = run->latest[enter->gives_to];
    if (!frame || frame->parent != from) {
        frame = run->living[enter->gives_to] ? from->entered : NULL;
        while (frame && frame->loop != loop)
            frame = frame->sibling;
    }
    if (!frame)
        frame = begin_frame(run, from, loop);
    frame->enters_pending--;
    return *slot_of(frame, 0);
}

/* --- the end --- */

static bool iteration_is_over(const struct dataflow_iteration *iteration)
{
    return !iteration->outstanding && !iteration->children &&
           (iteration->number > 0 || !iteration->frame->enters_pending);
}

/* What nobody came to read is given back: a node may wait for ever for its other inputs. */
static void drop_values(struct dataflow_iteration *iteration)
{
    for (int v = 0; v < iteration->frame->loop->values_count; v++)
        if (iteration->uses[v])
            tensor_release(&iteration->tensors[v]);
}

static void retire_iteration(struct dataflow_run *run, struct dataflow_iteration *iteration)
{
    int loop = loop_index(run, iteration->frame->loop);
    *slot_of(iteration->frame, iteration->number) = NULL;
    iteration->next = run->idle_iterations[loop];
    run->idle_iterations[loop] = iteration;
}

/* Values that waited for room go into the iteration that now begins. */
static void begin_waiting(struct dataflow_run *run, struct dataflow_frame *frame)
{
    struct dataflow_iteration *iteration = begin_iteration(run, frame);
    for (int i = 0; i < frame->waiting_count; i++) {
        struct dataflow_held *held = &frame->waiting[i];
        int value = held->from->out_first;
        iteration->variables[value] = held->variable;
        if (held->tensor.buffer)
            dataflow_move(&iteration->tensors[value], &held->tensor);
    }
    int count = frame->waiting_count;
    frame->waiting_count = 0;
    for (int i = 0; i < count; i++)
        dataflow_give(run, iteration, frame->waiting[i].from, true, DATAFLOW_ALL);
}

/* Takes down the iterations that are over; whether none is left. */
static bool settle_iterations(struct dataflow_run *run, struct dataflow_frame *frame)
{
    while (frame->first <= frame->last && iteration_is_over(*slot_of(frame, frame->first))) {
        drop_values(*slot_of(frame, frame->first));
        retire_iteration(run, *slot_of(frame, frame->first));
        frame->first++;
        if (frame->waiting_count)
            begin_waiting(run, frame);
    }
    return frame->first > frame->last;
}

void dataflow_frame_settle(struct dataflow_run *run, struct dataflow_iteration *iteration)
{
    while (iteration->frame->parent && iteration_is_over(iteration)) {
        struct dataflow_frame *frame = iteration->frame;
        if (iteration->number != frame->first || !settle_iterations(run, frame))
            return;
        struct dataflow_iteration *parent = frame->parent;
        for (int i = 0; i < frame->loop->exits_count; i++)
            if (!frame->exited[i])
                dataflow_give(run, parent, &run->flow->nodes[frame->loop->exits[i]], false,
                              DATAFLOW_ALL);
        retire_frame(run, frame);
        parent->children--;
        iteration = parent;
    }
}

static void clear_iteration(struct dataflow_run *run, struct dataflow_iteration *iteration)
{
    /* A kernel that failed may have left outputs that nobody reads. */
    for (int v = 0; run->failed && v < iteration->frame->loop->values_count; v++)
        tensor_release(&iteration->tensors[v]);
    drop_values(iteration);
    retire_iteration(run, iteration);
}

void dataflow_frame_clear(struct dataflow_run *run)
{
    while (run->frames) { /* the newest first: those around it live still */
        struct dataflow_frame *frame = run->frames;
        for (int64_t i = frame->first; i <= frame->last; i++)
            clear_iteration(run, *slot_of(frame, i));
        retire_frame(run, frame);
    }
    clear_iteration(run, *slot_of(run->root, 0));
}

void dataflow_frame_free_all(struct dataflow_run *run)
{
    for (int l = 0; l < run->flow->loops_count; l++) {
        while (run->idle_iterations[l]) {
            struct dataflow_iteration *iteration = run->idle_iterations[l];
            run->idle_iterations[l] = iteration->next;
            free_iteration(iteration);
        }
        while (run->idle_frames[l]) {
            struct dataflow_frame *frame = run->idle_frames[l];
            run->idle_frames[l] = frame->next;
            free_frame(frame);
        }
    }
    if (run->root)
        free_frame(run->root);
}
