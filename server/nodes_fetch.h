/*
 * nodes_fetch.h - what an agent fetches for a task: files that the job brought, and on a node
 * that does not see DIR its dataset and checkpoints.
 */
#pragma once

#include "base/base.h"

struct agent_fetch_request;
struct agent_task_ref;
struct arena;
struct db;
struct error;

/*
 * Reads up to LIMIT_SHIP_BYTES from the request's offset on into `out`; `*got` is less at the
 * end alone.  That the task is the caller's has been checked, and that it is of the attempt
 * with `epoch`; here, that the file is one of its job's.  INVALID, DENIED, NOT_FOUND say that
 * it will never be had.
 */
bool nodes_fetch(struct db *db, const char *folder, const struct agent_fetch_request *fetch,
                 int64_t epoch, struct arena *arena, void *out, size_t *got,
                 struct error *err) CHECKED;

/* Whether the task is one that was given to this very node, and not placed anew since; `*epoch`
 * is its attempt's. */
bool nodes_task_check(struct db *db, int64_t node, const struct agent_task_ref *ref,
                      struct arena *arena, int64_t *epoch, struct error *err) CHECKED;
