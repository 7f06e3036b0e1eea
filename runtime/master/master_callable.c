/* master_callable.c - names of feeds, fetches and targets that are told once. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "runtime/cluster/cluster.h"
#include "runtime/master/internal.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

struct callable_names {
    struct callable_names *next;
    int64_t handle;
    struct arena *arena;
    struct session_run names;
    int references; /* the list's and each call's; the session's lock guards it */
};

static const char *const *copy_names(struct arena *arena, const char *const *names, int count)
{
    const char **copies = arena_array(arena, (size_t)count, sizeof(*copies));
    for (int i = 0; i < count; i++)
        copies[i] = arena_text(arena, names[i]);
    return copies;
}

static const struct session_connection *copy_connections(struct arena *arena,
                                                         const struct session_run *names)
{
    size_t count = (size_t)names->connections_count;
    struct session_connection *copies = arena_array(arena, count, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i].from = arena_text(arena, names->connections[i].from);
        copies[i].to = arena_text(arena, names->connections[i].to);
    }
    return copies;
}

/* Told now, so that wrong names are refused now. */
static bool check_names(struct master_session *session, const struct session_run *names,
                        struct error *err)
{
    return session->here ? session_prepare(session->here, names, err) != NULL
                         : cluster_session_prepare(session->cluster, names, err);
}

bool master_callable_make(struct master_session *session, const struct session_run *names,
                          int64_t *handle, struct error *err)
{
    if (!check_names(session, names, err))
        return false;
    struct callable_names *made = alloc_bytes(sizeof(*made));
    made->arena = arena_new();
    made->references = 1;
    made->names = *names;
    made->names.feeds = copy_names(made->arena, names->feeds, names->feeds_count);
    made->names.fetches = copy_names(made->arena, names->fetches, names->fetches_count);
    made->names.targets = copy_names(made->arena, names->targets, names->targets_count);
    made->names.connections = copy_connections(made->arena, names);
    pthread_mutex_lock(&session->lock);
    *handle = made->handle = session->callables_made++;
    made->next = session->callables;
    session->callables = made;
    pthread_mutex_unlock(&session->lock);
    return true;
}

static void names_drop(struct master_session *session, struct callable_names *names)
{
    pthread_mutex_lock(&session->lock);
    bool last = --names->references == 0;
    pthread_mutex_unlock(&session->lock);
    if (!last)
        return;
    arena_free(names->arena);
    free(names);
}

bool master_callable_run(struct master_session *session, int64_t handle,
                         const struct tensor *feeds, int feeds_count,
                         const struct session_run *how, struct callable_result *result,
                         struct error *err)
{
    pthread_mutex_lock(&session->lock);
    struct callable_names *found = session->callables;
    while (found && found->handle != handle)
        found = found->next;
    if (found)
        found->references++;
    pthread_mutex_unlock(&session->lock);
    if (!found)
        return fail(err, INVALID, "No such callable handle: %lld", (long long)handle);
    struct session_run run = found->names;
    run.feed_values = feeds;
    run.cancel = how->cancel;
    run.statistics = how->statistics;
    if (!run.trace)
        run.statistics = NULL;
    bool ok = run.feeds_count == feeds_count ||
              fail(err, INVALID, "the callable %lld takes %d feeds, not %d", (long long)handle,
                   run.feeds_count, feeds_count);
    if (ok) {
        result->count = run.fetches_count;
        result->fetched = alloc_array((size_t)run.fetches_count + 1, sizeof(struct tensor));
        ok = master_run(session, &run, result->fetched, err);
        if (!ok) {
            free(result->fetched);
            *result = (struct callable_result){0};
        }
    }
    names_drop(session, found);
    return ok;
}

void master_callable_release(struct master_session *session, int64_t handle)
{
    pthread_mutex_lock(&session->lock);
    struct callable_names **at = &session->callables;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    struct callable_names *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&session->lock);
    if (found)
        names_drop(session, found);
}

void master_callables_free(struct master_session *session)
{
    while (session->callables)
        master_callable_release(session, session->callables->handle);
}
