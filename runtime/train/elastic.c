/*
 * elastic.c - all-reduce that goes on when workers are lost, and takes them back.
 *
 * DESIGN: a step may end anywhere when a worker falls: some variables have their update, others
 * do not.  So the first worker keeps its variables as they were before each step (a reference,
 * which has the update write beside them), and all have them from it when the step is tried
 * again: values are replicated, and nothing is lost with a worker.
 *
 * Who is there does what the others did: a replica keeps its shard of the batch and its place
 * in the ring, on another worker (model_build_hosted()), so that a step has the same bits. Such
 * a graph is a session of its own on those that are there.
 */

#include <poll.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runtime/device.h"
#include "runtime/train/internal.h"
#include "runtime/worker/link.h"

#define TRIES_MAX 8     /* of one step, with workers that seem to be there */
#define LOOK_MS 250     /* between looks for workers without whom no step can be */
#define LOOK_US 1000000 /* between looks for others; or ten times what a look takes */
#define DEVICES_MAX 64

struct elastic {
    const struct runner_cluster *all; /* all tasks, which are workers, the first this one */
    int workers;
    struct member {
        bool there;
        bool never; /* it will not come back */
        uint64_t lost_us;
    } * members;
    struct worker_link **links; /* of those that are there */
    struct runner_cluster cluster;
    struct model model; /* of the runner, unless that is the first */
    uint64_t look_us;   /* when to look for lost ones */
};

struct elastic *elastic_new(const struct train *train)
{
    const struct spec_strategy *strategy = &train->spec->strategy;
    if (strategy->mode != MODE_ALLREDUCE || !strategy->min_workers || !train->options.cluster)
        return NULL;
    struct elastic *e = alloc_bytes(sizeof(*e));
    e->all = train->options.cluster;
    e->workers = e->all->links_count;
    e->members = alloc_array((size_t)e->workers, sizeof(*e->members));
    e->links = alloc_array((size_t)e->workers, sizeof(*e->links));
    for (int i = 0; i < e->workers; i++)
        e->members[i].there = true;
    return e;
}

void elastic_free(struct elastic *e)
{
    if (!e)
        return;
    if (e->model.graph)
        model_release(&e->model);
    free(e->members);
    free(e->links);
    free(e);
}

/* --- the variables as they were before the step --- */

static struct tensor *keep(struct train *train, struct error *err)
{
    size_t count = (size_t)train->model.variables_count;
    struct tensor *values = alloc_array(count, sizeof(*values));
    if (runner_get(train->runner, values, err))
        return values;
    free(values);
    return NULL;
}

static void let_go(const struct train *train, struct tensor *values)
{
    for (int i = 0; values && i < train->model.variables_count; i++)
        tensor_release(&values[i]);
    free(values);
}

/* --- who is there --- */

static void note(struct train *train, char *text)
{
    for (char *at = text; (at = strchr(at, '\n'));) /* a notice is one line */
        *at = ' ';
    str_printf(&train->notice, "%s%s", train->notice.size ? "; " : "", text);
    train->pending |= PENDING_NOTICE;
    free(text);
}

static bool answers(struct elastic *e, int worker)
{
    struct device devices[DEVICES_MAX];
    struct error ignored;
    int count;
    struct worker_link *link = e->all->links[worker];
    return link->kind->status(link, devices, DEVICES_MAX, &count, &ignored);
}

static void look(struct train *train, int worker, const struct error *why)
{
    struct elastic *e = train->elastic;
    struct member *member = &e->members[worker];
    bool there = answers(e, worker);
    if (!there && !member->never && e->all->revive)
        member->never = !e->all->revive(e->all->arg, worker);
    if (member->there && !there) {
        member->lost_us = clock_monotonic_us();
        note(train, alloc_printf("worker %d is lost, the others go on without it: %s", worker,
                                 why->text));
    }
    if (!member->there && there)
        note(train, alloc_printf("worker %d is back after %.1f s", worker,
                                 (double)(clock_monotonic_us() - member->lost_us) / 1e6));
    member->there = there;
}

/* Looks until as many are there as a step needs. */
static bool look_at_all(struct train *train, struct error *why)
{
    struct elastic *e = train->elastic;
    for (;;) {
        int there = 1, possible = 1;
        for (int i = 1; i < e->workers; i++) {
            look(train, i, why);
            there += e->members[i].there;
            possible += e->members[i].there || !e->members[i].never;
        }
        if (there >= train->spec->strategy.min_workers)
            return true;
        if (train->stop || possible < train->spec->strategy.min_workers)
            return error_prefix(why, "%d of %d workers are there, needed: %d: ", there,
                                e->workers, train->spec->strategy.min_workers);
        poll(NULL, 0, LOOK_MS);
    }
}

