/*
 * function.c - functions with plans of their own, for kernels that call them.
 *
 * A function's body becomes a graph with placeholders for arguments and Identities for results,
 * goes through the same stages as a run of a session, and is kept: by name and attributes, in
 * the functions of the session.  It holds what it needs, so that it may outlive the session's
 * interest in it.
 */

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/builder.h"
#include "runtime/execute_internal.h"
#include "runtime/function.h"
#include "runtime/function_library.h"
#include "runtime/function_set.h"
#include "runtime/gradient.h"
#include "runtime/internal.h"
#include "runtime/op.h"
#include "runtime/session.h"

struct function {
    int references; /* __atomic */
    struct function_set *set;
    struct plan_context context; /* stateful kernels are the function's */
    struct graph *graph;
    struct subgraph *subgraph;
    struct partition *parts;
    struct plan *plan;
    int args_count;
    int results_count;
    struct attr key; /* ATTR_FUNC: what it was made from */
    bool gradient;
};

/* A function that was asked for, in the list of those of one name. */
struct cached {
    struct cached *next;
    struct attr key; /* ATTR_FUNC: name and attributes */
    bool gradient;
    struct function *function;
};

struct function_set {
    int references; /* __atomic */
    struct function_library *library;
    struct device device;
    struct resources *resources;
    int threads;
    int64_t memory_bytes_max;
    bool optimise;
    uint32_t passes_off;

    pthread_mutex_t lock; /* guards: all below */
    struct arena *arena;
    struct map *cache; /* struct cached by name */
};

/* --- the functions of a session --- */

struct function_set *function_set_new(const struct function_set_options *options)
{
    struct function_set *set = alloc_bytes(sizeof(*set));
    set->references = 1;
    set->library = options->library;
    function_library_ref(set->library);
    set->device = *options->device;
    set->resources = options->resources;
    set->threads = options->threads;
    set->memory_bytes_max = options->memory_bytes_max;
    set->optimise = options->optimise;
    set->passes_off = options->passes_off;
    pthread_mutex_init(&set->lock, NULL);
    set->arena = arena_new();
    set->cache = map_new();
    return set;
}

