/*
 * collective.h - what kernels that work together over several devices need of their task.
 *
 * Devices that name the same group key are a group: the leader of the cluster knows who is in
 * it, and ranks its devices by their names.  Each collective of a group is an instance, with a
 * key of its own.  Bytes go from member to member by key: who has them provides them, who wants
 * them asks for them.  All of it is as TensorFlow's tasks do it, so that these may take part.
 *
 * No call waits; what it was called for ends with one callback, on any thread, perhaps before
 * the call returns.
 */
#pragma once

#include "runtime/device.h"
#include "runtime/tensor.h"

struct collective; /* of one step of a task */
struct error;

enum collective_type { COLLECTIVE_REDUCE, COLLECTIVE_BROADCAST, COLLECTIVE_GATHER };

struct collective_group {
    int key;
    int size;
    char device_type[16];
    struct device *devices; /* sorted by name: the rank is the place; borrowed from the task */
    int devices_count;      /* `size` once it is complete */
};

/* One collective as a member sees it. */
struct collective_wish {
    const char *name; /* of the node, for errors */
    enum collective_type type;
    int group_key, group_size, instance_key;
    enum dtype dtype;
    struct shape shape; /* of the result */
    bool is_source;     /* of a broadcast */
};

/* `source`: the rank that a broadcast comes from, else -1. */
typedef void collective_joined(void *arg, const struct collective_group *group, int source,
                               const struct error *err);

/* `err` NULL: it went well. */
typedef void collective_done(void *arg, const struct error *err);

/* The device by which this task takes part. */
const struct device *collective_device(const struct collective *collective);

/* Until all members of the group are there, and (of a broadcast) all of the instance. */
void collective_join(struct collective *collective, const struct collective_wish *wish,
                     collective_joined *joined, void *arg);

/* Shares the value; `taken` when it has been given to who asked for `key`. */
void collective_provide(struct collective *collective, const char *key,
                        const struct tensor *value, collective_done *taken, void *arg);

/* What `from` provides under that key, into `size` bytes; fails with INTERNAL when it has
 * another size. */
void collective_take(struct collective *collective, const struct device *from, const char *key,
                     void *into, size_t size, collective_done *taken, void *arg);

/* All that waits, and all later calls, fail with `err`; the first abort decides. */
void collective_abort(struct collective *collective, const struct error *err);
