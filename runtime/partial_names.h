/*
 * partial_names.h - which feeds and fetches of a run in several calls were used already.
 */
#pragma once

#include "base/base.h"

struct error;
struct session_run;

struct partial_names {
    const struct session_run *names; /* all of them; borrowed */
    bool *fed;                       /* by feed */
    bool *taken;                     /* by fetch */
    int left;                        /* feeds and fetches not used yet */
};

/* One call: which of them it names, and what is used after it. */
struct partial_request {
    const struct session_run *run;
    bool *fed, *taken;
    int *feeds, *fetches; /* of the call, as indices of all */
};

void partial_names_init(struct partial_names *all, const struct session_run *names);
void partial_names_release(struct partial_names *all);

/*
 * Looks the call's names up; "x" and "x:0" are the same.  INVALID for one that was not told or
 * is used.  To be given back with partial_names_done(), whatever it returns.
 */
bool partial_names_find(const struct partial_names *all, const struct session_run *run,
                        struct partial_request *request, struct error *err) CHECKED;
void partial_names_use(struct partial_names *all, const struct partial_request *request);
void partial_names_done(struct partial_request *request);

/* INVALID: a fetch does not follow from the feeds so far.  TensorFlow names the feed it lacks.
 */
bool partial_names_too_early(const struct partial_names *all, int feed, struct error *err);
