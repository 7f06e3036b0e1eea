/*
 * webhooks.h - addresses that are told of the states of a project's jobs.
 *
 * What deliveries are signed with is stored sealed (seal.h).  What is delivered, and when, is
 * in deliveries.h.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct arena;

#define DB_WEBHOOKS_MAX 100
#define DB_WEBHOOK_URL_BYTES 2048
#define DB_WEBHOOK_STATES_ALL ((1 << JOB_STATES_COUNT) - 1)

struct db_webhook {
    int64_t id;
    const char *project;
    const char *url;
    int states; /* bit 1 << state: which it is told of */
    bool disabled;
    const char *user; /* who made it */
    int64_t created_us;
    int64_t waiting; /* deliveries that wait to be tried */
};

/*
 * Adds one of `user_id`, told of what happens from now on; fills webhook->id.  EXHAUSTED when
 * there are too many; as db_seal() otherwise.
 */
bool db_webhooks_add(struct db *db, struct db_webhook *webhook, int64_t user_id,
                     const char *secret, struct error *err) CHECKED;

/*
 * Writes its url, states and disabled; NOT_FOUND when it is gone.  What it was not told of
 * before it will not be told of later: other states count from now on.
 */
bool db_webhooks_change(struct db *db, const struct db_webhook *webhook,
                        struct error *err) CHECKED;

/* With its deliveries; NOT_FOUND when there is none. */
bool db_webhooks_remove(struct db *db, int64_t id, struct error *err) CHECKED;

bool db_webhooks_find(struct db_conn *conn, int64_t id, struct arena *arena,
                      struct db_webhook *webhook, struct error *err) CHECKED;

/* All, in the order in which they were made. */
bool db_webhooks_list(struct db_conn *conn, struct arena *arena, struct db_webhook **webhooks,
                      int *webhooks_count, struct error *err) CHECKED;

/* What its deliveries are signed with, in the arena: NOT_FOUND, or as db_seal_open(). */
bool db_webhooks_secret(const struct db *db, struct db_conn *conn, int64_t id,
                        struct arena *arena, const char **secret, struct error *err) CHECKED;