static void set_unref(struct function_set *set)
{
    if (__atomic_sub_fetch(&set->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    function_library_unref(set->library);
    map_free(set->cache);
    arena_free(set->arena);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

void function_set_close(struct function_set *set)
{
    if (!set)
        return;
    pthread_mutex_lock(&set->lock);
    struct map *cache = set->cache;
    set->cache = map_new();
    pthread_mutex_unlock(&set->lock);
    for (int i = 0; i < map_count(cache); i++)
        for (struct cached *at = map_value(cache, i); at; at = at->next) {
            function_unref(at->function);
            attr_release(&at->key);
        }
    map_free(cache);
    set_unref(set);
}

/* --- life --- */

void function_ref(struct function *function)
{
    __atomic_add_fetch(&function->references, 1, __ATOMIC_RELAXED);
}

void function_unref(struct function *function)
{
    if (!function || __atomic_sub_fetch(&function->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    plan_free(function->plan);
    free(function->parts);
    prune_free(function->subgraph);
    attr_release(&function->key);
    graph_free(function->graph);
    plan_context_release(&function->context);
    set_unref(function->set);
    free(function);
}

int function_args_count(const struct function *function)
{
    return function->args_count;
}

enum dtype function_arg_type(const struct function *function, int i)
{
    assert(i < function->args_count);
    return dtype_base(function->subgraph->feeds[i]->output_types[0]);
}

int function_results_count(const struct function *function)
{
    return function->results_count;
}

/* --- making: body -> prune -> optimise -> place -> plan --- */

/* Gradients of the results, which are the last arguments, become the results. */
static bool differentiate(struct function *f, struct lower_function *body, struct error *err)
{
    int args = body->args_count, results = body->results_count;
    struct builder b = {.graph = f->graph, .err = err};
    struct edge *grad_ys = alloc_array((size_t)results, sizeof(*grad_ys));
    struct edge *grads = alloc_array((size_t)args, sizeof(*grads));
    for (int i = 0; i < results; i++)
        grad_ys[i] = builder_add(
            &b, "Placeholder", "grad_y", NO_INPUTS,
            ATTRS(attr_type(
                "dtype",
                dtype_base(body->results[i].from->output_types[body->results[i].output]))));
    bool ok = builder_ok(&b) && gradient_build(f->graph, body->results, results, grad_ys,
                                               body->args, args, grads, err);
    for (int i = 0; ok && i < args; i++)
        if (!grads[i].from)
            grads[i] = builder_add(&b, "ZerosLike", "no_grad", INPUTS(body->args[i]), NO_ATTRS);
    ok = ok && builder_ok(&b);
    struct arena *arena = graph_arena(f->graph);
    if (ok) {
        struct edge *all = arena_array(arena, (size_t)(args + results), sizeof(*all));
        memcpy(all, body->args, (size_t)args * sizeof(*all));
        memcpy(all + args, grad_ys, (size_t)results * sizeof(*all));
        body->results = arena_copy(arena, grads, (size_t)args * sizeof(*grads));
        body->results_count = args;
        body->args = all;
        body->args_count = args + results;
    }
    free(grad_ys);
    free(grads);
    return ok;
}

static const char *const *edge_names(struct arena *arena, const struct edge *edges, int count)
{
    const char **names = arena_array(arena, (size_t)count, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = edges[i].from->name;
    return names;
}

/* Results by names of their own, so that an argument may be one, and one result two. */
static bool cut(struct function *f, const struct lower_function *body, struct error *err)
{
    struct arena *arena = graph_arena(f->graph);
    struct builder b = {.graph = f->graph, .err = err};
    struct edge *fetches = arena_array(arena, (size_t)body->results_count, sizeof(*fetches));
    for (int i = 0; i < body->results_count; i++)
        fetches[i] = builder_add(&b, "Identity", "result", INPUTS(body->results[i]), NO_ATTRS);
    const char *done = builder_ok(&b) ? graph_unique_name(f->graph, "done") : NULL;
    if (!done || !builder_group(&b, done, body->effects, body->effects_count))
        return false;
    const struct session_run run = {
        .feeds = edge_names(arena, body->args, body->args_count),
        .feeds_count = body->args_count,
        .fetches = edge_names(arena, fetches, body->results_count),
        .fetches_count = body->results_count,
        .targets = &done,
        .targets_count = 1,
    };
    f->args_count = body->args_count;
    f->results_count = body->results_count;
    f->subgraph = prune_graph(f->graph, &run, err);
    return f->subgraph;
}

static bool make_plan(struct function *f, struct error *err)
{
    struct placement placement = {0};
    int parts_count = 0;
    if (f->set->optimise && !optimise_graph(f->subgraph, &f->context, false, err))
        return false;
    if (!place_graph(f->subgraph->graph, &f->set->device, 1, &placement, err))
        return false;
    place_release(&placement);
    if (!partition_graph(f->subgraph, &f->parts, &parts_count, err))
        return false;
    assert(parts_count == 1);
    f->plan = plan_new(f->parts[0].subgraph, f->parts[0].device, &f->context, err);
    return f->plan;
}

static struct function *function_new(struct function_set *set, const struct attr_func *func,
                                     bool gradient, struct error *err)
{
    struct function *f = alloc_bytes(sizeof(*f));
    f->references = 1;
    f->set = set;
    __atomic_add_fetch(&set->references, 1, __ATOMIC_RELAXED);
    plan_context_init(&f->context, set->resources, set->threads, set->memory_bytes_max);
    f->context.passes_off = set->passes_off;
    f->context.functions = set;
    f->graph = graph_new();
    const struct attr key = {.name = "f", .kind = ATTR_FUNC, .count = 1, .funcs = func};
    f->key = attr_copy(&key, graph_arena(f->graph));
    f->gradient = gradient;
    struct lower_function body;
    bool ok = lower_function(f->graph, set->library, func, &body, err) &&
              (!gradient || differentiate(f, &body, err)) && cut(f, &body, err) &&
              make_plan(f, err);
    if (ok)
        return f;
    error_prefix(err, "function '%s': ", func->name);
    function_unref(f);
    return NULL;
}

bool function_has_state(const struct function *function)
{
    const struct graph *graph = function->subgraph->graph;
    for (int i = 0; i < graph_count(graph); i++)
        if (graph_node(graph, i)->op->flags & OP_STATEFUL)
            return true;
    return false;
}

struct function *function_again(const struct function *function, struct error *err)
{
    return function_new(function->set, function->key.funcs, function->gradient, err);
}

/* --- finding --- */

static struct function *find_locked(struct function_set *set, const struct attr *key,
                                    bool gradient)
{
    for (struct cached *at = map_find(set->cache, key->funcs->name); at; at = at->next)
        if (at->gradient == gradient && attr_equal(&at->key, key)) {
            function_ref(at->function);
            return at->function;
        }
    return NULL;
}

/* Keeps `made`, or, if another thread was faster, takes that thread's and drops it. */
static struct function *keep(struct function_set *set, const struct attr *key, bool gradient,
                             struct function *made)
{
    pthread_mutex_lock(&set->lock);
    struct function *found = find_locked(set, key, gradient);
    if (!found) {
        struct cached *cached = arena_alloc(set->arena, sizeof(*cached));
        *cached = (struct cached){.next = map_find(set->cache, key->funcs->name),
                                  .key = attr_copy(key, set->arena),
                                  .gradient = gradient,
                                  .function = made};
        map_set(set->cache, cached->key.funcs->name, cached);
        function_ref(made);
    }
    pthread_mutex_unlock(&set->lock);
    if (!found)
        return made;
    function_unref(made);
    return found;
}

/* How deep the calls of this thread are: a function may call itself without end. */
static _Thread_local int depth;

static bool go_deeper(const char *name, struct error *err)
{
    if (depth >= LIMIT_FUNCTION_DEPTH)
        return fail(err, EXHAUSTED, "function '%s' is called inside %d other calls: too deep",
                    name, depth);
    depth++;
    return true;
}

static struct function *find_or_make(struct kernel_call *call, const struct attr_func *func,
                                     bool gradient, struct error *err)
{
    struct function_set *set = call->functions;
    if (!set)
        return fail_null(err, UNIMPLEMENTED, "function '%s' cannot be called here", func->name);
    const struct attr key = {.name = "f", .kind = ATTR_FUNC, .count = 1, .funcs = func};
    pthread_mutex_lock(&set->lock);
    struct function *function = find_locked(set, &key, gradient);
    pthread_mutex_unlock(&set->lock);
    if (function || !go_deeper(func->name, err))
        return function;
    function = function_new(set, func, gradient, err);
    depth--;
    return function ? keep(set, &key, gradient, function) : NULL;
}

struct function *function_get(struct kernel_call *call, const struct attr_func *func,
                              struct error *err)
{
    return find_or_make(call, func, false, err);
}

struct function *function_get_gradient(struct kernel_call *call, const struct attr_func *func,
                                       struct error *err)
{
    const char *own = call->functions
                          ? function_library_gradient(call->functions->library, func->name)
                          : NULL;
    if (!own)
        return find_or_make(call, func, true, err);
    const struct attr_func named = {own, func->attrs, func->attrs_count};
    return find_or_make(call, &named, false, err);
}

/* --- running --- */

bool function_run(struct function *function, const struct tensor *args, int args_count,
                  struct tensor *results, struct cancel *cancel, struct error *err)
{
    if (args_count != function->args_count)
        return fail(err, INVALID, "a function of %d arguments is called with %d",
                    function->args_count, args_count);
    if (!go_deeper("", err))
        return false;
    const struct execute_options options = {.cancel = cancel};
    bool ok = execute_plan(function->plan, args, results, &options, err);
    depth--;
    return ok;
}
