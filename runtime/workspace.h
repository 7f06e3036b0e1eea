/*
 * workspace.h - memory that a session lends to one run of a plan at a time.
 *
 * What a run writes there is of no use after it, so plans that run one after the other take the
 * same: a session needs as much as its largest plan, and more only while runs overlap.
 */
#pragma once

#include <pthread.h>

#include "base/base.h"

struct workspace {
    struct workspace *next;
    char *memory; /* aligned for tensors */
    size_t size;
};

struct workspace_pool {
    pthread_mutex_t lock;   /* guards: idle, bytes */
    struct workspace *idle; /* lent to nobody */
    int64_t bytes;          /* of all, lent or not */
};

void workspace_pool_init(struct workspace_pool *all);
void workspace_pool_release(struct workspace_pool *all); /* nothing is lent */

/* One of at least `size` bytes, to be given back; NULL when there is no memory. */
struct workspace *workspace_take(struct workspace_pool *all, size_t size);
void workspace_give(struct workspace_pool *all, struct workspace *workspace); /* NULL is fine */

/* In place of giving it back. */
void workspace_drop(struct workspace_pool *all, struct workspace *workspace); /* NULL is fine */

int64_t workspace_pool_bytes(const struct workspace_pool *all);
