/*
 * members.h - what users may do in single projects.
 *
 * A query that is made for somebody who does not see everything takes a `viewer`: the id of a
 * user whose projects are all that it finds, or 0 for all.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct arena;

struct db_member {
    const char *project;
    const char *user; /* name */
    enum user_role role;
};

/*
 * Gives a user a role in a project, in place of the one he had there; ROLE_NONE takes it away.
 * NOT_FOUND when there is no such user, or he has no role to take away.
 */
bool db_members_set(struct db *db, const struct db_member *member, struct error *err) CHECKED;

/* The members of one project (`project`), or what one user is (`user_id`); NULL and 0: any. */
bool db_members_list(struct db_conn *conn, const char *project, int64_t user_id,
                     struct arena *arena, struct db_member **members, int *members_count,
                     struct error *err) CHECKED;

/* The role of a user in a project, ROLE_NONE when he is no member of it. */
bool db_members_role(struct db_conn *conn, int64_t user_id, const char *project,
                     enum user_role *role, struct error *err) CHECKED;
