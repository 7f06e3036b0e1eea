/*
 * condition.h - changes of what several people may change, on condition that it is as the
 * sender saw it (RFC 9110, ETag and If-Match).
 *
 * Jobs have their own (job_match): theirs is checked in the transaction of the change.  What is
 * here is for what changes rarely: its changes happen one after the other.
 */
#pragma once

#include <jansson.h>

#include "server/routes.h"

/*
 * Answers with `json` (takes it) and an ETag of what its `fields` (up to NULL) say: those that
 * are changed by people, not those that count.
 */
bool condition_reply(struct request *req, json_t *json, const char *const fields[],
                     struct error *err) CHECKED;

/*
 * Does what `change` does.  With If-Match only if `show`, which answers by condition_reply(),
 * now gives that ETag (or, for *, gives any): else fails with PRECONDITION and 412.
 */
bool condition_change(struct request *req, route_handler *show, route_handler *change,
                      struct error *err) CHECKED;
