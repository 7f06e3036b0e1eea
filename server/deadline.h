/*
 * deadline.h - connections that must say what they want in time.
 *
 * A connection is watched while its request is still coming in.  One thread looks once a second
 * and shuts down those that are over their limit; libmicrohttpd then closes them.
 */
#pragma once

#include "base/base.h"

struct deadline;       /* all connections of a server */
struct deadline_entry; /* one of them */

struct deadline *deadline_new(void);
void deadline_free(struct deadline *deadline); /* all entries must be gone; NULL is fine */

/* Begins to watch socket `fd`: the head of a request must be there within DEADLINE_HEAD_MS. */
struct deadline_entry *deadline_add(struct deadline *deadline, int fd);

/* Must be called before `fd` is closed. */
void deadline_remove(struct deadline *deadline, struct deadline_entry *entry);

/* From now the entry has `limit_ms`; 0: it is not watched. */
void deadline_set(struct deadline *deadline, struct deadline_entry *entry, int limit_ms);

#define DEADLINE_HEAD_MS 25000 /* keep-alive idles at most 15 s, a head takes at most 10 s */
#define DEADLINE_BODY_MS 60000
