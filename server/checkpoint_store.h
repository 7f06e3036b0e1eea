/*
 * checkpoint_store.h - DIR/jobs/N/checkpoints, for tasks on nodes that do not see it.
 *
 * Such a task works on a copy: its agent fetches what is there before it starts, and ships what
 * it writes, removes and replaces in its copy, in the order in which it did so.  Pieces come
 * into DIR/jobs/N/.ship-EPOCH-…; with its last one a file is on disk and gets its name.
 *
 * An attempt that has listed the files has claimed the folder (runtime/checkpoint.h says how):
 * nothing of an earlier one gets in any more.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct agent_ship_request;
struct error;

/* [{path, size}] of what is there and is nobody's business but checkpoints'; owned.
 * OUT_OF_RANGE when it is more than LIMIT_CHECKPOINT_FILES. */
json_t *checkpoint_store_list(const char *folder, int64_t job, struct error *err) CHECKED;

/* From now on attempts of the job with a lower epoch publish nothing, and what they did not
 * ship to its end is removed.  DENIED when one with a higher epoch has come before. */
bool checkpoint_store_claim(const char *folder, int64_t job, int64_t epoch,
                            struct error *err) CHECKED;

/* Up to `size` bytes from `offset` on, into `out`; `*got` is less at the end alone.  NOT_FOUND
 * when the file is not there (any more). */
bool checkpoint_store_read(const char *folder, int64_t job, const char *path, int64_t offset,
                           void *out, size_t size, size_t *got, struct error *err) CHECKED;

/* Whether what is shipped belongs here, by its name. */
bool checkpoint_store_is(const char *file);

/*
 * Takes a piece, which must begin where the one before ended: else ABORTED, and the file is to
 * be shipped from its start.  `*cursor` is where the next one begins.  DENIED when a later
 * attempt has claimed the folder, EXHAUSTED when the disk has no room.
 */
bool checkpoint_store_ship(const char *folder, const struct agent_ship_request *ship,
                           int64_t *cursor, struct error *err) CHECKED;
