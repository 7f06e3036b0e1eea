/*
 * backup.h - the databases of a server as a whole: looked through, copied, and put back.
 *
 * All three work on the folder from outside, in a process of their own.  Datasets, the files
 * and checkpoints of jobs, and secret.key are plain files beside the databases: whoever keeps
 * copies copies them too, the key elsewhere.
 */
#pragma once

#include "db/db.h"

/* Epochs count up below this; restoring puts those that are given after it above all others. */
#define DB_GENERATION_BITS 32

/* Called for each thing that is wrong: in which file, and what. */
typedef void db_finding_fn(void *self, const char *file, const char *text);

/*
 * Reads both databases of `folder` through: pages, indices, references, and that tables say
 * what the events before them said.  Calls `found` for each finding and returns how many there
 * were, at most 100 of each kind; -1 when it could not look (NOT_FOUND: no folder of a server).
 * A server may run meanwhile.
 */
int db_check(const char *folder, db_finding_fn *found, void *self, struct error *err) CHECKED;

/*
 * Copies both databases of `folder` into the new folder `to`, which appears whole or not at
 * all.  A server may run meanwhile: each file is as it was at one moment, the metrics no later
 * than the jobs, so that what they lack is shipped again.  EXISTS when `to` is there.
 */
bool db_backup(const char *folder, const char *to, struct error *err) CHECKED;

struct db_restored {
    int64_t jobs;      /* in the backup */
    int64_t alive;     /* of them not ended */
    int64_t set_aside; /* folders of jobs that the backup does not know */
    int64_t epoch;     /* those that are given from now on are above it */
    char aside[512];   /* where what was there has gone */
};

/*
 * Puts the databases of the backup `from` into `folder` (made if it is absent).  What was there
 * is set aside below it, folders of jobs that the backup does not know too.  Epochs go on above
 * all that were ever given, so that tasks which the backup knows nothing of are refused and
 * ended when their agents call.
 *
 * PRECONDITION while a server holds the folder, or when the backup is of a newer program;
 * DATA_LOSS when it is damaged.  On failure nothing has changed but in `restore.partial`; when
 * it is cut off, running it again completes it.
 */
bool db_restore(const char *from, const char *folder, struct db_restored *restored,
                struct error *err) CHECKED;
