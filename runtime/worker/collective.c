/*
 * collective.c - collectives of one step of a worker: what its kernels ask of other tasks.
 *
 * A group that is not known is asked of the leader, then the instance; both are kept.  What is
 * asked of others is in a list, so that the end of the step gives it up.
 */

#include "runtime/worker/collective.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/worker/internal.h"

struct asking {
    struct link_asked asked; /* first */
    struct asking *next;
    int references;
    bool abandoned;
    struct collective *collective;
    struct worker_link *link;
    struct collective_wish wish;
    char *name; /* of the wish */
    collective_joined *joined;
    collective_done *done;
    void *arg;
};

void collective_init(struct collective *collective, struct worker *worker, int64_t step_id)
{
    *collective = (struct collective){.worker = worker, .step_id = step_id};
    pthread_mutex_init(&collective->lock, NULL);
}

void collective_release(struct collective *collective)
{
    assert(!collective->asking);
    buffers_free(collective->buffers);
    pthread_mutex_destroy(&collective->lock);
}

const struct device *collective_device(const struct collective *collective)
{
    return &collective->worker->device;
}

struct buffers *collective_buffers(struct collective *collective)
{
    pthread_mutex_lock(&collective->lock);
    if (!collective->buffers)
        collective->buffers = buffers_new();
    if (collective->aborted)
        buffers_abort(collective->buffers, &collective->err); /* nobody waits there yet */
    pthread_mutex_unlock(&collective->lock);
    return collective->buffers;
}

/* --- what is asked of others --- */

static void failed(struct link_asked *asked, const struct error *err);
static void group_told(struct link_asked *asked, const struct collective_group *group);
static void source_told(struct link_asked *asked, int source);
static void bytes_came(struct link_asked *asked);

static struct worker_step *step_of(struct collective *collective)
{
    return (struct worker_step *)((char *)collective -
                                  offsetof(struct worker_step, collective));
}

static void unref(struct asking *asking)
{
    struct collective *collective = asking->collective;
    pthread_mutex_lock(&collective->lock);
    bool last = !--asking->references;
    pthread_mutex_unlock(&collective->lock);
    if (!last)
        return;
    free(asking->name);
    free(asking);
    worker_step_unref(step_of(collective));
}

/* NULL: the step is over, and `err` says so. */
static struct asking *ask(struct collective *collective, const struct asking *made,
                          struct error *err)
{
    struct asking *asking = alloc_bytes(sizeof(*asking));
    *asking = *made;
    asking->asked = (struct link_asked){.group = group_told,
                                        .source = source_told,
                                        .bytes = bytes_came,
                                        .failed = failed,
                                        .step_id = collective->step_id,
                                        .into = made->asked.into,
                                        .size = made->asked.size};
    asking->collective = collective;
    asking->references = 2; /* the list's, and that of who begins it */
    pthread_mutex_lock(&collective->lock);
    bool aborted = collective->aborted;
    if (aborted) {
        *err = collective->err;
    } else {
        asking->next = collective->asking;
        collective->asking = asking;
    }
    pthread_mutex_unlock(&collective->lock);
    if (aborted) {
        free(asking);
        return NULL;
    }
    /* Whoever is called back may end the run, and with it all but this that holds the step. */
    worker_step_hold(step_of(collective));
    return asking;
}

/* It may have been begun while the step was ended: then nobody has given it up. */
static void begun(struct asking *asking)
{
    pthread_mutex_lock(&asking->collective->lock);
    bool aborted = asking->collective->aborted;
    pthread_mutex_unlock(&asking->collective->lock);
    if (aborted)
        asking->link->kind->collectives->abandon(asking->link, &asking->asked);
}

/* Out of the list; `err` becomes the reason of the step's end, where it has ended. */
static void leave(struct asking *asking, struct error *err)
{
    struct collective *collective = asking->collective;
    pthread_mutex_lock(&collective->lock);
    struct asking **at = &collective->asking;
    while (*at != asking)
        at = &(*at)->next;
    *at = asking->next;
    if (err && collective->aborted)
        *err = collective->err;
    pthread_mutex_unlock(&collective->lock);
}

static void end(struct asking *asking, const struct collective_group *group, int source,
                const struct error *err)
{
    struct error why;
    if (err)
        why = *err;
    leave(asking, err ? &why : NULL);
    if (asking->joined)
        asking->joined(asking->arg, group, source, err ? &why : NULL);
    else
        asking->done(asking->arg, err ? &why : NULL);
    unref(asking);
}

static void failed(struct link_asked *asked, const struct error *err)
{
    end((struct asking *)asked, NULL, -1, err);
}

/* --- coming into a group and an instance --- */

