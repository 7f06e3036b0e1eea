/*
 * deliveries.h - what webhooks are told, what came of it, and when it is tried again.
 *
 * A delivery names an event; what is sent is made from it at each try.  Each event gets its
 * deliveries once, in the transaction that moves webhooks.after_seq past it.
 */
#pragma once

#include "db/db.h"

struct arena;

#define DB_DELIVERIES_WAITING_MAX 10000 /* of one webhook; the oldest are given up */
#define DB_DELIVERIES_KEPT 1000         /* of one webhook that are over */

struct db_delivery {
    int64_t id;
    int64_t webhook_id;
    int64_t seq; /* of the event; 0: a test */
    int64_t created_us;
    int tries;         /* since it was last asked for */
    int64_t next_us;   /* not tried before this; 0: it is over */
    int64_t tried_us;  /* 0: never */
    int status;        /* HTTP status of the last try; 0: no answer */
    const char *error; /* why the last try did not succeed, "" */
};

/* Up to which event all webhooks have their deliveries; INT64_MAX when there is no webhook. */
bool db_deliveries_seq(struct db_conn *conn, int64_t *seq, struct error *err) CHECKED;

/* How many deliveries the events in (after_seq, upto_seq] would make now. */
bool db_deliveries_wanted(struct db_conn *conn, int64_t after_seq, int64_t upto_seq,
                          int64_t *count, struct error *err) CHECKED;

/* Makes those deliveries, due at once. */
bool db_deliveries_queue(struct db *db, int64_t after_seq, int64_t upto_seq,
                         struct error *err) CHECKED;

/* Adds one without an event, due at once; fills `id`.  NOT_FOUND without the webhook. */
bool db_deliveries_test(struct db *db, int64_t webhook_id, int64_t *id,
                        struct error *err) CHECKED;

/*
 * The delivery of each webhook that waits longest: the first in order of next_us, though it may
 * lie in the future.  Of webhooks that are not disabled.
 */
bool db_deliveries_next(struct db_conn *conn, struct arena *arena,
                        struct db_delivery **deliveries, int *deliveries_count,
                        struct error *err) CHECKED;

/*
 * Writes tries, next_us, tried_us, status and error of a try; forgets the oldest that are over.
 * One that was removed meanwhile is no failure.
 */
bool db_deliveries_tried(struct db *db, const struct db_delivery *delivery,
                         struct error *err) CHECKED;

/* Has it tried once more, at once, and if that fails, as often as a new one.  NOT_FOUND. */
bool db_deliveries_again(struct db *db, int64_t webhook_id, int64_t id,
                         struct error *err) CHECKED;

/* Of one webhook, newest first, those with an id below `before` (0: all), at most `limit`. */
bool db_deliveries_list(struct db_conn *conn, int64_t webhook_id, int64_t before, int limit,
                        struct arena *arena, struct db_delivery **deliveries,
                        int *deliveries_count, struct error *err) CHECKED;
bool db_deliveries_find(struct db_conn *conn, int64_t webhook_id, int64_t id,
                        struct arena *arena, struct db_delivery *delivery,
                        struct error *err) CHECKED;
