/*
 * groups.h - who takes part in collectives: groups of devices, and their instances.
 *
 * The leader of the cluster keeps all groups; the others keep what it told them.  A group never
 * changes once it is complete.  Callable from any thread.
 */
#pragma once

#include "runtime/collective.h"

struct groups;

typedef void groups_told(void *arg, const struct collective_group *group,
                         const struct error *err);
typedef void groups_source(void *arg, int source, const struct error *err);

struct groups *groups_new(void);
void groups_free(struct groups *groups); /* nobody waits; NULL is fine */

/*
 * A device comes into the group that the wish names; `told` once it is complete, perhaps at
 * once.  Fails as TensorFlow does where members do not agree, and with EXHAUSTED.
 */
void groups_join(struct groups *groups, const struct collective_wish *wish,
                 const struct device *device, groups_told *told, void *arg);

/* The complete group; NULL: there is none.  Lives as long as `groups`. */
const struct collective_group *groups_find(struct groups *groups, int key);

/* Keeps a complete group that the leader told of, unless it is known. */
bool groups_keep(struct groups *groups, const struct collective_group *group,
                 struct error *err) CHECKED;

/*
 * A member comes to an instance of its group, which is complete; `told` where its broadcast
 * comes from once all are there (-1: it is no broadcast), perhaps at once.
 */
void groups_join_instance(struct groups *groups, const struct collective_wish *wish,
                          const char *device, groups_source *told, void *arg);

/* Keeps what the leader told. */
void groups_keep_source(struct groups *groups, const struct collective_wish *wish, int source);
/* Whether it is known where the instance's broadcast comes from, or that it is none. */
bool groups_find_source(struct groups *groups, const struct collective_wish *wish, int *source);

/* Who waits with that argument will not be called; false if he was, or is being called. */
bool groups_withdraw(struct groups *groups, const void *arg);

/* All who wait fail with `err`. */
void groups_abort(struct groups *groups, const struct error *err);

/* The place of the device in the group; -1: it is not in it. */
int groups_rank(const struct collective_group *group, const char *device);
