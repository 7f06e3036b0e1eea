/*
 * parts.h - graphs over the tasks of cluster.h, and the parts that their master makes of them.
 */
#pragma once

#include "kernels/list.h"
#include "tests/unit/runtime/one_session.h"

static int64_t memory_bytes = 64 << 20; /* of a task */

static void start(void)
{
    static bool added;
    if (!added)
        kernels_add(true);
    added = true;
    world = world_new_with(true);
    cluster = cluster_new_with(true, false, memory_bytes);
    session = open_session(cluster, "s", (struct cluster_options){0});
}

static const char *numbered(const char *name, int number)
{
    static char names[16][32];
    static int at;
    at = (at + 1) % 16;
    snprintf(names[at], sizeof(names[0]), "%s%d", name, number);
    return names[at];
}

static struct edge fed_of(const char *name, const struct shape *shape)
{
    return builder_add(&world->b, "Placeholder", name, NO_INPUTS,
                       ATTRS(attr_type("dtype", F32), attr_shape("shape", shape)));
}

static struct edge variable_on(int task, const char *name, const struct shape *shape)
{
    return on(task, builder_add(&world->b, "VariableV2", name, NO_INPUTS,
                                ATTRS(attr_type("dtype", F32), attr_shape("shape", shape))));
}

/* --- parts --- */

static struct graph *parts[TASKS];
static int parts_count;

/* Cuts the graph for a run that feeds x and fetches these; to be given to release(). */
static void cut(const char *const *fetches, int count)
{
    const char *feed = "x";
    const struct session_run run = {
        .feeds = &feed, .feeds_count = 1, .fetches = fetches, .fetches_count = count};
    parts_count = cut_run(&run, parts);
}

static void release(void)
{
    for (int i = 0; i < parts_count; i++)
        graph_free(parts[i]);
}

static bool is_receive(const struct node *node)
{
    return node->op->flow == FLOW_RECV && !node_attr_bool(node, "client_terminated", false);
}
