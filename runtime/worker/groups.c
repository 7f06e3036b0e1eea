/* groups.c - who takes part in collectives: groups of devices, and their instances. */

#include "runtime/worker/groups.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"

struct waiter {
    struct waiter *next;
    groups_told *told;     /* of a group, */
    groups_source *source; /* or of an instance */
    void *arg;
};

struct group {
    struct collective_group group; /* first */
    bool complete;
    struct waiter *waiters;
};

struct instance {
    enum collective_type type;
    enum dtype dtype;
    int source; /* rank; -1: not known, or it is no broadcast */
    bool complete;
    int known_count;
    bool *known; /* by rank: it has come */
    struct waiter *waiters;
};

struct groups {
    pthread_mutex_t lock;  /* guards: all below */
    struct map *groups;    /* struct group by key */
    struct map *instances; /* struct instance by "group:instance" */
};

struct groups *groups_new(void)
{
    struct groups *groups = alloc_bytes(sizeof(*groups));
    pthread_mutex_init(&groups->lock, NULL);
    groups->groups = map_new();
    groups->instances = map_new();
    return groups;
}

void groups_free(struct groups *groups)
{
    if (!groups)
        return;
    for (int i = 0; i < map_count(groups->groups); i++) {
        struct group *group = map_value(groups->groups, i);
        assert(!group->waiters);
        free(group->group.devices);
        free(group);
    }
    for (int i = 0; i < map_count(groups->instances); i++) {
        struct instance *instance = map_value(groups->instances, i);
        assert(!instance->waiters);
        free(instance->known);
        free(instance);
    }
    map_free(groups->groups);
    map_free(groups->instances);
    pthread_mutex_destroy(&groups->lock);
    free(groups);
}

int groups_rank(const struct collective_group *group, const char *device)
{
    for (int i = 0; i < group->devices_count; i++)
        if (!strcmp(group->devices[i].name, device))
            return i;
    return -1;
}

/* --- who waits --- */

static void add_waiter_locked(struct waiter **waiters, groups_told *told, groups_source *source,
                              void *arg)
{
    struct waiter *waiter = alloc_bytes(sizeof(*waiter));
    *waiter = (struct waiter){*waiters, told, source, arg};
    *waiters = waiter;
}

/* Calls all of a list that was taken out, under no lock. */
static void call_waiters(struct waiter *waiters, const struct collective_group *group,
                         int source, const struct error *err)
{
    while (waiters) {
        struct waiter *next = waiters->next;
        if (waiters->told)
            waiters->told(waiters->arg, group, err);
        else
            waiters->source(waiters->arg, source, err);
        free(waiters);
        waiters = next;
    }
}

static struct waiter *take_waiters_locked(struct waiter **waiters)
{
    struct waiter *taken = *waiters;
    *waiters = NULL;
    return taken;
}

static bool withdraw_locked(struct waiter **at, const void *arg)
{
    for (; *at; at = &(*at)->next) {
        struct waiter *waiter = *at;
        if (waiter->arg != arg)
            continue;
        *at = waiter->next;
        free(waiter);
        return true;
    }
    return false;
}

bool groups_withdraw(struct groups *groups, const void *arg)
{
    bool found = false;
    pthread_mutex_lock(&groups->lock);
    for (int i = 0; !found && i < map_count(groups->groups); i++) {
        struct group *group = map_value(groups->groups, i);
        found = withdraw_locked(&group->waiters, arg);
    }
    for (int i = 0; !found && i < map_count(groups->instances); i++) {
        struct instance *instance = map_value(groups->instances, i);
        found = withdraw_locked(&instance->waiters, arg);
    }
    pthread_mutex_unlock(&groups->lock);
    return found;
}

void groups_abort(struct groups *groups, const struct error *err)
{
    struct waiter *all = NULL;
    pthread_mutex_lock(&groups->lock);
    for (int i = 0; i < map_count(groups->groups) + map_count(groups->instances); i++) {
        int in_groups = map_count(groups->groups);
        struct waiter **list =
            i < in_groups
                ? &((struct group *)map_value(groups->groups, i))->waiters
                : &((struct instance *)map_value(groups->instances, i - in_groups))->waiters;
        struct waiter *taken = take_waiters_locked(list);
        while (taken) {
            struct waiter *next = taken->next;
            taken->next = all;
            all = taken;
            taken = next;
        }
    }
    pthread_mutex_unlock(&groups->lock);
    call_waiters(all, NULL, -1, err);
}

/* --- groups --- */

/* By job, then the numbers of task and device: TensorFlow's order. */
static int compare_devices(const void *a, const void *b)
{
    const struct device_name *x = &((const struct device *)a)->parts;
    const struct device_name *y = &((const struct device *)b)->parts;
    int by_job = strcmp(x->job, y->job);
    if (by_job || x->task != y->task)
        return by_job ? by_job : x->task < y->task ? -1 : 1;
    int by_type = strcmp(x->type, y->type);
    return by_type ? by_type : x->index < y->index ? -1 : x->index > y->index;
}

