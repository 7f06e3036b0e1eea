/*
 * session.c - sessions over a graph that may grow.
 *
 * The newest signature is kept with its callable, so that a loop that runs the same again looks
 * nothing up.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "capi/internal.h"
#include "runtime/optimise.h"
#include "runtime/session.h"

struct ty_session_options {
    struct session_options options;
};

/* What was run last, and how to run it again. */
struct signature {
    struct callable *callable; /* NULL: nothing is kept */
    struct ty_output *outputs; /* inputs, then outputs, then targets */
    int counts[3];
};

struct ty_session {
    struct ty_graph *graph;
    struct session *session;
    pthread_mutex_t lock; /* guards: extended, last; taken before the graph's */
    int extended;         /* nodes that the session has */
    struct signature last;
};

/* --- options --- */

struct ty_session_options *ty_session_options_new(void)
{
    return alloc_bytes(sizeof(struct ty_session_options));
}

void ty_session_options_free(struct ty_session_options *options)
{
    free(options);
}

void ty_session_options_set_threads(struct ty_session_options *options, int threads)
{
    options->options.threads = threads > 0 ? threads : 0;
}

void ty_session_options_set_memory(struct ty_session_options *options, int64_t bytes)
{
    options->options.memory_bytes_max = bytes > 0 ? bytes : 0;
}

void ty_session_options_disable_passes(struct ty_session_options *options, const char *names,
                                       struct ty_status *status)
{
    struct error err;
    uint32_t set = 0;
    bool ok = true;
    if (!strcmp(names, "all"))
        set = OPTIMISE_BIT(OPTIMISE_PASSES) - 1;
    else if (!optimise_parse(names, &set))
        ok = fail(&err, NOT_FOUND, "'%s' does not name passes of the optimiser", names);
    if (ok)
        options->options.passes_off |= set;
    capi_result(status, ok, &err);
}

/* --- life --- */

struct ty_session *ty_session_new(struct ty_graph *graph,
                                  const struct ty_session_options *options,
                                  struct ty_status *status)
{
    struct error err;
    capi_start();
    struct session *session = session_new(options ? &options->options : NULL, &err);
    capi_result(status, session, &err);
    if (!session)
        return NULL;
    struct ty_session *made = alloc_bytes(sizeof(*made));
    made->session = session;
    made->graph = graph;
    pthread_mutex_init(&made->lock, NULL);
    __atomic_add_fetch(&graph->references, 1, __ATOMIC_RELAXED);
    return made;
}

void ty_session_free(struct ty_session *session)
{
    if (!session)
        return;
    session_free(session->session);
    capi_graph_unref(session->graph);
    pthread_mutex_destroy(&session->lock);
    free(session->last.outputs);
    free(session);
}

/* --- running --- */

/* Gives the session the nodes that the graph got since. */
static bool extend_locked(struct ty_session *session, struct error *err)
{
    struct str whole = {0}, tail = {0};
    pthread_mutex_lock(&session->graph->lock);
    int count = graph_count(session->graph->graph), before = session->extended;
    if (count > before)
        graph_export(session->graph->graph, false, 0, &whole);
    pthread_mutex_unlock(&session->graph->lock);
    bool ok = true;
    if (count > before) {
        session->last.callable = NULL;
        ok = !before || capi_tail(&whole, before, &tail, err);
        const struct str *bytes = before ? &tail : &whole;
        ok = ok && session_extend(session->session, str_text(bytes), bytes->size, err);
    }
    if (ok)
        session->extended = count;
    str_release(&whole);
    str_release(&tail);
    return ok;
}

static char **name_outputs(const struct ty_output *outputs, int count)
{
    char **names = alloc_array((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] =
            alloc_printf("%s:%d", capi_node(outputs[i].operation)->name, outputs[i].index);
    return names;
}

static void free_names(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool same(const struct ty_output *a, const struct ty_output *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i].operation != b[i].operation || a[i].index != b[i].index)
            return false;
    return true;
}

/* All that one run names. */
struct request {
    const struct ty_output *inputs, *outputs;
    struct ty_operation *const *targets;
    int counts[3];
};

