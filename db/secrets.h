/*
 * secrets.h - values that jobs are told and that nobody can ask for again.
 *
 * A value is stored encrypted (seal.h).
 */
#pragma once

#include "db/db.h"

struct arena;

#define DB_SECRETS_MAX 1000
#define DB_SECRET_BYTES_MIN 4 /* what is shorter cannot be masked in what a task prints */
#define DB_SECRET_BYTES_MAX 65536

struct db_secret {
    const char *name;
    const char *user; /* who set it last */
    int64_t created_us;
    int64_t changed_us;
};

/*
 * Adds the secret, or gives it another value.  Returns after the commit.
 *
 * Fails with INVALID (the value's size), EXHAUSTED (too many secrets), DATA_LOSS (the key is
 * gone while there are secrets, or is damaged), PRECONDITION (others may read the key).
 */
bool db_secrets_set(struct db *db, const char *name, const char *value, int64_t user_id,
                    struct error *err) CHECKED;

/* NOT_FOUND when there is none. */
bool db_secrets_remove(struct db *db, const char *name, struct error *err) CHECKED;

/* All, by name, without their values. */
bool db_secrets_list(struct db_conn *conn, struct arena *arena, struct db_secret **secrets,
                     int *secrets_count, struct error *err) CHECKED;

/* Whether there is one. */
bool db_secrets_known(struct db_conn *conn, const char *name, bool *known,
                      struct error *err) CHECKED;

/* The value, in the arena: NOT_FOUND, and DATA_LOSS or PRECONDITION as above. */
bool db_secrets_read(const struct db *db, struct db_conn *conn, const char *name,
                     struct arena *arena, const char **value, struct error *err) CHECKED;
