/*
 * writer.h - the thread that owns the writing connection of one file, and commits in groups.
 */
#pragma once

#include "db/db.h"

struct db_reserve;
struct db_writer;

/* Takes the connection, borrows the reserve of its file and sees to it after each commit.  NULL
 * when no thread can be started. */
struct db_writer *db_writer_start(struct db_conn *conn, struct db_reserve *reserve,
                                  const char *name, struct error *err) CHECKED;

/* Finishes what is queued, ends the thread, closes the connection.  NULL is fine. */
void db_writer_stop(struct db_writer *writer);

/* How often it has committed; from any thread. */
uint64_t db_writer_commits(const struct db_writer *writer);

/* See db_write() and db_watch(). */
bool db_writer_run(struct db_writer *writer, db_write_fn *fn, void *arg,
                   struct error *err) CHECKED;
void db_writer_watch(struct db_writer *writer, db_watch_fn *fn, void *self);
