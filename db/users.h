/*
 * users.h - the people who may sign in.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct arena;

/* The user every new database begins with: "admin", role admin; always an admin, never
 * disabled.
 */
#define DB_USER_ADMIN 1

#define DB_USERS_MAX 10000

struct db_user {
    int64_t id;
    const char *name;
    enum user_role role;  /* in every project; ROLE_NONE: only where he is a member */
    const char *password; /* its hash; "": has none */
    bool disabled;
    int64_t created_us;
    const char *subject; /* as whom he signs in by another provider; "": he does not */
};

/* EXISTS when the name is taken; EXHAUSTED beyond DB_USERS_MAX. */
bool db_users_add(struct db *db, const char *name, enum user_role role, const char *password,
                  int64_t *id, struct error *err) CHECKED;

/* NOT_FOUND when there is none of that name. */
bool db_users_find(struct db_conn *conn, const char *name, struct arena *arena,
                   struct db_user *user, struct error *err) CHECKED;
/* Who signs in as that by another provider. */
bool db_users_find_subject(struct db_conn *conn, const char *subject, struct arena *arena,
                           struct db_user *user, bool *found, struct error *err) CHECKED;

/* From now on that is he.  EXISTS when he is somebody by another provider already, or that is
 * another user. */
bool db_users_link(struct db *db, int64_t id, const char *subject, struct error *err) CHECKED;

bool db_users_list(struct db_conn *conn, struct arena *arena, struct db_user **users,
                   int *users_count, struct error *err) CHECKED;

/*
 * Writes role, password and disabled of the user with `user->id`.  Who is disabled loses
 * tokens, sessions and links; with another password, sessions and links.  (Join tokens are the
 * nodes'.) PRECONDITION: DB_USER_ADMIN stays an admin.
 */
bool db_users_set(struct db *db, const struct db_user *user, struct error *err) CHECKED;
