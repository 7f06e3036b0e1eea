/*
 * page.h - a page of plain HTML for a person whom the single page cannot tell, for he is not
 * in.
 */
#pragma once

#include "base/base.h"

struct error;
struct request;

/* Says `heading`, why, and `next`, which is HTML: what to do. */
bool page_refused(struct request *req, int status, const char *heading, const struct error *why,
                  const char *next);
