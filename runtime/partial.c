/* partial.c - what of a partial run was used already, and what may come next. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/partial.h"
#include "runtime/partial_names.h"
#include "runtime/session.h"

struct partial {
    struct plan *plan;
    struct partial_names names;
    struct dataflow_run *run;
    struct execute_options options;
    struct cancel *cancel; /* of the whole run */
    bool failed;
    struct error err; /* when failed */
};

struct partial *partial_new(struct plan *plan, const struct session_run *names,
                            struct error *err)
{
    struct partial *partial = alloc_bytes(sizeof(*partial));
    partial->plan = plan;
    partial->cancel = cancel_new();
    partial->options.own = partial->cancel;
    partial_names_init(&partial->names, names);
    partial->run = dataflow_run_begin(plan, &partial->options, err);
    if (partial->run)
        return partial;
    partial_free(partial);
    return NULL;
}

void partial_free(struct partial *partial)
{
    if (!partial)
        return;
    if (partial->run)
        dataflow_run_end(partial->run);
    cancel_free(partial->cancel);
    partial_names_release(&partial->names);
    free(partial);
}

bool partial_is_done(const struct partial *partial)
{
    return partial->failed || !partial->names.left;
}

/* --- what a fetch needs --- */

/* Whether all feeds that lead to it are there. */
static bool check_fetch(const struct partial *partial, int fetch, const bool *fed,
                        struct error *err)
{
    int feeds_count = partial->plan->subgraph->feeds_count;
    bool *needed = alloc_array((size_t)feeds_count, sizeof(*needed));
    prune_feeds_of(partial->plan->subgraph, fetch, needed);
    int lacking = 0;
    while (lacking < feeds_count && (!needed[lacking] || fed[lacking]))
        lacking++;
    free(needed);
    return lacking == feeds_count || partial_names_too_early(&partial->names, lacking, err);
}

/* --- a call --- */

static bool check_request(const struct partial *partial, const struct partial_request *request,
                          struct error *err)
{
    const struct session_run *run = request->run;
    bool ok = true;
    for (int i = 0; ok && i < run->feeds_count; i++)
        ok = execute_check_feed(partial->plan->subgraph->feeds[request->feeds[i]],
                                &run->feed_values[i], err);
    for (int i = 0; ok && i < run->fetches_count; i++)
        ok = check_fetch(partial, request->fetches[i], request->fed, err);
    return ok;
}

static void cancel_partial(void *arg)
{
    cancel_now(((struct partial *)arg)->cancel);
}

static bool go_on(struct partial *partial, const struct partial_request *request,
                  struct tensor *fetched, struct error *err)
{
    const struct session_run *run = request->run;
    partial_names_use(&partial->names, request);
    bool ok = true;
    for (int i = 0; ok && i < run->feeds_count; i++)
        ok = dataflow_run_feed(partial->run, request->feeds[i], &run->feed_values[i], err);
    return ok && dataflow_run_until(partial->run, request->fetches, run->fetches_count,
                                    !partial->names.left, fetched, err);
}

bool partial_run(struct partial *partial, const struct session_run *run, struct cancel *cancel,
                 struct tensor *fetched, struct error *err)
{
    uint64_t ticket;
    struct partial_request request;
    if (partial->failed) {
        *err = partial->err;
        return false;
    }
    bool ok = partial_names_find(&partial->names, run, &request, err) &&
              check_request(partial, &request, err);
    if (ok && !cancel_add(cancel, cancel_partial, partial, &ticket)) {
        ok = fail(err, CANCELLED, "the run was cancelled");
    } else if (ok) {
        ok = go_on(partial, &request, fetched, err);
        cancel_remove(cancel, ticket);
        partial->failed = !ok;
        if (!ok)
            partial->err = *err;
    }
    partial_names_done(&request);
    return ok;
}
