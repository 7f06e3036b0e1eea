/*
 * session.c - THE PIPELINE: from names to results.
 *
 *   prune -> lower -> optimise -> place -> partition -> plan   once per signature
 *   execute                                                    each run
 */

#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/cancel.h"
#include "runtime/deadline.h"
#include "runtime/function_library.h"
#include "runtime/function_set.h"
#include "runtime/internal.h"
#include "runtime/memory.h"
#include "runtime/partial.h"
#include "runtime/runs.h"
#include "runtime/session.h"
#include "runtime/statistics.h"

struct session {
    pthread_rwlock_t graph_lock; /* guards: graph; making callables reads, extending writes */
    struct graph *graph;
    bool optimise;
    bool check_numerics;
    struct resources *own_resources; /* NULL when they are shared */
    struct plan_context context;
    struct device device;
    struct place_options placing;

    pthread_mutex_t lock;  /* guards: callables */
    struct map *callables; /* by signature */

    struct runs runs; /* those that go on */
};

/* A signature made ready to run. */
struct callable {
    struct session_run run; /* its names only, in the subgraph's arena */
    bool by_shapes;         /* made for feeds of the shapes that their placeholders declare */
    struct callable *other; /* for feeds of other shapes; made when one comes */
    struct subgraph *subgraph;
    struct placement placement;
    struct partition *parts;
    int parts_count;
    struct plan **plans; /* one per part */
};

/* --- the pipeline --- */

static void callable_free(struct callable *callable)
{
    if (!callable)
        return;
    if (callable->other)
        callable_free(callable->other); /* which has no other */
    for (int i = 0; i < callable->parts_count; i++)
        plan_free(callable->plans[i]);
    free(callable->plans);
    free(callable->parts);
    place_release(&callable->placement);
    prune_free(callable->subgraph);
    free(callable);
}

static bool make_plans(struct session *session, struct callable *callable, struct error *err)
{
    callable->plans = alloc_array((size_t)callable->parts_count, sizeof(struct plan *));
    for (int i = 0; i < callable->parts_count; i++) {
        const struct partition *part = &callable->parts[i];
        callable->plans[i] = plan_new(part->subgraph, part->device, &session->context, err);
        if (!callable->plans[i])
            return false;
    }
    return true;
}

static const char *const *copy_names(struct arena *arena, const char *const *names, int count)
{
    const char **copy = arena_array(arena, (size_t)count, sizeof(*copy));
    for (int i = 0; i < count; i++)
        copy[i] = arena_text(arena, names[i]);
    return copy;
}

static void copy_run(struct callable *callable, const struct session_run *run)
{
    struct arena *arena = graph_arena(callable->subgraph->graph);
    callable->run = (struct session_run){
        .feeds = copy_names(arena, run->feeds, run->feeds_count),
        .feeds_count = run->feeds_count,
        .fetches = copy_names(arena, run->fetches, run->fetches_count),
        .fetches_count = run->fetches_count,
        .targets = copy_names(arena, run->targets, run->targets_count),
        .targets_count = run->targets_count,
    };
}

/* How feeds come: of the shapes declared, of any shapes, or one by one while it runs. */
enum feeding { BY_SHAPES, BY_ANY_SHAPES, BY_PARTS };

static struct callable *make_watched(struct session *session, const struct session_run *run,
                                     enum feeding feeding,
                                     const struct optimise_watcher *watcher, struct error *err)
{
    struct callable *made = alloc_bytes(sizeof(*made));
    bool by_shapes = made->by_shapes = feeding == BY_SHAPES;
    made->subgraph = prune_graph(session->graph, run, err);
    bool ok = made->subgraph;
    if (ok)
        copy_run(made, run);
    if (ok)
        made->subgraph->partial = feeding == BY_PARTS;
    ok = ok && lower_subgraph(made->subgraph, graph_library(session->graph), NULL, 0, err);
    if (ok && session->optimise)
        ok = optimise_graph_watched(made->subgraph, &session->context, by_shapes, watcher, err);
    ok = ok && place_graph_over(made->subgraph->graph, &session->device, 1, &session->placing,
                                &made->placement, err);
    ok = ok && partition_graph(made->subgraph, &made->parts, &made->parts_count, err);
    ok = ok && make_plans(session, made, err);
    if (!ok) {
        callable_free(made);
        return NULL;
    }
    return made;
}

static struct callable *make_callable(struct session *session, const struct session_run *run,
                                      enum feeding feeding, struct error *err)
{
    return make_watched(session, run, feeding, NULL, err);
}

