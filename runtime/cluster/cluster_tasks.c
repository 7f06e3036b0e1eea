/* cluster_tasks.c - the tasks of a cluster session: found, waited for, each with a session. */

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "runtime/cancel.h"
#include "runtime/cluster/internal.h"

enum {
    LOOK_MS = 200, /* between looks at tasks that are not there yet */
    TELL_FIRST_MS = 1000,
    TELL_MS = 10000,
};

static bool is_wanted(const struct cluster_options *options, int link, bool *wanted,
                      struct error *err)
{
    struct device_name name, task;
    *wanted = !options->filters_count || link == options->home;
    if (!device_name_parse(options->links[link]->task, &task, err))
        return false;
    for (int i = 0; i < options->filters_count; i++) {
        if (!device_name_parse(options->filters[i], &name, err))
            return error_prefix(err, "device_filters[%d]: ", i);
        name.type[0] = '\0';
        name.index = -1;
        *wanted |= device_name_matches(&name, &task);
    }
    return true;
}

/* The client's task first. */
static bool choose(struct cluster_session *session, const struct cluster_options *options,
                   struct error *err)
{
    session->links = alloc_array((size_t)options->links_count, sizeof(*session->links));
    session->links[session->links_count++] = options->links[options->home];
    for (int i = 0; i < options->links_count; i++) {
        bool wanted;
        if (!is_wanted(options, i, &wanted, err))
            return false;
        if (wanted && i != options->home)
            session->links[session->links_count++] = options->links[i];
    }
    return true;
}

/* --- waiting --- */

struct waiting {
    pthread_mutex_t lock; /* guards: over */
    pthread_cond_t changed;
    bool over;
    uint64_t since_ns; /* when it began */
    uint64_t tell_ns;  /* when to say for whom */
};

static void end_waiting(void *arg)
{
    struct waiting *waiting = arg;
    pthread_mutex_lock(&waiting->lock);
    waiting->over = true;
    pthread_cond_signal(&waiting->changed);
    pthread_mutex_unlock(&waiting->lock);
}

/* A moment; false when it was cancelled. */
static bool wait_a_moment(struct waiting *waiting)
{
    uint64_t end_ns = clock_monotonic_ns() + LOOK_MS * UINT64_C(1000000);
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000),
                                 .tv_nsec = (long)(end_ns % 1000000000)};
    pthread_mutex_lock(&waiting->lock);
    while (!waiting->over &&
           pthread_cond_timedwait(&waiting->changed, &waiting->lock, &end) != ETIMEDOUT)
        ;
    bool over = waiting->over;
    pthread_mutex_unlock(&waiting->lock);
    return !over;
}

static void tell(struct waiting *waiting, const struct worker_link *link,
                 const struct error *err)
{
    char text[800], advice[600];
    if (clock_monotonic_ns() < waiting->tell_ns)
        return;
    waiting->tell_ns = clock_monotonic_ns() + TELL_MS * UINT64_C(1000000);
    snprintf(
        advice, sizeof(advice),
        "%.400s. The session goes on once this task answers: see that it runs, and that all "
        "tasks were given the same cluster",
        err->text);
    log_line(LOG_INFO, "session", "waiting_for=%s seconds=%lld msg=%s", link->task,
             (long long)((clock_monotonic_ns() - waiting->since_ns) / 1000000000),
             log_quote(advice, text, sizeof(text)));
}

static bool ask(const struct cluster_options *options, struct worker_link *link,
                struct device *found, int *count, struct error *err)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct waiting waiting = {.since_ns = now_ns,
                              .tell_ns = now_ns + TELL_FIRST_MS * UINT64_C(1000000)};
    pthread_condattr_t attr;
    uint64_t ticket;
    if (link->kind->status(link, found, CLUSTER_DEVICES_MAX, count, err))
        return true;
    if (err->code != UNAVAILABLE || !options->wait)
        return false;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&waiting.lock, NULL);
    pthread_cond_init(&waiting.changed, &attr);
    pthread_condattr_destroy(&attr);
    bool ok = false;
    bool waits = cancel_add(options->wait, end_waiting, &waiting, &ticket);
    bool goes_on = waits;
    while (goes_on && !ok) {
        tell(&waiting, link, err);
        goes_on = wait_a_moment(&waiting);
        ok = goes_on && link->kind->status(link, found, CLUSTER_DEVICES_MAX, count, err);
        goes_on = goes_on && (ok || err->code == UNAVAILABLE);
    }
    if (waits)
        (void)cancel_remove(options->wait, ticket);
    pthread_cond_destroy(&waiting.changed);
    pthread_mutex_destroy(&waiting.lock);
    return ok || (err->code == UNAVAILABLE &&
                  fail(err, CANCELLED, "the session was still waiting for %s", link->task));
}

/* --- devices --- */

static bool check_device(const struct worker_link *link, const struct device *device,
                         struct error *err)
{
    return rendezvous_key_is_from(device->name, link->task) ||
           fail(err, INVALID,
                "the address of %s in the cluster is that of another task, which has %s",
                link->task, device->name);
}

static bool add_devices(const struct cluster_options *options, struct worker_link *link,
                        struct cluster_session *session, struct error *err)
{
    struct device found[CLUSTER_DEVICES_MAX];
    int count;
    if (!ask(options, link, found, &count, err))
        return false;
    for (int i = 0; i < count; i++)
        if (!check_device(link, &found[i], err))
            return false;
    int total = session->devices_count + count;
    session->devices =
        alloc_resize(session->devices, (size_t)total * sizeof(*session->devices));
    memcpy(session->devices + session->devices_count, found, (size_t)count * sizeof(*found));
    session->devices_count = total;
    return true;
}

bool cluster_tasks_add(struct cluster_session *session, const struct cluster_options *options,
                       struct error *err)
{
    if (!choose(session, options, err)) {
        session->links_count = 0;
        return false;
    }
    for (int i = 0; i < session->links_count; i++) {
        if (add_devices(options, session->links[i], session, err))
            continue;
        session->links_count = 0; /* none has a session yet */
        return false;
    }
    for (int i = 0; i < session->links_count; i++) {
        struct worker_link *link = session->links[i];
        if (link->kind->create_session(link, session->handle, options->isolate, err))
            continue;
        session->links_count = i; /* those that have one */
        return error_prefix(err, "From %s:\n", link->task);
    }
    return true;
}
