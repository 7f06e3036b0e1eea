/*
 * bring.h - what a task needs of the server's folder, on a node that does not see it: the
 * checkpoints of its job (but of an attempt that goes on already), and of the one it starts
 * from, and its dataset (folders.h).
 */
#pragma once

#include <jansson.h>

#include "scheduler/agent/fetch.h"

struct bring;
struct datasets;

/* What of ATTEMPT/jobs/N/checkpoints came from the server: mirror.h does not ship it again. */
#define BRING_LIST "fetched.json" /* {PATH: {"size", "mtime_ns"}} */

/*
 * For the attempt in `folder`; `start` is start.json, which gets its "dataset_folder".  Both
 * are borrowed.
 */
struct bring *bring_new(const char *folder, json_t *start, struct datasets *datasets);
void bring_free(struct bring *bring); /* NULL is fine */

/* Does a piece of it. */
enum fetch_result bring_go_on(struct bring *bring, struct link *link,
                              const struct agent_task_ref *task, struct error *err);

/* "fetching dataset mnist: 45 of 52 MB" */
const char *bring_text(const struct bring *bring, char *out, size_t out_size);
