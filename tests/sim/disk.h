/*
 * disk.h - the same store once more, as it is in production: SQLite, by the very code that the
 * loop commits and loads with (scheduler/loop_commit.c, loop_load.c).
 *
 * What goes wrong there ends the run by sim_broken().
 */
#pragma once

#include "tests/sim/store.h"

struct disk;

/* An empty database in a folder of its own, in memory where the machine has such a place; with
 * the queues and projects of the store. */
struct disk *disk_new(const struct store *store, uint64_t now_us);

/* Checks what is stored against the store's jobs, and removes all. */
void disk_free(struct disk *disk, struct store *store); /* NULL is fine */

/* The job as the store has just added it, or found it. */
void disk_submit(struct disk *disk, const struct store *store, const struct store_job *job,
                 uint64_t now_us);

/* Tells the scheduler of jobs that it was not told of. */
void disk_tell(struct disk *disk, struct scheduler *scheduler, uint64_t now_us);

/* The project's weight and quota, as in the store. */
void disk_project(struct disk *disk, const struct store_project *project);

/* A batch, with the node that joins in it (NULL: none). */
void disk_commit(struct disk *disk, const struct scheduler_actions *actions, int64_t epoch,
                 const struct scheduler_node_info *joining, uint64_t now_us);

/* A piece of a file, whose cursor must be what it is in the store then. */
void disk_ship(struct disk *disk, const struct db_ship *ship, int64_t cursor, uint64_t now_us);

/* A scheduler built from what is stored. */
struct scheduler *disk_load(struct disk *disk, const struct scheduler_options *options,
                            uint64_t now_us);