static const char *group_key(int key, char text[16])
{
    snprintf(text, 16, "%d", key);
    return text;
}

static struct group *find_group_locked(struct groups *groups, int key)
{
    char text[16];
    return map_find(groups->groups, group_key(key, text));
}

static struct group *add_group_locked(struct groups *groups, int key, int size,
                                      const char *device_type, struct error *err)
{
    char text[16];
    if (size < 1 || size > LIMIT_COLLECTIVE_GROUP_SIZE) {
        (void)fail(err, INVALID, "group_size must be positive integer but got %d%s", size,
                   size > 0 ? ", which is too large" : "");
        return NULL;
    }
    if (map_count(groups->groups) >= LIMIT_COLLECTIVE_GROUPS) {
        (void)fail(err, EXHAUSTED, "there are %d groups of collectives already",
                   map_count(groups->groups));
        return NULL;
    }
    struct group *group = alloc_bytes(sizeof(*group));
    group->group.key = key;
    group->group.size = size;
    snprintf(group->group.device_type, sizeof(group->group.device_type), "%s", device_type);
    map_set(groups->groups, group_key(key, text), group);
    return group;
}

/* What a member says must be what those before it said. */
static bool check_group(const struct collective_group *group,
                        const struct collective_wish *wish, const struct device *device,
                        struct error *err)
{
    const char *type = device_type_name(device->type);
    if (strcmp(type, group->device_type) != 0)
        return fail(err, INTERNAL,
                    "Collective Op %s is assigned to device %s with type %s and group_key %d "
                    "but that group has type %s",
                    wish->name, device->name, type, group->key, group->device_type);
    return wish->group_size == group->size ||
           fail(err, INTERNAL,
                "Collective Op %s has group_size %d and group_key %d but that group has size "
                "%d",
                wish->name, wish->group_size, group->key, group->size);
}

static bool add_device_locked(struct group *group, const struct collective_wish *wish,
                              const struct device *device, struct error *err)
{
    struct collective_group *g = &group->group;
    int rank = groups_rank(g, device->name);
    if (rank >= 0 && g->devices[rank].incarnation != device->incarnation)
        return fail(err, PRECONDITION,
                    "Device %s current incarnation doesn't match with one in the group. This "
                    "usually means this worker has restarted but the collective leader hasn't, "
                    "or this worker connects to a wrong cluster.",
                    device->name);
    if (rank >= 0)
        return true;
    if (g->devices_count == g->size)
        return fail(err, INTERNAL,
                    "Collective Op %s is assigned to device %s and group_key %d but that group "
                    "doesn't contain that device.",
                    wish->name, device->name, g->key);
    g->devices = alloc_resize(g->devices, (size_t)(g->devices_count + 1) * sizeof(*g->devices));
    g->devices[g->devices_count++] = *device;
    return true;
}

static void complete_locked(struct group *group)
{
    struct collective_group *g = &group->group;
    qsort(g->devices, (size_t)g->devices_count, sizeof(*g->devices), compare_devices);
    group->complete = true;
}

void groups_join(struct groups *groups, const struct collective_wish *wish,
                 const struct device *device, groups_told *told, void *arg)
{
    struct error err;
    struct waiter *waiters = NULL;
    bool complete = false;
    pthread_mutex_lock(&groups->lock);
    struct group *group = find_group_locked(groups, wish->group_key);
    if (!group)
        group = add_group_locked(groups, wish->group_key, wish->group_size,
                                 device_type_name(device->type), &err);
    bool ok = group && check_group(&group->group, wish, device, &err) &&
              add_device_locked(group, wish, device, &err);
    if (ok && group->group.devices_count == group->group.size) {
        if (!group->complete)
            complete_locked(group);
        complete = true;
        waiters = take_waiters_locked(&group->waiters);
    } else if (ok) {
        add_waiter_locked(&group->waiters, told, NULL, arg);
    }
    pthread_mutex_unlock(&groups->lock);
    if (!ok)
        told(arg, NULL, &err);
    else if (complete)
        told(arg, &group->group, NULL);
    call_waiters(waiters, ok ? &group->group : NULL, -1, NULL);
}

const struct collective_group *groups_find(struct groups *groups, int key)
{
    pthread_mutex_lock(&groups->lock);
    const struct group *group = find_group_locked(groups, key);
    bool complete = group && group->complete;
    pthread_mutex_unlock(&groups->lock);
    return complete ? &group->group : NULL;
}

