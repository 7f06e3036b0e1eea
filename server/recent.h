/*
 * recent.h - batches of a topic that were read a moment ago, for the next client that is at the
 * same place.
 *
 * A thousand browsers that watch one job ask for the same events within milliseconds: one of
 * them reads the database.  What is kept is of topics with a job alone (who may follow it was
 * asked when he subscribed), for RECENT_US, and of one thread.
 */
#pragma once

#include "server/topic.h"

struct recent;

#define RECENT_US 1000000

struct recent *recent_new(void);
void recent_free(struct recent *recent); /* NULL is fine */

/*
 * As topic_read(), with ',' between the events.  `*events` is borrowed until the next call.
 */
bool recent_read(struct recent *recent, struct db *db, struct feed *feed,
                 const struct topic *topic, int64_t after_seq, const struct str **events,
                 struct topic_batch *batch, struct error *err) CHECKED;