static void join_instance(struct asking *asking)
{
    struct worker *worker = asking->collective->worker;
    const struct collective_wish *wish = &asking->wish;
    const struct collective_group *group = groups_find(worker->groups, wish->group_key);
    struct error err;
    int source;
    bool ok = group && group->size == wish->group_size;
    if (group && !ok)
        (void)fail(
            &err, INTERNAL,
            "Collective Op %s has group_size %d and group_key %d but that group has size "
            "%d",
            wish->name, wish->group_size, wish->group_key, group->size);
    else if (ok && groups_rank(group, worker->device.name) < 0)
        ok = fail(&err, INTERNAL,
                  "Collective Op %s is assigned to device %s and group_key %d but that group "
                  "doesn't contain that device.",
                  wish->name, worker->device.name, wish->group_key);
    else if (!group)
        (void)fail(&err, INTERNAL, "group %d is not known", wish->group_key);
    if (!ok)
        end(asking, NULL, -1, &err);
    else if (groups_find_source(worker->groups, wish, &source))
        end(asking, group, source, NULL);
    else
        asking->link->kind->collectives->complete_instance(asking->link, wish, &worker->device,
                                                           &asking->asked);
}

static void group_told(struct link_asked *asked, const struct collective_group *group)
{
    struct asking *asking = (struct asking *)asked;
    struct error err;
    if (groups_keep(asking->collective->worker->groups, group, &err))
        join_instance(asking);
    else
        end(asking, NULL, -1, &err);
}

static void source_told(struct link_asked *asked, int source)
{
    struct asking *asking = (struct asking *)asked;
    struct groups *groups = asking->collective->worker->groups;
    groups_keep_source(groups, &asking->wish, source);
    end(asking, groups_find(groups, asking->wish.group_key), source, NULL);
}

void collective_join(struct collective *collective, const struct collective_wish *wish,
                     collective_joined *joined, void *arg)
{
    struct worker *worker = collective->worker;
    struct error err;
    const struct asking made = {
        .link = worker->leader, .wish = *wish, .joined = joined, .arg = arg};
    struct asking *asking = ask(collective, &made, &err);
    if (!asking) {
        joined(arg, NULL, -1, &err);
        return;
    }
    asking->name = alloc_text(wish->name);
    asking->wish.name = asking->name;
    if (groups_find(worker->groups, wish->group_key))
        join_instance(asking);
    else
        asking->link->kind->collectives->complete_group(asking->link, &asking->wish,
                                                        &worker->device, &asking->asked);
    begun(asking);
    unref(asking);
}

/* --- bytes --- */

void collective_provide(struct collective *collective, const char *key,
                        const struct tensor *value, collective_done *taken, void *arg)
{
    buffers_provide(collective_buffers(collective), key, value, taken, arg);
}

static void bytes_came(struct link_asked *asked)
{
    end((struct asking *)asked, NULL, -1, NULL);
}

/* How the task of that device is reached. */
static struct worker_link *link_of(const struct worker *worker, const char *device)
{
    for (int i = 0; i < worker->peers_count; i++) {
        size_t size = strlen(worker->peers[i]->task);
        if (!strncmp(device, worker->peers[i]->task, size) && device[size] == '/')
            return worker->peers[i];
    }
    return NULL;
}

void collective_take(struct collective *collective, const struct device *from, const char *key,
                     void *into, size_t size, collective_done *taken, void *arg)
{
    struct worker *worker = collective->worker;
    struct error err;
    struct asking *asking = NULL;
    const struct asking made = {.link = link_of(worker, from->name),
                                .asked = {.into = into, .size = size},
                                .done = taken,
                                .arg = arg};
    if (!made.link || !made.link->kind->collectives)
        (void)fail(&err, INVALID, "%s knows no task that has the device %s", worker->task,
                   from->name);
    else
        asking = ask(collective, &made, &err);
    if (!asking) {
        taken(arg, &err);
        return;
    }
    asking->link->kind->collectives->receive_buffer(asking->link, key, from, &worker->device,
                                                    &asking->asked);
    begun(asking);
    unref(asking);
}

/* --- the end --- */

/* One that has not been given up, with a reference. */
static struct asking *next_asking(struct collective *collective)
{
    pthread_mutex_lock(&collective->lock);
    struct asking *asking = collective->asking;
    while (asking && asking->abandoned)
        asking = asking->next;
    if (asking) {
        asking->abandoned = true;
        asking->references++;
    }
    pthread_mutex_unlock(&collective->lock);
    return asking;
}

void collective_abort(struct collective *collective, const struct error *err)
{
    pthread_mutex_lock(&collective->lock);
    bool first = !collective->aborted;
    collective->aborted = true;
    if (first)
        collective->err = *err;
    struct buffers *buffers = collective->buffers;
    pthread_mutex_unlock(&collective->lock);
    if (!first)
        return;
    if (buffers)
        buffers_abort(buffers, err);
    for (struct asking *asking; (asking = next_asking(collective)); unref(asking))
        asking->link->kind->collectives->abandon(asking->link, &asking->asked);
}
