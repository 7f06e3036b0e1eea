/* cluster_rejoin.c - a task that was started again takes part in a session once more. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"

static struct worker_link *find_link(const struct cluster_session *session, const char *task)
{
    for (int i = 0; i < session->links_count; i++)
        if (!strcmp(session->links[i]->task, task))
            return session->links[i];
    return NULL;
}

static struct device *find_device(struct cluster_session *session, const char *name)
{
    for (int i = 0; i < session->devices_count; i++)
        if (!strcmp(session->devices[i].name, name))
            return &session->devices[i];
    return NULL;
}

/* Whether it is the process that it was; its devices as it tells them. */
static bool compare(struct cluster_session *session, const struct worker_link *link,
                    const struct device *found, int count, bool *same, struct error *err)
{
    *same = true;
    for (int i = 0; i < count; i++) {
        const struct device *known = find_device(session, found[i].name);
        if (!known)
            return fail(err, INVALID, "%s has come back with another device, %s", link->task,
                        found[i].name);
        *same = *same && known->incarnation == found[i].incarnation;
    }
    return true;
}

enum cluster_task cluster_session_look(struct cluster_session *session, const char *task,
                                       struct error *err)
{
    struct device found[CLUSTER_DEVICES_MAX];
    int count;
    bool same;
    struct worker_link *link = find_link(session, task);
    if (!link) {
        (void)fail(err, NOT_FOUND, "%s is no task of the session", task);
        return CLUSTER_TASK_AWAY;
    }
    if (!link->kind->status(link, found, CLUSTER_DEVICES_MAX, &count, err))
        return CLUSTER_TASK_AWAY;
    pthread_rwlock_rdlock(&session->graph_lock);
    bool ok = compare(session, link, found, count, &same, err);
    pthread_rwlock_unlock(&session->graph_lock);
    return !ok ? CLUSTER_TASK_AWAY : same ? CLUSTER_TASK_SAME : CLUSTER_TASK_ANOTHER;
}

static bool has_part(const struct cluster_plan *plan, const struct worker_link *link)
{
    for (int i = 0; i < plan->parts_count; i++)
        if (plan->parts[i].link == link)
            return true;
    return false;
}

/* Plans that have a part there are made anew when they are next wanted.  A run may still be in
 * one of them, so they stay until the session ends. */
static void put_plans_away(struct cluster_session *session, const struct worker_link *link)
{
    pthread_mutex_lock(&session->lock);
    for (int i = map_count(session->plans) - 1; i >= 0; i--) {
        struct cluster_plan *plan = map_value(session->plans, i);
        if (!has_part(plan, link))
            continue;
        char *key = alloc_text(map_key(session->plans, i));
        session->old_plans = alloc_grow(session->old_plans, session->old_plans_count,
                                        &session->old_plans_capacity, sizeof(plan));
        session->old_plans[session->old_plans_count++] = plan;
        (void)map_remove(session->plans, key);
        free(key);
    }
    pthread_mutex_unlock(&session->lock);
}

/* Keys of what it sends name the process that sends. */
static bool take_devices(struct cluster_session *session, const struct worker_link *link,
                         const struct device *found, int count, struct error *err)
{
    bool same;
    pthread_rwlock_wrlock(&session->graph_lock);
    bool ok = compare(session, link, found, count, &same, err);
    for (int i = 0; ok && i < count; i++)
        find_device(session, found[i].name)->incarnation = found[i].incarnation;
    if (ok)
        put_plans_away(session, link);
    pthread_rwlock_unlock(&session->graph_lock);
    return ok;
}

bool cluster_session_rejoin(struct cluster_session *session, const char *task,
                            struct error *err)
{
    struct device found[CLUSTER_DEVICES_MAX];
    int count;
    struct worker_link *link = find_link(session, task);
    if (!link)
        return fail(err, NOT_FOUND, "%s is no task of the session", task);
    /* It may be there already, of a call whose answer was lost. */
    return link->kind->status(link, found, CLUSTER_DEVICES_MAX, &count, err) &&
           (link->kind->create_session(link, session->handle, session->isolate, err) ||
            err->code == EXISTS) &&
           take_devices(session, link, found, count, err);
}
