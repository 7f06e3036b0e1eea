/*
 * mirror.h - ships what a task writes into its copy of the job's checkpoints (folders.h).
 *
 * Files go in the order in which they were last written, each whole, so that what names others
 * (`checkpoint`, a manifest) is never at the server before them; then what was removed is
 * removed there.  A file that is replaced goes again.
 *
 * Not shipped: names that begin with a dot, that end in ".tmp" or hold ".tmp-", and `epoch` and
 * `lock`, which every folder has of its own.
 */
#pragma once

#include "scheduler/agent/tail.h"

struct mirror;

#define MIRROR_NAMES "checkpoints/" /* what names begin with in a Ship */

/* Whether a file or folder with this path in a folder of checkpoints is shipped. */
bool mirror_wants(const char *path);

/*
 * For the checkpoints in `folder` of the attempt in `attempt_folder`, whose BRING_LIST tells
 * what the server has.  `settles`: files are written in place, by whatever program: one is
 * shipped when it has not changed for a second, or the task has ended.
 */
struct mirror *mirror_new(const char *attempt_folder, const char *folder, bool settles);
void mirror_free(struct mirror *mirror); /* NULL is fine */

/* Ships what is new; as tail_ship(), one piece, and more until then (monotonic).  A file that
 * the server refuses is passed over. */
enum tail_result mirror_ship(struct mirror *mirror, bool ended, uint64_t until_us,
                             struct link *link, const struct agent_task_ref *task,
                             struct error *err);

/* When a file will have settled (monotonic, microseconds); 0: none is waited for. */
uint64_t mirror_again_us(const struct mirror *mirror);

/* Which file was refused, and why; "" for none. */
const char *mirror_complaint(const struct mirror *mirror);
