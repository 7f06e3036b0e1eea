/*
 * nodes.h - machines that have joined, and the counter of epochs.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct db_node {
    int64_t id;
    const char *name;     /* unique */
    const char *identity; /* what its agent calls itself: another one may not take the name */
    const char *boot_id;
    const char *version;
    const char *labels; /* JSON object */
    int64_t epoch;      /* of its newest session */
    enum node_state state;
    bool draining; /* a person asked that nothing new is started there */
    int64_t cpu_millis;
    int64_t memory_bytes;
    int gpus;
    const char *gpu_type;
    int64_t gpu_memory_bytes;
    int64_t joined_us;     /* wall clock of the newest session */
    int64_t asked_us;      /* the node's own clock, since its boot, when it asked for that */
    bool removed;          /* by somebody, and not come back since; not set by db_nodes_set() */
    int64_t refused_token; /* no token up to this one lets it in; likewise */
};

bool db_nodes_list(struct db_conn *conn, struct arena *arena, struct db_node **nodes,
                   int *nodes_count, struct error *err) CHECKED;
bool db_nodes_find(struct db_conn *conn, const char *name, struct arena *arena,
                   struct db_node *node, struct error *err) CHECKED;

/* Marks it: no token of before, and no certificate that came of one, lets it in any more. */
bool db_nodes_remove(struct db *db, int64_t id, struct error *err) CHECKED;

/* A node of this name has come by a newer token, if it was removed: it is one like others. */
bool db_nodes_welcome(struct db *db, const char *name, struct error *err) CHECKED;

/* --- for the scheduler's loop, inside its transaction --- */

/* Adds the node or replaces what is known of it (by id), and appends "node.state". */
bool db_nodes_set(struct db_conn *conn, const struct db_node *node, const char *text,
                  int64_t now_us, struct error *err) CHECKED;

/* Changes state and draining alone, and appends "node.state". */
bool db_nodes_state(struct db_conn *conn, int64_t id, enum node_state state, bool draining,
                    const char *text, int64_t now_us, struct error *err) CHECKED;

/* The newest epoch given to anybody.  It never goes back. */
bool db_epoch_read(struct db_conn *conn, int64_t *epoch, struct error *err) CHECKED;
bool db_epoch_write(struct db_conn *conn, int64_t epoch, struct error *err) CHECKED;
