/*
 * ingest.h - what tasks wrote, from the bytes of their files into the database.
 *
 * Event files are taken apart record by record; output is stored as it is.  A record that has
 * not come whole is kept in memory until the rest comes: the stored cursor covers whole records
 * only, so after a crash the agent is asked for its beginning again.
 */
#pragma once

#include "base/base.h"

struct agent_ship_request;
struct db;
struct error;
struct feed;
struct ingest;

/* All are borrowed; `folder` is the server's. */
struct ingest *ingest_new(struct db *db, struct feed *feed, const char *folder);
void ingest_free(struct ingest *ingest); /* NULL is fine */

/*
 * Stores one piece of a file, exactly once however often it is sent, and tells the feed.
 * `*cursor` is where the sender must go on.  For server/nodes.c (nodes_ship_fn); one thread at
 * a time.
 */
bool ingest_ship(void *self, const struct agent_ship_request *ship, int64_t *cursor,
                 struct error *err);
