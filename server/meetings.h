/*
 * meetings.h - where the tasks of an attempt are, and by what they know each other.
 *
 * Nothing of it is kept on disk but where clients find the tasks: after a restart the agents of
 * tasks that have not met ask again, and the certificate of an attempt is the same whenever it
 * is made.
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
 * Takes the address of a task; `*met` has those of all tasks of its attempt once all have come,
 * before that none; and when they train a model, the certificate that all of them show and
 * trust.  Where clients come to them (cluster.h), it is on disk by then who is where.  It lives
 * in `arena`.  One thread at a time.
 */
bool meetings_meet(struct meetings *meetings, const struct agent_meet_request *request,
                   struct arena *arena, struct agent_meet_response *met,
                   struct error *err) CHECKED;
