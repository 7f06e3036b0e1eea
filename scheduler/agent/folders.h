/*
 * folders.h - where the job's checkpoints and its dataset lie for a task: in the server's
 * folder, when this node sees it, or in copies of its own.
 *
 * A server's folder has an id, DIR/folder.id; a node sees it when at the very path there is
 * that id, and jobs/ can be written.  Else start.json says "own_folder": true, and
 *
 *   "job_folder":     ATTEMPT/jobs/N, whose checkpoints/ is a copy (bring.h, mirror.h)
 *   "dataset_folder": AGENT/datasets/NAME-ID, one for all tasks of the node (datasets.h)
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct agent_start_task;
struct error;

#define FOLDERS_ID_TEXT 33 /* hexadecimal, with the NUL */

/* The id of the server's folder `folder`, which it gets when it has none. */
bool folders_id(const char *folder, char id[FOLDERS_ID_TEXT], struct error *err) CHECKED;

/* Whether this node sees the folder that the server speaks of. */
bool folders_are_shared(const struct agent_start_task *start);

/* The task in `attempt_folder` works on copies: start.json says so from now on. */
void folders_make_own(json_t *start, const char *attempt_folder);

/* Whether it does. */
bool folders_are_own(const json_t *start);

/* The server's folder, as start.json names it; "" when this node does not see it; owned. */
char *folders_yard(const json_t *start);

/* Of a job's spec: the number of the job whose checkpoints it starts from; 0: of none. */
int64_t folders_init_job(const json_t *spec);
