/*
 * flow.h - graphs with loops and branches for tests, a session to run them, and kernels: those
 * of kernels.h, a comparison, and one that waits until the test lets it go.
 */
#pragma once

#include "base/alloc.h"
#include "base/str.h"
#include "runtime/builder.h"
#include "runtime/cancel.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "tests/unit/runtime/kernels.h"
#include "tests/unit/test.h"

/* --- kernels --- */

static bool run_less(struct kernel_call *call, struct error *err)
{
    struct tensor *out = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (out)
        *(bool *)out->data = tensor_f32(call->in[0])[0] < tensor_f32(call->in[1])[0];
    return out;
}

/* A vector that is one longer. */
static bool run_grow(struct kernel_call *call, struct error *err)
{
    int64_t count = kernel_in(call, 0)->count;
    struct tensor *out = kernel_output(call, 0, &SHAPE(count + 1), err);
    for (int64_t i = 0; out && i <= count; i++)
        tensor_f32_mut(out)[i] = 1;
    return out;
}

/* Calls of Wait that are there: the test ends them, or a cancel does. */
struct waits {
    pthread_mutex_t lock; /* guards: all below */
    pthread_cond_t more;
    struct waiting {
        struct kernel_call *call;
        uint64_t ticket;
    } list[64];
    int count;
    int begun;
};
static struct waits waits = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .more = PTHREAD_COND_INITIALIZER};

static bool take_wait(struct kernel_call *call)
{
    pthread_mutex_lock(&waits.lock);
    int at = 0;
    while (at < waits.count && waits.list[at].call != call)
        at++;
    bool found = at < waits.count;
    if (found)
        memmove(&waits.list[at], &waits.list[at + 1],
                (size_t)(--waits.count - at) * sizeof(waits.list[0]));
    pthread_mutex_unlock(&waits.lock);
    return found;
}

static void cancel_wait(void *arg)
{
    struct error error;
    (void)fail(&error, CANCELLED, "the wait was cancelled");
    if (take_wait(arg))
        kernel_done(arg, &error);
}

static void start_wait(struct kernel_call *call)
{
    pthread_mutex_lock(&waits.lock);
    struct waiting *waiting = &waits.list[waits.count++];
    waiting->call = call;
    bool added = cancel_add(kernel_cancel(call), cancel_wait, call, &waiting->ticket);
    if (!added)
        waits.count--;
    waits.begun++;
    pthread_cond_broadcast(&waits.more);
    pthread_mutex_unlock(&waits.lock);
    struct error error;
    if (!added && !fail(&error, CANCELLED, "cancelled before it waited"))
        kernel_done(call, &error);
}

/* Until so many wait. */
static inline void await_waits(int count)
{
    pthread_mutex_lock(&waits.lock);
    while (waits.count < count)
        pthread_cond_wait(&waits.more, &waits.lock);
    pthread_mutex_unlock(&waits.lock);
}

/* Ends the wait at `index`: its input goes through. */
static inline void end_wait(int index)
{
    pthread_mutex_lock(&waits.lock);
    struct waiting waiting = waits.list[index];
    pthread_mutex_unlock(&waits.lock);
    if (!cancel_remove(kernel_cancel(waiting.call), waiting.ticket) || !take_wait(waiting.call))
        return;
    const struct tensor *value = kernel_in(waiting.call, 0);
    kernel_output_share(waiting.call, 0, value, &value->shape);
    kernel_done(waiting.call, NULL);
}

static const struct op op_wait = {
    .name = "Wait", .inputs = "x:T", .outputs = "y:T", .attrs = "T:type"};
static const struct op op_grow = {
    .name = "Grow", .inputs = "x:T", .outputs = "y:T", .attrs = "T:type"};
static const struct op *const ops_for_tests[] = {&op_wait, &op_grow, NULL};

static const struct kernel *const kernels_for_flow[] = {
    &(const struct kernel){.op = "Wait", .start = start_wait},
    &(const struct kernel){.op = "Less", .run = run_less},
    &(const struct kernel){.op = "Grow", .run = run_grow},
    NULL,
};