bool groups_keep(struct groups *groups, const struct collective_group *told, struct error *err)
{
    if (told->devices_count != told->size)
        return fail(err, INTERNAL,
                    "CompleteGroupResponse group_size doesn't match device_name list");
    pthread_mutex_lock(&groups->lock);
    bool ok = true;
    if (!find_group_locked(groups, told->key)) {
        struct group *group =
            add_group_locked(groups, told->key, told->size, told->device_type, err);
        ok = group;
        if (group) {
            size_t bytes = (size_t)told->size * sizeof(*told->devices);
            group->group.devices = alloc_bytes(bytes);
            memcpy(group->group.devices, told->devices, bytes);
            group->group.devices_count = told->size;
            complete_locked(group);
        }
    }
    pthread_mutex_unlock(&groups->lock);
    return ok;
}

/* --- instances --- */

static struct instance *find_instance_locked(struct groups *groups,
                                             const struct collective_wish *wish, bool make,
                                             struct error *err)
{
    char key[32];
    snprintf(key, sizeof(key), "%d:%d", wish->group_key, wish->instance_key);
    struct instance *instance = map_find(groups->instances, key);
    if (instance || !make)
        return instance;
    if (map_count(groups->instances) >= LIMIT_COLLECTIVE_INSTANCES) {
        (void)fail(err, EXHAUSTED, "there are %d instances of collectives already",
                   map_count(groups->instances));
        return NULL;
    }
    instance = alloc_bytes(sizeof(*instance));
    instance->type = wish->type;
    instance->dtype = wish->dtype;
    instance->source = -1;
    instance->known = alloc_array((size_t)wish->group_size, sizeof(bool));
    map_set(groups->instances, key, instance);
    return instance;
}

static bool check_instance(const struct instance *instance, const struct collective_wish *wish,
                           struct error *err)
{
    return (instance->type == wish->type && instance->dtype == wish->dtype) ||
           fail(err, INTERNAL,
                "Collective instance %d expected type %d and data_type %d but got type %d and "
                "data_type %d",
                wish->instance_key, instance->type, instance->dtype, wish->type, wish->dtype);
}

static bool add_member_locked(struct instance *instance, const struct collective_wish *wish,
                              int rank, const char *device, struct error *err)
{
    if (instance->known[rank])
        return true;
    if (wish->is_source && instance->source >= 0)
        return fail(err, INTERNAL,
                    "Instance %d already has source %d, received second claim from %s",
                    wish->instance_key, instance->source, device);
    instance->known[rank] = true;
    if (wish->is_source)
        instance->source = rank;
    if (++instance->known_count == wish->group_size)
        instance->complete = true;
    return !instance->complete || instance->source >= 0 ||
           fail(err, INTERNAL,
                "Instance %d found no source for broadcast.  This could mean that there were "
                "group_size=%d BcastRecvs but no BcastSend.",
                wish->instance_key, wish->group_size);
}

void groups_join_instance(struct groups *groups, const struct collective_wish *wish,
                          const char *device, groups_source *told, void *arg)
{
    struct error err;
    struct waiter *waiters = NULL;
    const struct collective_group *group = groups_find(groups, wish->group_key);
    int rank = group ? groups_rank(group, device) : -1;
    if (rank < 0 || wish->group_size != group->size) {
        (void)fail(&err, PRECONDITION,
                   "group %d not found. This normally means the server has restarted",
                   wish->group_key);
        told(arg, -1, &err);
        return;
    }
    pthread_mutex_lock(&groups->lock);
    struct instance *instance = find_instance_locked(groups, wish, true, &err);
    bool ok = instance && check_instance(instance, wish, &err);
    bool broadcast = wish->type == COLLECTIVE_BROADCAST;
    ok = ok && (!broadcast || add_member_locked(instance, wish, rank, device, &err));
    bool waits = ok && broadcast && !instance->complete;
    int source = instance ? instance->source : -1;
    if (waits)
        add_waiter_locked(&instance->waiters, NULL, told, arg);
    else if (instance && instance->complete)
        waiters = take_waiters_locked(&instance->waiters);
    pthread_mutex_unlock(&groups->lock);
    if (!waits)
        told(arg, source, ok ? NULL : &err);
    call_waiters(waiters, NULL, source, ok ? NULL : &err);
}

void groups_keep_source(struct groups *groups, const struct collective_wish *wish, int source)
{
    struct error err;
    pthread_mutex_lock(&groups->lock);
    struct instance *instance = find_instance_locked(groups, wish, true, &err);
    if (instance) {
        instance->source = source;
        instance->complete = true;
    }
    pthread_mutex_unlock(&groups->lock);
}

bool groups_find_source(struct groups *groups, const struct collective_wish *wish, int *source)
{
    struct error err;
    pthread_mutex_lock(&groups->lock);
    const struct instance *instance = find_instance_locked(groups, wish, false, &err);
    bool known = instance && instance->type == wish->type && instance->dtype == wish->dtype &&
                 (instance->complete || instance->type != COLLECTIVE_BROADCAST);
    if (known)
        *source = instance->source;
    pthread_mutex_unlock(&groups->lock);
    return known;
}
