/* runner.c - see runner.h. */

#include <stdlib.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/cluster/account.h"
#include "runtime/cluster/cluster.h"
#include "runtime/model/model.h"
#include "runtime/resource.h"
#include "runtime/train/runner_internal.h"
#include "runtime/worker/link.h"

/* A step that takes longer has lost a task that does not say so. */
#define STEP_TIMEOUT_MS (30 * 60 * 1000)

/* --- over a cluster --- */

static bool open_cluster(struct runner *runner, const struct runner_cluster *cluster,
                         struct graph *graph, struct error *err)
{
    uint64_t random = 0;
    ssize_t got = getrandom(&random, sizeof(random), 0);
    assert(got == (ssize_t)sizeof(random));
    char handle[17];
    snprintf(handle, sizeof(handle), "%016llx", (unsigned long long)random);
    const struct cluster_options options = {.links = cluster->links,
                                            .links_count = cluster->links_count,
                                            .home = cluster->home,
                                            .by_cost = true,
                                            .isolate = true,
                                            .shaped = true};
    runner->cluster = cluster_session_new(&options, handle, err);
    runner->account = account_new();
    runner->tasks = *cluster;
    return runner->cluster && runner_state_add(runner, graph, err) &&
           cluster_session_extend_graph(runner->cluster, graph, err);
}

bool runner_run_cluster(struct runner *runner, const struct session_run *wanted,
                        const struct tensor *feeds, struct tensor *fetched,
                        struct str *statistics, struct error *err)
{
    struct session_run run = *wanted;
    run.feed_values = feeds;
    run.timeout_ms = STEP_TIMEOUT_MS;
    run.trace = statistics != NULL;
    run.statistics = statistics;
    return cluster_session_run(runner->cluster, &run, fetched, err);
}

/* What it keeps cannot be made again. */
static bool servers_are_there(struct runner *runner, struct error *err)
{
    for (int i = 0; i < runner->tasks.links_count; i++) {
        const char *task = runner->tasks.links[i]->task;
        if (strncmp(task, "/job:ps/", 8) != 0)
            continue;
        enum cluster_task now = cluster_session_look(runner->cluster, task, err);
        if (now == CLUSTER_TASK_ANOTHER)
            return fail(err, UNAVAILABLE,
                        "%s was started again: the variables that it had are gone", task);
        if (now == CLUSTER_TASK_AWAY)
            return error_prefix(err, "%s is lost, and its variables: ", task);
    }
    return true;
}

static int link_of(const struct runner *runner, int worker, char *task, size_t size)
{
    snprintf(task, size, "/job:worker/replica:0/task:%d", worker);
    int link = 0;
    while (strcmp(runner->tasks.links[link]->task, task) != 0)
        link++;
    return link;
}

bool runner_may_be_lost(const struct error *err)
{
    return err->code == UNAVAILABLE || err->code == ABORTED || err->code == CANCELLED ||
           err->code == INTERNAL;
}

enum runner_worker runner_recover(struct runner *runner, int worker, struct error *err)
{
    char task[96];
    if (!servers_are_there(runner, err))
        return RUNNER_NEVER;
    int link = link_of(runner, worker, task, sizeof(task));
    switch (cluster_session_look(runner->cluster, task, err)) {
    case CLUSTER_TASK_SAME:
        return RUNNER_THERE;
    case CLUSTER_TASK_ANOTHER:
        return cluster_session_rejoin(runner->cluster, task, err) ? RUNNER_THERE : RUNNER_AWAY;
    case CLUSTER_TASK_AWAY:
        break;
    }
    (void)error_prefix(err, "%s is lost: ", task);
    return !runner->tasks.revive || runner->tasks.revive(runner->tasks.arg, link)
               ? RUNNER_AWAY
               : RUNNER_NEVER;
}

/* --- both --- */

static struct runner *begin(const struct model *model)
{
    struct runner *runner = alloc_bytes(sizeof(*runner));
    runner->model = model;
    runner->arena = arena_new();
    return runner;
}

struct runner *runner_new(const struct session_options *options,
                          const struct runner_cluster *cluster, struct model *model,
                          struct error *err)
{
    struct runner *runner = begin(model);
    bool ok;
    if (cluster) {
        ok = open_cluster(runner, cluster, model->graph, err);
    } else {
        runner->session = session_new(options, err);
        ok = runner->session && session_extend_graph(runner->session, model->graph, err);
    }
    if (ok)
        return runner;
    runner_free(runner);
    return NULL;
}

