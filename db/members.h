/*
 * members.h - what users may do in single projects.
 */
#pragma once

#include "db/db.h"
#include "db/state.h"

struct arena;

/* For whom a query is made: it finds nothing of projects that he does not see. */
struct db_viewer {
    int64_t member;      /* sees those of this user (his id); 0: all */
    const char *project; /* sees this one alone of them; NULL: all */
};

/* Whether he sees a project; a `viewer` of NULL sees all, here and in queries. */
bool db_viewer_sees(struct db_conn *conn, const struct db_viewer *viewer, const char *project,
                    bool *sees, struct error *err) CHECKED;

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
