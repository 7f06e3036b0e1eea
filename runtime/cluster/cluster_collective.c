/*
 * cluster_collective.c - steps of graphs with collectives, which clients of several masters may
 * run together: by the same key each gets the same ids.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/cluster/internal.h"
#include "runtime/op.h"

#define KEY_BASE UINT64_C(0x8774aa605c729c72) /* TensorFlow's */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* TensorFlow's Hash64Combine. */
static uint64_t combine(uint64_t a, uint64_t b)
{
    return a ^ (b + UINT64_C(0x9e3779b97f4a7800) + (a << 10) + (a >> 4));
}

static bool is_collective(const struct node *node)
{
    return !strncmp(node->op->name, "Collective", strlen("Collective")) &&
           (strcmp(node->op->name, "CollectivePermute") != 0);
}

int64_t cluster_collective_key(const struct partition_parts *parts)
{
    int64_t *keys = NULL;
    int count = 0, capacity = 0;
    bool any = false;
    for (int p = 0; p < parts->count; p++)
        for (int i = 0; i < graph_count(parts->parts[p].graph); i++) {
            const struct node *node = graph_node(parts->parts[p].graph, i);
            if (!is_collective(node))
                continue;
            any = true;
            int64_t key = node_attr_int(node, "instance_key", 0);
            if (!key)
                continue;
            keys = alloc_grow(keys, count, &capacity, sizeof(*keys));
            keys[count++] = key;
        }
    uint64_t hash = any ? KEY_BASE : 0;
    if (count)
        qsort(keys, (size_t)count, sizeof(*keys), compare);
    for (int i = 0; i < count; i++)
        if (!i || keys[i] != keys[i - 1])
            hash = combine((uint64_t)keys[i], hash);
    free(keys);
    return (int64_t)hash;
}

void cluster_collective_begin(struct cluster_session *session, struct cluster_step *step)
{
    struct worker_link *home = session->links[0];
    const struct worker_link_collectives *asks = home->kind->collectives;
    if (!step->plan->collectives || !asks || !asks->next_step)
        return;
    if (asks->next_step(home, step->plan->collectives, &step->id, &step->why))
        step->retires = home;
    else
        step->refused = true;
}

void cluster_collective_end(struct cluster_step *step)
{
    if (step->retires)
        step->retires->kind->collectives->retire_step(step->retires, step->plan->collectives,
                                                      step->id);
}
