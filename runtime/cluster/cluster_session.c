/* cluster_session.c - a graph over several tasks: its devices, its extensions, its plans. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"
#include "runtime/function_library.h"
#include "runtime/session.h"
#include "runtime/shapes.h"
#include "runtime/statistics.h"

/* --- life --- */

struct cluster_session *cluster_session_new(const struct cluster_options *options,
                                            const char *handle, struct error *err)
{
    assert(options->home >= 0 && options->home < options->links_count);
    struct cluster_session *session = alloc_bytes(sizeof(*session));
    session->handle = alloc_text(handle);
    session->soft = options->soft_placement;
    session->compress = options->compress;
    session->shaped = options->shaped;
    session->isolate = options->isolate;
    session->costs = options->by_cost ? cost_model_new() : NULL;
    session->graph = graph_new();
    session->plans = map_new();
    pthread_rwlock_init(&session->graph_lock, NULL);
    pthread_mutex_init(&session->lock, NULL);
    runs_init(&session->runs);
    if (cluster_tasks_add(session, options, err))
        return session;
    cluster_session_free(session);
    return NULL;
}

void cluster_session_close(struct cluster_session *session)
{
    runs_close(&session->runs);
}

void cluster_session_free(struct cluster_session *session)
{
    if (!session)
        return;
    struct error gone;
    cluster_session_close(session);
    for (int i = 0; i < map_count(session->plans); i++)
        cluster_plan_free(session, map_value(session->plans, i));
    for (int i = 0; i < session->old_plans_count; i++)
        cluster_plan_free(session, session->old_plans[i]);
    for (int i = 0; i < session->links_count; i++)
        (void)!session->links[i]->kind->delete_session(session->links[i], session->handle,
                                                       &gone);
    map_free(session->plans);
    free(session->old_plans);
    graph_free(session->graph);
    runs_release(&session->runs);
    pthread_mutex_destroy(&session->lock);
    pthread_rwlock_destroy(&session->graph_lock);
    str_release(&session->reasons);
    cost_model_free(session->costs);
    free(session->links);
    free(session->devices);
    free(session->handle);
    free(session);
}

const struct device *cluster_session_devices(const struct cluster_session *session, int *count)
{
    *count = session->devices_count;
    return session->devices;
}

/* --- the graph --- */

struct place_options cluster_place_options(const struct cluster_session *session)
{
    return (struct place_options){.soft = session->soft,
                                  .keep = true,
                                  .home = &session->devices[0],
                                  .costs = session->costs};
}

/* New nodes only: what is placed stays where its state is. */
static bool place_new_locked(struct cluster_session *session, int first, struct error *err)
{
    const struct place_options options = cluster_place_options(session);
    struct placement placement;
    if (!place_graph_over(session->graph, session->devices, session->devices_count, &options,
                          &placement, err))
        return false;
    for (int i = first; i < graph_count(session->graph); i++) {
        if (session->reasons.size)
            str_add_char(&session->reasons, ',');
        place_explain(&placement, graph_node(session->graph, i), &session->reasons);
    }
    place_release(&placement);
    return true;
}

const struct graph *cluster_session_graph(const struct cluster_session *session)
{
    return session->graph;
}

void cluster_session_explain_placement(struct cluster_session *session, struct str *json)
{
    pthread_rwlock_rdlock(&session->graph_lock);
    str_printf(json, "[%s]", str_text(&session->reasons));
    pthread_rwlock_unlock(&session->graph_lock);
}

/* Adds what `other` has, or else the serialized graph. */
static bool extend(struct cluster_session *session, const struct graph *other,
                   const void *graph_def, size_t size, struct error *err)
{
    pthread_rwlock_wrlock(&session->graph_lock);
    struct graph *graph = session->graph;
    int count = graph_count(graph);
    const struct function_library_mark functions = function_library_mark(graph_library(graph));
    bool ok =
        other ? graph_add_all(graph, other, err) : graph_import(graph, graph_def, size, err);
    if (ok && !place_new_locked(session, count, err)) {
        graph_truncate(graph, count);
        function_library_truncate(graph_library(graph), functions);
        ok = false;
    }
    pthread_rwlock_unlock(&session->graph_lock);
    return ok;
}

