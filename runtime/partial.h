/*
 * partial.h - a run in several calls: feeds come, and fetches go, a few at a time.
 *
 * The names of all feeds, fetches and targets are told first; each feed is given once, each
 * fetch is taken once, as soon as it follows from what was fed.  With the last of them the run
 * is done.  One call at a time.
 */
#pragma once

#include "base/base.h"

struct cancel;
struct error;
struct partial;
struct plan;
struct session_run;
struct tensor;

/*
 * Begins; nothing runs yet.  `plan` was made for a subgraph that is partial, from the names in
 * `names`, which is borrowed like the plan.
 */
struct partial *partial_new(struct plan *plan, const struct session_run *names,
                            struct error *err) CHECKED;

/* Ends it, whatever still goes on.  NULL is fine. */
void partial_free(struct partial *partial);

/*
 * Takes the feeds and fetches that `run` names, and gives the fetched tensors.  `cancel` ends
 * the call and with it the run.  Fails with INVALID for a name that was not told or was used
 * before, or for a fetch that does not follow from the feeds so far; then nothing has changed.
 */
bool partial_run(struct partial *partial, const struct session_run *run, struct cancel *cancel,
                 struct tensor *fetched, struct error *err) CHECKED;

/* Whether all feeds were given and all fetches taken, or it failed. */
bool partial_is_done(const struct partial *partial);
