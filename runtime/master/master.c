/* master.c - sessions by their handles. */

#include <errno.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "runtime/cancel.h"
#include "runtime/master/internal.h"
#include "runtime/worker/link.h"

struct master *master_new(const struct master_options *options)
{
    struct master *master = alloc_bytes(sizeof(*master));
    master->options = *options;
    pthread_mutex_init(&master->lock, NULL);
    master->seen = seen_new(MASTER_REQUESTS_KEPT);
    master->used_us = clock_monotonic_us();
    runs_init(&master->creating);
    return master;
}

/* Takes all sessions out of the list and ends them. */
static void close_all(struct master *master)
{
    pthread_mutex_lock(&master->lock);
    struct master_session *session = master->sessions;
    master->sessions = NULL;
    master->used_us = clock_monotonic_us();
    pthread_mutex_unlock(&master->lock);
    while (session) {
        struct master_session *next = session->next;
        master_session_close(session);
        master_release(session);
        session = next;
    }
}

void master_stop(struct master *master)
{
    pthread_mutex_lock(&master->lock);
    master->stopped = true;
    pthread_mutex_unlock(&master->lock);
    runs_close(&master->creating);
    close_all(master);
}

void master_free(struct master *master)
{
    if (!master)
        return;
    master_stop(master);
    seen_free(master->seen);
    runs_release(&master->creating);
    pthread_mutex_destroy(&master->lock);
    free(master);
}

const char *master_task(const struct master *master)
{
    return master->options.links[master->options.home]->task;
}

bool master_first_time(struct master *master, int64_t request, struct error *err)
{
    pthread_mutex_lock(&master->lock);
    bool first = seen_first(master->seen, (uint64_t)request);
    pthread_mutex_unlock(&master->lock);
    return first ||
           fail(err, ABORTED,
                "The same request (Master) was received twice: %lld. It was carried out "
                "the first time.",
                (long long)request);
}

static void end_creating(void *arg)
{
    cancel_now(arg);
}

/* Ends when the client goes, or the master stops. */
static struct master_session *open_session(struct master *master,
                                           const struct master_config *config,
                                           struct cancel *cancel, const char *handle,
                                           struct error *err)
{
    uint64_t ticket;
    struct master_session *session = NULL;
    struct running *running = runs_begin(&master->creating, err);
    if (!running)
        return fail_null(err, UNAVAILABLE, "the server is shutting down");
    if (cancel_add(cancel, end_creating, running->cancel, &ticket)) {
        session = master_session_new(master, config, handle, running->cancel, err);
        (void)cancel_remove(cancel, ticket);
    } else {
        (void)fail(err, CANCELLED, "the client has gone");
    }
    runs_end(&master->creating, running);
    return session;
}

bool master_create(struct master *master, const struct master_config *config,
                   const void *graph_def, size_t size, struct cancel *cancel,
                   char handle[MASTER_HANDLE_BYTES], struct error *err)
{
    uint64_t random;
    int64_t version;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return error_errno(err, INTERNAL, "no random number for a session's handle");
    snprintf(handle, MASTER_HANDLE_BYTES, "%016llx", (unsigned long long)random);
    struct master_session *session = open_session(master, config, cancel, handle, err);
    if (!session)
        return false;
    if (!master_extend(session, 0, graph_def, size, &version, err)) {
        master_session_close(session);
        master_release(session);
        return false;
    }
    session->version = 0; /* the first graph is version 0 */
    pthread_mutex_lock(&master->lock);
    bool stopped = master->stopped;
    master->used_us = clock_monotonic_us();
    if (!stopped) {
        session->next = master->sessions;
        master->sessions = session;
    }
    pthread_mutex_unlock(&master->lock);
    if (!stopped)
        return true;
    master_session_close(session);
    master_release(session);
    return fail(err, UNAVAILABLE, "the server is shutting down");
}

uint64_t master_idle_us(struct master *master)
{
    pthread_mutex_lock(&master->lock);
    uint64_t now_us = clock_monotonic_us(), used_us = master->used_us;
    for (const struct master_session *s = master->sessions; s; s = s->next) {
        uint64_t last_us = atomic_load(&s->references) > 1 ? now_us : atomic_load(&s->used_us);
        if (last_us > used_us)
            used_us = last_us;
    }
    pthread_mutex_unlock(&master->lock);
    return now_us > used_us ? now_us - used_us : 0;
}

struct master_session *master_find(struct master *master, const char *handle, struct error *err)
{
    pthread_mutex_lock(&master->lock);
    struct master_session *session = master->sessions;
    while (session && strcmp(session->handle, handle) != 0)
        session = session->next;
    if (session)
        atomic_fetch_add(&session->references, 1);
    pthread_mutex_unlock(&master->lock);
    return session ? session : fail_null(err, ABORTED, "Session %.64s is not found.", handle);
}

bool master_close(struct master *master, const char *handle, struct error *err)
{
    pthread_mutex_lock(&master->lock);
    struct master_session **at = &master->sessions;
    while (*at && strcmp((*at)->handle, handle) != 0)
        at = &(*at)->next;
    struct master_session *session = *at;
    if (session) {
        *at = session->next;
        master->used_us = clock_monotonic_us();
    }
    pthread_mutex_unlock(&master->lock);
    if (!session)
        return fail(err, ABORTED,
                    "Session %.64s is not found. Possibly, this master has restarted.", handle);
    master_session_close(session);
    master_release(session);
    return true;
}

bool master_reset(struct master *master, const char *const *containers, int count,
                  struct error *err)
{
    close_all(master);
    bool ok = true;
    for (int i = 0; ok && i < master->options.links_count; i++) {
        struct worker_link *link = master->options.links[i];
        ok = link->kind->cleanup_all(link, containers, count, err) ||
             error_prefix(err, "From %s:\n", link->task);
    }
    return ok;
}
