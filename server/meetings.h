/*
 * meetings.h - where the tasks of an attempt are, and by what they know each other.
 *
 * Where the tasks of an attempt are is on disk before the first of them is told: after a
 * restart only those ask again that had not begun, and others look for them later: clients
 * (cluster.h), and a task that is placed anew while the others go on.  The certificate of an
 * attempt is the same whenever it is made.
 */
#pragma once

#include "base/base.h"

struct agent_meet_request;
struct agent_meet_response;
struct arena;
struct db;
struct error;
struct meetings;

/* `folder` is the server's. */
struct meetings *meetings_new(struct db *db, const char *folder);
void meetings_free(struct meetings *meetings); /* NULL is fine */

/*
 * Takes the address of a task of the attempt with `epoch`; `*met` has those of all tasks of its
 * attempt once all have come, before that none; and when they train a model, the certificate
 * that all of them show and trust.  One that was placed anew meets the others where they were
 * last, and tells them itself where it is (runtime/worker/moved.h).  It lives in `arena`.  One
 * thread at a time.
 */
bool meetings_meet(struct meetings *meetings, const struct agent_meet_request *request,
                   int64_t epoch, struct arena *arena, struct agent_meet_response *met,
                   struct error *err) CHECKED;
