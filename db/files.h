/*
 * files.h - the uploaded files that jobs name.
 */
#pragma once

#include "db/db.h"

struct arena;

/*
 * The hashes of all files that jobs name which have not ended, or not before `ended_us`: each
 * once, in order, in the arena.
 */
bool db_files_named(struct db_conn *conn, int64_t ended_us, struct arena *arena,
                    const char ***hashes, int *count, struct error *err) CHECKED;
