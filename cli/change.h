/*
 * change.h - verbs that change something by one request, and show what has become of it.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

#define CHANGE_NOT_GIVEN INT64_MIN /* of an option that is a number */

/*
 * Sends METHOD /api/v1/COLLECTION or, with a name, /api/v1/COLLECTION/NAME.  Takes `body`
 * (NULL: none).  Returns the answer, owned; NULL with the error printed and `*status` set.
 */
json_t *change_send(const char *folder, const char *method, const char *collection,
                    const char *name, json_t *body, int *status);

/* The same for POST /api/v1/COLLECTION/NAME:VERB. */
json_t *change_verb(const char *folder, const char *collection, const char *name,
                    const char *verb, json_t *body, int *status);

/* Prints an answer as JSON and frees it; returns true. */
bool change_print(json_t *answer);

/* The words between commas as a list of texts, owned. */
json_t *change_list(const char *text);

/* Adds a number that was given; below 0 it is null: no bound. */
void change_add(json_t *object, const char *name, int64_t value);
