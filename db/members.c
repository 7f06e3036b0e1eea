/* members.c - roles of users in projects. */

#include "db/members.h"
#include "base/arena.h"
#include "db/internal.h"

bool db_viewer_sees(struct db_conn *conn, const struct db_viewer *viewer, const char *project,
                    bool *sees, struct error *err)
{
    enum user_role role = ROLE_VIEWER;
    *sees = false;
    if (viewer && viewer->project && strcmp(viewer->project, project) != 0)
        return true;
    if (viewer && viewer->member && !db_members_role(conn, viewer->member, project, &role, err))
        return false;
    *sees = role != ROLE_NONE;
    return true;
}

static bool set_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_member *member = arg;
    int64_t id;
    if (!db_number(conn, err, &id, 0, "SELECT id FROM users WHERE name = ?1", "t",
                   member->user))
        return false;
    if (!id)
        return fail(err, NOT_FOUND, "there is no user '%.128s'", member->user);
    if (member->role == ROLE_NONE) {
        if (!db_run(conn, err, "DELETE FROM members WHERE user_id = ?1 AND project = ?2", "it",
                    id, member->project))
            return false;
        if (!db_changes_count(conn))
            return fail(err, NOT_FOUND, "the user '%.128s' is no member of project '%.128s'",
                        member->user, member->project);
    } else if (!db_run(conn, err,
                       "INSERT INTO members (user_id, project, role) VALUES (?1, ?2, ?3)"
                       " ON CONFLICT DO UPDATE SET role = ?3",
                       "iti", id, member->project, (int64_t)member->role)) {
        return false;
    }
    return db_run(conn, err, "UPDATE users SET rights = rights + 1 WHERE id = ?1", "i", id);
}

bool db_members_set(struct db *db, const struct db_member *member, struct error *err)
{
    return db_write(db, DB_CONTROL, set_run, (void *)member, err);
}

bool db_members_list(struct db_conn *conn, const char *project, int64_t user_id,
                     struct arena *arena, struct db_member **members, int *members_count,
                     struct error *err)
{
    sqlite3_stmt *stmt = db_query(conn, err,
                                  "SELECT m.project, u.name, m.role FROM members m JOIN users u"
                                  " ON u.id = m.user_id WHERE (?1 IS NULL OR m.project = ?1)"
                                  " AND (?2 = 0 OR m.user_id = ?2) ORDER BY m.project, u.name",
                                  "ti", project, user_id);
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_member)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        *(struct db_member *)db_rows_add(&rows) = (struct db_member){
            .project = db_column_text(stmt, 0, arena),
            .user = db_column_text(stmt, 1, arena),
            .role = (enum user_role)sqlite3_column_int(stmt, 2),
        };
    *members = db_rows_end(&rows, arena, members_count);
    return row == 0;
}

bool db_members_role(struct db_conn *conn, int64_t user_id, const char *project,
                     enum user_role *role, struct error *err)
{
    int64_t found;
    if (!db_number(conn, err, &found, ROLE_NONE,
                   "SELECT role FROM members WHERE user_id = ?1 AND project = ?2", "it",
                   user_id, project))
        return false;
    *role = (enum user_role)found;
    return true;
}