bool session_watch(struct session *session, const struct session_run *run,
                   const struct optimise_watcher *watcher, struct error *err)
{
    pthread_rwlock_rdlock(&session->graph_lock);
    struct callable *callable = make_watched(session, run, BY_SHAPES, watcher, err);
    if (callable)
        watcher->made(watcher->arg, callable->plans[0]);
    bool ok = callable;
    callable_free(callable);
    pthread_rwlock_unlock(&session->graph_lock);
    return ok;
}

void session_estimate(const struct callable *callable, struct memory_estimate *out)
{
    memory_of_plan(callable->plans[0], out);
}

/* Whether the feeds are of the shapes that the plans were made for. */
static bool feeds_fit(const struct callable *callable, const struct tensor *feeds)
{
    for (int i = 0; callable->by_shapes && i < callable->subgraph->feeds_count; i++) {
        const struct shape *declared = node_attr_shape(callable->subgraph->feeds[i], "shape");
        if (declared && !shape_compatible(declared, &feeds[i].shape))
            return false;
    }
    return true;
}

/* TensorFlow takes feeds that contradict their placeholders, so a plan without shapes does. */
static struct callable *without_shapes(struct session *session, struct callable *callable,
                                       struct error *err)
{
    pthread_rwlock_rdlock(&session->graph_lock);
    pthread_mutex_lock(&session->lock);
    if (!callable->other)
        callable->other = make_callable(session, &callable->run, BY_ANY_SHAPES, err);
    struct callable *other = callable->other;
    pthread_mutex_unlock(&session->lock);
    pthread_rwlock_unlock(&session->graph_lock);
    return other;
}

/*
 * Runs all parts; today there is one, so it runs on the calling thread.  No lock is held: the
 * plan has its own copies of the nodes, and a run may wait for what another brings.
 */
static bool execute(struct session *session, struct callable *callable,
                    const struct tensor *feeds, struct tensor *fetched, struct str *statistics,
                    struct execute_options *options, struct error *err)
{
    if (!feeds_fit(callable, feeds) && !(callable = without_shapes(session, callable, err)))
        return false;
    assert(callable->parts_count == 1);
    struct plan *plan = callable->plans[0];
    options->check_numerics = session->check_numerics;
    if (!statistics)
        return execute_plan(plan, feeds, fetched, options, err);

    struct trace trace = {.start_us = clock_wall_us(), .start_ns = clock_monotonic_ns()};
    options->trace = &trace;
    bool ok = execute_plan(plan, feeds, fetched, options, err);
    if (ok)
        statistics_add(&session->device, &trace, statistics);
    trace_release(&trace);
    return ok;
}

/* --- signatures --- */

/* Made at first use; the graph's lock is held for reading. */
static struct callable *find_callable_locked(struct session *session,
                                             const struct session_run *run, bool partial,
                                             struct error *err)
{
    enum feeding feeding = partial ? BY_PARTS : session->optimise ? BY_SHAPES : BY_ANY_SHAPES;
    struct str text = {0};
    prune_signature(run, partial, &text);
    pthread_mutex_lock(&session->lock);
    struct callable *callable = map_find(session->callables, str_text(&text));
    if (!callable) {
        callable = make_callable(session, run, feeding, err);
        if (callable)
            map_set(session->callables, str_text(&text), callable);
    }
    pthread_mutex_unlock(&session->lock);
    str_release(&text);
    return callable;
}

static struct callable *find_callable(struct session *session, const struct session_run *run,
                                      bool partial, struct error *err)
{
    pthread_rwlock_rdlock(&session->graph_lock);
    struct callable *callable = find_callable_locked(session, run, partial, err);
    pthread_rwlock_unlock(&session->graph_lock);
    return callable;
}

struct callable *session_prepare(struct session *session, const struct session_run *run,
                                 struct error *err)
{
    return find_callable(session, run, false, err);
}

void session_cancel_all(struct session *session)
{
    runs_cancel(&session->runs);
}

void session_close(struct session *session)
{
    runs_close(&session->runs);
}

/* Who was cancelled by his deadline is told so. */
static bool explain_end(const struct execute_options *options, struct error *err)
{
    bool asked = options->cancel && cancel_requested(options->cancel);
    if (err->code != CANCELLED || asked || !options->deadline_ns ||
        clock_monotonic_ns() < options->deadline_ns)
        return false;
    return fail(err, DEADLINE, "Timed out waiting for notification");
}

static void cancel_also(void *arg)
{
    cancel_now(arg);
}

