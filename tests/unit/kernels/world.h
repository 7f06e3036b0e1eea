/*
 * world.h - a session with all kernels, and a graph that is built for it.
 */
#pragma once

#include "base/alloc.h"
#include "kernels/list.h"
#include "runtime/builder.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "tests/unit/test.h"

struct world {
    struct graph *graph;
    struct builder b;
    struct session *session;
    struct error err;
};

static struct world *world_new(const struct session_options *options)
{
    static bool added;
    if (!added)
        kernels_add(false);
    added = true;
    struct world *world = alloc_bytes(sizeof(*world));
    world->graph = graph_new();
    world->b = (struct builder){.graph = world->graph, .scope = "", .err = &world->err};
    world->session = session_new(options, &world->err);
    CHECK(world->session);
    return world;
}

/* What was built so far goes to the session. */
static inline void world_begin(struct world *world)
{
    CHECK_OK(builder_ok(&world->b), &world->err);
    CHECK_OK(session_extend_graph(world->session, world->graph, &world->err), &world->err);
}

static void world_free(struct world *world)
{
    session_free(world->session);
    graph_free(world->graph);
    free(world);
}

/* Fetches one tensor, or (`out` NULL) runs one node. */
static inline bool world_run(struct world *world, const char *name, struct tensor *out,
                             struct error *err)
{
    const char *names[] = {name};
    struct session_run run = {0};
    if (out) {
        run.fetches = names;
        run.fetches_count = 1;
    } else {
        run.targets = names;
        run.targets_count = 1;
    }
    return session_run(world->session, &run, out, err);
}
