/*
 * moved.h - a task that was placed anew on another node tells the others where it is.
 *
 * They were told of all tasks' addresses when they started.  The task that comes in the place
 * of one that was lost has a later epoch: who is told of it opens a new link there, ends what
 * is under way with the one before, and listens to that one no more.  All know each other by
 * the attempt's certificate; in the clear nobody is believed.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct str;
struct worker_link;

struct moved {
    const char *task; /* "/job:worker/replica:0/task:1" */
    int64_t epoch;
    const char *address; /* "10.0.0.3:41234" */
};

void moved_write(const struct moved *moved, struct str *out);
bool moved_read(const void *bytes, size_t size, struct arena *arena, struct moved *out,
                struct error *err) CHECKED;

/*
 * Finds the task among the links, and has its link lead there.  The same again changes nothing.
 * NOT_FOUND when there is no such task, PRECONDITION when a later one has come, DENIED when
 * links are in the clear, INVALID when it is this very task.
 */
bool moved_take(struct worker_link *const *links, int count, const struct moved *moved,
                struct error *err) CHECKED;

/*
 * Tells the task of a link, of another process.  `done` is called once, by any thread, perhaps
 * before this returns; not `ok`: it could not be told now.
 */
void moved_tell(struct worker_link *link, const struct moved *moved,
                void (*done)(void *arg, bool ok), void *arg);