/* --- a graph and its session --- */

static struct error err;

struct world {
    struct graph *graph;
    struct builder b;
    struct session *session;
};

static struct world *world_new_with(bool no_optimise)
{
    static bool added;
    if (!added) {
        kernel_add_table(kernels_for_tests);
        kernel_add_table(kernels_for_flow);
        CHECK_OK(op_add_table(ops_for_tests, &err), &err);
    }
    added = true;
    struct world *world = alloc_bytes(sizeof(*world));
    world->graph = graph_new();
    world->b = (struct builder){.graph = world->graph, .scope = "", .err = &err};
    world->session =
        session_new(&(struct session_options){.threads = 1, .no_optimise = no_optimise}, &err);
    CHECK(world->session);
    return world;
}

static inline struct world *world_new(void)
{
    return world_new_with(false);
}

/* By way of a GraphDef, where loops may be closed. */
static inline void begin(struct world *world)
{
    struct str bytes = {0};
    if (!builder_ok(&world->b))
        CHECK_STOP("%s", err.text);
    graph_export(world->graph, false, 0, &bytes);
    CHECK_OK(session_extend(world->session, bytes.data, bytes.size, &err), &err);
    str_release(&bytes);
}

static void world_free(struct world *world)
{
    session_free(world->session);
    graph_free(world->graph);
    free(world);
}

/* --- nodes --- */

static inline struct edge node1(struct world *w, const char *op, const char *name,
                                struct edge x)
{
    return builder_add(&w->b, op, name, INPUTS(x), NO_ATTRS);
}

static inline struct edge node2(struct world *w, const char *op, const char *name,
                                struct edge x, struct edge y)
{
    return builder_add(&w->b, op, name, INPUTS(x, y), NO_ATTRS);
}

static inline struct edge scalar(struct world *w, const char *name, double value)
{
    return builder_scalar(&w->b, name, F32, value);
}

static inline struct edge placeholder(struct world *w, const char *name, enum dtype dtype)
{
    return builder_add(&w->b, "Placeholder", name, NO_INPUTS, ATTRS(attr_type("dtype", dtype)));
}

struct enter {
    const char *frame;
    int parallel; /* 0: the default */
    bool constant;
    bool ref;
};

static inline struct edge enter(struct world *w, const char *name, struct edge x,
                                struct enter how)
{
    return builder_add(
        &w->b, how.ref ? "RefEnter" : "Enter", name, INPUTS(x),
        ATTRS(attr_string("frame_name", how.frame), attr_bool("is_constant", how.constant),
              attr_int("parallel_iterations", how.parallel ? how.parallel : 10)));
}

/* Control edge. */
static inline struct edge after(struct world *w, struct edge node, struct edge before)
{
    graph_add_control(w->graph, node.from, before.from);
    return node;
}

/* A constant that is there only when `before` is. */
static inline struct edge scalar_after(struct world *w, const char *name, double value,
                                       struct edge before)
{
    return after(w, scalar(w, name, value), before);
}

/*
 * for (i = 0; i < limit; i++): `i` is the loop variable inside.  The caller adds what else the
 * loop does, then calls loop_end().
 */
struct loop {
    struct enter how;
    struct edge merge, cond, i, exit;
    char prefix[40];
};

static inline const char *named(const struct loop *loop, const char *what)
{
    static char names[16][160];
    static int at;
    at = (at + 1) % 16;
    snprintf(names[at], sizeof(names[at]), "%s/%s", loop->prefix, what);
    return names[at];
}

