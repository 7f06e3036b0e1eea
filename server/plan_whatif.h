/*
 * plan_whatif.h - what would happen, as JSON and for people.
 */
#pragma once

#include <jansson.h>

#include "scheduler/whatif.h"

struct str;

/*
 * Adds to `json`: starts_now, starts_in_seconds (null: nobody knows), code and why (when not
 * now), placement, delayed, sooner, stopped (at most LIMIT_PAGE_ITEMS each), looked_seconds
 * (null: to the end).  Without a job: the last four.
 */
void plan_whatif_json(const struct whatif *what, json_t *json);

/* "would start now on n1; would delay job 7 by 3m.", with a full stop at its end. */
void plan_whatif_text(const struct whatif *what, struct str *text);
