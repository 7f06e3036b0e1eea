/* master_partial.c - runs in several calls. */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/cluster/cluster.h"
#include "runtime/internal.h"
#include "runtime/master/internal.h"
#include "runtime/partial.h"
#include "runtime/session.h"

struct partial_run {
    struct partial_run *next;
    int64_t handle;
    struct partial *partial;         /* one of these two */
    struct cluster_partial *cluster; /* over several tasks */
    pthread_mutex_t calling;         /* one call at a time */
    struct error unfed;              /* OK, or why there is neither: the first call is told */
    int references; /* the list's and each call's; the session's lock guards it */
};

static void partial_drop(struct master_session *session, struct partial_run *run)
{
    pthread_mutex_lock(&session->lock);
    bool last = --run->references == 0;
    pthread_mutex_unlock(&session->lock);
    if (!last)
        return;
    partial_free(run->partial);
    cluster_partial_free(run->cluster);
    pthread_mutex_destroy(&run->calling);
    free(run);
}

bool master_partial_setup(struct master_session *session, const struct session_run *names,
                          int64_t *handle, struct error *err)
{
    struct partial *here = NULL;
    struct cluster_partial *cluster = NULL;
    if (session->here)
        here = session_partial_setup(session->here, names, err);
    else
        cluster = cluster_partial_new(session->cluster, names, err);
    bool made = here || cluster;
    if (!made && !plan_lacks_feed(err))
        return false;
    struct partial_run *run = alloc_bytes(sizeof(*run));
    run->unfed.code = OK;
    if (!made)
        run->unfed = *err;
    run->partial = here;
    run->cluster = cluster;
    run->references = 1;
    pthread_mutex_init(&run->calling, NULL);
    pthread_mutex_lock(&session->lock);
    *handle = run->handle = ++session->partials_made;
    run->next = session->partials;
    session->partials = run;
    pthread_mutex_unlock(&session->lock);
    return true;
}

static struct partial_run *partial_find(struct master_session *session, int64_t handle)
{
    pthread_mutex_lock(&session->lock);
    struct partial_run *run = session->partials;
    while (run && run->handle != handle)
        run = run->next;
    if (run)
        run->references++;
    pthread_mutex_unlock(&session->lock);
    return run;
}

/* Takes a run that is over out of the list. */
static void partial_forget(struct master_session *session, struct partial_run *run)
{
    pthread_mutex_lock(&session->lock);
    struct partial_run **at = &session->partials;
    while (*at && *at != run)
        at = &(*at)->next;
    bool found = *at;
    if (found)
        *at = run->next;
    pthread_mutex_unlock(&session->lock);
    if (found)
        partial_drop(session, run);
}

/* One call; `*done`: there will be no other. */
static bool go_on(const struct master_session *session, const struct partial_run *found,
                  const struct session_run *run, struct tensor *fetched, bool *done,
                  struct error *err)
{
    bool ok;
    *done = true;
    if (found->unfed.code != OK) {
        *err = found->unfed;
        return false;
    }
    if (found->cluster) {
        ok = cluster_partial_run(found->cluster, run, fetched, err);
        *done = cluster_partial_is_done(found->cluster);
    } else {
        ok = session_partial_run(session->here, found->partial, run, fetched, err);
        *done = partial_is_done(found->partial);
    }
    return ok;
}

bool master_partial_run(struct master_session *session, int64_t handle,
                        const struct session_run *run, struct tensor *fetched,
                        struct error *err)
{
    struct partial_run *found = partial_find(session, handle);
    bool done;
    if (!found)
        return fail(err, INVALID, "Must run PartialRunSetup before performing partial runs");
    pthread_mutex_lock(&found->calling);
    struct session_run limited = *run;
    if (!limited.timeout_ms)
        limited.timeout_ms = session->timeout_ms;
    bool ok = go_on(session, found, &limited, fetched, &done, err);
    pthread_mutex_unlock(&found->calling);
    if (done)
        partial_forget(session, found);
    partial_drop(session, found);
    return ok;
}

void master_partials_free(struct master_session *session)
{
    while (session->partials)
        partial_forget(session, session->partials);
}