static inline struct loop loop_begin(struct world *w, const char *prefix, struct edge zero,
                                     struct edge limit, int parallel)
{
    struct loop loop = {.how = {.parallel = parallel}};
    snprintf(loop.prefix, sizeof(loop.prefix), "%s", prefix);
    loop.how.frame = prefix;
    struct enter constant = loop.how;
    constant.constant = true;
    struct edge first = enter(w, named(&loop, "enter"), zero, loop.how);
    struct edge most = enter(w, named(&loop, "limit"), limit, constant);
    loop.merge = node2(w, "Merge", named(&loop, "merge"), first, first);
    loop.cond = node1(w, "LoopCond", named(&loop, "cond"),
                      node2(w, "Less", named(&loop, "less"), loop.merge, most));
    struct edge split = node2(w, "Switch", named(&loop, "switch"), loop.merge, loop.cond);
    loop.exit = node1(w, "Exit", named(&loop, "exit"), split);
    loop.i = node1(w, "Identity", named(&loop, "i"), builder_output(split, 1));
    struct edge one = scalar_after(w, named(&loop, "one"), 1, loop.i);
    struct edge next = node1(w, "NextIteration", named(&loop, "next"),
                             node2(w, "AddV2", named(&loop, "plus"), loop.i, one));
    graph_set_input(w->graph, loop.merge.from, 1, next);
    return loop;
}

/* Another loop variable: `now` is its value in an iteration, give the next to loop_close(). */
struct variable_of_loop {
    struct edge merge, now, exit;
};

static inline struct variable_of_loop loop_variable(struct world *w, const struct loop *loop,
                                                    const char *name, struct edge first)
{
    struct variable_of_loop v;
    char text[100];
    struct edge in = enter(w, named(loop, name), first, loop->how);
    snprintf(text, sizeof(text), "%s_merge", name);
    v.merge = node2(w, "Merge", named(loop, text), in, in);
    snprintf(text, sizeof(text), "%s_switch", name);
    struct edge split = node2(w, "Switch", named(loop, text), v.merge, loop->cond);
    snprintf(text, sizeof(text), "%s_exit", name);
    v.exit = node1(w, "Exit", named(loop, text), split);
    v.now = builder_output(split, 1);
    return v;
}

static inline void loop_close(struct world *w, const struct loop *loop, const char *name,
                              struct variable_of_loop v, struct edge next)
{
    char text[100];
    snprintf(text, sizeof(text), "%s_next", name);
    graph_set_input(w->graph, v.merge.from, 1,
                    node1(w, "NextIteration", named(loop, text), next));
}

/* --- running --- */

static inline struct tensor number(enum dtype dtype, double value)
{
    struct tensor tensor;
    CHECK_OK(tensor_init_scalar(&tensor, dtype, value, &err), &err);
    return tensor;
}

/* Feeds `value` (if `feed` is not NULL) and fetches one tensor. */
static inline bool run_with(struct world *w, const char *feed, const struct tensor *value,
                            const char *fetch, struct tensor *out, struct error *error)
{
    const struct session_run run = {.feeds = &feed,
                                    .feed_values = value,
                                    .feeds_count = feed ? 1 : 0,
                                    .fetches = &fetch,
                                    .fetches_count = 1,
                                    .timeout_ms = 20000};
    return session_run(w->session, &run, out, error);
}

/* Element 0 of what comes out when `feed` is `value`. */
static inline double run_number(struct world *w, const char *feed, enum dtype dtype,
                                double value, const char *fetch)
{
    struct tensor in = number(dtype, value), out;
    CHECK_OK(run_with(w, feed, &in, fetch, &out, &err), &err);
    double result = tensor_number(&out, 0);
    tensor_release(&out);
    tensor_release(&in);
    return result;
}

/* One run for a thread of its own. */
struct one_run {
    struct world *w;
    const char *fetch;
    struct cancel *cancel;
    int64_t timeout_ms;
    double value; /* element 0, when ok */
    bool ok;
    struct error err;
};

static inline void *run_once(void *arg)
{
    struct one_run *one = arg;
    struct tensor out;
    const struct session_run run = {.fetches = &one->fetch,
                                    .fetches_count = 1,
                                    .cancel = one->cancel,
                                    .timeout_ms = one->timeout_ms};
    one->ok = session_run(one->w->session, &run, &out, &one->err);
    if (one->ok) {
        one->value = tensor_number(&out, 0);
        tensor_release(&out);
    }
    return NULL;
}
