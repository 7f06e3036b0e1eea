/*
 * url.h - the target of a request: its path and its query, taken apart strictly.
 *
 * libmicrohttpd would decode a target in place, so that "%2e%2e%2f" could turn into a way up.
 * Here anything that could mean two things is refused.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;

struct url_pair {
    const char *name;
    const char *value;
};

struct url {
    const char *path; /* decoded; begins with '/' */
    const struct url_pair *query;
    int query_count;
};

/*
 * Parses "/api/v1/jobs?limit=5".  All in `arena`.  Fails with INVALID on: no leading '/', bad
 * or unfinished "%xx", "%00", "%2f", other control characters, bytes that are not UTF-8, a
 * segment "." or "..", an empty segment other than the last.
 */
bool url_parse(struct arena *arena, const char *target, struct url *url,
               struct error *err) CHECKED;

/* The value of the first pair of that name (for headers, `ignore_case`); NULL if absent. */
const char *url_find(const struct url_pair *pairs, int count, const char *name,
                     bool ignore_case);

/* Appends `text` with all but unreserved characters written as %XX. */
struct str;
void url_encode(struct str *out, const char *text);