static bool is_last(const struct signature *last, const struct request *request)
{
    if (!last->callable || memcmp(last->counts, request->counts, sizeof(last->counts)) != 0)
        return false;
    const struct ty_output *at = last->outputs;
    if (!same(at, request->inputs, request->counts[0]) ||
        !same(at + request->counts[0], request->outputs, request->counts[1]))
        return false;
    at += request->counts[0] + request->counts[1];
    for (int i = 0; i < request->counts[2]; i++)
        if (at[i].operation != request->targets[i])
            return false;
    return true;
}

static void keep(struct signature *last, const struct request *request,
                 struct callable *callable)
{
    int total = request->counts[0] + request->counts[1] + request->counts[2], at = 0;
    free(last->outputs);
    last->outputs = alloc_array((size_t)total + 1, sizeof(*last->outputs));
    for (int i = 0; i < request->counts[0]; i++)
        last->outputs[at++] = request->inputs[i];
    for (int i = 0; i < request->counts[1]; i++)
        last->outputs[at++] = request->outputs[i];
    for (int i = 0; i < request->counts[2]; i++)
        last->outputs[at++] = (struct ty_output){request->targets[i], 0};
    memcpy(last->counts, request->counts, sizeof(last->counts));
    last->callable = callable;
}

static struct callable *prepare(struct ty_session *session, const struct request *request,
                                struct error *err)
{
    char **feeds = name_outputs(request->inputs, request->counts[0]);
    char **fetches = name_outputs(request->outputs, request->counts[1]);
    const char **targets = alloc_array((size_t)request->counts[2] + 1, sizeof(*targets));
    for (int i = 0; i < request->counts[2]; i++)
        targets[i] = capi_node(request->targets[i])->name;
    const struct session_run run = {.feeds = (const char *const *)feeds,
                                    .feeds_count = request->counts[0],
                                    .fetches = (const char *const *)fetches,
                                    .fetches_count = request->counts[1],
                                    .targets = targets,
                                    .targets_count = request->counts[2]};
    struct callable *callable = session_prepare(session->session, &run, err);
    free_names(feeds, request->counts[0]);
    free_names(fetches, request->counts[1]);
    free(targets);
    return callable;
}

static struct callable *find_callable(struct ty_session *session, const struct request *request,
                                      struct error *err)
{
    pthread_mutex_lock(&session->lock);
    struct callable *callable = NULL;
    if (extend_locked(session, err)) {
        if (is_last(&session->last, request)) {
            callable = session->last.callable;
        } else {
            callable = prepare(session, request, err);
            if (callable)
                keep(&session->last, request, callable);
        }
    }
    pthread_mutex_unlock(&session->lock);
    return callable;
}

enum { ON_STACK = 8 };

void ty_session_run(struct ty_session *session, const struct ty_output *inputs,
                    struct ty_tensor *const *input_values, int inputs_count,
                    const struct ty_output *outputs, struct ty_tensor **output_values,
                    int outputs_count, struct ty_operation *const *targets, int targets_count,
                    struct ty_buffer *run_metadata, struct ty_status *status)
{
    struct error err;
    struct tensor few[2 * ON_STACK], *feeds = few, *fetched = few + ON_STACK;
    const struct request request = {
        inputs, outputs, targets, {inputs_count, outputs_count, targets_count}};
    struct callable *callable = find_callable(session, &request, &err);
    if (!callable) {
        capi_result(status, false, &err);
        return;
    }
    bool many = inputs_count > ON_STACK || outputs_count > ON_STACK;
    if (many) {
        feeds = alloc_array((size_t)inputs_count + (size_t)outputs_count, sizeof(*feeds));
        fetched = feeds + inputs_count;
    }
    for (int i = 0; i < inputs_count; i++)
        feeds[i] = input_values[i]->tensor;
    if (run_metadata)
        str_clear(&run_metadata->bytes);
    bool ok = session_call(session->session, callable, feeds, fetched,
                           run_metadata ? &run_metadata->bytes : NULL, &err);
    for (int i = 0; ok && i < outputs_count; i++) {
        output_values[i] = alloc_bytes(sizeof(struct ty_tensor));
        output_values[i]->tensor = fetched[i];
    }
    if (many)
        free(feeds);
    capi_result(status, ok, &err);
}
