/* worker_session.c - sessions of a worker, and the graphs that masters registered in them. */

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "runtime/function_library.h"
#include "runtime/function_set.h"
#include "runtime/master/node_error.h"
#include "runtime/session.h"
#include "runtime/worker/internal.h"

/* --- graphs --- */

static void free_graph(struct worker_graph *graph)
{
    plan_free(graph->plan);
    prune_free(graph->subgraph);
    graph_free(graph->graph);
    free(graph);
}

/* What nobody reads: sends, and the targets of the step. */
static struct subgraph *cut_sinks(const struct graph *graph, struct error *err)
{
    int count = graph_count(graph), sinks = 0;
    bool *read = alloc_array((size_t)count, sizeof(bool));
    const char **names = alloc_array((size_t)count, sizeof(char *));
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++)
            read[node->inputs[k].from->id] = true;
        for (int k = 0; k < node->controls_count; k++)
            read[node->controls[k]->id] = true;
    }
    for (int i = 0; i < count; i++)
        if (!read[i])
            names[sinks++] = graph_node(graph, i)->name;
    const struct session_run run = {.targets = names, .targets_count = sinks};
    struct subgraph *subgraph = NULL;
    if (sinks)
        subgraph = prune_graph(graph, &run, err);
    else
        (void)fail(err, INVALID, "the graph has no node that nobody reads, so nothing to run");
    free(read);
    free(names);
    return subgraph;
}

/* As session.c makes a callable, of all that came. */
static bool make_plan(struct worker_graph *graph, const struct worker *worker,
                      struct error *err)
{
    struct plan_context *context = &graph->session->context;
    struct placement placement;
    struct partition *parts = NULL;
    int count;
    graph->subgraph = cut_sinks(graph->graph, err);
    if (!graph->subgraph ||
        !lower_subgraph(graph->subgraph, graph_library(graph->graph), NULL, 0, err) ||
        (worker->optimise && !optimise_graph(graph->subgraph, context, true, err)) ||
        !place_graph(graph->subgraph->graph, &worker->device, 1, &placement, err))
        return false;
    place_release(&placement);
    if (!partition_graph(graph->subgraph, &parts, &count, err))
        return false;
    graph->plan = plan_new(parts[0].subgraph, parts[0].device, context, err);
    free(parts);
    return graph->plan;
}

static struct worker_graph *new_graph(struct worker_session *session, const void *graph_def,
                                      size_t size, struct error *err)
{
    struct worker_graph *graph = alloc_bytes(sizeof(*graph));
    graph->references = 1;
    graph->session = session;
    graph->graph = graph_new();
    graph_allow_private(graph->graph);
    bool ok = graph_import(graph->graph, graph_def, size, err);
    if (ok) {
        pthread_mutex_lock(&session->making);
        ok = function_library_add_all(session->library, graph_library(graph->graph), err);
        pthread_mutex_unlock(&session->making);
    }
    if (ok && make_plan(graph, session->worker, err))
        return graph;
    if (ok && plan_lacks_feed(err)) {
        graph->fault = *err;
        node_error(&graph->fault);
        return graph;
    }
    free_graph(graph);
    return NULL;
}

/* --- sessions --- */

static struct worker_session *new_session(struct worker *worker, bool isolate)
{
    struct worker_session *session = alloc_bytes(sizeof(*session));
    session->references = 1;
    session->worker = worker;
    if (isolate)
        session->own_resources = resources_new(worker->device.parts.job);
    struct resources *resources = isolate ? session->own_resources : worker->resources;
    session->library = function_library_new();
    session->graphs = map_new();
    pthread_mutex_init(&session->making, NULL);
    plan_context_init(&session->context, resources, worker->threads, worker->memory_bytes_max);
    session->context.passes_off = worker->passes_off;
    session->context.functions = function_set_new(&(struct function_set_options){
        .library = session->library,
        .device = &worker->device,
        .resources = resources,
        .threads = worker->threads,
        .memory_bytes_max = worker->memory_bytes_max,
        .optimise = worker->optimise,
        .passes_off = worker->passes_off,
    });
    return session;
}

static void free_session(struct worker_session *session)
{
    plan_context_release(&session->context);
    function_set_close(session->context.functions);
    function_library_unref(session->library);
    resources_free(session->own_resources);
    pthread_mutex_destroy(&session->making);
    map_free(session->graphs);
    free(session);
}

static void unref_session(struct worker_session *session)
{
    struct worker *worker = session->worker;
    pthread_mutex_lock(&worker->lock);
    bool last = !--session->references;
    pthread_mutex_unlock(&worker->lock);
    if (last)
        free_session(session);
}

void worker_session_unref_graph(struct worker_graph *graph)
{
    struct worker_session *session = graph->session;
    pthread_mutex_lock(&session->worker->lock);
    bool last = !--graph->references;
    pthread_mutex_unlock(&session->worker->lock);
    if (!last)
        return;
    free_graph(graph);
    unref_session(session);
}