/* As session_call(), with what `run` says about its end (NULL: nothing). */
static bool call(struct session *session, struct callable *callable,
                 const struct session_run *run, const struct tensor *feed_values,
                 struct tensor *fetched, struct str *statistics, struct error *err)
{
    struct running *running = runs_begin(&session->runs, err);
    if (!running)
        return false;
    struct execute_options options = {.own = running->cancel};
    if (run) {
        options.cancel = run->cancel;
        options.deadline_ns = run->timeout_ms > 0
                                  ? clock_monotonic_ns() + (uint64_t)run->timeout_ms * 1000000
                                  : 0;
    }
    struct deadline deadline;
    if (options.deadline_ns)
        deadline_begin(&deadline, options.deadline_ns, cancel_also, running->cancel);
    bool ok = execute(session, callable, feed_values, fetched, statistics, &options, err);
    if (options.deadline_ns)
        deadline_end(&deadline);
    runs_end(&session->runs, running);
    return ok || runs_explain(&session->runs, err) || explain_end(&options, err);
}

bool session_call(struct session *session, struct callable *callable,
                  const struct tensor *feed_values, struct tensor *fetched,
                  struct str *statistics, struct error *err)
{
    return call(session, callable, NULL, feed_values, fetched, statistics, err);
}

bool session_run(struct session *session, const struct session_run *run, struct tensor *fetched,
                 struct error *err)
{
    struct callable *callable = session_prepare(session, run, err);
    if (!callable)
        return false;
    struct str *statistics = run->trace ? run->statistics : NULL;
    return call(session, callable, run, run->feed_values, fetched, statistics, err);
}

/* --- in several calls --- */

struct partial *session_partial_setup(struct session *session, const struct session_run *run,
                                      struct error *err)
{
    struct callable *callable = find_callable(session, run, true, err);
    return callable ? partial_new(callable->plans[0], &callable->run, err) : NULL;
}

bool session_partial_run(struct session *session, struct partial *partial,
                         const struct session_run *run, struct tensor *fetched,
                         struct error *err)
{
    struct running *running = runs_begin(&session->runs, err);
    if (!running)
        return false;
    struct execute_options options = {.own = running->cancel, .cancel = run->cancel};
    struct deadline deadline;
    uint64_t ticket;
    bool ok = true, watched = false;
    if (run->timeout_ms > 0) {
        options.deadline_ns = clock_monotonic_ns() + (uint64_t)run->timeout_ms * 1000000;
        deadline_begin(&deadline, options.deadline_ns, cancel_also, running->cancel);
    }
    if (run->cancel) {
        watched = cancel_add(run->cancel, cancel_also, running->cancel, &ticket);
        ok = watched || fail(err, CANCELLED, "the run was cancelled before it began");
    }
    ok = ok && partial_run(partial, run, running->cancel, fetched, err);
    if (watched)
        (void)cancel_remove(run->cancel, ticket);
    if (options.deadline_ns)
        deadline_end(&deadline);
    runs_end(&session->runs, running);
    return ok || runs_explain(&session->runs, err) || explain_end(&options, err);
}

/* --- the graph --- */

/*
 * A bad device, or an op without a kernel, is refused when the graph comes.  Callables made
 * before stay good: they have their own copies of the nodes, and nodes are only added.
 */
static bool check_extended_locked(struct session *session, int count_before,
                                  struct function_library_mark functions_before,
                                  struct error *err)
{
    struct placement placement;
    bool ok = place_graph_over(session->graph, &session->device, 1, &session->placing,
                               &placement, err);
    if (ok) {
        place_release(&placement);
    } else {
        graph_truncate(session->graph, count_before);
        function_library_truncate(graph_library(session->graph), functions_before);
    }
    return ok;
}

bool session_extend(struct session *session, const void *graph_def, size_t size,
                    struct error *err)
{
    pthread_rwlock_wrlock(&session->graph_lock);
    int count = graph_count(session->graph);
    const struct function_library_mark functions =
        function_library_mark(graph_library(session->graph));
    bool ok = graph_import(session->graph, graph_def, size, err) &&
              check_extended_locked(session, count, functions, err);
    pthread_rwlock_unlock(&session->graph_lock);
    return ok;
}

bool session_extend_graph(struct session *session, const struct graph *graph, struct error *err)
{
    pthread_rwlock_wrlock(&session->graph_lock);
    int count = graph_count(session->graph);
    const struct function_library_mark functions =
        function_library_mark(graph_library(session->graph));
    bool ok = graph_add_all(session->graph, graph, err) &&
              check_extended_locked(session, count, functions, err);
    pthread_rwlock_unlock(&session->graph_lock);
    return ok;
}

