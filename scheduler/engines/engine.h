/*
 * engine.h - nodes from an engine (Slurm, Kubernetes): agents that run as its jobs while a
 * queue needs them.
 *
 * DESIGN: one thread (engine_main) looks every few seconds at what the engine runs, what has
 * joined and what jobs wait for (demand.h); pilots.h, which is pure, decides; the thread
 * carries it out.  What runs a node's tasks is an agent like any other.
 */
#pragma once

#include <stdatomic.h>

#include "scheduler/engines/pilots.h"
#include "scheduler/engines/settings.h"

struct db;
struct engine;
struct loop;
struct str;

/* What a kind of engine is asked for. */
struct engine_pilot {
    const char *name;  /* of the node */
    const char *token; /* a join token */
    const struct settings_queue *queue;
    const char *script; /* starts the agent, which finds the token in TRAINYARD_TOKEN */
};

/* A kind of engine.  Called by one thread; every call has a bound on its time. */
struct engine_kind {
    const char *name;  /* "slurm" */
    const char *title; /* "Slurm" */
    const char *what;  /* "Slurm job" */

    /* Of a server: `tag` is in the names of its jobs.  NULL on failure. */
    void *(*open)(const struct settings *settings, const char *tag, const atomic_bool *stop,
                  struct error *err);
    void (*close)(void *self);

    /* All jobs of the tag that it knows, ended or not; in the arena. */
    bool (*list)(void *self, struct arena *arena, struct pilots_seen **seen, int *seen_count,
                 struct error *err);

    /* Asks for a pilot; writes what the engine calls it. */
    bool (*submit)(void *self, const struct engine_pilot *pilot, char id[PILOTS_ID_BYTES],
                   struct error *err);

    /* Ends them; one that is not there any more is fine. */
    bool (*cancel)(void *self, const char *const *ids, int ids_count, struct error *err);
};

struct engine_options {
    const char *config_path;
    const char *folder; /* DIR: the server's tag is kept there */
    struct db *db;
    struct loop *loop; /* made, not started */
};

/* Reads and checks the configuration; the loop knows it from now on. */
struct engine *engine_new(const struct engine_options *options, struct error *err) CHECKED;

/*
 * Starts the thread; agents are told to call `server`, unless the configuration says where, and
 * know it by `pin`, which their token ends with (NULL: by what the configuration gives them).
 */
bool engine_start(struct engine *engine, const char *server, const char *pin,
                  struct error *err) CHECKED;

/* Ends the thread, and all pilots that have no task; before loop_stop().  NULL is fine. */
void engine_stop(struct engine *engine);
void engine_free(struct engine *engine); /* after the loop; NULL is fine */

/* How many pilots there are now, by queue; at most SETTINGS_QUEUES_MAX, how many.  NULL is
 * fine: 0.  From any thread. */
int engine_counts(struct engine *engine, struct pilots_count counts[SETTINGS_QUEUES_MAX]);

/* The script that starts a pilot's agent, with a folder of its own that it removes. */
void engine_script(const struct settings *settings, const struct settings_queue *queue,
                   const char *name, const char *server, struct str *script);