/* --- a graph for those that are there --- */

/* Replicas of those that are not there go to the others in turn. */
static void choose_hosts(struct elastic *e, int *hosts)
{
    int next = 0;
    e->cluster = *e->all;
    e->cluster.links = e->links;
    e->cluster.links_count = 0;
    for (int i = 0; i < e->workers; i++) {
        hosts[i] = i;
        if (e->members[i].there)
            e->links[e->cluster.links_count++] = e->all->links[i];
    }
    for (int i = 0; i < e->workers; i++) {
        if (e->members[i].there)
            continue;
        do
            next = (next + 1) % e->workers;
        while (!e->members[next].there);
        hosts[i] = next;
    }
}

static bool give_values(struct train *train, const struct tensor *values, struct error *err)
{
    bool ok = true;
    for (int i = 0; ok && i < train->model.variables_count; i++) {
        struct tensor value;
        tensor_share(&value, &values[i]);
        ok = runner_set(train->runner, i, &value, err);
    }
    return ok && runner_run(train->runner, train->model.mirror, err);
}

/* Puts another runner in the place of the one that is; on failure all is as it was. */
static bool rebuild(struct train *train, const struct tensor *values, struct error *err)
{
    struct elastic *e = train->elastic;
    struct runner *runner = train->runner;
    struct runner_call *step_call = train->step_call, *eval_call = train->eval_call;
    struct model model;
    int hosts[LIMIT_JOB_TASKS];
    choose_hosts(e, hosts);
    if (!model_build_hosted(train->spec, &train->dataset.feeds.data, hosts, &model, err))
        return false;
    assert(!strcmp(model.metrics[0].sums, train->model.metrics[0].sums));
    assert(model.variables_count == train->model.variables_count);
    train->runner = train_runner(train, &e->cluster, &model, err);
    bool ok = train->runner && train_prepare(train, err) && give_values(train, values, err);
    /* The one that goes is freed last: tasks without a session would believe that all is over.
     */
    runner_free(ok ? runner : train->runner);
    if (!ok) {
        train->runner = runner;
        train->step_call = step_call;
        train->eval_call = eval_call;
        model_release(&model);
        return false;
    }
    if (e->model.graph)
        model_release(&e->model);
    e->model = model;
    return true;
}

/* At a step's beginning: takes back those that are there again. */
static bool take_back(struct train *train, struct error *err)
{
    struct elastic *e = train->elastic;
    uint64_t start_us = clock_monotonic_us();
    const struct error none = {0};
    int back[LIMIT_JOB_TASKS], count = 0;
    if (start_us < e->look_us)
        return true;
    for (int i = 1; i < e->workers; i++) {
        if (e->members[i].there || e->members[i].never)
            continue;
        look(train, i, &none);
        if (e->members[i].there)
            back[count++] = i;
    }
    uint64_t took_us = clock_monotonic_us() - start_us;
    e->look_us = start_us + (took_us * 10 > LOOK_US ? took_us * 10 : LOOK_US);
    if (!count)
        return true;
    struct tensor *values = keep(train, err);
    bool ok = values && rebuild(train, values, err);
    let_go(train, values);
    while (!ok && count) /* they fell meanwhile; of others the step finds that out */
        e->members[back[--count]].there = false;
    return ok || runner_may_be_lost(err);
}

/* --- the step --- */

bool elastic_call(struct train *train, const struct tensor *feeds, struct tensor *fetched,
                  struct str *trace, struct error *err)
{
    if (!take_back(train, err))
        return false;
    struct tensor *values = keep(train, err);
    bool ok =
        values && runner_call(train->runner, train->step_call, feeds, fetched, trace, err);
    for (int tries = 0; values && !ok && tries < TRIES_MAX && runner_may_be_lost(err);
         tries++) {
        if (trace)
            str_clear(trace);
        ok = look_at_all(train, err);
        if (!ok)
            break;
        ok = rebuild(train, values, err) &&
             runner_call(train->runner, train->step_call, feeds, fetched, trace, err);
    }
    let_go(train, values);
    return ok;
}