const struct graph *session_graph(const struct session *session)
{
    return session->graph;
}

/* --- life --- */

/* As many as this process may run on. */
static int threads_default(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

static bool init_device(struct device *device, const struct device *given, int threads,
                        struct error *err)
{
    if (given) {
        *device = *given;
        device->threads = threads;
        return true;
    }
    snprintf(device->name, sizeof(device->name), "/job:localhost/replica:0/task:0/device:%s:0",
             device_type_name(CPU));
    device->type = CPU;
    device->threads = threads;
    device->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (getrandom(&device->incarnation, sizeof(device->incarnation), 0) !=
        (ssize_t)sizeof(device->incarnation))
        return error_errno(err, INTERNAL, "no random number for the device's incarnation");
    device->incarnation |= 1; /* never 0 */
    return device_name_parse(device->name, &device->parts, err);
}

struct session *session_new(const struct session_options *options, struct error *err)
{
    const struct session_options defaults = {0};
    if (!options)
        options = &defaults;
    struct session *session = alloc_bytes(sizeof(*session));
    int threads = options->threads > 0 ? options->threads : threads_default();
    if (!init_device(&session->device, options->device, threads, err)) {
        free(session);
        return NULL;
    }
    pthread_rwlock_init(&session->graph_lock, NULL);
    pthread_mutex_init(&session->lock, NULL);
    runs_init(&session->runs);
    session->graph = graph_new();
    session->placing.soft = options->soft_placement;
    session->optimise = !options->no_optimise;
    session->check_numerics = options->check_numerics;
    session->callables = map_new();
    if (!options->resources)
        session->own_resources = resources_new("localhost");
    struct resources *resources =
        options->resources ? options->resources : session->own_resources;
    int64_t memory_bytes_max =
        options->memory_bytes_max > 0 ? options->memory_bytes_max : LIMIT_TENSOR_BYTES;
    plan_context_init(&session->context, resources, threads, memory_bytes_max);
    session->context.passes_off = options->passes_off;
    session->context.precision = options->precision;
    session->context.memory_limit =
        options->memory_limit > 0 ? options->memory_limit : options->memory_bytes_max;
    session->context.functions = function_set_new(&(struct function_set_options){
        .library = graph_library(session->graph),
        .device = &session->device,
        .resources = resources,
        .threads = threads,
        .memory_bytes_max = memory_bytes_max,
        .optimise = session->optimise,
        .passes_off = options->passes_off,
    });
    return session;
}

void session_free(struct session *session)
{
    if (!session)
        return;
    session_close(session);
    for (int i = 0; i < map_count(session->callables); i++)
        callable_free(map_value(session->callables, i));
    map_free(session->callables);
    plan_context_release(&session->context);
    function_set_close(session->context.functions);
    graph_free(session->graph);
    resources_free(session->own_resources);
    pthread_mutex_destroy(&session->lock);
    runs_release(&session->runs);
    pthread_rwlock_destroy(&session->graph_lock);
    free(session);
}

/* --- reports --- */

bool session_export(struct session *session, const struct session_run *run, struct str *out,
                    struct error *err)
{
    const struct callable *callable = find_callable(session, run, false, err);
    if (callable)
        graph_export(callable->subgraph->graph, true, 0, out);
    return callable;
}

struct resources *session_resources(struct session *session)
{
    return session->context.resources;
}

void session_explain_placement(const struct session *session, const struct callable *callable,
                               struct str *json)
{
    (void)session;
    bool first = true;
    bool *needed = prune_needed(callable->subgraph);
    str_add(json, "[");
    for (int i = 0; i < graph_count(callable->subgraph->graph); i++) {
        if (!needed[i])
            continue;
        if (!first)
            str_add(json, ",");
        first = false;
        place_explain(&callable->placement, graph_node(callable->subgraph->graph, i), json);
    }
    str_add(json, "]");
    free(needed);
}

static void add_variable_bytes(struct resource *resource, void *arg)
{
    struct variable *variable = (struct variable *)resource;
    int64_t *total = arg;
    pthread_mutex_lock(&variable->lock);
    if (variable->value.dtype != DTYPE_NONE)
        *total += (int64_t)tensor_bytes(&variable->value);
    pthread_mutex_unlock(&variable->lock);
}

void session_memory(const struct session *session, int64_t *arena_bytes,
                    int64_t *variable_bytes)
{
    *arena_bytes = workspace_pool_bytes(&session->context.workspaces);
    *variable_bytes = 0;
    resources_each(session->context.resources, "variable", add_variable_bytes, variable_bytes);
}