/* Counted.  Session "" is made when it is first asked for. */
static struct worker_session *find_session(struct worker *worker, const char *handle,
                                           struct error *err)
{
    pthread_mutex_lock(&worker->lock);
    struct worker_session *session = map_find(worker->sessions, handle);
    if (!session && !handle[0]) {
        session = new_session(worker, false);
        map_set(worker->sessions, handle, session);
    }
    if (session)
        session->references++;
    else
        (void)fail(err, ABORTED,
                   "Session handle is not found: %s. Possibly this worker (\"%s\") just "
                   "restarted.",
                   handle, worker->task);
    pthread_mutex_unlock(&worker->lock);
    return session;
}

bool worker_create_session(struct worker *worker, const char *handle, bool isolate,
                           struct error *err)
{
    bool ok = true;
    pthread_mutex_lock(&worker->lock);
    if (map_find(worker->sessions, handle))
        ok = fail(err, EXISTS, "the session %s exists already", handle);
    else if (map_count(worker->sessions) >= LIMIT_WORKER_SESSIONS)
        ok = fail(err, EXHAUSTED, "%s has %d sessions already", worker->task,
                  LIMIT_WORKER_SESSIONS);
    else
        map_set(worker->sessions, handle, new_session(worker, isolate));
    pthread_mutex_unlock(&worker->lock);
    return ok;
}

/* The table's references to the graphs, and then to the session. */
static void drop_session(struct worker_session *session)
{
    struct worker *worker = session->worker;
    pthread_mutex_lock(&worker->lock);
    struct map *graphs = session->graphs;
    session->graphs = map_new();
    pthread_mutex_unlock(&worker->lock);
    for (int i = 0; i < map_count(graphs); i++)
        worker_session_unref_graph(map_value(graphs, i));
    map_free(graphs);
    unref_session(session);
}

bool worker_delete_session(struct worker *worker, const char *handle, struct error *err)
{
    pthread_mutex_lock(&worker->lock);
    struct worker_session *session = map_remove(worker->sessions, handle);
    pthread_mutex_unlock(&worker->lock);
    if (!session)
        return fail(err, ABORTED, "Session handle is not found: %s.", handle);
    worker_partial_sweep(worker, handle);
    drop_session(session);
    buffer_free_spare();
    return true;
}

int worker_sessions_count(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    int count = map_count(worker->sessions) - (map_find(worker->sessions, "") != NULL);
    pthread_mutex_unlock(&worker->lock);
    return count;
}

void worker_session_free_all(struct worker *worker)
{
    for (int i = 0; i < map_count(worker->sessions); i++)
        drop_session(map_value(worker->sessions, i));
    map_free(worker->sessions);
}

/* --- graphs by handle --- */

bool worker_register_graph(struct worker *worker, const char *handle, const void *graph_def,
                           size_t size, char out[WORKER_HANDLE_BYTES], struct error *err)
{
    struct worker_session *session = find_session(worker, handle, err);
    struct worker_graph *graph = session ? new_graph(session, graph_def, size, err) : NULL;
    if (session && !graph)
        unref_session(session);
    if (!graph)
        return false; /* else the session's reference is the graph's */
    pthread_mutex_lock(&worker->lock);
    bool room = map_count(session->graphs) < LIMIT_WORKER_GRAPHS;
    if (room) {
        snprintf(out, WORKER_HANDLE_BYTES, "%016" PRIx64, ++session->last_handle);
        map_set(session->graphs, out, graph);
    }
    pthread_mutex_unlock(&worker->lock);
    if (!room)
        worker_session_unref_graph(graph);
    return room || fail(err, EXHAUSTED, "the session %s has %d graphs already", handle,
                        LIMIT_WORKER_GRAPHS);
}

bool worker_deregister_graph(struct worker *worker, const char *handle,
                             const char *graph_handle, struct error *err)
{
    struct worker_session *session = find_session(worker, handle, err);
    if (!session)
        return false;
    pthread_mutex_lock(&worker->lock);
    struct worker_graph *graph = map_remove(session->graphs, graph_handle);
    pthread_mutex_unlock(&worker->lock);
    if (graph)
        worker_session_unref_graph(graph);
    unref_session(session);
    return graph || fail(err, ABORTED,
                         "Graph handle is not found: %s. Possibly, this worker just restarted.",
                         graph_handle);
}

struct worker_graph *worker_session_graph(struct worker *worker, const char *handle,
                                          const char *graph_handle, struct error *err)
{
    struct worker_session *session = find_session(worker, handle, err);
    if (!session)
        return NULL;
    pthread_mutex_lock(&worker->lock);
    struct worker_graph *graph = map_find(session->graphs, graph_handle);
    if (graph)
        graph->references++;
    pthread_mutex_unlock(&worker->lock);
    unref_session(session);
    return graph ? graph
                 : fail_null(err, ABORTED, "Graph handle is not found: %s", graph_handle);
}
