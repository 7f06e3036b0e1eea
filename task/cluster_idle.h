/*
 * cluster_idle.h - whether any client still uses any task of a cluster.
 *
 * Each task is a master that clients may come to, and knows how long none has; it asks the
 * others before it ends.  One that does not answer has nobody who could use this one.
 */
#pragma once

#include "proto/rpc.h"

struct cluster_idle;
struct cluster_spec;
struct error;
struct master;

extern const struct rpc_method cluster_idle_methods[]; /* their self: struct cluster_idle * */

/* All borrowed. */
struct cluster_idle *cluster_idle_new(const struct cluster_spec *spec,
                                      const struct rpc_tls *tls, struct master *master,
                                      struct error *err) CHECKED;
void cluster_idle_free(struct cluster_idle *idle); /* nobody calls its methods; NULL is fine */

/* Whether nobody has used one of the tasks for `seconds`. */
bool cluster_idle_is_over(struct cluster_idle *idle, int64_t seconds);
