/*
 * one_session.h - a world, a cluster and a session of its, of which each test has one: `start`
 * of its own fills in the three, stop() ends them.
 */
#pragma once

#include "tests/unit/runtime/cluster.h"

static struct world *world;
static struct cluster *cluster;
static struct cluster_session *session;

static void stop(void)
{
    cluster_session_free(session);
    cluster_free(cluster);
    world_free(world);
}

static inline struct edge on(int task, struct edge edge)
{
    edge.from->requested_device = task_names[task];
    return edge;
}

/* What a run is cut into; returns how many graphs there are, which the caller frees. */
static inline int cut_run(const struct session_run *run, struct graph *parts[TASKS])
{
    struct str graphs = {0};
    size_t *ends;
    int count;
    CHECK_OK(cluster_session_parts(session, run, &graphs, &ends, &count, &err), &err);
    CHECK(count <= TASKS);
    for (int i = 0; i < count; i++) {
        size_t first = i ? ends[i - 1] : 0;
        parts[i] = graph_new();
        graph_allow_private(parts[i]);
        CHECK_OK(graph_import(parts[i], graphs.data + first, ends[i] - first, &err), &err);
    }
    str_release(&graphs);
    free(ends);
    return count;
}
