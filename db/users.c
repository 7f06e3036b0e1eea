/* users.c - people, and the end of what they signed in with. */

#include "db/users.h"
#include "base/arena.h"
#include "base/clock.h"
#include "db/internal.h"
#include "db/tokens.h"

struct user_add {
    const char *name;
    enum user_role role;
    const char *password;
    int64_t id;
};

static bool add_run(struct db_conn *conn, void *arg, struct error *err)
{
    struct user_add *add = arg;
    int64_t existing, count;
    if (!db_number(conn, err, &existing, 0, "SELECT id FROM users WHERE name = ?1", "t",
                   add->name) ||
        !db_number(conn, err, &count, 0, "SELECT count(*) FROM users", ""))
        return false;
    if (existing)
        return fail(err, EXISTS, "there is a user '%s' already", add->name);
    if (count >= DB_USERS_MAX)
        return fail(err, EXHAUSTED, "there are %lld users, allowed: at most %d",
                    (long long)count, DB_USERS_MAX);
    if (!db_run(conn, err,
                "INSERT INTO users (name, role, projects_only, password, disabled, created_us)"
                " VALUES (?1, max(?2, 0), ?2 < 0, ?3, 0, ?4)",
                "titi", add->name, (int64_t)add->role, add->password, (int64_t)clock_wall_us()))
        return false;
    add->id = db_inserted(conn);
    return true;
}

bool db_users_add(struct db *db, const char *name, enum user_role role, const char *password,
                  int64_t *id, struct error *err)
{
    struct user_add add = {.name = name, .role = role, .password = password};
    if (!db_write(db, DB_CONTROL, add_run, &add, err))
        return false;
    *id = add.id;
    return true;
}

#define USER_COLUMNS                                                                           \
    "id, name, iif(projects_only, -1, role), password, disabled, created_us,"                  \
    " coalesce(subject, '')"

static void user_read(sqlite3_stmt *stmt, struct arena *arena, struct db_user *user)
{
    *user = (struct db_user){
        .id = sqlite3_column_int64(stmt, 0),
        .name = db_column_text(stmt, 1, arena),
        .role = (enum user_role)sqlite3_column_int(stmt, 2),
        .password = db_column_text(stmt, 3, arena),
        .disabled = sqlite3_column_int(stmt, 4) != 0,
        .created_us = sqlite3_column_int64(stmt, 5),
        .subject = db_column_text(stmt, 6, arena),
    };
}

bool db_users_find(struct db_conn *conn, const char *name, struct arena *arena,
                   struct db_user *user, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT " USER_COLUMNS " FROM users WHERE name = ?1", "t", name);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    if (row < 0)
        return false;
    if (row == 0)
        return fail(err, NOT_FOUND, "there is no user '%.128s'", name);
    user_read(stmt, arena, user);
    db_query_end(stmt);
    return true;
}

bool db_users_find_subject(struct db_conn *conn, const char *subject, struct arena *arena,
                           struct db_user *user, bool *found, struct error *err)
{
    sqlite3_stmt *stmt = db_query(
        conn, err, "SELECT " USER_COLUMNS " FROM users WHERE subject = ?1", "t", subject);
    int row = stmt ? db_row(conn, stmt, err) : -1;
    *found = row > 0;
    if (row > 0) {
        user_read(stmt, arena, user);
        db_query_end(stmt);
    }
    return row >= 0;
}

struct user_link {
    int64_t id;
    const char *subject;
};

static bool link_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct user_link *link = arg;
    if (!db_run(conn, err,
                "UPDATE users SET subject = ?2 WHERE id = ?1 AND subject IS NULL"
                " AND NOT EXISTS (SELECT 1 FROM users WHERE subject = ?2)",
                "it", link->id, link->subject))
        return false;
    return db_changes_count(conn) == 1 ||
           fail(err, EXISTS, "the user signs in as somebody else already");
}

bool db_users_link(struct db *db, int64_t id, const char *subject, struct error *err)
{
    struct user_link link = {id, subject};
    return db_write(db, DB_CONTROL, link_run, &link, err);
}

bool db_users_list(struct db_conn *conn, struct arena *arena, struct db_user **users,
                   int *users_count, struct error *err)
{
    sqlite3_stmt *stmt =
        db_query(conn, err, "SELECT " USER_COLUMNS " FROM users ORDER BY id", "");
    if (!stmt)
        return false;
    struct db_rows rows = {.row_size = sizeof(struct db_user)};
    int row;
    while ((row = db_row(conn, stmt, err)) > 0)
        user_read(stmt, arena, db_rows_add(&rows));
    *users = db_rows_end(&rows, arena, users_count);
    return row == 0;
}

static bool set_run(struct db_conn *conn, void *arg, struct error *err)
{
    const struct db_user *user = arg;
    int64_t same;
    if (user->id == DB_USER_ADMIN && (user->disabled || user->role != ROLE_ADMIN))
        return fail(err, PRECONDITION,
                    "%s is who operates the server's machine: always an admin, never disabled",
                    user->name);
    if (!db_number(conn, err, &same, 0, "SELECT password = ?2 FROM users WHERE id = ?1", "it",
                   user->id, user->password))
        return false;
    int64_t kinds = 0;
    if (user->disabled)
        kinds = BIT(TOKEN_API) | BIT(TOKEN_SESSION) | BIT(TOKEN_LOGIN);
    else if (!same)
        kinds = BIT(TOKEN_SESSION) | BIT(TOKEN_LOGIN);
    return db_run(conn, err,
                  "UPDATE users SET role = max(?2, 0), projects_only = ?2 < 0, password = ?3,"
                  " disabled = ?4, rights = rights + (iif(projects_only, -1, role) <> ?2)"
                  " WHERE id = ?1",
                  "iiti", user->id, (int64_t)user->role, user->password,
                  (int64_t)user->disabled) &&
           db_run(conn, err,
                  "UPDATE tokens SET revoked_us = ?2 WHERE user_id = ?1 AND revoked_us = 0"
                  " AND (?3 >> kind & 1)",
                  "iii", user->id, (int64_t)clock_wall_us(), kinds);
}

bool db_users_set(struct db *db, const struct db_user *user, struct error *err)
{
    return db_write(db, DB_CONTROL, set_run, (void *)user, err);
}
