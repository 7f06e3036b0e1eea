/*
 * feed.h - tells those who watch that something new was stored.
 *
 * A feed holds no history, only how far it goes: the database is the history, and whoever
 * watches reads from there what lies behind his own cursor (topic.h).  So a slow watcher costs
 * no memory, what he missed comes in one piece, and after a restart all goes on at the same
 * numbers.
 *
 * There are two sequences: of the event log (states of jobs, tasks, nodes) and of what tasks
 * report (points, logs, artifacts).
 */
#pragma once

#include "base/base.h"

struct db;
struct error;
struct feed;

enum feed_line { FEED_EVENTS, FEED_REPORTS, FEED_LINES };

/* Begins at what the database has now, and follows its event log (db_watch). */
struct feed *feed_new(struct db *db, struct error *err) CHECKED;
void feed_free(struct feed *feed); /* no watcher may be left; NULL is fine */

/* Something was stored with this number.  `job` 0: it concerns all.  From any thread. */
void feed_note(struct feed *feed, enum feed_line line, int64_t job, int64_t seq);

/*
 * One who wants to know.  `wake` is called with every note, from the thread that brings it: it
 * must return at once, lock nothing but a leaf, and not call feed.
 */
struct feed_watcher {
    void (*wake)(void *self);
    void *self;
    struct feed_watcher *next, **link; /* private */
};
void feed_watch(struct feed *feed, struct feed_watcher *watcher);
/* After this `wake` is not called any more. */
void feed_unwatch(struct feed *feed, struct feed_watcher *watcher);

/*
 * The newest number of a line that may concern `job` (0: any job).  Everything up to it can be
 * read from the database.
 */
int64_t feed_seq(struct feed *feed, enum feed_line line, int64_t job);

/* Wakes all watchers though nothing is new: live.c's clock, by which streams show that they
 * live. */
void feed_tick(struct feed *feed);

/* Ends all streams: watchers are woken, and find it closed. */
void feed_close(struct feed *feed);
bool feed_closed(struct feed *feed);
