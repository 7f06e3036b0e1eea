/* partial.c - what of a partial run was used already, and what may come next. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/internal.h"
#include "runtime/partial.h"
#include "runtime/session.h"

struct partial {
    struct plan *plan;
    const struct session_run *names;
    struct dataflow_run *run;
    struct execute_options options;
    struct cancel *cancel; /* of the whole run */
    bool *fed;             /* by feed */
    bool *taken;           /* by fetch */
    int left;              /* feeds and fetches not used yet */
    bool failed;
    struct error err; /* when failed */
};

struct partial *partial_new(struct plan *plan, const struct session_run *names,
                            struct error *err)
{
    struct partial *partial = alloc_bytes(sizeof(*partial));
    partial->plan = plan;
    partial->names = names;
    partial->cancel = cancel_new();
    partial->options.own = partial->cancel;
    partial->fed = alloc_array((size_t)names->feeds_count, sizeof(bool));
    partial->taken = alloc_array((size_t)names->fetches_count, sizeof(bool));
    partial->left = names->feeds_count + names->fetches_count;
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
    free(partial->fed);
    free(partial->taken);
    free(partial);
}

bool partial_is_done(const struct partial *partial)
{
    return partial->failed || !partial->left;
}

/* --- names --- */

/* "x" and "x:0" are the same. */
static bool same_name(const char *a, const char *b)
{
    size_t size_a = strlen(a), size_b = strlen(b);
    size_a -= size_a > 2 && !strcmp(a + size_a - 2, ":0") ? 2 : 0;
    size_b -= size_b > 2 && !strcmp(b + size_b - 2, ":0") ? 2 : 0;
    return size_a == size_b && !memcmp(a, b, size_a);
}

/* Marks what the call names in `used`; `indices` gets where they are. */
static bool use_names(const char *const *names, int count, const char *const *known,
                      int known_count, bool *used, int *indices, const char *what,
                      struct error *err)
{
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < known_count && !same_name(known[at], names[i]))
            at++;
        if (at == known_count)
            return fail(err, INVALID, "The %s '%s' was not specified in partial_run_setup.",
                        what, names[i]);
        if (used[at])
            return fail(err, INVALID, "The %s '%s' has already been %s.", what, names[i],
                        *what == 'f' && what[2] == 'e' ? "fed" : "fetched");
        used[at] = true;
        indices[i] = at;
    }
    return true;
}

/* --- what a fetch needs --- */

/* Whether all feeds that lead to it are there. */
static bool check_fetch(const struct partial *partial, int fetch, const bool *fed,
                        struct error *err)
{
    const struct subgraph *part = partial->plan->subgraph;
    size_t count = (size_t)graph_count(part->graph);
    bool *seen = alloc_array(count, sizeof(*seen));
    const struct node **stack = alloc_array(count, sizeof(*stack));
    int left = 0;
    bool ok = true;
    stack[left++] = part->fetches[fetch].from;
    seen[stack[0]->id] = true;
    while (ok && left) {
        const struct node *node = stack[--left];
        for (int i = 0; i < part->feeds_count; i++)
            ok = ok && (part->feeds[i] != node || fed[i]);
        for (int i = 0; i < node->inputs_count + node->controls_count; i++) {
            const struct node *from = i < node->inputs_count
                                          ? node->inputs[i].from
                                          : node->controls[i - node->inputs_count];
            if (!seen[from->id])
                stack[left++] = from;
            seen[from->id] = true;
        }
    }
    free(seen);
    free(stack);
    return ok || fail(err, INVALID,
                      "Fetch %s can't be computed from the feeds that have been fed so far.",
                      partial->names->fetches[fetch]);
}

/* --- a call --- */

struct request {
    const struct session_run *run;
    bool *fed, *taken; /* as they will be */
    int *feeds, *fetches;
};

static bool check_request(const struct partial *partial, struct request *request,
                          struct error *err)
{
    const struct session_run *run = request->run, *names = partial->names;
    memcpy(request->fed, partial->fed, (size_t)names->feeds_count * sizeof(bool));
    memcpy(request->taken, partial->taken, (size_t)names->fetches_count * sizeof(bool));
    bool ok = use_names(run->feeds, run->feeds_count, names->feeds, names->feeds_count,
                        request->fed, request->feeds, "feed", err) &&
              use_names(run->fetches, run->fetches_count, names->fetches, names->fetches_count,
                        request->taken, request->fetches, "fetch", err);
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

static bool go_on(struct partial *partial, const struct request *request,
                  struct tensor *fetched, struct error *err)
{
    const struct session_run *run = request->run, *names = partial->names;
    memcpy(partial->fed, request->fed, (size_t)names->feeds_count * sizeof(bool));
    memcpy(partial->taken, request->taken, (size_t)names->fetches_count * sizeof(bool));
    partial->left -= run->feeds_count + run->fetches_count;
    bool ok = true;
    for (int i = 0; ok && i < run->feeds_count; i++)
        ok = dataflow_run_feed(partial->run, request->feeds[i], &run->feed_values[i], err);
    return ok && dataflow_run_until(partial->run, request->fetches, run->fetches_count,
                                    !partial->left, fetched, err);
}

bool partial_run(struct partial *partial, const struct session_run *run, struct cancel *cancel,
                 struct tensor *fetched, struct error *err)
{
    uint64_t ticket;
    if (partial->failed) {
        *err = partial->err;
        return false;
    }
    struct request request = {
        .run = run,
        .fed = alloc_array((size_t)partial->names->feeds_count, sizeof(bool)),
        .taken = alloc_array((size_t)partial->names->fetches_count, sizeof(bool)),
        .feeds = alloc_array((size_t)run->feeds_count, sizeof(int)),
        .fetches = alloc_array((size_t)run->fetches_count, sizeof(int)),
    };
    bool ok = check_request(partial, &request, err);
    if (ok && !cancel_add(cancel, cancel_partial, partial, &ticket)) {
        ok = fail(err, CANCELLED, "the run was cancelled");
    } else if (ok) {
        ok = go_on(partial, &request, fetched, err);
        cancel_remove(cancel, ticket);
        partial->failed = !ok;
        if (!ok)
            partial->err = *err;
    }
    free(request.fed);
    free(request.taken);
    free(request.feeds);
    free(request.fetches);
    return ok;
}