bool cluster_session_extend(struct cluster_session *session, const void *graph_def, size_t size,
                            struct error *err)
{
    return extend(session, NULL, graph_def, size, err);
}

bool cluster_session_extend_graph(struct cluster_session *session, const struct graph *graph,
                                  struct error *err)
{
    return extend(session, graph, NULL, 0, err);
}

/* --- runs --- */

/* Whether what is fed has the shapes that its placeholders declare. */
static bool feeds_fit(const struct cluster_session *session, const struct session_run *run)
{
    struct edge fed;
    struct error unknown;
    for (int i = 0; run->feed_values && i < run->feeds_count; i++) {
        const struct shape *declared = graph_edge(session->graph, run->feeds[i], &fed, &unknown)
                                           ? node_attr_shape(fed.from, "shape")
                                           : NULL;
        if (declared && !shape_compatible(declared, &run->feed_values[i].shape))
            return false;
    }
    return true;
}

/* Made at first use; one for feeds of other shapes than those declared. */
struct cluster_plan *cluster_session_plan(struct cluster_session *session,
                                          const struct session_run *run, bool partial,
                                          struct error *err)
{
    struct str text = {0};
    prune_signature(run, partial, &text);
    pthread_rwlock_rdlock(&session->graph_lock);
    bool shaped = session->shaped && !partial && feeds_fit(session, run);
    if (shaped)
        str_add_char(&text, '\x1c');
    pthread_mutex_lock(&session->lock);
    struct cluster_plan *plan = map_find(session->plans, str_text(&text));
    if (!plan) {
        plan = cluster_plan_new(session, run, partial, shaped, err);
        if (plan)
            map_set(session->plans, str_text(&text), plan);
    }
    pthread_mutex_unlock(&session->lock);
    pthread_rwlock_unlock(&session->graph_lock);
    str_release(&text);
    return plan;
}

bool cluster_session_prepare(struct cluster_session *session, const struct session_run *run,
                             struct error *err)
{
    return cluster_session_plan(session, run, false, err);
}

/* --- what runs measure --- */

struct measuring {
    struct cluster_session *session;
    struct shapes shapes;
};

static void measured(void *arg, const char *name, double us)
{
    const struct measuring *measuring = arg;
    const struct node *node = graph_find(measuring->session->graph, name);
    if (node)
        cost_model_measured(measuring->session->costs, node, &measuring->shapes, us);
}

static void measure(struct cluster_session *session, const struct str *statistics, size_t from)
{
    struct error err;
    struct measuring measuring = {.session = session};
    pthread_rwlock_rdlock(&session->graph_lock);
    int *order = graph_sorted(session->graph, &err);
    if (order) {
        shapes_infer(&measuring.shapes, session->graph, order, graph_count(session->graph));
        statistics_each(statistics->data + from, statistics->size - from, measured, &measuring);
        shapes_release(&measuring.shapes);
    }
    free(order);
    pthread_rwlock_unlock(&session->graph_lock);
}

bool cluster_session_run(struct cluster_session *session, const struct session_run *run,
                         struct tensor *fetched, struct error *err)
{
    size_t told = run->statistics ? run->statistics->size : 0;
    struct running *running = runs_begin(&session->runs, err);
    if (!running)
        return false;
    struct cluster_plan *plan = cluster_session_plan(session, run, false, err);
    bool ok = plan && cluster_step_run(session, plan, run, running->cancel, fetched, err);
    if (ok && session->costs && run->trace && run->statistics)
        measure(session, run->statistics, told);
    runs_end(&session->runs, running);
    return ok || runs_explain(&session->runs, err);
}

bool cluster_session_parts(struct cluster_session *session, const struct session_run *run,
                           struct str *graph_defs, size_t **sizes, int *count,
                           struct error *err)
{
    struct cluster_plan *plan = cluster_session_plan(session, run, false, err);
    if (!plan)
        return false;
    *count = plan->parts_count;
    *sizes = alloc_array((size_t)plan->parts_count, sizeof(**sizes));
    for (int i = 0; i < plan->parts_count; i++)
        (*sizes)[i] = plan->parts[i].graph_end;
    str_add_bytes(graph_defs, plan->graph_defs.data, plan->graph_defs.size);
    return true;
}