struct runner *runner_of(struct session *session, const struct model *model)
{
    struct runner *runner = begin(model);
    runner->session = session;
    runner->borrowed = true;
    return runner;
}

void runner_free(struct runner *runner)
{
    if (!runner)
        return;
    if (!runner->borrowed)
        session_free(runner->session);
    cluster_session_free(runner->cluster);
    account_free(runner->account);
    arena_free(runner->arena);
    free(runner);
}

void runner_cancel(struct runner *runner)
{
    if (runner->cluster)
        cluster_session_close(runner->cluster);
}

static const char *const *copy_names(struct arena *arena, const char *const *names, int count)
{
    const char **copies = arena_array(arena, (size_t)count, sizeof(*copies));
    for (int i = 0; i < count; i++)
        copies[i] = arena_text(arena, names[i]);
    return copies;
}

struct runner_call *runner_prepare(struct runner *runner, const struct session_run *run,
                                   struct error *err)
{
    struct arena *arena = runner->arena;
    struct runner_call *call = arena_alloc(arena, sizeof(*call));
    if (runner->session) {
        call->callable = session_prepare(runner->session, run, err);
        return call->callable ? call : NULL;
    }
    call->run =
        (struct session_run){.feeds = copy_names(arena, run->feeds, run->feeds_count),
                             .feeds_count = run->feeds_count,
                             .fetches = copy_names(arena, run->fetches, run->fetches_count),
                             .fetches_count = run->fetches_count,
                             .targets = copy_names(arena, run->targets, run->targets_count),
                             .targets_count = run->targets_count,
                             .account = run->account};
    return call;
}

bool runner_call(struct runner *runner, const struct runner_call *call,
                 const struct tensor *feeds, struct tensor *fetched, struct str *statistics,
                 struct error *err)
{
    return runner->session
               ? session_call(runner->session, call->callable, feeds, fetched, statistics, err)
               : runner_run_cluster(runner, &call->run, feeds, fetched, statistics, err);
}

bool runner_run(struct runner *runner, const char *target, struct error *err)
{
    const struct session_run run = {.targets = &target, .targets_count = 1};
    return runner->session ? session_run(runner->session, &run, NULL, err)
                           : runner_run_cluster(runner, &run, NULL, NULL, NULL, err);
}

/* Borrowed from the table, which nobody clears while a training runs. */
static struct variable *find_variable(struct runner *runner, int index, struct error *err)
{
    struct variable *variable = model_variable_in(&runner->model->variables[index],
                                                  session_resources(runner->session), err);
    if (variable)
        resource_unref(&variable->resource);
    return variable;
}

bool runner_get(struct runner *runner, struct tensor *values, struct error *err)
{
    if (runner->cluster)
        return runner_call(runner, runner->get, NULL, values, NULL, err);
    for (int i = 0; i < runner->model->variables_count; i++) {
        struct variable *variable = find_variable(runner, i, err);
        bool ok = variable && (variable->value.dtype ||
                               fail(err, INTERNAL, "variable \"%s\" has no value to save",
                                    runner->model->variables[i].name));
        if (ok) {
            tensor_share(&values[i], &variable->value);
            continue;
        }
        while (i--)
            tensor_release(&values[i]);
        return false;
    }
    return true;
}

bool runner_set(struct runner *runner, int index, struct tensor *value, struct error *err)
{
    if (runner->cluster)
        return runner_state_set(runner, index, value, err);
    struct variable *variable = find_variable(runner, index, err);
    if (!variable) {
        tensor_release(value);
        return false;
    }
    tensor_release(&variable->value);
    variable->value = *value;
    return true;
}

struct account *runner_account(const struct runner *runner)
{
    return runner->account;
}

const struct graph *runner_graph(const struct runner *runner)
{
    return runner->session ? session_graph(runner->session)
                           : cluster_session_graph(runner->cluster);
}

void runner_explain(const struct runner *runner, const struct runner_call *call,
                    struct str *json)
{
    if (runner->session)
        session_explain_placement(runner->session, call->callable, json);
    else
        cluster_session_explain_placement(runner->cluster, json);
}

const struct callable *runner_callable(const struct runner_call *call)
{
    return call->callable;
}
