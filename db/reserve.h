/*
 * reserve.h - room on the disk that a database's file has for itself.
 *
 * DESIGN: on a full disk, what frees it and what must be known is still to be stored: a
 * sign-in, a cancel, how a task ended.  So blocks are taken while there are some: behind the
 * end of the file, and in the file of its log (FILE-wal), which SQLite begins again from the
 * front and never cuts while it is open.  Files do not get longer by it, and nobody else can
 * take this room, as he could what a reserve file gives back.  Where the file system keeps no
 * blocks (errors of fallocate other than a full disk), there is no reserve.
 */
#pragma once

#include "base/base.h"

struct db_reserve;

struct db_reserve *db_reserve_new(const char *path);

/* Takes what has been used, or could not be had.  Cheap when there is nothing to do; one thread
 * at a time. */
void db_reserve_keep(struct db_reserve *reserve);

/* After all connections of the file are closed: closing a file drops the locks of all that the
 * process has on it.  NULL is fine. */
void db_reserve_free(struct db_reserve *reserve);
