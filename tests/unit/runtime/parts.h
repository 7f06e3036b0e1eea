/*
 * parts.h - graphs over the tasks of cluster.h, and the parts that their master makes of them.
 */
#pragma once

#include "kernels/list.h"
#include "tests/unit/runtime/cluster.h"

static struct world *world;
static struct cluster *cluster;
static struct cluster_session *session;
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

static void stop(void)
{
    cluster_session_free(session);
    cluster_free(cluster);
    world_free(world);
}

static struct edge on(int task, struct edge edge)
{
    edge.from->requested_device = task_names[task];
    return edge;
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

static void read_parts(struct str *graphs, size_t *ends)
{
    for (int i = 0; i < parts_count; i++) {
        size_t first = i ? ends[i - 1] : 0;
        parts[i] = graph_new();
        graph_allow_private(parts[i]);
        CHECK_OK(graph_import(parts[i], graphs->data + first, ends[i] - first, &err), &err);
    }
    str_release(graphs);
    free(ends);
}

/* Cuts the graph for a run that feeds x and fetches these; to be given to release(). */
static void cut(const char *const *fetches, int count)
{
    struct str graphs = {0};
    size_t *ends;
    const char *feed = "x";
    const struct session_run run = {
        .feeds = &feed, .feeds_count = 1, .fetches = fetches, .fetches_count = count};
    CHECK_OK(cluster_session_parts(session, &run, &graphs, &ends, &parts_count, &err), &err);
    read_parts(&graphs, ends);
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
