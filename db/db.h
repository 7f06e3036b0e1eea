/*
 * db.h - the two database files of a server, who writes them, and who reads them.
 *
 * control.db holds what must be right: jobs, attempts, tasks, events, nodes, users, tokens.
 * metrics.db holds what is much: points, log bytes, graphs.  Both are SQLite in WAL mode with
 * synchronous=FULL: what db_write() has answered survives a power cut.
 *
 * DESIGN: each file has one writer thread with the only connection that writes or checkpoints.
 * Callers queue a function; the writer runs all that wait in one transaction, each in a
 * savepoint of its own (one that fails takes nothing of the others with it), and answers after
 * COMMIT. Readers borrow a read-only connection from a pool; it sees a snapshot, and never
 * blocks a writer.
 *
 * Functions of db/ take either `struct db *` (they write, and return when it is on disk) or
 * `struct db_conn *` (they run on a borrowed reader, or inside a db_write_fn).  Results live in
 * the arena that is given.
 */
#pragma once

#include "base/base.h"
#include "base/error.h"

struct arena;
struct db;
struct db_conn;

enum db_file { DB_CONTROL, DB_METRICS };

/*
 * Opens the databases in `folder` (made, mode 0700, if it is absent), locks the folder, checks
 * the files and brings their schema up to date.
 *
 * Fails with PRECONDITION when another process holds the folder ("another trainyard serve (pid
 * 7) uses DIR") or the files are newer than this program; DATA_LOSS when a file is damaged.
 */
struct db *db_open(const char *folder, struct error *err) CHECKED;

/* Finishes what is queued, closes all; no reader may be out.  NULL is fine. */
void db_close(struct db *db);

const char *db_folder(const struct db *db); /* borrowed */

/*
 * Whether the disk has room for what may as well be refused: EXHAUSTED when it is as good as
 * full.  What must be stored then (a cancel, a sign-in, how a task ended) need not ask: each
 * file keeps some megabytes for itself.
 */
bool db_room(const struct db *db, struct error *err) CHECKED;

/* Runs in the writer thread, inside a transaction; false undoes all it did.  Must not block. */
typedef bool db_write_fn(struct db_conn *conn, void *arg, struct error *err);

/*
 * Runs `fn` in the writer of `file` and returns once its transaction is on disk, or it failed:
 * with what `fn` said, EXHAUSTED when the disk is full (nothing was written; later writes may
 * succeed). When the disk fails to sync, the process ends: what a second sync would answer
 * proves nothing. Never called from a db_write_fn.
 */
bool db_write(struct db *db, enum db_file file, db_write_fn *fn, void *arg,
              struct error *err) CHECKED;

/*
 * What must not be written without a change, nor the change without it: from db_along() until
 * db_along_end() the first write of this thread to DB_CONTROL that succeeds runs `fn` behind
 * its own function, in the same transaction; both are undone when one fails.  db_along_end()
 * says whether there was such a write.
 */
void db_along(db_write_fn *fn, void *arg);
bool db_along_end(void);

/* How many transactions of a file are on disk: as long as the number stays, so does all that is
 * read. What db_write() has answered is in it. */
uint64_t db_commits(const struct db *db, enum db_file file);

/* Lends a read-only connection, by which one snapshot is seen until it is given back. */
struct db_conn *db_read(struct db *db, enum db_file file, struct error *err) CHECKED;
void db_read_done(struct db *db, struct db_conn *conn); /* NULL is fine */

/*
 * Has `fn` called after each commit that added rows to the event log, with the newest sequence
 * number, from the writer thread: it must not block or call db.  One watcher; set before the
 * first write.
 */
typedef void db_watch_fn(void *self, int64_t seq);
void db_watch(struct db *db, db_watch_fn *fn, void *self);
